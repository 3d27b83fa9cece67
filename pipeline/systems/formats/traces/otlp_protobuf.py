"""OTLP as protobuf: the same traces as OTLP's JSON, in binary.

A file is one message, or several, each with its length before it (four bytes, the highest first), as the
collector's file exporter writes them. Traces and requests to export them are written alike.
"""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .....schemas import JsonValue, Quarantined
from ...base import ending

SUFFIXES = (".pb", ".binpb", ".protobuf", ".otlp")
LENGTH = struct.Struct(">I")
SPANS = b"\n"
"""How a message begins: field 1, of a known length."""
LONGEST = 64 * 1024 * 1024
"""Bytes of one message; a longer one is quarantined."""
IDS = ("traceId", "spanId", "parentSpanId")


def recognises(path: Path) -> bool:
    """A file of such a name that begins as one does."""
    if ending(path).lower() not in SUFFIXES or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(LENGTH.size + 1)
    return head[:1] == SPANS or (head[:1] == b"\0" and head[LENGTH.size :] == SPANS)


def objects_of(path: Path) -> Iterator[tuple[int | None, JsonValue | Quarantined]]:
    """Each message of a file as (1-based number, its JSON or what is wrong with it)."""
    with path.open("rb") as file:
        framed = file.read(1) == b"\0"
        file.seek(0)
        if not framed:
            yield None, _object(file.read(LONGEST + 1), path, None)
            return
        number = 0
        while head := file.read(LENGTH.size):
            number += 1
            length = LENGTH.unpack(head)[0] if len(head) == LENGTH.size else 0
            content = file.read(min(length, LONGEST + 1))
            if length > LONGEST:
                file.seek(length - len(content), 1)
            if len(content) < min(length, LONGEST + 1) or len(head) < LENGTH.size:
                yield number, Quarantined(source=str(path), line=number, reason="the last message is cut off")
                return
            yield number, _object(content, path, number)


def _object(content: bytes, path: Path, number: int | None) -> JsonValue | Quarantined:
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    def quarantine(reason: str) -> Quarantined:
        return Quarantined(source=str(path), line=number, reason=reason)

    if len(content) > LONGEST:
        return quarantine(f"longer than {LONGEST >> 20} MiB")
    try:
        value: dict[str, Any] = MessageToDict(TracesData.FromString(content))
    except (DecodeError, ValueError, RecursionError) as error:
        return quarantine(f"not OTLP's protobuf: {error}")
    for resource in value.get("resourceSpans", ()):
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                span |= {key: b64decode(span[key]).hex() for key in IDS if key in span}
    return value
