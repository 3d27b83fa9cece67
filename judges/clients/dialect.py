"""OpenAI's chat protocol as servers speak it: what is sent, what comes back, what a failure means."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from typing import Any

from ...schemas.text import shortened
from ..errors import JudgeError
from .http import Blot
from .protocol import ContextTooSmall, Fatal, Parameters, Question, Rejected, Reply, Token, Transient

TOP_LOGPROBS = 5
ROUNDING = 0.01
"""How much more than 0 a log-probability may be."""
MAX_NAME = 500
"""Characters of a model's name, which every rating keeps; one that is longer is cut off and ends in …."""
_CONTEXT = re.compile(
    r"context[ _](?:length|size)|context[ _]window(?!`)|max_model_len|maximum context"
    r"|too many tokens|too long|too large for model|tokens allowed|`inputs` (?:tokens \+|must have less)"
    r"|request too large",
    re.I,
)
"""What servers say of a question that is too long: those of OpenAI's kind, llama.cpp's, Gemini's, TGI's."""
_NEVER_FITS = re.compile(r"available context size|request too large", re.I)
"""The same under a status that else means to come back: 500 of llama.cpp's, 429 of a limit a minute that the
question passes by itself."""
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d{3,8})(?![\dk])"
_LIMIT = re.compile(
    r"(?:context (?:length|size)(?: is| of)?(?: only)?|max_model_len\D{0,10}|at most|maximum of"
    r"|tokens allowed|n_ctx|must be <=|must have less than|limit(?= \d+, requested))\W{0,4}"
    rf"({_NUMBER})|({_NUMBER}) maximum",
    re.I,
)
_TOO_MUCH = re.compile(r"max_(?:completion_)?tokens\W{1,3}(?:is too large|must be (?:less|at most))", re.I)
"""An error about an answer that may not be so long, whichever parameter asked for it."""
_NO_MODEL = re.compile(
    r"model[^.]{0,120}(?:does not exist|not found|unknown|not a valid model)|model_not_found|invalid model",
    re.I,
)
_MODERATION = re.compile(r"requires moderation|was flagged|content_policy", re.I)
_STRICT = ("choice", "schema", "object", "plain")
"""How an answer is held to its form, the strictest first."""
_WORDLESS = ("content_filter", "length", "tool_calls")
"""Reasons to stop for which a model may have said nothing."""
_FULL = ("model_length", "max_tokens")
"""What Mistral and Anthropic call the reason `length`."""
_BROKEN_OFF = ("error", "abort", "insufficient_system_resource", "network_error")
"""Reasons of servers to stop (OpenRouter's, vLLM's, DeepSeek's, GLM's): the text is what was there then."""


@dataclass(frozen=True)
class State:
    """What was demanded with one request."""

    strict: str
    logprobs: bool
    temperature: bool
    modern: bool


