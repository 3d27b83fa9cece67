"""What a team wants to know at once: an agent in a dead loop, a person left unanswered, a call to halt."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...judges.rules.lexical import text_array
from ...schemas import Event, Trajectory
from ...schemas.text import count_of, visible_json
from ...schemas.url import patterns, shown_url, without, without_secrets
from ..errors import UsageError
from ..store.ledgers import ledger
from ..systems import merge

if TYPE_CHECKING:
    import pyarrow as pa

LOOP = 3
"""This many times the same action of the same agent in a row is a dead loop."""
BACKLOG = 1000
"""Alerts that wait for a slow webhook; older ones are dropped, and that is said."""
Alert = dict[str, Any]
Emit = Callable[[Alert], None]


@dataclass(frozen=True)
class Mark:
    """How far a trajectory was looked at for alerts, and who waits in it."""

    seq: int
    waiting: int | None = None
    """seq of the human message that no agent has answered yet."""
    since: float = field(default=0.0, compare=False)
    """When that came, in seconds since 1970."""


@dataclass
class _State:
    """How far a trajectory was looked at, and what of it is open."""

    native_id: str
    seq: int = -1
    last: Event | None = None
    """The event of that seq."""
    loops: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Agent -> its last action, and how often in a row."""
    waiting: tuple[Event, float] | None = None
    """The human message that no agent has answered yet, and when it came (monotonic); infinity where an alert
    has told of it."""
    waiting_before: tuple[Event, float] | None = None
    """The same before its events were numbered anew."""
    unconfirmed_seqs: set[int] = field(default_factory=set)
    """seq of human messages that were heard live and whose arrival was not heard yet."""
    alert_counts: Counter[int] = field(default_factory=Counter)
    """How often an alert was raised about what an event holds, or held back since that was there before."""
    occurrences: Counter[int] = field(default_factory=Counter)
    """The same, since its events were last numbered anew."""

    def is_new(self, event: Event) -> bool:
        """Whether an event was not looked at yet, or has only now got its status."""
        return event.seq > self.seq or (event.seq in self.unconfirmed_seqs and event.status is not None)

    def is_renumbered(self, trajectory: Trajectory) -> bool:
        """Whether the last event that was looked at has another number now, as where a span comes late that
        began earlier, or other content."""
        there = self._event_there(trajectory)
        return self.last is not None and (there is None or _content(there) != _content(self.last))

    def goes_on_in(self, trajectory: Trajectory) -> bool:
        """Whether a trajectory has the last event that was looked at in its place, maybe with more text, as
        where an answer is written bit by bit."""
        if not self.is_renumbered(trajectory):
            return True
        there, last = self._event_there(trajectory), self.last
        if not there or not last or not last.text:
            return False
        is_alike = (there.actor, there.kind) == (last.actor, last.kind)
        return is_alike and (there.text or "").startswith(last.text)

    def _event_there(self, trajectory: Trajectory) -> Event | None:
        events = (event for event in reversed(trajectory.events) if not event.live_only)
        return next((event for event in events if event.seq <= self.seq), None)

    def restart(self) -> None:
        """Have all events looked at again, without what was raised before."""
        self.seq, self.last = -1, None
        self.waiting_before, self.waiting = self.waiting, None
        self.loops.clear()
        self.unconfirmed_seqs.clear()
        self.occurrences.clear()

    def keep_waiting(self) -> None:
        """Have a person who waits still do so since their message came."""
        before, self.waiting_before = self.waiting_before, None
        if before and self.waiting and _content(before[0]) == _content(self.waiting[0]):
            self.waiting = self.waiting[0], before[1]

    def is_repeated(self, alert: str, event: Event) -> bool:
        """Count an alert, and say whether it was raised when the events had other numbers."""
        key = hash((alert, _content(event)))
        self.occurrences[key] += 1
        if self.occurrences[key] <= self.alert_counts[key]:
            return True
        self.alert_counts[key] += 1
        return False


