"""Mapped sessions whose events are messages as chat APIs have them: read as a chat, with the head as
mapped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from .....schemas import Quarantined, Trajectory
from ..fields.contents import is_message_part
from ..fields.mapping import ROLES, Messages
from ..fields.paths import as_list, decode_json, getter
from ..fields.rules import rules
from ..fields.values import expect_text, tag
from ..messages import chat, dialects, growing, opencode, part_kinds, turns
from ..messages.conversation import Call, ChatMessage, Talk, outcomes, submission_of
from ..messages.turns import Place
from .reading import HEAD, MappedSessions, Numbered, action_of

ModelCall = tuple[list[Place], list[Place]]
"""The messages of a call and its reply."""
TIMES = ("timestamp", "created_at", "created")
UNSAID = ("isMeta", "isSidechain", "isCompactSummary")
"""Flags of Claude Code's records, which have a `uuid`, whose words under the role of the user no person said,
but a scaffold, or an agent that gives another one a task."""
IN_LISTS = ("parts", "content", "tool_calls")
"""Fields of a message that may hold a list."""
NOTHING = ("", "null", "[]")
"""What a column of calls holds for none."""
ANSWERING = [role for role, kind in ROLES.items() if kind == "agent"] + ["tool", "function"]
"""Roles of the messages that may come back from a call."""


def session_of(
    many: list[Place], value: dict[str, Any], number: int | None, sessions: MappedSessions
) -> Iterator[Trajectory | Quarantined]:
    """The conversation of a list of messages; a message that cannot be read is quarantined."""
    talk, others = Talk(rules(sessions.options.map), submission_of(value)), Counter[str]()
    at, instructions = sessions.mapping.events_at or "messages", None
    for place, item in many:
        dialect_messages = dialects.messages(item)
        if dialect_messages and dialect_messages[0].get(part_kinds.KIND) == part_kinds.INSTRUCTIONS:
            words = dialect_messages[0].get("content")
            dialect_messages = dialect_messages[words == instructions :]
            instructions = words
        if dialect_messages is None and (kind := chat.other_kind(item)):
            others[kind] += 1
            continue
        try:
            for message in [item] if dialect_messages is None else dialect_messages:
                for one in chat.split_message(message):
                    talk.add_message(_add_text_calls(_strip_name(chat.message(one), sessions), sessions))
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            reason = f"{at}[{place}]: {error}"
            yield Quarantined(source=sessions.source, line=number, reason=reason)
    yield from chat.skipped_items(others, sessions.source, number, at)
    for usage in _usages(item for _, item in many):
        chat.add_usage(talk, usage)
    if talk.events:
        messages = sessions.mapping.messages
        if messages and messages.told and (what := getter(messages.told)(value)):
            talk.add_briefing({"system": what})
        yield trajectory(talk, value, number, sessions)
    else:
        yield Quarantined(source=sessions.source, line=number, reason=f"{at}: no messages in it")


def _usages(items: Iterable[Any]) -> list[Any]:
    """The usage of each answer of Anthropic's API, where all that the assistant said has it: Claude Code logs
    each part of an answer as a message with the answer's id, and the last one has the whole count. A request
    repeats earlier answers without theirs, so that a sum would be too small. Else that of opencode's
    answers."""
    items = list(items)
    answers = [item for item in items if isinstance(item, dict) and item.get("role") == "assistant"]
    usages = {
        str(item["id"]): item["usage"]
        for item in answers
        if item.get("type") == "message" and "id" in item and isinstance(item.get("usage"), dict)
    }
    if not answers:
        return [usage for item in items if (usage := opencode.usage(item)) is not None]
    return [*usages.values()] if all(str(item.get("id")) in usages for item in answers) else []


def reply_in(record: dict[str, Any], messages: Messages | None) -> list[Any]:
    """The messages of the reply, where it stands apart from the list, without those that it has, too."""
    if messages is None or messages.reply is None:
        return []
    replies = (one for path in as_list(messages.reply) for one in _reply_of(getter(path)(record)))
    items = getter(messages.at)(record) if messages.at else None
    objects = [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []
    return [one for one in replies if not _is_in_list(one, objects)]


def _is_in_list(reply: dict[str, Any], items: list[dict[str, Any]]) -> bool:
    """Whether messages have parts that an agent handed over, or a message under the same id."""
    if reply.keys() == {"role", "parts"}:
        return any(one.get("parts") == reply["parts"] for one in items)
    return "messageId" in reply and reply in items


def _reply_of(back: Any) -> list[Any]:
    """What came back as messages: one, or a list of messages, calls or parts that an agent handed over.

    A text is decoded where it holds an agent's messages as JSON, as cells of tables do; else it is what the
    assistant said.
    """
    if isinstance(back, str):
        inside = decode_json(back)
        many = inside if isinstance(inside, list) else [inside]
        back = many if many and all(map(_is_answer, many)) else {"role": "assistant", "content": back}
    if isinstance(back, list):
        objects = (one for one in back if isinstance(one, dict))
        return [
            {"role": "assistant", "parts": one["parts"]} if "parts" in one and "role" not in one else one
            for one in objects
        ]
    return [{"role": "assistant", **back}] if isinstance(back, dict) else []


def _is_answer(one: Any) -> bool:
    """Whether an object is a message that may come back, and not an answer in JSON that happens to have a
    `role`."""
    if not isinstance(one, dict) or one.get("role") not in ANSWERING:
        return False
    return any(key in one for key in (*dialects.CONTENTS, *dialects.CALLED, *chat.BESIDE))


def growing_sessions(
    records: list[Numbered], calls: list[ModelCall], sessions: MappedSessions
) -> Iterator[tuple[int | None, dict[str, Any], list[Place]]]:
    """(number of the first record, head, messages) of each session of the records' calls that continue each
    other; the outcomes in the head and the messages are the last call's."""
    for places in _places_by_session([record for _, record in records], calls, sessions):
        some = (calls[place] for place in places)
        pairs = (([item for _, item in many], [item for _, item in reply]) for many, reply in some)
        for one in growing.sessions_of(pairs):
            first, last = records[places[one.first]], places[one.last]
            head = sessions.tail([records[last][1]], sessions.head([first[1]]))
            many, reply = calls[last]
            yield first[0], head, many + reply


