"""The store: ledgers that are kept, tables that are derived from them. It knows no system."""

from .connection import (
    ALERTS,
    AMONG,
    Row,
    constant,
    constants,
    delete,
    dictionaries,
    execute,
    first_row,
    insert,
    rows_with_arrays,
    texts,
)
from .database import Store
from .memory import write_out
from .queries.selection import Selection, day_of, tag_path
from .workspace import Workspace

__all__ = [
    "ALERTS",
    "AMONG",
    "Row",
    "Selection",
    "Store",
    "Workspace",
    "constant",
    "constants",
    "day_of",
    "delete",
    "dictionaries",
    "execute",
    "first_row",
    "insert",
    "rows_with_arrays",
    "tag_path",
    "texts",
    "write_out",
]
