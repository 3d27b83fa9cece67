"""Anybody's logs, read as a mapping file says."""

__all__: list[str] = []
