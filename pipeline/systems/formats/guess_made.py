"""What the parts of logs are taken for, on the way to a draft."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from ....schemas.trajectory import ParticipantKind
from .guess_roles import Role
from .paths import several
from .survey import PathSeen

Shape = Literal["messages", "spans", "list", "pairs", "text", "table", "nothing"]
Take = Callable[[str, list[PathSeen]], PathSeen | None]
"""Notes the first candidate that is not taken yet as a field of `[event]`."""


@dataclass
class Guess:
    """What the parts of the logs are taken for."""

    shape: Shape = "nothing"
    at: str | None = None
    event: dict[str, str | list[str]] = field(default_factory=dict)
    """Field of `[event]` -> its path, as the mapping has it."""
    spans: dict[str, str | list[str]] = field(default_factory=dict)
    """Field of `[spans]` -> its path."""
    native_id: list[str] = field(default_factory=list)
    head: dict[str, str] = field(default_factory=dict)
    hidden: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)
    roles: list[Role] = field(default_factory=list)
    patterns: list[str] = field(default_factory=list)
    fields: dict[str, str | list[str]] = field(default_factory=dict)
    rounds: bool = False
    """Whether a record is a round of a session, of `fields`."""
    strip: bool = False
    each: bool = False
    """Whether a record is one message, or one span."""
    turns_about: bool = False
    """Whether no field says who speaks, and two speak in turn."""
    reply: str | None = None
    briefing: str | None = None
    """Path of what the agents were told, where it stands beside the list of messages."""
    growing: bool = False
    """Whether records are calls of a model that continue each other."""
    notes: tuple[str, list[str]] | None = None
    """Path and values of records that only say that something begins."""
    observed: str | None = None
    """How a user's turn begins that a scaffold fills with the output of a command."""
    by_values: dict[str, str] = field(default_factory=dict)
    """Field of the mapping -> its path, where not its name tells it but what stands there."""
    nameless: bool = False
    """Whether columns were told by what stands in them, for their names say nothing."""
    time_formats: list[str] = field(default_factory=list)
    """How times may be written that are not ISO 8601, the likeliest first."""
    timed: str | None = None
    """Path of these; it is the events' time where there is one way to read them."""
    came: str | None = None
    """Path of what only events have that say what came of an action, under the name of whoever acted."""
    calling: list[str] = field(default_factory=list)
    """Roles that are a call's name, such as `tool_call`: what they do, the agent does."""
    bots: str | None = None
    """Path of what only bots have, where the names of people and bots say nothing."""
    bots_are: bool = False
    """Whether that is a flag, true of bots."""
    told: dict[str, ParticipantKind] = field(default_factory=dict)
    """Names of which only roles say who they are."""
    renamed: dict[str, ParticipantKind] = field(default_factory=dict)
    """Names that say who they are, where roles say otherwise or the same of several."""
    statuses: dict[str, str] = field(default_factory=dict)
    """How what was done ended, in the log's words -> what that means."""
    acted: list[str] = field(default_factory=list)
    """Paths of what only actions have, of which it is not certain that it says how they ended."""
    failing: bool = False
    """Whether what has an error failed, and all else succeeded."""
    speech: list[str] = field(default_factory=list)
    """Actions that only say something."""
    constant_role: str | None = None
    fence: str | None = None
    """What fenced blocks of the agent's texts are marked as, where they are its actions."""
    code: str | None = None
    """What the fenced blocks of pages are marked as, which are all that is read of them."""
    calls: bool = False
    """Whether texts are calls as Python writes them."""

    @property
    def used(self) -> set[str]:
        """The paths of what happened: fields of the events, and what came back."""
        fields = [*self.event.values(), *self.spans.values(), *self.fields.values()]
        inside = {one for path in fields for one in several(path)}
        return inside | {self.at or "", (self.reply or "").replace("[0]", "[]"), self.briefing or ""}
