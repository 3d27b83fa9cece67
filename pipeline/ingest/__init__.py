"""From logs to the audit tables: what is new or has grown is stored and measured."""

from .rebuild import rebuild
from .result import Ingested, Progress
from .run import ingest

__all__ = ["Ingested", "Progress", "ingest", "rebuild"]
