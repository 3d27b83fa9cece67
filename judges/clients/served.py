"""vLLM's server as a child of this process, asked like any other endpoint.

It listens on 127.0.0.1 at a free port, with a key that is made up for the run and stands in the environment
alone, and writes what it has to say into a file. A guard holds it, which ends it with all its workers once
this process is gone, whatever ended that. It starts at the first question: a run that has none loads nothing.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import aiohttp

from ...schemas.extras import pip_command
from ..errors import JudgeError
from . import guard
from .arguments import Arguments, command_line
from .openai import Endpoint, OpenAIClient
from .protocol import Fatal, Offer, Parameters, Question, Reply, Transient

PYTHON = "COAUDIT_VLLM_PYTHON"
"""Environment variable: the Python that has vLLM, where it is not this one."""
DEFAULTS: Arguments = {
    "enable_prompt_tokens_details": True,
    "generation_config": "vllm",
    "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
    "disable_uvicorn_access_log": True,
}
"""What is passed where --engine-args says nothing, beside `_api_servers`: cached tokens are counted, JSON has
no endless blanks, and what a rating says of its sampling is all there is, whatever the model's own
generation_config.json adds. The log has no line for each question, so that its end says why a server died."""
API_SERVERS = 4
"""Processes that take questions, at most: they cut prompts into tokens and write answers. One of them kept an
H200 idle half of the time (docs/benchmarks.md)."""
AT_ONCE = 256
"""Requests to begin with, which the limiter raises where they are answered fast: short questions fill an H200
with 1,024 (docs/benchmarks.md), while a long codebook's would time out where that many wait."""
PROGRAM = """
import importlib.metadata, runpy, sys
try:
    importlib.metadata.version("vllm")
    sys.argv[1:1] = ["serve"]
    module = "vllm.entrypoints.cli.main"
except importlib.metadata.PackageNotFoundError:
    module = "vllm.entrypoints.openai.api_server"
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
"""`vllm serve`, which alone starts as many API servers as `api-server-count` or `data-parallel-size` ask for;
one server where it cannot run, as in vLLM's CPU build, whose distribution has another name than `vllm`."""
ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONSAFEPATH": "1",  # no modules from the current folder, which may be one of logs
}


@dataclass(frozen=True)
class ServerSetup:
    """What is served, by what program, and where that writes."""

    model: str
    arguments: Arguments
    log: Path
    timeout: float
    python: str
    cores: int
    say: Callable[[str], None]

    def command(self, port: int) -> list[str]:
        """The server's command line; the key is not on it."""
        fixed = {"model": self.model, "served_model_name": self.model, "host": "127.0.0.1", "port": port}
        options = {**DEFAULTS, **_api_servers(self.arguments, self.cores), **self.arguments, **fixed}
        return [self.python, "-c", PROGRAM, *command_line(options)]


class ServedClient:
    """Starts the server when it is first needed, asks it, and ends it."""

    def __init__(self, serving: ServerSetup, parameters: Parameters) -> None:
        self.serving = serving
        self.parameters = parameters
        self._server: subprocess.Popen[bytes] | None = None
        self._inner: OpenAIClient | None = None

    async def __aenter__(self) -> ServedClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._inner is not None:
            await self._inner.__aexit__()
        if self._server is not None:
            await asyncio.to_thread(guard.release, self._server)

    async def offer(self) -> Offer:
        """Nothing before it is started."""
        return Offer()

    async def start(self, questions: int) -> Offer:
        """Start the server; what it says of itself. Fatal with the end of its log where it ends instead."""
        port, key = _free_port(), secrets.token_urlsafe(24)
        self.serving.say(f"starting vLLM with {self.serving.model}; its log is {self.serving.log}")
        self._server = guard.hold(
            self.serving.command(port), self.serving.log, {**ENVIRONMENT, "VLLM_API_KEY": key}
        )
        address = f"http://127.0.0.1:{port}"
        while not await _healthy(f"{address}/health"):
            self._check()
            await asyncio.sleep(0.5)
        endpoint = Endpoint(
            f"{address}/v1", self.serving.model, "vllm", "", self.serving.timeout, own_key=key
        )
        self._inner = await OpenAIClient(endpoint, self.parameters).__aenter__()
        return replace(await self._inner.offer(), in_flight=AT_ONCE)

    async def __call__(self, question: Question) -> Reply:
        """The server's answer; Fatal with the end of its log once it is gone."""
        assert self._inner is not None
        try:
            return await self._inner(question)
        except Transient:
            self._check()
            raise

    def _check(self) -> None:
        """Fatal where the server has ended."""
        if self._server is not None and self._server.poll() is not None:
            raise Fatal(
                f"vLLM ended with status {self._server.returncode}; the last lines of {self.serving.log}:\n"
                f"{guard.tail(self.serving.log)}"
            )


def python() -> str:
    """The Python that vLLM runs with; JudgeError where there is none."""
    if executable := os.environ.get(PYTHON):
        return executable
    if importlib.util.find_spec("vllm") is None:
        raise JudgeError(
            f"engine 'vllm' needs vLLM, which is not installed here: {pip_command('vllm')}, or name the "
            f"Python of an environment that has it in {PYTHON}"
        )
    return sys.executable


def _api_servers(arguments: Arguments, cores: int) -> Arguments:
    """How many processes take questions: one for each four cores. None is said where that leaves one, or
    where data parallelism, of which vLLM makes one for each part, or elastic experts, which allow one, are
    asked for."""
    count = min(API_SERVERS, cores // 4)
    parallel = any(name.startswith("data_parallel") or name == "enable_elastic_ep" for name in arguments)
    return {} if count < 2 or parallel else {"api_server_count": count}


async def _healthy(url: str) -> bool:
    timeout = aiohttp.ClientTimeout(total=2)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
            return answer.status == 200
    except (TimeoutError, aiohttp.ClientError, OSError):
        return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
