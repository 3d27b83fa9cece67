"""A study in an object store: its ledgers, its logs, and who works on what."""

__all__: list[str] = []
