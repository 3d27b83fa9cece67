"""Files of any shape as records: JSON, tables, spreadsheets, folders with a file for each event."""

__all__: list[str] = []
