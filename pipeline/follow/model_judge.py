"""Units rated as they complete, by a language model: the engine of `coaudit judge`, beside the follower.

The store is the queue: what has changed is remembered by its id, and looked at once few jobs are waiting.
Asking goes in turns. During one, this process holds the rater's lock, so that nobody else asks the same;
between two, others get the lock, and what they rated is learnt anew from the ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from ...judges.clients import Client
from ...judges.clients.protocol import Fatal
from ...judges.llm import Budget, Patience
from ...judges.llm.context import Context
from ...judges.llm.limits import Limiter
from ...schemas import Rating, Trajectory, Unit
from ..judge import Scope, Summary
from ..judge import model as model_judging
from ..judge.model import Jobs, Model, State, work
from ..judge.questions import Job, Planner
from ..judge.scope import Known, KnownUnits, Say, known, waiting_for
from .complete import Stillness, complete
from .ledger import LiveLedger
from .sink import Sink

TURN = 20.0
"""Seconds for which a turn takes in new units."""
HANGING = 5.0
"""Seconds after which what a turn asked last holds up no others: the turn goes on."""
GAP = 0.5
"""Seconds between two turns: longer than others who wait for the lock sleep."""
LOOK = 20
"""Trajectories looked at before the follower goes on."""
GRACE = 5.0
"""Seconds that what is still to be asked gets when following ends."""
AGAIN = (2.0, 60.0)
"""Seconds until an endpoint that is gone is tried again, doubling from the first to the second."""
DOUBLINGS = 20
"""At most: after a night of tries the power would be beyond any number of seconds."""
TICK = 0.05
PATIENCE = Patience(gone=5.0)
"""An endpoint that is gone is said to be soon: what is asked of it is only put off."""
Ratings = dict[str, KnownUnits]
"""Codebook -> what is known of a trajectory's units."""
Key = tuple[str, str, int | None, str | None]
"""Trajectory, codebook, seq of the unit's first event, hash of the unit."""


@dataclass
class Planned:
    """What looking at some trajectories came to."""

    jobs: list[Job] = field(default_factory=list)
    copied: list[Rating] = field(default_factory=list)
    seen: set[Key] = field(default_factory=set)
    known: dict[str, Ratings] = field(default_factory=dict)
    units: int = 0
    """Those that were not rated."""
    unseen: list[str] = field(default_factory=list)
    """Trajectories that there was no room for."""


