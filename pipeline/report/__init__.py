"""Tables, failure modes, agreement, rates and methods as one document."""

from .tables import Cell, Number, Report, Table

__all__ = ["Cell", "Number", "Report", "Table"]
