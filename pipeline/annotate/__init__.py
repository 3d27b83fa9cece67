"""Samples to Label Studio and back."""

from .project import Mark

__all__ = ["Mark"]
