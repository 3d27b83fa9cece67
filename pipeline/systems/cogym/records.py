"""The records of a Co-Gym log, and the events that they become."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from ....schemas import Action, Event, JsonValue, Quarantined, content_hash, toml
from ....schemas.event import EventKind, Notice
from ....schemas.text import rule_of
from ....schemas.trajectory import ParticipantKind
from ..base import folder_of, only_object
from .actions import COLLABORATIVE, parse, start_arguments

SYSTEM = "cogym"
LOG = "event_log.jsonl"


ENVIRONMENT = "environment"


# Public keys that only one task's environment shows.
TASK_KEYS = {
    "travel_plan_editor": "travel_planning",
    "related_works_editor": "related_work",
    "library": "related_work",
    "result_editor": "tabular_analysis",
    "jupyter_history": "tabular_analysis",
}


TASK_NAMES = {"lit_survey": "related_work"}


_FOLDER = re.compile(r"env_(?P<task>[a-z][a-z_]*)_(?P<index>\d+)")


class ChatItem(BaseModel):
    """One line of the chat, as every record repeats it."""

    model_config = ConfigDict(strict=True)
    role: str
    timestamp: str
    message: str


class Observation(BaseModel):
    """The state after a record: what all see, and what each member alone sees."""

    model_config = ConfigDict(strict=True)
    public: dict[str, Any]
    private: dict[str, Any] = {}


class Record(BaseModel):
    """One line of event_log.jsonl. Copies of logs may hold only who did what."""

    model_config = ConfigDict(strict=True)
    role: str
    timestamp: str | None = None
    action: str
    action_status: str | None = None
    action_type: str | None = None
    current_chat_history: list[Any] | None = None
    current_observation: Observation = Observation(public={})

    @field_validator("current_observation", mode="before")
    @classmethod
    def _default_observation(cls, value: object) -> object:
        return {"public": {}} if value is None else value

    @property
    def team(self) -> list[str]:
        """The members, in the order the environment lists them."""
        return list(self.current_observation.private)


@dataclass
class Session:
    """The events and states that the records of one log become, added one by one."""

    records: list[tuple[int, Record]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    states: dict[str, JsonValue] = field(default_factory=dict)
    opening: ChatItem | None = None
    chat_seen: int = 0
    accepted: bool = False
    """Whether the last record accepted an action, which the next one then carries out."""

    def add(self, index: int, record: Record) -> None:
        """Add the record at place `index` of the log.

        The opening query is number 1, behind the start, also where the start's own record is broken. Logs
        older than the START record begin with the query.
        """
        begins, starts = not self.records, index == 0 and is_start(record)
        if begins:
            self.opening = opening_of(record)
        seq = index if self.opening is None or starts else index + 1
        chat = record.current_chat_history
        chat_lines = [] if chat is None else chat[self.chat_seen :]
        events = [_event(seq, record, self.states, chat_lines, accepted=self.accepted)]
        if begins and self.opening:
            events.append(_query(self.opening, record.team, 0 if index == 0 and not starts else 1))
        self.records.append((index, record))
        self.events.extend(sorted(events, key=lambda event: event.seq))
        self.chat_seen = self.chat_seen if chat is None else len(chat)
        self.accepted = record.action.startswith("ACCEPT_CONFIRMATION(")

    @property
    def first(self) -> Record:
        return self.records[0][1]

    @property
    def last(self) -> Record:
        return self.records[-1][1]


def record_of(value: JsonValue | Quarantined, source: str, line: int | None) -> Record | Quarantined:
    content = only_object(value, source, line)
    if isinstance(content, Quarantined):
        return content
    try:
        record = Record.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "record"
        return Quarantined(source=source, line=line, reason=f"{place}: {rule_of(first)}")
    role = _member(record.role, record.team)
    if role is None:
        members = ", ".join([*record.team, ENVIRONMENT])
        return Quarantined(
            source=source, line=line, reason=f"unknown role {record.role[:80]!r}, expected one of {members}"
        )
    return record if role == record.role else record.model_copy(update={"role": role})


def _member(role: str, team: Sequence[str]) -> str | None:
    """The member that a role names, `user_<id>` also where it was logged as `user`; None where it names none.

    Where the team is not known, any role may be a member.
    """
    if role == ENVIRONMENT or not team or role in team:
        return role
    longer = [name for name in team if name.startswith(f"{role}_")]
    return longer[0] if len(longer) == 1 else None


def session_of(records: list[tuple[int, Record]]) -> Session:
    session = Session()
    for index, record in records:
        session.add(index, record)
    return session


def is_start(record: Record) -> bool:
    """Whether a record begins a run."""
    return record.role == ENVIRONMENT and record.action.startswith("START(")


def _query(opening: ChatItem, team: Sequence[str], seq: int) -> Event:
    actor = _member(opening.role, team) or opening.role
    return Event(seq=seq, time=_iso(opening.timestamp), actor=actor, kind="message", text=opening.message)


def opening_of(first: Record) -> ChatItem | None:
    """The opening query: what a user had in the chat before anything was done."""
    try:
        items = [ChatItem.model_validate(item) for item in (first.current_chat_history or ())[:1]]
    except ValidationError:
        return None
    return items[0] if items and _is_user(items[0].role) else None


def _event(
    seq: int, record: Record, states: dict[str, JsonValue], chat_lines: list[Any], *, accepted: bool
) -> Event:
    """The event of a record. `chat_lines` came to the chat since the record before; `accepted` says whether
    that one accepted this action."""
    kind, text, action = _kind_text_action(record)
    notices, own_error = _notices(record, chat_lines)
    status, error = _status(record.action_status)
    if own_error is not None and accepted:
        # Co-Gym logs every accepted action as a success; the chat says what came of it.
        status, error = "failed", own_error
    return Event(
        seq=seq,
        time=_iso(record.timestamp),
        actor=record.role,
        kind=kind,
        text=text,
        action=action,
        status=status,
        error=error,
        states=_store_views(record.current_observation, states),
        notices=notices,
    )


def _kind_text_action(record: Record) -> tuple[EventKind, str | None, Action | None]:
    if is_start(record):
        arguments = start_arguments(record.action)
        return "start", arguments["task_description"], Action(name="START", arguments=dict(arguments))
    action = parse(record.action)
    # action_type "collaborative" also covers confirmations; only the action itself tells.
    if _is_collaborative(record) and action.name in COLLABORATIVE:
        kind = COLLABORATIVE[action.name]
        if kind == "message":
            return kind, str(action.arguments["message"]), None
        return kind, None, action
    return ("finish" if action.name == "FINISH" else "action"), None, action


def _is_collaborative(record: Record) -> bool:
    """Whether it is an act of communication. Without an `action_type` one that failed is none: only the
    environment lets an action fail."""
    if record.action_type is None:
        return not (record.action_status or "").startswith("failed")
    return record.action_type == "collaborative"


def _status(text: str | None) -> tuple[Any, str | None]:
    if text == "succeeded":
        return "succeeded", None
    if text is None or not text.startswith("failed"):
        return None, None  # a word that Co-Gym does not write: its outcome is not known
    error = text.removeprefix("failed").strip()
    if error.startswith("(action_error: "):
        error = error.removeprefix("(action_error: ").removesuffix(")")
    return "failed", error or None


def _store_views(observation: Observation, states: dict[str, JsonValue]) -> dict[str, str]:
    """View -> hash of its state; the state itself goes into `states` once."""
    views: dict[str, Any] = {"public": observation.public, **observation.private}
    hashes = {}
    for view, state in views.items():
        if state in ({}, None):
            continue
        hashes[view] = content_hash(state)
        states.setdefault(hashes[view], state)
    return hashes


def _notices(record: Record, chat_lines: list[Any]) -> tuple[tuple[Notice, ...], str | None]:
    """What the environment wrote since the record before; and, apart from it, this record's own error."""
    prefix = f"[{record.role}] takes an action but fails: "
    items = [item for item in chat_lines if isinstance(item, dict) and item.get("role") == ENVIRONMENT]
    lines = [(_iso(str(item.get("timestamp"))), str(item.get("message"))) for item in items]
    errors = [text.removeprefix(prefix) for _, text in lines if text.startswith(prefix)]
    notices = tuple(Notice(time=time, text=text) for time, text in lines if not text.startswith(prefix))
    return notices, errors[-1] if errors else None


