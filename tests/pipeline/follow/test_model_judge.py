"""What completes a unit, and the live model judge by itself: its turns, its lock and its ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coaudit.judges.clients import Offer, Parameters, Question, Reply
from coaudit.judges.clients.protocol import Fatal
from coaudit.pipeline import codebooks
from coaudit.pipeline.cli.sample_audit import samples
from coaudit.pipeline.follow import model_judge
from coaudit.pipeline.follow.complete import Stillness, complete_units
from coaudit.pipeline.follow.model_judge import ModelJudge
from coaudit.pipeline.follow.sink import Sink
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.judge import Scope
from coaudit.pipeline.judge.model import Model
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.store.ledgers import ledger
from coaudit.pipeline.systems import ReadOptions
from coaudit.schemas import Codebook, Outcome, Rating, Trajectory
from tests.judges.teams import team

MODEL = Model("openai/judge", "judge", Parameters(), concurrency=2)
TALK = (("human", "Please add a chart."), ("agent", "Shall I use blue?"), ("human", "Yes."))


def book(name: str) -> Codebook:
    return codebooks.load(name, Path("nowhere"))


def session(*said: tuple[str, str], reason: str = "unfinished", key: str = "t1") -> Trajectory:
    """A live session; `reason` is how it ended."""
    end = Outcome(name="end_reason", text=reason)
    return team(*said, key=key).model_copy(update={"outcomes": (end,)})


def units(trajectory: Trajectory, codebook: Codebook, *, ended: bool = False) -> list[int | None]:
    return [unit.event for unit in complete_units(trajectory, codebook, is_over=ended)]


def test_a_question_is_complete_with_its_reply_and_a_trajectory_with_its_end() -> None:
    assert units(session(*TALK[:2]), book("confirmation")) == []
    assert units(session(*TALK), book("confirmation")) == [2]
    assert units(session(*TALK), book("failures")) == []
    assert units(session(*TALK), book("failures"), ended=True) == [None]


def test_a_judge_that_sees_the_whole_transcript_waits_for_its_end() -> None:
    seeing = book("initiative").model_copy(update={"context": "transcript"})
    assert units(session(*TALK), seeing) == []
    assert units(session(*TALK), seeing, ended=True) == [1, 2, 3]


def test_what_stands_behind_an_action_on_its_way_waits_for_it() -> None:
    begun = session(TALK[0], ("agent", "SEARCH(blue)"), TALK[2])
    events = [e.model_copy(update={"status": None}) if e.seq == 2 else e for e in begun.events]
    waiting = begun.model_copy(update={"events": tuple(events)})
    assert units(begun, book("initiative")) == [1, 3]
    assert units(waiting, book("initiative")) == [1]


def test_a_trajectory_that_does_not_say_so_has_ended_when_it_is_still_until_it_changes_again() -> None:
    silent, running = team(*TALK, key="a"), session(*TALK, key="b")
    still = Stillness(60.0)
    still.note([silent, running])
    assert still.take() == [] and not still.has_ended(silent)
    assert still.take(everything=True) == ["a"]
    assert still.has_ended(silent) and not still.has_ended(running)
    assert still.has_ended(session(*TALK, reason="finished"))
    still.note([silent])
    assert not still.has_ended(silent)


def test_an_action_whose_result_may_still_come_is_asked_about_once(sink: Sink) -> None:
    """The result is a part of the prompt: without it the same action was asked about twice."""
    steps = book("decisive_step").model_copy(update={"context": "preceding"})
    judge = ModelJudge(sink, Scope((steps,)), MODEL, Asked(), print, 60.0)
    log = team(TALK[0], ("agent", "SEARCH(blue)"))
    call = log.events[2].model_copy(update={"status": None})
    answered = call.model_copy(update={"states": {"public": "h"}})
    planned = []
    for event in (call, answered):
        states = {key: {"observation": "A shade."} for key in event.states.values()}
        sink.put(log.model_copy(update={"events": (*log.events[:2], event), "states": states}), ReadOptions())
        sink.flush()
        planned.append([unit.event for job in judge._plan([log.id], 9).jobs for unit in job.units])
    assert planned == [[1], [1, 2]]


def test_of_codebooks_that_follow_together_each_has_its_own_views(sink: Sink) -> None:
    """One asks about a builder's own goal, which the other must not be shown."""
    books = (book("dilemmas"), book("team_faults"))
    judge = ModelJudge(sink, Scope(books), MODEL, Asked(), print, 60.0)
    log = session(*TALK, reason="finished")
    start = log.events[0].model_copy(update={"states": {"human": "h"}})
    goal = {"h": {"goal": "two red blocks"}}
    sink.put(log.model_copy(update={"events": (start, *log.events[1:]), "states": goal}), ReadOptions())
    sink.flush()
    jobs = judge._plan([log.id], 9).jobs
    prompts = [str(job.judge.whole(job.case).question.messages) for job in jobs]
    assert ["two red blocks" in prompt for prompt in prompts] == [False, True]


