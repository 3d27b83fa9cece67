"""The tables, and the views that are named SQL."""

__all__: list[str] = []
