"""A mapped session whose events are messages as chat APIs have them: read as a chat, its head as mapped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ....schemas import Quarantined, Trajectory
from . import chat, dialects, growing, turns
from .conversation import Call, Said, Talk, outcomes
from .mapped_paths import HEAD, MappedSessions, Numbered, written
from .mapped_values import tag, texted
from .mapping import ROLES, Messages
from .paths import getter, unpacked
from .rules import rules

TIMES = ("timestamp", "created_at", "created")
ANSWERING = [role for role, kind in ROLES.items() if kind == "agent"] + ["tool", "function"]
"""Whose messages come back."""


def told(
    many: list[Any], value: dict[str, Any], number: int | None, sessions: MappedSessions
) -> Iterator[Trajectory | Quarantined]:
    """The conversation of a list of messages; a message that cannot be read is quarantined."""
    talk, others = Talk(rules(sessions.options.map)), Counter[str]()
    at = sessions.mapping.events_at or "messages"
    for place, item in enumerate(many):
        dialect_messages = dialects.messages(item)
        if dialect_messages is None and (kind := chat.other_kind(item)):
            others[kind] += 1
            continue
        try:
            for message in [item] if dialect_messages is None else dialect_messages:
                for one in chat.parted(message):
                    talk.take(_add_text_calls(_strip_name(chat.message(one), sessions), sessions))
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            reason = f"{at}[{place}]: {error}"
            yield Quarantined(source=sessions.source, line=number, reason=reason)
    yield from chat.passed_over(others, sessions.source, number, at)
    if talk.events:
        yield trajectory(talk, value, number, sessions)
    else:
        yield Quarantined(source=sessions.source, line=number, reason=f"{at}: no messages in it")


def reply_in(record: dict[str, Any], messages: Messages | None) -> list[Any]:
    """What came back and stands apart from the list, as messages; items of a list may be calls. A text that
    holds an agent's messages as JSON, as cells of tables do, is they; any other is what was said."""
    back = getter(messages.reply)(record) if messages and messages.reply else None
    if isinstance(back, str):
        inside = unpacked(back)
        many = inside if isinstance(inside, list) else [inside]
        back = many if many and all(map(_is_answer, many)) else {"role": "assistant", "content": back}
    if isinstance(back, list):
        return [one for one in back if isinstance(one, dict)]
    return [{"role": "assistant", **back}] if isinstance(back, dict) else []


def _is_answer(one: Any) -> bool:
    """Whether it is a message that may come back, and no object with a `role` that somebody asked for."""
    if not isinstance(one, dict) or one.get("role") not in ANSWERING:
        return False
    return any(key in one for key in (*dialects.CONTENTS, *dialects.CALLED, *chat.BESIDE))


def grown(
    records: list[Numbered], sessions: MappedSessions
) -> Iterator[tuple[int | None, dict[str, Any], list[Any]]]:
    """(number and head of the first record, messages of the last) of each session that calls amount to."""
    messages = sessions.mapping.messages
    at = sessions.mapping.events_at or "messages"
    calls = (
        (sessions.chosen(turns.events_in(record, at, None) or []), reply_in(record, messages))
        for _, record in records
    )
    for one in growing.sessions_of(calls):
        head = sessions.tail([records[one.last][1]], sessions.head([records[one.first][1]]))
        yield records[one.first][0], head, one.messages


def message_in(record: dict[str, Any], messages: Messages) -> dict[str, Any] | None:
    """The message of a record that holds one, with the time that the record has; None where it has none."""
    message = getter(messages.at)(record) if messages.at else record
    if not isinstance(message, dict) or not (
        "role" in message or "type" in message or dialects.messages(message)
    ):
        return None
    return {**{key: record[key] for key in TIMES if key in record}, **message}


def _strip_name(message: Said, sessions: MappedSessions) -> Said:
    message.name = sessions.stripped(message.name) if message.name else message.name
    return message


def _add_text_calls(message: Said, sessions: MappedSessions) -> Said:
    """The message with the action that its text has in it as a call; the text of one that names them is taken
    for all its calls, and for no message where there is nothing else in it."""
    if not message.calls and sessions.mapping.role_table.get(message.role) == "agent":
        for rule, pattern in sessions.acting:
            matches = list(pattern.finditer(message.text or ""))
            if matches:
                names_actions = "action" in pattern.groupindex
                actions = [written(rule.name, match) for match in (matches if names_actions else matches[:1])]
                message.calls = [Call(action.name, action.arguments) for action in actions]
                if names_actions and not pattern.sub("", message.text or "").strip(" \n[]"):
                    message.text = None
                break
    return message


def trajectory(talk: Talk, value: dict[str, Any], number: int | None, sessions: MappedSessions) -> Trajectory:
    """What was said, with the head as the mapping has it."""
    constants = sessions.mapping.constants
    head: dict[str, Any] = {
        name: texted(sessions.heads[name](value), f"trajectory.{name}") or getattr(constants, name)
        for name in HEAD
    }
    native = sessions.native_id(value) if sessions.named else None
    tags = {name: tag(at(value)) for name, at in sessions.tags.items() if at(value) is not None}
    result = talk.trajectory(
        native or sessions.place(number),
        sessions.source,
        sessions.options,
        system=sessions.system,
        named=native is not None,
        tags=tags,
        outcomes=outcomes({name: at(value) for name, at in sessions.outcomes.items()}),
        **head,
    )
    update = {"condition": sessions.options.condition or head["condition"]}
    return result.model_copy(update={**update, "hidden": sessions.heads["hidden"](value)})
