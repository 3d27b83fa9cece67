"""The guess at a mapping, which the other modules make and drafting.py writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from .....schemas.trajectory import ParticipantKind
from ..fields.paths import as_list
from ..fields.roles import Role
from .scores import Scores
from .survey import PathSummary

Shape = Literal["messages", "spans", "list", "pairs", "text", "table", "nothing"]
Take = Callable[[str, list[PathSummary]], PathSummary | None]
"""Sets a field of `[event]` to the first candidate that no other field has, and returns it."""


@dataclass
class Guess:
    """What the paths of a survey are taken for."""

    shape: Shape = "nothing"
    at: str | None = None
    event: dict[str, str | list[str]] = field(default_factory=dict)
    """Field of `[event]` -> its path, as the mapping has it."""
    spans: dict[str, str | list[str]] = field(default_factory=dict)
    """Field of `[spans]` -> its path."""
    native_id: list[str] = field(default_factory=list)
    head: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    scores: Scores | None = None
    """The list of scores, each of which is an outcome."""
    secrets: list[str] = field(default_factory=list)
    roles: list[Role] = field(default_factory=list)
    patterns: list[str] = field(default_factory=list)
    fields: dict[str, str | list[str]] = field(default_factory=dict)
    has_rounds: bool = False
    """Whether a record is a round of a session, of `fields`."""
    crowd: str | None = None
    """Path of who speaks, where it names too many for a list of roles, which has those of other kinds."""
    crowd_kind: ParticipantKind = "human"
    """What all others are whom it names."""
    crowd_words: dict[str, ParticipantKind] = field(default_factory=dict)
    """Word of names in it -> what they are."""
    strip_names: bool = False
    each: bool = False
    """Whether a record is one message, or one span."""
    is_alternating: bool = False
    """Whether no field says who speaks, and two speak in turn."""
    reply: str | None = None
    artifacts: str | None = None
    """Path of what the agent handed over, in parts, beside the list of messages."""
    briefing: str | None = None
    """Path of what the agents were told, where it stands beside the list of messages."""
    joined: bool = False
    """Whether the spans or messages of several records are those of one session."""
    record_id: str | None = None
    """Path of the id of a record that is a round or a turn of a session."""
    turn_time: str | None = None
    """Path of the time of a record whose messages are a turn of a session."""
    growing: bool = False
    """Whether records are calls of a model that continue each other."""
    notes: tuple[str, list[str]] | None = None
    """Path and values by which events are notes, such as records that only say that something begins."""
    observation_prefix: str | None = None
    """How a user's turn begins that a scaffold fills with the output of a command."""
    preset: str | None = None
    """How a user's turn begins in which nobody speaks: what a person set once for all talks."""
    by_values: dict[str, str] = field(default_factory=dict)
    """Field of the mapping -> its path, where it was guessed by its values and not by its name."""
    is_scattered: bool = False
    """Whether the ids of sessions hardly repeat among the records that were looked at, but do later."""
    has_opaque_names: bool = False
    """Whether columns were guessed by their values, for their names say nothing."""
    time_formats: list[str] = field(default_factory=list)
    """How times may be written that are not ISO 8601, the likeliest first."""
    time_path: str | None = None
    """Path of the times in `time_formats`; it is the events' time where there is one way to read them."""
    result_label: str | None = None
    """Path of a label that only results have, under the name of whoever acted."""
    call_roles: list[str] = field(default_factory=list)
    """Roles that are a call's name, such as `tool_call`: what they do, the agent does."""
    strangers: list[str] = field(default_factory=list)
    """Names of messages without roles that are taken for agents', though nothing says so."""
    bot_path: str | None = None
    """Path of what only bots have, where the names of people and bots say nothing."""
    bot_flag: str | None = None
    """The value, as TOML has it, that `bot_path` has of bots, where it is a flag."""
    kinds_from_paths: dict[str, ParticipantKind] = field(default_factory=dict)
    """Path of a name -> the kind of whoever has one there, the first of several."""
    kinds_from_roles: dict[str, ParticipantKind] = field(default_factory=dict)
    """Name -> its kind, where only roles say it."""
    kinds_from_names: dict[str, ParticipantKind] = field(default_factory=dict)
    """Name -> the kind it says itself, where roles say otherwise or the same of several."""
    statuses: dict[str, str] = field(default_factory=dict)
    """The log's word for how an action ended -> its meaning."""
    uncertain_statuses: list[str] = field(default_factory=list)
    """Paths that only actions have and that may, or may not, say how they ended."""
    error_is_failure: bool = False
    """Whether actions with an error failed, and all others succeeded."""
    speech: list[str] = field(default_factory=list)
    """Actions that only say something."""
    constant_role: str | None = None
    fence: str | None = None
    """The language of the fenced blocks in the agent's texts that are its actions; "" for unmarked ones."""
    code: str | None = None
    """The language of the fenced blocks of pages, which are all that is read of them."""
    call_patterns: list[str] = field(default_factory=list)
    """Patterns of calls that agents write into their texts."""

    @property
    def mapped_paths(self) -> set[str]:
        """The paths of what happened: fields of the events, their list, and the reply."""
        fields = [*self.event.values(), *self.spans.values(), *self.fields.values()]
        inside = {one for path in fields for one in as_list(path)}
        return inside | {
            self.at or "",
            (self.reply or "").replace("[0]", "[]"),
            self.briefing or "",
            self.artifacts or "",
            self.turn_time or "",
            self.record_id or "",
        }
