"""From logs to the audit tables: what is new or has grown is stored and measured."""

from .rebuild import rebuild
from .result import Ingested
from .run import Progress, ingest

__all__ = ["Ingested", "Progress", "ingest", "rebuild"]
