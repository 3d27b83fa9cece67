"""Asking, asking again and giving up: with a plain function in the place of an endpoint."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from coaudit.judges.clients import Complete, Message, Question, Reply
from coaudit.judges.clients.protocol import (
    ContextTooSmall,
    Fatal,
    Form,
    Overloaded,
    Refused,
    Rejected,
    Transient,
    Unreachable,
)
from coaudit.judges.llm import Asker, Budget, Case, LLMJudge, Patience
from coaudit.judges.llm.ask import REJECTIONS, Outcome, OutOfBudget, Stopped
from coaudit.judges.llm.context import Context
from coaudit.judges.llm.limits import FEWEST, Limiter
from coaudit.judges.llm.prices import Price
from coaudit.pipeline import codebooks
from coaudit.pipeline.units import cut
from tests.judges.teams import team

Said = "Reply | Exception"
QUICK = Patience(first_pause=0.001, longest_pause=0.002, gone_after=0.05)


class Script:
    """Answers in order; the last one again and again."""

    def __init__(self, *said: str | Reply | Exception) -> None:
        self.said = list(said)
        self.asked: list[Question] = []

    async def __call__(self, question: Question) -> Reply:
        self.asked.append(question)
        said = self.said[min(len(self.asked), len(self.said)) - 1]
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Reply):
            return said
        return Reply(said, model="judge-1", prompt_tokens=100, cached_tokens=40, completion_tokens=2)


def asker(script: Complete, book: str = "initiative", **given: object) -> Asker:
    codebook = codebooks.load(book)
    return Asker(
        judge=LLMJudge(codebook, codebook.context),
        complete=script,
        limiter=Limiter(4),
        budget=given.get("budget", Budget()),  # type: ignore[arg-type]
        context=given.get("context", Context()),  # type: ignore[arg-type]
        patience=QUICK,
        stopping=given.get("stopping", lambda: False),  # type: ignore[arg-type]
        tell=given.get("tell", lambda _: None),  # type: ignore[arg-type]
    )


def ask(script: Complete, book: str = "initiative", **given: object) -> Outcome:
    log = team(*(("human", f"Please add a chart {i}. {'word ' * 50}") for i in range(40)))
    unit = next(cut(log, codebooks.load(book)))
    return asyncio.run(asker(script, book, **given).ask(Case(unit, "mark")))


def test_an_answer_becomes_a_verdict_with_what_it_took() -> None:
    outcome = ask(Script("yes"))
    assert [v.label for v in outcome.verdicts] == ["yes"]
    assert (outcome.model, outcome.prompt_tokens, outcome.cached_tokens) == ("judge-1", 100, 40)


def test_why_a_request_is_asked_again_is_told_until_one_succeeds() -> None:
    told: list[str | None] = []
    ask(Script(Transient("status 503"), Unreachable("nobody"), "yes"), tell=told.append)
    assert told == ["status 503", "nobody", None]


def test_a_malformed_answer_is_asked_again_with_the_reason() -> None:
    script = Script("Well, ...", "no")
    outcome = ask(script)
    assert outcome.verdicts[0].label == "no"
    *_, said, complaint = script.asked[1].messages
    assert said == Message("assistant", "Well, ...")
    assert "label must be one of yes, no, unclear" in complaint.content
    assert script.asked[1].messages[:2] == script.asked[0].messages
    assert outcome.prompt_tokens == 200


def thinker(needs: int, asked: list[int]) -> Complete:
    """A model that thinks before it answers, and needs so many tokens to come to an end."""

    async def complete(question: Question) -> Reply:
        asked.append(question.form.max_tokens)
        if asked[-1] < needs:
            return Reply("", finish="length", prompt_tokens=100, completion_tokens=asked[-1])
        return Reply("yes", finish="stop", prompt_tokens=100, completion_tokens=needs)

    return complete


def test_an_answer_that_was_cut_off_is_asked_again_with_room_for_the_thoughts_before_it() -> None:
    asked: list[int] = []
    outcome = ask(thinker(900, asked))
    assert (outcome.verdicts[0].label, asked) == ("yes", [64, 256, 1024])
    assert outcome.completion_tokens == 64 + 256 + 900


def test_an_answer_that_finds_no_end_is_an_error_and_its_room_has_one() -> None:
    asked: list[int] = []
    (verdict,) = ask(thinker(1_000_000, asked)).verdicts
    assert asked == [64, 256, 1024, 4096, 4096, 4096]
    assert "cut off after 4096 tokens" in str(verdict.error)


def test_an_answer_gets_no_more_room_than_the_context_has_beside_its_question() -> None:
    asked: list[int] = []
    ask(thinker(1_000_000, asked), context=Context(limit=4096))
    assert 256 < asked[-1] < 4096 and asked == sorted(asked)


def narrow(tokens: int, script: Complete) -> Complete:
    """A model of so many tokens, which rejects what is longer and does not say how long it may be."""

    async def complete(question: Question) -> Reply:
        await asyncio.sleep(0.001)  # others ask meanwhile
        if Context().tokens(question) > tokens:
            raise ContextTooSmall("context_length_exceeded")
        return await script(question)

    return complete


def test_room_that_a_cut_off_answer_cannot_have_makes_the_context_no_smaller_than_it_is() -> None:
    asked: list[int] = []
    context = Context()
    (verdict,) = ask(narrow(4096, thinker(1_000_000, asked)), context=context).verdicts
    assert "cut off after" in str(verdict.error) and max(asked) > 1024
    assert ask(narrow(4096, Script("yes")), context=context).verdicts[0].label == "yes"


def test_of_many_that_are_too_long_at_once_one_says_it() -> None:
    context = Context()
    at_once = asker(narrow(4096, thinker(1_000_000, [])), context=context)
    log = team(*(("human", f"Please add a chart {i}. {'word ' * 50}") for i in range(40)))
    cases = [Case(unit, "mark") for unit in itertools.islice(cut(log, codebooks.load("initiative")), 8)]

    async def all_asked() -> None:
        await asyncio.gather(*(at_once.ask(case) for case in cases))

    asyncio.run(all_asked())
    assert ask(narrow(4096, Script("yes")), context=context).verdicts[0].label == "yes"


def test_five_repetitions_later_it_is_an_error_and_never_a_no() -> None:
    script = Script("non")
    (verdict,) = ask(script).verdicts
    assert len(script.asked) == 6
    assert verdict.label is None
    assert verdict.error is not None and "6 attempts" in verdict.error and "'non'" in verdict.error


@pytest.mark.parametrize(
    "failure", [Overloaded("status 429", 0.001), Transient("cut off"), Overloaded("500")]
)
def test_what_may_pass_is_repeated(failure: Exception) -> None:
    script = Script(failure, failure, "yes")
    assert ask(script).verdicts[0].label == "yes"
    assert len(script.asked) == 3


def test_what_does_not_pass_becomes_an_error_that_says_what_it_was() -> None:
    script = Script(Transient("cut off"))
    (verdict,) = ask(script).verdicts
    assert len(script.asked) == QUICK.transient_repeats + 1
    assert verdict.error == "11 requests failed; the last: cut off"


@pytest.mark.parametrize("failure", [Refused("the model refused: no way"), Rejected("status 400: bad")])
def test_a_refusal_or_rejection_is_an_error_with_its_text_and_not_repeated(failure: Exception) -> None:
    script = Script(failure)
    assert ask(script).verdicts[0].error == str(failure)
    assert len(script.asked) == 1


@pytest.mark.parametrize(("before", "asked"), [((), REJECTIONS), (("yes",), 2 * REJECTIONS)])
def test_an_endpoint_that_rejects_whatever_it_is_asked_ends_the_run(
    before: tuple[str, ...], asked: int
) -> None:
    script = Script(*before, Rejected("status 400: no such parameter: seed"))

    async def all_of_them() -> None:
        one = asker(script)
        unit = next(cut(team(("human", "Please add a chart.")), one.judge.codebook))
        for _ in range(2 * REJECTIONS):
            await one.ask(Case(unit, "mark"))

    with contextlib.nullcontext() if before else pytest.raises(Fatal, match="no such parameter: seed"):
        asyncio.run(all_of_them())
    assert len(script.asked) == asked


@pytest.mark.parametrize("before", [(), ("yes",)])
def test_an_endpoint_that_fails_whatever_it_is_asked_ends_the_run(before: tuple[str, ...]) -> None:
    """It was asked on for hours, with an error for every unit at the end."""
    script = Script(*before, Transient("status 500"))

    async def all_of_them() -> None:
        one = asker(script)
        unit = next(cut(team(("human", "Please add a chart.")), one.judge.codebook))
        for _ in range(2 * REJECTIONS):
            await one.ask(Case(unit, "mark"))

    wanted = f"{REJECTIONS} questions failed and none was answered: 11 requests failed; the last: status 500"
    with contextlib.nullcontext() if before else pytest.raises(Fatal, match=wanted):
        asyncio.run(all_of_them())


def test_a_wrong_key_ends_the_run_at_once() -> None:
    script = Script(Fatal("status 401"))
    with pytest.raises(Fatal, match="401"):
        ask(script)
    assert len(script.asked) == 1


def test_an_endpoint_that_is_gone_ends_the_run_instead_of_failing_every_unit() -> None:
    with pytest.raises(Fatal, match="connection refused; gone for"):
        ask(Script(Unreachable("connection refused")))


def test_an_endpoint_that_was_not_asked_for_long_is_not_gone_for_as_long() -> None:
    """A slow start, or an hour in which nobody said anything."""
    script = Script(Unreachable("connection refused"), "yes")
    waiting = replace(asker(script), patience=replace(QUICK, gone_after=0.0))
    unit = next(cut(team(("human", "Please add a chart.")), codebooks.load("initiative")))
    assert [v.label for v in asyncio.run(waiting.ask(Case(unit, "mark"))).verdicts] == ["yes"]


def test_an_endpoint_that_refuses_a_question_is_there() -> None:
    waiting = asker(Script(Unreachable("connection refused"), Rejected("no such model")))
    unit = next(cut(team(("human", "Please add a chart.")), codebooks.load("initiative")))
    asyncio.run(waiting.ask(Case(unit, "mark")))
    assert waiting.gone_since is None


def test_every_code_gets_the_error_where_the_failure_judge_fails() -> None:
    verdicts = ask(Script("{}"), "failures").verdicts
    assert len(verdicts) == 26
    assert all(v.error and v.label is None for v in verdicts)


def test_a_model_that_thinks_first_is_given_the_tokens_that_it_took_before() -> None:
    """Each unit was asked with 64, 256 and 1,024 tokens, and answered a prompt with two complaints."""
    limits: list[int] = []

    async def complete(question: Question) -> Reply:
        limits.append(question.form.max_tokens)
        whole = question.form.max_tokens >= 900
        return Reply("yes" if whole else "", finish="stop" if whole else "length", completion_tokens=900)

    one = asker(complete)
    unit = next(cut(team(("human", "Please add a chart.")), one.judge.codebook))

    async def twice() -> list[Outcome]:
        return [await one.ask(Case(unit, "mark")) for _ in range(2)]

    assert [outcome.verdicts[0].label for outcome in asyncio.run(twice())] == ["yes", "yes"]
    assert limits == [64, 256, 1024, 1024]


def test_a_context_that_turns_out_too_small_leads_to_windows() -> None:
    absent = {"answer": "absent", "events": [], "quote": "", "source": ""}
    answer = json.dumps({code.code: absent for code in codebooks.load("failures").codes})
    script = Script(ContextTooSmall("maximum context length is 14000 tokens", 14_000), answer)
    outcome = ask(script, "failures")
    assert outcome.windows > 1
    assert {v.label for v in outcome.verdicts} == {"absent"}


def test_a_question_that_a_server_cuts_without_a_word_is_asked_in_windows() -> None:
    absent = {"answer": "absent", "events": [], "quote": "", "source": ""}
    answer = json.dumps({code.code: absent for code in codebooks.load("failures").codes})
    words: list[int] = []

    async def complete(question: Question) -> Reply:
        words.append(sum(len(message.content.split()) for message in question.messages))
        return Reply(answer, prompt_tokens=min(20_000, round(1.4 * words[-1])), completion_tokens=9)

    log = team(*(("human", f"Please add a chart {i}. {'word ' * 800}") for i in range(40)))
    unit = next(cut(log, codebooks.load("failures")))
    outcome = asyncio.run(asker(complete, "failures").ask(Case(unit, "mark")))
    assert {v.label for v in outcome.verdicts} == {"absent"}
    assert outcome.windows == len(words) - 2 > 1
    assert words[0] == words[1] > 30_000 and all(1.4 * n < 20_000 for n in words[2:])
    assert outcome.prompt_tokens > 2 * 20_000 + 30_000  # what the answers of no use took is counted


@pytest.mark.parametrize(
    ("sentence", "tokens"),
    [
        ("La próxima reunión será según el último plan, así que también habrá más información después. ", 17),
        ("isn't wasn't didn't don't couldn't conversation international communications ", 8),
    ],
)
def test_an_endpoint_that_reads_fewer_tokens_than_runs_of_ascii_letters_may_have_read_all(
    sentence: str, tokens: int
) -> None:
    """As o200k counts these: letters with accents, and apostrophes, are parts of a token."""
    question = Question((Message("user", sentence * 300),), Form())
    assert not Context().is_cut(question, tokens * 300)


def test_a_server_that_cuts_may_count_a_question_by_a_token_or_two_otherwise_when_asked_again() -> None:
    """As where a template names the time: 40 of 40 units were rated by what was left of their questions."""
    counts = itertools.cycle((1500, 1499, 1502))

    async def complete(_: Question) -> Reply:
        return Reply("no", prompt_tokens=next(counts), completion_tokens=1)

    one = asker(complete)
    log = team(*(("human", f"Please add chart {i}. {'word ' * 3000}") for i in range(3)))
    (verdict,) = asyncio.run(one.ask(Case(next(cut(log, one.judge.codebook)), "mark"))).verdicts
    assert verdict.label is None and "is too small for codebook" in str(verdict.error)


def test_a_server_that_counts_only_what_it_had_not_cached_is_not_taken_for_one_that_cuts() -> None:
    """Of 40 units 39 were errors: the log that each question begins with was cached from the one before."""
    asked: list[list[str]] = []

    async def complete(question: Question) -> Reply:
        lines = "\n".join(message.content for message in question.messages).split("\n")
        asked.append(lines)
        known = {line for before in asked[:-1] for line in before}
        words = " ".join(line for line in lines if line not in known).split()
        return Reply("no", prompt_tokens=1 + round(1.3 * len(words)), completion_tokens=1)

    one = asker(complete)
    log = team(*(("human", f"Please add chart {i}. {f'word{i} ' * 700}") for i in range(6)))
    units = list(cut(log, one.judge.codebook))

    async def each() -> list[Outcome]:
        return [await one.ask(Case(unit, "mark")) for unit in units]

    assert {outcome.verdicts[0].label for outcome in asyncio.run(each())} == {"no"}
    assert (one.context.limit, len(asked)) == (None, len(units) + 1)


def test_of_questions_in_flight_that_look_cut_one_is_asked_once_more() -> None:
    """Each was: of 380 units, 116 were paid for twice, and those at a limit of requests were not rated."""
    asked: list[Question] = []

    async def complete(question: Question) -> Reply:
        tokens = 1 if question in asked else 1500
        asked.append(question)
        await asyncio.sleep(0.001)
        return Reply("no", prompt_tokens=tokens, completion_tokens=1)

    one = asker(complete)
    log = team(*(("human", f"Please add chart {i}. {f'word{i} ' * 3000}") for i in range(5)))
    units = list(cut(log, one.judge.codebook))[1:]

    async def all_at_once() -> list[Outcome]:
        return await asyncio.gather(*(one.ask(Case(unit, "mark")) for unit in units))

    labels = {outcome.verdicts[0].label for outcome in asyncio.run(all_at_once())}
    assert (labels, len(asked)) == ({"no"}, len(units) + 1)


def test_a_context_that_holds_nothing_is_an_error_that_says_so() -> None:
    outcome = ask(Script(ContextTooSmall("too long", 2_000)), "failures")
    assert "too small" in str(outcome.verdicts[0].error)


def test_a_budget_of_requests_is_kept() -> None:
    budget = Budget(max_requests=1)
    assert ask(Script("yes"), budget=budget).verdicts[0].label == "yes"
    with pytest.raises(OutOfBudget, match="--max-requests 1"):
        ask(Script("yes"), budget=budget)


def test_a_budget_of_money_is_kept_before_it_is_passed() -> None:
    price = Price(prompt=1e-4, cached=5e-5, completion=1e-3)
    budget = Budget(max_cost=1.0, price=price)
    outcome = ask(Script("yes"), budget=budget)
    assert outcome.cost_usd == pytest.approx(60 * 1e-4 + 40 * 5e-5 + 2 * 1e-3)
    budget.max_cost = 0.1
    with pytest.raises(OutOfBudget, match=r"--max-cost 0\.1"):
        ask(Script("yes"), budget=budget)
    assert budget.reserved == pytest.approx(0)


def test_a_budget_of_money_is_spent_though_more_is_set_aside_for_those_in_flight() -> None:
    # Each may cost 1, and two fit; each costs a hundredth of that, so that all ten fit in the end.
    price = Price(prompt=0, cached=0, completion=1 / 64)
    budget = Budget(max_cost=2.0, price=price)

    async def complete(question: Question) -> Reply:
        await asyncio.sleep(0.01)
        return Reply("yes", prompt_tokens=1, completion_tokens=1)

    async def run() -> list[Outcome]:
        several = asker(complete, budget=budget)
        units = cut(team(*(("human", f"Add chart {i}.") for i in range(10))), codebooks.load("initiative"))
        return await asyncio.gather(*(several.ask(Case(unit, "mark")) for unit in units))

    said = [one.verdicts[0].label for one in asyncio.run(run())]
    assert said == ["yes"] * len(said) and len(said) > 8
    assert budget.cost == pytest.approx(len(said) / 64)
    assert budget.in_flight == 0 and budget.reserved == pytest.approx(0)


def test_an_answer_that_does_not_say_what_it_took_counts_as_the_most_that_it_may_have() -> None:
    budget = Budget(max_cost=1.0, price=Price(1e-4, 5e-5, 1e-3))

    reserved = budget.reserve(100, 64)
    assert budget.settle(reserved, Reply("yes")) == reserved
    assert budget.cost == pytest.approx(100 * 1e-4 + 64 * 1e-3)
    assert budget.reserved == 0


def test_an_answer_of_no_use_counts_with_what_it_took() -> None:
    budget = Budget(price=Price(prompt=0.01, cached=0.0, completion=0.0))
    outcome = ask(Script(Transient("the answer is empty", Reply("", prompt_tokens=90)), "yes"), budget=budget)
    assert outcome.prompt_tokens == 190
    assert outcome.cost_usd == budget.cost == pytest.approx(0.9 + 0.6)


@pytest.mark.parametrize(
    "said",
    [
        Transient("the body is broken", Reply("")),
        Reply("yes", completion_tokens=1),
        Reply("yes", prompt_tokens=1),
        Reply("", finish="length", prompt_tokens=1),
    ],
    ids=["broken", "nothing of the question", "nothing of the answer", "nothing of thoughts"],
)
def test_what_is_not_told_of_an_answer_counts_as_the_most_that_it_may_have(said: Exception | Reply) -> None:
    budget = Budget(price=Price(prompt=0.0, cached=0.0, completion=1.0))
    ask(Script(said, "yes"), budget=budget)
    most = codebooks.load("initiative")
    assert budget.cost >= LLMJudge(most, most.context).answer.form().max_tokens


@pytest.mark.long
def test_a_run_that_is_being_ended_does_not_wait_for_a_busy_endpoint() -> None:
    stopping: list[bool] = []
    end_soon(asker(Script(Overloaded("429", 30.0)), stopping=lambda: bool(stopping)), stopping)


def test_a_run_that_is_being_ended_does_not_wait_for_a_busy_endpoint_that_it_left_alone() -> None:
    stopping: list[bool] = []
    asking = asker(Script("yes"), stopping=lambda: bool(stopping))
    for _ in range(FEWEST):
        asking.limiter.note_overload(30.0)
    assert 29 < asking.limiter.pause <= 30
    end_soon(asking, stopping)


def end_soon(asking: Asker, stopping: list[bool]) -> None:
    """A question is asked, the run is ended, and nothing is waited for any longer."""
    began = time.monotonic()

    async def run() -> None:
        log = team(("human", "Please add a chart."))
        asked = asyncio.create_task(asking.ask(Case(next(cut(log, codebooks.load("initiative"))), "mark")))
        await asyncio.sleep(0.05)
        stopping.append(True)
        await asked

    with pytest.raises(Stopped):
        asyncio.run(run())
    assert time.monotonic() - began < 5


def run_limited(most: int, answers: Callable[[int], bool], requests: int) -> Limiter:
    """Requests against an endpoint that says by the number in flight whether it is overloaded."""
    limiter = Limiter(most)

    async def one() -> None:
        while True:
            async with limiter:
                fits = answers(limiter.in_flight)
                await asyncio.sleep(0.001)
            if fits:
                limiter.note_success(0.001)
                return
            limiter.note_overload(None)

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(requests):
                group.create_task(one())

    asyncio.run(run())
    return limiter


def test_concurrency_grows_to_what_is_allowed_where_nothing_says_no() -> None:
    assert run_limited(64, lambda _: True, 500).places == 64


def test_concurrency_falls_to_what_the_endpoint_bears() -> None:
    limiter = run_limited(64, lambda in_flight: in_flight <= 8, 600)
    assert limiter.places < 24


def test_a_few_refusals_at_random_cost_no_concurrency() -> None:
    turns = iter(range(10_000))
    assert run_limited(64, lambda _: next(turns) % 10 != 0, 1000).places == 64


def test_no_more_is_sent_where_answers_take_long() -> None:
    limiter = Limiter(1024, timeout=90)
    limiter.open(256)
    for _ in range(50):
        limiter.note_success(30)
    assert limiter.places == 256
    for _ in range(50):
        limiter.note_success(29)
    assert limiter.places == 306


def test_a_model_that_takes_long_is_asked_as_often_as_before_after_a_hang() -> None:
    limiter = Limiter(64, timeout=90)
    for _ in range(100):
        limiter.note_overload(None)
    assert limiter.places == 1
    for _ in range(300):
        limiter.note_success(60)
    assert 16 <= limiter.places < 17


def test_slow_answers_bring_no_more_while_some_come_too_late() -> None:
    limiter = Limiter(64, timeout=90)
    for _ in range(FEWEST):
        limiter.note_overload(None)
    places = limiter.places
    for _ in range(10):
        limiter.note_overload(None)
        for _ in range(9):
            limiter.note_success(60)
    assert limiter.places <= places


def test_a_hang_that_ends_all_requests_together_counts_once() -> None:
    limiter = Limiter(1024)
    limiter.open(256)
    sent = time.monotonic()
    for _ in range(256):
        limiter.note_overload(None, sent)
    assert limiter.places == pytest.approx(256 * 0.6)


def test_an_engine_that_names_no_number_is_filled_and_none_gets_more_than_is_allowed() -> None:
    limiter = Limiter(64)
    limiter.open(None)
    assert limiter.places == 64
    limiter.open(256)
    assert limiter.places == 64
