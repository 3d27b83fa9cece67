"""Who&When (Zhang et al. 2025): failed runs of agent teams, with who made the decisive error, and when."""

from __future__ import annotations

from ..base import System
from .reader import NAME, labels, read, recognises

__all__ = ["SYSTEM"]

SYSTEM = System(NAME, recognises, read, labels=labels)
