"""Labels in anybody's tables and JSON, read through a mapping file: who said what of which unit.

Each record, or each item of one list in it, is a label; `[raters]` and `[codes]` have a column, or a path,
for each rater or code instead. docs/labels.md is the reference.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from ...schemas import Model, Quarantined, toml
from ...schemas.rating import RaterKind
from ...schemas.text import bare, count_of
from ..errors import SourceError
from ..systems.base import items_until_failure
from ..systems.formats.fields.mapping import Filter, Input, explanation
from ..systems.formats.fields.paths import (
    Condition,
    Getter,
    check_pattern,
    escape_key,
    expression,
    fits,
    getter,
    steps,
)
from ..systems.formats.files import inputs
from ..systems.formats.messages import turns

FIELDS = (
    "trajectory",
    "event",
    "participant",
    "code",
    "label",
    "rater",
    "rationale",
    "created",
    "probability",
)
NAMED = 12
"""At most so many columns are named in a message."""
_WHOLE = re.compile(r"(\d+)(?:\.0+)?")
"""A whole number, as a table may write it."""
_OFTEN_EMPTY = ("event", "rationale", "created", "probability")
"""Fields that nobody need have filled in."""


class Constants(Model):
    """What no field says."""

    codebook: str | None = None
    code: str | None = None
    rater: str | None = None
    rater_kind: RaterKind = "human"
    label: str | None = None
    rest: str | None = None
    """The label of every other unit of a trajectory of which a rater labelled some: what is not marked."""


class Fields(Model):
    """Paths to what is said of each label; `trajectory` must be there."""

    trajectory: str
    event: str | None = None
    participant: str | None = None
    code: str | None = None
    label: str | None = None
    rater: str | None = None
    rationale: str | None = None
    created: str | None = None
    probability: str | None = None


class LabelMapping(Model):
    """A mapping file for labels, checked."""

    input: Input = Input()
    constants: Constants = Constants()
    rating: Fields
    raters: dict[str, str] = Field(default_factory=dict)
    """Rater -> path of their label, where each has a column."""
    codes: dict[str, str] = Field(default_factory=dict)
    """Code -> path of its label, where each has a column."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Value of the log -> label of the codebook; an empty text leaves it out, of `rest` too."""
    filter: Filter = Filter()
    """Which labels to take, by what stands beside them: not those that somebody discarded, of whose units
    `rest` says nothing either."""
    patterns: dict[Literal["trajectory", "event", "participant", "code", "label", "rater"], str] = Field(
        default_factory=dict
    )
    """Field -> regular expression, of whose match (its first group, if it has one) the value is."""

    def check(self) -> None:
        """ValueError for what the types alone cannot tell."""
        if self.constants.codebook is None:
            raise ValueError("constants.codebook: missing, it names the codebook of the labels")
        if not (self.rating.code or self.codes or self.constants.code):
            raise ValueError("rating.code: missing, give the path of the code, constants.code or [codes]")
        if not (self.rating.rater or self.raters or self.constants.rater):
            raise ValueError("rating.rater: missing, give the path of the rater, constants.rater or [raters]")
        if self.raters and self.codes:
            raise ValueError("a column has a rater's labels ([raters]) or a code's ([codes]), got both")
        if not (self.rating.label or self.raters or self.codes or self.constants.label):
            raise ValueError(
                "rating.label: missing, give the path of the label, constants.label, [raters] or [codes]"
            )
        for key, path in self.paths():
            steps(path)
            if path.count("[]") > 1:
                raise ValueError(f"{key}: labels are in one list of a record, got {path!r}")
        lists = {path.partition("[]")[0] for _, path in self.paths() if "[]" in path}
        if len(lists) > 1:
            raise ValueError(f"rating: labels are in one list of a record, got {' and '.join(sorted(lists))}")
        ends = {path.partition("[]")[2] == "" for _, path in self.paths() if "[]" in path}
        if len(ends) > 1:
            (at,) = lists
            raise ValueError(f"rating: items of {at} are values ({at}[]) or have fields ({at}[].…), got both")
        for pattern in self.patterns.values():
            expression(pattern)
        for values in itertools.chain(*(condition.values() for condition in self._conditions())):
            for one in values if isinstance(values, list) else [values]:
                check_pattern(one)

    def paths(self) -> Iterator[tuple[str, str]]:
        """Every path with the key that has it."""
        yield from (
            (f"rating.{name}", path) for name, path in self.rating.model_dump(exclude_none=True).items()
        )
        yield from ((f"raters.{name}", path) for name, path in self.raters.items())
        yield from ((f"codes.{name}", path) for name, path in self.codes.items())
        yield from (("filter", path) for condition in self._conditions() for path in condition)

    def _conditions(self) -> list[Condition]:
        return [*self.filter.keep, *self.filter.skip]

    @property
    def items_at(self) -> str | None:
        """Path of the list of labels in a record; None where a record is a label."""
        return next((path.partition("[]")[0] for _, path in self.paths() if "[]" in path), None)


