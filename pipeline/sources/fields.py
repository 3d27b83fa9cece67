"""Fields of logged objects: what a reader expects, or a ValueError that names the place and what is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from coaudit.schemas.base import JsonValue

T = TypeVar("T", bound="str | int | float | bool | list[JsonValue] | dict[str, JsonValue]")
_NAMES = {dict: "an object", list: "a list", str: "a text", int: "a whole number", bool: "true or false"}


def expect(value: JsonValue, kind: type[T], where: str) -> T:
    """`value` as a `kind`; true and false are no numbers."""
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    there = "null" if value is None else _NAMES.get(type(value), type(value).__name__)
    raise ValueError(f"{where}: expected {_NAMES.get(kind, kind.__name__)}, got {there}")


def field(record: Mapping[str, JsonValue], key: str, kind: type[T], where: str = "") -> T:
    """`record[key]` as a `kind`; `where` says whose field it is."""
    place = f"{where}.{key}" if where else key
    if key not in record:
        raise ValueError(f"{place}: missing")
    return expect(record[key], kind, place)


def objects(record: Mapping[str, JsonValue], key: str, where: str = "") -> list[dict[str, JsonValue]]:
    """`record[key]` as a list of objects."""
    place = f"{where}.{key}" if where else key
    items = field(record, key, list, where)
    return [expect(item, dict, f"{place}[{number}]") for number, item in enumerate(items)]
