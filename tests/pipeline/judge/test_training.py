"""Trained judges from the store: whose labels they learn, and of which runs they know nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from coaudit.pipeline.ingest.measure import save
from coaudit.schemas import Trajectory
from tests.conftest import Coaudit
from tests.judges.teams import team
from tests.pipeline.stores import made, verdict, write_lines

pytestmark = pytest.mark.library


def run(instance: int, number: int) -> Trajectory:
    """Words by chance that only runs of the same instance share."""
    draw = np.random.default_rng(instance)
    said = [(actor, " ".join(draw.choice([f"w{instance}x{k}" for k in range(9)], 6))) for actor in KINDS]
    return team(*said, key=f"t{instance}-{number}").model_copy(update={"instance": f"i{instance}"})


KINDS = ("human", "agent") * 2


@pytest.mark.slow
def test_runs_of_an_instance_that_it_learnt_from_are_all_new_to_it(coaudit: Coaudit, workspace: Path) -> None:
    """It knew of the other runs what it had learnt by heart: kappa with people who labelled these was twice
    what it was on other instances. Those that came after it had learnt are no exception."""
    store, numbers = made(workspace), range(10)
    with store.writing() as connection:
        save(store, [run(i, 0) for i in numbers], connection)
    labels = dict(zip(numbers, np.random.default_rng(0).permutation(["yes", "no"] * 5), strict=True))
    lines = [
        verdict(f"t{i}-0", e, "initiative", str(labels[i]), rater="ann", rater_kind="human")
        for i in numbers
        for e in (1, 2, 3, 4)
    ]
    coaudit("ratings", "import", write_lines(workspace / "votes.jsonl", lines))
    (row,) = coaudit("train", "--codebook", "initiative", "--json").json["rows"]
    assert row["held_out"] == "instance" and row["low"] <= row["kappa"] <= row["high"] and row["kappa"] < 0.5
    with store.writing() as connection:
        save(store, [run(i, 1) for i in numbers], connection)
    coaudit("judge", "--rater", "trained:initiative")
    exported = coaudit("ratings", "export").out.splitlines()
    said = {
        (rating["trajectory"], rating["event"]): rating["label"]
        for rating in map(json.loads, exported)
        if rating["rater"] == "trained:initiative"
    }
    assert len(said) == 80
    assert '"learnt_from":"ann"' in exported[-1]
    assert all(said[f"t{i}-0", e] == said[f"t{i}-1", e] for i in numbers for e in (1, 2, 3, 4))
    right = [said[f"t{i}-0", e] == labels[i] for i in numbers for e in (1, 2, 3, 4)]
    assert np.mean(right) == pytest.approx((row["kappa"] + 1) / 2, abs=0.05)
