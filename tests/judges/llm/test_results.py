"""A judge sees what came of an event, as people do who label it, and not what a human alone saw."""

from __future__ import annotations

from typing import Any

from coaudit.judges.clients import Reply
from coaudit.judges.llm import Case, LLMJudge
from coaudit.judges.llm.context import Context
from coaudit.judges.llm.results import HEAD, TAIL, with_results
from coaudit.pipeline import codebooks
from coaudit.pipeline.units import cut
from coaudit.schemas import Trajectory
from tests.judges.teams import team

BOOK = codebooks.load("dilemmas")


def seen(log: Trajectory, states: dict[str, Any], **views: dict[int, str]) -> str:
    """The prompt on a log whose events (view -> seq -> hash) have these states."""
    events = [
        event.model_copy(
            update={"states": {view: of[event.seq] for view, of in views.items() if event.seq in of}}
        )
        for event in log.events
    ]
    shown = with_results(log.model_copy(update={"events": tuple(events), "states": states}))
    (unit,) = cut(shown, BOOK)
    assert unit.hash == next(cut(log, BOOK)).hash
    return LLMJudge(BOOK, "transcript").whole(Case(unit, "M")).question.messages[1].content


SEARCH = team(("agent", "SEARCH(Oslo)"), ("agent", "SEARCH(Oslo)"), ("human", "Stop."))


def test_what_came_back_stands_below_its_action_each_time() -> None:
    """Codebooks ask whether a search found nothing, and no prompt said what a search found."""
    prompt = seen(SEARCH, {"h": {"observation": "Could not\nfind it."}}, public={1: "h", 2: "h"})
    assert prompt.count("| text=Oslo\n(what came back:)\n| Could not\n| find it.\n") == 2


def test_an_agent_s_own_results_are_shown_a_human_s_own_view_and_an_agent_s_prompt_are_not() -> None:
    states = {
        "found": {"results": "Flight 7"},
        "secret": {"note": "MIDNIGHT"},
        "told": {"prompt": "You are."},
    }
    prompt = seen(SEARCH, states, agent={0: "told", 1: "found"}, human={1: "secret", 3: "secret"})
    assert "(after it, in the state:)\n| results: Flight 7\n" in prompt
    assert "MIDNIGHT" not in prompt and "You are." not in prompt


def test_what_an_event_says_itself_is_not_shown_again_as_a_change() -> None:
    log = team(("agent", "WRITE(Day 1: Oslo.)"), ("human", "WRITE(Day 2: Bergen.)"))
    states = {"one": {"editor": "Day 1: Oslo."}, "two": {"editor": "Day 1: Oslo. Day 2: Bergen."}}
    prompt = seen(log, states, public={1: "one", 2: "two"})
    assert prompt.count("in the state:") == 1 and "| editor: Day 1: Oslo. Day 2: Bergen.\n" in prompt


def test_of_a_long_result_both_ends_are_shown_and_less_where_the_model_s_context_is_short() -> None:
    states = {"h": {"observation": f"BEGIN {'x' * 20_000} END"}}
    prompt = seen(SEARCH, states, public={1: "h"})
    assert "BEGIN" in prompt and "x END" in prompt
    assert f"[... {20_010 - HEAD - TAIL} characters left out ...]" in prompt
    events = [e.model_copy(update={"states": {"public": "h"} if e.seq == 1 else {}}) for e in SEARCH.events]
    shown = with_results(SEARCH.model_copy(update={"events": tuple(events), "states": states}))
    trimmed = Context().trim(shown.events[1], 100)
    assert len(str(trimmed)) < 1000


def test_a_quotation_from_a_result_is_one_from_its_event() -> None:
    events = [e.model_copy(update={"states": {"public": "h"} if e.seq == 1 else {}}) for e in SEARCH.events]
    states = {"h": {"observation": "Could not find it."}}
    shown = with_results(SEARCH.model_copy(update={"events": tuple(events), "states": states}))
    (unit,) = cut(shown, BOOK)
    judge = LLMJudge(BOOK, "transcript")
    finding = '{"answer": "present", "events": [1], "quote": "not find it", "source": "model"}'
    answer = f'{{"missing_information": {finding}, "ambiguity": "absent", "dead_loop": "absent"}}'
    verdicts = judge.parse(Reply(answer), judge.whole(Case(unit, "M")))
    assert [one.label for one in verdicts] == ["present", "absent", "absent"]


def test_a_log_without_states_stays_as_it_is() -> None:
    assert with_results(SEARCH) is SEARCH
