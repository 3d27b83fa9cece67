"""Anybody's logs through a mapping file (mapping.py): one session, event or turn (`joined`) a record.

Records are the lines of JSON Lines, the items of a JSON list or the one object of a file, rows of CSV and
Parquet, and whole text files (inputs.py).

Events and turns of one record each may be interleaved and late. The file is read twice: first only to learn
which record is the last of each session, then to read the sessions, each of which is yielded at its last
record. So what is held is the session ids with a number each, and the records of the sessions that are open
at one time; a line added between the two readings is left for the next ingest. Of a large file of JSON Lines
the first reading tells which lines make a part with whole sessions (interleaved.py), and several processes
read the parts.

Within a session, events are ordered by `seq` where it is mapped (it is then the event's seq, too, and the
number of a line that cannot be read stays free), else by time; those without a time stay after the line
before them. A line that repeats another one is left out.

Identity: of system, session and first event, so that a log may grow.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from .....schemas import JsonValue, Quarantined, Trajectory
from .....schemas.text import count_of
from ...base import (
    ReadOptions,
    Span,
    items_until_failure,
    json_lines,
    numbered_lines,
    only_object,
    quarantine_failure,
)
from ..fields.mapping import Input, parse
from ..fields.paths import as_list, getter
from ..fields.values import describe
from ..files import inputs, interleaved
from ..files.event_files import event_files
from ..files.inputs import Record
from ..messages import chat, dialects, turns
from ..messages.turns import Place
from . import chats, spans
from .reading import RECORD, MappedSessions, Numbered
from .session import MappedSession

SYSTEM = "mapped"
LOOK = 20


def recognises(path: Path) -> bool:
    """A file whose name says one of the formats, or that has a JSON object on one of its first lines; or a
    folder with a file for each event."""
    if not path.is_file():
        return bool(event_files(path))
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
    if not inputs.is_mapped(path, mapping):
        return
    sessions = MappedSessions(mapping, options, str(path))
    if mapping.messages is not None and mapping.messages.growing:
        yield from _call_sessions(path, sessions)
    elif mapping.is_joined:
        yield from _joined_sessions(path, sessions)
    elif mapping.events_at is None:
        yield from _event_sessions(path, sessions)
    else:
        yield from _record_sessions(path, sessions)


def lines_apart(path: Path, options: ReadOptions) -> bool:
    """Whether each line is a session."""
    mapping = parse(options.map or "")
    grows = mapping.messages is not None and mapping.messages.growing
    joins = grows or mapping.is_joined
    return mapping.events_at is not None and not joins and _is_lines(path, mapping.input)


def sessions_apart(path: Path, options: ReadOptions, size: int) -> Iterator[Span]:
    """Parts of a file with one event or turn a line that have whole sessions in them."""
    mapping = parse(options.map or "")
    grows = mapping.messages is not None and mapping.messages.growing
    are_parts = mapping.events_at is None or mapping.is_joined
    if not are_parts or grows or not _is_lines(path, mapping.input):
        return
    sessions = MappedSessions(mapping, options, str(path))
    yield from interleaved.spans(path, lambda value: _owner(value, sessions), size)


def read_span(path: Path, options: ReadOptions, span: Span) -> Iterator[Trajectory | Quarantined]:
    """The sessions of a part of a file."""
    mapping = parse(options.map or "")
    if inputs.is_mapped(path, mapping):
        in_list = _joined_sessions if mapping.is_joined else _record_sessions
        how = _event_sessions if mapping.events_at is None else in_list
        yield from how(path, MappedSessions(mapping, options, str(path)), span)


def _is_lines(path: Path, layout: Input) -> bool:
    return (
        path.is_file()
        and (layout.format or inputs.format_of(path) or "jsonl") == "jsonl"
        and layout.keeps_records
    )


def _record_sessions(
    path: Path, sessions: MappedSessions, span: Span | None = None
) -> Iterator[Trajectory | Quarantined]:
    """The sessions of a file with one session per record."""
    for number, value in _distinct_records(path, sessions, span):
        record = only_object(value, str(path), number)
        if isinstance(record, Quarantined):
            yield record
        else:
            yield from items_until_failure(_sessions_of_record(record, number, sessions), str(path), number)


def _joined_sessions(
    path: Path, sessions: MappedSessions, span: Span | None = None
) -> Iterator[Trajectory | Quarantined]:
    """The sessions of a file of traces or turns, each made of those that name it; one that names none is a
    session."""
    records: Callable[[], Iterable[Record]] = partial(_distinct_records, path, sessions, span)
    if span is not None:
        records = partial(iter, list(records()))

    def read_alone(record: Numbered) -> Iterator[Trajectory | Quarantined]:
        return items_until_failure(_session_of_joined([record], sessions), str(path), record[0])

    yield from _sessions_by_name(path, sessions, records, _session_of_joined, read_alone)


def _session_of_joined(many: list[Numbered], sessions: MappedSessions) -> Iterator[Trajectory | Quarantined]:
    """One session from the records that name it."""
    many = sessions.latest(many)
    number, records = many[0][0], [record for _, record in many]
    if (messages := sessions.mapping.messages) is not None:
        turns_in_order = [record for _, record in sessions.sort(many)]
        talk = chats.talk_of(turns_in_order, messages, sessions)
        head = sessions.with_mean_scores(turns_in_order, _head(turns_in_order, sessions))
        yield from chats.session_of(talk, head, number, sessions)
        return
    whole = sessions.tail(records, _merged(records)) if len(records) > 1 else records[0]
    yield from _sessions_of_record(sessions.with_mean_scores(records, whole), number, sessions)


def _merged(values: list[Any]) -> Any:
    """Objects as one, with their lists one behind the other, and else the first of their values."""
    if all(isinstance(one, list) for one in values):
        return list(itertools.chain(*values))
    if not all(isinstance(one, dict) for one in values):
        return next((one for one in values if one is not None), None)
    keys = dict.fromkeys(key for one in values for key in one)
    return {key: _merged([one[key] for one in values if one.get(key) is not None]) for key in keys}


def _sessions_of_record(
    record: dict[str, Any], number: int | None, sessions: MappedSessions
) -> Iterator[Trajectory | Quarantined]:
    """The session in a record."""
    at = sessions.mapping.events_at or ""
    events = turns.events_in(record, at, sessions.mapping.turns)
    if not isinstance(events, list):
        reason = f"{at}: expected a list of events, got {describe(events)}"
        yield Quarantined(source=sessions.source, line=number, reason=reason)
        return
    cuts = sessions.mapping.turns
    if (
        cuts is not None
        and cuts.pattern is not None
        and (problem := turns.unread_in(turns.decode_value(getter(at)(record)), cuts))
    ):
        yield Quarantined(source=sessions.source, line=number, reason=f"{at}: {problem}")
    if beside := {key: record[key] for key in sessions.mapping.record_keys & record.keys()}:
        events = [{**event, RECORD: beside} if isinstance(event, dict) else event for event in events]
    items = list(enumerate(events))
    if sessions.mapping.messages is not None:
        items = sessions.select(items)
    if sessions.seq is None and sessions.mapping.spans is None:
        seconds = chat.seconds if sessions.mapping.messages else sessions.seconds
        items = turns.oldest_first(items, seconds)
    items += enumerate(chats.reply_in(record, sessions.mapping.messages), len(events))
    if not items and not events and sessions.says_outcome(record):
        yield from _session_without_events(record, number, sessions)
        return
    read_session = _session_of_list if sessions.mapping.messages is None else chats.session_of
    read_session = read_session if sessions.mapping.spans is None else spans.session_of
    yield from read_session(items, record, number, sessions)


def _call_sessions(path: Path, sessions: MappedSessions) -> Iterator[Trajectory | Quarantined]:
    """The sessions of a file of model calls, each made of calls that continue each other."""
    records, calls = list[Numbered](), list[chats.ModelCall]()
    for number, value in _distinct_records(path, sessions, None):
        record = only_object(value, str(path), number)
        if isinstance(record, Quarantined):
            yield record
            continue
        call = quarantine_failure(partial(chats.call, record, sessions), str(path), number)
        if isinstance(call, Quarantined):
            yield call
        else:
            records.append((number, record))
            calls.append(call)
    for number, head, many in chats.growing_sessions(records, calls, sessions):
        yield from items_until_failure(chats.session_of(many, head, number, sessions), str(path), number)


def _distinct_records(
    path: Path, sessions: MappedSessions, span: Span | None
) -> Iterator[tuple[int | None, JsonValue | Quarantined]]:
    """The records of a file, without repeated lines of JSON Lines. Each line that cannot be read is reported,
    in whatever part of the file it stands."""
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
    many: list[Place], value: dict[str, Any], number: int | None, sessions: MappedSessions
) -> Iterator[Trajectory | Quarantined]:
    """One session from the list of events in its record."""
    session = MappedSession(sessions, value, number, places=[place for place, _ in many])
    session.add_request(sessions.heads["request"](value))
    session.add_events([event for _, event in many], itertools.repeat(number))
    yield from session.finish(value)


def _session_without_events(
    record: dict[str, Any], number: int | None, sessions: MappedSessions
) -> Iterator[Trajectory | Quarantined]:
    """A session that came to something before anything was said or done in it, which counts in rates, too."""
    reason = f"{sessions.mapping.events_at}: empty, so that the session has nothing but its outcomes"
    yield Quarantined(source=sessions.source, line=number, reason=reason)
    session = MappedSession(sessions, record, number)
    session.add_request(sessions.heads["request"](record))
    session.add_start()
    yield from session.finish(record)


def _head(records: list[dict[str, Any]], sessions: MappedSessions) -> dict[str, Any]:
    return sessions.tail(records, sessions.head(records))


def _event_sessions(
    path: Path, sessions: MappedSessions, span: Span | None = None
) -> Iterator[Trajectory | Quarantined]:
    """The sessions of a file with one event per record, each yielded at its last record."""
    mapping = sessions.mapping
    events: Callable[[], Iterable[Record]] = partial(
        inputs.records, path, mapping.input, names=mapping.columns_of_names
    )
    if span is not None:
        lines = numbered_lines(path, span)
        some = [(number, inputs.record(line, str(path), number)) for number, line in lines]
        events = partial(iter, some)
    yield from _sessions_by_name(
        path, sessions, events, _session_of_records, partial(_without_session, sessions)
    )


def _without_session(sessions: MappedSessions, record: Numbered) -> Iterator[Quarantined]:
    """What is wrong with an event that names no session: nothing, where no message is in it."""
    number, event = record
    messages = sessions.mapping.messages
    if messages is not None and chats.message_in(event, messages) is None:
        return
    where = ", ".join(as_list(sessions.mapping.trajectory.native_id))
    yield Quarantined(source=sessions.source, line=number, reason=f"{where}: there is no session here")


def _sessions_by_name(
    path: Path,
    sessions: MappedSessions,
    records: Callable[[], Iterable[Record]],
    read_session: Callable[[list[Numbered], MappedSessions], Iterator[Trajectory | Quarantined]],
    read_nameless: Callable[[Numbered], Iterator[Trajectory | Quarantined]],
) -> Iterator[Trajectory | Quarantined]:
    """The sessions of records that name theirs, each yielded at its last record. `records` are read twice."""
    last, count = _last_records(records(), sessions)
    records_by_session: dict[str, list[Numbered]] = {}
    for place, (number, value) in enumerate(itertools.islice(records(), count)):
        record = only_object(value, str(path), number)
        if isinstance(record, Quarantined):
            yield record
            continue
        name = _owner(record, sessions)
        if name is None:
            yield from read_nameless((number, record))
            continue
        records_by_session.setdefault(name, []).append((number, record))
        if last.get(name) == place:
            many = records_by_session.pop(name)
            yield from items_until_failure(read_session(many, sessions), str(path), number)


def _last_records(events: Iterable[Record], sessions: MappedSessions) -> tuple[dict[str, int], int]:
    """(session -> place of its last record, number of records)."""
    last: dict[str, int] = {}
    records = 0
    for place, (_, value) in enumerate(events):
        records += 1
        if (name := _owner(value, sessions)) is not None:
            last[name] = place
    return last, records


def _owner(value: JsonValue | Quarantined, sessions: MappedSessions) -> str | None:
    """The session that an event names, if any."""
    return sessions.native_id(value) if isinstance(value, dict) else None


def _session_of_records(many: list[Numbered], sessions: MappedSessions) -> Iterator[Trajectory | Quarantined]:
    """One session from its records in the order of the file."""
    many = sessions.latest(many)
    if (messages := sessions.mapping.messages) is not None:
        records = [record for _, record in many]
        rest = sessions.select(list(enumerate(records)))
        read = ((place, chats.message_in(record, messages)) for place, record in rest)
        chat_messages = [(place, one) for place, one in read if one is not None]
        if not messages.at:
            yield from _passed_over([many[place] for place, _ in rest], sessions)
        yield from chats.session_of(chat_messages, _head(records, sessions), many[0][0], sessions)
        return
    if sessions.mapping.spans is not None:
        yield from spans.session_of(
            list(enumerate(r for _, r in many)), _head([r for _, r in many], sessions), many[0][0], sessions
        )
        return
    session = MappedSession(sessions, sessions.head(record for _, record in many), many[0][0])
    lines = sessions.sort(many)
    session.add_events([record for _, record in lines], [number for number, _ in lines])
    records = [record for _, record in many]
    yield from session.finish(sessions.with_mean_scores(records, sessions.tail(records)))


def _passed_over(many: list[Numbered], sessions: MappedSessions) -> Iterator[Quarantined]:
    """The records of which nothing is read, where each is to be a message: one entry with their number."""
    numbers = [number for number, record in many if _is_unread(record, sessions)]
    if numbers:
        count = count_of(len(numbers), "record that is", "records that are")
        reason = f"passed over {count} no message, and no event that is known"
        yield Quarantined(source=sessions.source, line=numbers[0], reason=reason)


def _is_unread(record: dict[str, Any], sessions: MappedSessions) -> bool:
    """Whether a record is no message, no event that nobody says, and holds nothing that is mapped."""
    if "role" in record or "type" in record or dialects.messages(record) is not None:
        return False
    paths = (*sessions.head_paths.values(), *sessions.outcome_paths.values())
    return all(at(record) is None for at in paths)
