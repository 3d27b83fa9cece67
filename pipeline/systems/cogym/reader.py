"""Reader for Co-Gym: session folders of every kind, and the released real-user trajectories.

A folder's trajectory id is a hash of system, folder name and first record, because the log grows and
because Co-Gym gives the same folder name to every condition. A released file is finished: its id is a
hash of its content. seq is the record's place in the log, the opening query being number 1; a record
that cannot be read keeps its number free.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....schemas import JsonValue, Participant, Quarantined, Trajectory, content_hash
from ....schemas.trajectory import Setting
from ..base import (
    CUT_OFF,
    ReadOptions,
    folder_of,
    items_until_failure,
    json_file,
    json_lines,
    only_object,
    parse_json,
)
from ..formats.fields.mapping import Input
from ..formats.files import inputs
from . import replay
from .actions import start_arguments
from .outcomes import SessionFiles, outcomes, rated_outcomes
from .recording import is_recording
from .records import (
    ENVIRONMENT,
    LOG,
    SYSTEM,
    Record,
    Session,
    agent_of,
    condition_of,
    config_of,
    is_start,
    opening_of,
    participant_kind,
    record_of,
    session_id,
    session_of,
    step_limit,
    task_of,
)

TABLES = (".parquet", ".csv", ".tsv")
"""Extensions of a table with a released trajectory in each row."""
RELEASED = (".json", ".jsonl", *TABLES)
"""Extensions of a released trajectory, or of a file with many of them."""
_RELEASED_KEYS = ("modelName", "outcomeRating")
_LOOK = 1 << 20
"""Bytes of a file's beginning, and of its end, that are enough to recognise it."""


def recognises(path: Path) -> bool:
    """A folder with an event log, the log itself, a released trajectory file, or recorded live traffic."""
    if path.is_dir():
        return (path / LOG).is_file() or is_recording(path)
    if path.name == LOG or is_recording(path):
        return True
    if path.suffix not in RELEASED or not path.is_file():
        return False
    if path.suffix in TABLES:
        names = _columns(path)
        return "event_log" in names and not names.isdisjoint(_RELEASED_KEYS)
    with path.open("rb") as file:
        look = file.read(_LOOK)
        file.seek(max(file.tell(), path.stat().st_size - _LOOK))  # the keys may stand behind a long log
        look += file.read(_LOOK)
    return b'"event_log"' in look and any(f'"{key}"'.encode() in look for key in _RELEASED_KEYS)


def _columns(path: Path) -> set[str]:
    """The names of a table's columns; none where they cannot be read."""
    if path.suffix != ".parquet":
        with path.open("rb") as file:
            header = file.readline(_LOOK).decode("utf-8-sig", "replace")
        return {name.strip(' "\r\n') for name in re.split(r"[,;\t]", header)}
    import pyarrow
    from pyarrow import parquet  # a tenth of a second

    try:
        return {*parquet.read_schema(path).names}
    except (pyarrow.ArrowException, OSError, ValueError):
        return set()


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The trajectory of a session folder or released file, or those of a recording, and what is broken."""
    if is_recording(path):
        yield from replay.read(path, options)
    elif path.suffix in RELEASED and path.name != LOG:
        for name, line, value in _release_entries(path):
            yield from items_until_failure(_read_released(path, name, line, value, options), str(path), line)
    else:
        folder = path if path.is_dir() else path.parent
        yield from items_until_failure(_read_folder(folder, options), str(folder))


def _read_folder(folder: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    log = folder / LOG
    runs = [_Run()]
    for line, value in json_lines(log):
        record = record_of(value, str(log), line)
        if isinstance(record, Quarantined):
            yield record
            # A line that is cut off ends a run that was killed: the state before it is the last one.
            runs[-1].lacks_last = not record.reason.endswith(CUT_OFF)
            continue
        if is_start(record) and runs[-1].is_before(record):
            runs.append(_Run(first_line=line))
        runs[-1].lacks_last = False
        runs[-1].records.append((line - runs[-1].first_line, record))
    if not runs[0].records:
        yield Quarantined(source=str(log), reason="no record of a session in it")
        return
    for run in runs[:-1]:
        yield from _read_run(folder, run, options, files_of=None)
    yield from _read_run(folder, runs[-1], options, files_of=folder)


@dataclass
class _Run:
    """The records of one run: Co-Gym begins its log anew with each, a log that was put together has more."""

    first_line: int = 1
    records: list[tuple[int, Record]] = field(default_factory=list)
    lacks_last: bool = False

    def is_before(self, start: Record) -> bool:
        """Whether a start begins another run: one whose chat goes on from this run's resumes it."""
        if not self.records:
            return False
        chat = self.records[-1][1].current_chat_history
        return not chat or (start.current_chat_history or [])[: len(chat)] != chat


