"""Judges that learned from ratings; their files cannot execute code."""

from .judge import Example, Learnt, Trained

__all__ = ["Example", "Learnt", "Trained"]
