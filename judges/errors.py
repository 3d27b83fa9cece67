"""What a judge says when it can't rate."""

from __future__ import annotations


class JudgeError(Exception):
    """A judge cannot be used as asked; the message says what would be right."""
