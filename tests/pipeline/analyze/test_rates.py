"""Rates of codes with more than two labels and of scales, by hand; those of two are in `test_agreement`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coaudit.pipeline.analyze import compare, rates
from coaudit.pipeline.store import Store
from coaudit.schemas import Rate
from tests.conftest import Coaudit
from tests.pipeline.analyze.test_agreement import runs, said

JUDGE = "111111112222222233333333"
ANN = "111112––122223––333322––"
"""Six of each label that the judge gave."""


def store_with(tmp_path: Path, book: str, answers: dict[str, str], arms: str = "") -> Store:
    store = runs(tmp_path, len(next(iter(answers.values()))), list(arms) or ())
    said(store, book, {(rater, "late"): letters for rater, letters in answers.items()})
    return store


def of(rows: list[Rate], label: str | None = None, judge: str | None = "judge") -> Rate:
    (row,) = (row for row in rows if (row.label, row.judge) == (label, judge))
    return row


def test_the_mean_of_a_scale_is_corrected_within_the_labels_of_the_judge(tmp_path: Path) -> None:
    """It had no rate at all: only differences between groups were told."""
    row = of(rates.rates(store_with(tmp_path, "scale", {"judge": JUDGE, "ann": ANN}), ["scale"]))
    assert (row.is_mean, row.judge_rate, row.n_units, row.n_human, row.n_judged) == (True, 2, 24, 18, 24)
    expected = float(np.mean([7 / 6, 12 / 6, 16 / 6]))
    assert row.rate == pytest.approx(expected)
    assert row.low is not None and row.high is not None and 1 < row.low < expected < row.high < 3


def test_each_of_several_labels_has_a_share_and_they_add_up_to_one(tmp_path: Path) -> None:
    rows = rates.rates(store_with(tmp_path, "kind", {"judge": JUDGE, "ann": ANN}), ["kind"])
    shares = {row.label: row for row in rows}
    assert [shares[label].judge_rate for label in "123"] == pytest.approx([1 / 3] * 3)
    counts = np.array([[5, 1, 0], [1, 4, 1], [0, 2, 4]])  # people's labels by the judge's
    assert [shares[label].rate for label in "123"] == pytest.approx((counts / 6).mean(0))
    assert sum(row.rate or 0 for row in rows) == pytest.approx(1)
    assert all(
        row.low <= row.rate <= row.high for row in rows if row.low is not None and row.high and row.rate
    )


def test_labels_that_people_hardly_saw_are_corrected_together(tmp_path: Path) -> None:
    """One of the judge's labels was checked once, another never: alone, either would leave no rate."""
    judge, ann = "1" * 14 + "2" * 6 + "3" * 4, "1112233–––––––122333––––"
    for book, label in (("scale", None), ("kind", "3")):
        row = of(rates.rates(store_with(tmp_path / book, book, {"judge": judge, "ann": ann}), [book]), label)
        places = np.array([1, 1, 1, 2, 2, 3, 3]), np.array([1, 2, 2, 3, 3, 3])
        values = [own if label is None else own == 3 for own in places]
        assert row.rate == pytest.approx(14 / 24 * values[0].mean() + 10 / 24 * values[1].mean())


def test_units_on_which_people_differ_count_as_the_mean_of_a_scale(tmp_path: Path) -> None:
    """A place between two labels is a difference only where it is one."""
    alike = {"ann": "222222222222", "bob": "222222222222"}
    (row,) = rates.rates(store_with(tmp_path / "alike", "scale", alike), ["scale"])
    assert (row.rate, row.low, row.high) == (2, 2, 2) and row.design is not None
    assert "every unit was labelled" in row.design and "differ" not in row.design
    apart = {"ann": "111111222222", "bob": "333333222222"}
    (row,) = rates.rates(store_with(tmp_path / "apart", "scale", apart), ["scale"])
    assert row.rate == 2 and row.low is not None and row.low < 2 and row.design is not None
    assert "6 on which people differ count as the mean of their labels" in row.design


def test_unclear_labels_of_a_scale_count_as_its_ends(tmp_path: Path) -> None:
    (row,) = rates.rates(store_with(tmp_path, "scale", {"ann": "1233u–––––––"}), ["scale"])
    assert row.n_unclear == 1 and row.rate == pytest.approx(9 / 4)
    assert (row.rate_if_unclear_absent, row.rate_if_unclear_present) == pytest.approx((10 / 5, 12 / 5))
    assert row.design and "(2.000 if all are the least label, 2.400 if all are the greatest)" in row.design


def test_what_unclear_units_could_make_of_a_rate_is_told_of_that_rate(tmp_path: Path) -> None:
    """Beside the annotator model's rate stood the range of the mean of people's labels."""
    store = store_with(tmp_path, "kind", {"judge": JUDGE, "ann": "u" + ANN[1:], "bob": "u" + ANN[1:]})
    row = of(rates.rates(store, ["kind"]), "1")
    assert row.design and "(0.278 if none of them has it, 0.333 if all have it)" in row.design
    model = of(rates.rates(store, ["kind"], labels="dawid-skene-judge"), "1")
    assert (model.n_unclear, model.rate_if_unclear_absent) == (1, None) and model.design
    assert "1 that people found unclear left out" in model.design and " if none" not in model.design


