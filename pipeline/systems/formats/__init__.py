"""Open formats: logs of no published system, each a system of its own name."""

from __future__ import annotations

from ..base import System
from . import inspect, native
from .mapped import reader as mapped
from .messages import chat
from .traces import openinference, otlp

__all__ = ["SYSTEMS"]

SYSTEMS = (
    System(
        native.SYSTEM,
        native.recognises,
        native.read,
        read_span=native.read_span,
        sessions_apart=native.sessions_apart,
    ),
    System(inspect.SYSTEM, inspect.recognises, inspect.read),
    System(otlp.SYSTEM, otlp.recognises, otlp.read, named_late=True),
    System(openinference.SYSTEM, openinference.recognises, openinference.read, named_late=True),
    System(
        chat.SYSTEM,
        chat.recognises,
        chat.read,
        read_span=chat.read_span,
        lines_apart=chat.lines_apart,
    ),
    System(
        mapped.SYSTEM,
        mapped.recognises,
        mapped.read,
        read_span=mapped.read_span,
        lines_apart=mapped.lines_apart,
        sessions_apart=mapped.sessions_apart,
        on_request=True,
    ),
)
