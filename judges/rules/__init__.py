"""Judges without a model: wordings, and detectors over what a log shows."""

from .detectors import Detectors
from .lexical import Rules

__all__ = ["Detectors", "Rules"]
