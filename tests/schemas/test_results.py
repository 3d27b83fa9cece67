"""A judge sees what came of an event, as people do who label it, and not what a human alone saw."""

from __future__ import annotations

from typing import Any

from coaudit.judges.clients import Reply
from coaudit.judges.llm import Case, LLMJudge
from coaudit.judges.llm.context import Context
from coaudit.judges.llm.quoting import event_lines
from coaudit.pipeline import codebooks
from coaudit.pipeline.units import cut
from coaudit.schemas import Participant, Trajectory
from coaudit.schemas.event import Notice
from coaudit.schemas.results import HEAD, TAIL, with_results
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


def test_of_a_history_that_outgrew_its_room_what_came_last_is_shown_whole() -> None:
    """Of a notebook's third cell the first one's output was shown, and the last 500 characters of its own."""
    log = team(*(("agent", f"RUN({cell})") for cell in "abc"))
    cells = [f"Code block:\n{cell}\nOutput:\n{cell * 900}!" for cell in "abc"]
    histories = ["\n\n".join(cells[:count]) for count in (1, 2, 3)]
    states = {str(i): {"history": text} for i, text in enumerate(histories)}
    prompt = seen(log, states, public={1: "0", 2: "1", 3: "2"})
    assert [prompt.count(cell * 900 + "!") for cell in "abc"] == [2, 1, 1]
    assert "\n| history, continued: Code block:\n| c\n" in prompt and "left out" not in prompt
    states["2"] = {"history": "c" * 900 + histories[1]}  # not grown at its end
    changed = seen(log, states, public={1: "0", 2: "1", 3: "2"})
    assert "continued" not in changed and "left out" in changed
    lists = {str(i): {"found": [cell * 900 for cell in "abc"[: i + 1]]} for i in range(3)}
    listed = seen(log, lists, public={1: "0", 2: "1", 3: "2"})
    assert listed.count("a" * 900) == 2 and f'| found, continued: "{"c" * 900}"]' in listed


def test_of_an_agents_own_history_what_grew_while_others_acted_is_shown_with_its_next_action() -> None:
    log = team(("agent", "RUN(a)"), ("human", "Go on."), ("agent", "RUN(c)"))
    cells = [cell * 900 + "!" for cell in "abc"]
    states = {str(i): {"history": "\n".join(cells[: i + 1])} for i in range(3)}
    prompt = seen(log, states, agent={1: "0", 2: "1", 3: "2"})
    assert [prompt.count(cell) for cell in cells] == [1, 1, 1] and "history, continued: bbb" in prompt


def test_a_prompt_says_how_long_after_the_start_an_event_came_with_and_without_states() -> None:
    """Codebooks ask whether minutes passed without a word, and no prompt said when anything happened."""
    times = ["2026-11-21T10:00:00", "2026-11-21T10:00:10", "2026-11-21T10:02:40", None]
    events = [e.model_copy(update={"time": time}) for e, time in zip(SEARCH.events, times, strict=True)]
    log = SEARCH.model_copy(update={"events": tuple(events)})
    states = {"h": {"observation": "Nothing."}}
    for prompt in (seen(log, {}), seen(log, states, public={1: "h", 2: "h"})):
        heads = [line for line in prompt.splitlines() if line.startswith("[")]
        assert [head.partition("action")[2] for head in heads[1:3]] == ["", ", 2 min 30 s after the start"]
        assert heads[0].endswith("start, 0 s after the start (times are to the nearest half minute)")
        assert sum("after the start" in head for head in heads) == 2
        assert "(after it, the state is as it was)" not in prompt


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


def test_a_codebook_may_ask_about_what_members_see_alone() -> None:
    """Whether a builder left its own part unfinished cannot be told where nobody's part is shown."""
    states = {"his": {"goal": "two red blocks", "prompt": "You are."}, "hers": {"goal": "one blue block"}}
    events = [
        e.model_copy(update={"states": {"human": "hers", "agent": "his"} if e.seq == 0 else {}})
        for e in SEARCH.events
    ]
    log = SEARCH.model_copy(update={"events": tuple(events), "states": states})
    for name, is_asked in (("dilemmas", False), ("team_faults", True)):
        book = codebooks.load(name)
        (unit,) = cut(with_results(log, book.views), book)
        prompt = LLMJudge(book, "transcript").whole(Case(unit, "M")).question.messages[1].content
        assert ("| human sees goal: one blue block\n" in prompt) == is_asked
        assert ("| agent sees goal: two red blocks\n" in prompt) == is_asked
        assert "You are." not in prompt
    own = book.model_copy(update={"views": "team"})
    assert own.version == book.version
    assert LLMJudge(own, "transcript").version != LLMJudge(book, "transcript").version


