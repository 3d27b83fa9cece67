"""Texts and records cut into turns, and lists of whatever kind as lists of events."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Iterator
from itertools import chain, pairwise, zip_longest
from typing import Any, TypeGuard

from ..base import without_halves
from . import dialects
from .mapping import Turns
from .paths import expression, getter, several, unpacked, value_beside

TWICE = 2
"""Turns that a pattern must find before it is taken for the one that fits."""
THREE = 3
"""Events of different times from which on their order shows."""
CLOCKS = 10.0
"""Seconds by which clocks may be apart."""
ERA = 1e8
"""Seconds since 1970 below which a number is no time of a log, but counts something."""
_CUE = re.compile(r"^(?:\d+[ \t]*\n)?(?:\d+:)?\d\d:\d\d[.,]\d{3}[ \t]+-->[^\n]*\n?", re.MULTILINE)
"""The line with which captions say when a cue is shown, with a number above it; it may be another id."""
_NOTE = re.compile(r"\s*(?:WEBVTT|NOTE|STYLE|REGION)(?:\s|$)")
"""How blocks of captions begin that are no cues."""
SIDES = ("first", "second")
"""Whose turn a text in a plain list of texts is, under `turn`."""


def events_in(record: dict[str, Any], at: str, turns: Turns | None) -> Any:
    """What stands at a path as a list of events; what it is where it cannot be one."""
    if turns is not None and turns.fields:
        rounds = zip_longest(*(several(paths) for paths in turns.fields.values()))
        fields = (
            (role, path) for one in rounds for role, path in zip(turns.fields, one, strict=True) if path
        )
        utterances = ((role, getter(path)(record)) for role, path in fields)
        return [{"role": role, "text": text} for role, text in utterances if text not in (None, "")]
    value = loaded(getter(at)(record))
    if turns is not None and turns.pattern is not None:
        if is_texts(value):
            return list(marked(value, turns))
        if isinstance(value, str):
            return list(cut(value, turns))
    if isinstance(value, dict):
        return listed(value, value_beside(record, at, dialects.LEFT))
    return listed(value)


def is_texts(value: Any) -> bool:
    """Whether it is a list of nothing but texts."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def marked(texts: list[str], turns: Turns) -> Iterator[dict[str, Any]]:
    """Each text as a turn: the groups of what it begins with, of one without that those of the one before."""
    patterns = _patterns(turns)
    groups: dict[str, Any] = dict.fromkeys(patterns[0].groupindex, turns.first)
    for text in texts:
        match = next((match for one in patterns if (match := one.match(text))), None)
        if match is not None:
            groups = _groups(match, turns)
        body = text.strip() if match is None else _without_end_tag(match[0], text[match.end() :].strip())
        yield {**groups, "text": body}


def oldest_first(many: list[Any], seconds: Callable[[dict[str, Any]], float | None]) -> list[Any]:
    """Events in the order in which they happened where the latest stands first, as some APIs list them.

    Two clocks may be apart: there are three or more, and they fall by more than clocks do.
    """

    def at(one: Any) -> float | None:
        return seconds(one) if isinstance(one, dict) else None

    if len(many) < THREE:
        return many
    first, last = at(many[0]), at(many[-1])
    if first is None or last is None or first - last <= CLOCKS or last < ERA:
        return many
    times = [at(one) for one in many]
    falling = all(a is not None and b is not None and a >= b for a, b in pairwise(times))
    return many[::-1] if falling and len(set(times)) >= THREE else many


def listed(value: Any, current: Any = None) -> Any:
    """A list's items as objects: texts and pairs under names of their own, an object of equally long lists
    item by item, of a tree the branch to the node at which it was `left`."""
    if isinstance(value, dict) and (columns := columns_of(value)):
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if isinstance(value, dict) and (thread := dialects.thread(value, current) or branch(value)):
        return thread
    if isinstance(value, list):
        value = _flat(_longest(value))
        return [item if type(item) is dict else as_event(place, item) for place, item in enumerate(value)]
    return value


def branch(root: dict[str, Any]) -> list[Any]:
    """The turns of a tree of answers from its root on: of rival ones those to which most was said, the first
    where it was as much. Empty where an object is no such tree."""
    key = _answers(root)
    return [] if key is None else _longest_branch(root, key)


def has_rivals(root: Any) -> bool:
    """Whether a tree of answers has any that `branch` leaves out."""
    key = _answers(root) if isinstance(root, dict) else None
    return key is not None and any(len(_replies(one, key)) > 1 for one in _all_turns(root, key))


def _answers(root: dict[str, Any]) -> str | None:
    """Under which key a tree has its answers."""
    keys = (key for key in root if (many := _replies(root, key)) and all(key in one for one in many))
    if not isinstance(root.get("role"), str):
        return None
    return next((key for key in keys if all(_are_rivals(one, key) for one in _all_turns(root, key))), None)


def _are_rivals(turn: dict[str, Any], key: str) -> bool:
    """Whether the answers to a turn are somebody else's and of one role: others may all have been done."""
    roles = {one["role"] for one in _replies(turn, key)}
    return len(roles) < 2 and turn["role"] not in roles


def _replies(turn: dict[str, Any], key: str) -> list[dict[str, Any]]:
    many = turn.get(key)
    return many if _are_turns(many) else []


