"""Ratings and outcomes from outside: each line checked against what is in the store, then into a ledger."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
from pydantic import ValidationError

from ...schemas import Codebook, Quarantined, Rating
from ...schemas.trajectory import GivenOutcome
from .. import codebooks
from ..errors import SourceError
from ..store import Store, dictionaries, ledger
from ..systems.base import numbered_lines, only_object, parsed
from . import labels

FEW = 2
"""So many lines that are no JSON are told one by one, where a file of JSON by name has no others."""
JSON = (".jsonl", ".ndjson", ".json")
TABLE = "a table of labels is read with --map (docs/labels.md)"
OUTCOME = 'an outcome is {"trajectory": ..., "name": ..., "value": ...}'
AHEAD = timedelta(minutes=5)
"""By so much another machine's clock may be ahead of ours."""
PAIR = ("rater_version", "error_source", "rationale", "probability", "quote", "label", "error")
"""What must be the same for an imported rating to say nothing new."""


@dataclass
class Imported:
    """What an import did; `unchanged` lines said what was known."""

    imported: int = 0
    unchanged: int = 0
    changed: int = 0
    """Those of the imported that replace another label of the same rater."""
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


class _Names:
    """What a line may call a trajectory: its id, or a native_id that is unique."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.by_name: dict[str, list[str]] = {}
        for key, native in connection.execute("SELECT id, native_id FROM trajectories").fetchall():
            self.by_name.setdefault(native, []).append(key)
        for (key,) in connection.execute("SELECT id FROM trajectories").fetchall():
            self.by_name[key] = [key]

    def resolve(self, name: str) -> str:
        result = self.by_name.get(name, [])
        if len(result) == 1:
            return result[0]
        if result:
            raise ValueError(
                f"trajectory {name!r} names {len(result)} trajectories, give one's id: {', '.join(result)}"
            )
        raise ValueError(f"no trajectory {name[:80]!r} in the workspace")


class _Checker:
    """Turns a line into a rating that fits a codebook and a unit; ValueError says why it does not."""

    def __init__(self, store: Store, connection: duckdb.DuckDBPyConnection) -> None:
        self.names = _Names(connection)
        self.own = store.workspace.codebooks
        self.books: dict[str, Codebook] = {}
        self.units = {
            (trajectory, kind, event): unit
            for trajectory, kind, event, unit in connection.execute(
                "SELECT trajectory_id, kind, event, hash FROM units"
            ).fetchall()
        }
        self.addresses: dict[tuple[str, str], list[int | None]] = {}
        self.actors: dict[str, dict[str, int]] = {}
        query = "SELECT trajectory_id, actor, event FROM units WHERE kind = 'participant' ORDER BY event"
        for trajectory, actor, event in connection.execute(query).fetchall():
            self.actors.setdefault(trajectory, {})[actor] = event
        query = "SELECT trajectory_id, list(seq) FROM events WHERE NOT live_only GROUP BY ALL"
        self.events = {key: set(seqs) for key, seqs in connection.execute(query).fetchall()}
        query = "SELECT DISTINCT rater, rater_kind FROM current_ratings"
        self.kinds: dict[str, str] = dict(connection.execute(query).fetchall())

    def rating(self, line: dict[str, Any]) -> Rating:
        who = line.get("participant")
        said = {key: value for key, value in line.items() if key != "participant"}
        if isinstance(name := said.get("rater"), str):
            said["rater"] = name.strip()
        given = Rating.model_validate({"rater_kind": "human", **said})
        book = self._book(given.codebook)
        code = self._code(book, given.code)
        trajectory = self.names.resolve(given.trajectory)
        if who is not None:
            given = given.model_copy(update={"event": self._first_event(trajectory, who, book, given)})
        unit = self.units.get((trajectory, book.unit, given.event))
        if unit is None:
            where = "the whole trajectory" if given.event is None else f"event {given.event}"
            raise ValueError(f"{where} is no unit of codebook {book.name!r}, which rates each {book.unit}")
        self._check_counts(given, trajectory, unit, book)
        self._check_kind(given)
        return given.model_copy(
            update={
                "trajectory": trajectory,
                "code": code,
                "label": None if given.label is None else book.label(given.label),
                "unit_hash": unit,
                "codebook_version": book.version,
                "created": _utc(given.created) if given.created else ledger.now(),
            }
        )

    def others(self, rating: Rating) -> list[int | None]:
        """The addresses of all units of a rating's trajectory and codebook."""
        if not self.addresses:
            for trajectory, kind, event in self.units:
                self.addresses.setdefault((trajectory, kind), []).append(event)
        return self.addresses.get((rating.trajectory, self._book(rating.codebook).unit), [])

    def _first_event(self, trajectory: str, who: Any, book: Codebook, given: Rating) -> int:
        """The address of what a participant did; ValueError names those who did anything."""
        if book.unit != "participant" or given.event is not None:
            raise ValueError(f"participant: codebook {book.name!r} rates each {book.unit}, by its event")
        known = self.actors.get(trajectory, {})
        name = str(who).strip()
        by_case = {actor.casefold(): actor for actor in known}
        actor = name if name in known else by_case.get(name.casefold())
        if actor is None:
            raise ValueError(
                f"participant: nobody called {name[:80]!r} did anything, expected one of {', '.join(known)}"
            )
        return known[actor]

    def _check_counts(self, given: Rating, trajectory: str, unit: str, book: Codebook) -> None:
        """ValueError for what would be stored and never count."""
        if given.unit_hash not in (None, unit):
            raise ValueError(f"unit_hash: the unit has changed, it is {unit} now, got {given.unit_hash!r}")
        if given.codebook_version not in (None, book.version):
            now = f"codebook {book.name!r} is {book.version} now"
            raise ValueError(f"codebook_version: {now}, got {given.codebook_version!r}")
        there = self.events.get(trajectory, set())
        if strange := [seq for seq in given.cites if seq not in there]:
            raise ValueError(f"cites: trajectory {trajectory} has no event {strange[0]}")

    def _check_kind(self, given: Rating) -> None:
        """ValueError where a name is that of a rater of another kind, whose word this would be taken for."""
        if given.retracted:
            return
        kind = self.kinds.setdefault(given.rater, given.rater_kind)
        if kind != given.rater_kind:
            other = "give one of them another name, or take its ratings back (`retracted`)"
            raise ValueError(
                f"rater_kind: {given.rater!r} is {kind!r} here, got {given.rater_kind!r}; {other}"
            )

    def _book(self, name: str) -> Codebook:
        if name not in self.books:
            try:
                self.books[name] = codebooks.load(name, self.own)
            except codebooks.UnknownCodebookError:
                raise
            except codebooks.CodebookError as error:
                raise ValueError(
                    f"codebook {name!r} cannot be read: `coaudit codebook check FILE` tells why"
                ) from error
        return self.books[name]

    @staticmethod
    def _code(book: Codebook, name: str) -> str:
        try:
            return book.code(name).code
        except KeyError as error:
            raise ValueError(error.args[0]) from error


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
    """Import ratings that were read somewhere."""
    with store.reading() as connection:
        checker = _Checker(store, connection)
        known = _known(connection)
    checked: list[Rating] = []
    rests: list[tuple[Rating, str]] = []
    labelled: dict[tuple[object, ...], tuple[int | None, str | None]] = {}
    for line in lines:
        try:
            checked.append(checker.rating(line.said))
        except (ValueError, ValidationError) as error:
            wrong = Quarantined(source=line.source, line=line.line, reason=_reason(error))
            result.quarantined.append(wrong)
            continue
        number, label = labelled.get(_key(checked[-1]), (None, checked[-1].label))
        if label != checked[-1].label:
            result.contradicted.append(_contradiction(line, checked[-1], number, label))
        labelled[_key(checked[-1])] = (line.line, checked[-1].label)
        if line.rest is not None:
            rests.append((checked[-1], line.rest))
    fresh: list[Rating] = []
    for rating in [*checked, *_rest(checker, rests)]:
        if known.get(_key(rating)) == _said(rating):
            result.unchanged += 1
            continue
        result.changed += _key(rating) in known
        known[_key(rating)] = _said(rating)
        fresh.append(rating)
    _append(store, fresh)
    result.imported = len(fresh)
    return result


