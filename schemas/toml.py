"""TOML that people wrote or that came with logs: all that can be wrong with a document is a ValueError."""

from __future__ import annotations

import tomllib
from typing import Any

DEEPEST = 100
"""The deepest that tables and lists may be nested: what walks through a deeper document runs out of stack."""
WIDEST = 64
"""The most bits of an integer, as TOML has it: Python prints none of more than 4,300 digits."""


def parse(content: str | bytes) -> dict[str, Any]:
    """The table in a document, which may begin with a BOM; ValueError (`not TOML: …`) says what is wrong with
    it."""
    try:
        text = content if isinstance(content, str) else content.decode("utf-8")
        document = tomllib.loads(text.removeprefix("\ufeff"))
        _check(document)
    except RecursionError:
        raise ValueError("not TOML: lists or tables lie too deep within each other") from None
    except ValueError as error:
        raise ValueError(f"not TOML: {error}") from error
    return document


def _check(document: dict[str, Any]) -> None:
    values: list[Any] = [document]
    for _ in range(DEEPEST):
        if any(isinstance(value, int) and value.bit_length() > WIDEST for value in values):
            raise ValueError(f"an integer of more than {WIDEST} bits")
        parts = (value.values() if isinstance(value, dict) else value for value in values if _holds(value))
        values = [inner for part in parts for inner in part]
        if not values:
            return
    raise ValueError(f"tables or lists lie more than {DEEPEST} deep within each other")


def _holds(value: Any) -> bool:
    return isinstance(value, dict | list)
