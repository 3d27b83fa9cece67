"""What an ingest did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...schemas import Quarantined
from .remarks import Remarks

Progress = Callable[[str, int, int], None]
"""Called with what is being read, how many sources are done, and of how many."""


@dataclass
class IngestResult:
    """What an ingest did. `trajectories` and `events` are new or updated, `unchanged` counts trajectories."""

    trajectories: int = 0
    events: int = 0
    unchanged: int = 0
    again: int = 0
    """Records that repeated a new trajectory; what they added or changed is part of it."""
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    remarks: Remarks = field(default_factory=Remarks)
    found: int = 0
    """Sources in which a reader recognised its system."""
