"""A recording read like any other source: the same messages give the same trajectories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ....schemas import Quarantined, Trajectory
from ..base import ReadOptions
from . import recording
from .messages import Received
from .recording import Note
from .session import LiveSession
from .sessions import Sessions, trajectory


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The sessions of a recording or stream, and the messages that could not be read."""
    sessions = Sessions(max_steps=options.max_steps)
    ids = known_ids(path)
    for item in replayed(path, sessions):
        if isinstance(item, Quarantined):
            yield item
        # A session that fell silent may go on; one that ended is complete.
        for key in [k for k, s in sessions.changed.items() if s.ended == "end"]:
            session = sessions.changed.pop(key)
            if session.log.records:
                yield trajectory(session, str(path), options, ids.get(key))
    for key, session in sessions.changed.items():
        if session.log.records:
            yield trajectory(session, str(path), options, ids.get(key))


def replayed(path: Path, sessions: Sessions) -> Iterator[Quarantined | None]:
    """Feed a recording to `sessions`; yields after each line, with what was wrong with it."""
    for file, line, item in recording.lines(path):
        if isinstance(item, Received):
            result = feed(sessions, item, file, line)
            yield result if isinstance(result, Quarantined) else None
        elif isinstance(item, Note):
            sessions.noted(item.content)
            yield None
        else:
            yield item


def feed(sessions: Sessions, message: Received, file: Path, line: int) -> LiveSession | Quarantined | None:
    """Feed one message; its session, or what is wrong with it with its address in the recording.

    What nobody foresaw costs its own message: it is recorded, and would end every follower that replays it.
    """
    try:
        return sessions.feed(message)
    except ValueError as error:
        return Quarantined(source=str(file), line=line, reason=f"{message.channel}: {error}")
    except (TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        reason = f"{message.channel}: cannot be read: {type(error).__name__}: {str(error)[:200]}"
        return Quarantined(source=str(file), line=line, reason=reason)


def known_ids(path: Path) -> dict[str, str]:
    """Session -> id of the folder that turned out to be its, as noted when the folder was read."""
    return {str(n["session"]): str(n["id"]) for _, n in recording.notes(path) if "session" in n}
