"""What every type of coaudit shares: frozen, closed to unknown fields, hashed by content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, JsonValue

__all__ = ["JsonValue", "Model", "canonical_json", "content_hash", "quoted", "text_hash"]


class Model(BaseModel):
    """An immutable value; an unknown field is an error that names it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


canonical_json: Callable[[object], str] = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":")
).encode
"""JSON with sorted keys and no spaces, so that equal values give equal text."""
quoted: Callable[[str], str] = json.encoder.encode_basestring
"""A text as `canonical_json` has it."""


def content_hash(*parts: object) -> str:
    """128 bits of BLAKE2b over the canonical JSON of `parts`, as 32 hexadecimal digits."""
    return text_hash(canonical_json(parts))


def text_hash(text: str) -> str:
    """128 bits of BLAKE2b over a text, as 32 hexadecimal digits."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
