"""TRAIL (Deshpande et al. 2025): OpenInference traces with errors that people located in them."""

from __future__ import annotations

from ..base import System
from .reader import NAME, labels, read, recognises

__all__ = ["SYSTEM"]

SYSTEM = System(NAME, recognises, read, on_request=True, labels=labels)
