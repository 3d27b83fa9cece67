"""Append-only ledgers, and how the tables get what they hold."""

__all__: list[str] = []
