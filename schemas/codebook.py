"""A codebook: what is rated, with which labels, and what each code means."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import isfinite
from typing import Any, Literal

from pydantic import Field, computed_field, model_validator

from .base import Model, content_hash
from .text import bare, nfc
from .trajectory import FIELDS, Trajectory, with_point

UnitKind = Literal["utterance", "question_reply", "human_message", "step", "participant", "trajectory"]
Level = Literal["nominal", "ordinal", "interval"]
ContextKind = Literal["none", "preceding", "transcript"]
Views = Literal["team", "all"]
ErrorSource = Literal["model", "scaffolding", "both"]
UNCLEAR = "unclear"
"""Permitted everywhere; it counts as missing unless the codebook declares it a label."""


class Example(Model):
    """A unit with its label and why it has it."""

    text: str
    """The words of the unit."""
    reply: str | None = None
    """The reply, where the unit is a question with its reply."""
    label: str
    """The label that a rater should give."""
    why: str | None = None
    """Why it has this label, in one sentence."""


class Code(Model):
    """One thing to look for."""

    code: str
    """Its id in ratings and tables, such as `C.1`."""
    name: str
    """Its name for people."""
    definition: str
    """What it is, as raters read it."""
    category: str | None = None
    """The id of its category, where the codebook has categories."""
    counts: tuple[str, ...] = ()
    """What counts as this code."""
    does_not_count: tuple[str, ...] = ()
    """What may look like this code and is not."""
    error_source: ErrorSource | None = None
    """For failure modes: what is usually behind it, the language model, the scaffolding or both."""
    examples: tuple[Example, ...] = ()
    """Units with the label that they should get."""


class Category(Model):
    """A group of codes that is also reported as a whole (the union of its codes)."""

    category: str
    """Its id, which codes name."""
    name: str
    """Its name for people."""
    definition: str
    """What its codes have in common."""


class Codebook(Model):
    """What raters answer: one question for each code and unit, with declared labels."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    """Its id in commands, ratings and tables: lower-case letters, digits and `_`."""
    title: str
    """Its name for people."""
    unit: UnitKind
    """What is rated as one: an `utterance`, a `question_reply`, a `human_message`, a `step` (whatever a team
    member said or did at a time), a `participant` (all that one of them did), or the whole `trajectory`."""
    context: ContextKind = "none"
    """What a judge sees beside the unit: `none`, `preceding` (never the future) or the `transcript`. Of a
    whole trajectory `none` is what the team ended with, where the log holds that."""
    views: Views = "team"
    """Which states raters are shown with events: `team`, what all members see and what an action
    gave its agent, or `all`, also what members see alone, where that is asked about (their goals)."""
    level: Level = "nominal"
    """The scale of the labels: `nominal` (names), `ordinal` (ranks) or `interval` (distances mean something).
    It decides which agreement coefficients there are."""
    labels: tuple[str, ...] = Field(min_length=2)
    """All labels in their order; for ordinal and interval levels they are numbers. Of two the first is
    the one that is counted (`yes`, `present`): rates, sensitivity and comparisons are of it."""
    question: str
    """What is asked about a unit, in one sentence."""
    guidance: str = ""
    """What a rater should know before the first unit."""
    prompt: str | None = None
    """A judge's instructions in place of the ones made from this codebook."""
    applies_to: dict[str, str] = Field(default_factory=dict)
    """Which trajectories it is for: field of a trajectory or tag -> the value it must have; none: all."""
    made_for: tuple[str, ...] = ()
    """Systems whose sessions it was made for; none: any. It can rate all, and is proposed for these."""
    origin: str | None = None
    """The publication that the definitions follow."""
    categories: tuple[Category, ...] = ()
    """Groups of codes that are also reported as a whole."""
    codes: tuple[Code, ...] = Field(min_length=1)
    """What to look for; each is a question of its own."""

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def version(self) -> str:
        """Content hash: two codebooks with one version say the same. 12 hexadecimal digits.

        Of whom it is asked and what raters are shown is no part of it: ratings stay what they were when that
        changes.
        """
        beside = {"version", "applies_to", "made_for", "views"}
        return content_hash(self.model_dump(exclude=beside))[:12]

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Codebook:
        """As pydantic's, but that a copy has a version of its own."""
        copy = super().model_copy(update=update, deep=deep)
        copy.__dict__.pop("version", None)
        return copy

    def applies(self, trajectory: Trajectory) -> bool:
        """Whether it is asked of this trajectory."""
        return all(trajectory.field(name) == value for name, value in self.applies_to.items())

    @property
    def positive(self) -> str:
        """The label that says the code is there: the first one (`yes`, `present`)."""
        return self.labels[0]

    @property
    def binary(self) -> bool:
        """Two nominal labels: there or not there."""
        return self.level == "nominal" and len(self.labels) == 2

    @property
    def finding(self) -> str | None:
        """The label that says that something is there, and needs evidence: the positive one of two. None on a
        scale or of more labels, where none says less than another."""
        return self.positive if self.binary else None

    @property
    def answers(self) -> tuple[str, ...]:
        """Everything a rater may answer: the labels, and `unclear`."""
        return self.labels if UNCLEAR in self.labels else (*self.labels, UNCLEAR)

    @property
    def scope(self) -> str:
        """Of which trajectories it is asked, in words; empty where it is of all."""
        return ", ".join(f"{name} = {value}" for name, value in self.applies_to.items())

    def code(self, name: str) -> Code:
        """The code of that name; KeyError names the ones there are."""
        text = nfc(name)
        for code in self.codes:
            if nfc(code.code) == text:
                return code
        raise KeyError(f"codebook {self.name!r} has no code {name!r}, expected one of {self._code_names()}")

    def label(self, answer: str) -> str:
        """The declared label that an answer means, case, surrounding space, how an accented letter is encoded
        and how a number is written aside; else ValueError."""
        text = bare(answer)
        for label in self.answers:
            if bare(label) == text:
                return label
        for label in self.answers:
            if (number := _number(label)) is not None and number == _number(text):
                return label
        raise ValueError(f"label must be one of {', '.join(self.answers)} ({self.name}), got {answer[:80]!r}")

    def _code_names(self) -> str:
        return ", ".join(code.code for code in self.codes)

    @model_validator(mode="before")
    @classmethod
    def _without_unclear(cls, data: Any) -> Any:
        """`unclear` is an answer of every codebook, and no place on a scale."""
        if isinstance(data, dict) and data.get("level", "nominal") != "nominal":
            labels = data.get("labels")
            if isinstance(labels, list | tuple):
                return {**data, "labels": [label for label in labels if bare(str(label)) != UNCLEAR]}
        return data

    @model_validator(mode="after")
    def _check_consistency(self) -> Codebook:
        names = [code.code for code in self.codes]
        if len({nfc(name) for name in names}) != len(names):
            raise ValueError(f"codes must differ, got {self._code_names()}")
        if len({bare(label) for label in self.labels}) != len(self.labels):
            raise ValueError(f"labels must differ, case aside, got {', '.join(self.labels)}")
        if self.level != "nominal":
            self._check_numbers()
        self._check_scope()
        categories = {category.category for category in self.categories}
        for code in self.codes:
            if code.category is not None and code.category not in categories:
                raise ValueError(
                    f"code {code.code}: category {code.category!r} is not declared, have {sorted(categories)}"
                )
            for example in code.examples:
                self._check_example(code.code, example.label)
        return self

    def _check_scope(self) -> None:
        for name, value in self.applies_to.items():
            if name in Trajectory.model_fields and name not in FIELDS:
                raise ValueError(
                    f"applies_to: {name!r} tells no trajectories apart, expected {', '.join(FIELDS)} or a tag"
                )
            if not name or not value:
                raise ValueError('applies_to: a field and its value are needed, such as task = "lesson"')

    def _check_example(self, code: str, label: str) -> None:
        try:
            self.label(label)
        except ValueError as error:
            raise ValueError(f"code {code}: an example's {error}") from error

    def _check_numbers(self) -> None:
        wrong = f"{self.level} labels must be numbers, got {', '.join(self.labels)}"
        try:
            values = [float(label) for label in self.labels]
        except ValueError as error:
            raise ValueError(wrong) from error
        if not all(map(isfinite, values)):
            raise ValueError(wrong)
        if values != sorted(set(values)):
            raise ValueError(f"{self.level} labels must ascend, got {', '.join(self.labels)}")


def _number(text: str) -> float | None:
    """The number that a text is, also with a decimal comma; None for any other."""
    try:
        return float(with_point(text))
    except ValueError:
        return None
