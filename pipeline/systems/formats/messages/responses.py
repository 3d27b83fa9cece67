"""OpenAI's Responses API: exchanges of a request and its response, those that continue another one, and the
items between messages: calls of functions and of its own tools, and their outputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .....schemas import JsonValue
from ...base import field
from ..fields.contents import APPROVALS, ASKED, DECIDED, UNSAID, plain_text
from .conversation import Answer, Approval, Call, ChatMessage
from .dialects import first_value

CALL, OUTPUT = "_call", "_call_output"
"""Suffixes of the types of calls, and of their outputs."""
_FUNCTION_CALLS = ("function_call", "custom_tool_call", "tool_call")
"""Types of the calls that name a function; the type of any other call names its tool."""
_ARGUMENTS = ("arguments", "args", "input", "action", "operation", "code", "queries")
_RESULTS = ("output", "outputs", "results")
"""Where a call that the API itself carries out has its output."""
TIMES = ("created_at", "timestamp", "created")
"""Where an item has its time, the likeliest first."""
NOTHING: tuple[Any, ...] = (None, "", [], {})
ADDED = ("id", "status", *TIMES)
"""What the API adds to an item of its output."""
BLOCK = 1 << 20
"""Bytes that are searched at once, with the OVERLAP of those before."""
OVERLAP = 64
_CONTINUES = re.compile(rb'"previous_response_id"\s*:\s*"')
Item = dict[str, JsonValue]


def is_exchange(value: Any) -> bool:
    """Whether an object is a request with its response: `input`, and `output` with items."""
    items = value.get("output") if isinstance(value, dict) and "messages" not in value else None
    if not isinstance(items, list) or not isinstance(value.get("input"), (str, list)):
        return False
    kinds = [one.get("type") if isinstance(one, dict) else None for one in items]
    if not kinds:  # it failed
        return value.get("object") == "response" or "model" in value
    return all(isinstance(kind, str) for kind in kinds) and any(
        kind == "message" or str(kind).endswith((CALL, OUTPUT, ASKED)) for kind in kinds
    )


def unwrapped(value: Any) -> Any:
    """A request and its response that were logged beside each other, as one exchange; any other value as it
    is."""
    if not isinstance(value, dict) or "messages" in value or is_exchange(value):
        return value
    request, response = value.get("request"), value.get("response")
    if not isinstance(request, dict) or not isinstance(response, dict) or "input" not in request:
        return value
    answer = {key: one for key, one in response.items() if one is not None}  # it repeats what was asked
    whole = {**value, **request, **answer, "input": request["input"]}
    return whole if is_exchange(whole) else value


def has_continuations(path: Path) -> bool:
    """Whether a file has a response that continues another one."""
    with path.open("rb") as file:
        rest = b""
        # Not by mmap: a file that is cut while it is read would end the process.
        while block := file.read(BLOCK):
            if _CONTINUES.search(rest + block):
                return True
            rest = (rest + block)[-OVERLAP:]
    return False


def mark_of(value: Any) -> tuple[str, str] | None:
    """What an exchange shares with its repetitions, as logs of retries and polls have them: id and input.
    None for any other value, and for an exchange without an id."""
    name = value.get("id") if is_exchange(value) else None
    return (name, repr(value["input"])) if isinstance(name, str) else None


def threads(values: Sequence[Any]) -> list[list[int]]:
    """The places of the exchanges of each conversation, by its first one: each exchange, with those that
    continue it (`previous_response_id`). Of two that continue the same one, the second is a conversation of
    its own, and so is one that continues an exchange that is not there."""
    ids = [value.get("id") if isinstance(value, dict) else None for value in values]
    places = {one: place for place, one in enumerate(ids) if isinstance(one, str)}
    following = dict[int, int]()
    for place, value in enumerate(values):
        before = value.get("previous_response_id") if isinstance(value, dict) else None
        origin = places.get(before) if isinstance(before, str) else None
        if origin is not None and origin < place and is_exchange(value) and is_exchange(values[origin]):
            following.setdefault(origin, place)
    continued = set(following.values())
    many = list[list[int]]()
    for first in range(len(values)):
        if first not in continued:
            thread = [first]
            while thread[-1] in following:
                thread.append(following[thread[-1]])
            many.append(thread)
    return many


def joined(exchanges: Sequence[Item]) -> Item:
    """Exchanges that continue each other as one conversation: of each field in the head the first value that
    is none of NOTHING (of `outcomes` the last), all messages, each change of the instructions, and the sum of
    the tokens."""
    items, contents, instructions, usage = list[Any](), list[Item](), None, dict[str, int]()
    head: Item = {}
    for one in exchanges:
        new = _input_items(one)
        if isinstance(one["input"], list):
            new = _without_history(new, contents)
        output: Any = one["output"]
        contents += filter(None, map(_content, [*new, *output]))
        same = one.get("instructions") == instructions
        instructions = one.get("instructions")
        items += exchange({**one, "input": new, **({"instructions": None} if same else {})})
        values = {key: value for key, value in one.items() if value not in NOTHING}
        head = {**values, **head, **{key: values[key] for key in ("outcomes",) if key in values}}
        counts = one.get("usage")
        for name, count in counts.items() if isinstance(counts, dict) else ():
            if type(count) is int:
                usage[name] = usage.get(name, 0) + count
    head = {key: value for key, value in head.items() if key not in ("input", "output", "usage")}
    return {**head, "messages": items, "usage": {**usage}}


def _without_history(items: list[Any], contents: list[Item]) -> list[Any]:
    """The items of an input without the conversation so far, where it begins with all of that."""
    history = iter(contents)
    expected = next(history, None)
    for place, item in enumerate(items):
        if expected is None:
            return items[place:]
        if (content := _content(item)) is not None:
            if content != expected:
                return items
            expected = next(history, None)
    return items if expected is not None else []


def _content(item: Any) -> Item | None:
    """What an item says, without what the API adds when it is repeated; None for reasoning, which need not
    be repeated."""
    if not isinstance(item, dict):
        return {"item": item}
    if item.get("type") in UNSAID:
        return None
    if "role" in item:
        return {"role": item["role"], "text": plain_text(item.get("content"))}
    return {key: value for key, value in item.items() if key not in ADDED}


def exchange(value: dict[str, Any]) -> list[Any]:
    """The items of such an object in their order: instructions, input, output, which has the response's
    time."""
    instructions = value.get("instructions")
    system = (
        [{"role": "system", "content": instructions}]
        if isinstance(instructions, str) and instructions
        else []
    )
    system = instructions if isinstance(instructions, list) else system
    time = value.get("created_at")
    at = {"created_at": time} if isinstance(time, (int, float)) else {}
    output = (
        {**at, **one} if isinstance(one, dict) and not any(key in one for key in TIMES) else one
        for one in value["output"]
    )
    return [*system, *_input_items(value), *output]


def _input_items(value: dict[str, Any]) -> list[Any]:
    request = value["input"]
    return [{"role": "user", "content": request}] if isinstance(request, str) else request


def is_item(value: Item) -> bool:
    """Whether an object is a call, a call's output, or reasoning between messages."""
    kind = value.get("type")
    if not isinstance(kind, str) or "role" in value or "content" in value:
        return False
    has_name = kind not in _FUNCTION_CALLS or isinstance(value.get("name"), str)
    is_call = kind.endswith((CALL, OUTPUT)) and _call_id(value) is not None and has_name
    return is_call or (kind == "reasoning" and "summary" in value)


