"""Ratings and outcomes from outside: each line checked against what is in the store, then into a ledger."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
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
from ..systems.formats import inputs
from ..systems.formats.mapping import Input
from . import labels
from .checks import Checker, Claim, Facts, Key, Names, Said, key_of, said_of

FEW = 2
"""So many lines that are no JSON are told one by one, where a file of JSON by name has no others."""
JSON = (".jsonl", ".ndjson", ".json")
TABLE = "a table of labels is read with --map (docs/labels.md)"
OUTCOME = (
    'an outcome is {"trajectory": ..., "name": ..., "value": ...}, or a row of a table with these columns'
)
TABLES = ("csv", "parquet", "excel")
AT_ONCE = 20_000
"""Lines that are held against the store at a time."""
MARKS = 200
"""Likewise what was marked in a trajectory, of which each stands for a rating of each of its units."""
Checked = TypeVar("Checked")
_MarkKey = tuple[str, str, str, str]
"""Trajectory, codebook, code and rater of what is marked."""
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
    """Where a line says otherwise than one before it in the same import: one of them counts."""
    quarantined: list[Quarantined] = field(default_factory=list)


@dataclass(frozen=True)
class Given:
    """One rating as somebody gives it, and where it was read."""

    source: str
    line: int | None
    said: dict[str, Any]
    rest: str | None = None
    """The label of every other unit of the trajectory, which its rater looked at and did not mark."""
    counts: bool = True
    """Else its mapping leaves it out, and `rest` its unit."""


@dataclass(frozen=True)
class Mark:
    """What a rater marked of one code in a trajectory, and the label of what they did not."""

    source: str
    rating: Rating
    """One of them."""
    rest: str
    events: set[int | None] = field(default_factory=set)


@dataclass(frozen=True)
class Word:
    """What an import says of a question, in which line and when by its own account."""

    line: int | None
    said: Said
    retracted: bool
    created: str | None
    """None where the line does not say."""
    text: bytes
    """As the ledger has it."""

    def is_before(self, other: Word) -> bool:
        """Whether both say when, and this one was earlier."""
        return self.created is not None and other.created is not None and self.created < other.created


def ratings(store: Store, path: Path, mapping: labels.LabelMapping | None = None) -> Imported:
    """Import the ratings of a JSON Lines file, or with a mapping those of any; a line that does not fit is
    quarantined with the reason."""
    result = Imported()
    if not path.is_file():
        raise SourceError(f"{path}: no such file")
    if mapping is None:
        return taken(store, (Given(str(path), *line) for line in _objects(path, result, TABLE)), result)
    return taken(store, _mapped_lines(path, mapping), result)


def taken(store: Store, lines: Iterable[Given | Quarantined], result: Imported) -> Imported:
    """Import ratings that were read somewhere, some at a time; of what could not be read, it is noted."""
    intake = _Intake(Checker(store), result)
    for some in parts(lines, AT_ONCE):
        intake.take(some)
    for marks in parts(intake.marks(), MARKS):
        intake.take_rest(marks)
    _append(store, intake.news())
    return result


class _Intake:
    """Which of many ratings fit and say something new; what does not fit is in `result`."""

    def __init__(self, checker: Checker, result: Imported) -> None:
        self._checker, self._result = checker, result
        self._words: dict[Key, dict[str | None, Word]] = {}
        """What this import says, by version of a judge in the order in which they spoke."""
        self._known: dict[Key, Said | None] = {}
        """What is said there before it."""
        self._earlier: set[tuple[Key, Said]] = set()
        self._marks: dict[_MarkKey, Mark] = {}
        self._left_out: dict[_MarkKey, set[int | None]] = {}
        """The units of what a mapping leaves out."""
        self._doubted: set[tuple[str, Any, Any]] = set()
        """Trajectory, codebook and rater (None: whoever) of lines that were refused."""
        self._unread: Quarantined | None = None
        """The first line that nobody could read, of whatever it is."""

    def take(self, some: Sequence[Given | Quarantined]) -> None:
        """Note what these lines say."""
        unread = [line for line in some if isinstance(line, Quarantined)]
        self._result.quarantined.extend(unread)
        self._unread = self._unread or next((one for one in unread if one.line is not None), None)
        lines = [line for line in some if isinstance(line, Given)]
        claims = [_check_line(line, partial(self._checker.claim, _claim_values(line))) for line in lines]
        facts = self._checker.facts([claim for claim in claims if isinstance(claim, Claim)])
        for line, claim in zip(lines, claims, strict=True):
            rating = (
                _check_line(line, partial(self._checker.rating, claim, facts))
                if isinstance(claim, Claim)
                else claim
            )
            if not line.counts:
                self._leave_out(line, rating)
            elif isinstance(rating, Quarantined):
                self._result.quarantined.append(rating)
                self._doubt(line)
            elif isinstance(claim, Claim):
                if line.rest is not None:
                    self._mark(rating, line, claim.book)
                self._hear(line, rating, claim.rating.created is not None, facts)

    def _hear(self, line: Given, rating: Rating, dated: bool, facts: Facts) -> None:
        """Note a rating: of two of one rater the last counts, or the later where both say when."""
        key, statement = key_of(rating), said_of(rating)
        if key not in self._words:
            self._words[key], self._known[key] = {}, facts.known.get(key)
        words = self._words[key]
        if (key, statement) in facts.earlier:
            self._earlier.add((key, statement))
        created = rating.created if dated else None
        word = Word(line.line, statement, rating.retracted, created, ledger.line(rating))
        version = None if rating.rater_kind == "human" else rating.rater_version
        end = next((one for one in words.values() if one.retracted and word.is_before(one)), None)
        before = next(reversed(words.values()), None) if rating.retracted else words.get(version, end)
        if before and before.said == statement:
            self._result.unchanged += 1
            if before.is_before(word):
                words[version] = word
            return
        late = bool(before and word.is_before(before))
        if before and before.said.label != statement.label:
            self._result.contradicted.append(_contradiction(line, rating, before, late))
        if late:
            return
        if rating.retracted:
            words.clear()
        words.pop(version, None)
        words[version] = word

    def news(self) -> Iterator[bytes]:
        """The lines of the ledger that say something new."""
        for key, words in self._words.items():
            fresh = list(self._fresh(key, [*words.values()]))
            self._result.imported += len(fresh)
            self._result.unchanged += len(words) - len(fresh)
            yield from (word.text for word in fresh)

    def _fresh(self, key: Key, words: Sequence[Word]) -> Iterator[Word]:
        """Those of a question's words that are not there."""
        there = self._known[key]
        *former, last = words
        if last.said == there and all(one.retracted or (key, one.said) in self._earlier for one in former):
            return
        has_begun = False
        for word in words:
            if not has_begun and (key, word.said) in self._earlier:
                continue
            has_begun = True
            if word.said == there or (word.retracted and there is None):
                continue
            self._result.changed += there is not None
            there = word.said
            yield word

    def _doubt(self, line: Given) -> None:
        """Note whose marks are not all known."""
        if line.rest is not None:
            rater = line.said.get("rater")
            with suppress(ValueError):
                trajectory = self._checker.trajectory(str(line.said.get("trajectory")))
                name = rater.strip() if isinstance(rater, str) else None
                self._doubted.add((trajectory, line.said.get("codebook"), name))

    def _leave_out(self, line: Given, rating: Rating | Quarantined) -> None:
        """Note the unit of a line that does not count. One that names none is about none, unless its label
        was left out: that was said of something."""
        if isinstance(rating, Rating):
            self._left_out.setdefault(_mark_key(rating), set()).add(rating.event)
        elif line.said.get("label") == "":
            self._result.quarantined.append(rating)
            self._doubt(line)

    def _mark(self, rating: Rating, line: Given, book: Codebook) -> None:
        about = _mark_key(rating)
        if about not in self._marks:
            try:
                self._marks[about] = Mark(line.source, rating, book.label(line.rest or ""))
            except ValueError as error:
                raise SourceError(f"{line.source}: [constants] rest: {error}") from error
        self._marks[about].events.add(rating.event)

    def marks(self) -> Iterator[Mark]:
        """Once all lines are read, what each rater marked of a code in a trajectory, unless a line of theirs
        was refused, or one of whoever could not be read."""
        if self._marks and self._unread is not None:
            reason = (
                f"[constants] rest: line {self._unread.line} could not be read: what raters left unmarked is "
                "not known"
            )
            self._result.quarantined.append(Quarantined(source=self._unread.source, reason=reason))
            return
        self._spare()
        keys = set()
        for mark in self._marks.values():
            trajectory, book, rater = mark.rating.trajectory, mark.rating.codebook, mark.rating.rater
            if not self._doubted & {(trajectory, book, rater), (trajectory, book, None)}:
                yield mark
            elif (trajectory, book, rater) not in keys:
                keys.add((trajectory, book, rater))
                reason = (
                    f"[constants] rest: a line of {rater} on {book} of {trajectory} was refused: what they "
                    "left unmarked there is not known"
                )
                self._result.quarantined.append(Quarantined(source=mark.source, reason=reason))

    def _spare(self) -> None:
        """Put aside the units of which a line was left out, and tell how many."""
        spared = 0
        for about, mark in self._marks.items():
            left_out = self._left_out.get(about, set()) - mark.events
            mark.events.update(left_out)
            spared += len(left_out)
        if spared:
            reason = (
                f"[constants] rest: {spared} units of which [labels] or [filter] left something out get no "
                "label; where it means one, [labels] says which"
            )
            source = next(iter(self._marks.values())).source
            self._result.quarantined.append(Quarantined(source=source, reason=reason))

    def take_rest(self, marks: Sequence[Mark]) -> None:
        """Note the label of what nobody marked, one for each rater, code and unit."""
        fields = {"trajectory", "codebook", "code", "rater", "rater_kind"}
        pairs = [(mark, mark.rating.model_dump(include=fields)) for mark in marks]
        places = self._checker.places([mark.rating for mark in marks])
        self.take(
            [
                Given("", None, {**values, "event": event, "label": mark.rest})
                for mark, values in pairs
                for event in places[mark.rating.trajectory, mark.rating.codebook]
                if event not in mark.events
            ]
        )


