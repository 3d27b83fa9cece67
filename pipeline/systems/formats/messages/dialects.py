"""Translates chat messages in other fields than a chat API's into messages of such an API.

They are recognised by their structure, not by their origin: a speaker in `role` or within `author`; what is
said as a text, as `parts`, or within `content`; calls and answers as parts of it, under any of the usual
names; a message wrapped in an object of its own, in a list, or in a tree of nodes by name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from ..fields.contents import APPROVALS, PARTS, RUNNER, UNSAID, are_runs, is_part, plain_text
from ..fields.roles import role_of
from ..fields.values import seconds_of, utterance
from . import (
    agent_events,
    agent_steps,
    copilot_events,
    kernel_contents,
    letta_messages,
    opencode,
    part_kinds,
    tool_parts,
)

ROLES = {
    **{name: name for name in ("system", "developer", "user", "assistant", "tool", "function")},
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "agent": "assistant",
}
LANGCHAIN = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "AIMessageChunk": "assistant",
}
"""`type` of a message of LangChain's -> its role."""
GEMINI = {
    "user": "user",
    "gemini": "assistant",
    **dict.fromkeys(("info", "warning", "error"), "system"),
}
"""`type` of a message of Gemini's command line, which has an id and a time -> its role."""
OF_KIND = {"agent": "assistant", "human": "user", "environment": "system"}
SPEAKERS = ("role", "author", "sender", "source", "from")
CONTENTS = ("content", "parts", "text", "message")
LEFT = ("current_node", "currentId")
"""Keys under which an object with a tree of messages names its current one (ChatGPT, Open WebUI)."""
TIMES = ("timestamp", "created_at", "created", "create_time", "createdAt", "date_unixtime", "date")
CALLED = ("tool_calls", "toolCalls")
"""Keys of calls that stand beside what is said."""
CALLS = ("functionCall", "function_call", "toolInvocation", "toolUse", "toolCall", "tool_call")
CALL = "toolInvocation"
"""The part of a call with its result, as Vercel's AI SDK has them."""
ANSWERS = ("functionResponse", "function_response", "toolResult", "tool_result")
ABOUT = ("metadata", "response_metadata")
"""Objects in a message with what is known of it."""
MODELS = ("model", "model_slug", "model_name", "modelID", "modelId")
"""Fields with the model that wrote a message."""
KEPT = ("function_call", "tool_call_id", "status", "is_error")
NAMES, ARGUMENTS = (
    ("name", "toolName", "tool_name", "function_name", "toolId"),
    ("args", "arguments", "input", "parameters", "invocationMessage"),
)
CODE, RAN = ("executableCode", "executable_code"), ("codeExecutionResult", "code_execution_result")
"""Parts with code that Gemini's API runs itself, and with what that gave back."""
PEOPLE = ("all", "assistant")
"""Recipients of messages that are no calls, as ChatGPT's export has them."""
FINE = (None, 1, "OUTCOME_OK")
"""Outcomes of code that did not fail, as Gemini's API has them."""
MEDIA = ("inlineData", "inline_data", "fileData", "file_data")
"""Parts that are no words, as Gemini's API has them."""
POINTER = "_asset_pointer"
"""How the types of such parts end in ChatGPT's export."""
MEDIUM = "is_medium"
"""Marks the text block that names such a part."""
RESULTS = ("response", "result", "output", "content")
IDS = ("id", "toolCallId", "toolUseId", "call_id", "tool_call_id", "source_call_id")
ASKED, PROMPT = {"task", "task_images"}, "system_prompt"
"""The keys of the task, and the only key of the prompt, where they stand in a list of steps."""
OF_MODEL = ("model_input_messages", "model_output_message")
"""Keys of which a step has one in which an agent only plans."""
STEP, SEEN = (
    ("model_output", "plan", "content", "thought", "text"),
    ("observations", "observation", "result", "output"),
)
FRAMEWORKS = (
    *(agent_events, agent_steps, copilot_events, kernel_contents),
    *(letta_messages, opencode, part_kinds),
)
Message = dict[str, Any]


