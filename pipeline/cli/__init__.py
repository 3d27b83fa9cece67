"""The command line: every command parses, calls a library function and reports."""

__all__: list[str] = []
