"""Questions through one Ray Data dataset, on this machine or on a cluster that RAY_ADDRESS names."""

from .ray_client import client

__all__ = ["client"]