def messages(item: Any) -> list[Message] | None:
    """The messages of an item of a chat API: [] for an event without words, None for no message of any
    kind."""
    if isinstance(item, dict) and (framework_messages := of_framework(item)) is not None:
        return framework_messages
    item = with_invocations(_unwrap(item))
    if not isinstance(item, dict):
        return None
    role, name = _speaker(item)
    if role is None and _is_step(item):
        return _step(item)
    if is_exchange(item):
        return _exchange(item)
    content = next((item[key] for key in CONTENTS if item.get(key) is not None), None)
    if role is None or (content is None and not ("tool_calls" in item or "function_call" in item)):
        return None
    if is_plain(item):
        return [item]
    head = {"role": role, "name": item.get("name") or name, "timestamp": first_value(item, TIMES)}
    head |= {"model": model} if (model := model_of(item)) else {}
    fields = {key: item[key] for key in KEPT if key in item}
    if role in ("tool", "function"):
        if not has_tool_parts(content):
            return [{**head, **fields, "content": content}]
        head["role"] = "user"  # as Anthropic's API has results in parts
    if role == "assistant" and (call := _call_to_recipient(item)) is not None:
        return [{**head, "content": [call]}]
    # An object from the environment, under a name of the log's own, is its state, and nothing that was said.
    to_blocks = _blocks if name and role == OF_KIND["environment"] else parts
    blocks = _without_lone_media([*to_blocks(content), *_calls_and_answers(item)])
    runs: list[Any] = list(_runs(blocks)) or [""]
    return [{**head, **fields, "content": run} for run in runs]


def of_framework(item: Message) -> list[Message] | None:
    """The messages of an event or message that a framework stores in a shape of its own, [] for one that
    nobody said; None for any other item."""
    readings = (reader.messages(item) for reader in FRAMEWORKS)
    return next((one for one in readings if one is not None), None)


def _call_to_recipient(item: Message) -> Message | None:
    """The call of a message to a tool and not to people (`recipient`), as ChatGPT's export has it."""
    recipient, content = item.get("recipient"), item.get("content")
    if recipient in ("", *PEOPLE) or not isinstance(recipient, str) or not isinstance(content, dict):
        return None
    if "content_type" not in content or content["content_type"] in UNSAID:
        return None
    text = content.get("text")
    text = utterance(content.get("parts") if text is None else text)
    if not text:
        return None
    return {"type": "tool_use", "id": None, "name": recipient, "input": text}


def _media_names(part: Message) -> list[str]:
    """What a part holds that is no words, such as an image."""
    kind = part.get("content_type")
    if isinstance(kind, str) and kind.endswith(POINTER):
        return [kind]
    return [name for name in MEDIA if name in part]


def of_langchain(item: Message) -> Message:
    """A message of LangChain's with the role that its `type` says, its fields maybe under `data`; any other
    as it is."""
    role, data = LANGCHAIN.get(str(item.get("type"))), item.get("data")
    if role is None or "role" in item:
        return item
    return {**(data if isinstance(data, dict) else item), "role": role, "type": "message"}


def _of_gemini(item: Message) -> Message:
    """A message of Gemini's command line with the role that its `type` says; any other as it is."""
    role = GEMINI.get(str(item.get("type"))) if {"id", "timestamp", "content"} <= item.keys() else None
    return item if role is None or "role" in item else {**item, "role": role}


def model_of(item: Message) -> str | None:
    """The model that wrote a message, where it says so itself or in what stands beside it (ChatGPT's export,
    LangChain); None for a word in place of one, such as `<synthetic>`."""
    for inside in (item, *map(item.get, ABOUT)):
        if not isinstance(inside, dict) or inside.keys().isdisjoint(MODELS):
            continue
        models = (model for key in MODELS if isinstance(model := inside.get(key), str))
        if model := next((one for one in models if one and not one.startswith("<")), None):
            return model
    return None