def _read_run(
    folder: Path, run: _Run, options: ReadOptions, files_of: Path | None
) -> Iterator[Trajectory | Quarantined]:
    """The trajectory of a run; `files_of` is the folder with the files that belong to it, those of the last
    run."""
    session = session_of(run.records)
    origin = folder_of(folder / LOG)
    files = SessionFiles(
        files_of, final_state={} if run.lacks_last else session.last.current_observation.public
    )
    participants = _participants(session, files)
    yield from files.quarantined
    config = config_of(folder)
    if isinstance(config, Quarantined):
        yield config
        config = {}
    task, instance = task_of(origin.name, session, config)
    limit = step_limit(config, session.first.team, options.max_steps)
    yield Trajectory(
        id=_session_id(origin.name, session),
        native_id=origin.name,
        source=str(folder),
        system=SYSTEM,
        setting=options.setting or _setting(session, files),
        condition=options.condition or condition_of(origin),
        task=task,
        instance=instance,
        agent=options.agent or agent_of([p.name for p in participants]),
        agent_model=next((p.model for p in participants if p.kind == "agent" and p.model), None),
        tags=options.tags,
        participants=participants,
        events=tuple(session.events),
        outcomes=tuple(outcomes(session.events, files, limit)),
        states=session.states,
        hidden=files.hidden,
    )


def _release_entries(path: Path) -> Iterator[tuple[str, int | None, JsonValue | Quarantined]]:
    """The name, line and content of each released trajectory in a file: one, a list, or one a line."""
    if path.suffix in TABLES:
        for number, (line, value) in enumerate(inputs.records(path, Input()), start=1):
            yield f"{path.stem}/{number}", line, _with_text(value, str(path), line)
        return
    if path.suffix == ".jsonl":
        rows: Iterable[tuple[int, JsonValue | Quarantined]] = json_lines(path)
    else:
        value = json_file(path)
        if not isinstance(value, list):
            yield path.stem, None, value
            return
        rows = enumerate(value, start=1)
    for number, row in rows:
        yield f"{path.stem}/{number}", number, row


def _with_text(value: JsonValue | Quarantined, source: str, row: int | None) -> JsonValue | Quarantined:
    """A table's row, refused where its log is no text: records that are a column's have null in each field
    that another session's have, and a result that is null is another one than none."""
    if isinstance(value, dict) and isinstance(value.get("event_log"), list):
        reason = "event_log must be the text of a JSON list: in a column of records, each has all fields"
        return Quarantined(source=source, line=row, reason=reason)
    return value


def _read_released(
    path: Path, name: str, line: int | None, value: JsonValue | Quarantined, options: ReadOptions
) -> Iterator[Trajectory | Quarantined]:
    content = only_object(value, str(path), line)
    if isinstance(content, Quarantined):
        yield content
        return
    log = _log_of(content.get("event_log"), str(path), line)
    if not isinstance(log, list):
        yield Quarantined(source=str(path), line=line, reason="event_log must be a list of records")
        return
    records: list[tuple[int, Record]] = []
    for index, item in enumerate(log):
        record = record_of(item, f"{path}: event_log[{index}]", line)
        lacks_last = isinstance(record, Quarantined)
        if isinstance(record, Quarantined):
            yield record
        else:
            records.append((index, record))
    if not records:
        yield Quarantined(source=str(path), line=line, reason="no record of a session in it")
        return
    session = session_of(records)
    model = content.get("modelName")
    task = content.get("task")
    participants = tuple(
        p.model_copy(update={"model": str(model)}) if p.kind == "agent" and model else p
        for p in _participants(session, None)
    )
    files = SessionFiles(None, final_state={} if lacks_last else session.last.current_observation.public)
    limit = step_limit({}, session.first.team, options.max_steps) if options.max_steps else None
    yield Trajectory(
        id=content_hash(SYSTEM, [one for one in log if not isinstance(one, Quarantined)])[:16],
        native_id=name,
        source=str(path),
        system=SYSTEM,
        setting=options.setting or "real",
        condition=options.condition or folder_of(path).name or None,
        task=str(task) if task else task_of(path.stem, session, {})[0],
        agent=options.agent or agent_of([p.name for p in participants]),
        agent_model=str(model) if model else None,
        tags=options.tags,
        participants=participants,
        events=tuple(session.events),
        outcomes=(*outcomes(session.events, files, limit), *rated_outcomes(content)),
        states=session.states,
    )


def _log_of(log: JsonValue, source: str, line: int | None) -> JsonValue | list[Any] | Quarantined:
    """A released log: a list of records, the text of one, or the text of an event_log.jsonl."""
    if not isinstance(log, str):
        return log
    value = parse_json(log.encode(), source, line)
    if isinstance(value, list):
        return value
    records = [parse_json(one.encode(), source, line) for one in log.split("\n") if one.strip()]
    return records if records and isinstance(records[0], dict) else value


def _session_id(name: str, session: Session) -> str:
    first = session.first
    description = start_arguments(first.action)["task_description"]
    if first.role != ENVIRONMENT:
        description = f"{first.role} {first.action}"
    return session_id(name, first.team, description, opening_of(first), first.timestamp)


def _participants(session: Session, files: SessionFiles | None) -> tuple[Participant, ...]:
    names = list(dict.fromkeys([*session.first.team, *(r.role for _, r in session.records)]))
    items = []
    for name in [n for n in names if n != ENVIRONMENT] + [ENVIRONMENT]:
        kind = participant_kind(name)
        fields = files.player_fields(name, kind) if files else {}
        items.append(Participant(name=name, kind=kind, **fields))
    return tuple(items)


def _setting(session: Session, files: SessionFiles) -> Setting | None:
    if files.simulated_user:
        return "simulated"
    # The GUI server names its people user_<id>; the simulated user's role is "user".
    return "real" if any(name.startswith("user_") for name in session.first.team) else None