def _contradiction(line: Given, rating: Rating, before: int | None, label: str | None) -> str:
    """A sentence on a line that says otherwise than an earlier one."""
    place = line.source if line.line is None else f"{line.source}:{line.line}"
    unit = rating.trajectory if rating.event is None else f"event {rating.event} of {rating.trajectory}"
    earlier = "a line before" if before is None else f"line {before}"
    return (
        f"{place}: {rating.rater} on {rating.code} of {unit} is {rating.label!r} here and {label!r} in "
        f"{earlier}; the last counts"
    )


def _rest(checker: _Checker, marks: Sequence[tuple[Rating, str]]) -> Iterator[Rating]:
    """The label of what nobody marked, one for each rater, code and unit."""
    marked: dict[tuple[str, ...], tuple[Rating, str, set[int | None]]] = {}
    for rating, label in marks:
        key = (rating.trajectory, rating.codebook, rating.code, rating.rater)
        marked.setdefault(key, (rating, label, set()))[2].add(rating.event)
    for rating, label, events in marked.values():
        said = rating.model_dump(include={"trajectory", "codebook", "code", "rater", "rater_kind"})
        for event in checker.others(rating):
            if event not in events:
                yield checker.rating({**said, "event": event, "label": label})


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
        names = _Names(connection)
    known = _given(store)
    fresh = []
    for number, line in _objects(path, result, OUTCOME):
        try:
            given = GivenOutcome.model_validate(line)
            given = given.model_copy(update={"trajectory": names.resolve(given.trajectory)})
        except (ValueError, ValidationError) as error:
            result.quarantined.append(Quarantined(source=str(path), line=number, reason=_reason(error)))
            continue
        about = (given.trajectory, given.name, given.baseline)
        if known.get(about) == given:
            result.unchanged += 1
            continue
        known[about] = given
        fresh.append(given)
    if fresh:
        store.admit_writes()
        store.workspace.outcomes.append(given.model_dump_json() for given in fresh)
        store.sync(lags=True)
    result.imported = len(fresh)
    return result


