"""What every type of coaudit shares: frozen, closed to unknown fields, hashed by content."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Annotated

import pydantic
from pydantic import BaseModel, ConfigDict, SkipValidation
from pydantic_core import to_json

__all__ = ["JsonValue", "Model", "canonical_json", "compact_json", "content_hash", "json_text", "text_hash"]


def repeated(names: Iterable[str]) -> dict[str, int]:
    """Each name that comes more than once -> how often, in order of first appearance, in linear time."""
    return {name: count for name, count in Counter(names).items() if count > 1}


class Model(BaseModel):
    """An immutable value; an unknown field is an error that names it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


JsonValue = Annotated[pydantic.JsonValue, SkipValidation]
"""What JSON can hold. Values come out of JSON, so that types do not look through them, and copy them, again;
whatever else stands there has no canonical JSON and costs its trajectory when that is stored."""


def _encoding(*, sort_keys: bool) -> Callable[[object], str]:
    """JSON without spaces. `JSONEncoder.encode` makes a C encoder for each value; this has one for all, where
    Python offers it."""
    encoder = json.JSONEncoder(
        ensure_ascii=False, sort_keys=sort_keys, separators=(",", ":"), check_circular=False
    )
    try:
        encode = json.encoder.c_make_encoder(  # type: ignore[attr-defined]
            None, encoder.default, json.encoder.encode_basestring, None, ":", ",", sort_keys, False, True
        )
        encode({}, 0)
    except (AttributeError, TypeError):  # it is no public part of Python
        return encoder.encode
    return lambda value: "".join(encode(value, 0))


compact_json: Callable[[object], str] = _encoding(sort_keys=False)
"""JSON with its keys in their order, and no spaces; errors like those of `canonical_json`."""
canonical_json: Callable[[object], str] = _encoding(sort_keys=True)
"""JSON with sorted keys and no spaces, so that equal values give equal text.

TypeError for what JSON has not, ValueError or RecursionError for what holds itself.
"""


def json_text(text: str) -> str:
    """A text as `canonical_json` writes it, several times as fast: all texts of events pass through here."""
    try:
        return to_json(text).decode()
    except ValueError:  # an unpaired surrogate, which is no UTF-8
        return canonical_json(text)


def content_hash(*parts: object) -> str:
    """128 bits of BLAKE2b over the canonical JSON of `parts`, as 32 hexadecimal digits."""
    return text_hash(canonical_json(parts))


_HASH = hashlib.blake2b(digest_size=16)
"""A hash of nothing yet: a copy of it is made much faster than a new one."""


def text_hash(text: str) -> str:
    """128 bits of BLAKE2b over a text, as 32 hexadecimal digits."""
    hasher = _HASH.copy()
    hasher.update(text.encode("utf-8", "surrogatepass"))
    return hasher.hexdigest()