@dataclass
class Alerts:
    """Raises alerts for what was stored; of a trajectory that was there before, for what came after that."""

    emit: Emit
    unanswered: float
    halts: Callable[[pa.StringArray], list[bool]]
    """Which texts are meant to halt an agent."""
    initial: Mapping[str, int] = field(default_factory=dict)
    """Trajectory -> seq of the last event that was there before."""
    marks: Mapping[str, Mark] = field(default_factory=dict)
    """Trajectory -> who waited in it when the follower before this one ended."""
    ids_of: Callable[[str], Collection[str]] = lambda source: ()
    """The trajectories that a source gives now."""
    is_up_to_date: Callable[[], bool] = lambda: True
    """Whether all was looked at that had come before: only then is it known who of the marks still waits."""
    count: int = 0
    """How many alerts there were."""
    changed_ids: set[str] = field(default_factory=set)
    """Trajectories that were looked at or told of, for `Marks` to take: all others are as they were."""
    _due: float = -math.inf
    """When somebody will have gone unanswered for too long (monotonic)."""
    _states: dict[str, _State] = field(default_factory=dict)
    _ids: dict[tuple[str, str], str] = field(default_factory=dict)
    """Source and native id -> the trajectory that was looked at last."""

    async def __call__(self, trajectories: Sequence[Trajectory]) -> None:
        """Look at trajectories as they are now, and at messages that have gone unanswered for too long."""
        ids = {trajectory.id for trajectory in trajectories}
        for trajectory in trajectories:
            self._prepare(trajectory, ids)
        halting = self._halting_texts(trajectories)
        for trajectory in trajectories:
            self._look(trajectory, halting)
        if trajectories or time.monotonic() >= self._due:
            self._alert_unanswered()

    def recall(self, trajectories: Sequence[Trajectory]) -> None:
        """Look at trajectories as they were at the start, in whose place others are now: what goes on with
        them goes on from there."""
        old = [one for one in trajectories if one.id in self.initial and one.id not in self._states]
        for trajectory in old:
            self._prepare(trajectory, ())
        halting = self._halting_texts(old)
        for trajectory in old:
            self._look(trajectory, halting)
        self._due = -math.inf

    def former_id(self, trajectory: Trajectory, ids: Collection[str]) -> str | None:
        """The id under which a trajectory was looked at before, where it is another one: a chat that names no
        id gets one anew as it grows. `ids` are those that are elsewhere."""
        former = self._ids.get((trajectory.source, trajectory.native_id), "")
        if trajectory.id in self._states or former not in self._states:
            return None
        is_there = former in ids or former in self.ids_of(trajectory.source)
        return None if is_there or not self._states[former].goes_on_in(trajectory) else former

    def mark(self, trajectory: str) -> Mark:
        """How far a trajectory was looked at."""
        state = self._states.get(trajectory)
        return _mark_of(state) if state else Mark(self.initial.get(trajectory, -1))

    def waiting_marks(self, ids: Iterable[str]) -> dict[str, Mark]:
        """The marks of those trajectories in which somebody waits."""
        marks = {key: _mark_of(state) for key in ids if (state := self._states.get(key))}
        return {key: mark for key, mark in marks.items() if mark.waiting is not None}

    def _prepare(self, trajectory: Trajectory, ids: Collection[str]) -> None:
        """Make its state. One that goes on with another goes on from there: a chat that names no id gets
        another one as it grows. What nothing goes on with is no more, unless it is among `ids`, elsewhere, or
        its source gives it still, as where two sessions have one native id."""
        place = trajectory.source, trajectory.native_id
        if trajectory.id not in self._states:
            previous = self._ids.get(place, "")
            is_there = previous in ids or (previous and previous in self.ids_of(trajectory.source))
            before = None if is_there else self._states.pop(previous, None)
            goes_on = before is not None and before.goes_on_in(trajectory)
            self._states[trajectory.id] = before if before and goes_on else _State(trajectory.native_id)
            self.changed_ids |= {previous} if previous else set()
        if self._states[trajectory.id].is_renumbered(trajectory):
            self._states[trajectory.id].restart()
        self._states[trajectory.id].native_id = trajectory.native_id
        self._ids[place] = trajectory.id

    def _halting_texts(self, trajectories: Sequence[Trajectory]) -> set[str]:
        """The new messages of humans that are meant to halt an agent: all are classified together."""
        texts = {
            event.text or ""
            for trajectory in trajectories
            for kinds in [{p.name: p.kind for p in trajectory.participants}]
            for event in trajectory.events
            if self._states[trajectory.id].is_new(event)
            and event.kind == "message"
            and not _is_on_its_way(event, trajectory)
            and kinds.get(event.actor) == "human"
        }
        messages = sorted(texts)
        answers = self.halts(text_array(messages)) if messages else []
        return {text for text, halts in zip(messages, answers, strict=True) if halts}

    def _look(self, trajectory: Trajectory, halting: Collection[str]) -> None:
        self.changed_ids.add(trajectory.id)
        state = self._states[trajectory.id]
        initial, mark = self.initial.get(trajectory.id, -1), self.marks.get(trajectory.id)
        kinds = {p.name: p.kind for p in trajectory.participants}
        for event in trajectory.events:
            if event.live_only or not state.is_new(event) or event.kind == "start":
                continue
            is_old = event.seq <= initial and event.seq not in state.unconfirmed_seqs
            is_on_its_way = _is_on_its_way(event, trajectory)
            alerts = _alerts_of(event, kinds.get(event.actor), state, halting, is_on_its_way)
            for alert in alerts:
                if not state.is_repeated(alert["alert"], event) and not is_old:
                    self._raise(trajectory.id, state, event, **alert)
            if is_old:
                _forget_waiting(state, event, mark)
            if event.seq > state.seq:
                state.seq, state.last = event.seq, event
        state.keep_waiting()
        reasons = (o.text for o in trajectory.outcomes if o.name == "end_reason")
        if any(reason not in (None, "unfinished") for reason in reasons):
            state.waiting = None

    def _alert_unanswered(self) -> None:
        early = () if self.is_up_to_date() else self.marks
        for key, state in self._states.items():
            if key not in early:
                self._alert_if_unanswered(key, state)
        moments = (state.waiting[1] for state in self._states.values() if state.waiting)
        self._due = min(moments, default=math.inf) + self.unanswered

    def _alert_if_unanswered(self, key: str, state: _State) -> None:
        if state.waiting is None or time.monotonic() - state.waiting[1] < self.unanswered:
            return
        self.changed_ids.add(key)
        event, since = state.waiting
        state.waiting = event, math.inf
        seconds = round(time.monotonic() - since, 1)
        self._raise(key, state, event, alert="unanswered", seconds=seconds, text=event.text)

    def _raise(self, key: str, state: _State, event: Event, **what: Any) -> None:
        alert = {"time": ledger.now(), "trajectory": key, "native_id": state.native_id}
        about = {"event": event.seq, "actor": event.actor}
        self.count += 1
        self.emit({k: v for k, v in (what | alert | about).items() if v is not None})


