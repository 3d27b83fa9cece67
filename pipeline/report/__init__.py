"""Tables, failure modes, agreement, rates and methods as one document."""

from .document import Report
from .tables import Cell, Number, Table

__all__ = ["Cell", "Number", "Report", "Table"]
