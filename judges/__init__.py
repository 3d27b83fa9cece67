"""Judges: a unit and a codebook in, ratings out. Rules, language models, trained models, juries."""

from .errors import JudgeError

__all__ = ["JudgeError"]
