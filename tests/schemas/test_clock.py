"""When events happened, as it is told to those who rate them."""

from __future__ import annotations

import pytest

from coaudit.schemas import Event
from coaudit.schemas.clock import Clock, duration


def told(*times: str | None) -> list[str]:
    events = [Event(seq=seq, actor="agent", kind="wait", time=time) for seq, time in enumerate(times)]
    clock = Clock.of_events(events)
    return [clock.of(event) for event in events]


START = "0 s after the start (times are to the nearest half minute)"


def test_the_time_is_told_to_the_half_minute_where_that_has_changed() -> None:
    day = "2026-11-21T10:0"
    assert told(f"{day}0:00", f"{day}0:14", f"{day}0:16", f"{day}0:44", f"{day}1:01", f"{day}3:31.9") == [
        START,
        "",
        "30 s after the start",
        "",
        "1 min after the start",
        "3 min 30 s after the start",
    ]


def test_a_session_that_was_followed_has_the_words_of_its_folder() -> None:
    """Events of Co-Gym often follow its ticks, 30 s apart; live traffic comes a moment sooner or later."""
    day = "2026-11-21T10:0"
    folder = (f"{day}0:00", f"{day}0:30.1", f"{day}1:02", f"{day}1:33")
    live = (f"{day}0:00.4", f"{day}0:29.8", f"{day}1:01", f"{day}1:31")
    assert told(*folder) == told(*live)


def test_events_without_a_time_and_clocks_that_go_back_tell_nothing() -> None:
    at = "2026-11-21T10:00:00"
    assert told(None, at, "no time", "2026-11-21T09:00:00", "2026-11-21T10:01:00") == [
        "",
        START,
        "",
        "",
        "1 min after the start",
    ]


def test_a_quick_session_is_told_from_a_log_without_times_and_from_one_with_a_single_time() -> None:
    """Both said no time, so whether minutes had passed without a word was `unclear` in each of them."""
    at = "2026-11-21T10:00:0"
    assert told(f"{at}0", f"{at}7") == [START, ""]
    assert told(f"{at}0", f"{at}0", None) == told(None, f"{at}0", None) == told(None, None, None) == [""] * 3


def test_zones_are_reckoned_with_and_a_time_without_one_is_utc() -> None:
    assert told("2026-11-21T10:00:00+02:00", "2026-11-21T08:01:00") == [START, "1 min after the start"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min 59 s"),
        (3600, "1 h"),
        (3900, "1 h 5 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_durations_are_in_the_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text
