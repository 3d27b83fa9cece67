"""What every type of coaudit shares: frozen, closed to unknown fields, hashed by content."""

from __future__ import annotations

import hashlib
import json

from pydantic import BaseModel, ConfigDict, JsonValue

__all__ = ["JsonValue", "Model", "canonical_json", "content_hash"]


class Model(BaseModel):
    """An immutable value; an unknown field is an error that names it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def canonical_json(value: object) -> str:
    """JSON with sorted keys and no spaces, so that equal values give equal text."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def content_hash(*parts: object) -> str:
    """128 bits of BLAKE2b over the canonical JSON of `parts`, as 32 hexadecimal digits."""
    return hashlib.blake2b(canonical_json(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
