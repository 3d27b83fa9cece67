"""Imported ratings, checked against the codebooks and units that they are about."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import duckdb

from ...schemas import Codebook, Rating
from ...schemas.rating import RESERVED
from ...schemas.text import bare, nfc
from ...schemas.trajectory import COPY
from .. import codebooks
from ..store import Store, constants
from ..store.connection import register_table
from ..store.ledgers import ledger
from ..systems.formats.fields.values import moment
from .labels import plain

AHEAD = timedelta(minutes=5)
"""How far another machine's clock may be ahead of ours."""


class Key(NamedTuple):
    """What one rating answers: of several with one key the last holds."""

    trajectory: str
    event: int | None
    codebook: str
    codebook_version: str | None
    code: str
    rater: str
    repeat: int


class Statement(NamedTuple):
    """The content of a rating: an imported one with the content of the stored one says nothing new."""

    rater_version: str | None
    error_source: str | None
    rationale: str | None
    probability: float | None
    quote: str | None
    label: str | None
    error: str | None


def key_of(rating: Rating) -> Key:
    """The key of a rating."""
    return Key(*(getattr(rating, name) for name in Key._fields))


def statement_of(rating: Rating) -> Statement:
    """The content of a rating."""
    return Statement(*(getattr(rating, name) for name in Statement._fields))


