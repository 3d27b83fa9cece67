"""A trajectory: one run of a team on a task, with its participants, events, states and outcomes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, StringConstraints, field_validator, model_validator

from .base import JsonValue, Model
from .event import EventTuple
from .text import bare, one_line

ParticipantKind = Literal["human", "agent", "environment"]
Setting = Literal["real", "simulated"]
COPY = "copy_of"
"""Tag of a trajectory that holds no more than the beginning of another one; its value is that one's record.
"""
Count = Annotated[int, Field(ge=0, lt=2**63)]
_RANGES = {
    "outcome_rating": (1, 5),
    "satisfaction": (1, 5),
    "communication_rating": (1, 5),
    "task_performance": (0, 1),
    "preferred": (0, 1),
    "delivered": (0, 1),
    "success": (0, 1),
}
"""Lowest and highest value of outcomes with these names: the bounds of the metrics made from them."""


class Participant(Model):
    """Who takes part. The environment is a participant but never a teammate."""

    name: str
    kind: ParticipantKind
    model: str | None = None
    """The language model behind an agent, or behind a simulated human."""
    simulated: bool = False
    """True where a model plays the human."""
    tokens: dict[str, Count] = Field(default_factory=dict)
    """`prompt_tokens` and `completion_tokens` of the whole session, where the log says so."""


class Outcome(Model):
    """What came of a trajectory under one name: a number, a text, or neither with the reason."""

    name: str
    value: FiniteFloat | None = None
    text: str | None = None
    baseline: str | None = None
    """For `preferred`: what this trajectory was compared with."""
    reason: str | None = None
    data: JsonValue = None
    """Details as the system logged them, such as the criteria behind a score."""

    @model_validator(mode="before")
    @classmethod
    def _in_range(cls, fields: Any) -> Any:
        """NaN, which tables write for an empty cell, and what no table holds are none, with the reason.

        Of names with a range: a text that is a number is one, and what can't be one of them is none. Cut to
        its range it would be a wrong one.
        """
        if not isinstance(fields, dict):
            return fields
        text, value = fields.get("text"), fields.get("value")
        if isinstance(value, (int, float)) and not is_finite(value):
            return {**fields, "value": None, "reason": f"not a finite number: {value!r:.40}"}
        if fields.get("name") not in _RANGES:
            return fields
        if value is None and isinstance(text, str):
            value = decimal_in(text)
            if value is None:
                return {**fields, "reason": f"{fields['name']} must be a number, got {text[:40]!r}"}
        wrong = _out_of_range(fields["name"], value) if isinstance(value, (int, float)) else None
        return {**fields, "value": value} if wrong is None else {**fields, "value": None, "reason": wrong}

    @property
    def inferred(self) -> str | None:
        """What it follows from, where no log says it."""
        why = self.data.get("inferred") if isinstance(self.data, dict) else None
        return why if isinstance(why, str) else None


def is_finite(value: float) -> bool:
    """Whether tables can hold a number: it is neither NaN nor infinite, nor an integer beyond all floats."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def number_in(text: str) -> float | None:
    """The number that a text stands for, None where it is none; true and false are 1 and 0."""
    word = text.strip().lower()
    try:
        return float({"true": "1", "false": "0"}.get(word, word))
    except ValueError:
        return None


_COMMA = re.compile(r"\d,\d")
_DECIMAL_COMMA = re.compile(r"(-?)(0|[1-9]\d*),(\d+)")


def with_point(text: str) -> str:
    """A text with its decimal comma as a point (4,5); one that may part thousands (1,234) stays."""
    match = _DECIMAL_COMMA.fullmatch(text.strip())
    if match and (match[2] == "0" or len(match[3]) != 3):
        return "".join((match[1], match[2], ".", match[3]))
    return text


def decimal_in(text: str) -> float | None:
    """As `number_in`, also with a decimal comma."""
    return number_in(with_point(text))


