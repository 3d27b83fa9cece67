"""What every type of coaudit shares: frozen, closed to unknown fields, hashed by content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Annotated

import pydantic
from pydantic import BaseModel, ConfigDict, SkipValidation
from pydantic_core import to_json

__all__ = ["JsonValue", "Model", "canonical_json", "compact_json", "content_hash", "quoted", "text_hash"]


class Model(BaseModel):
    """An immutable value; an unknown field is an error that names it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


JsonValue = Annotated[pydantic.JsonValue, SkipValidation]
"""What JSON can hold. Values come out of JSON, so that types do not look through them, and copy them, again;
whatever else stands there has no canonical JSON and costs its trajectory when that is stored."""


def _encoding(*, sort_keys: bool) -> Callable[[object], str]:
    """JSON without spaces; `JSONEncoder.encode` makes a C encoder for each value, this has one for all where
    Python has it."""
    encoder = json.JSONEncoder(
        ensure_ascii=False, sort_keys=sort_keys, separators=(",", ":"), check_circular=False
    )
    try:
        encode = json.encoder.c_make_encoder(  # type: ignore[attr-defined]
            None, encoder.default, json.encoder.encode_basestring, None, ":", ",", sort_keys, False, True
        )
        encode({}, 0)
    except (AttributeError, TypeError):  # no part of what Python promises
        return encoder.encode
    return lambda value: "".join(encode(value, 0))


compact_json: Callable[[object], str] = _encoding(sort_keys=False)
"""JSON with its keys in the order in which they come, and no spaces; errors as of `canonical_json`."""
canonical_json: Callable[[object], str] = _encoding(sort_keys=True)
"""JSON with sorted keys and no spaces, so that equal values give equal text.

TypeError for what JSON has not, ValueError or RecursionError for what holds itself.
"""


def quoted(text: str) -> str:
    """A text as `canonical_json` has it, several times as fast; all that is said comes by here."""
    try:
        return to_json(text).decode()
    except ValueError:  # half a character, which is no UTF-8
        return canonical_json(text)


def content_hash(*parts: object) -> str:
    """128 bits of BLAKE2b over the canonical JSON of `parts`, as 32 hexadecimal digits."""
    return text_hash(canonical_json(parts))


_HASH = hashlib.blake2b(digest_size=16)
"""Of nothing yet: a copy is made much faster than a new one."""


def text_hash(text: str) -> str:
    """128 bits of BLAKE2b over a text, as 32 hexadecimal digits."""
    hasher = _HASH.copy()
    hasher.update(text.encode("utf-8", "surrogatepass"))
    return hasher.hexdigest()