def _mark_of(state: _State) -> Mark:
    if state.waiting is None or state.waiting[1] == math.inf:
        return Mark(state.seq)
    event, moment = state.waiting
    return Mark(state.seq, event.seq, time.time() - (time.monotonic() - moment))


def _forget_waiting(state: _State, event: Event, mark: Mark | None) -> None:
    """Forget who waits at an event that was there before, unless it is whom the mark tells of."""
    if mark is None or mark.waiting is None or event.seq < mark.waiting:
        state.waiting = None
    elif event.seq == mark.waiting and state.waiting:
        state.waiting = event, time.monotonic() - max(0.0, time.time() - mark.since)


def _content(event: Event) -> tuple[str, str, str | None, str | None]:
    """What makes an event the same under another number. Its time does not: a log may tell it otherwise than
    live traffic did."""
    action = event.action.model_dump_json() if event.action else None
    return event.actor, event.kind, event.text, action


def _is_on_its_way(event: Event, trajectory: Trajectory) -> bool:
    """Whether a message that was heard live may still turn out not to have arrived. A log without statuses
    holds what was said."""
    return event.status is None and merge.is_heard(trajectory)


def _alerts_of(
    event: Event, kind: str | None, state: _State, halting: Collection[str], is_on_its_way: bool
) -> list[dict[str, Any]]:
    """The alerts that one new event raises; updates what is open of its trajectory."""
    items: list[dict[str, Any]] = []
    if kind == "human" and event.kind == "message":
        if event.seq > state.seq and (state.waiting is None or state.waiting[1] == math.inf):
            state.waiting = event, time.monotonic()
        (state.unconfirmed_seqs.add if is_on_its_way else state.unconfirmed_seqs.discard)(event.seq)
        if not is_on_its_way and (event.text or "") in halting:
            items.append({"alert": "halting_message", "text": event.text})
    elif kind == "agent":
        if event.kind != "wait":  # which is to do nothing, and answers nobody
            state.waiting = None
        times = _repetitions(event, state)
        if times == LOOP:
            name = event.action.name if event.action else event.kind
            items.append({"alert": "dead_loop", "action": name, "times": times})
    return items


