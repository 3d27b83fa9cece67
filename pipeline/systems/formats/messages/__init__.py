"""Messages of any chat API, framework or program as those of one API, and conversations made of them."""

__all__: list[str] = []
