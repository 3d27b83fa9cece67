"""Calls of a model as sessions: of records whose messages continue each other, the last one has them all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ....schemas import content_hash
from . import dialects
from .contents import plain

Messages = list[Any]


@dataclass
class Grown:
    """A session: its first record's place, and the messages of its last record."""

    first: int
    last: int
    messages: Messages
    ends: tuple[str, ...] = ()
    """Marks of what a call that continues it begins with."""


def sessions_of(calls: Iterable[tuple[Messages, Messages]]) -> list[Grown]:
    """The sessions that calls amount to, each call with its messages and what came back.

    A call continues the one whose messages, with the reply or (where two had the same) without it, its own
    begin with; of several the one with most.
    """
    sessions: list[Grown] = []
    ends: dict[str, Grown] = {}
    for place, (messages, reply) in enumerate(calls):
        marks = _marks(messages)
        session = next((ends[mark] for mark in reversed(marks[:-1]) if mark in ends), None)
        if session is None:
            session = Grown(place, place, [])
            sessions.append(session)
        for mark in session.ends:
            if ends.get(mark) is session:
                del ends[mark]
        session.last, session.messages = place, [*messages, *reply]
        session.ends = tuple(dict.fromkeys((_marks(session.messages)[-1:] or [""]) + marks[-1:]))
        for mark in session.ends:
            ends.setdefault(mark, session)
    return sessions


def share(calls: Iterable[tuple[Messages, Messages]]) -> float:
    """How many of the calls continue another one."""
    pairs = list(calls)
    return 1 - len(sessions_of(pairs)) / len(pairs) if pairs else 0.0


def _marks(messages: Messages) -> list[str]:
    """A mark for each beginning of a list of messages."""
    marks, mark = list[str](), ""
    for message in messages:
        mark = content_hash(mark, _message_content(message))
        marks.append(mark)
    return marks


def _message_content(message: Any) -> Any:
    """What a message says, without what a log adds to it."""
    if not isinstance(message, dict):
        return message
    messages = dialects.messages(message)
    parts = [message] if messages is None else messages
    return [(one.get("role"), plain(one.get("content")).strip(), one.get("tool_calls")) for one in parts]
