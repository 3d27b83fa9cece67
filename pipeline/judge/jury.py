"""Juries over the ratings that count."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...judges import jury
from ...schemas import GOLD, Codebook, Maker, Rating, Verdict, content_hash
from ...schemas.rating import RaterKind
from ..codebooks import load
from ..errors import UsageError
from ..store import AMONG, Store, dictionaries, execute, texts
from ..store.queries.copies import IS_COPY, QUESTION
from .scope import Scope, Summary

NAME = "jury"
LAPSED = f"fewer than {jury.FEWEST} members still have a label"
"""Why a jury withdraws a label that it had given."""


@dataclass
class JuryResult:
    """What a jury did."""

    summary: Summary
    agreement: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """Pair of members -> labels they agree on, labels (not `unclear`) that both gave."""
    shared: int = 0
    """Labels that are no vote of their own: another member has the same answer."""
    pupils: tuple[tuple[str, str], ...] = ()
    """(Member, another from whose labels it was trained): no independent votes."""


def rated_codebooks(store: Store, members: Sequence[str], rater: str = NAME) -> list[str]:
    """The codebooks on which two of these raters have labels that count, or the jury `rater` still has."""
    query = f"""
        SELECT codebook FROM counted_ratings WHERE label IS NOT NULL GROUP BY codebook
        HAVING count(DISTINCT rater) FILTER (rater {AMONG}) >= ? OR bool_or(asked = ?) ORDER BY codebook
    """
    with store.reading() as connection:
        rows = execute(connection, query, [texts(members), jury.FEWEST, rater]).fetchall()
    return [str(row[0]) for row in rows]


def judge(store: Store, scope: Scope, members: Sequence[str], rater: str = NAME) -> JuryResult:
    """Rate what at least two members have rated; UsageError names the raters that there are.

    An answer that several members share is one vote: the model was asked once for all of them.
    People are refused: their jury would be one more person, who agrees with each of them by half.
    """
    began = time.monotonic()
    store.admit_writes()
    kinds = _kinds(store, members, rater)
    kind: RaterKind = kinds.pop() if len(kinds) == 1 else "rule"
    result = JuryResult(Summary(), pupils=_pupils(store, scope.books, members))
    with store.workspace.new_ratings() as ledger:
        for book in scope.books:
            ledger.append(_new_ratings(store, members, _maker(rater, kind, book, members), result))
    store.sync()
    result.summary.seconds = round(time.monotonic() - began, 3)
    return result


@dataclass(frozen=True)
class Backlog:
    """What a jury has not said yet: on `n` units and codes its label is not what its members say by now."""

    rater: str
    codebook: str
    members: tuple[str, ...]
    n: int


def backlogs(store: Store) -> Iterator[Backlog]:
    """Of the juries that would vote otherwise, since their members judged again or judged more."""
    with store.reading() as connection:
        rows = connection.execute(_HEARD_BEFORE).fetchall()
    for rater, kind, name, names in rows:
        members, book = tuple(names), load(name, store.workspace.codebooks)
        votes = _new_ratings(store, members, _maker(rater, kind, book, members), JuryResult(Summary()))
        if votes:
            yield Backlog(rater, name, members, len(votes))


_HEARD_BEFORE = """
    WITH juries AS (
        SELECT rater, rater_kind, codebook,
            arg_max(TRY_CAST(parameters->'$.members' AS VARCHAR[]), (ledger, line)) AS members,
            max(ledger) AS ledger, max(created) AS created
        FROM counted_ratings
        WHERE rater = asked AND rater_kind <> 'human' AND contains(parameters, '"members"')
        GROUP BY ALL
    ),
    said AS (SELECT codebook, rater, max(ledger) AS ledger, max(created) AS created FROM ratings GROUP BY ALL)
    SELECT rater, rater_kind, codebook, members FROM juries j
    WHERE EXISTS (
        FROM said s WHERE s.codebook = j.codebook AND list_contains(j.members, s.rater)
            AND (s.ledger > j.ledger OR s.created > j.created)
    ) ORDER BY ALL
