"""Whether lists of messages are calls of a model, each with what was said before, and where the reply is."""

from __future__ import annotations

from . import dialects, growing, turns
from .guess_made import Guess
from .guess_names import is_said, named
from .mapped_messages import reply_in
from .mapping import Messages
from .survey import Survey

REPLIES = ("response", "completion", "reply", "output", "answer", "generation", "model_response", "sampled")
LEAST = 0.3
"""So many of the records must have a reply."""
CONTINUE = 0.3
"""Where so many of the records continue another one, they are calls of a model."""


def of_messages(guess: Guess, survey: Survey) -> None:
    """Note where the reply to a list of messages is, and whether records continue each other."""
    at = guess.at or ""
    guess.reply = reply(survey, at)
    calls = [
        (turns.events_in(record, at, None), reply_in(record, Messages(at=at, reply=guess.reply)))
        for record in survey.records
    ]
    lists = [(messages, reply) for messages, reply in calls if isinstance(messages, list)]
    guess.growing = len(lists) > 1 and growing.share(lists) >= CONTINUE


def reply(survey: Survey, at: str) -> str | None:
    """A message that stands apart from the list; else a text where the list ends with what was asked."""
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
    for field in named(survey.paths, REPLIES):
        if field.count < LEAST * len(survey.records):
            continue
        if field.only("text") and is_said(field):
            return field.path
        if field.only("list") and f"{field.path}[].turn" in survey.paths:
            return f"{field.path}[0]"
    return None


def _ends_with_request(survey: Survey, at: str) -> bool:
    """Whether most lists end with what is no agent's."""
    lists = [turns.events_in(record, at, None) for record in survey.records]
    last = [
        messages[-1]
        for messages in lists
        if isinstance(messages, list) and messages and isinstance(messages[-1], dict)
    ]
    requests = sum(one.get("role") in ("user", "human") for one in last)
    return requests > 0.8 * len(last) if last else False
