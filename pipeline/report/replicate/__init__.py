"""`coaudit replicate`: a paper's result tables, the published figure beside the workspace's own.

What the papers print lies in data/papers; a module a paper says how its cells come out of the records.
"""

from __future__ import annotations

from ...errors import UsageError
from ...store import Store
from . import coblock, cogym, overcooked, rehac
from .cells import COLUMNS, Replication, lines, load, remarks
from .records import Definition, Records

__all__ = ["COLUMNS", "PAPERS", "Replication", "lines", "remarks", "replicate"]

PAPERS = {"co-gym": cogym, "rehac": rehac, "collab-overcooked": overcooked, "coblock": coblock}
"""Paper -> the module that knows its tables."""


def replicate(
    store: Store, paper: str, *, definition: Definition = "released", rater: str | None = None
) -> Replication:
    """Every cell of the paper's tables; UsageError for a paper that is not known."""
    if paper not in PAPERS:
        raise UsageError(f"unknown paper {paper!r}, expected one of {', '.join(PAPERS)}")
    module = PAPERS[paper]
    published = load(paper)
    records = Records(store, module.SYSTEM, definition, rater)
    tables = tuple(module.tables(records, published))
    left_out = module.left_out(records, published)
    return Replication(paper, published, definition, records.rater, tables, left_out)
