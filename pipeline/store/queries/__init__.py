"""Out of the store: trajectories, choices and groups of them, whole tables."""

__all__: list[str] = []