def test_a_log_without_states_stays_as_it_is() -> None:
    assert with_results(SEARCH) is SEARCH


def test_the_reward_of_an_environment_is_not_shown() -> None:
    """It is the answer to what the judge has to decide: 3,243 of ReHAC's real logs end with it."""
    log = team(("agent", "SEARCH(Oslo)"), ("agent", "FINISH(yes)"))
    states = {
        "odd": {"observation": "A city.", "logged": "Observation 1: A city.\nreward = 1"},
        "end": {"observation": "Episode finished, reward = 1", "logged": "Episode finished, reward = 1"},
    }
    prompt = seen(log, states, public={1: "odd", 2: "end"})
    assert "reward" not in prompt and prompt.count("A city.") == 1


def test_a_short_result_that_its_action_happens_to_contain_is_shown() -> None:
    log = team(("agent", "RUN(test -f plan && echo yes)"), ("human", "Are there 15?"))
    prompt = seen(log, {"h": {"observation": "yes"}, "n": {"count": 5}}, public={1: "h", 2: "n"})
    assert "(what came back:)\n| yes\n" in prompt
    assert "| count: 5\n" in prompt


def test_an_error_is_not_shown_twice() -> None:
    log = team(("agent", "RUN(ls)"), failing={1: "no such file"})
    assert seen(log, {"h": {"observation": "no such file"}}, public={1: "h"}).count("no such file") == 1


def test_a_change_first_known_from_live_traffic_is_shown_with_the_logged_event_after_it() -> None:
    live = SEARCH.events[1].model_copy(update={"live_only": True, "sub": 1, "states": {"public": "h"}})
    after = SEARCH.events[2].model_copy(update={"states": {"public": "h"}})
    events = (*SEARCH.events[:2], live, after)
    shown = with_results(SEARCH.model_copy(update={"events": events, "states": {"h": {"plan": "Day 1"}}}))
    prompt = (
        LLMJudge(BOOK, "transcript").whole(Case(next(cut(shown, BOOK)), "M")).question.messages[1].content
    )
    assert prompt.count("| plan: Day 1\n") == 1


def test_instructions_that_an_agent_had_before_its_first_action_are_not_what_came_of_it() -> None:
    """In a chat without a task the agents' instructions are a state of the first event, an action."""
    prompt = seen(SEARCH, {"h": {"system": "You are.", "results": "Flight 7"}}, agent={1: "h"})
    assert "(told to an agent:)\n| agent: You are.\n[1] agent_1: action\n" in prompt
    assert prompt.count("You are.") == 1 and "(after it, in the state:)\n| results: Flight 7\n" in prompt


def test_of_a_state_with_thousands_of_parts_the_first_are_shown_and_how_many_more_there_are() -> None:
    states = {"h": {f"{number} {'k' * 500}": "x" * 50 for number in range(3000)}}
    prompt = seen(SEARCH, states, public={0: "h"})
    assert len(prompt) < 15_000
    assert (
        "| 0 kkk" in prompt
        and f"| other parts: [... {3000 - prompt.count('(after it') + 1} left out" in prompt
    )


def test_windows_with_results_of_many_parts_fit_the_context_and_lose_no_event() -> None:
    states = {"h": {f"file {number}": "word " * 500 for number in range(40)}}
    log = SEARCH.model_copy(
        update={
            "events": tuple(e.model_copy(update={"states": {"public": "h"}}) for e in SEARCH.events),
            "states": states,
        }
    )
    (unit,) = cut(with_results(log), BOOK)
    judge, case = LLMJudge(BOOK, "transcript"), Case(unit, "M", background="Cut the leek. " * 60)
    context = Context(4200)
    pieces = list(judge.pieces(case, context))
    assert {event.seq for piece in pieces for event in piece.events} == {0, 1, 2, 3}
    assert all(context.fits(piece.question) for piece in pieces)
    assert all("| Cut the leek." in piece.question.messages[1].content for piece in pieces)