@dataclass(frozen=True)
class LoggedLabel:
    """One label as it was logged: its values as `ratings import` takes them, and its line."""

    line: int | None
    values: dict[str, Any]
    counts: bool = True
    """False where `[labels]` or `[filter]` left it out: its unit is then none that a rater left unmarked."""


def parse(text: str, name: str) -> LabelMapping:
    """A mapping of labels from its TOML; SourceError names the file, the key and the rule."""
    try:
        document = toml.parse(text)
        if "rating" not in document:
            of_logs = document.keys() & {"event", "messages", "spans"}
            kind = "a mapping of logs, for `ingest`" if of_logs else "no mapping of labels"
            raise ValueError(f"{kind}: a mapping of labels has a table [rating] (docs/labels.md)")
        mapping = LabelMapping.model_validate(document)
        mapping.check()
    except ValidationError as error:
        raise SourceError(f"{name}: {explanation(error, LabelMapping)}") from error
    except ValueError as error:
        raise SourceError(f"{name}: {error}") from error
    return mapping


def read(path: Path, mapping: LabelMapping) -> Iterator[LoggedLabel | Quarantined]:
    """The labels of a file. A record without any is quarantined with its number, and a path of the mapping at
    which no record has anything with the columns that there are."""
    reading = _Reading(mapping)
    records = 0
    for number, record in inputs.records(path, mapping.input, as_written=True):
        if isinstance(record, Quarantined):
            yield record
        elif not isinstance(record, dict):
            yield Quarantined(source=str(path), line=number, reason="expected an object")
        else:
            records += 1
            for item in items_until_failure(reading.labels(number, record), str(path), number):
                if isinstance(item, str):
                    yield Quarantined(source=str(path), line=number, reason=item)
                elif isinstance(item, Quarantined) or item.counts or mapping.constants.rest is not None:
                    yield item
    for reason in reading.empty(records):
        yield Quarantined(source=str(path), reason=reason)


