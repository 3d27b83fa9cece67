"""Anybody's logs through a mapping file (mapping.py): one session a record, or one event a record.

Records are the lines of JSON Lines, the items of a JSON list or the one object of a file, rows of CSV and
Parquet, and whole text files (inputs.py).

Events of one record each may be interleaved and late. The file is read twice: first only to learn which
record is the last of each session, then to take the sessions in and give each away behind its last. So what
is held is the session ids with a number each, and the events of those sessions that are open at one time;
a line added between the two readings is left for the next ingest. Of a large file of JSON Lines the first
reading tells which lines make a part with whole sessions (interleaved.py), and several processes take the
parts.

Within a session, events are ordered by `seq` where it is mapped (it is then the event's seq, too, and the
number of a line that cannot be read stays free), else by time; those without one stay behind the line
before. A line that repeats another one is not taken twice.

Identity: of system, session and first event, so that a log may grow.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from ....schemas import JsonValue, Quarantined, Trajectory
from ..base import ReadOptions, Span, json_lines, numbered_lines, only_object, sheltered
from . import chat, inputs, interleaved, mapped_messages, mapped_spans, turns
from .inputs import Record
from .mapped_paths import MappedSessions, Numbered
from .mapped_session import MappedSession
from .mapped_values import named
from .mapping import Input, parse

SYSTEM = "mapped"
LOOK = 20


def recognises(path: Path) -> bool:
    """A file whose name says one of the formats, or that has a JSON object on one of its first lines."""
    if not path.is_file():
        return False
    if inputs.format_of(path) not in (None, "jsonl"):
        return True
    first = itertools.islice(json_lines(path), LOOK)
    return any(isinstance(value, dict) for _, value in first) or _may_be_encoded(path)


def _may_be_encoded(path: Path) -> bool:
    """Whether a file begins like JSON Lines and is not UTF-8: a mapping may say in which encoding it is."""
    with path.open("rb") as file:
        head = file.read(inputs.LOOK)
    begins = head.lstrip(b"\xff\xfe\x00 \t\r\n")[:1] == b"{"
    return begins and "\ufffd" in head.decode("utf-8", "replace").rstrip("\ufffd")


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The sessions of a file; `options.map` holds the mapping's text."""
    mapping = parse(options.map or "")
    if not inputs.wanted(path, mapping):
        return
    sessions = MappedSessions(mapping, options, str(path))
    if mapping.messages is not None and mapping.messages.growing:
        yield from _of_calls(path, sessions)
    elif mapping.events_at is None:
        yield from _of_events(path, sessions)
    else:
        yield from _of_records(path, sessions)


def lines_apart(path: Path, options: ReadOptions) -> bool:
    """Whether each line is a session."""
    mapping = parse(options.map or "")
    grows = mapping.messages is not None and mapping.messages.growing
    return mapping.events_at is not None and not grows and _is_lines(path, mapping.input)


def sessions_apart(path: Path, options: ReadOptions, size: int) -> Iterator[Span]:
    """Parts of a file with one event a line that have whole sessions in them."""
    mapping = parse(options.map or "")
    grows = mapping.messages is not None and mapping.messages.growing
    if mapping.events_at is not None or grows or not _is_lines(path, mapping.input):
        return
    sessions = MappedSessions(mapping, options, str(path))
    yield from interleaved.spans(path, lambda value: _owner(value, sessions), size)


def read_span(path: Path, options: ReadOptions, span: Span) -> Iterator[Trajectory | Quarantined]:
    """The sessions of a part of a file."""
    mapping = parse(options.map or "")
    if inputs.wanted(path, mapping):
        how = _of_events if mapping.events_at is None else _of_records
        yield from how(path, MappedSessions(mapping, options, str(path)), span)


def _is_lines(path: Path, layout: Input) -> bool:
    return (layout.format or inputs.format_of(path) or "jsonl") == "jsonl" and layout.as_they_are


def _of_records(
    path: Path, sessions: MappedSessions, span: Span | None = None
) -> Iterator[Trajectory | Quarantined]:
    """One session a record."""
    read_session = _session_of_list if sessions.mapping.messages is None else mapped_messages.told
    read_session = read_session if sessions.mapping.spans is None else mapped_spans.told
    at = sessions.mapping.events_at or ""
    for number, value in _distinct_records(path, sessions, span):
        record = only_object(value, str(path), number)
        if isinstance(record, Quarantined):
            yield record
            continue
        events = turns.events_in(record, at, sessions.mapping.turns)
        if not isinstance(events, list):
            reason = f"{at}: expected a list of events, got {named(events)}"
            yield Quarantined(source=str(path), line=number, reason=reason)
            continue
        if sessions.mapping.messages is not None:
            events = sessions.chosen(events)
        if sessions.seq is None and sessions.mapping.spans is None:
            seconds = chat.seconds if sessions.mapping.messages else sessions.seconds
            events = turns.oldest_first(events, seconds)
        events += mapped_messages.reply_in(record, sessions.mapping.messages)
        yield from sheltered(read_session(events, record, number, sessions), str(path), number)