def _iso(timestamp: str | None) -> str | None:
    """Co-Gym's local "YYYY-MM-DD HH:MM:SS" as ISO 8601; anything else stays as it was."""
    return timestamp and timestamp.replace(" ", "T", 1)


def session_id(
    native_id: str, team: list[str], description: str, opening: ChatItem | None, start: str | None
) -> str:
    """The id of a session that may still grow: of what its first record and its live start have in common."""
    moment = (opening.role, opening.timestamp, opening.message) if opening else (start,)
    return content_hash(SYSTEM, native_id, sorted(team), description, moment)[:16]


def participant_kind(name: str) -> ParticipantKind:
    """What a role is: a person is the `human` of Co-Gym's examples, or has a name with `user`."""
    if name == ENVIRONMENT:
        return "environment"
    return "human" if _is_user(name) or name == "human" or name.startswith("human_") else "agent"


def _is_user(name: str) -> bool:
    """By the substring rule that Co-Gym itself uses."""
    return "user" in name


def agent_of(team: Sequence[str]) -> str | None:
    return next((name for name in team if participant_kind(name) == "agent"), None)


def condition_of(folder: Path) -> str | None:
    """The folder above; of an experiment script, which writes TAG/results/env_TASK_NUMBER, the tag."""
    above = folder.absolute().parent
    task = above.parent.parent.name
    names = {*TASK_KEYS.values(), *TASK_NAMES}
    if above.name == "results" and (task in names or _FOLDER.fullmatch(folder.name)):
        return above.parent.name
    return above.name or None


