"""How long a text is for a model, by a local estimate: nothing is downloaded to count tokens."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from ...schemas import Action, Event
from ...schemas.results import FullEvent, shorten, within
from ...schemas.text import BYTES_PER_TOKEN
from ..clients import Question

SAFETY = 0.8
"""Share of a context that is filled by estimate, since the estimate may be short."""
MARGIN = 64
"""Tokens of a chat template around the messages."""
SHORTEST = 512
"""Tokens of the shortest context; an endpoint that says it read fewer does not count them."""
MUCH = 0.65
"""Share of the estimate from which on no word has to be counted."""
_WORD = re.compile(r"[A-Za-z][A-Za-z'\u0080-\U0010ffff]*|[0-9]+")
"""A run of letters or of digits: one token or more, for no vocabulary joins two of them. What is not
ASCII belongs to the run (`für`, `không`), and so do apostrophes: ` don't` is one token."""


def estimate(text: str) -> int:
    """About how many tokens a text has."""
    return int(len(text.encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN) + 1


@dataclass
class Context:
    """What is known of a model's context; `limit` is None until the endpoint says it."""

    limit: int | None = None
    safety: float = SAFETY

    def count(self, text: str) -> int:
        """About how many tokens a text has."""
        return estimate(text)

    def tokens(self, question: Question) -> int:
        """About how many tokens a question and its answer take."""
        return sum(self.count(m.content) for m in question.messages) + MARGIN + question.form.max_tokens

    def fits(self, question: Question) -> bool:
        """Whether a question is short enough, as far as is known."""
        return self.limit is None or self.tokens(question) <= self.limit * self.safety

    def is_cut(self, question: Question, read: int) -> bool:
        """Whether an endpoint that read so many tokens was given more: it has cut the question off."""
        length = self.tokens(question) - question.form.max_tokens
        if read < SHORTEST or read > MUCH * length:
            return False
        return read < sum(len(_WORD.findall(message.content)) for message in question.messages)

    def needed(self, tokens: int) -> int:
        """The context, to the next 512 tokens, in which so many fit."""
        return math.ceil(tokens / self.safety / 512) * 512

    def room(self, question: Question) -> int:
        """Tokens that are left beside a question."""
        assert self.limit is not None
        return int(self.limit * self.safety) - self.tokens(question)

    def answer(self, question: Question, tokens: int) -> int:
        """Tokens that the answer to a question may take, at most the `tokens` wanted."""
        least = question.form.max_tokens
        most = tokens if self.limit is None else least + self.room(question)
        return max(least, min(tokens, most))

    def learn(self, question: Question, limit: int | None, before: Context) -> None:
        """Note that a question was too long, and what the endpoint said of its limit.

        `before` is what was known when it was asked: where more is known by now, the rejection says nothing
        new.
        """
        if limit is not None and (self.limit is None or limit < self.limit):
            self.limit = limit
        elif self != before:
            return
        elif self.limit is None:
            self.limit = max(SHORTEST, self.tokens(question))
        elif self.fits(question):
            self.safety *= 0.75

    def trim(self, event: Event, room: int) -> Event:
        """An event that is too long, cut for the room: the middle of each long text is left out."""
        result, briefings = (event.result, event.briefings) if isinstance(event, FullEvent) else (None, ())
        extras = (event.action, event.error, event.notices, result, briefings)
        most = int(room * BYTES_PER_TOKEN * 0.9) // (1 + sum(map(bool, extras)))
        share = most // max(1, len(event.notices))
        update: dict[str, object] = {
            "text": event.text and _cut(event.text, most),
            "error": event.error and _cut(event.error, most),
            "action": event.action and _cut_action(event.action, most),
            "notices": tuple(one.model_copy(update={"text": _cut(one.text, share)}) for one in event.notices),
        }
        for name, changes in (("result", result), ("briefings", briefings)):
            if changes:
                update[name] = within([replace(one, text=_cut(one.text, most)) for one in changes], most)
        return event.model_copy(update=update)


def _cut_action(action: Action, most: int) -> Action:
    """The action with its long arguments cut."""
    arguments = {k: _cut(v, most) if isinstance(v, str) else v for k, v in action.arguments.items()}
    return action.model_copy(update={"arguments": arguments, "raw": action.raw and _cut(action.raw, most)})


def _cut(text: str, most: int) -> str:
    """The text, or its ends where it has more bytes."""
    if len(text.encode("utf-8", "surrogatepass")) <= most:
        return text
    length = max(40, most // 8)
    return shorten(text, length, length)
