"""Judges: a unit and a codebook in, ratings out. Rules, language models, trained models, juries."""

from .verdict import JudgeError, Maker

__all__ = ["JudgeError", "Maker"]