def task_of(name: str, session: Session, config: dict[str, Any]) -> tuple[str | None, str | None]:
    """(task, instance): from the folder's name, else from what the environment shows."""
    if match := _FOLDER.fullmatch(name):
        return TASK_NAMES.get(match["task"], match["task"]), match["index"]
    public = session.last.current_observation.public
    task = next((task for key, task in TASK_KEYS.items() if key in public), None)
    if task is None and (env := config.get("env_class")):
        task = TASK_NAMES.get(str(env), str(env))
    return task, None


def beside(path: Path) -> list[Path]:
    """The environment's configuration, which Co-Gym leaves outside the session's folder."""
    if path.suffix in (".json", ".jsonl") and path.name != LOG:
        return []
    folder = folder_of(path if path.name == LOG else path / LOG)
    above = folder.parent
    name = folder.name.removeprefix("env_")
    places = (above / f"{folder.name}_config.toml", above.parent / "env_config_tmp" / f"{name}.toml")
    return [place for place in places if is_file(place)][:1]


def is_file(path: Path) -> bool:
    """Whether a file is there; a name that a log says may be longer than a file's may be."""
    try:
        return path.is_file()
    except OSError:
        return False


def config_of(folder: Path) -> dict[str, Any] | Quarantined:
    """The environment's configuration where Co-Gym left it beside the session; {} where it did not."""
    for path in beside(folder):
        try:
            return toml.parse(path.read_bytes())
        except ValueError as error:
            return Quarantined(source=str(path), reason=str(error))
    return {}


@dataclass(frozen=True, slots=True)
class StepLimit:
    """How many logged records a party may have, and how that is known."""

    steps: int
    source: str

    def __str__(self) -> str:
        return f"{self.steps} ({self.source})"


def step_limit(config: dict[str, Any], team: Sequence[str], limit: int | None = None) -> StepLimit:
    """`limit` where it is given, else the configured one, else Co-Gym's own: 30, or 100 in the graphical
    server."""
    if limit is not None:
        return StepLimit(limit, "--max-steps")
    arguments = config.get("env_args")
    value = arguments.get("max_steps") if isinstance(arguments, dict) else None
    if isinstance(value, int):
        return StepLimit(value, "the configuration beside it")
    default = 100 if any(name.startswith("user_") for name in team) else 30
    return StepLimit(default, "assumed: no configuration beside it says otherwise, nor --max-steps")
