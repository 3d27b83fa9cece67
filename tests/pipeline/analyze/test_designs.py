"""Designs: with what probability the samples that somebody has begun took a unit, and who follows samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coaudit.pipeline import codebooks
from coaudit.pipeline.analyze import agreement, matrices, metrics, rates
from coaudit.pipeline.analyze.designs import Design, Designs, Drawing, design, follows_samples
from coaudit.pipeline.store import Store
from tests.pipeline.analyze.test_agreement import NAME, labelled, sampled
from tests.pipeline.stores import rate, verdict


def drawing(drawn: list[bool], chance: float | list[float]) -> Drawing:
    n = len(drawn)
    everything, nowhere = np.ones(n, dtype=bool), np.full(n, -1, dtype=np.int64)
    return Drawing(np.array(drawn), np.broadcast_to(np.array(chance), n).astype(float), everything, nowhere)


def test_two_samples_take_a_unit_with_the_probability_that_either_does() -> None:
    both = [drawing([True, False, True], 0.2), drawing([False, True, True], [0.5, 0.5, 0.25])]
    assert design(both, np.ones(3, dtype=bool)).inclusion == pytest.approx([0.6, 0.6, 0.4])
    begun = design(both, np.array([True, False, True])).inclusion
    assert begun[[0, 2]] == pytest.approx([0.2, 0.2]), "nobody has begun the second"
    assert np.isnan(begun[1])


def test_what_a_rater_skipped_for_reasons_of_its_own_does_not_make_a_sample_unfinished() -> None:
    """A judge that has come through half of the corpus met half of each sample, all of it labelled."""
    both = [drawing([True, True, False, False], 0.2), drawing([False, False, True, True], 0.5)]
    seen = np.array([True, False, True, False])
    half = design(both, seen, among=seen).inclusion
    assert half == pytest.approx([0.6] * 4)
    assert design(both, seen).inclusion == pytest.approx([0.325] * 4)


def test_who_spoke_of_drawn_units_alone_follows_the_samples_and_who_spoke_of_a_part_by_itself_does_not() -> (
    None
):
    n = 400
    rng = np.random.default_rng(3)
    drawn = np.zeros(n, dtype=bool)
    drawn[rng.permutation(n)[:100]] = True
    nowhere = np.full(n, -1, dtype=np.int64)
    everywhere, quarter = np.ones(n, dtype=bool), np.full(n, 0.25)
    own = Design(np.where(drawn, 0.25, np.nan), quarter, nowhere, everywhere, has_answers=True)
    each = np.arange(n)
    first = each < n // 2
    assert follows_samples(drawn, own, each)
    assert follows_samples(drawn | (each < 20), own, each), "the sample, and a little more"
    assert not follows_samples(first, own, each)
    assert not follows_samples(np.ones(n, dtype=bool), own, each)
    assert not follows_samples(np.zeros(n, dtype=bool), own, each)
    whole = Design(np.ones(n), np.ones(n), nowhere, everywhere, has_answers=True)
    assert not follows_samples(first, whole, each), "a sample of all says nothing of who was asked"


def corpus(tmp_path: Path) -> Store:
    """Forty units of which ten are positive; `judge` spoke of all, `late` of the second sample's, rightly."""
    truth = "y" * 10 + "n" * 30
    second = [0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13]
    first = [8, 14, 15, 16, 17, 18, 19, 20]
    people = "".join(c if n in {*first, *second} else "–" for n, c in enumerate(truth))
    late = "".join(c if n in second else "–" for n, c in enumerate(truth))
    store = labelled(tmp_path, {"ann": people, "judge": truth, "late": late})
    even = dict.fromkeys(range(40), 0.2)
    sampled(store, "first", {n: 0.2 for n in first}, even)
    uneven = {n: 0.8 if n < 10 else 4 / 30 for n in range(40)}
    sampled(store, "second", {n: uneven[n] for n in second}, uneven)
    return store


@pytest.mark.long
def test_a_judge_that_was_asked_about_a_sample_alone_has_no_rate_of_the_corpus(tmp_path: Path) -> None:
    store = corpus(tmp_path)
    of = {row.judge: row for row in rates.rates(store, ["initiative"])}
    assert of["judge"].judge_rate == pytest.approx(0.25)
    late = of["late"]
    assert late.judge_rate is None
    assert late.n_judged == 12
    assert late.n_human == 20
    assert "samples alone" in (late.design or "")
    assert late.rate is not None and late.low is not None and late.high is not None
    assert late.low < 0.25 < late.high and late.high - late.low > 0.1
    with store.reading() as connection:
        (code,) = matrices.rated_codes(connection, codebooks.load("initiative", store.workspace.codebooks))
    assert set(code.followers) == {"late"}


@pytest.mark.long
def test_a_judge_that_was_asked_about_a_sample_alone_is_weighed_by_that_sample(tmp_path: Path) -> None:
    store = corpus(tmp_path)
    (late,) = (
        row
        for row in agreement.of_workspace(store, ["initiative"])
        if row.coefficient == "cohen_kappa" and row.raters == ("late", "ann")
    )
    assert late.population is not None and late.population.endswith("weighted by 1/π")
    with store.reading() as connection:
        (code,) = matrices.rated_codes(connection, codebooks.load("initiative", store.workspace.codebooks))
    assert code.seen_by("late").design.inclusion[[0, 10]] == pytest.approx([0.8, 4 / 30])
    assert code.seen_by("judge").design.inclusion[[0, 10]] == pytest.approx([0.84, 1 - 0.8 * 26 / 30])