class Names:
    """The names that a line may use for a trajectory: its id, or a native_id that is unique."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.by_name: dict[str, list[str]] = {}
        self.by_look: dict[str, list[str]] = {}
        """As they look: with each accented letter as one character, without the space around them."""
        pairs = connection.execute("SELECT id, native_id FROM trajectories").fetchall()
        for key, native in pairs:
            self.by_name.setdefault(native, []).append(key)
            self.by_look.setdefault(nfc(native.strip()), []).append(key)
        self.by_name |= {key: [key] for key, _ in pairs}

    def resolve(self, name: str) -> str:
        bare_name = name.strip()
        result = self.by_name.get(name) or self.by_name.get(bare_name) or self.by_look.get(nfc(bare_name), [])
        if len(result) == 1:
            return result[0]
        if result:
            raise ValueError(
                f"trajectory {name!r} names {len(result)} trajectories, give one's id: {', '.join(result)}"
            )
        raise ValueError(f"no trajectory {name[:80]!r} in the workspace")


@dataclass(frozen=True)
class Claim:
    """A rating that fits its codebook and names a trajectory; whether its unit exists is not checked yet."""

    rating: Rating
    book: Codebook
    who: Any = None
    """The participant, given in place of an event."""


@dataclass(frozen=True)
class Facts:
    """What the store holds about the units of some claims."""

    units: dict[tuple[str, str, int | None], str] = field(default_factory=dict)
    """Trajectory, kind and event of a unit -> its hash."""
    copies: dict[str, str] = field(default_factory=dict)
    """Trajectory -> the record of which it is a shorter copy."""
    actors: dict[str, dict[str, int]] = field(default_factory=dict)
    """Trajectory -> who did anything -> the event of their unit."""
    events: dict[str, set[int]] = field(default_factory=dict)
    """Trajectory -> its events, where a claim cites some."""
    statements: dict[Key, Statement] = field(default_factory=dict)
    earlier: frozenset[tuple[Key, Statement]] = frozenset()
    """What versions of a judge said before another version spoke."""


class Checker:
    """Turns a line into a rating that fits a codebook and a unit; ValueError says why it does not."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._own = store.workspace.codebooks
        self._books: dict[str, Codebook] = {}
        with store.reading() as connection:
            self._names = Names(connection)
            query = "SELECT DISTINCT rater, rater_kind FROM current_ratings"
            self._kinds: dict[str, str] = dict(connection.execute(query).fetchall())
        self._looks = {_look(name): name for name in (*self._kinds, *RESERVED)}

    def claim(self, line: dict[str, Any]) -> Claim:
        """What a line claims, checked without looking at units."""
        participant = line.get("participant")
        values = {key: value for key, value in line.items() if key != "participant"}
        if isinstance(name := values.get("rater"), str):
            values["rater"] = sys.intern(name.strip())
        if values.get("created") is not None:
            values["created"] = moment(values["created"])
        if isinstance(values.get("label"), (int, float)):
            values["label"] = plain(values["label"])
        _check_numbers(values)
        rating = Rating.model_validate({"rater_kind": "human", **values})
        _check_amounts(rating)
        book = self._book(rating.codebook)
        code = _code(book, rating.code)
        trajectory = self.trajectory(rating.trajectory)
        return Claim(rating.model_copy(update={"trajectory": trajectory, "code": code}), book, participant)

    def trajectory(self, name: str) -> str:
        """The id that a name stands for; ValueError where it stands for none, or several."""
        return self._names.resolve(name)

    def facts(self, claims: Sequence[Claim]) -> Facts:
        """What the store knows about the units of these claims; it is not kept open."""
        if not claims:
            return Facts()
        ours = constants({claim.rating.trajectory for claim in claims})
        acting = constants({claim.rating.trajectory for claim in claims if claim.who is not None})
        citing = constants({claim.rating.trajectory for claim in claims if claim.rating.cites})
        with self._store.reading(synced=True) as connection:
            actors, events = _actors(connection, acting), _events(connection, citing)
            addresses = {(claim.rating.trajectory, claim.rating.event) for claim in claims}
            addresses |= {(key, event) for key, own in actors.items() for event in own.values()}
            with register_table(connection, "places", _places(addresses)):
                current = dict(_statements(connection, ours, "current_ratings"))
                earlier = frozenset(_statements(connection, ours, "earlier_ratings"))
                units, copies = _units(connection, ours), _copies(connection, ours)
                return Facts(units, copies, actors, events, current, earlier)

    def rating(self, claim: Claim, facts: Facts) -> Rating:
        """A claim as a rating of an existing unit; ValueError where there is no such unit, or it would never
        count."""
        rating, book = claim.rating, claim.book
        if claim.who is not None:
            rating = rating.model_copy(update={"event": _first_event(claim, facts)})
        unit = facts.units.get((rating.trajectory, book.unit, rating.event))
        if unit is None:
            if original := facts.copies.get(rating.trajectory):
                raise ValueError(f"its trajectory is a shorter copy of record {original}, and has no units")
            where = "the whole trajectory" if rating.event is None else f"event {rating.event}"
            raise ValueError(f"{where} is no unit of codebook {book.name!r}, which rates each {book.unit}")
        _check_it_counts(rating, unit, book, facts.events.get(rating.trajectory, set()))
        self._check_kind(rating)
        return rating.model_copy(
            update={
                "label": None if rating.label is None else book.label(rating.label),
                "unit_hash": unit,
                "codebook_version": book.version,
                "created": _utc(rating.created) if rating.created else ledger.now(),
            }
        )

    def places(self, ratings: Sequence[Rating]) -> dict[tuple[str, str], list[int | None]]:
        """(Trajectory, codebook) -> the events of all its units, for these ratings."""
        ours = constants({rating.trajectory for rating in ratings})
        query = f"SELECT trajectory_id, kind, event FROM units WHERE trajectory_id IN ({ours}) ORDER BY ALL"
        by_kind: dict[tuple[str, str], list[int | None]] = {}
        with self._store.reading(synced=True) as connection:
            for trajectory, kind, event in connection.execute(query).fetchall():
                by_kind.setdefault((trajectory, kind), []).append(event)
        abouts = {(rating.trajectory, rating.codebook) for rating in ratings}
        return {
            (trajectory, name): by_kind.get((trajectory, self._book(name).unit), [])
            for trajectory, name in abouts
        }

    def _check_kind(self, rating: Rating) -> None:
        """ValueError where the name is that of a rater of another kind, to whom the rating would be
        attributed, or a new one that nobody can tell from another's."""
        if rating.retracted:
            return
        other = self._looks.setdefault(_look(rating.rater), rating.rater)
        if other != rating.rater and rating.rater not in self._kinds:
            raise ValueError(f"rater: {rating.rater!a} looks like {other!a}; use one of them")
        kind = self._kinds.setdefault(rating.rater, rating.rater_kind)
        if kind != rating.rater_kind:
            other = "give one of them another name, or take its ratings back (`retracted`)"
            raise ValueError(
                f"rater_kind: {rating.rater!r} is {kind!r} here, got {rating.rater_kind!r}; {other}"
            )

    def _book(self, name: str) -> Codebook:
        if name not in self._books:
            try:
                self._books[name] = codebooks.load(name, self._own)
            except codebooks.UnknownCodebookError:
                raise
            except codebooks.CodebookError as error:
                raise ValueError(
                    f"codebook {name!r} cannot be read: `coaudit codebook check FILE` tells why"
                ) from error
        return self._books[name]


def _check_numbers(values: dict[str, Any]) -> None:
    """ValueError for true in place of event 1."""
    cites = values.get("cites")
    for name, numbers in (("event", [values.get("event")]), ("cites", cites)):
        for value in numbers if isinstance(numbers, list) else ():
            if isinstance(value, bool):
                raise ValueError(f"{name}: the number of an event, got {str(value).lower()}")


def _check_amounts(rating: Rating) -> None:
    """ValueError for a cost or a time below 0."""
    for name, value in (("cost_usd", rating.cost_usd), ("seconds", rating.seconds)):
        if value is not None and value < 0:
            raise ValueError(f"{name}: 0 or more, got {value:g}")


