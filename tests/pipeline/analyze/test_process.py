"""Process metrics over sessions that are rated in part: by hand."""

from dataclasses import replace

import numpy as np
import pytest

from coaudit.pipeline.analyze.counts import EVERY
from coaudit.pipeline.analyze.entropy import entropy
from coaudit.pipeline.analyze.process import events

from .parties import counts


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
