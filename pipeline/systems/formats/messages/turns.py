"""Cuts texts and records into turns, and reads lists of any kind as lists of events."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain, pairwise, zip_longest
from typing import Any, TypeGuard

from ...base import python_literal
from ..fields.expressions import Expression
from ..fields.mapping import Turns
from ..fields.paths import as_list, decode_json, expression, getter, value_beside
from . import dialects

Place = tuple[int, Any]
"""An item's place in the list of its record, and the item."""
TWICE = 2
"""Turns that a pattern must find in a text to be the one that fits."""
THREE = 3
"""Fewest events whose order shows, and fewest different times among them."""
CLOCKS = 10.0
"""Seconds by which clocks may be apart."""
ERA = 1e8
"""Seconds since 1970 below which a number is no time of a log, but counts something."""
_CUE = re.compile(r"^(?:\d+[ \t]*\n)?(?:\d+:)?\d\d:\d\d[.,]\d{3}[ \t]+-->[^\n]*\n?", re.MULTILINE)
"""The line with which captions say when a cue is shown, with a number above it; it may be another id."""
_NOTE = re.compile(r"\s*(?:WEBVTT|NOTE|STYLE|REGION)(?:\s|$)")
"""How blocks of captions begin that are no cues."""
SIDES = ("first", "second")
"""The `turn` of each text in a plain list of texts, alternating."""


def events_in(record: dict[str, Any], at: str, turns: Turns | None) -> Any:
    """The events of a record: those of `turns.fields`, of the text or texts at a path, cut into turns, or of
    the list there. A value that cannot be a list of events is returned unchanged."""
    if turns is not None and turns.fields:
        columns = (_texts_at(record, paths) for paths in turns.fields.values())
        rounds = zip_longest(*columns, fillvalue=(None, {}))
        utterances = (pair for one in rounds for pair in zip(turns.fields, one, strict=True))
        return [
            {**item, "role": role, "text": text}
            for role, (text, item) in utterances
            if text not in (None, "")
        ]
    value = decode_value(getter(at)(record))
    if turns is not None and turns.pattern is not None:
        if is_texts(value):
            return list(turns_of_texts(value, turns))
        if isinstance(value, str):
            return list(turns_of_text(value, turns))
    if isinstance(value, dict):
        beside = (value_beside(record, at, key) for key in dialects.LEFT)
        return as_events(value, next((one for one in beside if one is not None), None))
    return as_events(value)


