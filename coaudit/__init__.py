"""coaudit: the audit of human-agent collaboration. The face that a notebook or a script starts from.

`coaudit.open("DIR")` gives a workspace: frames of what is in it, and the commands as methods
(docs/python.md). The types are those that its rows are made of.
"""

from __future__ import annotations

import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coaudit.pipeline.audit import Audit
    from coaudit.schemas import Codebook, Event, Measure, Metric, Rating, Trajectory, Unit, Verdict

    __version__: str

# Its other folders are mapped into this package at install time, so they go by their whole names. Python
# started in the repository's root, with an install that is not editable, would find this folder alone.
__path__ = pkgutil.extend_path(__path__, __name__)
__all__ = [
    "Codebook",
    "Event",
    "Measure",
    "Metric",
    "Rating",
    "Trajectory",
    "Unit",
    "Verdict",
    "__version__",
    "open",
]


def open(path: str | Path | None = None) -> Audit:
    """A workspace: `path`, else COAUDIT_WORKSPACE, else ./workspace.

    Nothing is created before something is ingested. Methods raise StoreError for what cannot be used.
    """
    from coaudit.pipeline.audit import Audit  # polars and DuckDB take two tenths of a second
    from coaudit.pipeline.store.workspace import Workspace

    return Audit(Workspace.at(path))


def __getattr__(name: str) -> object:
    """The version and the types at first use: `coaudit --help` does not wait .3 s for pydantic."""
    if name == "__version__":
        from importlib.metadata import version

        return version("coaudit")
    if name in __all__:
        from coaudit import schemas

        return getattr(schemas, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
