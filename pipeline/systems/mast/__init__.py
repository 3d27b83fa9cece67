"""MAST (Cemri et al. 2025): traces of seven multi-agent frameworks with the failure modes found in them."""

from __future__ import annotations

from ..base import System
from .annotations import labels
from .reader import NAME, read, recognises

__all__ = ["SYSTEM"]

SYSTEM = System(NAME, recognises, read, labels=labels)
