"""The store as a DuckDB file, and the turns of those who want it."""

__all__: list[str] = []
