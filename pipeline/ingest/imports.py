"""Ratings and outcomes from outside: each line checked against what is in the store, then into a ledger."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from ...schemas import Codebook, Quarantined, Rating
from ...schemas.trajectory import GivenOutcome
from ..errors import SourceError
from ..store import Store, dictionaries, ledger, rows
from ..store.aside import aside, parts
from ..systems.base import numbered_lines, only_object, parsed
from . import labels
from .checks import Checker, Claim, Facts, Key, Names, Said, key_of, said_of

FEW = 2
"""So many lines that are no JSON are told one by one, where a file of JSON by name has no others."""
JSON = (".jsonl", ".ndjson", ".json")
TABLE = "a table of labels is read with --map (docs/labels.md)"
OUTCOME = 'an outcome is {"trajectory": ..., "name": ..., "value": ...}'
AT_ONCE = 20_000
"""Lines that are held against the store at a time."""
MARKS = 200
"""Likewise what was marked in a trajectory, of which each stands for a rating of each of its units."""
Checked = TypeVar("Checked")
_About = tuple[str, str, str | None]
"""Which outcome of a trajectory, and over what it was preferred."""


@dataclass
class Imported:
    """What an import did; `unchanged` lines said what was known."""

    imported: int = 0
    unchanged: int = 0
    changed: int = 0
    """Those of the imported that replace another label of the same rater, or another value."""
    contradicted: list[str] = field(default_factory=list)
    """Where a line says otherwise than one before it in the same import, which it replaces."""
    quarantined: list[Quarantined] = field(default_factory=list)


@dataclass(frozen=True)
class Given:
    """One rating as somebody gives it, and where it was read."""

    source: str
    line: int | None
    said: dict[str, Any]
    rest: str | None = None
    """The label of every other unit of the trajectory, which its rater looked at and did not mark."""


@dataclass(frozen=True)
class Mark:
    """What a rater marked of one code in a trajectory, and the label of what they did not."""

    rating: Rating
    """One of them."""
    rest: str
    events: set[int | None] = field(default_factory=set)


def ratings(store: Store, path: Path, mapping: labels.LabelMapping | None = None) -> Imported:
    """Import the ratings of a JSON Lines file, or with a mapping those of any; a line that does not fit is
    quarantined with the reason."""
    result = Imported()
    if not path.is_file():
        raise SourceError(f"{path}: no such file")
    if mapping is None:
        return taken(store, (Given(str(path), *line) for line in _objects(path, result, TABLE)), result)
    return taken(store, _mapped(path, mapping, result), result)


def taken(store: Store, lines: Iterable[Given], result: Imported) -> Imported:
    """Import ratings that were read somewhere, some at a time."""
    intake = _Intake(Checker(store), result)
    said = map(intake.fresh, parts(lines, AT_ONCE))
    left = map(intake.rest, parts(intake.marks(), MARKS))
    _append(store, itertools.chain(said, left))
    return result


class _Intake:
    """Which of many ratings fit and say something new; what does not fit is in `result`."""

    def __init__(self, checker: Checker, result: Imported) -> None:
        self._checker, self._result = checker, result
        self._said: dict[Key, tuple[int | None, Said]] = {}
        """What this import said last, and in which line."""
        self._marks: dict[tuple[str, ...], Mark] = {}

    def fresh(self, lines: Sequence[Given]) -> list[Rating]:
        """The ratings of these lines that say something new."""
        claims = [_tried(line, partial(self._checker.claim, line.said)) for line in lines]
        facts = self._checker.facts([claim for claim in claims if isinstance(claim, Claim)])
        fresh = []
        for line, claim in zip(lines, claims, strict=True):
            rating = (
                _tried(line, partial(self._checker.rating, claim, facts))
                if isinstance(claim, Claim)
                else claim
            )
            if isinstance(rating, Quarantined):
                self._result.quarantined.append(rating)
                continue
            if line.rest is not None and isinstance(claim, Claim):
                self._mark(rating, line, claim.book)
            if self._is_new(line, rating, facts):
                fresh.append(rating)
        self._result.imported += len(fresh)
        return fresh

    def _is_new(self, line: Given, rating: Rating, facts: Facts) -> bool:
        key, said = key_of(rating), said_of(rating)
        before = self._said.get(key)
        if before is None and (key, said) in facts.earlier:
            self._result.unchanged += 1
            return False
        self._said[key] = (line.line, said)
        if before and before[1].label != said.label and before[1].rater_version == said.rater_version:
            self._result.contradicted.append(_contradiction(line, rating, before[0], before[1].label))
        there = before[1] if before else facts.known.get(key)
        if there == said:
            self._result.unchanged += 1
            return False
        self._result.changed += there is not None
        return True

    def _mark(self, rating: Rating, line: Given, book: Codebook) -> None:
        about = (rating.trajectory, rating.codebook, rating.code, rating.rater)
        if about not in self._marks:
            try:
                self._marks[about] = Mark(rating, book.label(line.rest or ""))
            except ValueError as error:
                raise SourceError(f"{line.source}: [constants] rest: {error}") from error
        self._marks[about].events.add(rating.event)

    def marks(self) -> Iterator[Mark]:
        """Once all lines are read, what each rater marked of a code in a trajectory."""
        yield from self._marks.values()

    def rest(self, marks: Sequence[Mark]) -> list[Rating]:
        """The label of what nobody marked, one for each rater, code and unit."""
        fields = {"trajectory", "codebook", "code", "rater", "rater_kind"}
        said = [(mark, mark.rating.model_dump(include=fields)) for mark in marks]
        places = self._checker.places([mark.rating for mark in marks])
        return self.fresh(
            [
                Given("", None, {**given, "event": event, "label": mark.rest})
                for mark, given in said
                for event in places[mark.rating.trajectory, mark.rating.codebook]
                if event not in mark.events
            ]
        )


def _tried(line: Given, check: Callable[[], Checked]) -> Checked | Quarantined:
    """What a check makes of a line, or why the line does not fit."""
    try:
        return check()
    except (ValueError, ValidationError) as error:
        return Quarantined(source=line.source, line=line.line, reason=_reason(error))


def _contradiction(line: Given, rating: Rating, before: int | None, label: str | None) -> str:
    """A sentence on a line that says otherwise than an earlier one."""
    place = line.source if line.line is None else f"{line.source}:{line.line}"
    unit = rating.trajectory if rating.event is None else f"event {rating.event} of {rating.trajectory}"
    earlier = "a line before" if before is None else f"line {before}"
    return (
        f"{place}: {rating.rater} on {rating.code} of {unit} is {rating.label!r} here and {label!r} in "
        f"{earlier}; the last counts"
    )


def _mapped(path: Path, mapping: labels.LabelMapping, result: Imported) -> Iterator[Given]:
    for item in labels.read(path, mapping):
        if isinstance(item, Quarantined):
            result.quarantined.append(item)
        else:
            yield Given(str(path), item.line, item.said, mapping.constants.rest)


def outcomes(store: Store, path: Path) -> Imported:
    """Import outcomes that people gave; a line that does not fit is quarantined with the reason."""
    result = Imported()
    with store.reading() as connection:
        names = Names(connection)
    known = _given(store)
    said: dict[_About, tuple[int, GivenOutcome]] = {}
    for number, line in _objects(path, result, OUTCOME):
        try:
            given = GivenOutcome.model_validate(line)
            given = given.model_copy(update={"trajectory": names.resolve(given.trajectory)})
        except (ValueError, ValidationError) as error:
            result.quarantined.append(Quarantined(source=str(path), line=number, reason=_reason(error)))
            continue
        before = said.get(about := _about(given))
        if before and before[1] == given:
            result.unchanged += 1
        elif before:
            result.contradicted.append(_otherwise(path, number, given, *before))
        said[about] = (number, given)
    fresh = [given for about, (_, given) in said.items() if known.get(about) != given]
    if fresh:
        store.admit_writes()
        store.workspace.outcomes.append(given.model_dump_json() for given in fresh)
        store.sync(lags=True)
    result.imported = len(fresh)
    result.changed = sum(_about(given) in known for given in fresh)
    result.unchanged += len(said) - len(fresh)
    return result


def _about(given: GivenOutcome) -> _About:
    return given.trajectory, given.name, given.baseline


def _otherwise(path: Path, line: int, given: GivenOutcome, before: int, earlier: GivenOutcome) -> str:
    """A sentence on a line that gives another value than an earlier one."""
    over = "" if given.baseline is None else f" over {given.baseline}"
    return (
        f"{path}:{line}: {given.name}{over} of {given.trajectory} is {given.value:g} here and "
        f"{earlier.value:g} in line {before}; the last counts"
    )


def _given(store: Store) -> dict[_About, GivenOutcome]:
    """What the ledger of outcomes holds, the last of each."""
    items = [item for _, _, item in ledger.outcomes(store.workspace.outcomes)]
    return {_about(one): one for one in items if not isinstance(one, Quarantined)}


def exported(store: Store) -> Iterator[str]:
    """Every rating that holds, as the lines `ratings import` reads; what earlier versions of a judge said of
    a unit stands before its last word."""
    query = """
        SELECT * EXCLUDE (is_last) FROM held_ratings
        ORDER BY codebook, code, rater, trajectory_id, event, repeat, ledger, line
    """
    with store.reading() as connection:
        held = aside(connection, query)
    return (rows.to_rating(row).model_dump_json(exclude_defaults=True) + "\n" for row in held)


def uncounted(store: Store) -> list[dict[str, Any]]:
    """Every rating that holds and does not count, with the reason."""
    query = """
        SELECT trajectory_id AS trajectory, event, codebook, code, rater, label, reason
        FROM uncounted_ratings ORDER BY ALL
    """
    with store.reading() as connection:
        return dictionaries(connection, query)


def _append(store: Store, fresh: Iterable[list[Rating]]) -> None:
    """Write down what is new, all or nothing; an import of nothing new makes no file."""
    lines = [ledger.line(rating) for some in fresh for rating in some]
    if not lines:
        return
    store.admit_writes()
    with store.workspace.new_ratings() as file:
        file.write_lines(lines)
        file.flush()
    store.sync(lags=True)


def _objects(path: Path, result: Imported, hint: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file of JSON Lines; of one in which no line is JSON it is said once, with a hint."""
    if not path.is_file():
        raise SourceError(f"{path}: no such file")
    wrong: list[Quarantined] = []
    no_json = True
    for number, raw in numbered_lines(path):
        value = parsed(raw, str(path), number)
        no_json = no_json and isinstance(value, Quarantined)
        line = only_object(value, str(path), number)
        if isinstance(line, Quarantined):
            wrong.append(line)
        elif twice := _said_twice(raw or b""):
            reason = f"{twice}: said twice in one object; which one holds?"
            wrong.append(Quarantined(source=str(path), line=number, reason=reason))
        else:
            yield number, line
    if no_json and (len(wrong) > FEW or (wrong and path.suffix.lower() not in JSON)):
        lines = "its line is no JSON" if len(wrong) == 1 else f"none of its {len(wrong)} lines is JSON"
        wrong = [Quarantined(source=str(path), reason=f"{lines}; {hint}")]
    result.quarantined.extend(wrong)


def _said_twice(line: bytes) -> str | None:
    """A key that an object of the line has twice, of which a parser keeps the last without a word."""
    twice: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in items]
        twice.extend(key for key in dict.fromkeys(keys) if keys.count(key) > 1)
        return dict(items)

    json.loads(line.removeprefix(b"\xef\xbb\xbf"), object_pairs_hook=pairs)
    return twice[0] if twice else None


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, e['loc'])) or 'line'}: {e['msg']}" for e in error.errors())
    return str(error)
