"""Ratings and outcomes from outside: each line checked against what is in the store, then into a ledger."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import ValidationError

from ...schemas import Codebook, Quarantined, Rating
from ...schemas.base import repeated
from ...schemas.text import count_of, rule_of, shortened, visible_json
from ...schemas.trajectory import GivenOutcome, outcome_name
from ..errors import SourceError
from ..store import AMONG, Store, dictionaries, execute, texts
from ..store.garbage import few_collections
from ..store.ledgers import ledger
from ..store.memory import spill_file
from ..store.queries.aside import parts, rows_aside
from ..store.tables import rows
from ..systems.base import numbered_lines, only_object, parse_json
from ..systems.formats.fields.mapping import Input
from ..systems.formats.files import inputs
from ..systems.formats.files.excel import SHEET
from . import labels
from .checks import Checker, Claim, Facts, Key, Names, Statement, key_of, statement_of
from .remarks import NAME

FEW = 2
"""Up to so many lines that are no JSON are reported one by one, in a file whose name says JSON and which has
no others."""
JSON = (".jsonl", ".ndjson", ".json")
TABLE = "a table of labels is read with --map (docs/labels.md)"
OUTCOME = (
    'an outcome is {"trajectory": ..., "name": ..., "value": ...}, or a row of a table with these columns'
)
TABLES = ("csv", "parquet", "excel")
AT_ONCE = 20_000
"""Lines that are checked against the store at a time."""
MARKS = 200
"""Marks at a time: each stands for a rating of every unit of its trajectory."""
Checked = TypeVar("Checked")
_MarkKey = tuple[str, str, str, str]
"""Trajectory, codebook, code and rater of what is marked."""
_About = tuple[str, str, str | None]
"""Trajectory, name of an outcome, and the baseline over which it was preferred."""


@dataclass
class ImportResult:
    """The result of an import; `unchanged` lines said what was known."""

    imported: int = 0
    unchanged: int = 0
    changed: int = 0
    """How many of the imported replace another label of the same rater, or another value."""
    contradicted: list[str] = field(default_factory=list)
    """A sentence for each line that contradicts an earlier one of the same import: one of the two counts."""
    quarantined: list[Quarantined] = field(default_factory=list)


@dataclass(frozen=True)
class RatingLine:
    """One rating as it was read, and where."""

    source: str
    line: int | None
    values: dict[str, Any]
    rest: str | None = None
    """The label of every other unit of the trajectory, which its rater looked at and did not mark."""
    counts: bool = True
    """False where its mapping leaves it out, and `rest` its unit."""


@dataclass(frozen=True)
class Mark:
    """The units that a rater marked with one code in a trajectory, and the label of those left unmarked."""

    source: str
    rating: Rating
    """One of the ratings."""
    rest: str
    events: set[int | None] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class DatedStatement:
    """What an import says on one key, in which line, and when by its own account."""

    line: int | None
    statement: Statement
    retracted: bool
    created: str | None
    """None where the line does not say."""
    place: int
    """Where its line for the ledger lies aside."""

    def is_before(self, other: DatedStatement) -> bool:
        """Whether both say when, and this one was earlier."""
        return self.created is not None and other.created is not None and self.created < other.created


def ratings(store: Store, path: Path, mapping: labels.LabelMapping | None = None) -> ImportResult:
    """Import the ratings of a JSON Lines file, or with a mapping those of any; a line that does not fit is
    quarantined with the reason."""
    result = ImportResult()
    if not path.is_file():
        raise SourceError(f"{path}: no such file")
    if mapping is None:
        return import_lines(
            store, (RatingLine(str(path), *line) for line in _objects(path, result, TABLE)), result
        )
    return import_lines(store, _mapped_lines(path, mapping), result)


def import_lines(
    store: Store, lines: Iterable[RatingLine | Quarantined], result: ImportResult
) -> ImportResult:
    """Import ratings that were read elsewhere, some at a time; lines that could not be read are
    quarantined."""
    if _take_in(store, lines, result):
        store.sync(lags=True)
    return result


def _take_in(store: Store, lines: Iterable[RatingLine | Quarantined], result: ImportResult) -> bool:
    """Write down what lines say that is new; whether there is any. What is known of each of them is forgotten
    before the tables are brought up to date, which takes memory of its own."""
    with few_collections(), spill_file() as aside:
        intake = _Intake(Checker(store), result, aside)
        for some in parts(lines, AT_ONCE):
            intake.take(some)
        for marks in parts(intake.marks(), MARKS):
            intake.take_rest(marks)
        return _append(store, intake.news())


class _Intake:
    """Finds which of many ratings say something new; what does not fit is noted in `result`."""

    def __init__(self, checker: Checker, result: ImportResult, aside: IO[bytes]) -> None:
        self._checker, self._result, self._aside = checker, result, aside
        self._statements: dict[Key, dict[str | None, DatedStatement]] = {}
        """Key -> version of a judge -> what this import says, in the order of the lines."""
        self._existing: dict[Key, Statement | None] = {}
        """Key -> what the store had before."""
        self._alike: dict[Statement, Statement] = {}
        """What many lines say, once."""
        self._earlier: set[tuple[Key, Statement]] = set()
        self._marks: dict[_MarkKey, Mark] = {}
        self._left_out: dict[_MarkKey, set[int | None]] = {}
        """Units of the lines that a mapping leaves out."""
        self._refused_keys: set[tuple[str, Any, Any]] = set()
        """Trajectory, codebook and rater (None: whoever) of lines that were refused."""
        self._unread: Quarantined | None = None
        """The first line that could not be read at all."""

    def take(self, some: Sequence[RatingLine | Quarantined]) -> None:
        """Note what these lines say."""
        unread = [line for line in some if isinstance(line, Quarantined)]
        self._result.quarantined.extend(unread)
        self._unread = self._unread or next((one for one in unread if one.line is not None), None)
        lines = [line for line in some if isinstance(line, RatingLine)]
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
                self._note_refusal(line)
            elif isinstance(claim, Claim):
                if line.rest is not None:
                    self._mark(rating, line, claim.book)
                self._note_rating(line, rating, claim.rating.created is not None, facts)

    def _note_rating(self, line: RatingLine, rating: Rating, dated: bool, facts: Facts) -> None:
        """Note a rating: of two of one rater the last counts, or the later one where both have a date."""
        key, content = key_of(rating), statement_of(rating)
        statement = self._alike.setdefault(content, content)
        if key not in self._statements:
            self._statements[key], self._existing[key] = {}, facts.statements.get(key)
        words = self._statements[key]
        if (key, statement) in facts.earlier:
            self._earlier.add((key, statement))
        created = rating.created if dated else None
        place = self._aside.tell()
        self._aside.write(ledger.line(rating) + b"\n")
        word = DatedStatement(line.line, statement, rating.retracted, created, place)
        version = None if rating.rater_kind == "human" else rating.rater_version
        end = next((one for one in words.values() if one.retracted and word.is_before(one)), None)
        before = next(reversed(words.values()), None) if rating.retracted else words.get(version, end)
        if before and before.statement == statement:
            self._result.unchanged += 1
            if before.is_before(word):
                words[version] = word
            return
        late = bool(before and word.is_before(before))
        if before and before.statement.label != statement.label:
            self._result.contradicted.append(_contradiction(line, rating, before, late))
        if late:
            return
        if rating.retracted:
            words.clear()
        words.pop(version, None)
        words[version] = word

    def news(self) -> Iterator[bytes]:
        """The ledger lines that say something new, with their ends."""
        for key, words in self._statements.items():
            fresh = list(self._fresh(key, [*words.values()]))
            self._result.imported += len(fresh)
            self._result.unchanged += len(words) - len(fresh)
            for word in fresh:
                self._aside.seek(word.place)
                yield self._aside.readline()

    def _fresh(self, key: Key, words: Sequence[DatedStatement]) -> Iterator[DatedStatement]:
        """Those of the statements on one key that the store does not have."""
        there = self._existing[key]
        *former, last = words
        if last.statement == there and all(
            one.retracted or (key, one.statement) in self._earlier for one in former
        ):
            return
        has_begun = False
        for word in words:
            if not has_begun and (key, word.statement) in self._earlier:
                continue
            has_begun = True
            if word.statement == there or (word.retracted and there is None):
                continue
            self._result.changed += there is not None
            there = word.statement
            yield word

    def _note_refusal(self, line: RatingLine) -> None:
        """Note that a rater's marks are not complete, since one of their lines was refused."""
        if line.rest is not None:
            rater = line.values.get("rater")
            with suppress(ValueError):
                trajectory = self._checker.trajectory(str(line.values.get("trajectory")))
                name = rater.strip() if isinstance(rater, str) else None
                self._refused_keys.add((trajectory, line.values.get("codebook"), name))

    def _leave_out(self, line: RatingLine, rating: Rating | Quarantined) -> None:
        """Note the unit of a line that does not count. Without a unit it matters only where its label was
        left out: then something was said of an unknown unit."""
        if isinstance(rating, Rating):
            self._left_out.setdefault(_mark_key(rating), set()).add(rating.event)
        elif line.values.get("label") == "":
            self._result.quarantined.append(rating)
            self._note_refusal(line)

    def _mark(self, rating: Rating, line: RatingLine, book: Codebook) -> None:
        about = _mark_key(rating)
        if about not in self._marks:
            try:
                self._marks[about] = Mark(line.source, rating, book.label(line.rest or ""))
            except ValueError as error:
                raise SourceError(f"{line.source}: [constants] rest: {error}") from error
        self._marks[about].events.add(rating.event)

    def marks(self) -> Iterator[Mark]:
        """Once all lines are read, what each rater marked of a code in a trajectory, unless one of their
        lines was refused or a line could not be read at all."""
        if self._marks and self._unread is not None:
            reason = (
                f"[constants] rest: line {self._unread.line} could not be read: what raters left unmarked is "
                "not known"
            )
            self._result.quarantined.append(Quarantined(source=self._unread.source, reason=reason))
            return
        self._exempt_left_out()
        keys = set()
        for mark in self._marks.values():
            trajectory, book, rater = mark.rating.trajectory, mark.rating.codebook, mark.rating.rater
            if not self._refused_keys & {(trajectory, book, rater), (trajectory, book, None)}:
                yield mark
            elif (trajectory, book, rater) not in keys:
                keys.add((trajectory, book, rater))
                reason = (
                    f"[constants] rest: a line of {rater} on {book} of {trajectory} was refused: what they "
                    "left unmarked there is not known"
                )
                self._result.quarantined.append(Quarantined(source=mark.source, reason=reason))

    def _exempt_left_out(self) -> None:
        """Exempt the units with a line that was left out, and report how many."""
        spared = 0
        for about, mark in self._marks.items():
            left_out = self._left_out.get(about, set()) - mark.events
            mark.events.update(left_out)
            spared += len(left_out)
        if spared:
            reason = (
                f"[constants] rest: {count_of(spared, 'unit', 'units')} of which [labels] or "
                "[filter] left something out get no "
                "label; where it means one, [labels] says which"
            )
            source = next(iter(self._marks.values())).source
            self._result.quarantined.append(Quarantined(source=source, reason=reason))

    def take_rest(self, marks: Sequence[Mark]) -> None:
        """Note the label of unmarked units, one rating for each rater, code and unit."""
        fields = {"trajectory", "codebook", "code", "rater", "rater_kind"}
        pairs = [(mark, mark.rating.model_dump(include=fields)) for mark in marks]
        places = self._checker.places([mark.rating for mark in marks])
        self.take(
            [
                RatingLine("", None, {**values, "event": event, "label": mark.rest})
                for mark, values in pairs
                for event in places[mark.rating.trajectory, mark.rating.codebook]
                if event not in mark.events
            ]
        )


