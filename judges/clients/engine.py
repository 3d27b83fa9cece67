"""Which engine answers questions, and how it is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import JudgeError
from .arguments import Arguments

IN_FLIGHT = {"local": 64, "vllm": 1024, "ray": 1024}
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
    cores: int = 1
    """Of this machine, for a Ray that runs here alone, and for the processes of vLLM's server."""
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


def weights(model: str) -> str:
    """The name or folder of a model's weights."""
    return model.removeprefix("hosted_vllm/").removeprefix("vllm/")
