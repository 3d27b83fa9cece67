"""How many units people must label, from the labels there are: by hand, and as the command tells it."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import pytest

from coaudit.pipeline.analyze import agreement, planning, rates
from coaudit.pipeline.store import Store
from coaudit.schemas import Rate
from tests.conftest import Coaudit
from tests.pipeline.analyze.test_agreement import runs, said

JUDGE = "111111112222222233333333" * 2
ANN = "111112––122223––333322––" * 2
BOB = "111111––122223––333332––" * 2


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = runs(tmp_path, len(JUDGE))
    for book in ("scale", "kind"):
        said(store, book, {("judge", "late"): JUDGE, ("ann", "late"): ANN, ("bob", "late"): BOB})
    return store


def half(row: Rate) -> float:
    assert row.low is not None and row.high is not None
    return (row.high - row.low) / 2


def test_each_figure_needs_what_its_own_interval_says(store: Store) -> None:
    rows = planning.needs(store, ["scale", "kind"], 0.05)
    assert [(row.codebook, row.label, row.figure, row.judge) for row in rows] == [
        ("scale", None, "mean", "judge"),
        ("scale", None, "kappa of the judge and people", "judge"),
        ("scale", None, "kappa of people", None),
        *(("kind", label, "rate", "judge") for label in "123"),
        ("kind", None, "kappa of the judge and people", "judge"),
        ("kind", None, "kappa of people", None),
    ]
    (mean,) = rates.rates(store, ["scale"])
    assert rows[0].target == pytest.approx(0.1), "of labels from 1 to 3"
    assert (rows[0].value, rows[0].low, rows[0].high, rows[0].n) == (mean.rate, mean.low, mean.high, 36)
    # Places by the judge's label: 0 (10), ¼ (2); 0 (2), ½ (8), 1 (2); 1 (8), ¾ (2), ½ (2). Of ¼ and ¾, ½²/4.
    between = 4 * 0.0625 / (5 / 48 + 1 + 7 / 16)
    assert mean.n_divided == 4 and mean.between_people == pytest.approx(between)
    rest = (1 - between) / 48
    expected = ceil(1 / (rest + (1 / 36 - rest) * (0.1 / half(mean)) ** 2))
    assert rows[0].units == expected, "labels of all units settle what lies between units alone"
    assert rows[0].more == max(0, expected - 36)
    kappa = agreement.of_workspace(store, ["kind"])
    (people,) = (r for r in kappa if r.coefficient == "cohen_kappa" and r.raters == ("ann", "bob"))
    assert people.low is not None and people.high is not None
    assert rows[-1].units == ceil(36 * ((people.high - people.low) / 2 / 0.05) ** 2)
    assert rows[-1].reason == "more than the 48 units that can have a label"


@pytest.mark.parametrize("eva", ["", "u" * 13])
def test_a_corpus_whose_units_people_agree_on_is_settled_by_labels(tmp_path: Path, eva: str) -> None:
    store = runs(tmp_path, 48)
    said(store, "first", {("eva", "late"): "yn" * 12 + eva})
    (need,) = (row for row in planning.needs(store, ["first"], 0.05) if row.figure == "rate")
    (rate,) = rates.rates(store, ["first"])
    expected = ceil(1 / (1 / 48 + (1 / 24 - 1 / 48) * (0.05 / half(rate)) ** 2))
    assert rate.n_divided == 0 and need.units == expected and 35 < expected < 48
    reason = "more than the 35 units that can have a label" if eva else None
    assert need.reason == reason, "13 were found unclear"


def test_the_command_tells_each_label_and_kappa(store: Store, coaudit: Coaudit) -> None:
    place = store.workspace.path
    told = coaudit("--workspace", place, "plan", "--codebook", "kind", "--half-width", "0.2", "--json").json
    assert [row["label"] for row in told["rows"]] == ["1", "2", "3", None, None]
    assert all(row["target"] == 0.2 for row in told["rows"])
    assert all(row["more"] == max(0, row["units"] - row["n"]) for row in told["rows"])
    twice = coaudit("--workspace", place, "plan", "--codebook", "kind", "--codebook", "kind", "--json").json
    assert len(twice["rows"]) == 5
    shown = coaudit("--workspace", place, "plan", "--codebook", "kind").out
    assert "late: 1" in shown and "kappa of people" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--judge", "judge"), "--judge is for a plan by labels"),
        (("--where", "task=a"), "--where is for a plan by labels"),
        (("--codebook", "kind", "--kappa", "0"), "--kappa is for a plan without labels"),
        (("--codebook", "kind", "--corpus", "9"), "--corpus is for a plan without labels"),
        (("--codebook", "kind", "--judge", "nobody"), "no judge 'nobody'"),
        (("--codebook", "none"), "unknown codebook 'none'"),
    ],
)
def test_a_plan_is_with_labels_or_without(
    store: Store, coaudit: Coaudit, options: tuple[str, ...], message: str
) -> None:
    told = coaudit("--workspace", store.workspace.path, "plan", *options, status=2)
    assert message in told.err


def test_without_a_label_of_people_a_pilot_comes_first(store: Store, coaudit: Coaudit) -> None:
    said(store, "first", {("judge", "late"): "y" * len(JUDGE)})
    told = coaudit("--workspace", store.workspace.path, "plan", "--codebook", "first")
    assert "draws a pilot" in told.err and not told.out
