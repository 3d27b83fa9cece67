"""Engine ray with a real Ray on this machine and two workers that ask a local endpoint."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from coaudit.judges.clients.cluster.ray_client import RayClient
from coaudit.judges.clients.engine import Engine
from coaudit.judges.clients.protocol import Fatal, Form, Message, Parameters, Question
from tests.conftest import Coaudit
from tests.judges.clients.processes import below, runs, wait_until
from tests.judges.endpoint import Endpoint, fitting
from tests.pipeline.judge.test_run import chatter, fill, held

pytestmark = pytest.mark.slow
SECONDS = 600
"""Ray takes ten to sixty seconds to begin, by what else the machine does."""
installed = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed here")


def judged(endpoint: Endpoint | None, *options: str) -> list[str]:
    """The arguments of a run on initiative through Ray."""
    where = ["--api-base", endpoint.url] if endpoint else []
    model = ["--model", "hosted_vllm/judge", *where]
    return ["judge", "--json", "--codebook", "initiative", "--engine", "ray", *model, *options]


def started(workspace: Path, *arguments: str) -> subprocess.Popen[str]:
    """A run in a process of its own."""
    command = [sys.executable, "-P", "-m", "coaudit.pipeline", *arguments]
    environment = {**os.environ, "COAUDIT_WORKSPACE": str(workspace)}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def titles(pids: list[int]) -> dict[int, str]:
    """What processes call themselves."""
    result = {}
    for pid in pids:
        try:
            result[pid] = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").replace("\0", " ")
        except OSError:
            continue
    return result


def units(workspace: Path) -> Counter[tuple[str, int | None]]:
    """Trajectory and event -> ratings in the ledger."""
    return Counter((rating.trajectory, rating.event) for rating in held(workspace))


@installed
def test_all_is_rated_once_malformed_answers_are_asked_again_and_a_bad_row_costs_itself(
    workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(20))
    attempts: Counter[str] = Counter()

    def answer(body: dict[str, Any]) -> str | web.Response:
        asked = body["messages"][1]["content"]
        attempts[asked] += 1
        if "item 1 of 3?" in asked:
            return web.json_response({"error": {"message": "this prompt is refused"}}, status=400)
        if "item 2 of 5?" in asked and attempts[asked] == 1 and len(body["messages"]) == 2:
            return "perhaps"
        return fitting(body, asked.encode())

    endpoint.answer = answer
    run = started(workspace, *judged(endpoint, "--workers", "2"))
    out, err = run.communicate(timeout=SECONDS)
    done = json.loads(out)  # one document, and nothing of Ray's, on stdout
    assert (run.returncode, done["rated"], done["errors"]) == (0, 79, 1), err
    assert set(units(workspace).values()) == {1} and len(units(workspace)) == 80
    (bad,) = [rating for rating in held(workspace) if rating.error is not None]
    assert bad.error is not None and "this prompt is refused" in bad.error
    twice = [asked for asked, count in attempts.items() if count == 2]
    assert len(twice) == 1 and "item 2 of 5?" in twice[0]


@installed
def test_a_worker_that_is_killed_in_mid_run_costs_what_it_had_in_flight_and_nothing_else(
    workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(150))
    endpoint.latency = 0.5
    run = started(workspace, *judged(endpoint, "--workers", "2", "--concurrency", "64"))
    try:
        assert wait_until(lambda: endpoint.requests >= 100, SECONDS), endpoint.requests
        workers = [pid for pid, name in titles(below(run.pid)).items() if "EndpointWorker" in name]
        assert workers
        os.kill(workers[0], 9)
        out, err = run.communicate(timeout=SECONDS)
    finally:
        run.kill()
    done = json.loads(out)
    assert (run.returncode, done["rated"], done["errors"]) == (0, 600, 0), err
    assert set(units(workspace).values()) == {1} and len(units(workspace)) == 600
    assert endpoint.asked_twice <= 64  # what was in flight, at the most


@installed
def test_kill_9_of_a_run_leaves_nothing_of_ray_and_what_was_answered_is_not_asked_again(
    workspace: Path, endpoint: Endpoint, process: Coaudit
) -> None:
    fill(workspace, *chatter(60))
    endpoint.latency = 0.3
    run = started(workspace, *judged(endpoint, "--workers", "2", "--concurrency", "32"))
    try:
        assert wait_until(lambda: endpoint.requests >= 60, SECONDS), endpoint.requests
        time.sleep(0.5)
        there = below(run.pid)
        assert any("raylet" in name for name in titles(there).values())
    finally:
        run.kill()
        run.communicate()
    assert wait_until(lambda: not any(map(runs, there)), 30), titles([pid for pid in there if runs(pid)])
    first = len(units(workspace))
    assert 0 < first < 240
    done = process(*judged(endpoint, "--engine", "local")).json
    assert (done["rated"], done["already"]) == (240 - first, first)
    assert set(units(workspace).values()) == {1}


@installed
def test_where_all_is_rated_ray_does_not_start(workspace: Path, endpoint: Endpoint, process: Coaudit) -> None:
    fill(workspace, *chatter(1))
    process(*judged(endpoint, "--engine", "local"))
    done = process(*judged(endpoint))
    assert done.json["already"] == 4 and "starting Ray" not in done.err


@installed
def test_a_cluster_that_is_not_there_is_said(workspace: Path, endpoint: Endpoint, process: Coaudit) -> None:
    fill(workspace, *chatter(1))
    done = process(*judged(endpoint), status=1, RAY_ADDRESS="127.0.0.1:9")
    assert "Ray at 127.0.0.1:9 cannot be reached" in done.err


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vllm is installed here")
def test_without_vllm_what_to_install_is_said(workspace: Path, coaudit: Coaudit) -> None:
    fill(workspace, *chatter(1))
    assert "pip install 'coaudit[ray" in coaudit(*judged(None), status=2).err


@installed
def test_an_endpoint_of_another_protocol_is_refused(workspace: Path, coaudit: Coaudit) -> None:
    fill(workspace, *chatter(1))
    options = ["judge", "--engine", "ray", "--model", "anthropic/x", "--api-base", "http://127.0.0.1:9"]
    assert "engine 'ray' asks endpoints of OpenAI's protocol" in coaudit(*options, status=2).err


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights of a two-layer random model; skipped where vLLM cannot be imported."""
    if importlib.util.find_spec("vllm") is None or importlib.util.find_spec("ray") is None:
        pytest.skip("vllm and ray are not both installed here")
    folder = tmp_path_factory.mktemp("tiny")
    program = Path(__file__).parents[1] / "tiny_model.py"
    subprocess.run([sys.executable, program, folder], check=True)
    return folder


