"""From logs to the audit tables: what is new or has grown is stored and measured."""

__all__: list[str] = []