def _all_turns(turn: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    yield turn
    for one in _replies(turn, key):
        yield from _all_turns(one, key)


def _longest_branch(turn: dict[str, Any], key: str) -> list[Any]:
    ways = [_longest_branch(one, key) for one in _replies(turn, key)]
    return [{name: one for name, one in turn.items() if name != key}, *max(ways, key=len, default=[])]


def _flat(value: list[Any]) -> list[Any]:
    """Lists of turns within a list, such as those of its steps, in their order as one."""
    # Most items hold no list, and every event of a log comes by here.
    objects = set(map(type, value)) <= {dict}
    if objects and list not in set(map(type, chain.from_iterable(map(dict.values, value)))):
        return value
    parts = [_split_turns(one) for one in value]
    if not any(inner for _, inner in parts):
        return value
    turns: list[Any] = []
    for item, inner in parts:
        turns += [] if item is None else [item]
        for one in inner:
            turns += _flat(one)
    return turns


def _split_turns(item: Any) -> tuple[Any, list[list[Any]]]:
    """An item without the lists of turns in it, None where nothing else is said there; and those lists."""
    if isinstance(item, list):
        return (None, [item]) if _are_turns(item) else (item, [])
    if not isinstance(item, dict):
        return item, []
    inner = {key: one for key, one in item.items() if _are_turns(one)}
    if not inner:
        return item, []
    rest = {key: one for key, one in item.items() if key not in inner}
    if "role" in rest:
        return rest, list(inner.values())
    numbers = all(one is None or isinstance(one, (int, float)) for one in rest.values())
    return (None, list(inner.values())) if numbers else (item, [])


def _are_turns(value: Any) -> TypeGuard[list[dict[str, Any]]]:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and isinstance(one.get("role"), str) for one in value)
    )


def _longest(value: list[Any]) -> list[Any]:
    """Of several lists of messages the longest, where all begin alike."""
    batches = [one for one in value if isinstance(one, list) and one and dialects.messages(one[0])]
    alike = batches and len(batches) == len(value) and all(one[0] == batches[0][0] for one in batches)
    return max(batches, key=len) if alike else value


def columns_of(value: dict[str, Any]) -> dict[str, list[Any]]:
    """The lists of an object that holds two or more, all equally long; none where it is something else."""
    columns = {key: one for key, one in value.items() if isinstance(one, list)}
    lengths = {len(one) for one in columns.values()}
    return columns if len(columns) > 1 and len(lengths) == 1 and len(columns) == len(value) else {}


def cut(text: str, turns: Turns) -> Iterator[dict[str, Any]]:
    """The turns of a text: the groups of what begins each, and what follows as `text`."""
    patterns = _patterns(turns)
    fitting = [(pattern, list(pattern.finditer(text))) for pattern in patterns]
    pattern, matches = next((one for one in fitting if len(one[1]) >= TWICE), fitting[0])
    before = text[: matches[0].start()] if matches else text
    captions = bool(matches) and _CUE.search(matches[0][0]) is not None
    if captions:
        before = _caption_text(before)
    if before.strip():
        yield {**dict.fromkeys(pattern.groupindex, turns.first), "text": before.strip()}
    if not matches:
        return
    ends = [match.start() for match in matches[1:]] + [len(text)]
    for match, end in zip(matches, ends, strict=True):
        body, others = text[match.end() : end].strip(), ""
        if captions:
            body, _, others = body.partition("\n\n")
        body = (_without_end_tag(match[0], _CUE.sub("", body)) + _caption_text(others)).strip()
        yield {**_groups(match, turns), "text": match["text"] if "text" in pattern.groupindex else body}


def _caption_text(text: str) -> str:
    """What captions say, a blank line before what has no time, without ids, times, the header and notes."""
    result = ""
    for block in text.split("\n\n"):
        time = _CUE.search(block)
        above = (block[: time.start()] if time else block).strip()
        is_id = time is not None and "\n" not in above
        if above and not is_id and not _NOTE.match(block):
            result += f"\n\n{above}"
        if time and (words := _CUE.sub("", block[time.start() :]).strip()):
            result += f"\n{words}"
    return result


def _without_end_tag(mark: str, text: str) -> str:
    """What was said without the end of a tag with which its mark ends, as captions have: `<v Ada>…</v>`."""
    tag = re.search(r"<(\w+)\b[^<>]*>\s*\Z", mark)
    return text.removesuffix(f"</{tag[1]}>").rstrip() if tag else text


def _patterns(turns: Turns) -> list[re.Pattern[str]]:
    return [expression(one) for one in several(turns.pattern)]


def _groups(match: re.Match[str], turns: Turns) -> dict[str, str]:
    """What begins a turn, by the names of the pattern's groups."""
    return {key: one or turns.first for key, one in match.groupdict().items() if key != "text"}


def as_event(place: int, item: Any) -> Any:
    """An item of a list as an event: a text is the turn of whose place it is, unless it holds an object."""
    if isinstance(item, str):
        inside = unpacked(item)
        return inside if isinstance(inside, dict) else {"turn": SIDES[place % 2], "text": item}
    if isinstance(item, list):
        return {str(number): one for number, one in enumerate(item)}
    return item


def loaded(value: Any) -> Any:
    """A list or object that was logged as its JSON, or as Python prints it."""
    if not isinstance(value, str):
        return value
    inside = unpacked(value)
    if isinstance(inside, str) and re.match(r"\s*[\[{]['\"\[{]", inside):
        try:
            return literal_eval(without_halves(inside))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value
    return inside
