"""What coaudit knows of each system, a folder for each; registry.py lists them."""

from .base import LIMIT, ReadOptions, References, Span, System, TimeLimit
from .registry import SYSTEMS, system_of

__all__ = ["LIMIT", "SYSTEMS", "ReadOptions", "References", "Span", "System", "TimeLimit", "system_of"]