def test_beside_an_event_that_is_too_long_a_unit_still_has_its_ends() -> None:
    book = codebooks.load("initiative").model_copy(update={"context": "preceding"})
    text = f"BEGIN {'x' * 60_000} END"
    log = team(("agent", f"WRITE({text})"), ("human", "Why?"))
    unit = list(cut(log, book))[-1]
    context = Context(8000)
    (piece,) = LLMJudge(book, "preceding").pieces(Case(unit, "M"), context)
    content = piece.question.messages[1].content
    assert "BEGIN" in content and "x END" in content
    assert context.fits(piece.question)


def test_a_search_that_found_the_same_again_does_not_look_as_if_nothing_had_come_of_it() -> None:
    """In Co-Gym results of searches are a part of the agent's view, which the same search leaves as it is."""
    prompt = seen(SEARCH, {"h": {"results": "Flight 7"}}, agent={1: "h", 2: "h"}, human={3: "h"})
    assert prompt.count("Flight 7") == 1
    assert prompt.count("(after it, the state is as it was)\n[3]") == 1
    assert prompt.count("as it was") == 1


def test_the_own_view_of_an_agent_with_a_person_s_name_is_not_shown() -> None:
    """A view is known by a name alone: it may be the person's."""
    namesake = SEARCH.participants[0].model_copy(update={"name": "agent"})
    log = SEARCH.model_copy(update={"participants": (namesake, *SEARCH.participants)})
    assert "MIDNIGHT" not in seen(log, {"h": {"note": "MIDNIGHT"}}, agent={1: "h"})


def test_what_agents_were_told_stands_once_before_the_event_and_is_cut_for_a_short_context() -> None:
    """Of Anthropic's `system` no prompt had a word, of a message `system` all: roles could not be told."""
    log = team(("human", "Plan a trip."), ("agent", "WRITE(Oslo)"))
    states = {"a": {"system": "You plan. " * 900}, "b": {"system": "You plan, again."}}
    events = [
        e.model_copy(update={"states": {"agent": "a" if e.seq < 2 else "b", "helper": "a"}})
        for e in log.events
    ]
    people = (*log.participants, Participant(name="helper", kind="agent"))
    log = log.model_copy(update={"participants": people, "events": tuple(events), "states": states})
    (unit,) = cut(with_results(log), BOOK)
    judge, case = LLMJudge(BOOK, "transcript"), Case(unit, "M")
    prompt = judge.whole(case).question.messages[1].content
    before, _, rest = prompt.partition("[0] ")
    assert "(told to an agent:)\n| agent, helper: You plan." in before and "left out ...]" in before
    assert rest.count("(told to an agent") == 1
    assert "(told to an agent from here on:)\n| agent: You plan, again.\n" in rest
    assert "(no longer told to an agent:)\n| agent: You plan." in rest
    for limit in (3400, 3600):
        context = Context(limit)
        pieces = list(judge.pieces(case, context))
        assert len(pieces) > 1 and all(context.fits(piece.question) for piece in pieces)
        assert {event.seq for piece in pieces for event in piece.events} == {0, 1, 2}


def test_of_instructions_that_change_in_mid_session_what_is_new_is_shown_where_it_begins() -> None:
    """Only the first ones were: an agent that kept to its new ones seemed to disobey."""
    log = team(*[("agent", f"SEARCH({n})") for n in range(5)])
    rule, time = "Ask before you delete.", "It is {} o'clock."
    texts = [f"{rule}\n{time.format(n)}" for n in (1, 1, 2)] + [time.format(2), f"{rule}\n{time.format(1)}"]
    states = {f"{n}": {"system": text} for n, text in enumerate(texts)}
    events = [e.model_copy(update={"states": {"agent": f"{e.seq - 1}"} if e.seq else {}}) for e in log.events]
    full = with_results(log.model_copy(update={"events": tuple(events), "states": states})).events
    told = [[(one.path, one.text) for one in getattr(event, "briefings", ())] for event in full]
    assert told == [
        [],
        [("system", texts[0])],
        [],
        [("system, changed", "It is 2 o'clock."), ("system, no longer", "It is 1 o'clock.")],
        [("system, no longer", rule)],
        [("system, again", "1")],
    ]