def parts(content: Any) -> list[Message]:
    """A content as text, call and answer blocks; an object that is none of these and no reasoning as its
    JSON."""
    if is_data(content):
        return [{"type": "text", "text": utterance(content)}]
    return list(_blocks(content))


def is_plain(item: Message) -> bool:
    """Whether it is a message as a chat API has it."""
    content = item.get("content")
    blocks = content if isinstance(content, list) else []
    texts = not has_tool_parts(content) and all(
        isinstance(one, dict) and isinstance(one.get("text", ""), str) and "type" in one for one in blocks
    )
    is_elsewhere = content is None and isinstance(item.get("parts"), list)
    usual = (content is None or isinstance(content, (str, list))) and not (
        is_elsewhere or item.get("toolCalls") or item.get(f"{CALL}s")
    )
    return isinstance(item.get("role"), str) and "content" in item and usual and texts


def with_invocations(item: Any) -> Any:
    """A message of Vercel's AI SDK whose text stands beside its calls, with both as its content; any other
    value as it is."""
    if not isinstance(item, dict) or not isinstance(text := item.get("content"), str):
        return item
    beside, parts = item.get(f"{CALL}s"), item.get("parts")
    if beside is None and parts is None:
        return item
    content = [{CALL: one} for one in beside] if isinstance(beside, list) else []
    content += [{"type": "text", "text": text}] if content and text else []
    if isinstance(parts, list) and any(isinstance(one, dict) and CALL in one for one in parts):
        words = [part for part in parts if isinstance(part, dict) and part.get("type") not in UNSAID]
        content = [{key: part[key]} for part in words for key in (CALL, "text") if key in part]
    return {**{key: one for key, one in item.items() if key != "parts"}, "content": content or text}


def untyped_calls(content: list[Any]) -> bool:
    """Whether calls or answers stand among parts that name no type, as Bedrock's API has them."""
    untyped = (part for part in content if isinstance(part, dict) and "type" not in part)
    keys = (*CALLS, *ANSWERS, *CODE, *RAN)
    return any(isinstance(part.get(key), dict) for part in untyped for key in keys)


def has_tool_parts(content: Any) -> bool:
    """Whether a content has calls, results or approvals in parts of their own."""
    return isinstance(content, list) and any(map(tool_parts.is_tool_part, content))


def is_exchange(item: Message) -> bool:
    """Whether it is a request with a text, and the parts of its response, as code editors log them."""
    request, response = item.get("message"), item.get("response")
    if (
        not isinstance(request, dict)
        or not isinstance(request.get("text"), str)
        or not isinstance(response, list)
    ):
        return False
    return _speaker(item)[0] is None and all(isinstance(part, (str, dict)) for part in response)


def thread(value: dict[str, Any], current: Any = None) -> list[Any]:
    """The messages of an object that has them by name; of a tree, whose nodes all name a parent, the branch
    to the node `current`, else to the one that was written last.

    Empty where a value is no object, or fewer than two, or fewer than 60 %, of the values are messages.
    """
    nodes = [one for one in value.values() if isinstance(one, dict)]
    if len(nodes) < len(value) or len(value) < 2:
        return []
    message_nodes = [one for one in nodes if messages(one)]
    if len(message_nodes) < 2 or len(message_nodes) < 0.6 * len(nodes):
        return []
    # Messages that answer others in a thread have a `parentId`, too, and are all read.
    is_web = all({"parentId", "childrenIds", "role"} <= one.keys() for one in nodes)
    parent = "parentId" if is_web else "parent"
    if not all(parent in one for one in nodes):
        return message_nodes
    branch = list[Any]()
    key = current if isinstance(current, str) and current in value else _last_leaf(value, parent)
    while isinstance(key, str) and key in value and len(branch) <= len(value):
        branch.append(value[key])
        key = value[key][parent]
    return [one for one in reversed(branch) if messages(one)]