"""
"""The juries of which a member rated something, or took it back, after they last voted."""


def _maker(rater: str, kind: RaterKind, book: Codebook, members: Sequence[str]) -> Maker:
    version = content_hash("jury", 1, sorted(members))[:12]
    return Maker(rater, kind, version, book, {"parameters": {"members": sorted(members)}})


def _new_ratings(store: Store, members: Sequence[str], maker: Maker, result: JuryResult) -> list[Rating]:
    """What a jury has to say by now and has not said yet; `result` counts it."""
    query = f"""
        SELECT trajectory_id, event, unit_hash, code, rater, rater_version, label, asked = ? AS own,
            {IS_COPY} AND row_number() OVER (
                PARTITION BY {QUESTION} ORDER BY {IS_COPY}, rater
            ) > 1 AS is_shared
        FROM counted_ratings
        WHERE codebook = ? AND (rater {AMONG} OR asked = ? AND is_last) AND label IS NOT NULL
        ORDER BY trajectory_id, event, code, rater
    """
    with store.reading(synced=True) as connection:
        rows = dictionaries(connection, query, [maker.rater, maker.book.name, texts(members), maker.rater])
    labels: dict[tuple[str, int | None, str, str], dict[str, str]] = {}
    before: dict[tuple[str, int | None, str, str], tuple[str, str]] = {}
    for row in rows:
        key = (row["trajectory_id"], row["event"], row["unit_hash"], row["code"])
        if row["own"]:
            before[key] = (row["rater_version"], row["label"])
        elif row["is_shared"]:
            result.shared += 1
        else:
            labels.setdefault(key, {})[row["rater"]] = row["label"]
    for pair, (same, n) in jury.agreement(list(labels.values()), maker.book.labels).items():
        old = result.agreement.get(pair, (0, 0))
        result.agreement[pair] = (old[0] + same, old[1] + n)
    fresh, units, already, lapses = [], set(), set(), set()
    for key in {**labels, **before}:
        verdict = jury.verdict(key[3], labels.get(key, {}))
        version, label = before.get(key, (None, None))
        if verdict is None:
            if version == maker.version:
                lapses.add(key[:2])
                fresh.append(maker.rating_at(key[:3], Verdict(key[3], error=LAPSED)))
        elif (version, label) == (maker.version, verdict.label):
            already.add(key[:2])
        else:
            units.add(key[:2])
            fresh.append(maker.rating_at(key[:3], verdict))
    result.summary.rated += len(units)
    result.summary.already += len(already - units)
    result.summary.errors += len(lapses - units)
    return fresh


def _pupils(store: Store, books: Sequence[Codebook], members: Sequence[str]) -> tuple[tuple[str, str], ...]:
    query = f"""
        SELECT DISTINCT rater, parameters->>'$.learnt_from' AS teacher FROM counted_ratings
        WHERE codebook {AMONG} AND rater {AMONG} AND contains(parameters, '"learnt_from"') ORDER BY ALL
    """
    with store.reading() as connection:
        rows = execute(connection, query, [texts(book.name for book in books), texts(members)]).fetchall()
    return tuple((rater, teacher) for rater, teacher in rows if teacher in members)


def _kinds(store: Store, members: Sequence[str], rater: str) -> set[RaterKind]:
    with store.reading() as connection:
        rows = connection.execute(
            """
            SELECT rater, rater_kind FROM counted_ratings
            UNION SELECT rater, rater_kind FROM ratings WHERE retracted
            """
        ).fetchall()
    result = dict(rows)
    unknown = [name for name in members if name not in result]
    if unknown or len(set(members)) < jury.FEWEST or rater in members:
        choices = ", ".join(sorted(name for name in result if name != rater)) or "none yet"
        what = (
            f"no ratings by {', '.join(unknown)}" if unknown else "a jury has two members or more, not itself"
        )
        raise UsageError(f"{what}: give --members a,b,c of {choices}")
    if people := [name for name in members if result[name] == "human" or name == GOLD]:
        raise UsageError(
            f"a jury is of judges, not of {', '.join(people)}: held against people it would agree with "
            "itself; `agreement` and `validate` count their labels, gold settles what they differ on"
        )
    return {result[name] for name in members}
