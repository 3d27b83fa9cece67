"""Tokens a second of one vLLM server on this machine's GPU: prompts that are read, answers that are written.

    PYTHON benchmarks/serving.py MODEL [--engine-args load-format=dummy] [--questions 512] [--in-flight 256]

PYTHON is of an environment that has vLLM; of coaudit nothing is needed. Lengths are those of the failure
codebook's questions by `judge`'s own estimate. Each prompt is made of tokens at random, so that none is in
the prefix cache; those of the last line have most of their tokens from one beginning.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp

PROMPT, ANSWER, SHARED = 8_830, 780, 0.93
START_SECONDS = 300


async def ready(server: subprocess.Popen[bytes], url: str) -> None:
    """Wait until the server serves."""
    deadline = time.monotonic() + START_SECONDS
    async with aiohttp.ClientSession() as session:
        while time.monotonic() < deadline:
            if server.poll() is not None:
                sys.exit(f"vLLM ended with status {server.returncode}")
            try:
                async with session.get(f"{url}/health") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.5)
    sys.exit(f"vLLM did not serve within {START_SECONDS} s")


async def answered(url: str, prompts: list[list[int]], tokens: int, in_flight: int) -> tuple[float, int]:
    """Seconds in which all prompts were answered with so many tokens each, and tokens written."""
    turn, written = asyncio.Semaphore(in_flight), 0
    wires = aiohttp.TCPConnector(limit=in_flight)  # else it has 100
    async with aiohttp.ClientSession(connector=wires, timeout=aiohttp.ClientTimeout(total=None)) as session:

        async def one(prompt: list[int]) -> int:
            body = {"model": "model", "prompt": prompt, "max_tokens": tokens, "ignore_eos": True}
            async with turn, session.post(f"{url}/v1/completions", json=body) as answer:
                usage = (await answer.json())["usage"]
                return int(usage["completion_tokens"])

        began = time.monotonic()
        written = sum(await asyncio.gather(*map(one, prompts)))
        return time.monotonic() - began, written


async def measure(url: str, words: int, questions: int, in_flight: int) -> None:
    """Print a line for each kind of load."""
    chance = random.Random(7)

    def prompts(count: int, length: int) -> list[list[int]]:
        return [chance.choices(range(2, words), k=length) for _ in range(count)]

    await answered(url, prompts(in_flight, 64), 8, in_flight)  # what is compiled or captured at first use
    seconds, _ = await answered(url, prompts(questions, PROMPT), 1, in_flight)
    print(f"read       {questions * PROMPT / seconds:10,.0f} prompt tokens a second, none cached", flush=True)
    seconds, written = await answered(url, prompts(questions, 64), ANSWER, in_flight)
    print(f"write      {written / seconds:10,.0f} answer tokens a second after prompts of 64", flush=True)
    (begin,) = prompts(1, int(PROMPT * SHARED))
    asked = [begin + rest for rest in prompts(questions, PROMPT - len(begin))]
    await answered(url, [begin], 1, 1)
    seconds, written = await answered(url, asked, ANSWER, in_flight)
    print(
        f"questions  {questions / seconds:10,.2f} a second of {PROMPT:,} prompt tokens, {SHARED:.0%} of them"
    )
    print(
        f"           cached, and {ANSWER} answer tokens: {written / seconds:,.0f} of these a second",
        flush=True,
    )


def main() -> None:
    """Start the server, measure, end it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("model", type=Path)
    options.add_argument("--engine-args", action="append", default=[])
    options.add_argument("--questions", type=int, default=512)
    options.add_argument("--in-flight", type=int, default=256)
    options.add_argument("--log", type=Path, default=Path("vllm.log"))
    given = options.parse_args()
    words = json.loads((given.model / "config.json").read_text())["vocab_size"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command: list[Any] = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", given.model]
    command += [
        "--served-model-name",
        "model",
        "--host",
        "127.0.0.1",
        "--port",
        port,
        "--max-model-len",
        16_384,
    ]
    command += [f"--{argument}" for argument in given.engine_args]
    quiet = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    with given.log.open("wb") as log:
        server = subprocess.Popen(
            list(map(str, command)), env={**os.environ, **quiet}, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            began = time.monotonic()
            url = f"http://127.0.0.1:{port}"
            asyncio.run(ready(server, url))
            print(f"serves     after {time.monotonic() - began:.0f} s", flush=True)
            asyncio.run(measure(url, words, given.questions, given.in_flight))
        finally:
            server.terminate()
            server.wait(60)


if __name__ == "__main__":
    main()