def _last_leaf(nodes: dict[str, Any], parent: str) -> str:
    """The leaf with the latest time; of several, and without times, the last one."""
    parents = {one[parent] for one in nodes.values() if isinstance(one[parent], str)}
    leaves = [key for key in nodes if key not in parents] or [*nodes]
    return max(reversed(leaves), key=lambda key: _seconds(nodes[key]))


def _seconds(node: Message) -> float:
    """When a node of a tree was written, in seconds since 1970; minus infinity where it does not say."""
    message = node.get("message")
    time = first_value({**(message if isinstance(message, dict) else {}), **node}, TIMES)
    seconds = seconds_of(time)
    return float("-inf") if seconds is None else seconds


def _unwrap(item: Any) -> Any:
    """The message in an object around it (LangChain's `kwargs`, a `message`), or the item with the role that
    its type says."""
    if isinstance(item, dict) and isinstance(fields := item.get("kwargs"), dict) and "content" in fields:
        class_path = item.get("id")
        kind = (
            str(class_path[-1] if isinstance(class_path, list) and class_path else "")
            .partition("Message")[0]
            .lower()
        )
        return {**fields, "role": ROLES.get(str(fields.get("type") or kind), "assistant")}
    if not isinstance(item, dict):
        return item
    inner = item.get("message")
    if isinstance(inner, dict) and _speaker(inner)[0] is not None:
        return {**{key: item[key] for key in TIMES if key in item}, **inner}
    message = _of_gemini(of_langchain(item)) if _speaker(item)[0] is None else item
    return message if "content" in message or "tool_calls" in message else item


def _speaker(item: Message) -> tuple[str | None, str | None]:
    """(role, name) of who speaks; no role where nothing says so."""
    for key in SPEAKERS:
        value = item.get(key)
        name = value.get("role", value.get("name")) if isinstance(value, dict) else value
        if isinstance(name, str) and name:
            role = ROLES.get(name.lower())
            if role is None:
                return OF_KIND[role_of(name).kind], name
            # AutoGen's source is always a name, which a framework's word for a role may be, too.
            return role, name if key == "source" and "models_usage" in item and name.lower() != role else None
    return None, None


def _is_step(item: Message) -> bool:
    """Whether an item without a speaker is a step: one with calls, or with a number and a text but no call,
    or a plan, or the task."""
    if item.keys() in (ASKED, {PROMPT}) or isinstance(item.get("tool_calls"), list):
        return True
    if "plan" in item and not item.keys().isdisjoint(OF_MODEL):
        return True
    output = first_value(item, STEP)
    is_known = isinstance(output, (str, list)) or bool(item.get("error"))
    return {"tool_calls", "step_number"} <= item.keys() and is_known


def _step(item: Message) -> list[Message]:
    """The agent's message of a step, with its calls and what came back; why it failed where it has neither;
    of the task, the user's message."""
    if item.keys() == ASKED:
        return [{"role": "user", "content": utterance(item["task"])}]
    if item.keys() == {PROMPT}:
        return [{"role": "system", "content": utterance(item[PROMPT])}]
    items = item.get("tool_calls")
    calls = [call for one in items for call in _call(one)] if isinstance(items, list) else []
    output = first_value(item, STEP)
    blocks = _blocks(output) if isinstance(output, (str, list)) else ()
    text = [one for one in blocks if one["type"] == "text" and one["text"]]
    observation, error, timing = first_value(item, SEEN), item.get("error"), item.get("timing")
    reason = error.get("message") if isinstance(error, dict) else error
    failure = {"is_error": True} if isinstance(reason, str) and reason else {}
    result = reason if observation is None and failure else observation
    answer = [] if result is None or not calls else [{"type": "tool_result", "content": result, **failure}]
    time = first_value(item, TIMES) or (timing.get("end_time") if isinstance(timing, dict) else None)
    content = [*text, *calls, *answer]
    step = {"role": "assistant", "content": content, "timestamp": time}
    if failure and not calls:  # an id of no call makes it a note
        note = {"role": "tool", "tool_call_id": "", "content": reason, **failure, "timestamp": time}
        return [step, note] if content else [note]
    return [step]


