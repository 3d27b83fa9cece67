"""Which client asks a model, by litellm's names."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager

from ...schemas.url import shown_url
from ..errors import JudgeError
from .openai import Endpoint, OpenAIClient
from .protocol import Client, Parameters

OPENAI = "https://api.openai.com/v1"


def endpoint(model: str, api_base: str | None, timeout: float = 180.0) -> Endpoint | None:
    """The OpenAI-protocol endpoint behind a name, or None where litellm has to ask.

    `hosted_vllm/NAME` is vLLM's server, `openai/NAME` any other; with --api-base a name without a
    provider is taken as it is.
    """
    prefix, _, name = model.partition("/")
    if prefix == "hosted_vllm" and name:
        base = api_base or os.environ.get("HOSTED_VLLM_API_BASE")
        if not base:
            raise JudgeError(f"{model}: where is it? Give --api-base URL, such as http://127.0.0.1:8000/v1")
        return Endpoint(_base_url(base), name, "vllm", "HOSTED_VLLM_API_KEY", timeout)
    if prefix == "openai" and name:
        environment = os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE")
        return Endpoint(_base_url(api_base or environment or OPENAI), name, timeout=timeout)
    if api_base and not _known_to_litellm(model):
        return Endpoint(_base_url(api_base), model, timeout=timeout)
    return None


def client(
    model: str, api_base: str | None, parameters: Parameters, timeout: float = 180.0
) -> AbstractAsyncContextManager[Client]:
    """A client for a model, to be used as an asynchronous context manager.

    Raises JudgeError for a name that nobody knows, naming the choices.
    """
    result = endpoint(model, api_base, timeout)
    if result is not None:
        return OpenAIClient(result, parameters)
    from .litellm import LiteLLMClient, provider

    provider(model, api_base)
    return LiteLLMClient(model, api_base, parameters, timeout)


def _known_to_litellm(model: str) -> bool:
    from .litellm import provider

    try:
        provider(model, None)
    except JudgeError:
        return False
    return True


def _base_url(base: str) -> str:
    if not base.startswith(("http://", "https://")):
        raise JudgeError(f"--api-base must begin with http:// or https://, got {shown_url(base)!r}")
    if "?" in base or "#" in base:
        raise JudgeError(f"--api-base {shown_url(base)!r} has a query or a fragment, and a path must follow")
    return base.rstrip("/").removesuffix("/chat/completions")
