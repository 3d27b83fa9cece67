"""Judges that ask a language model: prompt, form of the answer and its reading as one object."""

from .ask import Asker, Budget, Patience
from .judge import Case, LLMJudge, Piece

__all__ = ["Asker", "Budget", "Case", "LLMJudge", "Patience", "Piece"]
