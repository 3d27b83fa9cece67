"""Sample logs, mappings and phrases that ship with coaudit."""

__all__: list[str] = []
