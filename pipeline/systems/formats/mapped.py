"""Any JSON Lines through a mapping file (mapping.py): one session a line, or one event a line.

Events of one line each may be interleaved and late. The file is read twice: first only to learn which line
is the last of each session, then to take the sessions in and give each away behind its last line. So what
is held is the session ids with a number each, and the events of those sessions that are open at one time;
a line added between the two readings is left for the next ingest.

Within a session, events are ordered by `seq` where it is mapped (it is then the event's seq, too, and the
number of a line that cannot be read stays free), else by time; those without one stay behind the line
before. A line that repeats another one is not taken twice.

Identity: of system, session and first event, so that a log may grow.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ....schemas import Quarantined, Trajectory
from ..base import ReadOptions, Span, json_lines, numbered_lines, only_object, parsed, sheltered
from .mapped_session import MappedSession, MappedSessions, Numbered, named
from .mapping import getter, parse

SYSTEM = "mapped"
LOOK = 20


def recognises(path: Path) -> bool:
    """A file that has a JSON object on one of its first lines."""
    if not path.is_file():
        return False
    first = itertools.islice(json_lines(path), LOOK)
    return any(isinstance(value, dict) for _, value in first)


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The sessions of a file; `options.map` holds the mapping's text."""
    mapping = parse(options.map or "")
    sessions = MappedSessions(mapping, options, str(path))
    if mapping.events_at is None:
        yield from _of_events(path, sessions)
    else:
        yield from _of_lines(path, sessions)


def lines_apart(path: Path, options: ReadOptions) -> bool:
    """Whether each line is a session."""
    return parse(options.map or "").events_at is not None


def read_span(path: Path, options: ReadOptions, span: Span) -> Iterator[Trajectory | Quarantined]:
    """The sessions of a part of a file with one session a line."""
    return _of_lines(path, MappedSessions(parse(options.map or ""), options, str(path)), span)


def _of_lines(
    path: Path, sessions: MappedSessions, span: Span | None = None
) -> Iterator[Trajectory | Quarantined]:
    """One session a line."""
    seen: set[bytes] = set()
    events_at = getter(sessions.mapping.events_at)
    for number, line in numbered_lines(path, span):
        value = only_object(parsed(line, str(path), number), str(path), number)
        if isinstance(value, Quarantined):
            yield value
            continue
        mark = blake2b(line if isinstance(line, bytes) else b"", digest_size=16).digest()
        if mark in seen:
            continue
        seen.add(mark)
        many = events_at(value)
        if not isinstance(many, list):
            reason = f"{sessions.mapping.events_at}: expected a list of events, got {named(many)}"
            yield Quarantined(source=str(path), line=number, reason=reason)
            continue
        yield from sheltered(_listed(many, value, number, sessions), str(path), number)


def _listed(
    many: list[Any], value: dict[str, Any], number: int, sessions: MappedSessions
) -> Iterator[Trajectory | Quarantined]:
    """One session from the list of events in its line."""
    session = MappedSession(sessions, value, number)
    for place, event in enumerate(many):
        session.take(place, event, f"{sessions.mapping.events_at}[{place}]", number)
    yield from session.finished(value)


def _of_events(path: Path, sessions: MappedSessions) -> Iterator[Trajectory | Quarantined]:
    """One event a line."""
    last, lines = _last_lines(path, sessions)
    opened: dict[str, list[Numbered]] = {}
    for number, value in itertools.islice(json_lines(path), lines):
        record = only_object(value, str(path), number)
        if isinstance(record, Quarantined):
            yield record
            continue
        name = sessions.native_id(record)
        if name is None:
            reason = f"{sessions.mapping.trajectory.native_id}: there is no session here"
            yield Quarantined(source=str(path), line=number, reason=reason)
            continue
        opened.setdefault(name, []).append((number, record))
        if last[name] == number:
            yield from sheltered(_assembled(opened.pop(name), sessions), str(path), number)


def _last_lines(path: Path, sessions: MappedSessions) -> tuple[dict[str, int], int]:
    """Session -> number of its last line; and how many lines with anything on them there are."""
    last: dict[str, int] = {}
    lines = 0
    for number, value in json_lines(path):
        lines += 1
        if isinstance(value, dict) and (name := sessions.native_id(value)) is not None:
            last[name] = number
    return last, lines


def _assembled(many: list[Numbered], sessions: MappedSessions) -> Iterator[Trajectory | Quarantined]:
    """One session from its lines in the order of the file."""
    session = MappedSession(sessions, sessions.head(record for _, record in many), many[0][0])
    for place, (number, record) in enumerate(sessions.ordered(many)):
        session.take(place, record, "", number)
    yield from session.finished(sessions.tail(record for _, record in many))
