"""Units rated as they complete, by a language model: the engine of `coaudit judge`, beside the follower.

The store is the queue: ids of trajectories that have changed are kept, and looked at once few jobs are
waiting. Questions are asked in turns. During one, this process holds the rater's lock, so that nobody else
asks the same; between two, others get the lock, and what they rated is read from the ledger anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from ...judges.clients import Client
from ...judges.clients.protocol import Fatal
from ...judges.llm import Budget, Patience
from ...judges.llm.context import Context
from ...judges.llm.limits import Limiter
from ...schemas import Rating, Trajectory, Unit
from ...schemas.results import with_results
from ...schemas.text import count_of
from ..judge import Scope, Summary
from ..judge import model as model_judging
from ..judge.background import Backgrounds
from ..judge.model import Jobs, Model, State, work
from ..judge.questions import Job, Planner
from ..judge.scope import PriorRating, PriorRatings, Say, prior_ratings, wait_notice
from .complete import Stillness, awaits_result, complete_units
from .ledger import LiveLedger
from .sink import Sink

TURN = 20.0
"""Seconds for which a turn takes in new units."""
HANGING = 5.0
"""Seconds after which a turn no longer waits for its last answers alone, but takes in more units beside them.
"""
GAP = 0.5
"""Seconds between two turns: longer than others who wait for the lock sleep."""
LOOK = 20
"""Trajectories looked at before the follower goes on."""
GRACE = 5.0
"""Seconds that what is still to be asked gets when following ends."""
AGAIN = (2.0, 60.0)
"""Seconds until an endpoint that is gone is tried again, doubling from the first number up to the second."""
DOUBLINGS = 20
"""The most of them: after a night of tries the power of 2 would be too large for a float."""
TICK = 0.05
PATIENCE = Patience(gone_after=5.0)
"""An endpoint that is gone is soon taken to be so: its questions are only put off."""
Ratings = dict[str, PriorRatings]
"""Codebook -> what is known of a trajectory's units."""
Key = tuple[str, str, int | None, str | None]
"""Trajectory, codebook, seq of the unit's first event, hash of the unit."""


@dataclass
class JudgingPlan:
    """What looking at some trajectories gave."""

    jobs: list[Job] = field(default_factory=list)
    copies: list[Rating] = field(default_factory=list)
    seen_units: set[Key] = field(default_factory=set)
    ratings: dict[str, Ratings] = field(default_factory=dict)
    units: int = 0
    """How many units had no rating yet."""
    unseen_ids: list[str] = field(default_factory=list)
    """Trajectories that were not looked at, as there was no room for more jobs."""