def _look(name: str) -> str:
    """A name as it looks: without characters that are not seen, an accented letter as one character, in any
    case."""
    return nfc("".join(one for one in name if unicodedata.category(one) != "Cf")).casefold()


def _places(at: Iterable[tuple[str, int | None]]) -> Any:
    """An Arrow table of addresses: (trajectory_id, event)."""
    import pyarrow as pa

    trajectories, events = zip(*at, strict=True)
    return pa.table({"trajectory_id": pa.array(trajectories, "string"), "event": pa.array(events, "int32")})


_AT = "JOIN places p ON p.trajectory_id = t.trajectory_id AND p.event IS NOT DISTINCT FROM t.event"


def _units(connection: duckdb.DuckDBPyConnection, ours: str) -> dict[tuple[str, str, int | None], str]:
    query = f"""
        SELECT t.trajectory_id, t.kind, t.event, t.hash FROM units t {_AT} WHERE t.trajectory_id IN ({ours})
    """
    return {
        (trajectory, kind, event): unit
        for trajectory, kind, event, unit in connection.execute(query).fetchall()
    }


def _copies(connection: duckdb.DuckDBPyConnection, ours: str) -> dict[str, str]:
    original = f"json_extract_string(tags, '$.{COPY}')"
    query = f"SELECT id, {original} FROM trajectories WHERE id IN ({ours}) AND {original} IS NOT NULL"
    return dict(connection.execute(query).fetchall())


def _statements(
    connection: duckdb.DuckDBPyConnection, ours: str, view: str
) -> Iterator[tuple[Key, Statement]]:
    columns = ", ".join(f"t.{name}" for name in ("trajectory_id", *Key._fields[1:], *Statement._fields))
    query = f"SELECT {columns} FROM {view} t {_AT} WHERE t.trajectory_id IN ({ours})"
    width = len(Key._fields)
    for row in connection.execute(query).fetchall():
        yield Key(*row[:width]), Statement(*row[width:])


def _actors(connection: duckdb.DuckDBPyConnection, ours: str) -> dict[str, dict[str, int]]:
    query = f"""
        SELECT trajectory_id, actor, event FROM units
        WHERE kind = 'participant' AND trajectory_id IN ({ours}) ORDER BY event
    """
    actors: dict[str, dict[str, int]] = {}
    for trajectory, actor, event in connection.execute(query).fetchall():
        actors.setdefault(trajectory, {})[actor] = event
    return actors


def _events(connection: duckdb.DuckDBPyConnection, ours: str) -> dict[str, set[int]]:
    query = f"""
        SELECT trajectory_id, list(seq) FROM events
        WHERE NOT live_only AND trajectory_id IN ({ours}) GROUP BY ALL
    """
    return {key: set(seqs) for key, seqs in connection.execute(query).fetchall()}


def _first_event(claim: Claim, facts: Facts) -> int:
    """The event that addresses a participant's unit; ValueError names those who did anything."""
    book = claim.book
    if book.unit != "participant" or claim.rating.event is not None:
        raise ValueError(f"participant: codebook {book.name!r} rates each {book.unit}, by its event")
    actors = facts.actors.get(claim.rating.trajectory, {})
    name = str(claim.who).strip()
    by_case = {bare(actor): actor for actor in actors}
    actor = name if name in actors else by_case.get(bare(name))
    if actor is None:
        raise ValueError(
            f"participant: nobody called {name[:80]!r} did anything, expected one of {', '.join(actors)}"
        )
    return actors[actor]


def _check_it_counts(rating: Rating, unit: str, book: Codebook, events: set[int]) -> None:
    """ValueError for a rating that would be stored and never count."""
    if rating.unit_hash not in (None, unit):
        raise ValueError(f"unit_hash: the unit has changed, it is {unit} now, got {rating.unit_hash!r}")
    if rating.codebook_version not in (None, book.version):
        now = f"codebook {book.name!r} is {book.version} now"
        raise ValueError(f"codebook_version: {now}, got {rating.codebook_version!r}")
    if strange := [seq for seq in rating.cites if seq not in events]:
        raise ValueError(f"cites: trajectory {rating.trajectory} has no event {strange[0]}")


def _code(book: Codebook, name: str) -> str:
    try:
        return book.code(name).code
    except KeyError as error:
        raise ValueError(error.args[0]) from error


def _utc(moment: str) -> str:
    """A time in UTC, with milliseconds; ValueError for what is no time, or lies in the future."""
    try:
        time = datetime.fromisoformat(moment)
        time = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"created: expected an ISO 8601 time, got {moment[:40]!r}") from error
    if time > datetime.now(UTC) + AHEAD:
        raise ValueError(f"created: {moment[:40]!r} is in the future")
    return time.isoformat(timespec="milliseconds")