def _given(store: Store) -> dict[tuple[str, str, str | None], GivenOutcome]:
    """What the ledger of outcomes holds, the last of each."""
    items = [item for _, _, item in ledger.outcomes(store.workspace.outcomes)]
    return {
        (one.trajectory, one.name, one.baseline): one for one in items if not isinstance(one, Quarantined)
    }


def exported(store: Store) -> Iterator[str]:
    """Every rating that holds, as the lines `ratings import` reads."""
    query = (
        "SELECT r.ledger, r.line FROM current_ratings r ORDER BY codebook, code, rater, trajectory_id, event"
    )
    with store.reading() as connection:
        wanted = connection.execute(query).fetchall()
    lines = {
        (path.name, number): item
        for path in ledger.files(store.workspace.ratings)
        for number, (item, _) in enumerate(ledger.ratings(path), start=1)
    }
    for place in wanted:
        item = lines[place]
        if isinstance(item, Rating):
            yield item.model_dump_json(exclude_defaults=True) + "\n"


def uncounted(store: Store) -> list[dict[str, Any]]:
    """Every rating that holds and does not count, with the reason."""
    query = """
        SELECT trajectory_id AS trajectory, event, codebook, code, rater, label, reason
        FROM uncounted_ratings ORDER BY ALL
    """
    with store.reading() as connection:
        return dictionaries(connection, query)


def _append(store: Store, fresh: list[Rating]) -> None:
    if not fresh:
        return
    store.admit_writes()
    with store.workspace.new_ratings() as file:
        file.append(fresh)
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


def _utc(moment: str) -> str:
    """A time in UTC, with milliseconds; ValueError for one that is none, or that is still to come."""
    try:
        parsed = datetime.fromisoformat(moment)
        parsed = parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"created: expected an ISO 8601 time, got {moment[:40]!r}") from error
    if parsed > datetime.now(UTC) + AHEAD:
        raise ValueError(f"created: {moment[:40]!r} is still to come")
    return parsed.isoformat(timespec="milliseconds")


def _key(rating: Rating) -> tuple[object, ...]:
    return (
        rating.trajectory,
        rating.event,
        rating.codebook,
        rating.codebook_version,
        rating.code,
        rating.rater,
        rating.repeat,
    )


def _said(rating: Rating) -> tuple[object, ...]:
    return tuple(getattr(rating, name) for name in PAIR)


def _known(connection: duckdb.DuckDBPyConnection) -> dict[tuple[object, ...], tuple[object, ...]]:
    columns = "trajectory_id, event, codebook, codebook_version, code, rater, repeat, " + ", ".join(PAIR)
    rows = dictionaries(connection, f"SELECT {columns} FROM current_ratings")
    return {tuple(row.values())[:7]: tuple(row.values())[7:] for row in rows}