class _Reading:
    """A mapping of labels with its paths made into functions."""

    def __init__(self, mapping: LabelMapping) -> None:
        self.mapping = mapping
        self.at = mapping.items_at
        self.plain = any(path == f"{self.at}[]" for _, path in mapping.paths())
        """Whether the items of the list are values, labels or codes, and not objects."""
        inside = getter(self.at)
        self.items: Getter = (
            (lambda record: turns.decode_value(inside(record)))
            if self.plain
            else (lambda record: turns.events_in(record, self.at or "", None))
        )
        self.fields = {name: self._getter(getattr(mapping.rating, name)) for name in FIELDS}
        self.raters = {name: self._getter(path) for name, path in mapping.raters.items()}
        self.codes = {name: self._getter(path) for name, path in mapping.codes.items()}
        self.meanings = {bare(key): label for key, label in mapping.labels.items()}
        self.meanings |= mapping.labels
        self.patterns = {name: expression(pattern) for name, pattern in mapping.patterns.items()}
        self.conditions = {path: self._getter(path) for key, path in mapping.paths() if key == "filter"}
        self.n_kept = 0
        self.empty_paths = {
            (key, path): self._getter(path)
            for key, path in mapping.paths()
            if key.removeprefix("rating.") not in _OFTEN_EMPTY
        }
        """The keys of the mapping with their paths, for which no record had a value so far."""
        self.columns: dict[str, None] = {}
        """Names in the first records, for messages."""

    def empty(self, records: int) -> Iterator[str]:
        """A sentence for each path of the mapping at which none of so many records has a value."""
        there = ", ".join(map(repr, itertools.islice(self.columns, NAMED)))
        for key, path in self.mapping.paths():
            if records and (key, path) in self.empty_paths:
                spelling = f"a column of that name is written {escape_key(path)}"
                hint = spelling if path in self.columns and escape_key(path) != path else f"they have {there}"
                yield (
                    f"{key}: none of {count_of(records, 'record', 'records')} has anything at "
                    f"{path!r}; {hint}"
                )
        if records and not self.n_kept and self.conditions:
            yield f"filter: takes no label of {count_of(records, 'record', 'records')}"

    def labels(self, number: int | None, record: dict[str, Any]) -> Iterator[LoggedLabel | str]:
        """Every label of a record; a sentence in place of what is no label."""
        if len(self.columns) < NAMED:
            self.columns |= dict.fromkeys(record)
        self.empty_paths = {
            (key, path): at
            for (key, path), at in self.empty_paths.items()
            if "[]" in path or at(record, None) in (None, "")
        }
        items = [record] if self.at is None else self.items(record)
        if items in (None, ""):
            return
        if not isinstance(items, list):
            yield f"{self.at}: expected a list of labels"
            return
        for item in items:
            if isinstance(item, dict) or self.plain:
                self.empty_paths = {
                    key: at for key, at in self.empty_paths.items() if at(record, item) in (None, "")
                }
                takes = self._is_kept(record, item)
                self.n_kept += takes
                for values in self._values(record, item):
                    yield LoggedLabel(number, values, counts=takes and values["label"] != "")
            else:
                yield f"{self.at}: expected objects in the list"

    def _values(self, record: dict[str, Any], item: Any) -> Iterator[dict[str, Any]]:
        """The values of each label of an item; its label is empty where `[labels]` leaves it out."""
        constants = self.mapping.constants
        values = {name: self._value(name, at(record, item)) for name, at in self.fields.items()}
        values = {name: value for name, value in values.items() if value not in (None, "")}
        base = {
            "codebook": constants.codebook,
            "rater_kind": constants.rater_kind,
            **{
                name: constant
                for name in ("code", "rater", "label")
                if (constant := getattr(constants, name))
            },
            **values,
        }
        for rater, at_rater in (self.raters or {"": None}).items():
            for code, at_code in (self.codes or {"": None}).items():
                lookup = at_rater or at_code
                value = self._value("label", lookup(record, item)) if lookup else base.get("label")
                label = None if value is None else self._label(value)
                if label is not None and (value, label) != ("", ""):
                    names = {**({"rater": rater} if rater else {}), **({"code": code} if code else {})}
                    yield {**base, **names, "label": label}

    def _is_kept(self, record: dict[str, Any], item: Any) -> bool:
        rules = self.mapping.filter

        def at(path: str) -> Any:
            return self.conditions[path](record, item)

        is_kept = not rules.keep or any(fits(condition, at) for condition in rules.keep)
        return is_kept and not any(fits(condition, at) for condition in rules.skip)

    def _getter(self, path: str | None) -> Any:
        if path is None:
            return lambda record, item: None
        if path == f"{self.at}[]":
            return lambda record, item: item
        if self.at is not None and path.startswith(f"{self.at}[]."):
            inside: Getter = getter(path.removeprefix(f"{self.at}[]."))
            return lambda record, item: inside(item)
        outside = getter(path)
        return lambda record, item: outside(record)

    def _value(self, name: str, value: Any) -> Any:
        """A value as the mapping's pattern cuts it; of `event` a whole number, also where a text holds it.

        A label that the pattern does not fit stays as it is: it was given, and its codebook refuses it.
        """
        if name in self.patterns and isinstance(value, str):
            match = self.patterns[name].search(value)
            part = match and (match[1] if match.re.groups else match[0])
            value = value if name == "label" and part is None else part
        if name == "event" and isinstance(value, str) and (whole := _WHOLE.fullmatch(value.strip())):
            return int(whole[1])
        if name == "event" and isinstance(value, float) and value.is_integer():
            return int(value)
        return value if name in ("event", "probability", "label") or value is None else plain(value)

    def _label(self, value: Any) -> str:
        """The label that a value stands for, whatever its case and however a number is written."""
        text = plain(value)
        trim = text.strip()
        whole = _WHOLE.fullmatch(trim)
        ways = (text, trim, bare(text), whole[1] if whole else trim)
        return next((self.meanings[way] for way in ways if way in self.meanings), text)


def plain(value: Any) -> str:
    """A name or label as a text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