def _mark_key(rating: Rating) -> _MarkKey:
    """What a rating marks something of."""
    return rating.trajectory, rating.codebook, rating.code, rating.rater


def _claim_values(line: Given) -> dict[str, Any]:
    """What a line claims: of one that does not count, that its rater said something of its unit."""
    return line.said if line.counts else {**line.said, "label": None, "error": "left out"}


def _check_line(line: Given, check: Callable[[], Checked]) -> Checked | Quarantined:
    """What a check makes of a line, or why the line does not fit."""
    try:
        return check()
    except (ValueError, ValidationError) as error:
        return Quarantined(source=line.source, line=line.line, reason=_reason(error))


def _contradiction(line: Given, rating: Rating, before: Word, late: bool) -> str:
    """A sentence on a line that says otherwise than an earlier one."""
    place = line.source if line.line is None else f"{line.source}:{line.line}"
    unit = rating.trajectory if rating.event is None else f"event {rating.event} of {rating.trajectory}"
    earlier = "a line before" if before.line is None else f"line {before.line}"
    here = _answer(said_of(rating), rating.retracted)
    there = _answer(before.said, before.retracted)
    holds = f"{earlier} was created later and counts" if late else "the last counts"
    return (
        f"{place}: {rating.rater} on {rating.code} of {unit} is {here} here and {there} in {earlier}; {holds}"
    )


