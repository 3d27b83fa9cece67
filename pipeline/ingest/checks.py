"""Ratings from outside, held against the codebooks and units that they are of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import duckdb

from ...schemas import Codebook, Rating
from ...schemas.trajectory import COPY
from .. import codebooks
from ..store import Store, ledger, listed
from ..store.connection import offered
from ..systems.formats.mapped_values import moment

AHEAD = timedelta(minutes=5)
"""By so much another machine's clock may be ahead of ours."""


class Key(NamedTuple):
    """What one rating answers: the last one of each holds."""

    trajectory: str
    event: int | None
    codebook: str
    codebook_version: str | None
    code: str
    rater: str
    repeat: int


class Said(NamedTuple):
    """What must be the same for an imported rating to say nothing new."""

    rater_version: str | None
    error_source: str | None
    rationale: str | None
    probability: float | None
    quote: str | None
    label: str | None
    error: str | None


def key_of(rating: Rating) -> Key:
    """What a rating answers."""
    return Key(*(getattr(rating, name) for name in Key._fields))


def said_of(rating: Rating) -> Said:
    """What a rating says."""
    return Said(*(getattr(rating, name) for name in Said._fields))


class Names:
    """What a line may call a trajectory: its id, or a native_id that is unique."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.by_name: dict[str, list[str]] = {}
        pairs = connection.execute("SELECT id, native_id FROM trajectories").fetchall()
        for key, native in pairs:
            self.by_name.setdefault(native, []).append(key)
        self.by_name |= {key: [key] for key, _ in pairs}

    def resolve(self, name: str) -> str:
        result = self.by_name.get(name, [])
        if len(result) == 1:
            return result[0]
        if result:
            raise ValueError(
                f"trajectory {name!r} names {len(result)} trajectories, give one's id: {', '.join(result)}"
            )
        raise ValueError(f"no trajectory {name[:80]!r} in the workspace")


@dataclass(frozen=True)
class Claim:
    """A rating that fits its codebook and names a trajectory; whether a unit is there is not known yet."""

    rating: Rating
    book: Codebook
    who: Any = None
    """The participant, in place of an event."""


@dataclass(frozen=True)
class Facts:
    """What the store holds of what some claims are about."""

    units: dict[tuple[str, str, int | None], str] = field(default_factory=dict)
    """Trajectory, kind and event of a unit -> its hash."""
    copies: dict[str, str] = field(default_factory=dict)
    """Trajectory -> the record of which it is a shorter copy."""
    actors: dict[str, dict[str, int]] = field(default_factory=dict)
    """Trajectory -> who did anything -> the event that their unit has."""
    events: dict[str, set[int]] = field(default_factory=dict)
    """Of trajectories in which a claim cites something."""
    known: dict[Key, Said] = field(default_factory=dict)
    earlier: frozenset[tuple[Key, Said]] = frozenset()
    """What a version of a judge said where another has spoken since."""


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

    def claim(self, line: dict[str, Any]) -> Claim:
        """A line by itself."""
        participant = line.get("participant")
        values = {key: value for key, value in line.items() if key != "participant"}
        if isinstance(name := values.get("rater"), str):
            values["rater"] = name.strip()
        if values.get("created") is not None:
            values["created"] = moment(values["created"])
        rating = Rating.model_validate({"rater_kind": "human", **values})
        book = self._book(rating.codebook)
        code = _code(book, rating.code)
        trajectory = self.trajectory(rating.trajectory)
        return Claim(rating.model_copy(update={"trajectory": trajectory, "code": code}), book, participant)

    def trajectory(self, name: str) -> str:
        """The id that a name stands for; ValueError where it stands for none, or several."""
        return self._names.resolve(name)

    def facts(self, claims: Sequence[Claim]) -> Facts:
        """What is known of all these; the store is not kept open."""
        if not claims:
            return Facts()
        ours = listed({claim.rating.trajectory for claim in claims})
        acting = listed({claim.rating.trajectory for claim in claims if claim.who is not None})
        citing = listed({claim.rating.trajectory for claim in claims if claim.rating.cites})
        with self._store.reading(synced=True) as connection:
            actors, events = _actors(connection, acting), _events(connection, citing)
            addresses = {(claim.rating.trajectory, claim.rating.event) for claim in claims}
            addresses |= {(key, event) for key, own in actors.items() for event in own.values()}
            with offered(connection, "places", _places(addresses)):
                current = dict(_statements(connection, ours, "current_ratings"))
                earlier = frozenset(_statements(connection, ours, "earlier_ratings"))
                units, copies = _units(connection, ours), _copies(connection, ours)
                return Facts(units, copies, actors, events, current, earlier)

    def rating(self, claim: Claim, facts: Facts) -> Rating:
        """A claim as the rating of a unit that is there."""
        rating, book = claim.rating, claim.book
        if claim.who is not None:
            rating = rating.model_copy(update={"event": _first_event(claim, facts)})
        unit = facts.units.get((rating.trajectory, book.unit, rating.event))
        if unit is None:
            if original := facts.copies.get(rating.trajectory):
                raise ValueError(f"its trajectory is a shorter copy of record {original}, and has no units")
            where = "the whole trajectory" if rating.event is None else f"event {rating.event}"
            raise ValueError(f"{where} is no unit of codebook {book.name!r}, which rates each {book.unit}")
        _check_counts(rating, unit, book, facts.events.get(rating.trajectory, set()))
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
        """The events of all units of these ratings' trajectories and codebooks."""
        ours = listed({rating.trajectory for rating in ratings})
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
        """ValueError where a name is that of a rater of another kind, whose word this would be taken for."""
        if rating.retracted:
            return
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


def _statements(connection: duckdb.DuckDBPyConnection, ours: str, view: str) -> Iterator[tuple[Key, Said]]:
    columns = ", ".join(f"t.{name}" for name in ("trajectory_id", *Key._fields[1:], *Said._fields))
    query = f"SELECT {columns} FROM {view} t {_AT} WHERE t.trajectory_id IN ({ours})"
    width = len(Key._fields)
    for row in connection.execute(query).fetchall():
        yield Key(*row[:width]), Said(*row[width:])


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
    """The address of what a participant did; ValueError names those who did anything."""
    book = claim.book
    if book.unit != "participant" or claim.rating.event is not None:
        raise ValueError(f"participant: codebook {book.name!r} rates each {book.unit}, by its event")
    actors = facts.actors.get(claim.rating.trajectory, {})
    name = str(claim.who).strip()
    by_case = {actor.casefold(): actor for actor in actors}
    actor = name if name in actors else by_case.get(name.casefold())
    if actor is None:
        raise ValueError(
            f"participant: nobody called {name[:80]!r} did anything, expected one of {', '.join(actors)}"
        )
    return actors[actor]


def _check_counts(rating: Rating, unit: str, book: Codebook, events: set[int]) -> None:
    """ValueError for what would be stored and never count."""
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
    """A time in UTC, with milliseconds; ValueError for one that is none, or that is still to come."""
    try:
        time = datetime.fromisoformat(moment)
        time = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"created: expected an ISO 8601 time, got {moment[:40]!r}") from error
    if time > datetime.now(UTC) + AHEAD:
        raise ValueError(f"created: {moment[:40]!r} is still to come")
    return time.isoformat(timespec="milliseconds")