class ModelJudge:
    """Plans what is to be asked about what was just stored, and asks in a task of its own (`run`)."""

    def __init__(
        self, sink: Sink, scope: Scope, model: Model, complete: Client, say: Say, silence: float
    ) -> None:
        self.sink = sink
        self.scope = scope
        self.model = model
        self.complete = complete
        self.say = say
        self.still = Stillness(silence)
        self.ledger = LiveLedger(sink)
        self.state = State(
            Summary(),
            Budget(model.max_requests, model.max_cost, model.price),
            Limiter(model.concurrency, model.timeout),
        )
        self._context = Context(model.context)
        self._secret = sink.store.workspace.secret()
        judges = [model.judge(book, scope) for book in scope.books]
        self._makers = [(judge, model.maker(judge)) for judge in judges]
        self._views = {judge.codebook.views for judge in judges}
        self._changed_ids: dict[str, None] = {}
        self._seen_units: set[Key] = set()
        """Units that this turn has looked at."""
        self._known_ratings: dict[str, Ratings] = {}
        """Trajectory -> what is known of its units, for those that this turn has looked at."""
        self._open_units: set[Key] = set()
        """Units that are being asked about."""
        self._jobs: Jobs | None = None
        """The jobs of the current turn; None between two."""
        self._full = False
        """Whether the current turn takes in no more."""
        self._planning = False
        self._asking: asyncio.Task[None] | None = None
        self._gone = 0
        """Turns in a row in which the endpoint was gone."""
        self._is_reported = False

    async def __call__(self, trajectories: Sequence[Trajectory]) -> None:
        """Plan what has changed, if there is room for more jobs; answers are never waited for."""
        self.still.note(trajectories)
        self._changed_ids |= dict.fromkeys([t.id for t in trajectories] + self.still.take())
        jobs = self._jobs
        room = self.model.waiting - jobs.qsize() if jobs else 0
        if jobs is None or self._full or room <= 0 or not self._changed_ids:
            return
        some = list(self._changed_ids)[:LOOK]
        for key in some:
            del self._changed_ids[key]
        self._planning = True
        try:
            plan = await asyncio.to_thread(self._plan, some, room)
        finally:
            self._planning = False
        if self._jobs is not jobs:
            self._changed_ids |= dict.fromkeys(some)
            return
        self._changed_ids |= dict.fromkeys(plan.unseen_ids)
        self._seen_units |= plan.seen_units
        self._known_ratings |= plan.ratings
        self._put_copies(plan)
        for job in plan.jobs:
            self._open_units |= {
                (u.trajectory_id, job.judge.codebook.name, u.event, u.hash) for u in job.units
            }
            jobs.put_nowait(job)

    async def run(self) -> None:
        """Ask in turns, until cancelled or out of budget."""
        self._asking = asyncio.current_task()
        while self.state.stopping is None:
            if self._changed_ids:
                async with self._rater_lock():
                    await self._turn()
                    await self._await_stored()  # else whoever has the next turn asks the same
                await self._after_turn()
            await asyncio.sleep(GAP)
        self.say(f"stopped judging: {self.state.stopping}")

    async def finish(self) -> None:
        """Ask for a short while more, then stop, and report how many units are left."""
        self._changed_ids |= dict.fromkeys(self.still.take(everything=True))
        end = time.monotonic() + GRACE
        while (self._changed_ids or self._open_units) and self._may_ask() and time.monotonic() < end:
            await self(())
            await self._store()
            await asyncio.sleep(TICK)
        await self._store()  # before another has the turn
        if self._asking:
            self._asking.cancel()
            await asyncio.wait([self._asking])
        await self._store()
        if count := await asyncio.to_thread(self._count_left):
            self.say(f"{count_of(count, 'unit', 'units')} not judged yet: {self._command()} goes on")

    def summary(self) -> dict[str, float]:
        """What was asked and rated."""
        self.state.finish()
        summary = self.state.summary
        cost = {} if summary.cost_usd is None else {"cost_usd": summary.cost_usd}
        return {"rated": summary.rated, "errors": summary.errors, "requests": summary.requests, **cost}

    async def _turn(self) -> None:
        await self._await_stored()  # what is known is what the store has
        self._forget()
        askers = model_judging.askers(self.scope, self.model, self.complete, self.state, self._context)
        jobs: Jobs = asyncio.Queue()
        self._jobs, self._full = jobs, False
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._take_in(jobs))
                for _ in range(self.model.workers):
                    group.create_task(work(jobs, askers, self.state, self._put))
        finally:
            self._jobs = None
            self._changed_ids |= dict.fromkeys(sorted(key[0] for key in self._open_units))
            self._open_units.clear()

    async def _await_stored(self) -> None:
        while self.ledger.waits:
            await asyncio.sleep(TICK)

    async def _take_in(self, jobs: Jobs) -> None:
        """Take in units for one turn, and go on for another while an answer hangs, so that others are asked
        beside it."""
        while True:
            end = time.monotonic() + TURN
            while self.state.stopping is None and time.monotonic() < end:
                await asyncio.sleep(TICK)
            self._full = True
            while self._planning or not (jobs.empty() or self.state.stopping):
                await asyncio.sleep(TICK)  # what is being planned is still asked in this turn
            if await self._await_answers():
                break
            self._full = False
        for _ in range(self.model.workers):
            jobs.put_nowait(None)

    async def _await_answers(self) -> bool:
        """Wait for answers for a while; whether all have come, or nothing more is to be asked."""
        end = time.monotonic() + HANGING
        while self._open_units and self.state.stopping is None and time.monotonic() < end:
            await asyncio.sleep(TICK)
        return not self._open_units or self.state.stopping is not None

    async def _after_turn(self) -> None:
        """Where the endpoint is gone, report it once, and wait until it answers again."""
        if self.state.fatal is None:
            return
        if not self._gone:
            self.say(f"{self.state.fatal}; following goes on, judging when it answers again")
        first, longest = AGAIN
        while True:
            await asyncio.sleep(min(longest, first * 2 ** min(self._gone, DOUBLINGS)))
            self._gone += 1
            with contextlib.suppress(Fatal):
                await self.complete.offer()
                break
        self.state.fatal = self.state.stopping = None

    @contextlib.asynccontextmanager
    async def _rater_lock(self) -> AsyncIterator[None]:
        rater = self.model.rater
        while True:
            with self.sink.store.tables.locks.attempt(f"judge {rater}") as holder:
                if holder is None:
                    yield
                    return
            if not self._is_reported:
                wait_notice(rater, self.say)(holder)
                self._is_reported = True
            await asyncio.sleep(GAP)

    def _put(self, units: list[list[Rating]]) -> None:
        if self._gone:
            self.say(f"{self.model.name}: answers again")
            self._gone = 0
        for ratings in units:
            self.state.summary.count(ratings)
            self.ledger.write(ratings)
            self._open_units -= {(r.trajectory, r.codebook, r.event, r.unit_hash) for r in ratings}

    def _put_copies(self, plan: JudgingPlan) -> None:
        """Write the ratings that the ledger already had under another rater's name."""
        self.ledger.write(plan.copies)
        self.state.summary.rated += plan.units - sum(len(job.units) for job in plan.jobs)

    def _plan(self, ids: Sequence[str], room: float) -> JudgingPlan:
        """The jobs for these trajectories, taken whole until there is no more room.

        They are loaded from the store: a prompt must be the one that `coaudit judge` would ask.
        """
        fresh = [key for key in ids if key not in self._known_ratings]
        with self.sink.store.reading() as connection:
            trajectories = self.sink.store.load(connection, ids, states=True)
            by_book = {book.name: prior_ratings(connection, book, fresh) for book in self.scope.books}
        plan, backgrounds = JudgingPlan(), Backgrounds(self.sink.store)
        plan.ratings = {
            key: {book: by_trajectory.get(key, {}) for book, by_trajectory in by_book.items()}
            for key in fresh
        }
        for trajectory in trajectories:
            if len(plan.jobs) >= room:
                plan.unseen_ids.append(trajectory.id)
                continue
            ratings = self._known_ratings.get(trajectory.id) or plan.ratings[trajectory.id]
            self._plan_one(trajectory, ratings, plan, backgrounds)
        return plan

    def _plan_one(
        self, trajectory: Trajectory, ratings: Ratings, plan: JudgingPlan, backgrounds: Backgrounds
    ) -> None:
        is_over = self.still.has_ended(trajectory)
        logs = {views: with_results(trajectory, views) for views in self._views}
        for judge, maker in self._makers:
            book = judge.codebook
            planner = Planner(judge, maker, self.scope, self._secret, Summary(), backgrounds.of)
            units: list[tuple[Trajectory, Unit, list[PriorRating]]] = []
            log = logs[book.views]
            for unit in complete_units(log, book, is_over=is_over):
                key = (trajectory.id, book.name, unit.event, unit.hash)
                if key not in self._seen_units and (is_over or not awaits_result(log, unit)):
                    plan.seen_units.add(key)
                    candidates = ratings[book.name].get(unit.event, [])
                    units.append((log, unit, [k for k in candidates if k.unit_hash == unit.hash]))
            plan.jobs += planner.jobs(units)
            plan.copies += planner.copies
            plan.units += planner.units

    def _may_ask(self) -> bool:
        return bool(self._asking and not self._asking.done() and not self._gone and not self.state.stopping)

    async def _store(self) -> None:
        if self.ledger.waits:
            await asyncio.to_thread(self.sink.flush)

    def _forget(self) -> None:
        """Drop what is known of units, so that it is looked up anew."""
        self._seen_units, self._known_ratings = set(), {}

    def _count_left(self) -> int:
        self._forget()
        ids = list(self._changed_ids)
        parts = (ids[start : start + LOOK] for start in range(0, len(ids), LOOK))
        return sum(self._plan(part, float("inf")).units for part in parts)

    def _command(self) -> str:
        books = " ".join(f"--codebook {book.name}" for book in self.scope.books)
        rater = "" if self.model.rater == self.model.name else f" --rater {shlex.quote(self.model.rater)}"
        return f"`coaudit judge {books} --model {shlex.quote(self.model.name)}{rater}`"
