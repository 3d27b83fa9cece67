"""Trained judges from the store: whose labels they learn, and of which runs they know nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from coaudit.pipeline.ingest.measure import save
from coaudit.schemas import Event, Trajectory
from tests.conftest import Coaudit
from tests.judges.teams import team
from tests.pipeline.stores import made, verdict, write_lines

pytestmark = pytest.mark.library


def run(instance: int, number: int, *, is_named: bool) -> Trajectory:
    """Words by chance that only runs of the same instance share, which their log names, or which begin with
    the same question."""
    draw = np.random.default_rng(instance)
    said = [(actor, " ".join(draw.choice([f"w{instance}x{k}" for k in range(9)], 6))) for actor in KINDS]
    result = team(*said, key=f"t{instance}-{number}")
    if is_named:
        return result.model_copy(update={"instance": f"i{instance}"})
    query = f"{' ' * number}Plan trip {instance}{' ' * number} to Rome for me"
    start, *events = result.events
    asked = Event(seq=1, actor="human", kind="message", text=query)
    later = [event.model_copy(update={"seq": event.seq + 1}) for event in events]
    return result.model_copy(update={"events": (start, asked, *later)})


KINDS = ("human", "agent") * 2


@pytest.mark.slow
@pytest.mark.parametrize("is_named", [True, False])
def test_runs_of_an_instance_that_it_learnt_from_are_all_new_to_it(
    coaudit: Coaudit, workspace: Path, is_named: bool
) -> None:
    """It knew of the other runs what it had learnt by heart: kappa with people who labelled these was twice
    what it was on other instances. Those that came after it had learnt are no exception. Where logs name no
    instance, runs that begin with the same question are of one: `train` gave a kappa of .81 of 12 tasks with
    five runs each, where it was .02 on other tasks."""
    store, numbers = made(workspace), range(10)
    places = (1, 2, 3, 4) if is_named else (2, 3, 4, 5)
    with store.writing() as connection:
        save(store, [run(i, n, is_named=is_named) for i in numbers for n in (0, 2)], connection)
    labels = dict(zip(numbers, np.random.default_rng(0).permutation(["yes", "no"] * 5), strict=True))
    lines = [
        verdict(f"t{i}-{n}", e, "initiative", str(labels[i]), rater="ann", rater_kind="human")
        for i in numbers
        for n in (0, 2)
        for e in places
    ]
    coaudit("ratings", "import", write_lines(workspace / "votes.jsonl", lines))
    (row,) = coaudit("train", "--codebook", "initiative", "--json").json["rows"]
    assert row["held_out"] == "instance" and row["low"] <= row["kappa"] <= row["high"] and row["kappa"] < 0.5
    with store.writing() as connection:
        save(store, [run(i, 1, is_named=is_named) for i in numbers], connection)
    coaudit("judge", "--rater", "trained:initiative")
    exported = coaudit("ratings", "export").out.splitlines()
    said = {
        (rating["trajectory"], rating["event"]): rating["label"]
        for rating in map(json.loads, exported)
        if rating["rater"] == "trained:initiative"
    }
    assert len(said) == 120
    assert '"learnt_from":"ann"' in exported[-1]
    assert all(said[f"t{i}-0", e] == said[f"t{i}-1", e] for i in numbers for e in places)
    right = [said[f"t{i}-0", e] == labels[i] for i in numbers for e in places]
    assert np.mean(right) == pytest.approx((row["kappa"] + 1) / 2, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("others", [0, 1])
def test_a_form_of_words_that_most_sessions_begin_with_names_no_instance(
    coaudit: Coaudit, workspace: Path, others: int
) -> None:
    """One of 60 sessions was all that was learnt from when 59 were held out: kappa was 0. Where all began
    alike it had no interval."""
    store, said = made(workspace), {True: "sorry late delay", False: "fine great ready"}
    runs = [
        team(
            (
                "human",
                "Please solve the task in the file." if n >= others else f"Write poem {n}, please: sea.",
            ),
            ("agent", f"{said[n % 3 == 0]} {'abcdefg'[n % 7] * 4}"),
            key=f"t{n}",
        )
        for n in range(24)
    ]
    asked = [one.events[1].model_copy(update={"status": None}) for one in runs]
    with store.writing() as connection:
        save(
            store,
            [
                one.model_copy(update={"events": (one.events[0], query, *one.events[2:])})
                for one, query in zip(runs, asked, strict=True)
            ],
            connection,
        )
    lines = [
        verdict(f"t{n}", 2, "initiative", "yes" if n % 3 == 0 else "no", rater="ann", rater_kind="human")
        for n in range(24)
    ]
    coaudit("ratings", "import", write_lines(workspace / "votes.jsonl", lines))
    (row,) = coaudit("train", "--codebook", "initiative", "--json").json["rows"]
    assert row["held_out"] == "trajectory" and row["kappa"] > 0.9 and row["low"] > 0.5
