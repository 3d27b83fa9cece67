"""What becomes of a stream of messages: recorded first, then dealt to sessions, then stored.

After a restart the recording is replayed from the last checkpoint on, so that sessions go on where they
stood; what was said while nobody listened is asked for, and the session is marked as having a gap.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ...schemas import Quarantined, Trajectory, content_hash
from ..ingest.sources import Source
from ..store import ledger
from ..store.disk import AppendOnly
from ..systems import ReadOptions, merge
from ..systems.cogym import recording, records
from ..systems.cogym.messages import Received
from ..systems.cogym.recording import Place, Recorder
from ..systems.cogym.replay import feed, known_ids
from ..systems.cogym.session import LiveSession
from ..systems.cogym.sessions import Sessions, trajectory
from .sink import Sink

FOLDER_PATIENCE = 120.0
"""Seconds that an ended session's folder is waited for and looked at again."""
SYNC = 1.0


@dataclass
class Awaited:
    """A session whose folder will complete it."""

    session: LiveSession
    until: float
    joined: bool = False


@dataclass
class Listener:
    """One stream, its sessions, and the folders that they announce."""

    stream: Path
    name: str
    sink: Sink
    options: ReadOptions
    silence: float
    say: Callable[[str], None]
    results: Path | None = None
    sessions: Sessions = field(default_factory=Sessions)
    messages: int = 0
    recovered: int = 0
    """Messages that came back with a chat."""
    missed: int = 0
    """Events, at least, that did not."""
    unsettled: set[str] = field(default_factory=set)
    """Sessions of which nothing was shown since the last gap: what they miss is not counted."""
    only_record: bool = False
    """What comes is left to whoever reads the recording next: the next follower, or a rebuild."""
    left: int = 0
    """Messages that were."""
    last: float = field(default_factory=time.monotonic)
    """When something other than a tick was last received."""
    subscribed: bool = False
    awaited: dict[Path, Awaited] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    """Sessions whose state was asked for already."""
    _places: dict[str, Place] = field(default_factory=dict)
    _handed: list[LiveSession] = field(default_factory=list)
    """Sessions that the sink has and the store may not have yet."""
    _refused: list[Place] = field(default_factory=list)
    """Of messages that could not be read, which the store may not have yet."""
    _refused_handed: int = 0
    """How many of these were there as the sink last took over."""
    _known: dict[str, str] = field(default_factory=dict)
    _alive: dict[str, float] = field(default_factory=dict)
    _checkpoint: Place | None = None
    _left: Place | None = None
    _synced: float = 0.0
    _recorder: Recorder | None = None

    @property
    def recorder(self) -> Recorder:
        assert self._recorder is not None, "open() comes first"
        return self._recorder

    def open(self) -> None:
        """Start to record; go on with the sessions that were open when the last recording broke off."""
        self.sessions.max_steps = self.options.max_steps
        self._recorder = Recorder(self.stream, AppendOnly)
        self._known = known_ids(self.stream)
        since = recording.last_checkpoint(self.stream)
        for file, line, item in recording.lines(self.stream, since):
            place = Place(recording.number(file), line)
            if isinstance(item, Received):
                result = feed(self.sessions, item, file, line)
                if isinstance(result, Quarantined):
                    self._quarantine(result, place)
            elif isinstance(item, recording.Note):
                self.sessions.noted(item.content)
            self._placed(place)
        self.recorder.note(follows=self.name)
        if self.sessions.open:
            self.say(f"going on with {len(self.sessions.open)} sessions of the recording before")
        self.sessions.noted({"follows": self.name})
        for session in list(self.sessions.changed.values()):
            if session.ended == "end":
                self._await(session)
        for name in self.sessions.open:
            self._alive[name] = time.monotonic()
        self.sink.note(self._source())

    def take(self, message: Received) -> None:
        """Record a message, then make of it what there is to make."""
        place = self.recorder.write(message)
        self.messages += 1
        if self.only_record:
            self._left = self._left or place
            self.left += 1
            return
        before = len(self.sessions.open)
        earlier = self.sessions.open.get(message.channel.partition("/")[0])
        losses = (earlier.recovered, earlier.missed) if earlier else (0, 0)
        session = feed(self.sessions, message, self.recorder.path, place.line)
        if isinstance(session, Quarantined):
            self._quarantine(session, place)
            return
        self._count(earlier, losses)
        self._placed(place)
        if not message.channel.endswith("/tick"):
            self.last = time.monotonic()
        if session is None and len(self.sessions.open) == before:
            return
        self._alive[message.channel.partition("/")[0]] = time.monotonic()
        self.sink.heard(datetime.fromtimestamp(message.time, UTC).isoformat(timespec="milliseconds"))
        if session is not None and session.ended == "end":
            self._alive.pop(session.name, None)
            self._await(session)

    def _count(self, session: LiveSession | None, before: tuple[int, int]) -> None:
        """Count what a message showed to be lost, and say so."""
        if session is None or (session.recovered, session.missed) == before:
            return
        recoveries, losses = session.recovered - before[0], session.missed - before[1]
        self.recovered, self.missed = self.recovered + recoveries, self.missed + losses
        if losses:
            self.say(
                f"{session.name}: {recoveries} events came back with the chat, at least {losses} are missed"
            )

    def running(self, sessions: Iterable[tuple[str, str]]) -> None:
        """Sessions, each with a member, that run although nothing was heard of them yet: to be asked."""
        for session, member in sessions:
            if session not in self.sessions.open and session not in self.sessions.over:
                self.sessions.strangers.setdefault(session, member)

    def away(self, seconds: float) -> list[tuple[str, str]]:
        """The connection was away: mark what is open; (session, member) of those to be asked."""
        self.recorder.note(away=round(seconds, 3))
        self.sessions.noted({"away": seconds})
        return self.to_ask(everyone=True)

    def to_ask(self, *, everyone: bool = False) -> list[tuple[str, str]]:
        """(session, member) of those whose state is not known: once each, and the open ones where wanted."""
        strangers = [(n, r) for n, r in self.sessions.strangers.items() if n not in self.asked]
        self.asked.update(name for name, _ in strangers)
        if everyone:
            strangers += [(name, s.team[0]) for name, s in self.sessions.open.items() if s.team]
        return strangers

    def written(self) -> None:
        """Have what came recorded."""
        self.recorder.flush()

    def close_silent(self) -> None:
        """Close sessions that nothing was heard of for longer than the silence allows."""
        for name in list(self.sessions.open):
            if time.monotonic() - self._alive.setdefault(name, time.monotonic()) > self.silence:
                self.recorder.note(closed=name)
                self.sessions.close(name)
                self.say(f"{name}: nothing heard for {self.silence:.0f} s, closed as abandoned")

    def hand_over(self) -> list[LiveSession]:
        """Give what has changed to the sink, once it is recorded; the sessions that did."""
        self.recorder.flush()
        sessions = list(self.sessions.changed.values())
        self.sessions.changed.clear()
        self._handed += sessions
        self._refused_handed = len(self._refused)
        for session in sessions:
            if session.log.records:
                self.sink.put(self.as_known(session), self.options)
            if session.doubtful:
                self.unsettled.add(session.key)
            else:
                self.unsettled.discard(session.key)
        return sessions

    def as_known(self, session: LiveSession) -> Trajectory:
        """The session as a trajectory, under its folder's id where that turned out to be another."""
        return trajectory(session, str(self.stream), self.options, self._known.get(session.key))

    def joined(self, folder: Path, log: Trajectory) -> None:
        """A folder was read: see that it and the session that announced it are one trajectory."""
        entry = self.awaited.get(folder)
        if entry is None or entry.joined or not entry.session.log.records:
            return
        live = self.as_known(entry.session)
        if log.id == live.id:
            entry.joined = True
            self.unsettled.discard(entry.session.key)
        elif entry.session.anonymous and merge.same_start(log, live):
            entry.joined = True
            self.unsettled.discard(entry.session.key)
            self.recorder.note(session=entry.session.key, id=log.id)
            self._known[entry.session.key] = log.id
            self.sink.replace(live.id)
            self.sink.put(merge.join(log, self.as_known(entry.session)) or log, self.options)
        else:
            self.say(f"{folder}: holds another run of {live.native_id} than the one that was followed")

    def stored(self) -> None:
        """What was handed over is in the store now."""
        self._handed.clear()
        del self._refused[: self._refused_handed]
        self._check()

    def _check(self) -> None:
        """Move the checkpoint behind what needs no replay."""
        sessions = [*self.sessions.open.values(), *self.sessions.changed.values(), *self._handed]
        # Who fell silent may go on.
        sessions += [session for session in self.sessions.over.values() if session]
        sessions += [a.session for a in self.awaited.values() if not a.joined]
        places = [self._places[s.key] for s in sessions if s.key in self._places]
        places += [*self._refused, *([self._left] if self._left else [])]
        keep = {s.key for s in sessions}
        self._places = {key: place for key, place in self._places.items() if key in keep}
        checkpoint = min(places, default=Place(self.recorder.number, self.recorder.line + 1))
        if checkpoint != self._checkpoint and time.monotonic() - self._synced > SYNC:
            self._checkpoint = checkpoint
            self.recorder.note(checkpoint=[checkpoint.number, checkpoint.line])

    def sync(self) -> None:
        """Have the recording on disk, at most once a second."""
        if time.monotonic() - self._synced > SYNC:
            self.recorder.sync()
            self._synced = time.monotonic()

    def give_up(self) -> list[Path]:
        """Folders that are not waited for any longer."""
        now = time.monotonic()
        folders = [path for path, entry in self.awaited.items() if now > entry.until]
        for path in folders:
            if not self.awaited.pop(path).joined and not (path / records.LOG).is_file():
                self.say(f"{path}: no {records.LOG} came; the session is kept as it was heard")
        return folders

    def close(self) -> None:
        """Have everything on disk."""
        self._synced = 0.0
        self._checkpoint = None
        self._check()
        self.recorder.close()

    def _quarantine(self, bad: Quarantined, place: Place) -> None:
        self.sink.quarantine(str(self.stream.absolute()), [bad], anew=False)
        self._refused.append(place)

    def _placed(self, place: Place) -> None:
        for key in self.sessions.changed:
            self._places.setdefault(key, place)
        for session in self.sessions.fresh:
            self._places.setdefault(session.key, place)
        self.sessions.fresh.clear()

    def _await(self, session: LiveSession) -> None:
        try:
            folder = self._folder(session)
        except OSError:  # a message may name what cannot be a path
            folder = None
        if folder is not None:
            self.awaited[folder.absolute()] = Awaited(session, time.monotonic() + FOLDER_PATIENCE)

    def _folder(self, session: LiveSession) -> Path | None:
        """Where the session's folder is (going to be) here: the end of its path, under --results."""
        path = Path(session.result_dir) if session.result_dir else None
        if path is None or path.name != session.name:
            return None
        if self.results is None:
            return path if path.parent.is_dir() else None
        parts = path.parts[1:] if path.is_absolute() else path.parts
        ends = [self.results.joinpath(*parts[n:]) for n in range(len(parts))]
        return next((end for end in ends if end.is_dir()), self.results / session.name)

    def _source(self) -> Source:
        inside = self.stream.relative_to(self.sink.store.workspace.path)
        return Source(
            path=str(self.stream.absolute()),
            system=records.SYSTEM,
            content_hash=content_hash("recorded live"),
            options=self.options,
            ingested=ledger.now(),
            copied=str(inside),
        )