def test_a_recipe_that_comes_while_a_kitchen_is_followed_is_told(sink: Sink) -> None:
    """A follower kept what it knew when it began: what it asked had to be asked anew by `coaudit judge`."""
    judge = ModelJudge(sink, Scope((book("dilemmas"),)), MODEL, Asked(), print, 60.0)
    log = session(*TALK, reason="finished").model_copy(update={"system": "overcooked", "task": "leek_soup"})
    sink.put(log, ReadOptions())
    sink.flush()
    ingest(sink.store, [], ReadOptions(), reference=samples() / "overcooked" / "recipe")
    (job,) = judge._plan([log.id], 9).jobs
    assert "The order's recipe:" in (job.case.background or "")


class Asked:
    """A client that says yes, and what it was asked."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    async def offer(self) -> Offer:
        return Offer()

    async def __call__(self, question: Question) -> Reply:
        self.questions.append(question)
        return Reply("yes")


@pytest.fixture
def sink(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Sink:
    monkeypatch.setattr(model_judge, "GAP", 0.02)
    monkeypatch.setattr(model_judge, "GRACE", 30.0)
    found = Sink(Store(Workspace(workspace)))
    found.open()
    return found


def held(sink: Sink) -> list[Rating]:
    items = [i for path in ledger.files(sink.store.workspace.ratings) for i, _ in ledger.ratings(path)]
    return [item for item in items if isinstance(item, Rating)]


async def followed(
    sink: Sink,
    client: Asked,
    *trajectories: Trajectory,
    model: Model = MODEL,
    meanwhile: Callable[[ModelJudge], Awaitable[None]] | None = None,
) -> list[str]:
    """Follow these to their end; what was said."""
    said: list[str] = []
    judge = ModelJudge(sink, Scope((book("initiative"),)), model, client, said.append, 60.0)
    running = asyncio.create_task(judge.run())
    await asyncio.sleep(0)
    for trajectory in trajectories:
        sink.put(trajectory, ReadOptions())
    await judge(sink.flush())
    if meanwhile:
        await meanwhile(judge)
    await judge.finish()
    await asyncio.wait([running])
    judge.ledger.close()
    return said


@pytest.mark.slow
async def test_what_was_rated_before_is_not_asked_and_another_rater_of_the_model_is_answered_from_it(
    sink: Sink,
) -> None:
    client = Asked()
    assert await followed(sink, client, session(*TALK)) == []
    assert len(client.questions) == len(held(sink)) == 3
    await followed(sink, client, session(*TALK, ("agent", "Done.")))
    assert len(client.questions) == len(held(sink)) == 4
    await followed(
        sink, client, session(*TALK, ("agent", "Done."), TALK[2]), model=replace(MODEL, rater="two")
    )
    assert len(client.questions) == 5
    assert sum(r.external == {"answered_for": "judge"} for r in held(sink)) == 4


@pytest.mark.long
async def test_while_another_run_judges_as_the_same_rater_nothing_is_asked(sink: Sink) -> None:
    client = Asked()

    async def wait(judge: ModelJudge) -> None:
        for _ in range(10):
            await judge(())
            await asyncio.sleep(0.03)
        assert client.questions == []
        another.__exit__(None, None, None)

    another = sink.store.tables.locks.attempt("judge judge")
    assert another.__enter__() is None
    (said,) = await followed(sink, client, session(*TALK), meanwhile=wait)
    assert "is judging as rater 'judge' in this workspace; waiting" in said
    assert len(client.questions) == 3


class Away(Asked):
    """One that is gone at the first question, and for 1,100 tries after it."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0

    async def offer(self) -> Offer:
        self.tries += 1
        if self.tries <= 1100:
            raise Fatal("gone")
        return Offer()

    async def __call__(self, question: Question) -> Reply:
        if not self.tries:
            raise Fatal("gone")
        return await super().__call__(question)


