"""Co-Gym: people and agents share a workspace without taking turns; its logs, and its live traffic."""

from __future__ import annotations

from ..base import System
from . import outcomes, reader, records

__all__ = ["SYSTEM"]

SYSTEM = System(
    records.SYSTEM,
    reader.recognises,
    reader.read,
    beside=records.beside,
    link_names=outcomes.FILES | {records.LOG},
)
