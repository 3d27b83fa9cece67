"""`coaudit follow --judge`: units rated as they complete, by rules, by detectors and by a model."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import web

from coaudit.pipeline import codebooks
from coaudit.pipeline.follow import rule_judge
from coaudit.pipeline.follow.sink import Sink
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.store import Store, Workspace, dictionaries
from coaudit.pipeline.store.ledgers import ledger
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.cogym.generate import generate
from coaudit.schemas import Rating
from tests.conftest import ROOT, Coaudit
from tests.judges.endpoint import Endpoint
from tests.pipeline.follow.conftest import Following, Server, until
from tests.pipeline.follow.emulator import AGENT, USER, Env

pytestmark = pytest.mark.slow
Follow = Callable[..., Following]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint().serving() as serving:
        yield serving


def model(endpoint: Endpoint, *codebooks: str) -> list[str]:
    """The options that have these codebooks judged by the endpoint's model."""
    books = [part for name in codebooks for part in ("--judge", name)]
    return [*books, "--model", "hosted_vllm/judge", "--api-base", endpoint.url]


def judged(coaudit: Coaudit, endpoint: Endpoint, *codebooks: str) -> dict[str, int]:
    """What `coaudit judge` has left to do."""
    books = [part for name in codebooks for part in ("--codebook", name)]
    asked = ["--model", "hosted_vllm/judge", "--api-base", endpoint.url]
    found: dict[str, int] = coaudit("judge", *books, *asked, "--json").json
    return found


def held(workspace: Path) -> list[Rating]:
    """Every rating in the ledgers."""
    items = [item for path in ledger.files(workspace / "ratings") for item, _ in ledger.ratings(path)]
    return [item for item in items if isinstance(item, Rating)]


def rated(workspace: Path, codebook: str) -> int:
    """Units of a codebook that the store has ratings of, as it is without loading any ledger."""
    query = """
        SELECT count(DISTINCT (trajectory_id, event, unit_hash)) AS n FROM ratings WHERE codebook = ?
    """
    with Store(Workspace(workspace), read_only=True).reading(synced=True) as connection:
        return int(dictionaries(connection, query, [codebook])[0]["n"])


def messages(workspace: Path) -> int:
    """Messages of the team that the store has."""
    query = "SELECT count(*) AS n FROM events WHERE kind = 'message'"
    with Store(Workspace(workspace), read_only=True).reading(synced=True) as connection:
        return int(dictionaries(connection, query)[0]["n"])


def say(env: Env, role: str, text: str) -> None:
    env.step(role, f"SEND_TEAMMATE_MESSAGE(message={text})")


def test_more_sessions_at_once_than_are_remembered_are_each_rated_once(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_judge, "REMEMBERED", 2)
    generate(tmp_path / "logs", 5, 1)
    store = Store(Workspace(workspace))
    ingest(store, [tmp_path / "logs"], ReadOptions())
    with store.reading() as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM trajectories").fetchall()]
        sessions = list(store.load(connection, ids))
    judge = rule_judge.LiveJudge(Sink(store), [codebooks.load("initiative")])
    for some in (sessions[:3], sessions, sessions[2:], sessions[:2]):
        asyncio.run(judge(some))
        judge.sink.flush()
    judge.ledger.close()
    assert judge.rated == len(held(workspace)) == rated(workspace, "initiative") > 5