def _repetitions(event: Event, state: _State) -> int:
    """How often an agent has done the very same thing in a row; its messages in between don't break it. To
    wait is to do nothing, and does break it."""
    if event.kind == "wait":
        state.loops.pop(event.actor, None)
        return 0
    if event.action is None:
        return 0
    action = event.action.model_dump_json()
    last, times = state.loops.get(event.actor, ("", 0))
    times = times + 1 if action == last else 1
    state.loops[event.actor] = (action, times)
    return times


class Webhook:
    """POSTs alerts one after the other, in a task of its own: the follower never waits for it."""

    def __init__(self, url: str, say: Callable[[str], None], timeout: float = 5.0) -> None:
        self.url = url
        self.name = _server_of(url)
        """Its server, for messages."""
        self.say = say
        self.timeout = timeout
        self._queue: asyncio.Queue[Alert] = asyncio.Queue(BACKLOG)
        self._unsent_counts: Counter[str] = Counter()
        """Trajectory -> how many alerts about it wait or are on their way."""

    def __call__(self, alert: Alert) -> None:
        """Have an alert sent."""
        if self._queue.full():
            self._forget(self._queue.get_nowait())
            self.say(f"{self.name}: too slow, an alert was dropped")
        self._queue.put_nowait(alert)
        self._unsent_counts[_subject(alert)] += 1

    def is_sent(self, trajectory: str) -> bool:
        """Whether no alert about a trajectory waits or is on its way."""
        return not self._unsent_counts[trajectory]

    async def run(self) -> None:
        """Send until cancelled; what stays unsent is counted."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=self.timeout)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            try:
                while True:
                    alert = await self._queue.get()
                    await self._send(session, alert)
                    self._forget(alert)
            finally:
                if number := self._unsent_counts.total():
                    alerts = count_of(number, "alert", "alerts")
                    self.say(f"{self.name}: stopped before {alerts} could be sent")

    async def finish(self) -> None:
        """Wait until all is sent, `timeout` seconds at most."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._queue.join(), self.timeout)

    def _forget(self, alert: Alert) -> None:
        self._queue.task_done()
        self._unsent_counts[_subject(alert)] -= 1

    async def _send(self, session: Any, alert: Alert) -> None:
        import aiohttp

        try:
            async with session.post(self.url, json=alert, allow_redirects=False) as answer:
                if answer.status >= 300:
                    hint = "; redirects are not followed" if answer.status < 400 else ""
                    self.say(f"{self.name}: answered {answer.status} to an alert{hint}")
        except TimeoutError:
            late = f"no answer within {self.timeout:g} s"
            self.say(f"{self.name}: an alert could not be sent: {late}")
        except (aiohttp.ClientError, OSError) as error:
            self.say(f"{self.name}: an alert could not be sent: {_reason(error, self.url)}")


def _subject(alert: Alert) -> str:
    return str(alert.get("trajectory", ""))


def _server_of(url: str) -> str:
    """A webhook's scheme and host, which is what messages may show: for Slack and others its path is the
    secret. UsageError where it has none, or none that can be asked."""
    scheme, mark, rest = shown_url(url).rpartition("://")
    server = scheme + mark + rest.partition("/")[0]
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        (parts.hostname or "").encode("idna")
    except ValueError:  # a port that is no number, a host that no name can be
        is_web = False
    if not is_web:
        form = "an http(s) URL with a host that can be asked, as https://HOST/PATH"
        raise UsageError(f"--webhook must be {form}, got {server!r}")
    return server


def _reason(error: Exception, url: str) -> str:
    """Why an alert could not be sent, without what is secret of the webhook."""
    text = without(without_secrets(str(error), url), patterns({urlsplit(url).path}, 2))
    return text or type(error).__name__


def line(alert: Alert) -> str:
    """An alert as one line of JSON."""
    return visible_json(json.dumps(alert, ensure_ascii=False))
