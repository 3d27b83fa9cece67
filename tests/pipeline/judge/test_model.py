"""How far a run is, as its progress line says it."""

from __future__ import annotations

import pytest

from coaudit.judges.llm import Budget
from coaudit.judges.llm.limits import Limiter
from coaudit.pipeline import codebooks
from coaudit.pipeline.judge.model import State
from coaudit.pipeline.judge.scope import Summary
from coaudit.schemas import Maker, Verdict


def test_the_rate_is_of_the_time_since_the_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that loaded its model for 70 s said 11 a second, and half an hour for a minute's rest."""
    now = 1_000.0
    monkeypatch.setattr("coaudit.pipeline.judge.model.time.monotonic", lambda: now)
    state = State(Summary(), Budget(), Limiter(1), expected=20_000)
    now += 70
    assert state.line().startswith("0 of 20000 answered, 0/s") and "no answer yet" in state.line()
    for _ in range(100):
        state.count()
    now += 5
    for _ in range(1_400):
        state.count()
    assert "1500 of 20000 answered, 300/s" in state.line()
    assert "62 s left" in state.line()


def test_a_run_that_nothing_has_answered_says_how_to_end_it() -> None:
    state = State(Summary(), Budget(), Limiter(1), expected=9)
    state.tell("status 500: broken")
    assert state.line().endswith("no answer yet; asked again: status 500: broken; Ctrl-C ends the run")
    state.failed += 1
    state.count()
    assert state.line().endswith("Ctrl-C ends the run"), "an error is no answer"
    state.count()
    assert state.line().endswith("asked again: status 500: broken")


def test_answers_that_come_together_after_a_long_wait_are_no_rate_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """16 questions in flight of 30 s each are one every two seconds, and not 16 a second when they come."""
    now = 1_000.0
    monkeypatch.setattr("coaudit.pipeline.judge.model.time.monotonic", lambda: now)
    budget = Budget()
    state = State(Summary(), budget, Limiter(16), expected=10_000, began=now)
    for wave in range(1, 5):
        now += 30
        for waiting in reversed(range(16)):
            budget.in_flight = waiting
            state.count()
        assert state.rate() == pytest.approx(16 / 30), wave


def test_requests_that_wait_for_a_budget_are_not_in_flight() -> None:
    limiter, budget = Limiter(16), Budget(in_flight=3)
    limiter.in_flight = 16  # each holds a place, thirteen until what the others took is known
    assert " 3 in flight" in State(Summary(), budget, limiter, expected=20).line()


def test_a_run_that_stops_says_what_it_waits_for_and_how_to_give_that_up() -> None:
    """An answer that hangs may take minutes, and nothing else showed that Ctrl-C was heard."""
    budget = Budget(in_flight=3)
    state = State(Summary(), budget, Limiter(16), expected=20)
    state.stop("interrupted")
    assert state.line() == "interrupted; waiting for 3 answers in flight, Ctrl-C gives them up"
    budget.in_flight = 0
    assert state.line().startswith("0 of 20 answered")


def test_of_reasons_that_are_as_frequent_the_first_is_named_in_every_run() -> None:
    book = codebooks.load("failures")
    place = ("t", None, None)
    maker = Maker("judge", "llm", "1", book)
    summary = Summary()
    summary.count(
        [maker.rating_at(place, Verdict(code.code, error=f"no {code.code}")) for code in book.codes]
    )
    assert summary.reason == f"no {book.codes[0].code}"
    assert summary.reasons == {f"no {code.code}": 1 for code in book.codes}