def _of_calls(path: Path, sessions: MappedSessions) -> Iterator[Trajectory | Quarantined]:
    """One session from the calls of a model that continue each other."""
    records = list[Numbered]()
    for number, value in _distinct_records(path, sessions, None):
        record = only_object(value, str(path), number)
        if isinstance(record, Quarantined):
            yield record
        else:
            records.append((number, record))
    for number, head, many in mapped_messages.grown(records, sessions):
        yield from sheltered(mapped_messages.told(many, head, number, sessions), str(path), number)


def _distinct_records(
    path: Path, sessions: MappedSessions, span: Span | None
) -> Iterator[tuple[int | None, JsonValue | Quarantined]]:
    """The records of a file; a line of JSON Lines that repeats another one once, unless it cannot be read:
    each of those is named, in whatever part of the file it stands."""
    if not _is_lines(path, sessions.mapping.input):
        yield from inputs.records(path, sessions.mapping.input, names=sessions.mapping.columns_of_names)
        return
    hashes: set[bytes] = set()
    for number, line in numbered_lines(path, span):
        digest = sha256(line or b"", usedforsecurity=False).digest()
        if digest not in hashes:
            value = inputs.record(line, str(path), number)
            if not isinstance(value, Quarantined):
                hashes.add(digest)
            yield number, value


def _session_of_list(
    many: list[Any], value: dict[str, Any], number: int | None, sessions: MappedSessions
) -> Iterator[Trajectory | Quarantined]:
    """One session from the list of events in its record."""
    session = MappedSession(sessions, value, number)
    session.ask(sessions.heads["request"](value))
    session.take(many, itertools.repeat(number))
    yield from session.finished(value)


def _head(records: list[dict[str, Any]], sessions: MappedSessions) -> dict[str, Any]:
    return sessions.tail(records, sessions.head(records))


def _of_events(
    path: Path, sessions: MappedSessions, span: Span | None = None
) -> Iterator[Trajectory | Quarantined]:
    """One event a record."""
    mapping = sessions.mapping
    events: Callable[[], Iterable[Record]] = partial(
        inputs.records, path, mapping.input, names=mapping.columns_of_names
    )
    if span is not None:
        lines = numbered_lines(path, span)
        some = [(number, inputs.record(line, str(path), number)) for number, line in lines]
        events = partial(iter, some)
    last, count = _last_records(events(), sessions)
    records_by_session: dict[str, list[Numbered]] = {}
    for place, (number, value) in enumerate(itertools.islice(events(), count)):
        record = only_object(value, str(path), number)
        if isinstance(record, Quarantined):
            yield record
            continue
        name = _owner(record, sessions)
        if name is None:
            messages = sessions.mapping.messages
            if messages is not None and mapped_messages.message_in(record, messages) is None:
                continue
            where = sessions.mapping.trajectory.native_id
            reason = (
                f"{where if isinstance(where, str) else ', '.join(where or ())}: there is no session here"
            )
            yield Quarantined(source=str(path), line=number, reason=reason)
            continue
        records_by_session.setdefault(name, []).append((number, record))
        if last.get(name) == place:
            yield from sheltered(
                _session_of_records(records_by_session.pop(name), sessions), str(path), number
            )


def _last_records(events: Iterable[Record], sessions: MappedSessions) -> tuple[dict[str, int], int]:
    """Session -> place of its last record; and how many records with anything in them there are."""
    last: dict[str, int] = {}
    records = 0
    for place, (_, value) in enumerate(events):
        records += 1
        if (name := _owner(value, sessions)) is not None:
            last[name] = place
    return last, records


def _owner(value: JsonValue | Quarantined, sessions: MappedSessions) -> str | None:
    """The session that an event is of, where it says so."""
    return sessions.native_id(value) if isinstance(value, dict) else None


def _session_of_records(many: list[Numbered], sessions: MappedSessions) -> Iterator[Trajectory | Quarantined]:
    """One session from its records in the order of the file."""
    if (messages := sessions.mapping.messages) is not None:
        records = [record for _, record in many]
        read = (mapped_messages.message_in(record, messages) for record in sessions.chosen(records))
        chat_messages = [one for one in read if one is not None]
        yield from mapped_messages.told(chat_messages, _head(records, sessions), many[0][0], sessions)
        return
    if sessions.mapping.spans is not None:
        yield from mapped_spans.told(
            [r for _, r in many], _head([r for _, r in many], sessions), many[0][0], sessions
        )
        return
    session = MappedSession(sessions, sessions.head(record for _, record in many), many[0][0])
    lines = sessions.ordered(many)
    session.take([record for _, record in lines], [number for number, _ in lines])
    yield from session.finished(sessions.tail(record for _, record in many))
