"""Any provider through litellm, imported where it is used: 4 s and 180 MB.

Its network habits are switched off (price map, telemetry), and so are its retries and its cache: asking
again is the asker's, remembering the ledger's.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

from ..errors import JudgeError
from . import dialect
from .http import Blot, blot, retry_after, watch_requests
from .protocol import (
    ContextTooSmall,
    Fatal,
    Offer,
    Overloaded,
    Parameters,
    Question,
    Refused,
    Rejected,
    Reply,
    UnknownModel,
    Unreachable,
    further_request,
)

_PROVIDERS = (
    "anthropic",
    "azure",
    "bedrock",
    "gemini",
    "groq",
    "mistral",
    "ollama",
    "openrouter",
    "vertex_ai",
)
_KEYLESS = "Missing credentials"
"""What OpenAI's client says without a key, which litellm takes for an error of the server."""
_TRACEBACK = "\nTraceback (most recent call last)"
"""Where litellm begins to say where in itself an error came up."""
_UNSENDABLE = re.compile(
    r"Forbidden control character|Illegal header value|'(?:ascii|latin-1)' codec can't encode character"
)
"""What HTTP clients say of a key that no header can hold; a server may say the like of anything."""
_SECRET = re.compile(
    r"(?:_API_KEY|APIKEY|_SECRET_ACCESS_KEY|_SECRET_KEY|_CLIENT_KEY|_TOKEN|_BEARER_TOKEN_BEDROCK|_SECRET|"
    r"_SECRET_ID|_PASSWORD|(?<!GOOGLE_APPLICATION)_CREDENTIALS?|_JWT|\A(?:AIML|COMET)API_KEY)\Z"
)


def _litellm() -> Any:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.drop_params = True
    return litellm


def provider(model: str, api_base: str | None) -> str:
    """litellm's provider of a model; JudgeError names what there is."""
    litellm = _litellm()
    try:
        return str(litellm.get_llm_provider(model=model, api_base=api_base)[1])
    except litellm.exceptions.BadRequestError as error:
        near = difflib.get_close_matches(model, litellm.model_cost, n=5, cutoff=0.5)
        like = f"; names like it: {', '.join(near)}" if near else ""
        raise JudgeError(
            f"unknown model {model!r}, expected hosted_vllm/NAME or openai/NAME with --api-base URL, or a "
            f"name of litellm's, PROVIDER/NAME with one of its {len(litellm.provider_list)} providers "
            f"({', '.join(_PROVIDERS)} ...){like}"
        ) from error


class LiteLLMClient:
    """`await client(question)`; use it as an asynchronous context manager."""

    def __init__(self, model: str, api_base: str | None, parameters: Parameters, timeout: float) -> None:
        self.model = model
        self.api_base = api_base
        self.parameters = parameters
        self.timeout = timeout
        self._structured = True

    async def __aenter__(self) -> LiteLLMClient:
        self._litellm = _litellm()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._litellm.close_litellm_async_clients()

    async def offer(self) -> Offer:
        """What the local list says; nothing is asked."""
        entry = self._litellm.model_cost.get(self.model) or {}
        return Offer(context=entry.get("max_input_tokens"))

    async def __call__(self, question: Question) -> Reply:
        """Ask; without a structured answer from then on, where the model rejects that."""
        structured = self._structured
        try:
            async with asyncio.timeout(self.timeout):  # httpx's own begins anew with every byte
                with watch_requests(self._blot):
                    response = await self._litellm.acompletion(**self._arguments(question, structured))
            document = json.dumps(response.model_dump(warnings=False), default=str)
            return replace(dialect.reply(document, self._blot), left_out=self._left_out)
        except self._litellm.exceptions.BadRequestError as error:
            if structured and "response_format" in str(error):
                self._structured = False
                further_request()
                return await self(question)
            raise self._meaning(error) from error
        except JudgeError:
            raise
        except Exception as error:  # litellm raises its providers' own exceptions as well
            raise _ours(error) or self._meaning(error) from error

    def _arguments(self, question: Question, structured: bool) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self.model,
            "messages": [message.document() for message in question.messages],
            "max_tokens": question.form.max_tokens,
            "temperature": self.parameters.temperature,
            "timeout": self.timeout,
            "max_retries": 0,
            "num_retries": 0,
            **self.parameters.extra,
        }
        if self.api_base:
            arguments["api_base"] = self.api_base
        if self.parameters.seed is not None:
            arguments["seed"] = self.parameters.seed
        if structured:
            schema = {"name": "answer", "schema": question.form.schema, "strict": True}
            arguments["response_format"] = {"type": "json_schema", "json_schema": schema}
        return arguments

    @cached_property
    def _left_out(self) -> tuple[str, ...]:
        """What litellm drops without a word (`drop_params`): with it or without, the same is sent."""
        name, vendor, *_ = self._litellm.get_llm_provider(model=self.model, api_base=self.api_base)

        def sent(**parameters: float) -> Any:
            options = {"model": name, "custom_llm_provider": vendor, "drop_params": True}
            return self._litellm.utils.get_optional_params(**options, **parameters)

        ours = {"temperature": self.parameters.temperature, "seed": self.parameters.seed}
        return tuple(key for key, n in ours.items() if n is not None and sent(**{key: n}) == sent())

    @cached_property
    def _blot(self) -> Blot:
        """Takes what is secret of the environment and the address out of a provider's text."""
        return blot(_secrets(), self.api_base or "")

    def _meaning(self, error: Exception) -> JudgeError:
        kinds = self._litellm.exceptions
        reason = self._blot(str(error)).partition(_TRACEBACK)[0][:400]
        status = getattr(error, "status_code", None)
        if isinstance(error, kinds.ContextWindowExceededError) or dialect.is_too_long(status, reason):
            return ContextTooSmall(reason, dialect.context_limit(reason))
        if isinstance(error, kinds.ContentPolicyViolationError):
            return Refused(f"the endpoint's content policy refused: {reason}")
        if isinstance(error, kinds.NotFoundError):
            return UnknownModel(f"{self.model}: {reason}")
        if dialect.is_moderated(status, reason):
            return Refused(f"the endpoint's moderation refused: {reason}")
        if status in (401, 403) or _KEYLESS in reason:
            return Fatal(f"{self.model}: {reason}")
        *_, root = _causes(error)
        if not hasattr(root, "response") and _UNSENDABLE.search(str(root)):
            return Fatal(f"{self.model}: its key must be one line of ASCII, which a header can hold")
        if dialect.is_out_of_credit(status, reason):
            return Fatal(f"{self.model}: the account is out of credit: {reason}")
        if isinstance(error, kinds.RateLimitError):
            return Overloaded(reason, _retry_after(error))
        if isinstance(error, kinds.Timeout | TimeoutError):
            return Overloaded(f"no answer within {self.timeout:.0f} s")
        if isinstance(error, kinds.APIConnectionError):
            return Unreachable(reason)
        if isinstance(error, kinds.BadRequestError | kinds.UnprocessableEntityError):
            return Rejected(reason)
        return Overloaded(reason, _retry_after(error))


def _ours(error: BaseException) -> JudgeError | None:
    """What the HTTP policy said, which litellm wraps in errors of its own."""
    return next((cause for cause in _causes(error) if isinstance(cause, JudgeError)), None)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _secrets() -> list[str]:
    """All that the environment holds."""
    return [value.strip() for name, value in os.environ.items() if _SECRET.search(name)]


def _retry_after(error: Exception) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    return retry_after(headers.get("retry-after")) if headers else None
