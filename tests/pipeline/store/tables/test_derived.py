"""What is kept beside the tables always equals what would be computed from them."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.ingest import imports
from coaudit.pipeline.ingest import run as ingest
from coaudit.pipeline.store import Store
from coaudit.pipeline.store import connection as storing
from coaudit.pipeline.store.tables import derived
from coaudit.pipeline.systems import ReadOptions
from coaudit.schemas import Rating
from coaudit.schemas.rating import RaterKind
from tests.conftest import ROOT
from tests.pipeline.stores import made

KEPT = {"counted": "counting", "processed": "processing", "measured": "measuring"}
"""Table -> the view that computes it."""


@pytest.fixture
def store(workspace: Path) -> Store:
    found = made(workspace)
    ingest.ingest(found, [ROOT / "data" / "cogym" / "real"], ReadOptions())
    return found


def _rate(store: Store, rater: str, trajectories: int) -> None:
    with store.reading() as connection:
        units = connection.execute(
            "SELECT trajectory_id, event FROM units WHERE kind = 'utterance' AND NOT opening "
            f"AND trajectory_id IN (SELECT id FROM trajectories ORDER BY id LIMIT {trajectories}) "
            "ORDER BY ALL"
        ).fetchall()
    rating = {"codebook": "initiative", "code": "initiative", "rater": rater, "label": "yes"}
    path = store.workspace.path / "given.jsonl"
    path.write_text("".join(json.dumps(rating | {"trajectory": t, "event": e}) + "\n" for t, e in units))
    done = imports.ratings(store, path)
    assert done.imported + done.unchanged == len(units)


def _assert_kept(store: Store) -> None:
    with store.reading() as connection:
        for table, view in KEPT.items():
            for a, b in ((table, view), (view, table)):
                differing = connection.execute(f"(FROM {a}) EXCEPT ALL (FROM {b})").fetchall()
                assert differing == []


@pytest.mark.slow
@pytest.mark.parametrize("named", [derived.NAMED, dict.fromkeys(derived.NAMED, 0)], ids=["few", "many"])
def test_what_is_kept_equals_what_is_computed_after_every_change(
    store: Store, named: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derived, "NAMED", named)
    _assert_kept(store)
    _rate(store, "ann", 2)
    _assert_kept(store)
    _rate(store, "ann", 4)
    _assert_kept(store)
    ingest.ingest(store, [ROOT / "data" / "cogym" / "simulated"], ReadOptions())
    _assert_kept(store)
    imports.outcomes(store, ROOT / "data" / "cogym" / "real" / "outcomes.jsonl")
    _assert_kept(store)


@pytest.mark.slow
@pytest.mark.parametrize(("together", "parts"), [(1, 16), (2, 16), (1, 2), (100, 16)])
def test_what_is_sorted_in_parts_is_all_there_is_in_the_order_of_trajectories(
    store: Store, together: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"MANY": 1, "TOGETHER": together, "RATED_TOGETHER": together, "PARTS": parts}.items():
        monkeypatch.setattr(derived, name, value)
    _rate(store, "ann", 4)
    ingest.ingest(store, [ROOT / "data" / "cogym" / "simulated"], ReadOptions())
    _assert_kept(store)
    with store.reading() as connection:
        for table in KEPT:
            rows = connection.execute(f"SELECT trajectory_id FROM {table} ORDER BY rowid").fetchall()
            assert rows == sorted(rows)
            assert len(set(rows)) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_versions_are_kept_as_they_are_computed_whatever_comes(store: Store, seed: int) -> None:
    """People and judges of several versions rate, fail and take back, in any order."""
    draw = random.Random(seed)
    units = draw.sample(_units(store), 3)  # few, so that one version replaces another on all of them
    words: list[dict[str, Any]] = [{"label": "yes"}, {"label": "no"}, {"error": "x"}, {"retracted": True}]
    raters: dict[str, RaterKind] = {"ann": "human", "judge": "llm", "rules": "rule"}

    def said() -> Rating:
        rater, kind = draw.choice(list(raters.items()))
        version = None if kind == "human" else draw.choice(["1", None])
        repeat = draw.choice([0, 0, 1]) if kind == "llm" else 0
        (word,) = draw.choices(words, [4, 1, 1, 1])
        unit = draw.choice(units)
        return _rating(unit, rater=rater, rater_kind=kind, rater_version=version, repeat=repeat, **word)

    for _ in range(25):
        _assert_kept_of(store, *(said() for _ in range(draw.choice([1, 2, 3]))))


@pytest.mark.long
def test_a_version_that_comes_back_under_the_name_of_another_counts_everywhere(store: Store) -> None:
    """The name was known, so that only the trajectory which it rated was computed anew."""
    units = _units(store)
    one = units[0]
    other = next(unit for unit in units if unit[0] != one[0])
    said = [(one, "a", "yes"), (one, "b", "no"), (other, "c", "yes"), (other, "a", "no")]
    for unit, version, label in said:
        rating = _rating(unit, rater="judge", rater_kind="llm", rater_version=version, label=label)
        _assert_kept_of(store, rating)


def _units(store: Store) -> list[tuple[str, int, str, str]]:
    """Trajectory, event, hash and the version of the codebook."""
    query = """
        SELECT DISTINCT trajectory_id, event, hash, version FROM units, codebooks
        WHERE kind = 'utterance' AND NOT opening AND name = 'initiative' ORDER BY ALL
    """
    with store.reading() as connection:
        return list(connection.execute(query).fetchall())


def _rating(unit: tuple[str, int, str, str], **fields: Any) -> Rating:
    trajectory, event, unit_hash, version = unit
    of: dict[str, Any] = {"codebook": "initiative", "codebook_version": version, "code": "initiative"}
    return Rating(trajectory=trajectory, event=event, unit_hash=unit_hash, **of, **fields)


def _assert_kept_of(store: Store, *said: Rating) -> None:
    with store.workspace.new_ratings() as file:
        file.append(said)
    with store.reading() as connection:
        kept = _kept(connection)
    with store.writing() as connection:
        derived.refresh(connection)
        assert kept == _kept(connection)


def _kept(connection: Any) -> dict[str, list[str]]:
    return {table: sorted(map(str, connection.execute(f"FROM {table}").fetchall())) for table in KEPT}


def test_trajectories_that_a_new_rater_has_not_rated_count_as_missing(store: Store) -> None:
    _rate(store, "ann", 2)
    with store.reading() as connection:
        found = connection.execute(
            "SELECT count(value), count(*) FROM measures "
            "WHERE metric = 'initiative_entropy' AND rater = 'ann' AND definition = 'paper'"
        ).fetchall()
    assert found == [(2, 6)]


@pytest.mark.parametrize(("ahead", "is_late"), [(-1.0, True), (60.0, False), (3600.0, True)])
def test_what_waits_to_be_derived_waits_no_longer_where_another_clock_said_until_when(
    workspace: Path, ahead: float, is_late: bool
) -> None:
    store = made(workspace)
    (workspace / "sources.jsonl").touch()
    with store.writing() as connection:
        store.catch_up(connection)
        storing.insert(connection, "postponed", [{"trajectory_id": "t", "until": time.time() + ahead}])
    assert store.is_behind() is is_late


def test_a_store_that_only_reads_does_not_sync(store: Store) -> None:
    _rate(store, "ann", 1)
    ledger = next(store.workspace.ratings.glob("*.jsonl"))
    later = ledger.with_name("later.jsonl")
    later.write_bytes(ledger.read_bytes())
    looking = Store(store.workspace, read_only=True)
    before = store.workspace.database.stat().st_mtime_ns
    assert looking.is_behind()
    with looking.reading() as connection:
        assert connection.execute("SELECT count(DISTINCT ledger) FROM ratings").fetchall() == [(1,)]
    assert store.workspace.database.stat().st_mtime_ns == before