@pytest.mark.parametrize("estimator", ["rogan_gladen", "ppi", "hajek", "human_only", "difference"])
def test_estimators_of_a_mean_are_means_or_say_why_there_is_none(tmp_path: Path, estimator: str) -> None:
    store = store_with(tmp_path, "scale", {"judge": JUDGE, "ann": ANN})
    row = of(rates.rates(store, ["scale"], estimator=estimator))
    if estimator == "rogan_gladen":
        assert row.rate is None and row.reason is not None and "scale" in row.reason
        return
    labels = np.array([int(letter) for letter in ANN if letter != "–"])
    if estimator == "ppi":
        seen = np.array([int(j) for j, a in zip(JUDGE, ANN, strict=True) if a != "–"])
        slope = np.cov(seen, labels)[0, 1] / seen.var(ddof=1)
        expected = labels.mean() - slope * (seen.mean() - 2)
    else:  # as many of each of the judge's labels: with and without the judge it is one number
        expected = labels.mean()
    assert row.rate == pytest.approx(expected)


@pytest.mark.parametrize("labels", ["dawid-skene", "dawid-skene-judge"])
def test_an_annotator_model_has_no_places_on_a_scale(tmp_path: Path, labels: str) -> None:
    store = store_with(tmp_path, "scale", {"judge": JUDGE, "ann": ANN})
    (row,) = rates.rates(store, ["scale"], labels=labels)
    assert row.rate is None and row.reason is not None and "scale" in row.reason


@pytest.mark.parametrize("book", ["scale", "kind"])
def test_groups_are_compared_by_the_rates_that_people_correct(tmp_path: Path, book: str) -> None:
    """Two groups that are alike: where the judge is too mild in one, its own labels differ."""
    people, mild = "112233" * 4, "113333" * 4
    arms = "a" * 24 + "b" * 24
    store = store_with(tmp_path, book, {"judge": people + mild, "ann": people * 2}, arms)
    told = {
        (row.code + row.suffix, (row.group or {})["condition"]): row
        for row in rates.rates(store, [book], by=["condition"])
    }
    rows = [row for row in compare.compare(store, "condition") if row["question"] == book]
    assert len(rows) == (1 if book == "scale" else 3)
    for row in rows:
        first, second = (told[row["metric"], arm] for arm in "ab")
        assert (row["basis"], row["rater"]) == (compare.CORRECTED, "judge")
        assert (row["first"], row["second"]) == (pytest.approx(first.rate), pytest.approx(second.rate))
        assert row["effect"] == pytest.approx(0, abs=1e-12) and row["low"] < 0 < row["high"]
        assert row["metric"] == "late: 1" or first.judge_rate != second.judge_rate
    assert all(abs(row["low"]) < 2 for row in rows)


def test_a_scale_is_compared_in_its_own_numbers(tmp_path: Path) -> None:
    store = store_with(tmp_path, "scale", {"ann": "111112222233" + "333332222222"}, "a" * 12 + "b" * 12)
    (row,) = compare.compare(store, "condition", metrics=["late (mean)"])
    assert (row["basis"], row["rater"]) == (compare.PEOPLE, None)
    assert (row["first"], row["second"]) == (pytest.approx(21 / 12), pytest.approx(29 / 12))
    assert row["effect"] == pytest.approx(-8 / 12) and row["low"] < row["effect"] < row["high"]


def test_rates_are_named_after_label_or_mean(tmp_path: Path, coaudit: Coaudit) -> None:
    store = store_with(tmp_path, "kind", {"judge": JUDGE})
    said(store, "scale", {("judge", "late"): JUDGE})
    out = coaudit("--workspace", str(store.workspace.path), "rates").out
    assert all(name in out for name in ("late: 1", "late: 2", "late: 3", "late (mean)"))
    assert "no human label" in out


def test_what_gold_settled_tells_how_far_people_differ_on_units_that_one_labelled(tmp_path: Path) -> None:
    """Two people label 12 of 24 units and differ on 4, which gold settles: of the 12 others, that one
    labelled, others might have said something else. The interval of the whole corpus was of width 0."""
    answers = {"ann": "yyyyyyyynnnn" + "ynynynynynyn", "bob": "yyyynnnnnnnn" + "–" * 12}
    store = store_with(tmp_path, "first", {**answers, "gold": "––––yyyy" + "–" * 16})
    (row,) = rates.rates(store, ["first"])
    assert (row.n_human, row.n_divided) == (24, 0) and row.rate == pytest.approx(14 / 24)
    # s² is ½ on 4 of 12 units: a single label has a variance of 1/6, all together 2 of 24²
    assert row.low is not None and row.high is not None
    assert row.high - row.low == pytest.approx(2 * 1.96 * 2**0.5 / 24, rel=0.1)
    assert row.between_people == pytest.approx(2 / (24 * 14 / 24 * 10 / 24))
    assert "others may say something else" in (row.design or "")
