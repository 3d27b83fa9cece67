"""Process metrics over sessions that are rated in part: by hand, and against what a full rating says."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from coaudit.pipeline.analyze import process
from coaudit.pipeline.analyze.process import BY_SHARE, EVERY, Counts, entropies, entropy, events, possible


def counts(
    units: object, answered: object, positives: object, parties: tuple[bool, ...] = (False, True)
) -> Counts:
    """Sessions of these parties (human or not), rated evenly."""
    n, k = (np.array(table, dtype=float).reshape(-1, len(parties)) for table in (answered, positives))
    held = np.array(units, dtype=float).reshape(-1, len(parties))
    member = np.ones(held.shape, dtype=bool)
    human = np.tile(parties, (len(held), 1))
    beyond = np.zeros(len(held), dtype=bool)
    return Counts(held, n, k, n, k, member, human, ~beyond, np.arange(len(held)), beyond, BY_SHARE)


def test_entropy_is_0_where_a_party_is_silent_and_1_where_all_are_even() -> None:
    table = np.array([[2, 2, 2], [4, 0, 4], [0, 0, 0], [1, 1, 2]], dtype=float)
    h, defined = entropies(table, np.ones(table.shape, dtype=bool))
    assert h == pytest.approx([1, 0, 0, 1.5 / np.log2(3)])
    assert defined.tolist() == [True, True, False, True]


def test_expanded_counts_are_the_ratio_estimators() -> None:
    row = events(
        counts([[0, 4], [0, 0], [0, 8]], [[0, 2], [0, 0], [0, 4]], [[0, 1], [0, 0], [0, 4]]),
        "halting_messages",
    )
    # Five of six answered units a session of four: 4·5/6.
    assert row.found.value == pytest.approx(4 * 5 / 6)
    assert row.answered == 0.5
    assert [row.bound_low, row.bound_high] == pytest.approx([5 / 3, 11 / 3])


def test_sessions_without_units_are_not_unrated_ones() -> None:
    none = events(counts([[0, 0]] * 5, [[0, 0]] * 5, [[0, 0]] * 5), "halting_messages")
    assert (none.found.value, none.answered, none.design) == (0, None, EVERY)
    unrated = events(counts([[0, 2]] * 5, [[0, 0]] * 5, [[0, 0]] * 5), "halting_messages")
    assert (unrated.found.value, unrated.answered) == (None, 0)
    assert unrated.found.reason == "none of 10 units is rated"


def test_sessions_without_any_message_are_missing() -> None:
    three = counts([[2, 2], [0, 0], [2, 0]], [[2, 1], [0, 0], [2, 0]], [[1, 1], [0, 0], [1, 0]])
    silent = replace(three, spoken=np.array([True, False, True]))
    entropies, halts = entropy(silent), events(silent, "halting_messages")
    # Evenly shared, and 0 where the human says nothing; the halts are the positives over two sessions.
    assert (entropies.missing, entropies.found.n, halts.missing, halts.found.n) == (1, 2, 1, 2)
    assert entropies.bound_high == 0.5
    nobody = replace(three, spoken=np.zeros(3, dtype=bool))
    for row in (entropy(nobody), events(nobody, "halting_messages")):
        assert (row.found.value, row.found.reason, row.missing) == (None, "no messages", 3)


def test_the_bounds_of_an_entropy_are_those_of_every_completion() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        answered = rng.integers(0, 3, (1, 2))
        positives = rng.binomial(answered, 0.6)
        units = answered + rng.integers(0, 4, (1, 2))
        low, high = possible(counts(units, answered, positives))
        rest = (units - answered)[0]
        every = np.array(
            [positives[0] + (a, b) for a in range(rest[0] + 1) for b in range(rest[1] + 1)], dtype=float
        )
        h, defined = entropies(every, np.ones(every.shape, dtype=bool))
        if not defined.any():
            assert (low, high) == (None, None)
        else:
            assert low is not None and high is not None
            assert low <= h[defined].min() + 1e-12 and high == pytest.approx(h[defined].max())


@pytest.mark.slow
def test_half_of_the_ratings_say_of_entropy_what_all_say() -> None:
    rng = np.random.default_rng(1)
    found, truth, held = [], [], []
    for _ in range(40):
        units = rng.integers(1, 9, (40, 2))
        chance = rng.beta(2, 2, (40, 2))
        positives = rng.binomial(units, chance)
        answered = rng.binomial(units, 0.5)
        seen = rng.hypergeometric(positives, units - positives, answered)
        half, whole = (
            entropy(counts(units, answered, seen), "paper"),
            entropy(counts(units, units, positives), "paper"),
        )
        assert half.found.value is not None and whole.found.value is not None
        assert half.found.low is not None and half.found.high is not None
        found.append(half.found.value)
        truth.append(whole.found.value)
        held.append(half.found.low <= whole.found.value <= half.found.high)
    assert np.mean(found) == pytest.approx(np.mean(truth), abs=0.03)
    assert np.mean(held) > 0.9


@pytest.mark.parametrize("parties", [2, 3, 4])
def test_bounds_hold_whatever_unrated_units_are(parties: int) -> None:
    rng = np.random.default_rng(parties)
    member = np.ones((1, parties), dtype=bool)
    for _ in range(60):
        least = rng.integers(0, 5, (1, parties)).astype(float)
        most = least + rng.integers(0, 4, (1, parties)).astype(float)
        ranges = [range(int(a), int(b) + 1) for a, b in zip(least[0], most[0], strict=True)]
        counts = np.array(list(itertools.product(*ranges)), dtype=float)
        values = process.entropies(counts, np.repeat(member, len(counts), axis=0))[0]
        low = min(process.entropies(corner, member)[0][0] for corner in process._corners(least, most))
        high = process._highest(least, most, member)[0]
        assert low == pytest.approx(values.min(), abs=1e-9)
        assert high >= values.max() - 1e-9
        assert parties > 2 or high == pytest.approx(values.max(), abs=1e-9)