def outcome_name(name: str) -> str:
    """The name of an outcome, whatever the case of one that metrics are made from."""
    return own if (own := bare(name)) in _RANGES else name


def _out_of_range(name: str, value: float) -> str | None:
    low, high = _RANGES.get(name, (-math.inf, math.inf))
    return None if low <= value <= high else f"{name} must be from {low} to {high}, got {value:g}"


class GivenOutcome(Model):
    """An outcome that a person brings in: `outcome_rating`, `satisfaction`, `preferred` (1 or 0) ..."""

    trajectory: str
    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    value: FiniteFloat
    baseline: str | None = None

    @field_validator("value", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        number = decimal_in(value)
        if number is None and _COMMA.search(value):
            raise ValueError(f"write a number with a point alone, such as 1234.5, got {value[:40]!r}")
        return value if number is None else number

    @model_validator(mode="after")
    def _in_range(self) -> GivenOutcome:
        if (wrong := _out_of_range(self.name, self.value)) is not None:
            raise ValueError(wrong)
        return self

    def outcome(self) -> Outcome:
        """The same as an outcome of its trajectory."""
        return Outcome(name=self.name, value=self.value, baseline=self.baseline)


FIELDS = ("system", "setting", "condition", "task", "instance", "agent", "agent_model")
"""The fields by which trajectories are told apart, beside their tags."""


class Trajectory(Model):
    """One run of a team on a task, as a reader yields it and `trajectory show` prints it."""

    id: str
    native_id: str
    """The id that its own system gave it."""
    source: str
    """Where it was read."""
    system: str
    setting: Setting | None = None
    condition: str | None = None
    """The experiment's arm; by default the name of the folder above."""
    task: str | None = None
    instance: str | None = None
    """Which instance of the task, so that runs on the same one can be paired."""
    agent: str | None = None
    """The agent's scaffolding."""
    agent_model: str | None = None
    tags: dict[str, str] = Field(default_factory=dict)
    participants: tuple[Participant, ...]
    events: EventTuple
    outcomes: tuple[Outcome, ...] = ()
    states: dict[str, JsonValue] = Field(default_factory=dict)
    """Hash -> state; every hash that an event points at."""
    hidden: JsonValue = None
    """What only the (simulated) human knew. Never shown to a judge or an annotator unless asked for."""

    def participant(self, name: str) -> Participant:
        """The participant of that name; KeyError names the ones there are."""
        for participant in self.participants:
            if participant.name == name:
                return participant
        raise KeyError(
            f"no participant {name!r}, expected one of {', '.join(p.name for p in self.participants)}"
        )

    @property
    def copy_of(self) -> str | None:
        """The record of which this one is no more than the beginning: nothing in it counts once more."""
        return self.tags.get(COPY)

    @property
    def result(self) -> str | None:
        """The final text of the team's work, where the log holds it."""
        return next((o.text for o in self.outcomes if o.name == "result" and o.text is not None), None)

    def field(self, name: str) -> str | None:
        """One of FIELDS, or the tag of that name."""
        return getattr(self, name) if name in FIELDS else self.tags.get(name)

    def team(self) -> tuple[Participant, ...]:
        """Everybody but the environment."""
        return tuple(p for p in self.participants if p.kind != "environment")


class Quarantined(Model):
    """A piece of input that could not be read, and why; everything around it was."""

    source: str
    line: int | None = None
    """1-based line, or None where the whole source is meant."""
    reason: str

    def __str__(self) -> str:
        """`source:line: reason` on one line."""
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        return one_line(f"{place}: {self.reason}")


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule found something in a trajectory; `cites` are the seqs of the events that show it."""

    code: str
    trajectory: str
    cites: tuple[int, ...]
    why: str


def recorded_outcome(trajectory: Trajectory, name: str) -> Outcome:
    """The outcome of that name; where there is none, an outcome without value that says so."""
    for outcome in trajectory.outcomes:
        if outcome.name == name:
            return outcome
    return Outcome(name=name, reason=f"the log records no {name}")