def _mark_key(rating: Rating) -> _MarkKey:
    """Trajectory, codebook, code and rater of a rating."""
    return rating.trajectory, rating.codebook, rating.code, rating.rater


def _claim_values(line: RatingLine) -> dict[str, Any]:
    """What a line claims; of one that does not count, only that its rater said something of its unit."""
    return line.values if line.counts else {**line.values, "label": None, "error": "left out"}


def _check_line(line: RatingLine, check: Callable[[], Checked]) -> Checked | Quarantined:
    """The result of a check, or why the line does not fit."""
    try:
        return check()
    except (ValueError, ValidationError) as error:
        return Quarantined(source=line.source, line=line.line, reason=_reason(error))


def _contradiction(line: RatingLine, rating: Rating, before: DatedStatement, late: bool) -> str:
    """A sentence on a line that contradicts an earlier one."""
    place = line.source if line.line is None else f"{line.source}:{line.line}"
    unit = rating.trajectory if rating.event is None else f"event {rating.event} of {rating.trajectory}"
    earlier = "a line before" if before.line is None else f"line {before.line}"
    here = _answer(statement_of(rating), rating.retracted)
    there = _answer(before.statement, before.retracted)
    holds = f"{earlier} was created later and counts" if late else "the last counts"
    return (
        f"{place}: {rating.rater} on {rating.code} of {unit} is {here} here and {there} in {earlier}; {holds}"
    )


