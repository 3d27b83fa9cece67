"""Message lists as OpenAI's API has them: a JSON file with one, or JSON Lines with one a line.

A list is either the value itself or stands under `messages` (of the Responses API: `input` and `output`)
beside what is known of the conversation: `id` (or conversation_id, session_id, thread_id), `model`, `task`,
`instance`, `condition`, `tags` or `metadata`, `outcomes`, `usage`, and the response, whose message comes
last: under `choices`, or, of a list that ends with a request, under one of REPLIES. A message may have a
`timestamp`. `system` beside the list, as Anthropic's API has what the agent was told, is a state that the
agent alone sees, at the first event: as an event it would move all others.
Contents are texts or lists of parts; tool calls may be `tool_calls`, the old `function_call`, or items of the
Responses API. See conversation.py for what becomes of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from pydantic_core import from_json

from .....schemas import JsonValue, Quarantined, Trajectory
from ...base import (
    ReadOptions,
    Span,
    ending,
    expect,
    field,
    items_until_failure,
    json_file,
    json_lines,
    parse_json,
)
from ..fields import contents, values
from ..fields.paths import decode_json
from ..fields.rules import rules
from . import agent_events, agent_steps, conversation, dialects, gemini_recording, responses, turns
from .conversation import Answer, Approval, Call, ChatMessage, Talk

SYSTEM = "chat"
LOOK = 64 * 1024
"""Bytes that are enough to recognise a file."""
IDS = ("id", "conversation_id", "session_id", "thread_id")
BESIDE = ("tool_calls", "function_call", "refusal", "audio")
"""Fields of a message that may stand beside its content."""
BESIDE_INPUT = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""What Anthropic's `input_tokens` leave out of what a model read."""
REQUESTS = ("system", "developer", "user", "human", "tool", "function")
"""Roles of messages that a model answers."""
REPLIES = ("outputs", "response", "completion", "output", "reply", "generation", "model_response")
"""Names of what a model answered, beside the list; `answer` is none, since sets of tasks have the right one
there."""
_HALF = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""The JSON escape of a UTF-16 surrogate, alone or in a pair."""
_ROLE = re.compile(r'"role"\s*:\s*"(?:system|developer|user|assistant|tool)"')


def recognises(path: Path) -> bool:
    """Whether a file begins like a list of messages, or like an object with one."""
    if ending(path) not in (".json", ".jsonl", ".ndjson") or not path.is_file():
        return False
    if is_recording(path):
        return True
    with path.open("rb") as file:
        head = file.read(LOOK).lstrip(b"\xef\xbb\xbf \t\r\n")
    has_role = _ROLE.search(head.decode("utf-8", "replace")) is not None
    if not has_role and b'"output"' not in head:
        return False
    value = _first_value(head)
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, dict):
        return False
    exchange = responses.unwrapped(first)
    if responses.is_exchange(exchange) and (has_role or exchange["output"]):
        return True
    if not has_role:
        return False
    if "messages" in first:
        messages = first["messages"]
        return isinstance(messages, list) and (not messages or _is_message(messages[0]))
    return isinstance(value, list) and _is_message(first)


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The conversations of a file; a message that cannot be read is quarantined and the rest is kept."""
    is_json = ending(path) == ".json"
    value = json_file(path) if is_json else None
    if is_json and not isinstance(value, Quarantined):
        yield from _conversations(value, path, options)
        return
    # A .json file that is not valid JSON may still hold one object a line.
    yield from read_span(path, options, None)


def read_span(path: Path, options: ReadOptions, span: Span | None) -> Iterator[Trajectory | Quarantined]:
    """The conversations of a file with one a line, or of a part of it."""
    if is_recording(path):
        yield from items_until_failure(_read_recording(path, options), str(path), None)
        return
    if span is None and responses.has_continuations(path):
        for number, value in _joined(json_lines(path)):
            yield from _conversation(value, path, number, f"{path.stem}:{number}", options)
        return
    for number, line in json_lines(path, span=span):
        yield from _conversation(line, path, number, f"{path.stem}:{number}", options)


