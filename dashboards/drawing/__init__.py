"""What pages are drawn with: markup, charts, colours, definitions."""

__all__: list[str] = []
