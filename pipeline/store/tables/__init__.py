"""Trajectories and ratings as the audit tables hold them, and what is derived from those."""

__all__: list[str] = []