def _exchange(item: Message) -> list[Message]:
    """The request, and the response under the agent's name; adjacent pieces of text are joined."""
    agent = item.get("agent")
    name = agent.get("name") if isinstance(agent, dict) else agent
    blocks = list[Message]()
    for block in _blocks(item["response"]):
        if blocks and block["type"] == blocks[-1]["type"] == "text":
            blocks[-1] = {"type": "text", "text": blocks[-1]["text"] + block["text"]}
        else:
            blocks.append(block)
    request = {"role": "user", "content": parts(item["message"]), "timestamp": first_value(item, TIMES)}
    return [request, *({"role": "assistant", "name": name, "content": run} for run in _runs(iter(blocks)))]


def _calls_and_answers(item: Message) -> Iterator[Message]:
    """The calls that stand beside what is said, and their answers where those do, too."""
    calls = item.get("tool_calls")
    tool_uses = [call for one in calls for call in _call(one)] if isinstance(calls, list) else []
    yield from tool_uses
    exchanges = item.get("toolCalls")
    yield from (
        (part for one in exchanges for part in _call_and_answer(one)) if isinstance(exchanges, list) else ()
    )
    observation = first_value(item, SEEN)
    results = observation.get("results", observation) if isinstance(observation, dict) else observation
    if not tool_uses or results is None:
        return
    if isinstance(results, list) and results and all(isinstance(one, dict) for one in results):
        yield from (_answer(one) for one in results)
    else:
        yield {"type": "tool_result", "tool_use_id": tool_uses[0]["id"], "content": results}


def _without_lone_media(blocks: list[Message]) -> list[Message]:
    """The blocks without images and the like that stand beside calls or answers and no words: they came with
    these, and nobody said them. Where there is nothing else, they are what was said."""
    if not any(MEDIUM in block for block in blocks):
        return blocks
    groups = (list(many) for _, many in itertools.groupby(blocks, lambda block: block["type"] == "text"))
    return [one for many in groups if not all(MEDIUM in one for one in many) for one in many] or blocks


def _runs(blocks: Iterable[Message]) -> Iterator[list[Message]]:
    """The blocks of each message: a text behind anything else begins a new one."""
    run: list[Message] = []
    for block in blocks:
        if run and block["type"] == "text" and run[-1]["type"] != "text":
            yield run
            run = []
        run.append(block)
    if run:
        yield run


def _blocks(content: Any) -> Iterator[Message]:
    """A content as texts, calls and answers."""
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list) and are_runs(content):
        yield {"type": "text", "text": plain_text(content)}
    elif isinstance(content, list):
        for part in content:
            yield from _blocks(part)
    elif isinstance(content, dict):
        yield from _part(content)
    elif content is not None:
        yield {"type": "text", "text": utterance(content)}


def is_data(content: Any) -> bool:
    """Whether it is an object with something in it that is neither words, calls nor reasoning."""
    if not isinstance(content, dict) or not content or isinstance(content.get("parts"), list):
        return False
    return content.get("type", content.get("content_type")) not in UNSAID and not any(_blocks(content))