def _answer(statement: Statement, retracted: bool) -> str:
    """What was said, in words."""
    return "taken back" if retracted else "an error" if statement.label is None else repr(statement.label)


def _mapped_lines(path: Path, mapping: labels.LabelMapping) -> Iterator[RatingLine | Quarantined]:
    for item in labels.read(path, mapping):
        if isinstance(item, Quarantined):
            yield item
        else:
            yield RatingLine(str(path), item.line, item.values, mapping.constants.rest, item.counts)


def outcomes(store: Store, path: Path) -> ImportResult:
    """Import outcomes that people gave; a line that does not fit is quarantined with the reason."""
    result = ImportResult()
    with store.reading() as connection:
        names = Names(connection)
    existing = _existing_outcomes(store)
    latest: dict[_About, tuple[int | None, GivenOutcome]] = {}
    for number, line in _outcomes(path, result):
        if isinstance(name := line.get("name"), str):
            line["name"] = outcome_name(name)
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


def _outcomes(path: Path, result: ImportResult) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """The outcomes of a file: JSON objects, or the rows of a table without their empty cells."""
    if not path.is_file() or inputs.format_of(path) not in TABLES:
        yield from _objects(path, result, OUTCOME)
        return
    refused_sheets = set[Any]()
    for number, cells in _items(path, result):
        row = {name.strip().casefold(): value for name, value in cells.items()}
        named_by = next((one for one in reversed(SHEET) if one in row), None)
        sheet = row.pop(named_by) if named_by and inputs.format_of(path) == "excel" else None
        if sheet in refused_sheets:
            continue
        if wrong := _wrong_columns(row):
            refused_sheets.add(sheet)
            place = "" if sheet is None else f"sheet {sheet!r}: "
            result.quarantined.append(Quarantined(source=str(path), reason=f"{place}{wrong}; {OUTCOME}"))
            continue
        values = {name: value for name, value in row.items() if value not in (None, "")}
        yield (
            number,
            {name: value if name == "value" else labels.plain(value) for name, value in values.items()},
        )


