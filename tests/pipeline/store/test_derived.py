"""What is kept beside the tables always equals what would be computed from them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from coaudit.pipeline.ingest import imports
from coaudit.pipeline.ingest import run as ingest
from coaudit.pipeline.store import Store, derived
from coaudit.pipeline.store import connection as storing
from coaudit.pipeline.systems import ReadOptions
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
    assert store.behind() is is_late


def test_a_store_that_only_reads_does_not_sync(store: Store) -> None:
    _rate(store, "ann", 1)
    ledger = next(store.workspace.ratings.glob("*.jsonl"))
    later = ledger.with_name("later.jsonl")
    later.write_bytes(ledger.read_bytes())
    looking = Store(store.workspace, read_only=True)
    before = store.workspace.database.stat().st_mtime_ns
    assert looking.behind()
    with looking.reading() as connection:
        assert connection.execute("SELECT count(DISTINCT ledger) FROM ratings").fetchall() == [(1,)]
    assert store.workspace.database.stat().st_mtime_ns == before
