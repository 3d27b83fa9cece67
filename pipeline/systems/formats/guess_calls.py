"""Whether lists of messages are calls of a model, each with what was said before, and where the reply is."""

from __future__ import annotations

from . import dialects, growing, turns
from .guess_made import Guess
from .guess_names import is_said, named
from .mapped_messages import reply_in
from .mapping import Messages
from .survey import PathSeen, Survey

REPLIES = ("response", "completion", "reply", "output", "answer", "generation", "model_response", "sampled")
TOLD = ("system", "systemInstruction", "system_instruction", "system_prompt", "systemPrompt", "instructions")
"""What agents were told, beside the list of messages."""
WORDS = 4
"""So many are no name."""
LEAST = 0.3
"""So many of the records must have a reply."""
CONTINUE = 0.3
"""Where so many of the records continue another one, they are calls of a model."""


def of_messages(made: Guess, seen: Survey) -> None:
    """Note where the reply to a list of messages is, and whether records continue each other."""
    at = made.at or ""
    made.reply = reply(seen, at)
    made.briefing = _briefing(seen, at)
    calls = [
        (turns.events_in(record, at, None), reply_in(record, Messages(at=at, reply=made.reply)))
        for record in seen.records
    ]
    whole = [(many, reply) for many, reply in calls if isinstance(many, list)]
    made.growing = len(whole) > 1 and growing.share(whole) >= CONTINUE


def _briefing(seen: Survey, at: str) -> str | None:
    """What stands beside the list and is no name, such as that of a system that is compared with others."""
    beside = at.rpartition(".")[0]
    for name in TOLD:
        one = seen.paths.get(f"{beside}.{name}" if beside else name)
        if one and (not one.only("text") or _says(one)):
            return one.path
    return None


def _says(one: PathSeen) -> bool:
    return any(len(text.split()) >= WORDS for text in (*one.values, *one.texts))


def reply(seen: Survey, at: str) -> str | None:
    """A message that stands apart from the list; else a text where the list ends with what was asked."""
    most = 0.5 * len(seen.records)
    for path, one in seen.paths.items():
        parent = path.rpartition(".")[0]
        role = seen.paths.get(f"{parent}.role")
        apart = parent and parent != at and not path.startswith(f"{at}[") and parent.count("[]") < 2
        if (
            one.key in ("content", "parts")
            and role
            and apart
            and {dialects.ROLES.get(name.lower()) for name in role.values} == {"assistant"}
            and one.count >= most
        ):
            items = parent if parent.endswith("[]") and f"{parent}.type" in seen.paths else ""
            return (items.removesuffix("[]") or parent).replace("[]", "[0]")
    if not _ends_asked(seen, at):
        return None
    for one in named(seen.paths, REPLIES):
        if one.count < LEAST * len(seen.records):
            continue
        if one.only("text") and is_said(one):
            return one.path
        if one.only("list") and f"{one.path}[].turn" in seen.paths:
            return f"{one.path}[0]"
    return None


def _ends_asked(seen: Survey, at: str) -> bool:
    """Whether most lists end with what is no agent's."""
    lists = [turns.events_in(record, at, None) for record in seen.records]
    last = [many[-1] for many in lists if isinstance(many, list) and many and isinstance(many[-1], dict)]
    asked = sum(one.get("role") in ("user", "human") for one in last)
    return asked > 0.8 * len(last) if last else False