def _answer(statement: Said, retracted: bool) -> str:
    """What was said, in words."""
    return "taken back" if retracted else "an error" if statement.label is None else repr(statement.label)


def _mapped_lines(path: Path, mapping: labels.LabelMapping) -> Iterator[Given | Quarantined]:
    for item in labels.read(path, mapping):
        if isinstance(item, Quarantined):
            yield item
        else:
            yield Given(str(path), item.line, item.said, mapping.constants.rest, item.counts)


def outcomes(store: Store, path: Path) -> Imported:
    """Import outcomes that people gave; a line that does not fit is quarantined with the reason."""
    result = Imported()
    with store.reading() as connection:
        names = Names(connection)
    existing = _existing_outcomes(store)
    latest: dict[_About, tuple[int | None, GivenOutcome]] = {}
    for number, line in _outcomes(path, result):
        try:
            outcome = GivenOutcome.model_validate(line)
            outcome = outcome.model_copy(update={"trajectory": names.resolve(outcome.trajectory)})
        except (ValueError, ValidationError) as error:
            result.quarantined.append(Quarantined(source=str(path), line=number, reason=_reason(error)))
            continue
        before = latest.get(about := _about(outcome))
        if before and before[1] == outcome:
            result.unchanged += 1
        elif before:
            result.contradicted.append(_otherwise(path, number, outcome, *before))
        latest[about] = (number, outcome)
    fresh = [outcome for about, (_, outcome) in latest.items() if existing.get(about) != outcome]
    if fresh:
        store.admit_writes()
        store.workspace.outcomes.append(outcome.model_dump_json() for outcome in fresh)
        store.sync(lags=True)
    result.imported = len(fresh)
    result.changed = sum(_about(outcome) in existing for outcome in fresh)
    result.unchanged += len(latest) - len(fresh)
    return result


def _outcomes(path: Path, result: Imported) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """The outcomes of a file: objects of JSON, or rows of a table, of which empty cells say nothing."""
    if not path.is_file() or inputs.format_of(path) not in TABLES:
        yield from _objects(path, result, OUTCOME)
        return
    for number, cells in _items(path, result):
        row = {name.strip().casefold(): value for name, value in cells.items()}
        if wrong := _wrong_columns(row):
            result.quarantined.append(Quarantined(source=str(path), reason=f"{wrong}; {OUTCOME}"))
            return
        values = {name: value for name, value in row.items() if value not in (None, "")}
        yield (
            number,
            {name: value if name == "value" else labels.plain(value) for name, value in values.items()},
        )