def message_of(item: Item) -> ChatMessage | None:
    """The message of an item that is a call or a call's output; None for any other item. ValueError for a
    call without a name."""
    kind = str(item.get("type"))
    if "role" in item or "content" in item or not kind.endswith((CALL, OUTPUT, *APPROVALS)):
        return None
    if kind.endswith(ASKED):
        call = Call(field(item, "name", str), item.get("arguments"))
        return ChatMessage("assistant", approvals=[Approval(_text(item, "id"), call=call)])
    if kind.endswith(DECIDED):
        return ChatMessage("user", approvals=[decision(item)])
    if kind.endswith(OUTPUT):
        has_failed = True if item.get("status") == "failed" else None
        return ChatMessage("tool", answers=[Answer(_output(item.get("output")), _call_id(item), has_failed)])
    has_name = kind in (CALL, *_FUNCTION_CALLS) or isinstance(item.get("name"), str)
    name = field(item, "name", str) if has_name else kind.removesuffix(CALL)
    call = Call(name, first_value(item, _ARGUMENTS), _call_id(item))
    return ChatMessage(
        "assistant", calls=[call], answers=[] if kind in _FUNCTION_CALLS else list(_call_answers(item))
    )


def decision(item: Item) -> Approval:
    """A person's answer to the question whether a call may run; ValueError where it is neither yes nor no."""
    is_granted = item.get("approve", item.get("approved"))
    if not isinstance(is_granted, bool):
        raise ValueError(f"expected true or false as the answer to an approval, got {is_granted!r}")
    name = _text(item, "approval_request_id") or _text(item, "id")
    return Approval(name, _text(item, "call"), is_granted=is_granted, comment=_text(item, "reason"))


def _text(item: Item, key: str) -> str | None:
    value = item.get(key)
    return value if isinstance(value, str) and value else None


def _output(output: JsonValue) -> JsonValue:
    """The text of a list of parts, anything else as it is."""
    parts = isinstance(output, list) and all(isinstance(one, dict) and "type" in one for one in output)
    return plain_text(output) if parts else output


def _call_answers(item: Item) -> Iterator[Answer]:
    error, result = item.get("error"), first_value(item, _RESULTS)
    has_failed = True if error or item.get("status") == "failed" else None
    if result is not None or has_failed:
        yield Answer(error if result is None else result, _call_id(item), has_failed)


def _call_id(item: Item) -> str | None:
    mark = item.get("call_id") or item.get("id")
    return mark if isinstance(mark, str) else None
