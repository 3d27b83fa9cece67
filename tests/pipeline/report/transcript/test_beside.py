"""Two transcripts lined up: what stands in a row with what."""

from __future__ import annotations

import re

import pytest

from coaudit.pipeline.report.transcript.beside import elapsed, pairs, side_by_side


def at(*seconds: float | None) -> list[dict[str, object]]:
    return [
        {"time": None if second is None else f"2026-01-01T10:00:{second:06.3f}+00:00"} for second in seconds
    ]


def test_by_step_the_nth_stands_beside_the_nth_and_the_longer_session_goes_on_alone() -> None:
    assert pairs(at(0, 1, 2), at(0), "step") == [(0, 0), (1, None), (2, None)]


def test_by_time_both_begin_at_once_and_what_is_within_a_second_shares_a_row() -> None:
    left, right = at(10, 10.5, 14, 30), at(40, 43.5, 50)
    # since the first: 0, 0.5, 4, 20 and 0, 3.5, 10
    assert pairs(left, right, "time") == [(0, 0), (1, None), (2, 1), (None, 2), (3, None)]


def test_an_event_without_a_time_stays_behind_the_one_before_and_clocks_do_not_run_back() -> None:
    assert elapsed(at(None, 5, None, 9, 7)) == [0, 0, 0, 4, 4]
    assert elapsed(at(None, None)) == []
    with pytest.raises(ValueError, match="both sessions need times"):
        pairs(at(1), at(None), "time")


def test_times_of_several_offsets_are_one_clock() -> None:
    """A time without an offset is taken for UTC; the machine's own summer time plays no part."""
    times = (
        "2026-03-29T03:00:00+02:00",
        "2026-03-29T01:00:30+00:00",
        "2026-03-29T01:01:00",
        "0001-01-01T00:00:00",
    )
    assert elapsed([{"time": time} for time in times]) == [0, 30, 60, 60]


def test_every_event_is_drawn_once_on_its_side() -> None:
    html = side_by_side(["<i>a</i>", "<i>b</i>"], ["<i>c</i>"], [(0, None), (1, 0)])
    assert re.findall(r'data-side="(\w+)">(.*?)</div>', html) == [
        ("left", "<i>a</i>"),
        ("right", ""),
        ("left", "<i>b</i>"),
        ("right", "<i>c</i>"),
    ]
