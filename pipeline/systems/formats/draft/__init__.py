"""A mapping drafted from what a look at the logs shows."""

__all__: list[str] = []
