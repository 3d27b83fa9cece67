"""Engines: what answers questions. Each is a client; the asker, the limits and the ledger are the same.

`local` asks an endpoint over HTTP (or litellm). `vllm` starts a server of its own and asks that. `ray` sends
questions through one Ray Data dataset, whose workers hold the model or ask an endpoint.
"""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager

from . import select
from .engine import Engine, weights
from .protocol import Client, Parameters


def client(engine: Engine, model: str, parameters: Parameters) -> AbstractAsyncContextManager[Client]:
    """What asks a model; JudgeError names what is missing."""
    if engine.name == "local":
        return select.client(model, engine.api_base, parameters, engine.timeout)
    if engine.name == "vllm":
        return _vllm(engine, model, parameters)
    from .cluster import client as of_cluster

    return of_cluster(engine, model, parameters)


def _vllm(engine: Engine, model: str, parameters: Parameters) -> AbstractAsyncContextManager[Client]:
    from . import served

    log = engine.logs / f"vllm-{os.getpid()}.log"
    serving = served.ServerSetup(
        weights(model), engine.arguments, log, engine.timeout, served.python(), engine.cores, engine.say
    )
    return served.ServedClient(serving, parameters)
