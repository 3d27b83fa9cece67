"""Engines: what answers questions. Each is a client; the asker, the limits and the ledger are the same.

`local` asks an endpoint over HTTP (or litellm). `vllm` runs a model in this process, `ray` in the actors
of a Ray cluster: both gather the questions that are waiting and answer them as a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from ..errors import JudgeError
from . import select
from .protocol import Client, Parameters


def _vllm(model: str, parameters: Parameters) -> AbstractAsyncContextManager[Client]:
    from .offline import vllm_client

    return vllm_client(model, parameters)


def _ray(model: str, parameters: Parameters) -> AbstractAsyncContextManager[Client]:
    from .offline import ray_client

    return ray_client(model, parameters)


BATCHED: dict[str, Callable[[str, Parameters], AbstractAsyncContextManager[Client]]] = {
    "vllm": _vllm,
    "ray": _ray,
}


def client(
    engine: str, model: str, api_base: str | None, parameters: Parameters, timeout: float
) -> AbstractAsyncContextManager[Client]:
    """The client of an engine; JudgeError names the engines, or the extra that is missing."""
    if engine == "local":
        return select.client(model, api_base, parameters, timeout)
    if engine not in BATCHED:
        raise JudgeError(f"unknown engine {engine!r}, expected one of local, {', '.join(BATCHED)}")
    if api_base is not None:
        raise JudgeError(f"engine {engine!r} runs the model itself; --api-base is for engine local")
    return BATCHED[engine](model, parameters)
