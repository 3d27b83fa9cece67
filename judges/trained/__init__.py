"""Judges that learned from ratings; their files cannot execute code."""

from .judge import Example, LearningResult, TrainedJudge

__all__ = ["Example", "LearningResult", "TrainedJudge"]
