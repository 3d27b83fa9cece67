"""Follow: sources on one side, the store on the other, and watchers: judges, alerts, the serving.

Everything runs in one event loop; what may take long (reading folders, the database, judges) in threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...schemas import Quarantined, Trajectory
from ...schemas.text import count_of, one_line
from ...schemas.url import shown_url
from ..errors import CoauditError, SourceError, StoreError, UsageError, WriteError
from ..ingest.archives import archives_below, is_archive
from ..ingest.discover import Tree, discover, unrecognised_reason
from ..ingest.left_out import left_out_notes
from ..ingest.sources import Place
from ..store import Store
from ..store.disk import AppendOnly
from ..systems import ReadOptions, merge
from ..systems.cogym.messages import RawMessage
from ..systems.cogym.recording import BusyError
from ..systems.formats import native
from ..systems.registry import system_of
from . import stdin
from .listener import Listener
from .pump import Pump
from .redis import PATIENCE, Channel, ConnectionLoss, Subscription
from .scrape import Scraper
from .sink import Sink
from .tail import Tail

Say = Callable[[str], None]
Watcher = Callable[[Sequence[Trajectory]], Awaitable[None]]
"""Called with the trajectories that were just stored, and now and then with none."""
Work = Callable[[], Coroutine[Any, Any, None]]
SWITCH = 0.0005
"""Seconds after which a thread that computes yields to the one that receives."""
ANSWER = 2.0
"""Seconds that running sessions have to tell what came while nobody followed."""
HANDOVER = 60.0
"""Seconds that a stop waits until what was published before it is taken in."""


@dataclass(frozen=True)
class Plan:
    """What to follow and how."""

    targets: tuple[str, ...]
    options: ReadOptions = field(default_factory=ReadOptions)
    system: str = "auto"
    results: Path | None = None
    stop_when_idle: float | None = None
    silence: float = 600.0
    patience: float = PATIENCE
    metrics: tuple[str, ...] = ()
    every: float = 5.0
    """Seconds between two scrapes."""

    @property
    def servers(self) -> list[str]:
        return [t for t in self.targets if t.startswith(("redis://", "rediss://"))]

    def check(self) -> None:
        """UsageError for what cannot be followed or told apart, SourceError for a folder that is missing."""
        names = Counter(map(shown_url, self.metrics))
        if double := next((name for name, n in names.items() if n > 1), None):
            raise UsageError(
                f"--metrics {double}: given twice, or for two servers that only a query tells apart, which "
                "is not kept since it may be secret"
            )
        for folder in self.folders:
            if not folder.exists():
                raise SourceError(f"{folder}: no such file or folder")
        if self.system != "auto":
            system_of(self.system)

    @property
    def folders(self) -> list[Path]:
        rest = [t for t in self.targets if t != stdin.STDIN and t not in self.servers]
        if wrong := next((t for t in rest if "://" in t), None):
            raise UsageError(
                f"cannot follow {wrong.partition('://')[0]}://…, expected redis://…, a folder or -"
            )
        return [Path(t).absolute() for t in rest]


class Follower:
    """One `coaudit follow`, from start to stop."""

    def __init__(
        self,
        plan: Plan,
        store: Store,
        say: Say,
    ) -> None:
        self.plan = plan
        self.say = say
        self.watchers: list[Watcher] = []
        self.beside: list[Work] = []
        """Tasks that run until the end, when they are cancelled."""
        self.endings: list[Work] = []
        """Run at the end, once all is stored; what they add is stored after them."""
        self.sink = Sink(store)
        self.listeners: list[Listener] = []
        self.pumps: list[Pump] = []
        self.stopping = asyncio.Event()
        self.stored_ids: set[str] = set()
        self.unsettled_ids: set[str] = set()
        """Sessions of which nothing was seen since nobody listened."""
        self.is_up_to_date = False
        """Whether all is stored that the folders held, and servers answered with, when following began."""
        self._asked_at = math.inf if plan.servers else -math.inf
        """When the running sessions of the last server were asked for their state."""
        self._has_looked = False
        """Whether all folders were looked at."""
        self._stdin_files: list[Path] = []
        self._reported_notes: set[str] = set()
        """Notes on files that are no logs, which were reported."""
        self._read_trajectories: list[tuple[Path, Trajectory]] = []
        self.tail = Tail(
            self.sink, plan.options, plan.system, lambda *item: self._read_trajectories.append(item)
        )
        self.tail.roots.extend(plan.folders)

    async def run(self) -> None:
        """Follow until told to stop, or until nothing has come for as long as the plan says."""
        sys.setswitchinterval(SWITCH)
        await asyncio.to_thread(self.sink.open)
        recording = await self._announce_stdin() if stdin.STDIN in self.plan.targets else None
        sources = [self._channel(url) for url in self.plan.servers]
        sources += [Scraper(url, self.sink, self.say, self.plan.every).run() for url in self.plan.metrics]
        if recording is not None:
            sources.append(self._stdin(recording))
        try:
            with _signals(self.stopping):
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(source) for source in sources]
                    beside = [group.create_task(self._run_watcher(work())) for work in self.beside]
                    work = [group.create_task(w) for w in (self._folders(), self._write(), self._clock())]
                    await self.stopping.wait()
                    await self._take_in_rest()
                    await _cancel(tasks)
                    await asyncio.gather(*work)
                    await self._finish()
                    await _cancel(beside)
        except ExceptionGroup as errors:
            # What is raised within `except*` comes out in a group of its own before Python 3.11.4.
            ours, others = errors.split(CoauditError)
            if ours is None or others is not None:
                raise
            raise _first(ours) from None
        finally:
            for listener in self.listeners:
                with contextlib.suppress(StoreError):
                    listener.close()

    @property
    def places(self) -> list[Path]:
        """At or below which the logs and recordings lie that are followed, but for standard input's."""
        return [*self.plan.folders, *(_recording_of(self.sink.store, url) for url in self.plan.servers)]

    async def watch(self, trajectories: Sequence[Trajectory]) -> None:
        """Show trajectories to all watchers."""
        for watcher in tuple(self.watchers):
            if not await self._run_watcher(watcher(trajectories)):
                self.watchers.remove(watcher)

    def is_watched_by(self, watcher: Watcher) -> bool:
        """Whether a watcher has not failed yet."""
        return watcher in self.watchers

    def summary(self) -> dict[str, int]:
        """What was followed."""
        return {
            "messages": sum(listener.messages for listener in self.listeners),
            "recovered": sum(listener.recovered for listener in self.listeners),
            "missed": sum(listener.missed for listener in self.listeners),
            "unsettled": len(self.unsettled_ids),
            "left": sum(listener.left_count for listener in self.listeners),
            "trajectories": len(self.stored_ids),
            "quarantined": self.sink.quarantined,
        }

    async def _finish(self) -> None:
        """Look and store once more when all sources have stopped."""
        await self._look()
        self.tail.settle()
        self._join_folders()
        self._report_unknown()
        await self._report_left_out()
        await self._flush()
        for ending in self.endings:
            await self._run_watcher(ending())
        await self._flush()
        await asyncio.to_thread(self.sink.flush)  # what watchers noted of the last look
        await asyncio.to_thread(self.sink.derive, now=True)
        await asyncio.to_thread(self.sink.compare, last=True)
        self._report_notes()
        await asyncio.to_thread(self.sink.share_logs)
        self._report_unsettled()

    def _report_unsettled(self) -> None:
        """Report sessions that may have ended unheard, and what completes them."""
        if self.unsettled_ids:
            sessions = count_of(len(self.unsettled_ids), "session has", "sessions have")
            self.say(
                f"{sessions} shown nothing since nobody listened for a while, and may have ended then; "
                "`coaudit ingest` of their folders adds what was missed"
            )

    async def _channel(self, url: str) -> None:
        channel = Pump(url, self.say, patience=self.plan.patience)
        listener = Listener(
            _recording_of(self.sink.store, url),
            channel.name,
            self.sink,
            self.plan.options,
            self.plan.silence,
            self.say,
            self.plan.results,
        )
        await self._open_listener(listener)
        self.pumps.append(channel)
        try:
            async for message in channel.messages():
                for session, member in self._take_in(listener, message):
                    await channel.ask(session, member)
        finally:
            if self.stopping.is_set() and not channel.ended.is_set():
                listener.mark_gap(time.monotonic() - listener.last)
                self.say(f"{listener.name}: stopped before everything that had arrived was processed")

    def _take_in(
        self, listener: Listener, message: RawMessage | Subscription | ConnectionLoss
    ) -> list[tuple[str, str]]:
        """Take in a message; returns (session, member) of those to be asked."""
        if isinstance(message, Subscription):
            return self._take_subscription(listener, message)
        if isinstance(message, ConnectionLoss):
            listener.mark_gap(message.away)
            return []
        listener.take(message)
        sessions = listener.sessions_to_ask()
        for session, _ in sessions:
            self.say(f"{session}: joined late; asking for its state")
        return sessions

    async def _take_in_rest(self) -> None:
        """Wait until all that was published before the stop is taken in, or only recorded where that takes
        too long."""
        for pump in self.pumps:
            pump.stop()
        for only_record in (False, True):
            for listener in self.listeners:
                listener.only_record = only_record
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HANDOVER):
                    for pump in self.pumps:
                        await pump.ended.wait()
        for listener in (one for one in self.listeners if one.left_count):
            messages = count_of(listener.left_count, "message is", "messages are")
            self.say(f"{listener.name}: {messages} recorded but not processed; follow again, or rebuild")

    def _take_subscription(self, listener: Listener, message: Subscription) -> list[tuple[str, str]]:
        listener.last, listener.subscribed = time.monotonic(), True
        self._asked_at = listener.last
        listener.note_running(message.running)
        if message.away is None:
            self.say(f"following {listener.name}")
            return listener.sessions_to_ask(everyone=True)
        self.say(f"{listener.name}: back after {message.away:.1f} s; asking for what was missed")
        return listener.mark_gap(message.away)

    async def _open_listener(self, listener: Listener) -> None:
        """Start to record, once no other process records this stream."""
        is_reported = False
        while True:
            try:
                listener.open()
            except BusyError as busy:
                if not is_reported:
                    self.say(f"{busy}; waiting to take over")
                    is_reported = True
                await asyncio.sleep(0.5)
            else:
                self.listeners.append(listener)
                return

    async def _announce_stdin(self) -> AppendOnly:
        """A file for standard input, which the ledger knows of before anything is in it: should this process
        be killed, a rebuild reads what it has recorded."""
        path = stdin.place(self.sink.store.workspace).absolute()
        file = stdin.open_file(path)
        self._stdin_files.append(path)
        self.tail.announce(path, native.SYSTEM if self.plan.system == "auto" else self.plan.system)
        await self._flush()
        return file

    async def _stdin(self, file: AppendOnly) -> None:
        await stdin.record(file)
        if self.plan.targets == (stdin.STDIN,):
            self.stopping.set()

    def _report_unknown(self) -> None:
        """Report standard input that is no log: it is recorded, and nothing else tells of it."""
        for path in self._stdin_files:
            if path not in self.tail.watched_sources and path.stat().st_size:
                item = Quarantined(
                    source=str(path), reason=unrecognised_reason(path, self.plan.system, str(path))
                )
                self.say(str(item))
                self.sink.quarantine(str(path), [item], anew=True)

    async def _report_left_out(self) -> None:
        """Report which files of the folders are no logs, each once."""
        for folder in self.plan.folders:
            for note in await asyncio.to_thread(_left_out_notes, folder, self.plan.system):
                if note not in self._reported_notes:
                    self._reported_notes.add(note)
                    self.say(note)

    async def _folders(self) -> None:
        for folder in self.plan.folders:
            self.say(f"following {folder}")
            if archives := [path for path in (folder, *archives_below(folder)) if is_archive(path)]:
                some = "one archive is" if len(archives) == 1 else f"{len(archives)} archives are"
                self.say(
                    f"{some} not followed, the first {archives[0]}; `coaudit ingest` reads what is in it"
                )
        await self._look()  # before files that are no logs are reported, which takes seconds for thousands
        self._has_looked = True
        await self._report_left_out()
        while not self.stopping.is_set():
            pause = await self._look()
            for listener in self.listeners:
                listener.give_up()
            await self._pause(pause)

    async def _look(self) -> float:
        """Read all that has grown; returns the seconds until the next look is due."""
        folders = [path for listener in self.listeners for path in listener.awaited_folders]
        self.tail.roots[:] = [*self.plan.folders, *self._stdin_files, *folders]
        pause = await asyncio.to_thread(self.tail.look)
        self._join_folders()
        return pause

    def _join_folders(self) -> None:
        while self._read_trajectories:
            path, trajectory = self._read_trajectories.pop(0)
            for listener in self.listeners:
                listener.join_folder(path, trajectory)

    async def _write(self) -> None:
        """Store what has changed, at the sink's pace."""
        while not self.stopping.is_set():
            if self.sink.due():
                await self.watch(())
            else:
                await self._flush()
                await asyncio.to_thread(self.sink.derive)
                await asyncio.to_thread(self.sink.compare)
            await self._pause(min(0.1, self.sink.due()) or 0.1)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds)

    async def _flush(self) -> None:
        for listener in self.listeners:
            listener.hand_over()
            listener.sync()
        is_answered = self._is_connected and time.monotonic() - self._asked_at >= ANSWER
        has_all = self._has_looked and is_answered
        trajectories = await asyncio.to_thread(self.sink.flush)
        self.is_up_to_date |= has_all
        self._report_notes()
        self.stored_ids.update(trajectory.id for trajectory in trajectories)
        self.stored_ids -= self.sink.gone_ids
        self.unsettled_ids -= self.sink.gone_ids | {trajectory.id for trajectory in trajectories}
        self.unsettled_ids |= {one.id for one in trajectories if merge.is_unsettled(one)}
        for listener in self.listeners:
            listener.forget_stored()
        await self.watch(trajectories)

    @property
    def _is_connected(self) -> bool:
        """Whether all servers are subscribed to: who still waits for one, or for its turn to record, is not
        idle, and does not know who has been answered."""
        return len(self.plan.servers) == sum(listener.subscribed for listener in self.listeners)

    def _report_notes(self) -> None:
        while self.sink.notes:
            self.say(one_line(self.sink.notes.pop(0)))

    async def _run_watcher(self, looking: Awaitable[None]) -> bool:
        """Run a watcher; whether it succeeded. Its error is reported, and ends neither other watchers nor
        storing.

        A full disk ends the following all the same: storing would fail on it next.
        """
        try:
            await looking
        except Exception as error:  # a watcher may fail in any way
            cause = _innermost(error)
            if isinstance(cause, WriteError):
                raise
            self.say(f"judging or alerting stopped: {cause!r}; events are stored all the same")
            return False
        return True

    async def _clock(self) -> None:
        start = time.monotonic()
        while not self.stopping.is_set():
            for listener in self.listeners:
                listener.flush()
                listener.close_silent()
            last = max([start, self.tail.last_change, *(listener.last for listener in self.listeners)])
            limit = self.plan.stop_when_idle
            if self._is_connected and limit is not None and time.monotonic() - last > limit:
                self.stopping.set()
            await self._pause(0.2)


def _recording_of(store: Store, url: str) -> Path:
    """Where what comes from a server is recorded."""
    name = re.sub(r"[^\w.]+", "-", Channel(url, print).name.partition("://")[2])
    return store.workspace.raw / "live" / name


def _left_out_notes(folder: Path, system: str) -> list[str]:
    """Notes on the files of a folder that are no logs."""
    if system != "auto":
        return []
    others: list[Path] = []
    places = [Place(path, str(path), name) for path, name in discover(folder, unknown=others.append)]
    files = [path for path in others if path.is_file()]
    return [f"{folder}: {note}" for note in left_out_notes(Tree(folder, str(folder)), files, places)]


async def _cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


@contextlib.contextmanager
def _signals(stopping: asyncio.Event) -> Iterator[None]:
    """An interrupt or a termination stops cleanly."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _first(errors: BaseExceptionGroup[CoauditError]) -> CoauditError:
    result = _innermost(errors)
    assert isinstance(result, CoauditError)
    return result


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