class ModelJudge:
    """Plans what was just stored, and asks about it in a task of its own (`run`)."""

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
            Summary(), Budget(model.max_requests, model.max_cost, model.price), Limiter(model.concurrency)
        )
        self._context = Context(model.context)
        self._secret = sink.store.workspace.secret()
        judges = [model.judge(book, scope) for book in scope.books]
        self._makers = [(judge, model.maker(judge)) for judge in judges]
        self._changed: dict[str, None] = {}
        self._seen: set[Key] = set()
        """Units that were looked at in this turn."""
        self._known: dict[str, Ratings] = {}
        """By trajectory, those that were looked at in this turn."""
        self._open: set[Key] = set()
        """Units that are being asked about."""
        self._jobs: Jobs | None = None
        """Those of the turn that is on."""
        self._full = False
        """Whether that turn takes in no more."""
        self._planning = False
        self._asking: asyncio.Task[None] | None = None
        self._gone = 0
        """Turns in a row in which the endpoint was gone."""
        self._told = False

    async def __call__(self, trajectories: Sequence[Trajectory]) -> None:
        """Plan what has changed, if there is room for more; the asking is never waited for."""
        self.still.note(trajectories)
        self._changed |= dict.fromkeys([t.id for t in trajectories] + self.still.take())
        jobs = self._jobs
        room = self.model.waiting - jobs.qsize() if jobs else 0
        if jobs is None or self._full or room <= 0 or not self._changed:
            return
        some = list(self._changed)[:LOOK]
        for key in some:
            del self._changed[key]
        self._planning = True
        try:
            plan = await asyncio.to_thread(self._plan, some, room)
        finally:
            self._planning = False
        if self._jobs is not jobs:
            self._changed |= dict.fromkeys(some)
            return
        self._changed |= dict.fromkeys(plan.unseen)
        self._seen |= plan.seen
        self._known |= plan.known
        self._put_copied(plan)
        for job in plan.jobs:
            self._open |= {(u.trajectory_id, job.judge.codebook.name, u.event, u.hash) for u in job.units}
            jobs.put_nowait(job)

    async def run(self) -> None:
        """Ask in turns, until cancelled or out of budget."""
        self._asking = asyncio.current_task()
        while self.state.stopping is None:
            if self._changed:
                async with self._alone():
                    await self._turn()
                await self._after_turn()
            await asyncio.sleep(GAP)
        self.say(f"stopped judging: {self.state.stopping}")

    async def finish(self) -> None:
        """Give what is left a short while, then stop asking, and say what stays unasked."""
        self._changed |= dict.fromkeys(self.still.take(everything=True))
        end = time.monotonic() + GRACE
        while (self._changed or self._open) and self._may_ask() and time.monotonic() < end:
            await self(())
            await self._store()
            await asyncio.sleep(TICK)
        if self._asking:
            self._asking.cancel()
            await asyncio.wait([self._asking])
        await self._store()
        if count := await asyncio.to_thread(self._left):
            self.say(f"{count} units not judged yet: {self._command()} goes on")

    def summary(self) -> dict[str, float]:
        """What was asked and rated."""
        self.state.finish()
        summary = self.state.summary
        cost = {} if summary.cost_usd is None else {"cost_usd": summary.cost_usd}
        return {"rated": summary.rated, "errors": summary.errors, "requests": summary.requests, **cost}

    async def _turn(self) -> None:
        while self.ledger.waits:  # what is known is what the store has
            await asyncio.sleep(TICK)
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
            self._changed |= dict.fromkeys(sorted(key[0] for key in self._open))
            self._open.clear()

    async def _take_in(self, jobs: Jobs) -> None:
        """Take in units for a turn, or for more while an answer hangs: others are asked beside it."""
        while True:
            end = time.monotonic() + TURN
            while self.state.stopping is None and time.monotonic() < end:
                await asyncio.sleep(TICK)
            self._full = True
            while self._planning or not (jobs.empty() or self.state.stopping):
                await asyncio.sleep(TICK)  # what it comes to is still asked in this turn
            if await self._answered():
                break
            self._full = False
        for _ in range(self.model.workers):
            jobs.put_nowait(None)

    async def _answered(self) -> bool:
        """Whether all that was asked is answered after a while, or nothing more is to be asked."""
        end = time.monotonic() + HANGING
        while self._open and self.state.stopping is None and time.monotonic() < end:
            await asyncio.sleep(TICK)
        return not self._open or self.state.stopping is not None

    async def _after_turn(self) -> None:
        """Where the endpoint is gone, say so once, and wait until it answers again."""
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
    async def _alone(self) -> AsyncIterator[None]:
        rater = self.model.rater
        while True:
            with self.sink.store.tables.locks.attempt(f"judge {rater}") as holder:
                if holder is None:
                    yield
                    return
            if not self._told:
                waiting_for(rater, self.say)(holder)
                self._told = True
            await asyncio.sleep(GAP)

    def _put(self, units: list[list[Rating]]) -> None:
        if self._gone:
            self.say(f"{self.model.name}: answers again")
            self._gone = 0
        for ratings in units:
            self.state.summary.count(ratings)
            self.ledger.write(ratings)
            self._open -= {(r.trajectory, r.codebook, r.event, r.unit_hash) for r in ratings}

    def _put_copied(self, plan: Planned) -> None:
        """What the ledger answered under another rater's name."""
        self.ledger.write(plan.copied)
        self.state.summary.rated += plan.units - sum(len(job.units) for job in plan.jobs)

    def _plan(self, ids: Sequence[str], room: float) -> Planned:
        """The jobs of these trajectories, whole trajectories until there is no more room.

        They are as the store gives them: a prompt must be the one that `coaudit judge` would ask.
        """
        fresh = [key for key in ids if key not in self._known]
        with self.sink.store.reading() as connection:
            trajectories = self.sink.store.load(connection, ids)
            by_book = {book.name: known(connection, book, fresh) for book in self.scope.books}
        plan = Planned()
        plan.known = {
            key: {book: by_trajectory.get(key, {}) for book, by_trajectory in by_book.items()}
            for key in fresh
        }
        for trajectory in trajectories:
            if len(plan.jobs) >= room:
                plan.unseen.append(trajectory.id)
                continue
            ratings = self._known.get(trajectory.id) or plan.known[trajectory.id]
            self._plan_one(trajectory, ratings, plan)
        return plan

    def _plan_one(self, trajectory: Trajectory, ratings: Ratings, plan: Planned) -> None:
        for judge, maker in self._makers:
            book = judge.codebook
            planner = Planner(judge, maker, self.scope, self._secret, Summary())
            units: list[tuple[Trajectory, Unit, list[Known]]] = []
            for unit in complete(trajectory, book, is_over=self.still.ended(trajectory)):
                key = (trajectory.id, book.name, unit.event, unit.hash)
                if key not in self._seen:
                    plan.seen.add(key)
                    candidates = ratings[book.name].get(unit.event, [])
                    units.append((trajectory, unit, [k for k in candidates if k.unit_hash == unit.hash]))
            plan.jobs += planner.jobs(units)
            plan.copied += planner.copied
            plan.units += planner.units

    def _may_ask(self) -> bool:
        return bool(self._asking and not self._asking.done() and not self._gone and not self.state.stopping)

    async def _store(self) -> None:
        if self.ledger.waits:
            await asyncio.to_thread(self.sink.flush)

    def _forget(self) -> None:
        """Look everything up anew."""
        self._seen, self._known = set(), {}

    def _left(self) -> int:
        self._forget()
        ids = list(self._changed)
        parts = (ids[start : start + LOOK] for start in range(0, len(ids), LOOK))
        return sum(self._plan(part, float("inf")).units for part in parts)

    def _command(self) -> str:
        books = " ".join(f"--codebook {book.name}" for book in self.scope.books)
        rater = "" if self.model.rater == self.model.name else f" --rater {self.model.rater}"
        return f"`coaudit judge {books} --model {self.model.name}{rater}`"
