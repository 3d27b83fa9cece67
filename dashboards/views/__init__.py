"""One module a page."""

__all__: list[str] = []
