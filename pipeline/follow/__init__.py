"""Following: what sources say now goes into the store, in short transactions."""

from .run import Follower, Plan

__all__ = ["Follower", "Plan"]