def loaded(model: Path) -> list[str]:
    """The arguments of a run with vLLM in one worker on a CPU."""
    options = ["--engine-args", "dtype=float32", "--engine-args", f"max_model_len={16_384}"]
    words = ["judge", "--json", "--codebook", "initiative", "--engine", "ray", "--workers", "1"]
    return [*words, "--model", str(model), *options]


ON_CPU = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"}


def test_vllm_in_a_worker_rates_all_with_probabilities(workspace: Path, process: Coaudit, tiny: Path) -> None:
    fill(workspace, *chatter(5))
    done = process(*loaded(tiny), **ON_CPU).json
    assert (done["rated"], done["errors"]) == (20, 0) and done["prompt_tokens"] > 20_000
    assert set(units(workspace).values()) == {1}
    for rating in held(workspace):
        assert rating.label in ("yes", "no", "unclear")
        assert rating.probability is not None and 0 < rating.probability <= 1


def test_a_model_that_a_worker_lacks_is_said(workspace: Path, process: Coaudit, tiny: Path) -> None:
    fill(workspace, *chatter(1))
    done = process(*loaded(tiny.parent / "not there"), status=1, **ON_CPU)
    assert "Ray gave up" in done.err and "not there" in done.err
    assert done.json["rated"] == 0


class Broken:
    """A stream whose Ray is gone."""

    is_full = False

    def put(self, rows: list[Any]) -> int:
        raise RuntimeError("the actor died")


async def test_a_question_that_cannot_be_handed_over_fails_and_so_does_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = RayClient(Engine("ray", logs=tmp_path), "m", Parameters(), None)
    monkeypatch.setattr(client.connection, "open", lambda: None)
    monkeypatch.setattr(client, "_make_stage", lambda: None)
    monkeypatch.setattr(client, "_begin", lambda questions: setattr(client, "_stream", Broken()))
    monkeypatch.setattr(client, "_is_due", lambda: True)
    await client.start(1)
    question = Question(messages=(Message("user", "hi"),), form=Form(("a",), {}, 1))
    for _ in range(2):
        with pytest.raises(Fatal, match="Ray gave up: the actor died"):
            await asyncio.wait_for(client(question), 10)


async def test_a_dataset_that_does_not_begin_ends_the_run_with_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(questions: int) -> None:
        raise RuntimeError("no room for the actor")

    client = RayClient(Engine("ray", logs=tmp_path), "m", Parameters(), None)
    monkeypatch.setattr(client.connection, "open", lambda: None)
    monkeypatch.setattr(client, "_make_stage", lambda: None)
    monkeypatch.setattr(client, "_begin", begin)
    with pytest.raises(Fatal, match="Ray gave up: no room for the actor"):
        await client.start(1)


async def test_a_second_dataset_that_does_not_begin_fails_what_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    def begin(questions: int) -> None:
        begun.append(questions)
        if len(begun) > 1:
            raise RuntimeError("no room for the actor")
        monkeypatch.setattr(client, "_over", True)

    client = RayClient(Engine("ray", logs=tmp_path), "m", Parameters(), None)
    monkeypatch.setattr(client.connection, "open", lambda: None)
    monkeypatch.setattr(client, "_make_stage", lambda: None)
    monkeypatch.setattr(client, "_begin", begin)
    await client.start(1)
    with pytest.raises(Fatal, match="Ray gave up: no room for the actor"):
        await asyncio.wait_for(client(Question((Message("user", "hi"),), Form(("a",), {}, 1))), 10)
    assert len(begun) == 2