@pytest.mark.slow
async def test_an_endpoint_that_is_gone_overnight_is_asked_again_when_it_is_back(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_judge, "AGAIN", (1e-9, 1e-6))
    client = Away()

    async def night(judge: ModelJudge) -> None:
        for _ in range(500):
            await judge(())
            if client.questions:
                break
            await asyncio.sleep(0.02)

    said = await followed(sink, client, session(*TALK), meanwhile=night)
    assert said == ["gone; following goes on, judging when it answers again", "openai/judge: answers again"]
    assert len(held(sink)) == 3


class Hanging(Asked):
    """One that never answers the first question."""

    async def __call__(self, question: Question) -> Reply:
        if not self.questions:
            self.questions.append(question)
            await asyncio.sleep(3600)
        return await super().__call__(question)


@pytest.mark.long
async def test_a_request_that_hangs_holds_up_no_later_turn(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_judge, "TURN", 0.05)
    monkeypatch.setattr(model_judge, "HANGING", 0.05)
    monkeypatch.setattr(model_judge, "GRACE", 0.1)
    client = Hanging()

    async def later(judge: ModelJudge) -> None:
        await asyncio.sleep(0.5)  # the first turn is long over
        sink.put(session(*TALK, key="t2"), ReadOptions())
        await judge(sink.flush())
        for _ in range(100):
            await judge(())
            if len(client.questions) == 6:
                break
            await asyncio.sleep(0.03)

    (said,) = await followed(sink, client, session(*TALK), meanwhile=later)
    assert len(client.questions) == 6
    assert "1 unit not judged yet" in said
    assert len(held(sink)) == 5


@pytest.mark.slow
async def test_turns_follow_each_other_and_ask_nothing_twice(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_judge, "TURN", 0.1)
    client = Asked()

    async def grow(judge: ModelJudge) -> None:
        for count in range(1, 11):
            talk = [("human", f"Please check item {i}.") for i in range(count)]
            sink.put(session(*talk), ReadOptions())
            await judge(sink.flush())
            await asyncio.sleep(0.03)

    assert await followed(sink, client, session(*TALK, key="t2"), meanwhile=grow) == []
    assert len(client.questions) == len(held(sink)) == 3 + 10


@pytest.mark.slow
async def test_a_turn_is_given_up_when_the_store_has_what_it_rated(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_judge, "TURN", 0.1)
    client, waiting, judges = Asked(), list[bool](), list[ModelJudge]()
    locks = type(sink.store.tables.locks)

    @contextmanager
    def attempt(self: Any, name: str) -> Iterator[str | None]:
        with taken(self, name) as holder:
            yield holder
            waiting.extend(judge.ledger.waits for judge in judges)

    async def store_late(judge: ModelJudge) -> None:
        judges.append(judge)
        while len(client.questions) < 3:
            await judge(())
            await asyncio.sleep(0.01)
        for _ in range(100):  # turns of others would begin here
            await asyncio.sleep(0.01)
        sink.flush()
        while not waiting:
            await asyncio.sleep(0.01)

    taken = locks.attempt
    monkeypatch.setattr(locks, "attempt", attempt)
    await followed(sink, client, session(*TALK), meanwhile=store_late)
    assert waiting[0] is False


async def test_a_turn_that_ends_with_the_following_is_given_up_when_the_store_has_what_it_rated(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, judges = list[bool](), list[ModelJudge]()
    locks = type(sink.store.tables.locks)

    @contextmanager
    def attempt(self: Any, name: str) -> Iterator[str | None]:
        with taken(self, name) as holder:
            try:
                yield holder
            finally:
                waiting.extend(judge.ledger.waits for judge in judges)

    async def answered(judge: ModelJudge) -> None:
        judges.append(judge)
        while len(held(sink)) < 3:
            await judge(())
            await asyncio.sleep(0.01)
        assert judge.ledger.waits and not waiting

    taken = locks.attempt
    monkeypatch.setattr(locks, "attempt", attempt)
    await followed(sink, Asked(), session(*TALK), meanwhile=answered)
    assert waiting == [False]