def test_a_question_is_judged_when_its_reply_came_and_a_trajectory_when_it_ended(
    redis: Server, follow: Follow, coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    follower = follow(redis.url, *model(endpoint, "confirmation", "failures")).ready(redis)
    env = Env("env_travel_planning_0", redis.publish)
    env.start()
    say(env, AGENT, "Shall I book it?")
    until(lambda: messages(workspace) == 2)
    assert not endpoint.asked
    say(env, USER, "Yes, please.")
    until(lambda: rated(workspace, "confirmation") == 1)
    assert endpoint.requests == 1
    env.step(USER, "FINISH()")
    until(lambda: rated(workspace, "failures") == 1)
    summary = json.loads(follower.stop())
    assert (summary["rated"], summary["requests"]) == (2, 2)
    assert {r.rater_kind for r in held(workspace)} == {"llm"}
    done = judged(coaudit, endpoint, "confirmation", "failures")
    assert (done["already"], done["requests"]) == (2, 0)


def test_a_follower_that_was_killed_asks_nothing_twice_when_it_is_back(
    redis: Server, follow: Follow, workspace: Path, endpoint: Endpoint
) -> None:
    options = [redis.url, *model(endpoint, "initiative")]
    follower = follow(*options).ready(redis)
    env = Env("env_travel_planning_0", redis.publish)
    env.start()
    for number in range(4):
        say(env, USER, f"Please look at day {number}.")
    until(lambda: rated(workspace, "initiative") == 4)
    follower.kill()
    until(lambda: not redis.subscribers())
    follower = follow(*options).ready(redis)
    say(env, AGENT, "Here is day 4.")
    until(lambda: rated(workspace, "initiative") == 5)
    assert json.loads(follower.stop())["rated"] == 1
    assert (endpoint.requests, endpoint.asked_twice) == (5, 0)


def test_an_endpoint_that_dies_is_said_once_and_asked_again_when_it_is_back(
    redis: Server, follow: Follow, workspace: Path
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    endpoint = Endpoint()
    env = Env("env_travel_planning_0", redis.publish)
    with endpoint.serving(port):
        follower = follow(redis.url, *model(endpoint, "initiative")).ready(redis)
        env.start()
        say(env, USER, "Before")
        until(lambda: rated(workspace, "initiative") == 1)
    say(env, USER, "Meanwhile")
    until(lambda: "following goes on" in follower.said)
    say(env, AGENT, "Still meanwhile")
    until(lambda: messages(workspace) == 4)
    time.sleep(3)  # it is tried again in silence
    with endpoint.serving(port):
        until(lambda: rated(workspace, "initiative") == 3)
        say(env, AGENT, "Afterwards")
        until(lambda: rated(workspace, "initiative") == 4)
        follower.stop()
    assert follower.said.count("cannot be reached") == 1 and "answers again" in follower.said
    assert all(r.error is None for r in held(workspace))
    assert endpoint.asked_twice == 0


def test_an_endpoint_that_hangs_holds_nobody_up_and_what_is_left_is_said(
    redis: Server, follow: Follow, coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    endpoint.latency = 600.0
    follower = follow(redis.url, *model(endpoint, "initiative"), "--concurrency", "2").ready(redis)
    env = Env("env_travel_planning_0", redis.publish)
    env.start()
    for number in range(30):
        say(env, USER, f"Please look at day {number}.")
    until(lambda: messages(workspace) == 31)
    until(lambda: endpoint.in_flight == 2)
    began = time.monotonic()
    assert json.loads(follower.stop())["rated"] == 0
    assert time.monotonic() - began < 15
    assert "30 units not judged yet: `coaudit judge --codebook initiative" in follower.said
    endpoint.latency = 0.0
    done = judged(coaudit, endpoint, "initiative")
    assert (done["rated"], done["already"]) == (30, 0)


def test_a_budget_that_is_spent_ends_the_judging_and_not_the_following(
    redis: Server, follow: Follow, workspace: Path, endpoint: Endpoint
) -> None:
    follower = follow(redis.url, *model(endpoint, "initiative"), "--max-requests", "2").ready(redis)
    env = Env("env_travel_planning_0", redis.publish)
    env.start()
    for number in range(5):
        say(env, USER, f"Please look at day {number}.")
    until(lambda: "stopped judging: --max-requests 2 is reached" in follower.said)
    say(env, USER, "And at this.")
    until(lambda: messages(workspace) == 7)
    assert json.loads(follower.stop())["requests"] == 2
    assert "4 units not judged yet" in follower.said


def test_failures_are_found_by_the_detectors_when_a_trajectory_ends(
    redis: Server, follow: Follow, coaudit: Coaudit, workspace: Path
) -> None:
    follower = follow(redis.url, "--judge", "failures,halting").ready(redis)
    env = Env("env_travel_planning_0", redis.publish)
    env.start()
    say(env, USER, "Stop, please.")
    until(lambda: rated(workspace, "halting") == 1)
    assert rated(workspace, "failures") == 0
    env.step(USER, "FINISH()")
    until(lambda: rated(workspace, "failures") == 1)
    assert json.loads(follower.stop())["rated"] == 2
    assert {(r.codebook, r.rater) for r in held(workspace)} == {
        ("failures", "detectors"),
        ("halting", "rules"),
    }
    for rater, codebook in (("detectors", "failures"), ("rules", "halting")):
        done = coaudit("judge", "--rater", rater, "--codebook", codebook, "--json").json
        assert (done["rated"], done["already"]) == (0, 1)


@pytest.mark.parametrize(
    ("codebook", "logs"), [("dilemmas", "rehac"), ("collaborative_errors", "overcooked/logs")]
)
def test_a_systems_own_detectors_rate_its_trajectories_once_they_are_still(
    follow: Follow, coaudit: Coaudit, workspace: Path, codebook: str, logs: str
) -> None:
    runs = ROOT / "data" / "overcooked"
    # What its runs are measured against comes with an ingest, of another run here.
    coaudit("ingest", runs / "logs" / "human", "--reference", runs / "reference")
    follow(ROOT / "data" / logs, "--judge", codebook, "--stop-when-idle", "4").finish()
    assert {(r.codebook, r.rater) for r in held(workspace)} == {(codebook, "detectors")}
    units = {r.trajectory for r in held(workspace)}
    done = coaudit("judge", "--rater", "detectors", "--codebook", codebook, "--json").json
    assert len({r.trajectory for r in held(workspace)} - units) == done["rated"]
    assert done["already"] == len(units) > 0


def test_an_endpoint_that_is_not_there_is_said_at_the_start(follow: Follow) -> None:
    gone = ["--model", "hosted_vllm/judge", "--api-base", "http://127.0.0.1:9/v1"]
    follower = follow("redis://127.0.0.1:1/0", "--judge", "initiative", *gone)
    follower.finish(status=1)
    assert "http://127.0.0.1:9/v1: cannot be reached" in follower.said


def test_a_key_that_no_header_holds_is_said_at_the_start(follow: Follow) -> None:
    gone = ["--model", "hosted_vllm/judge", "--api-base", "http://127.0.0.1:9/v1"]
    follower = follow("redis://127.0.0.1:1/0", "--judge", "initiative", *gone, HOSTED_VLLM_API_KEY="sk-a\nb")
    follower.finish(status=2)
    assert follower.said.strip().endswith(
        "HOSTED_VLLM_API_KEY must be one line of ASCII, which a header can hold"
    )
    assert "unexpected" not in follower.said


def test_a_model_that_the_endpoint_lacks_is_said_at_the_start(follow: Follow, endpoint: Endpoint) -> None:
    endpoint.models = ("large", "small")
    missing = {"error": {"message": "The model `judge` does not exist."}}
    endpoint.answer = lambda _: web.json_response(missing, status=404)
    follower = follow("redis://127.0.0.1:1/0", *model(endpoint, "initiative"))
    follower.finish(status=2)
    assert "it offers large, small" in follower.said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "hosted_vllm/x"], "--model needs --judge CODEBOOK"),
        (["--rater", "rules"], "--rater needs --judge CODEBOOK"),
        (["--advise-above", "0.1"], "--advise-above needs --advise FILE"),
        (["--judge", "initiative", "--model", "hosted_vllm/x"], "Give --api-base URL"),
        (
            ["--judge", "initiative", "--model", "openai/x", "--rater", "rules"],
            "a model cannot rate as 'rules'",
        ),
        (["--judge", "initiative", "--model", "openai/gpt-4o-mini"], "per million tokens"),
        (["--judge", "initiative", "--rater", "jury"], "'jury' does not rate while following"),
        (["--judge", "initiative", "--rater", "detectors"], "only failures"),
        (["--judge", "related_work_quality"], "'related_work_quality' needs --model"),
        (["--judge", "nix"], "unknown codebook 'nix'"),
    ],
)
def test_wrong_use_names_the_choices(follow: Follow, tmp_path: Path, options: list[str], said: str) -> None:
    follower = follow(tmp_path, *options)
    follower.finish(status=2)
    assert said in follower.said
