"""Advise: when should a person step in? Learnt from trajectories with outcomes, evaluated on trees.

A verb beside judge and analyze: it needs systems to read logs and the store, the estimators of annotation,
and is used by follow and by the dashboard. It rates no unit, so it is no judge.
"""

from .advisor import Advisor

__all__ = ["Advisor"]
