"""Live: from sources that speak now into the store, in short transactions."""

from .run import Follower, Plan

__all__ = ["Follower", "Plan"]
