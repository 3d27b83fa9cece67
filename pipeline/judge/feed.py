"""A run of a language model judge, from the store's units to the ledger's ratings.

Everything happens in one event loop. What was answered is written at once (a kill loses only what is in
flight) and counted once it is on disk, which happens in batches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

from ...judges.clients import Client
from ...judges.clients.protocol import Fatal, Startable
from ...judges.llm import Asker
from ...judges.llm.context import Context
from ...schemas import Rating, canonical_json
from ..errors import StoreError
from ..store import Store
from ..store.ledgers.ledger import RatingLedger
from .background import Backgrounds
from .model import Jobs, Model, State, askers, interruptible, work
from .open_work import OpenWork, note_answered, open_work
from .questions import Planner
from .run_claims import OtherRuns, RunClaims
from .scope import Batch, Scope


async def run(store: Store, scope: Scope, model: Model, complete: Client, state: State) -> None:
    """Judge everything in scope; what was answered is on disk when this returns or raises."""
    context = Context(model.context)
    askers_by_book = askers(scope, model, complete, state, context)
    jobs: Jobs = asyncio.Queue(maxsize=model.waiting)
    with store.workspace.new_ratings() as ledger, closing(store.claims()) as claims:
        run_claims = RunClaims(claims, OtherRuns(store, ledger), lambda: state.stopping is not None)
        sink = Sink(ledger, state, run_claims)
        pending: dict[str, OpenWork] = {}
        flushing = asyncio.create_task(sink.keep_flushing())
        try:
            with interruptible(state):
                async with asyncio.TaskGroup() as group:
                    start = Start(complete, context)
                    group.create_task(_feed(store, scope, model, askers_by_book, jobs, sink, start, pending))
                    for _ in range(model.workers):
                        group.create_task(work(jobs, askers_by_book, state, sink.put))
        finally:
            flushing.cancel()
            await asyncio.wait([flushing])
            sink.flush()
            state.finish()
    if not state.stopping and scope.limit is None and scope.sample is None:
        for name, about in pending.items():
            ids = {trajectory for book, trajectory in run_claims.done if book == name}
            await asyncio.to_thread(note_answered, store, about, ids)


@dataclass
class Start:
    """Starts an engine once there is something to ask, and takes over its model's context."""

    complete: Client
    context: Context
    done: bool = False

    async def __call__(self, state: State) -> bool:
        """Start where that is not done; whether the model can be asked. What went wrong is in the state."""
        if self.done or not isinstance(self.complete, Startable):
            return True
        offering = asyncio.create_task(self.complete.start(state.expected))
        while not offering.done() and not state.stopping:
            await asyncio.wait({offering}, timeout=0.2)
        if not offering.done():
            offering.cancel()
            return False
        try:
            offer = offering.result()
            self.context.limit = self.context.limit or offer.context
            state.limiter.open(offer.in_flight)
        except Fatal as error:
            state.fail(error)
        except OSError as error:
            state.fail(Fatal(f"the engine cannot be started: {error}"))
        self.done = True
        return state.stopping is None


class Sink:
    """Takes ratings: written at the end of the loop's turn, on disk and counted a little later."""

    def __init__(self, ledger: RatingLedger, state: State, run_claims: RunClaims) -> None:
        self.ledger = ledger
        self.state = state
        self.claims = run_claims
        self._fresh: list[list[Rating]] = []
        """Ratings, by unit, that are not written to the file yet."""
        self._written: list[list[Rating]] = []
        self._scheduled = False

    def put(self, units: Sequence[list[Rating]]) -> None:
        """The ratings of some units."""
        for ratings in units:
            self._fresh.append(ratings)
            self.state.count()
            self.state.failed += any(rating.error is not None for rating in ratings)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._write)

    def flush(self) -> None:
        """Have everything on disk, and count it."""
        plan = self.claims.plan()
        units = self._take()
        self.ledger.flush()
        self._count(units, plan)

    async def keep_flushing(self) -> None:
        """Bring to disk now and then, in a thread; the loop goes on meanwhile."""
        while True:
            await asyncio.sleep(self.ledger.pause)
            plan = self.claims.plan()
            if (units := self._take()) or plan:
                try:
                    await asyncio.to_thread(self.ledger.flush)
                except Exception as error:
                    self._stop(error)
                    self._written = [*units, *self._written]
                except asyncio.CancelledError:
                    self._written = [*units, *self._written]  # the last flush counts them
                    raise
                else:
                    self._count(units, plan)

    def copy(self, ratings: list[Rating]) -> None:
        """Ratings that no request was needed for, counted already."""
        with suppress(StoreError):  # the run has been ended for it
            self._write_lines([ratings])

    def _write(self) -> None:
        self._scheduled = False
        if self._fresh:
            fresh, self._fresh = self._fresh, []
            try:
                if not self._write_lines(fresh):  # one that cannot be encoded must not lose its neighbours
                    fresh = [ratings for ratings in fresh if self._write_lines([ratings])]
            except StoreError:
                self._fresh = fresh  # the disk may take them at the end
            else:
                self._written += fresh

    def _write_lines(self, units: Iterable[list[Rating]]) -> bool:
        """Write units' ratings to the ledger's file; False where they could not be written.

        Then the run ends. StoreError where the disk refuses them.
        """
        try:
            self.ledger.write(rating for ratings in units for rating in ratings)
        except Exception as error:  # nobody awaits a callback: its error would be lost
            self._stop(error)
            if isinstance(error, StoreError):
                raise
            return False
        return True

    def _stop(self, error: Exception) -> None:
        """Ask no more: answers that nobody can keep are paid for nothing."""
        message = str(error) if isinstance(error, StoreError) else f"the ledger cannot be written: {error!r}"
        self.state.fail(Fatal(message))

    def _take(self) -> list[list[Rating]]:
        self._write()
        units, self._written = self._written, []
        return units

    def _count(self, units: list[list[Rating]], plan: frozenset[tuple[str, str]]) -> None:
        for ratings in units:
            self.state.summary.count(ratings)
            self.claims.count_answer(ratings[0].codebook, ratings[0].trajectory)
        self.claims.give_back(plan)


async def _feed(
    store: Store,
    scope: Scope,
    model: Model,
    askers: dict[str, Asker],
    jobs: Jobs,
    sink: Sink,
    start: Start,
    pending: dict[str, OpenWork],
) -> None:
    secret = store.workspace.secret()
    rest, backgrounds = scope, Backgrounds(store)
    for book in scope.books:
        judge = askers[book.name].judge
        planner = Planner(judge, model.maker(judge), rest, secret, sink.state.summary, backgrounds.of)
        about = await asyncio.to_thread(open_work, store, planner.maker, rest, secret)
        sink.state.summary.already += about.n_settled
        pending[book.name] = about
        asking = canonical_json(planner.maker.extra_fields["parameters"])
        source = sink.claims.batches(store, book, asking, about.sizes)
        while not sink.state.stopping and not planner.is_full:
            batch: Batch | None = await asyncio.to_thread(next, source, None)
            if batch is None:
                break
            for job in planner.jobs(batch.units(rest)):
                if sink.state.stopping or not await start(sink.state):
                    break
                sink.claims.expect(book.name, job.units[0].trajectory_id, len(job.units))
                await jobs.put(job)
            sink.copy(planner.copies)
            planner.copies = []
            sink.claims.mark_planned(batch)
        rest = rest.less(planner.units)
    for _ in range(model.workers):
        await jobs.put(None)