def test_of_a_long_line_of_instructions_the_sentence_that_changed_is_shown() -> None:
    """It was cut in its middle, where the change was. Of the same lines in another order nothing is shown."""
    before, now = ("\n".join([" ".join(f"Never do {n}." for n in range(900)), "Be brief."]) for _ in range(2))
    now = now.replace("Never do 450.", "Always do 450.")
    turned = "\n".join(reversed(now.splitlines()))
    log = team(*[("agent", f"SEARCH({n})") for n in range(5)])
    states = {f"{n}": {"system": text} for n, text in enumerate([before, now, turned, "New.", turned])}
    events = [e.model_copy(update={"states": {"agent": f"{e.seq - 1}"} if e.seq else {}}) for e in log.events]
    full = with_results(log.model_copy(update={"events": tuple(events), "states": states})).events
    told = [[(one.path, one.text) for one in getattr(event, "briefings", ())] for event in full]
    assert told[2] == [("system, changed", "Always do 450."), ("system, no longer", "Never do 450.")]
    assert told[3] == [] and told[5] == [("system, again", "2")]
    lines = event_lines(full[5], "agent_1").splitlines()
    assert lines[:2] == ["(told to an agent again, as from event 2 on:)", "| agent"]


def test_before_a_unit_at_which_the_transcript_ends_stands_what_was_told_just_before_it() -> None:
    """Neither the unit nor what comes before had the instructions and notices of its own event."""
    log = team(("human", "Plan."), ("agent", "Which city?"))
    told = {"states": {"agent": "a"}, "notices": (Notice(time=None, text="Two minutes are left."),)}
    events = [e.model_copy(update=told if e.seq == 2 else {}) for e in log.events]
    log = log.model_copy(update={"events": tuple(events), "states": {"a": {"system": "Ask first."}}})
    book = BOOK.model_copy(update={"unit": "utterance", "context": "preceding"})
    *_, unit = cut(with_results(log), book)
    judge, case = LLMJudge(book, "preceding"), Case(unit, "M")
    prompt = judge.whole(case).question.messages[1].content
    words = "(the environment:)\n| Two minutes are left.\n(told to an agent:)\n| agent: Ask first.\n"
    assert f"<<before it M>>\n{words}<<end of before it M>>\n\nTo be rated is event 2:" in prompt


def test_a_step_to_be_rated_is_shown_without_what_agents_were_told_before_it() -> None:
    """It stood a second time in the step, which took the room of the transcript in short contexts."""
    book = codebooks.load("trail_step")
    log = team(("agent", "SEARCH(Oslo)"), ("agent", "SEARCH(Bergen)"))
    roles = {f"agent {n}": f"You are number {n}. " * 60 for n in range(6)}
    states = {name: {"system": text} for name, text in roles.items()}
    first = log.events[1].model_copy(update={"states": {name: name for name in roles}})
    people = (*log.participants, *(Participant(name=name, kind="agent") for name in roles))
    log = log.model_copy(
        update={"participants": people, "events": (log.events[0], first, log.events[2]), "states": states}
    )
    unit = next(unit for unit in cut(with_results(log), book) if unit.event == 1)
    judge = LLMJudge(book, "transcript")
    transcript, _, rated = judge.whole(Case(unit, "M")).question.messages[1].content.partition("To be rated")
    assert transcript.count("(told to an agent:)") == 6 and "told" not in rated and "Oslo" in rated


def test_of_a_background_as_long_as_a_book_both_ends_are_told() -> None:
    """Its file may be anything: it stands in each prompt, and left no room in any context."""
    (unit,) = cut(SEARCH, BOOK)
    case = Case(unit, "M", background=f"Leek. {'x' * 90_000} Serve.")
    prompt = LLMJudge(BOOK, "transcript").whole(case).question.messages[1].content
    before, _, _ = prompt.partition("<<transcript M>>")
    assert len(before) < 2500 and "| Leek." in before and "Serve.\n" in before


def test_of_many_agents_told_much_the_first_are_shown_and_how_many_more_there_are() -> None:
    names = [f"agent {number}" for number in range(8)]
    states = {name: {"system": f"{name} " * 400} for name in names}
    log = team(("human", "Plan a trip."))
    first, *rest = log.events
    people = (*log.participants, *(Participant(name=name, kind="agent") for name in names))
    events = (first.model_copy(update={"states": {name: name for name in names}}), *rest)
    log = log.model_copy(update={"participants": people, "events": events, "states": states})
    (unit,) = cut(with_results(log), BOOK)
    prompt = LLMJudge(BOOK, "transcript").whole(Case(unit, "M")).question.messages[1].content
    assert "| [... " in prompt and "| public" not in prompt and "| agent 0: agent 0" in prompt