def _read_recording(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    lines = list[dict[str, Any]]()
    for number, value in json_lines(path):
        if isinstance(value, dict):
            lines.append(value)
        elif isinstance(value, Quarantined):
            yield value
        else:
            yield Quarantined(source=str(path), line=number, reason="expected an object")
    yield from _read_conversation(gemini_recording.conversation(lines), path, None, path.stem, options)


def lines_apart(path: Path, options: ReadOptions) -> bool:
    """Whether each line is a conversation."""
    return ending(path) != ".json" and not is_recording(path) and not responses.has_continuations(path)


def is_recording(path: Path) -> bool:
    """Whether a file of lines is a recording of Gemini's command line."""
    if ending(path) == ".json":
        return False
    with path.open("rb") as file:
        line = file.readline(LOOK)
    return b'"projectHash"' in line and gemini_recording.begins(parse_json(line, "", None))


def _first_value(head: bytes) -> JsonValue:
    """The value of a file's first line, or of what there is of a longer one."""
    line = parse_json(head.partition(b"\n")[0], "", None)
    if not isinstance(line, Quarantined):
        return line
    with suppress(ValueError):
        whole = _HALF.sub(rb"\\ufffd", head)
        return cast("JsonValue", from_json(whole, allow_partial="trailing-strings"))
    return None


def _is_message(value: JsonValue) -> bool:
    """A message, or the beginning of one whose role comes behind a long content."""
    return isinstance(value, dict) and ("role" in value or set(value) <= {"content", "name", "id", "type"})


def message(value: JsonValue) -> ChatMessage:
    """One message of the API; ValueError names the field that is not as it should be."""
    item = dialects.of_langchain(expect(value, dict, "message"))
    time = moment(_time_of(item))
    if response_item := responses.message_of(item):
        response_item.time = time
        return response_item
    role, name = field(item, "role", str), item.get("name")
    turn = ChatMessage(role, name=name if isinstance(name, str) else None, time=time)
    turn.model = dialects.model_of(item)
    turn.is_repeated = item.get(agent_events.REPEATED) is True
    turn.is_observation = item.get(agent_steps.KIND) == agent_steps.SEEN
    content = item.get("content")
    if role in ("tool", "function"):
        failure = item.get("error")
        reason = failure.get("message") if isinstance(failure, dict) else failure
        error = reason if isinstance(reason, str) else None
        turn.answers = [Answer(_result(content), _id(item, "tool_call_id"), _error_flag(item), error)]
        return turn
    if content is not None and not isinstance(content, (str, list)):
        content = [*dialects.parts(content)]
    turn.text = contents.plain_text(_without_calls(content)) or _refusal_or_transcript(item)
    if isinstance(content, list) and any(map(_is_medium, content)):
        words = [part for part in content if not _is_medium(part)]
        turn.id_text = contents.plain_text(_without_calls(words))
    for call in _all_calls(item, content):
        try:
            turn.calls.append(_call(call))
        except ValueError as error:
            turn.call_errors.append(str(error))
    turn.answers = [
        Answer(_result(block.get("content")), _id(block, "tool_use_id"), _error_flag(block))
        for block in _blocks(content, contents.USED)
    ]
    turn.approvals = [_approval(block) for block in _blocks(content, *contents.APPROVALS)]
    return turn


def _is_medium(part: Any) -> bool:
    return isinstance(part, dict) and dialects.MEDIUM in part


def _refusal_or_transcript(item: dict[str, Any]) -> str | None:
    """The text of a message without content: its refusal, or the transcript of its audio."""
    audio = item.get("audio")
    texts = (item.get("refusal"), audio.get("transcript") if isinstance(audio, dict) else None)
    return next((one for one in texts if isinstance(one, str) and one), None)


def split_message(item: Any) -> list[Any]:
    """A message as several, split after results of a tool that the API ran itself where words follow them, or
    by dialects.py where its calls stand in parts that name no type or another one, or beside a text that says
    all."""
    item = dialects.with_invocations(item)
    content = item.get("content") if isinstance(item, dict) else None
    if content is None and isinstance(item, dict) and "role" in item and not any(map(item.get, BESIDE)):
        whole = dialects.messages(item) or [item]
        is_unknown = isinstance(role := item["role"], str) and role.lower() not in dialects.ROLES
        return [{**one, "role": role} for one in whole] if is_unknown else whole
    if not isinstance(content, list):
        return [item]
    has_invocations = any(dialects.CALL in one for one in content if isinstance(one, dict))
    if has_invocations or dialects.untyped_calls(content) or dialects.has_tool_parts(content):
        return dialects.messages(item) or [item]
    ends = [
        place
        for place, (one, following) in enumerate(pairwise(content), 1)
        if contents.is_part(one, contents.USED) and _without_calls([following])
    ]
    if not ends or item.get("role") != "assistant":
        return [item]
    *earlier, last = (content[a:b] for a, b in pairwise([0, *ends, len(content)]))
    base = {key: value for key, value in item.items() if key not in BESIDE}
    return [
        *({**base, "content": one} for one in earlier),
        _without_repeats({**item, "content": last}, earlier),
    ]


def _without_repeats(item: dict[str, Any], earlier: list[list[Any]]) -> dict[str, Any]:
    """A message without those of its `tool_calls` that earlier contents have as parts."""
    calls = item.get("tool_calls")
    if not isinstance(calls, list):
        return item
    ids = {_id(part, "id") for one in earlier for part in _blocks(one, contents.USE)} - {None}
    rest = [call for call in calls if not isinstance(call, dict) or _id(call, "id") not in ids]
    return {**item, "tool_calls": rest}


def seconds(item: dict[str, Any]) -> float | None:
    """When a message was said, in seconds since 1970; None where it does not say."""
    return values.seconds_of(_time_of(item))


def _time_of(item: dict[str, Any]) -> Any:
    time = item.get("created_at", item.get("timestamp", item.get("created", item.get("createdAt"))))
    return item.get("date") if time is None else time


def other_kind(item: Any) -> str | None:
    """The type of an item among messages that is neither a message nor a call or its output, such as
    `reasoning`; None for what is to be read."""
    kind = item.get("type") if isinstance(item, dict) and "role" not in item else None
    if not isinstance(kind, str) or kind == "message" or kind in dialects.LANGCHAIN:
        return None
    calls = kind.endswith((responses.CALL, responses.OUTPUT, *contents.APPROVALS))
    return None if calls or ("content" in item and kind not in contents.UNSAID) else kind


def skipped_items(others: Mapping[str, int], source: str, line: int | None, at: str) -> Iterator[Quarantined]:
    """One entry for each type of items that were no messages, with their count; none for reasoning."""
    for kind, count in others.items():
        if kind not in contents.UNSAID:
            reason = f"{at}: no messages, and passed over: {count} of type {kind!r}"
            yield Quarantined(source=source, line=line, reason=reason)


def moment(value: JsonValue) -> str | None:
    """ISO 8601 of seconds or milliseconds since 1970; another text unchanged; None for what is no time."""
    try:
        return values.moment(value)
    except ValueError:
        return None


def _conversations(value: JsonValue, path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The conversations of a file's value, which is one or a list of them."""
    first = value[0] if isinstance(value, list) and value else None
    is_exchange = responses.is_exchange(responses.unwrapped(first))
    is_one = isinstance(first, dict) and "messages" not in first and not is_exchange
    if not isinstance(value, list) or is_one:
        yield from _conversation(value, path, None, path.stem, options)
        return
    for number, one in _joined(enumerate(value, 1)):
        yield from _conversation(one, path, None, f"{path.stem}:{number}", options)


def _joined(items: Iterable[tuple[int, JsonValue | Quarantined]]) -> Iterator[tuple[int, Any]]:
    """(number, value) of each conversation, exchanges that continue each other as one; of an exchange that is
    repeated the last one, in the first one's place."""
    many, places_by_mark = list[tuple[int, Any]](), dict[tuple[str, str], int]()
    for number, item in items:
        value = responses.unwrapped(item)
        mark = responses.mark_of(value)
        place = len(many) if mark is None else places_by_mark.setdefault(mark, len(many))
        if place < len(many):
            many[place] = many[place][0], value
        else:
            many.append((number, value))
    for places in responses.threads([value for _, value in many]):
        number, first = many[places[0]]
        yield number, first if len(places) == 1 else responses.joined([many[at][1] for at in places])


def _conversation(
    value: JsonValue | Quarantined, path: Path, line: int | None, place: str, options: ReadOptions
) -> Iterator[Trajectory | Quarantined]:
    return items_until_failure(_read_conversation(value, path, line, place, options), str(path), line)


def _read_conversation(
    value: JsonValue | Quarantined, path: Path, line: int | None, place: str, options: ReadOptions
) -> Iterator[Trajectory | Quarantined]:
    if isinstance(value, Quarantined):
        yield value
        return
    value = responses.unwrapped(value)
    head: dict[str, Any] = value if isinstance(value, dict) else {}
    messages = _messages(head) if isinstance(value, dict) else value
    if not isinstance(messages, list):
        reason = "expected a list of messages, or an object with `messages`, or with `input` and `output`"
        yield Quarantined(source=str(path), line=line, reason=reason)
        return
    talk, others = Talk(rules(options.map), conversation.submission_of(head)), Counter[str]()
    items = turns.oldest_first(list(enumerate(messages)), seconds)
    for number, item in [*items, *enumerate(_responses(head), len(messages))]:
        if kind := other_kind(item):
            others[kind] += 1
            continue
        try:
            for one in split_message(item):
                talk.add_message(message(one))
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            yield Quarantined(source=str(path), line=line, reason=f"messages[{number}]: {error}")
    yield from skipped_items(others, str(path), line, "messages")
    if not talk.events:
        yield Quarantined(source=str(path), line=line, reason="no messages in it")
        return
    add_usage(talk, _usage(head))
    if head.get("system") and not talk.add_briefing({"system": head["system"]}):
        reason = "`system` stands beside messages, none of which an agent said, and is left out"
        yield Quarantined(source=str(path), line=line, reason=reason)
    yield talk.trajectory(source=str(path), options=options, **_head(head, place))


def _head(head: dict[str, Any], place: str) -> dict[str, Any]:
    native_id = next((str(head[key]) for key in IDS if isinstance(head.get(key), (str, int))), None)
    tags = head.get("tags", head.get("metadata"))
    results = head.get("outcomes")
    fields = {key: head[key] for key in ("task", "instance", "condition") if isinstance(head.get(key), str)}
    return {
        "native_id": native_id or place,
        "has_native_id": native_id is not None,
        "system": SYSTEM,
        "agent_model": head["model"] if isinstance(head.get("model"), str) else None,
        "tags": {k: str(v) for k, v in tags.items() if v is not None} if isinstance(tags, dict) else {},
        "outcomes": conversation.outcomes(results) if isinstance(results, dict) else (),
        **fields,
    }


def _messages(head: dict[str, Any]) -> JsonValue:
    return responses.exchange(head) if responses.is_exchange(head) else head.get("messages")


def _responses(head: dict[str, Any]) -> list[JsonValue]:
    """The messages of the response that stands beside its request."""
    if (choice := _choice(head)) is not None:
        return [choice]
    messages = head.get("messages")
    if not isinstance(messages, list) or not messages or not isinstance(last := messages[-1], dict):
        return []
    if last.get("role") not in REQUESTS:
        return []
    answer = next((answer for name in REPLIES if (answer := _answer(head.get(name)))), [])
    places = [place for place, one in enumerate(answer) if _words(one) == _words(last)]
    return answer[places[-1] + 1 :] if places else answer


def _words(message: JsonValue) -> tuple[JsonValue, JsonValue]:
    """Who says what, whatever else a message that is repeated has."""
    return (message.get("role"), message.get("content")) if isinstance(message, dict) else (None, None)


def _answer(reply: JsonValue) -> list[JsonValue]:
    """What a model answered as messages: a text, the first of several, messages, or a response of an API, be
    it as JSON; empty for anything else."""
    if isinstance(reply, list):
        is_talk = all(isinstance(one, dict) and "role" in one for one in reply)
        return reply if is_talk else _answer(reply[0])
    if isinstance(reply, str):
        response = decode_json(reply) if reply.startswith("{") else None
        message = _choice(response) if isinstance(response, dict) else None
        return [message or {"role": "assistant", "content": reply}] if reply else []
    if not isinstance(reply, dict):
        return []
    if isinstance(text := reply.get("text"), str) and "role" not in reply:
        return _answer(text)
    inside = reply.get("message")
    message = _choice(reply) or (inside if isinstance(inside, dict) else reply)
    return [message] if isinstance(message, dict) and message.get("role") == "assistant" else []


def _choice(response: dict[str, Any]) -> JsonValue:
    """The first message of a response of the API; None for what is none."""
    choices = response.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first.get("message") if isinstance(first, dict) else None


def _usage(head: dict[str, Any]) -> JsonValue:
    """The tokens of the answer, as the conversation or the response beside it says them."""
    response = head.get("response")
    inside = response.get("usage") if isinstance(response, dict) and _responses(head) else None
    return inside if head.get("usage") is None else head["usage"]


def add_usage(talk: Talk, usage: JsonValue) -> None:
    """Add the tokens of a model's answer to the agent's, where there is one agent."""
    agents = [name for name, kind in talk.kinds.items() if kind == "agent"]
    if isinstance(usage, dict) and len(agents) == 1:
        names = ("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")
        counts = [next((usage[key] for key in keys if key in usage), None) for keys in names]
        prompt, completion = (c if type(c) is int else None for c in counts)
        is_whole = "prompt_tokens" in usage or usage.get("total_tokens") == (prompt or 0) + (completion or 0)
        if prompt is not None and not is_whole:
            prompt += sum(count for name in BESIDE_INPUT if type(count := usage.get(name)) is int)
        talk.add_tokens(agents[0], prompt, completion)


def _all_calls(item: dict[str, JsonValue], content: JsonValue) -> Iterator[JsonValue]:
    """The calls beside a content and those in it, each once: LangChain logs them in both places."""
    calls = _calls(item)
    ids = {call.get("id") for call in calls if isinstance(call, dict) and isinstance(call.get("id"), str)}
    yield from calls
    yield from (block for block in _blocks(content, contents.USE) if _id(block, "id") not in ids)


def _calls(item: dict[str, JsonValue]) -> list[JsonValue]:
    calls = item.get("tool_calls")
    if calls is None:
        old = item.get("function_call")
        return [] if old is None else [{"function": old}]
    return expect(calls, list, "tool_calls")


def _call(value: JsonValue) -> Call:
    call = expect(value, dict, "tool_calls[]")
    callee = call.get("function", call.get("custom", call))
    if isinstance(callee, str):
        return Call(callee, call.get("arguments", call.get("args")), _id(call, "id"))
    function = expect(callee, dict, "tool_calls[].function")
    name = field(function, "name", str, "tool_calls[].function")
    return Call(name, function.get("arguments", function.get("input", function.get("args"))), _id(call, "id"))


def _approval(block: dict[str, JsonValue]) -> Approval:
    if contents.is_part(block, contents.DECIDED):
        return responses.decision(block)
    return Approval(_id(block, "id"), _id(block, "call"))


def _blocks(content: JsonValue, *kinds: str) -> list[dict[str, JsonValue]]:
    """The parts of a content that are of some kinds (contents.PARTS, APPROVALS), as Anthropic's API has
    them."""
    if not isinstance(content, list):
        return []
    return [part for part in content if isinstance(part, dict) and contents.is_part(part, *kinds)]


def _without_calls(content: JsonValue) -> JsonValue:
    """A content without its calls, answers and approvals."""
    if not isinstance(content, list):
        return content
    return [part for part in content if not contents.is_part(part, *contents.PARTS, *contents.APPROVALS)]


def _result(content: JsonValue) -> JsonValue:
    """What a tool answered, a list of parts as one text."""
    return contents.plain_text(content) if isinstance(content, list) else content


def _error_flag(item: dict[str, JsonValue]) -> bool | None:
    """Whether the tool failed by the message's own `is_error`, `error`, or LangChain's `status`; None where
    it does not say."""
    error, status = item.get("error"), item.get("status")
    for flag in (item.get("is_error"), error):
        if isinstance(flag, bool):
            return flag
    if error:
        return True
    return {"error": True, "success": False}.get(status) if isinstance(status, str) else None


def _id(item: dict[str, JsonValue], key: str) -> str | None:
    value = item.get(key)
    return value if isinstance(value, str) else None