def _wrong_columns(row: dict[str, Any]) -> str | None:
    """What a table of outcomes lacks, or has that is none of their fields."""
    fields = GivenOutcome.model_fields
    if lacking := [name for name, one in fields.items() if one.is_required() and name not in row]:
        there = ", ".join(map(repr, itertools.islice(row, labels.NAMED)))
        return f"no column {', '.join(map(repr, lacking))} among {there}"
    more = [name for name in row if name not in fields]
    return f"the column {more[0]!r} is none of {', '.join(fields)}" if more else None


def _about(outcome: GivenOutcome) -> _About:
    return outcome.trajectory, outcome.name, outcome.baseline


def _otherwise(
    path: Path, line: int | None, outcome: GivenOutcome, before: int | None, earlier: GivenOutcome
) -> str:
    """A sentence on a line that gives another value than an earlier one."""
    over = "" if outcome.baseline is None else f" over {outcome.baseline}"
    return (
        f"{path}:{line}: {outcome.name}{over} of {outcome.trajectory} is {outcome.value:g} here and "
        f"{earlier.value:g} in line {before}; the last counts"
    )


def _existing_outcomes(store: Store) -> dict[_About, GivenOutcome]:
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
        records = aside(connection, query)
    return (rows.to_rating(row).model_dump_json(exclude_defaults=True) + "\n" for row in records)


def uncounted(store: Store) -> list[dict[str, Any]]:
    """Every rating that holds and does not count, with the reason."""
    query = """
        SELECT trajectory_id AS trajectory, event, codebook, code, rater, label, reason
        FROM uncounted_ratings ORDER BY ALL
    """
    with store.reading() as connection:
        return dictionaries(connection, query)


def _append(store: Store, fresh: Iterable[bytes]) -> None:
    """Write down what is new, all or nothing; an import of nothing new makes no file."""
    lines = list(fresh)
    if not lines:
        return
    store.admit_writes()
    with store.workspace.new_ratings() as file:
        file.write_lines(lines)
        file.flush()
    store.sync(lags=True)


def _items(path: Path, result: Imported) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """The rows of a table, or the objects of a JSON list, as they are written."""
    for number, value in inputs.records(path, Input(), as_written=True):
        item = value if isinstance(value, Quarantined) else only_object(value, str(path), number)
        if isinstance(item, Quarantined):
            result.quarantined.append(item)
        else:
            yield number, item


def _is_list(path: Path) -> bool:
    """Whether a file is one JSON list, and no JSON Lines."""
    with path.open("rb") as file:
        return file.read(inputs.LOOK).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def _objects(path: Path, result: Imported, hint: str) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """The objects of JSON Lines, or of a JSON list; of a file in which no line is JSON it is said once, with
    a hint."""
    if not path.is_file():
        raise SourceError(f"{path}: no such file")
    if inputs.format_of(path) == "json" and _is_list(path):
        if twice := _said_twice(path.read_bytes()):
            result.quarantined.append(Quarantined(source=str(path), reason=twice))
        else:
            yield from _items(path, result)
        return
    wrong: list[Quarantined] = []
    no_json = True
    for number, raw in numbered_lines(path):
        value = parsed(raw, str(path), number)
        no_json = no_json and isinstance(value, Quarantined)
        line = only_object(value, str(path), number)
        if isinstance(line, Quarantined):
            wrong.append(line)
        elif twice := _said_twice(raw or b""):
            wrong.append(Quarantined(source=str(path), line=number, reason=twice))
        else:
            yield number, line
    if no_json and (len(wrong) > FEW or (wrong and path.suffix.lower() not in JSON)):
        lines = "its line is no JSON" if len(wrong) == 1 else f"none of its {len(wrong)} lines is JSON"
        wrong = [Quarantined(source=str(path), reason=f"{lines}; {hint}")]
    result.quarantined.extend(wrong)


def _said_twice(text: bytes) -> str | None:
    """What is wrong with JSON in which an object has a key twice, of which a parser keeps the last without a
    word; nothing with what is no JSON."""
    twice: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in items]
        twice.extend(key for key in dict.fromkeys(keys) if keys.count(key) > 1)
        return dict(items)

    with suppress(ValueError):
        json.loads(text.removeprefix(b"\xef\xbb\xbf"), object_pairs_hook=pairs)
    return f"{twice[0]}: said twice in one object; which one holds?" if twice else None


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(_wrong(one) for one in error.errors())
    return str(error)


def _wrong(error: Any) -> str:
    """What is wrong with a field, with its value where that is a plain one."""
    place, value = ".".join(map(str, error["loc"])) or "line", error["input"]
    detail = f", got {str(value)[:40]!r}" if isinstance(value, str) and error["type"] != "value_error" else ""
    return f"{place}: {error['msg']}{detail}"
