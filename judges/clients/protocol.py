"""A question to a language model and its answer: the one seam that every client and engine fills.

A client is a function `complete(Question) -> Reply`; a test passes one of its own. What can go wrong is
one small tree of exceptions that says what the asker can do about it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

from ..errors import JudgeError

LONGEST_PAUSE = 60.0
"""Seconds for which an endpoint is left alone that asks for more."""
Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True)
class Message:
    """One message of a chat."""

    role: Role
    content: str

    def document(self) -> dict[str, str]:
        """As the protocols want it."""
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True)
class Form:
    """What the answer must look like: one of `choices`, or JSON after `schema`."""

    choices: tuple[str, ...] = ()
    schema: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int = 64
    usual_tokens: int = 64
    """Below these nearly every answer stays: room for more is left where the context has it."""


@dataclass(frozen=True)
class Question:
    """Messages, and the form of the answer."""

    messages: tuple[Message, ...]
    form: Form

    def again(self, answer: str, reason: str) -> Question:
        """The same question, after an answer that could not be used, with the reason."""
        complaint = (
            f"This answer cannot be used: {reason}. Answer again in exactly the form that was asked for."
        )
        more = (Message("assistant", answer[:2000] or "(empty)"), Message("user", complaint))
        return replace(self, messages=(*self.messages, *more))

    def within(self, max_tokens: int) -> Question:
        """The same question, whose answer may take so many tokens."""
        return replace(self, form=replace(self.form, max_tokens=max_tokens))


@dataclass(frozen=True)
class Token:
    """A token of an answer with its log-probability and those of its rivals."""

    text: str
    logprob: float
    rivals: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Reply:
    """What an endpoint answered, and what it took."""

    text: str
    model: str | None = None
    finish: str | None = None
    refusal: str | None = None
    tokens: tuple[Token, ...] = ()
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    left_out: tuple[str, ...] = ()
    """Parameters of ours that the endpoint does not take: it answered with its own."""

    @property
    def tokens_read(self) -> int:
        """The tokens of the question, at the most: some count those from a cache in, some beside it."""
        return self.prompt_tokens + self.cached_tokens

    @property
    def says_what_it_took(self) -> bool:
        """Whether the tokens of the question are reported, and those of what was generated."""
        generated = self.text or self.refusal or self.finish in ("length", "tool_calls")
        return bool(self.prompt_tokens and (self.completion_tokens or not generated))


Complete = Callable[[Question], Awaitable[Reply]]
_COUNT: ContextVar[Callable[[], None]] = ContextVar("count", default=lambda: None)


@contextmanager
def counting(count: Callable[[], None]) -> Iterator[None]:
    """Call `count` before each further request that a client sends in here for the same question.

    It may raise where no more are to be sent.
    """
    token = _COUNT.set(count)
    try:
        yield
    finally:
        _COUNT.reset(token)


def further_request() -> None:
    """What a client calls before it sends a question that was rejected again, with fewer demands."""
    _COUNT.get()()


@dataclass(frozen=True)
class Parameters:
    """What is sent with every question, and recorded with every rating."""

    temperature: float = 0.0
    seed: int | None = None
    logprobs: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)


class Transient(JudgeError):
    """It may work when asked again; `consumption` is an answer of no use that took tokens all the same."""

    def __init__(self, message: str, consumption: Reply | None = None) -> None:
        super().__init__(message)
        self.consumption = consumption


class Overloaded(Transient):
    """The endpoint wants fewer requests, or has too many to answer in time; when to come back, if it says so.

    It is asked again after LONGEST_PAUSE at the latest, whatever it says.
    """

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = None if after is None else min(after, LONGEST_PAUSE)


class Unreachable(Transient):
    """No connection came about."""


class Refused(JudgeError):
    """The model declined to answer; its text is the message."""


class Rejected(JudgeError):
    """The endpoint does not take this question, and never will."""


class ContextTooSmall(JudgeError):
    """The question is longer than the model's context of `limit` tokens."""

    def __init__(self, message: str, limit: int | None = None) -> None:
        super().__init__(message)
        self.limit = limit


class Fatal(JudgeError):
    """No question will be answered: a wrong key, an unknown model, an endpoint that is gone."""


class UnknownModel(Fatal):
    """The endpoint has no such model; the message names the ones it has."""


class BadAnswer(JudgeError):
    """An answer outside the form; asked again with this reason."""


class CutOff(BadAnswer):
    """An answer, or the thoughts before it, that took all the tokens it had; asked again with more."""


@dataclass(frozen=True)
class Offer:
    """What an endpoint says of itself."""

    models: tuple[str, ...] = ()
    context: int | None = None
    """Tokens that the model takes, where the endpoint says so."""
    in_flight: int | None = None
    """Requests to begin with, where an engine of our own has a number; it is filled where it has none."""


class Client(Protocol):
    """What asks a model: a function with a sign of life."""

    async def offer(self) -> Offer: ...

    async def __call__(self, question: Question) -> Reply: ...


@runtime_checkable
class Startable(Protocol):
    """A client that takes its time to start, and so is started when there is something to ask."""

    async def start(self, questions: int) -> Offer:
        """Be ready for about so many questions; Fatal where that fails."""
        ...
