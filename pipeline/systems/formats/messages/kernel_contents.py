"""Turns messages whose parts stand under `items` or `contents` into messages of a chat API, as Microsoft's
Semantic Kernel, Agent Framework and Extensions.AI store them.

Python writes `call_id`, and a part's kind under `content_type` or `type`; .NET writes `callId` or `CallId`,
and the kind under `$type`, such as `FunctionCallContent`. A call and its result have the id in common.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from ..fields.contents import ASKED, DECIDED
from ..fields.mapping import ROLES

Message = dict[str, Any]
LISTS = ("items", "contents")
KINDS = ("contenttype", "$type", "type")
CALL, RESULT, REQUEST, RESPONSE = (
    *("functioncall", "functionresult"),
    *("functionapprovalrequest", "functionapprovalresponse"),
)
UNSAID = ("textreasoning", "reasoning", "usage")
"""Kinds of parts that nobody says."""
MEDIA = ("image", "audio", "data", "uri", "hostedfile", "filereference", "error")
SPOKEN = {"text", CALL, RESULT, REQUEST, RESPONSE}
KNOWN = {*UNSAID, *MEDIA}
"""Kinds of messages without words; goods have such kinds, too."""
BESIDE = ("content", "parts", "text", "message", "utterance", "body", "toolcalls", "functioncall")
"""Fields with what is said in messages of others, whose `items` may be goods."""
OWN = {"role", "name", "authorname", "createdat", "id", "messageid", "conversationid", "modelid", "aimodelid"}
OWN |= {"encoding", "mimetype", "finishreason", *KINDS}
"""Texts of the frameworks' messages that are not their words."""


def messages(item: Message) -> list[Message] | None:
    """The message, with results as those of Anthropic's API; None where it is none of these frameworks'."""
    fields = _plain_names(item)
    role = fields.get("role")
    if isinstance(role, dict):
        role = next((value for key, value in _plain_names(role).items() if key in ("value", "label")), None)
    parts = next((fields[key] for key in LISTS if isinstance(fields.get(key), list)), None)
    if not isinstance(role, str) or parts is None or any(fields.get(key) for key in BESIDE):
        return None
    contents = [_plain_names(part) for part in parts if isinstance(part, dict)]
    kinds = {*map(_kind, contents)}
    if len(contents) < len(parts) or None in kinds:
        return None
    others = any(isinstance(value, str) and value for key, value in fields.items() if key not in OWN)
    if kinds.isdisjoint(SPOKEN) and (others or (kinds and kinds.isdisjoint(KNOWN))):
        return None
    name, time = fields.get("authorname", fields.get("name")), fields.get("createdat")
    calls = {part.get("callid", part.get("id")) for part in contents if _kind(part) == CALL}
    blocks = [block for part in contents for block in _blocks(part, calls)]
    has_results = any(block["type"] == "tool_result" for block in blocks)
    role = role.lower() if role.lower() in ROLES else role
    role = "user" if role == "tool" and has_results else role
    return [{"role": role, "name": name, "timestamp": time, "content": blocks}]


def _plain_names(item: Message) -> Message:
    """An object with its keys in small letters and without underscores."""
    return {key.lower().replace("_", ""): value for key, value in item.items()}


def _kind(part: Message) -> str | None:
    """What a part is, as one word; None where it does not say."""
    kind = next((part[key] for key in KINDS if isinstance(part.get(key), str)), None)
    return None if kind is None else kind.lower().replace("_", "").removesuffix("content")


def _blocks(part: Message, calls: Container[Any]) -> Iterator[Message]:
    """A part as blocks; of a call that is to be approved, the call where it is none of the message's."""
    kind, mark = _kind(part), part.get("callid", part.get("id"))
    if kind == "text":
        yield {"type": "text", "text": part.get("text") or ""}
    elif kind == CALL:
        yield _call(part)
    elif kind == RESULT:
        failure = {"is_error": True} if part.get("exception") else {}
        content = part.get("result") if part.get("result") is not None else part.get("exception")
        yield {"type": "tool_result", "tool_use_id": mark, "content": content, **failure}
    elif kind in (REQUEST, RESPONSE):
        call = part.get("functioncall")
        inner = _plain_names(call) if isinstance(call, dict) else {}
        if kind == RESPONSE:
            yield {"type": DECIDED, "id": part.get("id"), "approved": part.get("approved")}
        else:
            yield from [_call(inner)] if inner and inner.get("callid") not in calls else []
            yield {"type": ASKED, "id": part.get("id"), "call": inner.get("callid")}
    elif kind not in UNSAID:
        yield {"type": kind}


def _call(part: Message) -> Message:
    """A call; a function of a plugin is named as the model calls it, `Lights-turn_on`."""
    names = (part.get("pluginname"), part.get("functionname"))
    name = part.get("name") or "-".join(one for one in names if isinstance(one, str) and one)
    mark = part.get("callid", part.get("id"))
    return {"type": "tool_use", "id": mark, "name": name, "input": part.get("arguments")}
