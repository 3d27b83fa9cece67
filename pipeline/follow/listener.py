"""A stream of messages: recorded first, then dealt to sessions, then stored.

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
from ...schemas.text import count_of
from ..ingest.sources import Source
from ..store.disk import AppendOnly
from ..store.ledgers import ledger
from ..systems import ReadOptions, merge
from ..systems.cogym import recording, records
from ..systems.cogym.messages import RawMessage
from ..systems.cogym.recording import Place, Recorder
from ..systems.cogym.replay import feed, folder_ids
from ..systems.cogym.session import LiveSession
from ..systems.cogym.sessions import Sessions, trajectory
from .sink import Sink

FOLDER_PATIENCE = 120.0
"""Seconds for which the folder of an ended session is waited for, and read again when it changes."""
SYNC = 1.0


@dataclass
class AwaitedFolder:
    """A session whose folder will complete it."""

    session: LiveSession
    until: float
    is_joined: bool = False


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
    """Messages that nobody heard and the chat brought back."""
    missed: int = 0
    """Other events that nobody heard, at least."""
    only_record: bool = False
    """Leave what comes to whoever reads the recording next: the next follower, or a rebuild."""
    left_count: int = 0
    """How many messages were only recorded."""
    last: float = field(default_factory=time.monotonic)
    """When something other than a tick was last received."""
    subscribed: bool = False
    awaited_folders: dict[Path, AwaitedFolder] = field(default_factory=dict)
    asked_sessions: set[str] = field(default_factory=set)
    """Sessions whose state was asked for already."""
    _places: dict[str, Place] = field(default_factory=dict)
    _handed_sessions: list[LiveSession] = field(default_factory=list)
    """Sessions that the sink has and the store may not have yet."""
    _refused_places: list[Place] = field(default_factory=list)
    """Places of messages that could not be read, which the store may not have yet."""
    _refused_count: int = 0
    """How many of these the sink had when it last took over."""
    _folder_ids: dict[str, str] = field(default_factory=dict)
    _last_heard: dict[str, float] = field(default_factory=dict)
    _checkpoint: Place | None = None
    _first_left: Place | None = None
    _last_sync: float = 0.0
    _recorder: Recorder | None = None

    @property
    def recorder(self) -> Recorder:
        assert self._recorder is not None, "open() comes first"
        return self._recorder

    def open(self) -> None:
        """Start to record, and go on with the sessions that were open when the last recording broke off."""
        self.sessions.max_steps = self.options.max_steps
        self._recorder = Recorder(self.stream, AppendOnly)
        self._folder_ids = folder_ids(self.stream)
        since = recording.last_checkpoint(self.stream)
        for file, line, item in recording.lines(self.stream, since):
            place = Place(recording.number(file), line)
            if isinstance(item, RawMessage):
                result = feed(self.sessions, item, file, line)
                if isinstance(result, Quarantined):
                    self._quarantine(result, place)
            elif isinstance(item, recording.Note):
                self.sessions.apply_note(item.content)
            self._note_place(place)
        self.recorder.note(follows=self.name)
        if self.sessions.open:
            open_sessions = count_of(len(self.sessions.open), "session", "sessions")
            self.say(f"continuing {open_sessions} of the previous recording")
        self.sessions.apply_note({"follows": self.name})
        for session in list(self.sessions.changed.values()):
            if session.ended == "end":
                self._await(session)
        for name in self.sessions.open:
            self._last_heard[name] = time.monotonic()
        self.sink.note(self._source())

    def take(self, message: RawMessage) -> None:
        """Record a message, then apply it to its session."""
        place = self.recorder.write(message)
        message = message.as_replayed
        self.messages += 1
        if self.only_record:
            self._first_left = self._first_left or place
            self.left_count += 1
            return
        before = len(self.sessions.open)
        earlier = self.sessions.open.get(message.channel.partition("/")[0])
        losses = (earlier.recovered, earlier.missed) if earlier else (0, 0)
        # What a replay cannot read is not taken in: a rebuild would lose it.
        session = self.recorder.problem or feed(self.sessions, message, self.recorder.path, place.line)
        if isinstance(session, Quarantined):
            self._quarantine(session, place)
            return
        self._count(earlier, losses)
        self._note_place(place)
        if not message.channel.endswith("/tick"):
            self.last = time.monotonic()
        if session is None and len(self.sessions.open) == before:
            return
        self._last_heard[message.channel.partition("/")[0]] = time.monotonic()
        self.sink.note_moment(datetime.fromtimestamp(message.time, UTC).isoformat(timespec="milliseconds"))
        if session is not None and session.ended == "end":
            self._last_heard.pop(session.name, None)
            self._await(session)

    def _count(self, session: LiveSession | None, before: tuple[int, int]) -> None:
        """Count what a message showed to be lost, and report it."""
        if session is None or (session.recovered, session.missed) == before:
            return
        recoveries, losses = session.recovered - before[0], session.missed - before[1]
        self.recovered, self.missed = self.recovered + recoveries, self.missed + losses
        if losses:
            rest = f"; {recoveries} came back with the chat" if recoveries else ""
            self.say(f"{session.name}: at least {count_of(losses, 'event was', 'events were')} missed{rest}")

    def note_running(self, sessions: Iterable[tuple[str, str]]) -> None:
        """Note sessions, each with a member, that run although nothing was heard of them yet: they are to be
        asked."""
        for session, member in sessions:
            if session not in self.sessions.open and session not in self.sessions.over:
                self.sessions.strangers.setdefault(session, member)

    def mark_gap(self, seconds: float) -> list[tuple[str, str]]:
        """Mark the open sessions after a lost connection; returns (session, member) of those to be asked."""
        self.recorder.note(away=round(seconds, 3))
        self.sessions.apply_note({"away": seconds})
        self.asked_sessions.clear()  # another run of a name is another session
        return self.sessions_to_ask(everyone=True)

    def sessions_to_ask(self, *, everyone: bool = False) -> list[tuple[str, str]]:
        """(session, member) of sessions whose state is not known, each once; `everyone`: of the open ones,
        too."""
        strangers = [(n, r) for n, r in self.sessions.strangers.items() if n not in self.asked_sessions]
        self.asked_sessions.update(name for name, _ in strangers)
        if everyone:
            strangers += [(name, s.team[0]) for name, s in self.sessions.open.items() if s.team]
        return strangers

    def flush(self) -> None:
        """Have everything recorded leave this process."""
        self.recorder.flush()

    def close_silent(self) -> None:
        """Close sessions that nothing was heard of for longer than the silence allows."""
        for name in list(self.sessions.open):
            if time.monotonic() - self._last_heard.setdefault(name, time.monotonic()) > self.silence:
                self.recorder.note(closed=name)
                self.sessions.close(name)
                self.say(f"{name}: nothing heard for {self.silence:.0f} s, closed as abandoned")

    def hand_over(self) -> list[LiveSession]:
        """Give the sessions that have changed to the sink, once they are recorded; returns them."""
        self.recorder.flush()
        sessions = list(self.sessions.changed.values())
        self.sessions.changed.clear()
        self._handed_sessions += sessions
        self._refused_count = len(self._refused_places)
        for session in sessions:
            if session.log.records:
                self.sink.put(self.as_trajectory(session), self.options)
        return sessions

    def as_trajectory(self, session: LiveSession) -> Trajectory:
        """The session as a trajectory, under its folder's id where that turned out to be another."""
        return trajectory(session, str(self.stream), self.options, self._folder_ids.get(session.key))

    def join_folder(self, folder: Path, log: Trajectory) -> None:
        """Join a folder that was read with the session that announced it: both are one trajectory."""
        entry = self.awaited_folders.get(folder)
        if entry is None or entry.is_joined or not entry.session.log.records:
            return
        live = self.as_trajectory(entry.session)
        if log.id == live.id:
            entry.is_joined = True
        elif entry.session.anonymous and merge.same_start(log, live):
            entry.is_joined = True
            self.recorder.note(session=entry.session.key, id=log.id)
            self._folder_ids[entry.session.key] = log.id
            self.sink.replace(live.id)
            self.sink.put(merge.join(log, self.as_trajectory(entry.session)) or log, self.options)
        else:
            self.say(f"{folder}: holds another run of {live.native_id} than the one that was followed")

    def forget_stored(self) -> None:
        """Forget what was handed over, which is in the store now, and move the checkpoint."""
        self._handed_sessions.clear()
        del self._refused_places[: self._refused_count]
        self._move_checkpoint()

    def _move_checkpoint(self) -> None:
        """Move the checkpoint to the first message that a replay would need."""
        sessions = [*self.sessions.open.values(), *self.sessions.changed.values(), *self._handed_sessions]
        # A session that fell silent may go on.
        sessions += [session for session in self.sessions.over.values() if session]
        sessions += [a.session for a in self.awaited_folders.values() if not a.is_joined]
        places = [self._places[s.key] for s in sessions if s.key in self._places]
        places += [*self._refused_places, *([self._first_left] if self._first_left else [])]
        keep = {s.key for s in sessions}
        self._places = {key: place for key, place in self._places.items() if key in keep}
        checkpoint = min(places, default=Place(self.recorder.number, self.recorder.line + 1))
        if checkpoint != self._checkpoint and time.monotonic() - self._last_sync > SYNC:
            self._checkpoint = checkpoint
            self.recorder.note(checkpoint=[checkpoint.number, checkpoint.line])

    def sync(self) -> None:
        """Have the recording on disk, at most once a second."""
        if time.monotonic() - self._last_sync > SYNC:
            self.recorder.sync()
            self._last_sync = time.monotonic()

    def give_up(self) -> list[Path]:
        """Stop waiting for folders whose time is up; returns them."""
        now = time.monotonic()
        folders = [path for path, entry in self.awaited_folders.items() if now > entry.until]
        for path in folders:
            if not self.awaited_folders.pop(path).is_joined and not (path / records.LOG).is_file():
                self.say(f"{path}: no {records.LOG} came; the session is kept as it was recorded")
        return folders

    def close(self) -> None:
        """Have everything on disk."""
        self._last_sync = 0.0
        self._checkpoint = None
        self._move_checkpoint()
        self.recorder.close()

    def _quarantine(self, bad: Quarantined, place: Place) -> None:
        self.sink.quarantine(str(self.stream.absolute()), [bad], anew=False)
        self._refused_places.append(place)

    def _note_place(self, place: Place) -> None:
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
            self.awaited_folders[folder.absolute()] = AwaitedFolder(
                session, time.monotonic() + FOLDER_PATIENCE
            )

    def _folder(self, session: LiveSession) -> Path | None:
        """Where the session's folder is, or will be: under --results by the end of its announced path, else
        at that path."""
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