class Dialect:
    """What one endpoint takes; what it rejects is no longer demanded once it has answered without."""

    def __init__(self, model: str, flavour: str, parameters: Parameters) -> None:
        self.model = model
        self.parameters = parameters
        self._least = {"choice": "choice" if flavour == "vllm" else "schema", "schema": "schema"}
        self._logprobs = parameters.logprobs
        self._temperature = True
        self._modern = False
        """Whether it wants max_completion_tokens in place of max_tokens."""
        self._final: str | None = None
        """The text with which a question was rejected last though nothing was demanded with it."""
        self._finals = 0
        """How many in a row were rejected with this text."""

    def demands(self, question: Question) -> State:
        """What is demanded with a question, as far as is known of what the endpoint takes."""
        form = question.form
        return State(
            strict=self._least["choice" if form.choices else "schema"],
            logprobs=self._logprobs and bool(form.choices),
            temperature=self._temperature,
            modern=self._modern,
        )

    def body(self, question: Question, state: State) -> dict[str, Any]:
        """The request's body with these demands."""
        form = question.form
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [message.document() for message in question.messages],
            "max_completion_tokens" if state.modern else "max_tokens": form.max_tokens,
        }
        if state.temperature:
            body["temperature"] = self.parameters.temperature
        if self.parameters.seed is not None:
            body["seed"] = self.parameters.seed
        if state.logprobs:
            body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        if state.strict == "choice":
            body["structured_outputs"] = {"choice": list(form.choices)}
        elif state.strict == "schema":
            schema = {"name": "answer", "schema": form.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif state.strict == "object" and not form.choices:
            body["response_format"] = {"type": "json_object"}
        return body | dict(self.parameters.extra)

    def learn(self, rejected: State, accepted: State) -> None:
        """Note that a question was answered with fewer demands after it was rejected with more.

        Not before: a question that is rejected whatever is demanded with it tells nothing of the others.
        """
        too_strict = _STRICT[_STRICT.index(rejected.strict) : _STRICT.index(accepted.strict)]
        for form, now in self._least.items():
            if now in too_strict:
                self._least[form] = accepted.strict
        self._modern = self._modern or accepted.modern
        self._temperature = self._temperature and accepted.temperature
        self._logprobs = self._logprobs and accepted.logprobs >= rejected.logprobs

    def weaker(self, state: State, content: bytes) -> State | None:
        """What to demand in place of what was rejected; None where the demands were not the reason.

        A text that rejected one question without demands may still be about those of the next one, which is
        asked without any at once; after two such questions it says the same of all others.
        """
        text = content.decode("utf-8", "replace").casefold()
        if _CONTEXT.search(text) or _TOO_MUCH.search(text) or is_unknown_model(content):
            return None
        if state.strict != "plain" and text == self._final:
            return replace(state, strict="plain") if self._finals == 1 else None
        if "max_completion_tokens" in text and not state.modern:
            return replace(state, modern=True)
        if "temperature" in text and state.temperature:
            return replace(state, temperature=False)
        if "logprob" in text and state.logprobs:
            return replace(state, logprobs=False)
        if state.strict != "plain":
            return replace(state, strict=_STRICT[_STRICT.index(state.strict) + 1])
        self._finals = self._finals + 1 if text == self._final else 1
        self._final = text
        return None


def reply(content: bytes | str, blot: Blot) -> Reply:
    """What a 200 says; Transient where its body is no answer of this protocol, or nothing was generated.

    A model that said nothing and stopped for a reason has answered, and what that took is to be counted. One
    that was broken off has not, whatever it had said: `no` may be the beginning of `not applicable`. A field
    beside the text that has the wrong type is ignored.
    """
    consumption = Reply("")
    try:
        document = json.loads(content)
        consumption = usage = _usage(_dictionary(document.get("usage")))
        choice = document["choices"][0]
        if not usage.completion_tokens:
            consumption = Reply("")  # what was generated is not told
        answer = choice["message"]
        result = replace(
            usage,
            text=blot(_message_text(answer.get("content"))),
            model=shortened(blot(_optional_text(document.get("model"))), MAX_NAME) or None,
            finish=_finish(choice),
            refusal=blot(_refusal(answer)) or None,
            tokens=_tokens(choice, blot),
        )
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        excerpt = blot(content if isinstance(content, str) else content.decode("utf-8", "replace"))[:80]
        reason = f"the body of the answer is broken: {blot(repr(error))[:200]}, {excerpt!r}"
        raise Transient(reason, consumption) from error
    if result.finish in _BROKEN_OFF:
        raise Transient(f"the answer was broken off, finish_reason {result.finish!r}", result)
    if not (result.text or result.refusal or result.completion_tokens or result.finish in _WORDLESS):
        raise Transient("the answer is empty", result)
    return result


def message(content: bytes, blot: Blot) -> str:
    """What an error's body says, shortened."""
    text = content.decode("utf-8", "replace")
    try:
        document = json.loads(text)
        error = document.get("error", document)
        reason = error.get("message") or error if isinstance(error, dict) else error
        code = error.get("code") if isinstance(error, dict) else None
        text = f"{reason} ({code})" if isinstance(code, str) else str(reason)
    except (ValueError, AttributeError, RecursionError):
        pass  # plain text
    return blot(text)[:300]


def model_entries(content: bytes) -> list[dict[str, Any]]:
    """The entries of a list of models; [] where the body is no such list."""
    try:
        entries = json.loads(content)["data"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def is_page(content: bytes) -> bool:
    """Whether a body is HTML, as a server that people look at answers whatever it is asked."""
    return content.lstrip()[:1] == b"<"


def token_count(value: Any) -> int | None:
    """A number of tokens; None for anything but a whole number that is not negative."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < 2**31 else None


def is_unknown_model(content: bytes) -> bool:
    """Whether an error says that there is no such model."""
    return bool(_NO_MODEL.search(content.decode("utf-8", "replace")))


def is_out_of_credit(status: int | None, reason: str) -> bool:
    """Whether an error says that nothing is answered until somebody pays."""
    return status == 402 or "insufficient_quota" in reason


def is_moderated(status: int | None, reason: str) -> bool:
    """Whether a 403 is a gateway's refusal of this one question, and not about the key."""
    return status == 403 and bool(_MODERATION.search(reason))


def is_too_long(status: int | None, text: str) -> bool:
    """Whether an error says that the question is longer than what the endpoint ever takes."""
    if status in (400, 413, 422):
        return status == 413 or bool(_CONTEXT.search(text))
    return status in (429, 500) and bool(_NEVER_FITS.search(text))


def context_limit(text: str) -> int | None:
    """The tokens that a model takes by what an error says, if it does."""
    match = _LIMIT.search(text)
    return int((match[1] or match[2]).replace(",", "")) if match else None


def rejection(status: int, content: bytes, reason: str) -> JudgeError:
    """Why a question was rejected for good."""
    text = content.decode("utf-8", "replace")
    if is_too_long(status, text):
        return ContextTooSmall(f"status {status}: {reason}", context_limit(text))
    if 300 <= status < 400:
        return Fatal(f"the endpoint redirects elsewhere (status {status}); give the final --api-base")
    return Rejected(f"status {status}: {reason}")


def _message_text(content: Any) -> str:
    """The text of a message: as it is, or in parts."""
    if not isinstance(content, list):
        return _text(content)
    parts = [part if isinstance(part, dict) else {"text": part} for part in content]
    return "".join(_text(part["text"]) for part in parts if part.get("type", "text") == "text")


def _text(value: Any) -> str:
    if not isinstance(value, str | None):
        raise TypeError(f"expected a text, got {type(value).__name__}")
    return value or ""


def _finish(choice: dict[str, Any]) -> str | None:
    """Why it stopped; litellm calls what it has no name for `stop`, and keeps the name beside it."""
    native = _dictionary(choice.get("provider_specific_fields")).get("native_finish_reason")
    reason = _optional_text(choice.get("finish_reason"))
    if isinstance(native, str) and native.casefold() in (*_FULL, *_BROKEN_OFF):
        reason = native.casefold()
    return "length" if reason in _FULL else reason or None


def _optional_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _refusal(body: dict[str, Any]) -> str:
    """Why a model would not answer; litellm keeps it among what it knows of one provider alone."""
    return _optional_text(
        body.get("refusal") or _dictionary(body.get("provider_specific_fields")).get("refusal")
    )


def _dictionary(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _usage(usage: dict[str, Any]) -> Reply:
    """The numbers of tokens of an answer, as a reply that says nothing yet."""
    return Reply(
        "",
        prompt_tokens=_count(usage, "prompt_tokens"),
        cached_tokens=_count(_dictionary(usage.get("prompt_tokens_details")), "cached_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
    )


def _count(usage: dict[str, Any], name: str) -> int:
    return token_count(usage.get(name)) or 0


def _tokens(choice: dict[str, Any], blot: Blot) -> tuple[Token, ...]:
    """The log-probabilities, none where one of them is no number."""
    entries = _dictionary(choice.get("logprobs")).get("content") or ()
    try:
        return tuple(
            Token(
                blot(str(t.get("token", ""))),
                _logprob(t),
                tuple((blot(str(r["token"])), _logprob(r)) for r in t.get("top_logprobs") or ()),
            )
            for t in entries
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        return ()


def _logprob(entry: dict[str, Any]) -> float:
    value = float(entry["logprob"])
    if math.isnan(value) or value > ROUNDING:
        raise ValueError("a log-probability is no number, or more than 0: maybe a probability")
    return value
