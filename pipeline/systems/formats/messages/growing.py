"""Calls that repeat messages of those before them: a model's calls, the last of which has all of its session,
and turns of a talk, of which only what is new counts."""

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


def news_of(calls: Iterable[tuple[Messages, Messages]]) -> list[list[int]]:
    """The places of what is new in the messages of each turn of a talk. They may repeat instructions, and
    behind these the end of the talk before them with its reply."""
    news, contents, instructions = list[list[int]](), list[Any](), set[str]()
    for messages, reply in calls:
        own = list(map(_message_content, messages))
        start = next((n for n, one in enumerate(messages) if not is_instruction(one)), len(own))
        new = [n for n in range(start) if repr(own[n]) not in instructions]
        instructions.update(map(repr, own[:start]))
        own = own[start:]
        count = _overlap(contents, own)
        if count == len(own) and not reply and count < len(contents):
            count = 0  # the same was said again, since a turn says something
        news.append([*new, *range(start + count, len(messages))])
        contents += own[count:] + list(map(_message_content, reply))
    return news


def _overlap(before: list[Any], own: list[Any]) -> int:
    """How many items of `own` repeat the end of what was before."""
    lengths = (n for n in range(min(len(before), len(own)), 0, -1) if before[-n] == own[0])
    return next((n for n in lengths if before[-n:] == own[:n]), 0)


def is_instruction(message: Any) -> bool:
    """Whether a message is what agents are told by whoever runs them."""
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
