"""Judges that learned from ratings; their files cannot execute code."""

from .judge import TrainedJudge
from .learning import Example

__all__ = ["Example", "TrainedJudge"]