def _part(part: Message) -> Iterator[Message]:
    text = part.get("text")
    kind = part.get("kind")
    if part.get("type") in UNSAID or is_part(part, *PARTS, *APPROVALS):
        yield part
    elif tool_parts.is_tool_part(part):
        yield tool_parts.block(part)
    elif kind in UNSAID or part.get("thought") is True:
        yield {"type": "reasoning"}
    elif isinstance(text, dict) and isinstance(text.get("value"), str):
        yield {"type": "text", "text": text["value"]}
    elif isinstance(text, str):
        yield {"type": "text", "text": text}
    elif isinstance(part.get("parts"), list):
        yield from _blocks(part["parts"])
    elif call := next((part[key] for key in CALLS if isinstance(part.get(key), dict)), None):
        yield from _call_blocks(call)
    elif answer := next((part[key] for key in ANSWERS if isinstance(part.get(key), dict)), None):
        yield _answer(answer)
    elif code := next((part[key] for key in CODE if isinstance(part.get(key), dict)), None):
        yield {"type": "tool_use", "id": None, "name": RUNNER, "input": code}
    elif output := next((part[key] for key in RAN if isinstance(part.get(key), dict)), None):
        has_failed = output.get("outcome") not in FINE
        content = output.get("output", output.get("outcome"))
        yield {"type": "tool_result", "tool_use_id": None, "content": content, "is_error": has_failed}
    elif isinstance(part.get("value"), str):
        yield {"type": "text", "text": part["value"]}
    elif isinstance(kind, str) and isinstance(inside := part.get(kind), dict) and "name" in inside:
        yield {"type": "text", "text": str(inside["name"])}
    elif "toolId" in part and first_value(part, IDS):
        yield from _call_blocks(part)
    elif str(part.get("type")).startswith("tool-") and (first_value(part, IDS) or part.get("state")):
        yield from _call_blocks({"name": str(part["type"])[len("tool-") :], **part})
    elif "arguments" in part or "input" in part:
        yield from _call_blocks(part)
    elif len(part) == 1 and isinstance(arguments := next(iter(part.values())), str) and arguments[:1] == "{":
        yield {"type": "tool_use", "id": None, "name": next(iter(part)), "input": arguments}
    elif "call_id" in part or "toolUseId" in part:
        yield _answer(part)
    else:
        yield from ({"type": "text", "text": f"[{name}]", MEDIUM: True} for name in _media_names(part))


def _call(item: Any) -> Iterator[Message]:
    """A call without its answer."""
    yield from (one for one in _call_and_answer(item) if one["type"] == "tool_use")


def _call_and_answer(item: Any) -> Iterator[Message]:
    """A call, its function maybe in an object of its own, and the answer where it stands in the call."""
    if isinstance(item, dict):
        function = item.get("function")
        yield from _call_blocks({**function, "id": item.get("id")} if isinstance(function, dict) else item)


def _call_blocks(call: Message) -> Iterator[Message]:
    """A call, and the answer where it stands in the call."""
    name, mark = first_value(call, NAMES), first_value(call, IDS)
    if not isinstance(name, str):
        return
    yield {"type": "tool_use", "id": mark, "name": name, "input": first_value(call, ARGUMENTS)}
    yield from tool_parts.approvals(call)
    result, status = first_value(call, RESULTS), call.get("status")
    if result is None and isinstance(error := call.get("errorText"), str):
        yield {"type": "tool_result", "tool_use_id": mark, "content": error, "is_error": True}
    elif result is not None or status in ("error", "success"):
        yield {
            "type": "tool_result",
            "tool_use_id": mark,
            "content": _result_content(result),
            "status": status,
        }


def _result_content(result: Any) -> Any:
    """The result of a call; where its only part is an answer, that answer's content."""
    if not isinstance(result, list) or len(result) != 1 or not isinstance(only := result[0], dict):
        return result
    inside = next((only[key] for key in ANSWERS if isinstance(only.get(key), dict)), None)
    return result if inside is None else _answer(inside)["content"]


def _answer(answer: Message) -> Message:
    content = first_value(answer, RESULTS)
    block = {"type": "tool_result", "tool_use_id": first_value(answer, ("call_id", *IDS)), "content": content}
    is_error, status = answer.get("is_error"), answer.get("status")
    if status in ("error", "success"):
        block["status"] = status
    return {**block, "is_error": is_error} if isinstance(is_error, bool) else block


def first_value(item: Message, names: tuple[str, ...]) -> Any:
    """The value of the first of these fields that has one other than null; None without one."""
    return next((item[name] for name in names if item.get(name) is not None), None)
