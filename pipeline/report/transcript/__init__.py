"""One session as it is read: its events with what was rated there, as HTML for pages and reports."""

__all__: list[str] = []