def _places_by_session(
    records: list[dict[str, Any]], calls: list[ModelCall], sessions: MappedSessions
) -> list[list[int]]:
    """The places of the records that may continue each other: those of one `native_id`, or all where it names
    calls and not sessions, since records that share one asked the same, as one that was tried again does."""
    places: dict[str | None, list[int]] = {}
    for place, record in enumerate(records):
        places.setdefault(sessions.native_id(record), []).append(place)
    shared = (many for name, many in places.items() if name is not None)
    if all(calls[place][0] == calls[many[0]][0] for many in shared for place in many):
        return [list(range(len(records)))]
    return list(places.values())


def call(record: dict[str, Any], sessions: MappedSessions) -> ModelCall:
    """(messages, reply) of a model's call; the reply's places follow those of the list."""
    many = turns.events_in(record, sessions.mapping.events_at or "messages", None) or []
    many = many if isinstance(many, list) else [many]  # no message, which is said where it is read
    reply = reply_in(record, sessions.mapping.messages)
    return sessions.select(list(enumerate(many))), list(enumerate(reply, len(many)))


def talk_of(records: list[dict[str, Any]], messages: Messages, sessions: MappedSessions) -> list[Place]:
    """The messages of records that are turns of a session, in their order, each once: those without a time
    have the record's."""
    calls = [call(record, sessions) for record in records]
    pairs = (([one for _, one in many], [one for _, one in reply]) for many, reply in calls)
    talk = list[Place]()
    for record, (many, reply), new in zip(records, calls, growing.news_of(pairs), strict=True):
        when = {TIMES[0]: time} if messages.time and (time := sessions.when(record)) is not None else {}
        turn = [many[place] for place in new] + reply
        talk += [(at, {**one, **when} if when and _lacks_time(one) else one) for at, one in turn]
    return talk


