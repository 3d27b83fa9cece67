"""What coaudit knows of each system, a folder for each; registry.py lists them."""

from .base import LIMIT, OF_ONE, ReadOptions, References, Span, System, TimeLimit

__all__ = ["LIMIT", "OF_ONE", "ReadOptions", "References", "Span", "System", "TimeLimit"]
