"""Whether lists of messages are calls of a model, each with all messages before it, and where the reply
is."""

from __future__ import annotations

from typing import Any

from ..fields.mapping import Messages
from ..mapped.chats import reply_in
from ..messages import dialects, growing, turns
from .names import fields_named, is_utterance
from .result import Guess
from .survey import PathSummary, Survey

REPLIES = ("response", "completion", "reply", "output", "answer", "generation", "model_response", "sampled")
BRIEFINGS = (
    "system",
    "systemInstruction",
    "system_instruction",
    "system_prompt",
    "systemPrompt",
    "instructions",
)
"""Names of what agents were told, beside the list of messages."""
ARTIFACTS = "artifacts"
"""The name of what an agent handed over, as tasks of the A2A protocol have it."""
WORDS = 4
"""A text of so many words, or more, is no name."""
LEAST = 0.3
"""The least share of records that must have a reply."""
CONTINUE = 0.3
"""The least share of records that continue another one, where they are calls of a model."""


def set_reply(guess: Guess, survey: Survey) -> None:
    """Set where the reply to a list of messages is, and whether records continue each other."""
    at = guess.at or ""
    guess.reply = reply(survey, at)
    beside = f"{at.rpartition('.')[0]}.{ARTIFACTS}".lstrip(".")
    is_handed_over = {f"{beside}[].parts", f"{at}[].parts"} <= survey.paths.keys()
    guess.artifacts = beside if is_handed_over else None
    guess.briefing = _briefing(survey, at)
    lists = [(messages, back) for messages, back in calls_in(survey, at, guess.reply) if messages]
    guess.growing = len(lists) > 1 and growing.share(lists) >= CONTINUE


def calls_in(survey: Survey, at: str, back: str | None) -> list[tuple[list[Any], list[Any]]]:
    """The messages of each record's list at `at`, none where there is no list, and its reply, at `back`."""
    many = (turns.events_in(record, at, None) for record in survey.records)
    lists = (one if isinstance(one, list) else [] for one in many)
    messages = Messages(at=at, reply=back)
    return [(one, reply_in(record, messages)) for one, record in zip(lists, survey.records, strict=True)]


def _briefing(survey: Survey, at: str) -> str | None:
    """The path of what agents were told, beside the list of messages. A text of a few words is none: it is a
    name, such as that of a system that is compared with others."""
    beside = at.rpartition(".")[0]
    for name in BRIEFINGS:
        one = survey.paths.get(f"{beside}.{name}" if beside else name)
        if one and (not one.has_only("text") or _says(one)):
            return one.path
    return None


def _says(one: PathSummary) -> bool:
    return any(len(text.split()) >= WORDS for text in (*one.values, *one.texts))


def reply(survey: Survey, at: str) -> str | None:
    """The path of the reply: an assistant's message apart from the list; else, where lists end with a
    request, a text or list under a name of REPLIES."""
    most = 0.5 * len(survey.records)
    for path, field in survey.paths.items():
        parent = path.rpartition(".")[0]
        role = survey.paths.get(f"{parent}.role")
        apart = parent and parent != at and not path.startswith(f"{at}[") and parent.count("[]") < 2
        if (
            field.key in ("content", "parts")
            and role
            and apart
            and {dialects.ROLES.get(name.lower()) for name in role.values} == {"assistant"}
            and field.count >= most
        ):
            items = parent if parent.endswith("[]") and f"{parent}.type" in survey.paths else ""
            return (items.removesuffix("[]") or parent).replace("[]", "[0]")
    if not _ends_with_request(survey, at):
        return None
    for field in fields_named(survey.paths, REPLIES):
        if field.count < LEAST * len(survey.records):
            continue
        if field.has_only("text") and is_utterance(field):
            return field.path
        if field.has_only("list") and f"{field.path}[].turn" in survey.paths:
            return f"{field.path}[0]"
    return None


def _ends_with_request(survey: Survey, at: str) -> bool:
    """Whether most lists, over 80 %, end with a user's message."""
    lists = [turns.events_in(record, at, None) for record in survey.records]
    last = [
        messages[-1]
        for messages in lists
        if isinstance(messages, list) and messages and isinstance(messages[-1], dict)
    ]
    requests = sum(one.get("role") in ("user", "human") for one in last)
    return requests > 0.8 * len(last) if last else False