def _wrong_columns(row: dict[str, Any]) -> str | None:
    """What is wrong with the columns of a table of outcomes: one that is missing, or none of the fields."""
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


def export_lines(store: Store) -> Iterator[str]:
    """Every rating that holds, as the lines that `ratings import` reads; what earlier versions of a judge
    said of a unit stands before the last."""
    query = """
        SELECT * EXCLUDE (is_last) FROM held_ratings
        ORDER BY codebook, code, rater, trajectory_id, event, repeat, ledger, line
    """
    with store.reading() as connection:
        records = rows_aside(connection, query)
    documents = (rows.to_rating(row).model_dump_json(exclude_defaults=True) for row in records)
    return (f"{visible_json(document)}\n" for document in documents)


def uncounted_rows(store: Store) -> list[dict[str, Any]]:
    """Every rating that holds and does not count, with the reason."""
    query = """
        SELECT trajectory_id AS trajectory, event, codebook, code, rater, label, reason
        FROM uncounted_ratings ORDER BY ALL
    """
    with store.reading() as connection:
        return dictionaries(connection, query)


OUT_OF_BOOK = {
    "its codebook has changed since": "on another version of it",
    "its codebook is not for this trajectory (applies_to)": "on sessions that it is not for (applies_to)",
}
"""Why ratings do not count, and which ones these are of a codebook, in words."""


def out_of_book(store: Store) -> list[tuple[str, str, int]]:
    """(Codebook, which, how many): the ratings that do not count since the codebook is not, or no longer,
    the one that they fit."""
    query = f"""
        SELECT codebook, reason, count(*) FROM uncounted_ratings WHERE reason {AMONG}
        GROUP BY ALL ORDER BY ALL
    """
    with store.reading() as connection:
        counts = execute(connection, query, [texts(OUT_OF_BOOK)]).fetchall()
    return [(codebook, OUT_OF_BOOK[reason], n) for codebook, reason, n in counts]


def _append(store: Store, lines: Iterable[bytes]) -> bool:
    """Write lines down, all or none; of none there is no file, and the answer is False."""
    text = bytearray()
    for line in lines:
        text += line
    if not text:
        return False
    store.admit_writes()
    with store.workspace.new_ratings() as file:
        file.write_text(memoryview(text))
        file.flush()
    return True


def _items(path: Path, result: ImportResult) -> Iterator[tuple[int | None, dict[str, Any]]]:
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


def _objects(path: Path, result: ImportResult, hint: str) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """The objects of JSON Lines, or of a JSON list; a file in which no line is JSON is reported once, with a
    hint."""
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
        value = parse_json(raw, str(path), number)
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
    """What is wrong with JSON in which an object has a key twice (a parser silently keeps the last); None for
    what is no JSON."""
    twice: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        twice.extend(repeated(key for key, _ in items))
        return dict(items)

    with suppress(ValueError, RecursionError):
        json.loads(text.removeprefix(b"\xef\xbb\xbf"), object_pairs_hook=pairs)
    return f"{shortened(twice[0], NAME)}: said twice in one object; which one holds?" if twice else None


def _reason(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    wrong = [_wrong(one) for one in itertools.islice(error.errors(), labels.NAMED)]
    more = error.error_count() - len(wrong)
    return "; ".join([*wrong, f"{more} more"] if more else wrong)


def _wrong(error: Any) -> str:
    """What is wrong with a field, with its value where that is a plain one."""
    place, value = shortened(".".join(map(str, error["loc"])) or "line", NAME), error["input"]
    detail = f", got {str(value)[:40]!r}" if isinstance(value, str) and error["type"] != "value_error" else ""
    return f"{place}: {rule_of(error)}{detail}"
