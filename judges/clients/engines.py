"""Engines: what answers questions. Each is a client; the asker, the limits and the ledger are the same.

`local` asks an endpoint over HTTP (or litellm). `vllm` starts a server of its own and asks that. `ray` sends
questions through one Ray Data dataset, whose workers hold the model or ask an endpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import JudgeError
from . import select
from .arguments import Arguments
from .protocol import Client, Parameters

IN_FLIGHT = {"local": 64, "vllm": 256, "ray": 1024}
"""Engine -> requests in flight at the most, where nobody says: an endpoint may be shared, a GPU is filled."""


@dataclass(frozen=True)
class Engine:
    """What answers questions, and how it is run."""

    name: str = "local"
    api_base: str | None = None
    timeout: float = 180.0
    """Seconds until an answer is given up."""
    arguments: Arguments = field(default_factory=dict)
    """Options of vLLM's."""
    workers: int | None = None
    """Ray's workers at the most."""
    logs: Path = Path()
    """Folder for what an engine writes."""
    say: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        if self.name not in IN_FLIGHT:
            raise JudgeError(f"unknown engine {self.name!r}, expected one of {', '.join(IN_FLIGHT)}")
        if self.arguments and (self.name == "local" or self.api_base):
            raise JudgeError(
                "--engine-args are for a model that is run here: --engine vllm, or ray without --api-base"
            )
        if self.workers and self.name != "ray":
            raise JudgeError("--workers is for --engine ray")
        if self.api_base and self.name == "vllm":
            raise JudgeError("engine 'vllm' runs the model itself; --api-base is for engine local or ray")

    def client(self, model: str, parameters: Parameters) -> AbstractAsyncContextManager[Client]:
        """What asks a model; JudgeError names what is missing."""
        if self.name == "local":
            return select.client(model, self.api_base, parameters, self.timeout)
        if self.name == "vllm":
            return self._vllm(model, parameters)
        return self._ray(model, parameters)

    def _vllm(self, model: str, parameters: Parameters) -> AbstractAsyncContextManager[Client]:
        import os

        from . import served

        log = self.logs / f"vllm-{os.getpid()}.log"
        name = weights(model)
        serving = served.Serving(name, self.arguments, log, self.timeout, served.python(), self.say)
        return served.ServedClient(serving, parameters)

    def _ray(self, model: str, parameters: Parameters) -> AbstractAsyncContextManager[Client]:
        from .cluster import client

        return client(self, model, parameters)


def weights(model: str) -> str:
    """The name or folder of a model's weights."""
    return model.removeprefix("hosted_vllm/").removeprefix("vllm/")
