"""Process metrics over sessions that are rated in part: by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coaudit.annotation.statistics.comparisons import contrast
from coaudit.pipeline.analyze import process
from coaudit.pipeline.analyze.choice import only_settled
from coaudit.pipeline.analyze.counts import EVERY, Counts, Process
from coaudit.pipeline.analyze.entropy import entropy
from coaudit.pipeline.analyze.metrics import metrics
from coaudit.pipeline.analyze.process import events
from tests.pipeline.analyze.test_agreement import sampled
from tests.pipeline.stores import made, metric, rate, take, verdict, write_lines

from .parties import counts


def test_expanded_counts_are_the_ratio_estimators() -> None:
    row = events(
        counts([[0, 4], [0, 0], [0, 8]], [[0, 2], [0, 0], [0, 4]], [[0, 1], [0, 0], [0, 4]]),
        "halting_messages",
    )
    # Five of six answered units a session of four: 4·5/6.
    assert row.estimate.value == pytest.approx(4 * 5 / 6)
    assert row.answered == 0.5
    assert [row.bound_low, row.bound_high] == pytest.approx([5 / 3, 11 / 3])


def test_sessions_without_units_are_not_unrated_ones() -> None:
    none = events(counts([[0, 0]] * 5, [[0, 0]] * 5, [[0, 0]] * 5), "halting_messages")
    assert (none.estimate.value, none.answered, none.design) == (0, None, EVERY)
    unrated = events(counts([[0, 2]] * 5, [[0, 0]] * 5, [[0, 0]] * 5), "halting_messages")
    assert (unrated.estimate.value, unrated.answered) == (None, 0)
    assert unrated.estimate.reason == "none of 10 units is rated"


def test_sessions_without_any_message_are_missing() -> None:
    three = counts([[2, 2], [0, 0], [2, 0]], [[2, 1], [0, 0], [2, 0]], [[1, 1], [0, 0], [1, 0]])
    silent = replace(three, has_messages=np.array([True, False, True]))
    entropies, halts = entropy(silent), events(silent, "halting_messages")
    # Evenly shared, and 0 where the human says nothing; the halts are the positives over two sessions.
    assert (entropies.missing, entropies.estimate.n, halts.missing, halts.estimate.n) == (1, 2, 1, 2)
    assert entropies.bound_high == 0.5
    nobody = replace(three, has_messages=np.zeros(3, dtype=bool))
    for row in (entropy(nobody), events(nobody, "halting_messages")):
        assert (row.estimate.value, row.estimate.reason, row.missing) == (None, "no messages", 3)


@pytest.mark.parametrize("whole", [True, False])
def test_a_session_counts_by_how_likely_a_sample_took_it_or_a_unit_of_it(
    whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of four sessions of entropy 1 and two of eight without: their mean was .5 and not a third."""
    store = made(tmp_path / "workspace")
    people = [{"name": "Ada", "kind": "human"}, {"name": "Bot", "kind": "agent"}]
    lines: list[dict[str, Any]] = []
    for name in (f"s{number:02}" for number in range(12)):
        event = {"type": "event", "trajectory": name, "kind": "message"}
        said = (event | {"actor": ("Bot", "Ada")[n % 2], "text": f"{n} {name}"} for n in range(4))
        acted = event | {"kind": "action", "actor": "Bot", "action": {"name": "look"}}
        lines += [{"type": "trajectory", "native_id": name, "participants": people}, acted, acted, *said]
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    chances = {4 * session + unit: 0.5 if session < 4 else 0.25 for session in range(12) for unit in range(4)}
    drawn = [4 * session + unit for session in (0, 1, 4, 5) for unit in range(4)][: None if whole else -1]
    sampled(store, "drawn", {unit: chances[unit] for unit in drawn}, chances)
    given = [(unit // 4, unit % 4, "no" if unit >= 16 and unit % 2 else "yes") for unit in drawn]
    ratings = [verdict(f"s{s:02}", 2 + n, "initiative", label, rater="ann") for s, n, label in given]
    assert rate(store, ratings).imported == len(drawn)
    seen = []

    def watched(own: Counts, named: str | None) -> Process:
        seen.append(own)
        return entropy(own, named)

    monkeypatch.setattr(process, "entropy", watched)
    value = metric(metrics(store), "initiative_entropy").value
    (own,) = seen
    took = np.sort(own.inclusion)
    if whole:
        assert value == pytest.approx(1 / 3)
        assert took[:4] == pytest.approx([0.25, 0.25, 0.5, 0.5])
    else:
        assert took == pytest.approx([1 - 0.75**4] * 8 + [1 - 0.5**4] * 4)


def read_in_part(rng: np.random.Generator, read: int) -> Counts:
    """20 sessions with 10 to 30 units, a fifth of them positive, more in some sessions; `read` were read."""
    units = rng.integers(10, 31, 20)
    positives = rng.binomial(units, rng.beta(1, 4, 20))
    is_read = rng.permutation(20) < read
    none = np.zeros(20)
    own = (np.column_stack([none, row]) for row in (units, units * is_read, positives * is_read))
    return counts(next(own), next(own), next(own))


def test_sessions_that_nobody_read_tell_nothing_of_the_others() -> None:
    """With 2 of 20 read in either group .38 of tests found a difference, and .59 of intervals held the mean.

    All 20 were taken to tell of the share of positives."""
    few = events(read_in_part(np.random.default_rng(0), 2), "halting_messages")
    assert few.estimate.value is not None and few.estimate.low is None
    assert few.untested == "too few sessions have a rated unit: 2 independent, 4 needed"
    rng, tests, intervals = np.random.default_rng(1), [], []
    for seed in range(80):
        rows = [events(read_in_part(rng, 6), "halting_messages") for _ in range(2)]
        first, second = (row.sample for row in rows)
        assert first is not None and second is not None and not any(row.untested for row in rows)
        other = replace(second, names=second.names + 100)
        p = contrast(first, other, draws=199, seed=seed).p_value
        tests.append(p is not None and p < 0.05)
        intervals += [(row.estimate.low or 0) <= 4 <= (row.estimate.high or np.inf) for row in rows]
    assert np.mean(tests) < 0.1 and np.mean(intervals) > 0.92


def test_sessions_without_units_do_not_stand_for_those_that_nobody_read() -> None:
    """With 1 of 16 sessions read, beside 4 without units, .47 of tests found a difference between equals."""
    units, reading = [[0, 0]] * 4 + [[0, 20]] * 16, [[0, 0]] * 4 + [[0, 20]] + [[0, 0]] * 15
    positives = [[0, 0]] * 4 + [[0, 5]] + [[0, 0]] * 15
    one = events(counts(units, reading, positives), "halting_messages")
    assert one.estimate.value == 4 and one.estimate.low is None
    assert one.untested == "too few sessions have a rated unit: 1 independent, 4 needed"
    # Where every session that has units was read in part, those without any are known.
    sparse = [[0, 0]] * 17 + [[0, 20]] * 3
    read = [[0, 0]] * 17 + [[0, 15], [0, 20], [0, 20]]
    known = events(counts(sparse, read, [[0, 0]] * 17 + [[0, 3], [0, 5], [0, 7]]), "halting_messages")
    assert known.untested is None and known.estimate.low is not None and known.estimate.clusters == 20


def test_rated_units_that_are_all_alike_tell_little_of_the_others() -> None:
    """One rated unit of six in each session: none of 4 against 4 of 4 was significant at .0005."""
    none, every = (
        events(
            counts([[0, 6]] * 12, [[0, 1]] * 4 + [[0, 0]] * 8, [[0, k]] * 4 + [[0, 0]] * 8),
            "halting_messages",
        )
        for k in (0, 1)
    )
    assert none.sample is not None and every.sample is not None
    assert (none.estimate.low, every.estimate.value) == (None, 6)
    row = contrast(none.sample, replace(every.sample, names=every.sample.names + 100))
    assert row.p_value is not None and 0.002 < row.p_value < 0.05 and row.test == "Welch's t"
    assert every.estimate.note == "few events: 4"


FAULTS = """
name = "faults"
title = "Faults"
unit = "human_message"
level = "nominal"
labels = ["yes", "no"]
question = "Which faults are there?"
[[codes]]
code = "slow"
name = "Slow"
definition = "It took long."
[[codes]]
code = "rude"
name = "Rude"
definition = "It was rude."
"""


def dialogue(size: int) -> list[dict[str, Any]]:
    """A session of messages, each second one by the human."""
    people = [{"name": "Ada", "kind": "human"}, {"name": "Bot", "kind": "agent"}]
    event = {"type": "event", "trajectory": "s", "kind": "message"}
    return [
        {"type": "trajectory", "native_id": "s", "participants": people},
        *(event | {"actor": ("Bot", "Ada")[n % 2], "text": f"{n}"} for n in range(size)),
    ]


def test_gold_that_settled_disputes_stands_for_no_other_unit(tmp_path: Path) -> None:
    """Ann and Bob count 1 and 2 halts in 8 units; gold, which has settled one of these, had 8."""
    store = made(tmp_path / "workspace")
    take(store, write_lines(tmp_path / "log.jsonl", dialogue(16)))
    halts = {"ann": {1}, "bob": {1, 3}}
    labels = [
        (rater, n, "yes" if n in own else "no") for rater, own in halts.items() for n in range(1, 16, 2)
    ]
    ratings = [
        verdict("s", n, "halting", label, rater=rater) for rater, n, label in [*labels, ("gold", 3, "yes")]
    ]
    assert rate(store, ratings).imported == 17
    values = {row.rater: row.value for row in metrics(store) if row.metric == "halting_messages"}
    assert values == {"ann": 1, "bob": 2}
    (asked,) = [row for row in metrics(store, rater="gold") if row.metric == "halting_messages"]
    assert (asked.value, asked.answered) == (8, 0.125)
    # Gold of what nobody disputed is a rater as any other.
    assert rate(store, [verdict("s", 1, "halting", "yes", rater="gold")]).imported == 1
    assert "gold" in {row.rater for row in metrics(store) if row.metric == "halting_messages"}


def test_gold_that_settled_every_unit_is_complete_though_all_were_disputed(tmp_path: Path) -> None:
    """Ann and Bob differ on both units of a session: gold, which has both, was not reported."""
    store = made(tmp_path / "workspace")
    take(store, write_lines(tmp_path / "log.jsonl", dialogue(4)))
    halts = {"ann": {1}, "bob": {3}, "gold": {1}}
    labels = [(rater, n, "yes" if n in own else "no") for rater, own in halts.items() for n in (1, 3)]
    assert rate(
        store, [verdict("s", n, "halting", label, rater=rater) for rater, n, label in labels]
    ).imported
    (row,) = [row for row in metrics(store) if row.metric == "halting_messages"]
    assert (row.rater, row.value) == ("gold", 1)


def test_a_unit_is_disputed_by_any_of_its_codes(tmp_path: Path) -> None:
    """Gold labels all codes of a unit on which people differed by one: it was compared as a rater."""
    store = made(tmp_path / "workspace")
    store.workspace.codebooks.mkdir(parents=True)
    (store.workspace.codebooks / "faults.toml").write_text(FAULTS, encoding="utf-8")
    take(store, write_lines(tmp_path / "log.jsonl", dialogue(4)))
    labels = {"ann": ("yes", "no"), "bob": ("no", "no"), "gold": ("yes", "no")}
    ratings = [
        verdict("s", 1, "faults", label, rater=rater, code=code, rater_kind="human")
        for rater, own in labels.items()
        for code, label in zip(("slow", "rude"), own, strict=True)
    ]
    assert rate(store, ratings).imported == 6
    with store.reading() as connection:
        assert only_settled(connection) == {"faults"}
