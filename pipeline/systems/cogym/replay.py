"""A recording read like any other source: the same messages give the same trajectories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ....schemas import Quarantined, Trajectory
from ..base import ReadOptions
from . import recording
from .messages import RawMessage
from .recording import Note
from .session import LiveSession
from .sessions import Sessions, trajectory


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The sessions of a recording or stream, and the messages that could not be read."""
    sessions = Sessions(max_steps=options.max_steps)
    ids = folder_ids(path)
    for item in replay_lines(path, sessions):
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


def replay_lines(path: Path, sessions: Sessions) -> Iterator[Quarantined | None]:
    """Feed a recording to `sessions`; yields after each line what was wrong with it, or None."""
    for file, line, item in recording.lines(path):
        if isinstance(item, RawMessage):
            result = feed(sessions, item, file, line)
            yield result if isinstance(result, Quarantined) else None
        elif isinstance(item, Note):
            sessions.apply_note(item.content)
            yield None
        else:
            yield item


def feed(sessions: Sessions, message: RawMessage, file: Path, line: int) -> LiveSession | Quarantined | None:
    """Feed one message; returns its session, or what is wrong with it with its address in the recording.

    An error that nobody foresaw costs its own message: it is recorded, and would end every follower that
    replays it.
    """
    try:
        return sessions.feed(message)
    except ValueError as error:
        return Quarantined(source=str(file), line=line, reason=f"{message.channel}: {error}")
    except (TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        reason = f"{message.channel}: cannot be read: {type(error).__name__}: {str(error)[:200]}"
        return Quarantined(source=str(file), line=line, reason=reason)


def folder_ids(path: Path) -> dict[str, str]:
    """Session's key -> id of its folder, as noted when the folder was read and had another id."""
    notes = (note for _, note in recording.notes(path))
    return {str(note["session"]): str(note["id"]) for note in notes if {"session", "id"} <= note.keys()}
