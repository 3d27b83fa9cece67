"""Paths into logged values, and conditions on what stands there.

A path is `user.name`, `choices[0].text`; a dot, bracket or backslash inside a key is written `\\.`. A text
that holds JSON where a path goes on is read as what it holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from .....schemas import JsonValue
from ...base import json_value
from .expressions import Expression

Getter = Callable[[Any], Any]
Column = Callable[[Sequence[Any]], list[Any]]
"""From many objects to what each has at a path."""
Scalar = str | int | float | bool
Condition = dict[str, Scalar | list[Scalar]]
"""Path -> the value, or one of the values, that must stand there: `*` is any value but null, and a text that
begins with `~` is a regular expression, looked for in a text."""
_STEP = re.compile(r"((?:[^.\[\]\\]|\\.)+)|\[(\d*)\]", re.DOTALL)
_KEY = re.compile(r"[.\[\]\\]")


def escape_key(key: str) -> str:
    """A key as a path has it."""
    return _KEY.sub(r"\\\g<0>", key)


def steps(path: str) -> list[str | int]:
    """The keys and places of a path; ValueError for one that is none. `[]` is left out."""
    items: list[str | int] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None or (match[1] and at and path[at - 1] != "."):
            raise ValueError(f"expected a path such as user.name or events[].text, got {path!r}")
        if match[1]:
            items.append(re.sub(r"\\(.)", r"\1", match[1]))
        elif match[2]:
            items.append(int(match[2]))
        at = match.end()
        if at < len(path) and path[at] == ".":
            at += 1
            if at == len(path):
                raise ValueError(f"a path ends in a key, got {path!r}")
    if not items:
        raise ValueError(f"expected a path such as user.name or events[].text, got {path!r}")
    return items


@lru_cache(maxsize=1024)
def getter(path: str | None) -> Getter:
    """A function from an object to what it has at `path`; None where there is nothing, or no path."""
    if path is None:
        return lambda value: None
    keys = steps(path)
    if len(keys) == 1 and isinstance(keys[0], str):
        key = keys[0]
        return lambda value: value.get(key)
    if len(keys) == 2 and isinstance(keys[0], str) and isinstance(keys[1], str):
        # Most paths are that short, and they are walked for every event.
        outer, key = keys[0], keys[1]

        def get_inner(value: Any) -> Any:
            inside = value.get(outer)
            if type(inside) is str:
                inside = decode_json(inside)
            return inside.get(key) if type(inside) is dict else None

        return get_inner

    def get(value: Any) -> Any:
        for key in keys:
            if type(value) is str:
                value = decode_json(value)
            if type(value) is dict:
                value = value.get(key)
            elif type(value) is list and type(key) is int and key < len(value):
                value = value[key]
            else:
                return None
        return value

    return get


def value_beside(value: Any, path: str, key: str) -> Any:
    """The value of `key` in the object whose value the path leads to."""
    above = re.match(r"(?s)(?:(.*)(?<!\\)\.)?", path)
    holder = getter(above[1])(value) if above and above[1] else value
    return holder.get(key) if isinstance(holder, dict) else None


def values_at(path: str | None) -> Column:
    """`getter` for many objects at once, which takes half as long for each."""
    if path is None:
        return lambda values: [None] * len(values)
    at, keys = getter(path), steps(path)
    if len(keys) == 1 and isinstance(keys[0], str):
        key = keys[0]
        return lambda values: [value.get(key) for value in values]
    if len(keys) == 2 and isinstance(keys[0], str) and isinstance(keys[1], str):
        outer, inner = keys[0], keys[1]
        return lambda values: [
            inside.get(inner)
            if type(inside := value.get(outer)) is dict
            else None
            if inside is None
            else at(value)
            for value in values
        ]
    return lambda values: [at(value) for value in values]


def as_list(path: str | Sequence[str] | None) -> list[str]:
    """One path, several or none as a list of them."""
    return [path] if isinstance(path, str) else list(path or ())


def first_of(many: Iterable[Getter]) -> Getter:
    """A getter of the first value of several that is neither null nor an empty text."""
    getters = list(many)

    def get_first(value: Any) -> Any:
        return next((one for at in getters if (one := at(value)) not in (None, "")), None)

    return get_first


def decode_json(text: str) -> Any:
    """The object or list that a text holds as JSON; the text itself where it holds none."""
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return json_value(text)
    except ValueError:
        return text


def fits(condition: Condition, value_at: Callable[[str], JsonValue]) -> bool:
    """Whether every path of a condition has one of its values."""
    return all(_fits(value, value_at(path)) for path, value in condition.items())


def _fits(value: Scalar | list[Scalar], result: JsonValue) -> bool:
    choices = value if isinstance(value, list) else [value]
    if result is None:
        return False
    return "*" in choices or any(_equals(one, result) for one in choices)


def is_pattern(value: Scalar) -> bool:
    """Whether a value of a condition is a regular expression: a text that begins with `~`."""
    return isinstance(value, str) and value.startswith("~")


def _equals(value: Scalar, result: JsonValue) -> bool:
    if isinstance(value, str) and is_pattern(value):
        return isinstance(result, str) and _condition(value[1:]).search(result) is not None
    return result == value and type(result) is type(value)


@lru_cache(maxsize=1024)
def _condition(pattern: str) -> Expression:
    return Expression(pattern)


def check_pattern(value: Scalar) -> None:
    """ValueError for a pattern that is no regular expression."""
    if isinstance(value, str) and is_pattern(value):
        expression(value[1:])


@lru_cache(maxsize=1024)
def expression(text: str) -> Expression:
    """A regular expression of a mapping, in which `^` and `$` mean lines: one for each text, as it learns of
    its limit from what it was matched with."""
    return Expression(text, re.MULTILINE)
