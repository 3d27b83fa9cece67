"""What every type of coaudit shares: frozen, closed to unknown fields, hashed by content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Annotated

import pydantic
from pydantic import BaseModel, ConfigDict, SkipValidation

__all__ = ["JsonValue", "Model", "canonical_json", "content_hash", "quoted", "text_hash"]


class Model(BaseModel):
    """An immutable value; an unknown field is an error that names it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


JsonValue = Annotated[pydantic.JsonValue, SkipValidation]
"""What JSON can hold. Values come out of JSON, so that types do not look through them, and copy them, again;
whatever else stands there has no canonical JSON and costs its trajectory when that is stored."""

canonical_json: Callable[[object], str] = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":")
).encode
"""JSON with sorted keys and no spaces, so that equal values give equal text."""
quoted: Callable[[str], str] = json.encoder.encode_basestring
"""A text as `canonical_json` has it."""


def content_hash(*parts: object) -> str:
    """128 bits of BLAKE2b over the canonical JSON of `parts`, as 32 hexadecimal digits."""
    return text_hash(canonical_json(parts))


_HASH = hashlib.blake2b(digest_size=16)
"""Of nothing yet: a copy is made much faster than a new one."""


def text_hash(text: str) -> str:
    """128 bits of BLAKE2b over a text, as 32 hexadecimal digits."""
    made = _HASH.copy()
    made.update(text.encode("utf-8", "surrogatepass"))
    return made.hexdigest()
