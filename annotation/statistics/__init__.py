"""Agreement, rates, comparisons, samples: pure functions over arrays, without a workspace."""

from .agreement import Coefficient, Ratings
from .audit import Audit
from .comparisons import Comparison
from .intervals import Interval

__all__ = ["Audit", "Coefficient", "Comparison", "Interval", "Ratings"]