@pytest.mark.long
def test_judges_of_whom_one_saw_a_sample_alone_are_compared_by_that_sample(tmp_path: Path) -> None:
    store = corpus(tmp_path)
    rows = [row for row in agreement.of_workspace(store, ["initiative"]) if row.raters == ("judge", "late")]
    assert rows
    assert {row.population for row in rows} == {
        "units that two judges rated; those of the samples, weighted by 1/π"
    }
    assert {row.n_units for row in rows} == {12}


@pytest.mark.long
def test_each_judge_that_saw_a_sample_alone_is_compared_by_its_own_and_no_pair_twice(tmp_path: Path) -> None:
    """Of two judges that saw all and two that saw a sample each, every pair has one kappa a coefficient."""
    first, second = range(10, 16), range(20, 26)
    truth = "".join("y" if n % 3 == 0 else "n" for n in range(40))

    def some(units: range) -> str:
        return "".join(c if n in units else "–" for n, c in enumerate(truth))

    judges = {"judge": truth, "other judge": truth, "late": some(first), "later": some(second)}
    store = labelled(tmp_path, {"ann": some(range(10, 26)), **judges})
    for name, units, chance in (("first", first, 0.1), ("second", second, 0.4)):
        sampled(store, name, dict.fromkeys(units, chance), dict.fromkeys(range(40), chance))
    rows = [row for row in agreement.of_workspace(store, ["initiative"]) if "ann" not in row.raters]
    kappas = [row for row in rows if row.coefficient == "cohen_kappa"]
    assert sorted(row.raters for row in kappas) == [
        ("judge", "late"),
        ("judge", "later"),
        ("judge", "other judge"),
        ("late", "later"),
        ("late", "other judge"),
        ("later", "other judge"),
    ]
    units_of = {row.raters: row.n_units for row in kappas}
    assert units_of["judge", "other judge"] == 40
    assert units_of["judge", "late"] == units_of["later", "other judge"] == 6
    assert units_of["late", "later"] == 0


@pytest.mark.long
def test_a_sample_that_nobody_has_begun_changes_no_metric(tmp_path: Path) -> None:
    """Positives lie where the second sample would look, so that its probabilities would halve them."""
    store = labelled(tmp_path, {"ann": "yyn–––––nnnn", "judge": "yyyyynnnnnnn"})
    even = dict.fromkeys(range(12), 7 / 12)
    sampled(store, "first", {n: 7 / 12 for n in (0, 1, 2, 8, 9, 10, 11)}, even)

    def told() -> list[tuple[float | None, ...]]:
        rows = metrics.metrics(store, rater="ann")
        return [(r.value, r.low, r.high) for r in rows if r.metric == "initiative_entropy"]

    before = told()
    assert before and before[0][0] is not None
    uneven = {n: 0.9 if n < 5 else 0.1 for n in range(12)}
    sampled(store, "second", {n: uneven[n] for n in (0, 1, 3, 4)}, uneven)
    assert told() == before


def test_a_codebook_with_a_sample_and_one_without_may_be_asked_for_in_turns(tmp_path: Path) -> None:
    store = labelled(tmp_path, {"ann": "yn–y–n", "bob": "–n–yy–"}, probability={0: 0.5, 1: 0.25, 3: 0.25})
    with store.reading() as connection:
        both = Designs(connection)
        alone = {rater: Designs(connection).of("initiative", rater) for rater in ("ann", "bob")}
        assert both.of("halting", "ann") is None
        for rater in ("ann", "bob", "ann"):
            one, other = both.of("initiative", rater), alone[rater]
            assert one is not None and other is not None
            assert np.array_equal(one[0].inclusion, other[0].inclusion, equal_nan=True)
            assert np.array_equal(one[1], other[1])
            assert both.of("halting", rater) is None
    assert alone["ann"] is not None
    assert alone["ann"][1].tolist() == [True, True, False, True, False, True]


def test_a_metric_of_two_raters_is_weighted_by_the_sample_of_its_own_codebook(tmp_path: Path) -> None:
    """Labels on halting, which was not drawn, do not take the weights of the sample of initiative."""
    store = labelled(tmp_path, {"ann": "yn–y––", "bob": "yn–n––"}, probability={0: 0.5, 1: 0.25, 3: 0.25})
    lines = [
        verdict(NAME, seq, "halting", label, rater=who, rater_kind="human")
        for who in ("ann", "bob")
        for seq, label in ((3, "yes"), (5, "no"))
    ]
    rate(store, lines)
    designs = {
        (row.metric, row.rater): row.design
        for row in metrics.metrics(store)
        if row.rater in ("ann", "bob") and row.answered not in (None, 1.0)
    }
    weighted, shared = (
        "units weighted by the sample's inclusion probability",
        "units weighted by the share answered",
    )
    assert designs["initiative_entropy", "ann"] == designs["initiative_entropy", "bob"] == weighted
    assert {design for (metric, _), design in designs.items() if metric == "halting_messages"} == {shared}
