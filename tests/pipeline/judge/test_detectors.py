"""Detectors of one system's own failures, on the sample logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from coaudit.pipeline import codebooks
from coaudit.pipeline.cli.sample_audit import samples
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.judge.detectors import CurrentTrajectories, SystemDetectors
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.units import cut
from coaudit.schemas import Rating


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The samples of ReHAC and Collab-Overcooked."""
    made = Store(Workspace(tmp_path_factory.mktemp("audit") / "workspace"))
    folders = [samples() / name for name in ("rehac", "overcooked")]
    ingest(made, folders, ReadOptions(), reference=samples() / "overcooked" / "reference")
    return made


def _ratings(store: Store, book: str) -> Iterator[Rating]:
    codebook = codebooks.load(book)
    shown = CurrentTrajectories(store)
    rater = SystemDetectors(codebook, shown)
    with store.reading() as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM trajectories").fetchall()]
        found = store.load(connection, ids, states=True)
    shown.show(found)
    for trajectory in found:
        for ratings in rater.rate(cut(trajectory, codebook)):
            yield from ratings


def test_a_page_searched_again_and_again_is_a_dead_loop_that_cites_its_steps(store: Store) -> None:
    loops = [r for r in _ratings(store, "dilemmas") if r.code == "dead_loop" and r.label == "present"]
    assert loops
    assert all(len(rating.cites) >= 2 for rating in loops)


def test_an_answer_that_gives_up_is_ambiguity(store: Store) -> None:
    said = [r for r in _ratings(store, "dilemmas") if r.code == "ambiguity" and r.label == "present"]
    assert any("unknown" in (rating.rationale or "") for rating in said)


def test_premature_and_irrelevant_requests_are_told_apart_and_cited(store: Store) -> None:
    present = [r for r in _ratings(store, "collaborative_errors") if r.label == "present"]
    assert {"premature", "irrelevant"} <= {rating.code for rating in present}
    assert all(rating.cites for rating in present)


def test_trajectories_of_other_systems_get_no_rating(store: Store) -> None:
    with store.reading() as connection:
        system = dict(connection.execute("SELECT id, system FROM trajectories").fetchall())
    assert {system[rating.trajectory] for rating in _ratings(store, "dilemmas")} == {"rehac"}
    assert {system[rating.trajectory] for rating in _ratings(store, "collaborative_errors")} == {"overcooked"}


def test_without_reference_trajectories_a_request_is_not_judged(tmp_path: Path) -> None:
    bare = Store(Workspace(tmp_path / "bare"))
    ingest(bare, [samples() / "overcooked" / "logs"], ReadOptions())
    assert list(_ratings(bare, "collaborative_errors")) == []


def test_a_log_that_the_rules_fail_on_is_an_error_and_the_others_are_rated(tmp_path: Path) -> None:
    empty = {"type": "trajectory", "native_id": "empty", "system": "coblock", "participants": []}
    (tmp_path / "empty.jsonl").write_text(json.dumps(empty))
    made = Store(Workspace(tmp_path / "workspace"))
    ingest(made, [samples() / "coblock", tmp_path / "empty.jsonl"], ReadOptions())
    said = {rating.error for rating in _ratings(made, "team_faults")}
    assert said == {None, "its rules failed: IndexError: tuple index out of range"}
