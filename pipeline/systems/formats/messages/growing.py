"""Groups a model's calls into sessions: each call repeats the messages before it, so the last one has them
all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from .....schemas import content_hash
from ..fields.contents import plain_text
from . import dialects

Messages = list[Any]


@dataclass
class CallSession:
    """A session: the places of its first and last call, and the last one's messages with the reply."""

    first: int
    last: int
    messages: Messages
    ends: tuple[str, ...] = ()
    """Hashes of the messages that a call which continues it begins with: the last call's with and without its
    reply."""


def sessions_of(calls: Iterable[tuple[Messages, Messages]]) -> list[CallSession]:
    """The sessions of calls, each call with its messages and its reply.

    A call continues the one whose messages, with the reply or (where two had the same) without it, its own
    begin with; of several the one with most. Where no call continues another, the latest may stand first, as
    a graph's checkpoints are listed.
    """
    many = list(calls)
    sessions = _sessions_in_order(many)
    if len(sessions) < len(many) or len(many) < 2:
        return sessions
    from_end, last = _sessions_in_order(many[::-1]), len(many) - 1
    if len(from_end) == len(many):
        return sessions
    return [replace(one, first=last - one.first, last=last - one.last) for one in from_end]


def _sessions_in_order(calls: Iterable[tuple[Messages, Messages]]) -> list[CallSession]:
    sessions: list[CallSession] = []
    ends: dict[str, CallSession] = {}
    for place, (messages, reply) in enumerate(calls):
        marks = _marks(messages)
        session = next((ends[mark] for mark in reversed(marks[:-1]) if mark in ends), None)
        if session is None:
            session = CallSession(place, place, [])
            sessions.append(session)
        for mark in session.ends:
            if ends.get(mark) is session:
                del ends[mark]
        session.last, session.messages = place, [*messages, *reply]
        session.ends = tuple(dict.fromkeys((_marks(session.messages)[-1:] or [""]) + marks[-1:]))
        for mark in session.ends:
            ends.setdefault(mark, session)
    return sessions


def repetitions(calls: Iterable[tuple[Messages, Messages]]) -> list[int]:
    """How many messages each turn of a talk, with its reply, repeats: they may begin with the end of the talk
    before it, and with instructions that were there."""
    counts, contents = list[int](), list[Any]()
    for messages, reply in calls:
        own, start = list(map(_message_content, messages)), 0
        while start < len(own) and _is_instruction(messages[start]) and own[start] in contents:
            start += 1
        most = min(len(contents), len(own) - start)
        lengths = (n for n in range(most, 0, -1) if contents[-n] == own[start])
        start += next((n for n in lengths if contents[-n:] == own[start : start + n]), 0)
        counts.append(start)
        contents += own[start:] + list(map(_message_content, reply))
    return counts


def _is_instruction(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in ("system", "developer")


def share(calls: Iterable[tuple[Messages, Messages]]) -> float:
    """The share of the calls that continue another one."""
    pairs = list(calls)
    return 1 - len(sessions_of(pairs)) / len(pairs) if pairs else 0.0


def _marks(messages: Messages) -> list[str]:
    """A hash of each beginning of a list of messages, the shortest first."""
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
    return [(one.get("role"), plain_text(one.get("content")).strip(), one.get("tool_calls")) for one in parts]
