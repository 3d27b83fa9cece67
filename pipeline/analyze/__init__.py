"""What ratings and logs amount to: metrics, agreement, rates, comparisons, validation."""

from .matrix import Rated

__all__ = ["Rated"]