def _lacks_time(message: Any) -> bool:
    return isinstance(message, dict) and chat.seconds(message) is None


def message_in(record: dict[str, Any], messages: Messages) -> dict[str, Any] | None:
    """The message in a record, with the record's time, and the system's where the record says that no person
    said it; None where it holds none."""
    message = getter(messages.at)(record) if messages.at else record
    if not isinstance(message, dict) or not (
        "role" in message or "type" in message or dialects.messages(message)
    ):
        return None
    is_flagged = isinstance(record.get("uuid"), str) and any(record.get(flag) is True for flag in UNSAID)
    role = {"role": "system"} if is_flagged and message.get("role") == "user" else {}
    times = {key: record[key] for key in TIMES if key in record}
    return {**times, **message, **_decoded_parts(message), **role}


def _decoded_parts(message: dict[str, Any]) -> dict[str, Any]:
    """The fields of a message whose texts hold a list as JSON, as the columns of a database have its parts,
    and None for no calls; of its content only where all items are parts of a message, for people write JSON,
    too."""
    texts = {
        key: text
        for key in IN_LISTS
        if isinstance(text := message.get(key), str) and (key != "content" or text.lstrip()[:1] == "[")
    }
    lists = {key: value for key, text in texts.items() if isinstance(value := decode_json(text), list)}
    fields: dict[str, Any] = {
        key: value
        for key, value in lists.items()
        if value and (key != "content" or all(map(is_message_part, value)))
    }
    if texts.get("tool_calls", "-").strip() in NOTHING:
        fields["tool_calls"] = None
    return fields


def _strip_name(message: ChatMessage, sessions: MappedSessions) -> ChatMessage:
    message.name = sessions.strip_name(message.name) if message.name else message.name
    return message


def _add_text_calls(message: ChatMessage, sessions: MappedSessions) -> ChatMessage:
    """The message with calls for the actions in an agent's text, by the first rule whose pattern is found.
    With a pattern that names actions each match is a call, and a text of nothing else is dropped; with any
    other the first match is one."""
    if not message.calls and sessions.mapping.role_table.get(message.role) == "agent":
        for rule, pattern in sessions.action_patterns:
            matches = pattern.matches(message.text or "")
            if matches:
                names_actions = "action" in pattern.groupindex
                actions = [
                    action_of(rule.name, match) for match in (matches if names_actions else matches[:1])
                ]
                message.calls = [Call(action.name, action.arguments) for action in actions]
                if names_actions and not pattern.sub("", message.text or "").strip(" \n[]"):
                    message.text = None
                break
    return message


def trajectory(talk: Talk, value: dict[str, Any], number: int | None, sessions: MappedSessions) -> Trajectory:
    """The talk as a trajectory, with the head as the mapping has it."""
    constants = sessions.mapping.constants
    head: dict[str, Any] = {
        name: expect_text(sessions.heads[name](value), f"trajectory.{name}") or getattr(constants, name)
        for name in HEAD
    }
    native = sessions.native_id(value) if sessions.id_getters else None
    tags = {name: tag(at(value)) for name, at in sessions.tags.items() if at(value) is not None}
    result = talk.trajectory(
        native or sessions.default_id(number),
        sessions.source,
        sessions.options,
        system=sessions.system,
        has_native_id=native is not None,
        tags=tags,
        outcomes=outcomes(sessions.outcome_values(value)),
        **head,
    )
    update = {"condition": sessions.options.condition or head["condition"]}
    return result.model_copy(update={**update, "hidden": sessions.heads["hidden"](value)})
