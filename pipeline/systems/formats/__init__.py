"""Open formats: logs of no published system, each a system of its own name."""

from __future__ import annotations

from ..base import System
from . import chat, inspect, mapped, native, openinference, otlp

__all__ = ["SYSTEMS"]

SYSTEMS = (
    System(native.SYSTEM, native.recognises, native.read),
    System(inspect.SYSTEM, inspect.recognises, inspect.read),
    System(otlp.SYSTEM, otlp.recognises, otlp.read),
    System(openinference.SYSTEM, openinference.recognises, openinference.read),
    System(chat.SYSTEM, chat.recognises, chat.read),
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