def _texts_at(record: dict[str, Any], paths: str | list[str]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """(what one says, the item of a list that it stands in) of each round: the text at each path, or at one
    with `[]` each of a list, or what each item of the list has at the path behind it."""
    for path in as_list(paths):
        place, brackets, inside = path.partition("[]")
        value = getter(place)(record)
        items = decode_value(value) if brackets else None
        if not isinstance(items, list):
            yield (None if inside else value), {}
        elif inside:
            at = getter(inside.removeprefix("."))
            rounds = (as_event(number, item) for number, item in enumerate(items))
            yield from ((at(one), one) for one in rounds if isinstance(one, dict))
        else:
            yield from ((text, {}) for text in items)


def is_texts(value: Any) -> bool:
    """Whether a value is a list of nothing but texts."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def turns_of_texts(texts: list[str], turns: Turns) -> Iterator[dict[str, Any]]:
    """Each text as a turn, with the groups of the mark that it begins with; one without a mark has those of
    the text before it, the first one `turns.first`."""
    patterns = _patterns(turns)
    groups: dict[str, Any] = dict.fromkeys(patterns[0].groupindex, turns.first)
    for text in texts:
        match = next((match for one in patterns if (match := one.match(text))), None)
        if match is not None:
            groups = _groups(match, turns)
        yield {**groups, "text": text.strip() if match is None else _said(match, text)}


def _said(match: re.Match[str], text: str) -> str:
    """What a text says that begins with a mark: its group `text`, if it has one, and what follows."""
    start = match.start("text") if "text" in match.re.groupindex else -1
    if start >= 0 and match.end("text") == match.end():
        return text[start:].strip()
    own = match["text"] if start >= 0 else ""
    body = _without_end_tag(match[0], text[match.end() :].strip())
    return "\n".join(part for part in (own, body) if part)


def oldest_first(many: list[Place], seconds: Callable[[dict[str, Any]], float | None]) -> list[Place]:
    """Events, with their places, in the order in which they happened, where the latest stands first, as some
    APIs list them.

    Times of two clocks that are apart may fall, too. So there must be three events or more, and their times
    must fall by more than clocks do.
    """

    def at(item: Place) -> float | None:
        return seconds(item[1]) if isinstance(item[1], dict) else None

    if len(many) < THREE:
        return many
    first, last = at(many[0]), at(many[-1])
    if first is None or last is None or first - last <= CLOCKS or last < ERA:
        return many
    times = [at(one) for one in many]
    falling = all(a is not None and b is not None and a >= b for a, b in pairwise(times))
    return many[::-1] if falling and len(set(times)) >= THREE else many


def as_events(value: Any, current: Any = None) -> Any:
    """The items of a list as events (`as_event`): of an object of equally long lists one event for each place
    in them, of a tree the branch to its node `current`. Any other value is returned unchanged."""
    if isinstance(value, dict) and (columns := columns_of(value)):
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if isinstance(value, dict) and (thread := dialects.thread(value, current) or branch(value)):
        return thread
    if isinstance(value, list):
        value = _flatten(_longest_batch(value))
        return [item if type(item) is dict else as_event(place, item) for place, item in enumerate(value)]
    return value


def branch(root: dict[str, Any]) -> list[Any]:
    """The turns of a tree of answers from its root on: of rival answers the one with the longest
    continuation, the first of equally long ones. Empty where an object is no such tree."""
    key = _answer_key(root)
    return [] if key is None else _longest_branch(root, key)


def has_rivals(root: Any) -> bool:
    """Whether a tree of answers has any that `branch` leaves out."""
    key = _answer_key(root) if isinstance(root, dict) else None
    return key is not None and any(len(_replies(one, key)) > 1 for one in _all_turns(root, key))


def _answer_key(root: dict[str, Any]) -> str | None:
    """The key under which the turns of a tree have their answers; None where an object is no such tree."""
    keys = (key for key in root if (many := _replies(root, key)) and all(key in one for one in many))
    if not isinstance(root.get("role"), str):
        return None
    return next((key for key in keys if all(_are_rivals(one, key) for one in _all_turns(root, key))), None)


def _are_rivals(turn: dict[str, Any], key: str) -> bool:
    """Whether the answers to a turn are rivals, of one role that is not the turn's own: others may be steps
    that were all done."""
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


def _flatten(value: list[Any]) -> list[Any]:
    """A flat list: lists of turns inside an item, such as the messages of a step, follow what is left of the
    item."""
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
            turns += _flatten(one)
    return turns


def _split_turns(item: Any) -> tuple[Any, list[list[Any]]]:
    """(an item without the lists of turns in it, None where nothing else is said there; those lists)."""
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


def _longest_batch(value: list[Any]) -> list[Any]:
    """The longest one in a list of lists of messages that all begin alike; any other list as it is."""
    batches = [one for one in value if isinstance(one, list) and one and dialects.messages(one[0])]
    alike = batches and len(batches) == len(value) and all(one[0] == batches[0][0] for one in batches)
    return max(batches, key=len) if alike else value


def columns_of(value: dict[str, Any]) -> dict[str, list[Any]]:
    """The lists of an object that holds nothing but two or more, all equally long; else none."""
    columns = {key: one for key, one in value.items() if isinstance(one, list)}
    lengths = {len(one) for one in columns.values()}
    return columns if len(columns) > 1 and len(lengths) == 1 and len(columns) == len(value) else {}


SPEAKER = "speaker"
"""The group of a mark with who speaks."""
_VOICE = re.compile(r"(?:</v>)?\s*<v(?:\.[\w.]+)*[ \t]+([^<>\n]+)>")
"""Where another voice begins in the cue of a caption."""


def turns_of_text(text: str, turns: Turns) -> Iterator[dict[str, Any]]:
    """The turns of a text: the groups of the mark that begins each, and what follows as `text`. What stands
    before the first mark is a turn of `turns.first`."""
    pattern, matches = _marks(text, turns)
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
        groups = _groups(match, turns)
        voices = _VOICE.split(body) if captions and SPEAKER in groups else [body]
        yield {**groups, "text": match["text"] if "text" in pattern.groupindex else voices[0]}
        for name, words in zip(voices[1::2], voices[2::2], strict=True):
            yield {**groups, SPEAKER: name.strip(), "text": words.strip()}


def unread_in(value: Any, turns: Turns) -> str | None:
    """Why a text, or a list of texts, is not cut as its pattern means to; None where it is."""
    patterns = _patterns(turns)
    nowhere = "turns.pattern fits nowhere in it"
    if isinstance(value, str):
        # Most texts begin a turn as the first pattern says, which is looked up at once.
        fits = not value.strip() or patterns[0].search(value) is not None
        if not fits and len(patterns) > 1:
            fits = bool(_marks(value, turns)[1])
            nowhere = "turns.pattern: the first one fits nowhere in it, and no other one twice"
    else:
        fits = not is_texts(value) or any(one.match(text) for text in value for one in patterns)
    if not fits:
        return f"{nowhere}, so that all of it is said by {turns.first!r}"
    if not isinstance(value, str) or not any("text" in one.groupindex for one in patterns):
        return None
    pattern, matches = _marks(value, turns)
    if "text" not in pattern.groupindex:
        return None
    ends = [match.start() for match in matches[1:]] + [len(value)]
    # Where something closes the text, such as a fence, what follows is outside of it.
    pairs = [(m.end(), end) for m, end in zip(matches, ends, strict=True) if m.end("text") == m.end()]
    between = (value[start:end].strip() for start, end in pairs)
    words = next(filter(None, between), None)
    return words and (
        f"turns.pattern: {words[:40]!r} stands behind the group `text` of its turn and is not read; "
        "without that group all up to the next turn is its text"
    )


def _marks(text: str, turns: Turns) -> tuple[Expression, list[re.Match[str]]]:
    """The pattern that cuts a text, and where it fits."""
    fitting = [(pattern, pattern.matches(text)) for pattern in _patterns(turns)]
    return next((one for one in fitting if len(one[1]) >= TWICE), fitting[0])


def _caption_text(text: str) -> str:
    """The words of captions, without ids, times, the header and notes; a block without a time stands after a
    blank line."""
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
    """A text without the end of the tag that its mark ends in, as captions have: `<v Ada>…</v>`."""
    tag = re.search(r"<(\w+)\b[^<>]*>\s*\Z", mark)
    return text.removesuffix(f"</{tag[1]}>").rstrip() if tag else text


def _patterns(turns: Turns) -> list[Expression]:
    return [expression(one) for one in as_list(turns.pattern)]


def _groups(match: re.Match[str], turns: Turns) -> dict[str, str]:
    """The groups of a turn's mark by their names, `turns.first` for an empty one; all but `text`."""
    return {key: one or turns.first for key, one in match.groupdict().items() if key != "text"}


def as_event(place: int, item: Any) -> Any:
    """An item of a list as an event: a text is a turn of the two `SIDES` by its place, unless it holds an
    object as JSON; a list is an object with the places as keys."""
    if isinstance(item, str):
        inside = decode_json(item)
        return inside if isinstance(inside, dict) else {"turn": SIDES[place % 2], "text": item}
    if isinstance(item, list):
        return {str(number): one for number, one in enumerate(item)}
    return item


def decode_value(value: Any) -> Any:
    """The list or object that a text holds as JSON, or as Python prints it; any other value unchanged, and so
    is a text with a set, bytes or anything else that JSON does not have."""
    if not isinstance(value, str):
        return value
    inside = decode_json(value)
    if isinstance(inside, str) and re.match(r"\s*[\[{]['\"\[{]", inside):
        try:
            return _as_json(python_literal(inside))
        except (ValueError, RecursionError):
            return value
    return inside


def _as_json(value: Any) -> Any:
    """A literal of Python with lists in place of tuples; ValueError where it holds what JSON has not. Keys
    may be numbers."""
    if isinstance(value, (list, tuple)):
        return [_as_json(one) for one in value]
    if isinstance(value, dict):
        return {_scalar(key): _as_json(one) for key, one in value.items()}
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise ValueError(f"JSON has no {type(value).__name__}")
