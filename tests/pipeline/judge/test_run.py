"""`coaudit judge` as it is used: the ledger as cache, kills, budgets, two runs at a time, bad input."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from coaudit.pipeline.ingest.measure import save
from coaudit.pipeline.store.ledgers import ledger
from coaudit.schemas import Outcome, Rating, Trajectory
from tests.conftest import Coaudit
from tests.judges.endpoint import Endpoint, Faults
from tests.judges.teams import team
from tests.pipeline.stores import made, verdict, write_lines


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint().serving() as serving:
        yield serving


def fill(workspace: Path, *logs: Trajectory) -> None:
    store = made(workspace)
    with store.writing() as connection:
        save(store, logs, connection)


@pytest.fixture(scope="module")
def unrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a session to which nothing gets added."""
    workspace = tmp_path_factory.mktemp("unrated") / "workspace"
    fill(workspace, *chatter(1))
    return workspace


def chatter(sessions: int, messages: int = 4) -> list[Trajectory]:
    """Sessions with messages that all differ."""
    return [
        team(
            *[(("human", "agent")[i % 2], f"Please check item {i} of {s}?") for i in range(messages)],
            key=f"t{s}",
        )
        for s in range(sessions)
    ]


def held(workspace: Path) -> list[Rating]:
    """Every rating in the ledgers."""
    items = [item for path in ledger.files(workspace / "ratings") for item, _ in ledger.ratings(path)]
    return [item for item in items if isinstance(item, Rating)]


def judged(endpoint: Endpoint, *options: str) -> list[str]:
    """The arguments of a run on initiative."""
    wanted = ["judge", "--json", "--model", "hosted_vllm/judge", "--api-base", endpoint.url]
    return [*wanted, "--codebook", "initiative", *options]


@pytest.mark.long
def test_the_rules_rate_the_three_process_codebooks(coaudit: Coaudit, workspace: Path) -> None:
    fill(workspace, team(("human", "Please add a chart."), ("agent", "Shall I use blue?"), ("human", "Yes.")))
    done = coaudit("judge", "--json").json
    assert (done["rated"], done["already"], done["requests"], done["cost_usd"]) == (6, 0, 0, None)
    assert coaudit("judge", "--json").json["already"] == 6
    assert {r.codebook for r in held(workspace)} == {"initiative", "confirmation", "halting"}


def test_a_summary_has_exactly_the_fields_that_others_rely_on(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(2))
    done = coaudit(*judged(endpoint)).json
    assert list(done) == [
        "rated",
        "already",
        "errors",
        "requests",
        "prompt_tokens",
        "cached_tokens",
        "completion_tokens",
        "cost_usd",
        "seconds",
    ]
    assert (done["rated"], done["requests"], done["cached_tokens"] > 0) == (8, 8, True)


@pytest.mark.long
def test_what_was_asked_is_not_asked_again_and_a_rating_says_what_made_it(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(2))
    coaudit(*judged(endpoint, "--seed", "5"))
    done = coaudit(*judged(endpoint, "--seed", "5")).json
    assert (done["rated"], done["already"], done["requests"]) == (0, 8, 0)
    assert len(endpoint.asked) == 8
    rating = held(workspace)[0]
    assert rating.rater == "hosted_vllm/judge" and rating.rater_kind == "llm" and rating.rater_version
    assert rating.model == "judge" and rating.prompt_hash and rating.seed == 5
    assert rating.parameters == {
        "model": "hosted_vllm/judge",
        "temperature": 0.0,
        "context": "none",
        "seed": 5,
    }
    assert rating.prompt_tokens and rating.cached_tokens and rating.completion_tokens and rating.seconds


@pytest.mark.slow
def test_other_parameters_context_or_codebook_are_asked(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(1))
    coaudit(*judged(endpoint))
    for options in (["--seed", "1"], ["--context", "preceding"], ["--temperature", "0.5"]):
        assert coaudit(*judged(endpoint, *options)).json["requests"] == 4
    done = coaudit(*judged(endpoint)).json
    assert (done["rated"], done["requests"]) == (4, 0)  # said again from the ledger: it is the last word
    assert coaudit(*judged(endpoint)).json["already"] == 4


@pytest.mark.long
def test_another_name_for_the_same_question_is_answered_from_the_ledger(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(1))
    coaudit(*judged(endpoint, "--limit", "3"))
    done = coaudit(*judged(endpoint, "--rater", "second"))
    assert "1 unit to ask about: about 1 request," in done.err
    assert (done.json["rated"], done.json["requests"]) == (4, 1)
    assert {r.rater for r in held(workspace)} == {"hosted_vllm/judge", "second"}


@pytest.mark.long
def test_the_same_words_twice_in_a_trajectory_are_asked_once(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, team(("human", "Go on."), ("agent", "Yes."), ("human", "Go on."), ("agent", "Yes.")))
    done = coaudit(*judged(endpoint)).json
    assert (done["rated"], done["requests"]) == (4, 2)
    assert sum(r.prompt_tokens or 0 for r in held(workspace)) == done["prompt_tokens"]


@pytest.mark.long
def test_hidden_information_and_private_states_never_reach_a_judge(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    (log,) = chatter(1)
    events = (log.events[0].model_copy(update={"states": {"human": "h1"}}), *log.events[1:])
    secret = {"preference": "MIDNIGHT-SECRET"}
    fill(
        workspace,
        log.model_copy(
            update={"hidden": secret, "events": events, "states": {"h1": {"note": "MIDNIGHT-SECRET"}}}
        ),
    )
    coaudit(*judged(endpoint, "--codebook", "failures", "--context", "transcript"))
    assert endpoint.asked
    assert "MIDNIGHT-SECRET" not in json.dumps(endpoint.asked)


def test_units_that_share_a_prompt_are_one_request_ahead_too(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, team(("human", "Please add a chart."), *[("agent", "Done."), ("human", "Go on.")] * 10))
    done = coaudit(*judged(endpoint))
    assert done.json["rated"] == 21 and len(endpoint.asked) == 3
    assert "21 units to ask about: about 3 requests" in done.err


def test_why_units_failed_is_counted_in_units_and_not_in_codes(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(2))
    endpoint.answer = lambda _: "perhaps"
    asked = [one if one != "initiative" else "failures" for one in judged(endpoint)]
    done = coaudit(*asked)
    assert done.json["errors"] == 2
    assert "why units failed, most often (2): no usable answer in 6 attempts" in done.err


@pytest.mark.long
def test_malformed_answers_end_as_errors_that_only_a_retry_asks_again(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(1))
    endpoint.answer = lambda body: "perhaps" if "item 1" in json.dumps(body) else "yes"
    first = coaudit(*judged(endpoint))
    done = first.json
    assert (done["rated"], done["errors"], done["requests"]) == (3, 1, 3 + 6)
    assert "why units failed, most often (1): no usable answer in 6 attempts" in first.err
    assert [r.label for r in held(workspace) if r.error] == [None]
    done = coaudit(*judged(endpoint)).json
    assert (done["rated"], done["errors"], done["already"]) == (0, 0, 4)
    endpoint.answer = lambda _: "yes"
    done = coaudit(*judged(endpoint, "--retry-errors")).json
    assert (done["rated"], done["errors"], done["already"]) == (1, 0, 3)


def test_half_a_character_in_an_answer_costs_no_rating(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(2))

    def answer(_: dict[str, Any]) -> web.Response:
        choice = {"message": {"content": "yes"}}
        return web.json_response({"model": "judge \ud83d", "choices": [choice]})

    endpoint.answer = answer
    done = coaudit(*judged(endpoint))
    assert done.json["rated"] == len(held(workspace)) == 8 and "Traceback" not in done.err
    assert {rating.model for rating in held(workspace)} == {"judge ?"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("broken", "requests"),
    [
        ({"choices": [{"message": {"content": ["yes", 1]}}]}, 9),
        ({"choices": [{"message": {"content": "yes"}, "logprobs": [1]}], "usage": [1]}, 8),
    ],
    ids=["asked again where its text is none", "taken where only what stands beside its text is broken"],
)
def test_one_answer_of_another_protocol_costs_that_answer_only(
    broken: dict[str, Any], requests: int, coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(2))
    endpoint.answer = lambda _: "yes" if endpoint.requests else web.json_response(broken)
    done = coaudit(*judged(endpoint, "--concurrency", "1")).json
    assert (done["rated"], done["errors"], done["requests"]) == (8, 0, requests)


@pytest.mark.long
def test_a_refusal_is_an_error_with_its_text(coaudit: Coaudit, workspace: Path, endpoint: Endpoint) -> None:
    fill(workspace, *chatter(1, 1))
    endpoint.answer = lambda _: "I'm sorry, but I can't rate people."
    assert coaudit(*judged(endpoint)).json["errors"] == 1
    assert "I can't rate people" in str(held(workspace)[0].error)
    assert len(endpoint.asked) == 1


@pytest.mark.slow
def test_every_unit_ends_rated_although_the_endpoint_misbehaves(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(50))
    endpoint.faults = Faults(too_many=0.1, broken=0.02, cut_off=0.02, malformed=0.05)
    done = coaudit(*judged(endpoint)).json
    assert (done["rated"], done["errors"]) == (200, 0)
    assert done["requests"] == endpoint.requests > 200


def test_an_endpoint_that_rejects_whatever_it_is_asked_ends_the_run_and_a_retry_asks_all_again(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(10))
    refused = {"error": {"message": "no such option: seed"}}
    endpoint.answer = lambda _: web.json_response(refused, status=400)
    done = coaudit(*judged(endpoint, "--concurrency", "1"), status=1)
    assert "20 questions were rejected and none was answered: status 400: no such option: seed" in done.err
    assert done.json["errors"] == 19 and endpoint.requests <= 25
    coaudit(*judged(endpoint, "--retry-errors", "--concurrency", "1"))
    assert len(held(workspace)) == 40 + 19


def without_logprobs(body: dict[str, Any]) -> str | web.Response:
    """What an endpoint answers that takes no log-probabilities."""
    if "logprobs" in body:
        return web.json_response({"error": {"message": "logprobs is not supported"}}, status=400)
    return "yes"


@pytest.mark.parametrize(("most", "rated"), [(9, 8), (8, 7), (1, 0)])
def test_requests_that_were_rejected_for_what_was_demanded_count_against_the_most_there_may_be(
    most: int, rated: int, coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(2))
    endpoint.answer = without_logprobs
    done = coaudit(*judged(endpoint, "--concurrency", "1", "--max-requests", str(most))).json
    assert (done["rated"], done["errors"]) == (rated, 0)
    assert done["requests"] == endpoint.requests == most


def test_a_wrong_key_stops_the_run_at_once_and_is_not_shown(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(20))
    endpoint.key = "right"
    done = coaudit(*judged(endpoint), status=1, HOSTED_VLLM_API_KEY="sk-very-secret")
    assert "status 401" in done.err and "HOSTED_VLLM_API_KEY" in done.err
    assert endpoint.requests == 0
    everything = done.err + done.out + "".join(p.read_text() for p in workspace.glob("**/*.jsonl"))
    assert "sk-very-secret" not in everything


@pytest.mark.long
def test_a_key_that_is_withdrawn_in_mid_run_keeps_what_was_rated(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(20))
    endpoint.answer = lambda _: "yes" if endpoint.requests < 10 else web.Response(status=401)
    done = coaudit(*judged(endpoint, "--concurrency", "2"), status=1)
    assert done.json["rated"] == len(held(workspace)) == 10
    assert endpoint.requests <= 12
    endpoint.answer = lambda _: "yes"
    assert coaudit(*judged(endpoint)).json["rated"] == 70


def test_an_unreachable_endpoint_says_so_within_five_seconds(coaudit: Coaudit, workspace: Path) -> None:
    fill(workspace, *chatter(1))
    began = time.monotonic()
    options = ("--model", "hosted_vllm/judge", "--api-base", "http://127.0.0.1:9/v1")
    done = coaudit("judge", *options, status=1)
    assert "http://127.0.0.1:9/v1: cannot be reached" in done.err
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--codebook", "nix"], "unknown codebook 'nix', expected one of"),
        (["--rater", "nix"], "unknown rater 'nix', expected rules, detectors"),
        (["--codebook", "failures"], "only initiative, confirmation, halting"),
        (["--rater", "detectors", "--codebook", "halting"], "only failures"),
        (["--rater", "trained:nix"], "no trained judge 'nix'"),
        (["--rater", "jury", "--members", "a,b"], "no ratings by a, b"),
        (["--members", "a,b"], "--members is for --rater jury, got 'a,b'"),
        (["--api-base", "http://x/v1"], "--api-base is for asking a model"),
        (["--engine", "vllm"], "--engine is for asking a model"),
        (["--context", "future"], "--context must be none, preceding or transcript"),
        (["--model", "hosted_vllm/x"], "Give --api-base URL"),
        (["--model", "openai/x", "--rater", "rules"], "a model cannot rate as 'rules'"),
        (["--rater", " nobody "], "unknown rater 'nobody'"),
        (["--model", "openai/x", "--rater", " jury:two"], "a model cannot rate as 'jury:two'"),
        (["--model", "openai/x", "--rater", "ls:a@b.org"], "a model cannot rate as 'ls:a@b.org'"),
        (["--model", "hosted_vllm/x", "--api-base", "x"], "must begin with http"),
        (["--model", "openai/judge", "--max-cost", "1"], "--max-cost cannot be kept"),
        (
            ["--model", "x/y", "--engine", "abacus"],
            "unknown engine 'abacus', expected one of local, vllm, ray",
        ),
    ],
)
def test_wrong_use_names_the_choices(coaudit: Coaudit, unrated: Path, options: list[str], said: str) -> None:
    assert said in coaudit("judge", *options, status=2, COAUDIT_WORKSPACE=str(unrated)).err


def test_a_model_that_the_endpoint_lacks_names_the_ones_it_has(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(1))
    endpoint.models = ("large", "small")
    missing = {"error": {"message": "The model `judge` does not exist."}}
    endpoint.answer = lambda _: web.json_response(missing, status=404)
    assert "it offers large, small" in coaudit(*judged(endpoint), status=2).err


@pytest.mark.long
def test_units_that_were_rated_with_other_parameters_are_counted_as_left(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(1))
    coaudit(*judged(endpoint))
    assert "0 units to ask about" in coaudit(*judged(endpoint)).err
    again = coaudit(*judged(endpoint, "--temperature", "1"))
    assert "4 units to ask about" in again.err and again.json["rated"] == 4


@pytest.mark.long
def test_money_needs_a_yes_where_nobody_can_be_asked(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(1))
    options = ["judge", "--json", "--model", "openai/gpt-4o-mini", "--api-base", endpoint.url]
    done = coaudit(*options, "--codebook", "initiative", status=2)
    assert "4 units to ask about: about 4 requests" in done.err and "give --yes" in done.err
    assert not endpoint.asked
    done = coaudit(*options, "--codebook", "initiative", "--yes")
    assert done.json["cost_usd"] > 0
    assert sum(r.cost_usd or 0 for r in held(workspace)) == pytest.approx(done.json["cost_usd"], abs=1e-6)


@pytest.mark.slow
def test_budgets_end_a_run_without_losing_it(coaudit: Coaudit, workspace: Path, endpoint: Endpoint) -> None:
    fill(workspace, *chatter(5))
    done = coaudit(*judged(endpoint, "--max-requests", "3"))
    assert (done.json["rated"], endpoint.requests) == (3, 3)
    assert "stopped: --max-requests 3 is reached" in done.err
    assert coaudit(*judged(endpoint, "--limit", "4")).json["rated"] == 4
    assert coaudit(*judged(endpoint)).json["rated"] == 13


@pytest.mark.slow
def test_two_runs_at_a_time_ask_nothing_twice(workspace: Path, endpoint: Endpoint) -> None:
    fill(workspace, *chatter(30))
    endpoint.latency = 0.05
    runs = [start(workspace, endpoint, "--concurrency", "8") for _ in range(2)]
    done = [json.loads(run.communicate(timeout=60)[0]) for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert sum(d["rated"] for d in done) == 120
    assert endpoint.requests == 120


@pytest.mark.slow
def test_ctrl_c_finishes_what_is_in_flight(workspace: Path, endpoint: Endpoint) -> None:
    fill(workspace, *chatter(100))
    endpoint.latency = 0.2
    run = start(workspace, endpoint, "--concurrency", "4")
    wait_for(lambda: endpoint.requests > 4)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 130 and "interrupted" in err
    assert json.loads(out)["rated"] == len(held(workspace)) == endpoint.requests


@pytest.mark.slow
def test_kills_at_random_moments_lose_nothing_that_was_answered(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(100))
    endpoint.latency = 0.02
    chance = random.Random(3)
    for _ in range(6):
        run = start(workspace, endpoint, "--concurrency", "4")
        before = endpoint.requests
        kill_after(run, endpoint, before + chance.randrange(40))
    done = coaudit(*judged(endpoint)).json
    assert done["rated"] + done["already"] == 400
    assert len({(r.trajectory, r.event) for r in held(workspace)}) == 400
    assert endpoint.asked_twice <= 6 * 4  # what was in flight at a kill


@pytest.mark.long
def test_the_failure_judge_cites_events_that_exist(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(1))
    endpoint.answer = failing({"C.1": ([1], "check item 0"), "C.2": ([77], ""), "C.3": ([2], "not said")})
    done = coaudit(*judged(endpoint)[:-1], "failures").json
    assert (done["rated"], done["errors"], done["requests"]) == (1, 1, 1)
    ratings = {r.code: r for r in held(workspace)}
    assert len(ratings) == 26
    assert (ratings["C.1"].label, ratings["C.1"].cites, ratings["C.1"].error_source) == (
        "present",
        (1,),
        "model",
    )
    assert "event 77" in str(ratings["C.2"].error) and "quotation" in str(ratings["C.3"].error)
    assert ratings["P.1"].label == "absent"
    assert sum(r.prompt_tokens or 0 for r in ratings.values()) == done["prompt_tokens"]


@pytest.mark.long
def test_a_trajectory_beyond_the_context_is_judged_in_windows(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    said = [(("human", "agent")[i % 2], f"line {i} {'word ' * 150}") for i in range(60)]
    fill(workspace, team(*said))
    endpoint.context = 20_000
    endpoint.answer = failing({"C.1": ([40], "line 39")}, only="line 39 ")
    done = coaudit(*judged(endpoint)[:-1], "failures")
    assert len(endpoint.asked) > 1
    assert f"1 unit to ask about: about {len(endpoint.asked)} requests" in done.err
    found = next(r for r in held(workspace) if r.code == "C.1")
    assert (found.label, found.external) == ("present", {"windows": len(endpoint.asked)})


def failing(present: dict[str, tuple[list[int], str]], only: str = "") -> Any:
    """An endpoint's answer for the failure judge."""

    def answer(body: dict[str, Any]) -> str:
        codes = body["response_format"]["json_schema"]["schema"]["properties"]
        said: dict[str, dict[str, Any]] = {
            code: {"answer": "absent", "events": [], "quote": "", "source": ""} for code in codes
        }
        if only in body["messages"][-1]["content"]:
            for code, (events, quote) in present.items():
                said[code] = {"answer": "present", "events": events, "quote": quote, "source": "model"}
        return json.dumps(said)

    return answer


@pytest.mark.long
def test_the_rubrics_score_fills_task_performance_where_a_run_has_none(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    (one, other) = chatter(2)
    delivered = (Outcome(name="delivered", value=1.0), Outcome(name="result", text="A fine section [1]."))
    own = Outcome(name="task_performance", value=0.2)
    fill(
        workspace,
        one.model_copy(update={"outcomes": delivered, "task": "related_work"}),
        other.model_copy(update={"outcomes": (*delivered, own), "task": "related_work"}),
    )
    endpoint.answer = lambda body: "4"
    coaudit(*judged(endpoint)[:-1], "related_work_quality")
    assert "A fine section" in json.dumps(endpoint.asked)
    rows = coaudit("metrics", "--per", "trajectory", "--json").json["rows"]
    found = {r["trajectory"]: r["value"] for r in rows if r["metric"] == "task_performance"}
    assert found == {"t0": pytest.approx(0.8), "t1": pytest.approx(0.2)}


@pytest.mark.long
def test_a_judge_is_asked_of_the_sessions_that_a_codebook_is_for_and_nothing_else_is_left(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    (one, other) = chatter(2)
    result = (Outcome(name="result", text="A fine section [1]."),)
    tasks = {"related_work": one, "travel": other}
    fill(workspace, *(log.model_copy(update={"outcomes": result, "task": t}) for t, log in tasks.items()))
    endpoint.answer = lambda body: "4"
    first, again = (coaudit(*judged(endpoint)[:-1], "related_work_quality", "--json").json for _ in range(2))
    assert (first["rated"], first["requests"]) == (1, 1)
    assert (again["rated"], again["already"], again["requests"]) == (0, 1, 0)
    assert (
        "asked of sessions with task = related_work"
        in coaudit("codebook", "show", "related_work_quality").out
    )
    sample = ("sample", "--codebook", "related_work_quality", "--json")
    assert coaudit(*sample).json["rows"][0]["of"] == 1
    assert "NAME=VALUE" in coaudit(*sample, "--name", "b", "--where", "task", status=2).err
    assert "--where task=travel" in coaudit(*sample, "--name", "c", "--where", "task=travel", status=2).err


@pytest.mark.long
def test_a_judge_rates_the_sessions_that_where_names_and_later_the_others(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fields: list[dict[str, Any]] = [
        {"task": "a"},
        {"task": "b", "tags": {"arm": "x"}},
        {"task": "c", "tags": {"arm": "x"}},
    ]
    fill(workspace, *(log.model_copy(update=own) for log, own in zip(chatter(3), fields, strict=True)))
    ask = judged(endpoint)
    n_units = coaudit(*ask, "--json", "--where", "task=a").json["rated"]
    both = coaudit(*ask, "--json", "--where", "task=a", "--where", "task=b").json
    assert n_units > 0 and (both["rated"], both["already"]) == (n_units, n_units)
    assert coaudit(*ask, "--json", "--where", "arm=x", "--where", "task=b").json["rated"] == 0
    assert coaudit(*ask, "--json").json["rated"] == n_units
    for rater in ("rules", "detectors"):
        some, others = (
            coaudit("judge", "--rater", rater, "--json", *where).json for where in (("--where", "arm=x"), ())
        )
        assert some["rated"] == 2 * others["rated"] > 0 and others["already"] == some["rated"]
    assert "no session has task=d" in coaudit(*ask, "--where", "task=d", status=2).err
    assert "NAME=VALUE" in coaudit(*ask, "--where", "task", status=2).err
    jury = ("judge", "--rater", "jury", "--members", "a,b", "--where", "task=a")
    assert "--where is no option of a jury" in coaudit(*jury, status=2).err


@pytest.mark.long
def test_a_codebook_in_the_workspace_is_enough_for_a_new_judge(
    coaudit: Coaudit, workspace: Path, endpoint: Endpoint
) -> None:
    fill(workspace, *chatter(1))
    (workspace / "codebooks").mkdir()
    (workspace / "codebooks" / "tone.toml").write_text(
        'name = "tone"\ntitle = "Tone"\nunit = "utterance"\nlabels = ["warm", "cold"]\n'
        'question = "How does it sound?"\n[[codes]]\ncode = "tone"\nname = "Tone"\ndefinition = "The tone."\n'
    )
    assert coaudit("codebook", "check", workspace / "codebooks" / "tone.toml").status == 0
    done = coaudit(*judged(endpoint)[:-1], "tone").json
    assert done["rated"] == 4
    assert {r.label for r in held(workspace)} <= {"warm", "cold"}


def test_a_codebook_check_names_every_problem(coaudit: Coaudit, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(
        'name = "bad"\nlabels = ["a"]\nlevel = "loose"\nunit = "day"\n[[codes]]\ncode = "x"\nwhy = 1\n'
    )
    done = coaudit("codebook", "check", file, status=1)
    for part in ("title: is missing", "labels:", "level:", "one of utterance", "codes.0.why: is not known"):
        assert part in done.out


def test_a_codebook_check_says_which_of_two_labels_is_counted_where_that_is_no(
    coaudit: Coaudit, tmp_path: Path
) -> None:
    for labels, noted in (('["no", "yes"]', True), ('["yes", "no"]', False)):
        file = tmp_path / "late.toml"
        file.write_text(
            f'name = "late"\ntitle = "Late"\nunit = "trajectory"\nlabels = {labels}\n'
            'question = "Was it late?"\n[[codes]]\ncode = "late"\nname = "Late"\ndefinition = "Late."\n'
        )
        said = coaudit("codebook", "check", file).out
        assert ("the first of two labels is the one that is counted, and that is 'no'" in said) == noted


@pytest.mark.long
def test_a_jury_is_the_majority_and_a_tie_is_unclear(coaudit: Coaudit, workspace: Path) -> None:
    fill(workspace, *chatter(1, 2))
    lines: list[dict[str, Any]] = [
        {
            "trajectory": "t0",
            "event": event,
            "codebook": "initiative",
            "code": "initiative",
            "rater": r,
            "rater_kind": "llm",
            "label": v,
        }
        for r, votes in {"a": "yy", "b": "yn", "c": "n"}.items()
        for event, v in enumerate([{"y": "yes", "n": "no"}[x] for x in votes], start=1)
    ]
    file = workspace / "votes.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    coaudit("ratings", "import", file)
    done = coaudit("judge", "--rater", "jury", "--members", "a,b,c", "--json")
    assert done.json["rated"] == 2 and "a and b agree on 1 of 2 (50%)" in done.err
    found = {r.event: r for r in held(workspace) if r.rater == "jury"}
    assert (found[1].label, found[1].rationale) == ("yes", "2 of 3; a: yes, b: yes, c: no")
    assert found[2].label == "unclear"
    assert coaudit("judge", "--rater", "jury", "--members", "a,b,c", "--json").json["already"] == 2


def test_a_jury_with_a_judge_and_its_pupil_is_told_of(
    coaudit: Coaudit, workspace: Path, tmp_path: Path
) -> None:
    """The pupil votes as its teacher does, and both outvote whoever else is on the jury."""
    fill(workspace, *chatter(1))
    lines = [
        verdict("t0", None, "failures", "absent", code="C.1", rater=rater, rater_kind=kind, **more)
        for rater, kind, more in (
            ("a", "llm", {}),
            ("b", "llm", {}),
            ("trained:mine", "model", {"parameters": {"learnt_from": "a"}}),
        )
    ]
    coaudit("ratings", "import", write_lines(tmp_path / "votes.jsonl", lines))
    command = ("judge", "--rater", "jury", "--codebook", "failures", "--members")
    assert "trained:mine was trained on labels of a: " in coaudit(*command, "a,b,trained:mine").err
    assert "was trained on" not in coaudit(*command, "a,b").err


def test_a_jury_whose_members_no_longer_have_labels_has_none(
    coaudit: Coaudit, workspace: Path, tmp_path: Path
) -> None:
    fill(workspace, *chatter(1))

    def said(**labels: str) -> None:
        lines = [
            verdict("t0", None, "failures", label, code="C.1", rater=rater, rater_kind="llm")
            for rater, label in labels.items()
        ]
        for line in lines:
            if not line["label"]:
                line |= {"label": None, "error": "no answer"}
            elif line["label"] == "taken back":
                line |= {"label": None, "retracted": True}
        coaudit("ratings", "import", str(write_lines(tmp_path / "said.jsonl", lines)))

    def tried() -> tuple[int, int, int]:
        done = coaudit("judge", "--rater", "jury", "--members", "a,b", "--json").json
        return done["rated"], done["already"], done["errors"]

    said(a="present", b="present")
    assert [tried(), tried()] == [(1, 0, 0), (0, 1, 0)]
    said(b="")
    assert [tried(), tried()] == [(0, 0, 1), (0, 0, 0)]
    (*_, last) = [rating for rating in held(workspace) if rating.rater == "jury"]
    assert (last.label, last.error) == (None, "fewer than 2 members still have a label")
    said(b="absent")
    assert tried() == (1, 0, 0)
    said(b="taken back")
    assert tried() == (0, 0, 1)


@pytest.mark.parametrize(
    ("change", "backlog"),
    [
        ({"label": "absent"}, "1 label is"),
        ({"label": None, "retracted": True}, "1 label is"),
        ({"label": "present", "rater_version": "2"}, None),
        ({"label": "absent", "rater": "c"}, None),
    ],
)
def test_figures_of_a_jury_say_that_its_members_say_something_else_by_now(
    coaudit: Coaudit, workspace: Path, tmp_path: Path, change: dict[str, Any], backlog: str | None
) -> None:
    """It went on voting as its members had before they judged again, and nothing told of it."""
    fill(workspace, *chatter(1))

    def said(**line: Any) -> None:
        rating = verdict("t0", None, "failures", "present", code="C.1", rater_kind="llm") | line
        coaudit("ratings", "import", str(write_lines(tmp_path / "said.jsonl", [rating])))

    vote = "judge --rater jury --members a,b --codebook failures"
    expected = f"failures: {backlog} not what the members of jury say by now: `coaudit {vote}`"
    said(rater="a")
    said(rater="b")
    coaudit(*vote.split())
    assert "by now" not in coaudit("rates").err
    said(**{"rater": "b"} | change)
    assert (expected in coaudit("rates").err) == (backlog is not None)
    coaudit(*vote.split(), status=None)
    assert "by now" not in coaudit("rates").err


@pytest.mark.long
def test_a_jury_of_other_members_that_rated_some_units_rates_them_once(
    coaudit: Coaudit, workspace: Path, tmp_path: Path
) -> None:
    """It looked at what goes by its name, which another jury had said, and rated them at every run."""
    fill(workspace, *chatter(2))
    lines = [
        verdict(f"t{n}", None, "failures", "present", code="C.1", rater=rater, rater_kind="llm")
        for rater, sessions in (("a", 2), ("b", 2), ("c", 1), ("d", 1))
        for n in range(sessions)
    ]
    coaudit("ratings", "import", str(write_lines(tmp_path / "said.jsonl", lines)))

    def rated(members: str) -> tuple[int, int]:
        done = coaudit("judge", "--rater", "jury", "--members", members, "--json").json
        return done["rated"], done["already"]

    assert [rated("a,b"), rated("a,b")] == [(2, 0), (0, 2)]
    assert [rated("c,d"), rated("c,d")] == [(1, 0), (0, 1)]
    assert [rated("a,b"), rated("a,b")] == [(1, 1), (0, 2)]


@pytest.mark.parametrize("members", ["a,b", "c,a", "gold,c"])
def test_a_jury_of_people_is_refused_for_it_would_be_one_more_of_them(
    coaudit: Coaudit, workspace: Path, members: str
) -> None:
    fill(workspace, *chatter(1, 2))
    raters = (("a", "human"), ("b", "human"), ("gold", "human"), ("c", "llm"))
    lines = [verdict("t0", 1, "initiative", "yes", rater=rater, rater_kind=kind) for rater, kind in raters]
    coaudit("ratings", "import", write_lines(workspace / "votes.jsonl", lines))
    done = coaudit("judge", "--rater", "jury", "--members", members, status=2)
    assert "a jury is of judges" in done.err and "jury" not in {r.rater for r in held(workspace)}


@pytest.mark.slow
def test_a_judge_learns_from_ratings_and_says_how_well(coaudit: Coaudit, workspace: Path) -> None:
    fill(workspace, *[learnable(i) for i in range(10)])
    coaudit("judge", "--codebook", "initiative")
    done = coaudit("train", "--codebook", "initiative", "--json").json
    (row,) = done["rows"]
    assert (row["n"], row["trajectories"], row["learnt"]) == (40, 10, True)
    assert row["kappa"] > 0.8
    again = coaudit("judge", "--rater", "trained:initiative", "--json").json
    assert again["rated"] == 40
    trained = [r for r in held(workspace) if r.rater == "trained:initiative"]
    assert {r.rater_kind for r in trained} == {"model"} and all(r.probability for r in trained)


@pytest.mark.long
def test_a_judge_that_had_nothing_to_learn_says_why(coaudit: Coaudit, workspace: Path) -> None:
    fill(workspace, team(("human", "Please add a chart.")))
    coaudit("judge", "--codebook", "initiative")
    assert "all labels are yes" in coaudit("train", "--codebook", "initiative", status=1).err
    assert "no ratings on codebook 'halting'" in coaudit("train", "--codebook", "halting", status=1).err


@pytest.mark.long
def test_gold_that_settled_a_few_is_not_taken_for_all_there_is_to_learn(
    coaudit: Coaudit, workspace: Path
) -> None:
    fill(workspace, *chatter(1, 4))
    people = [("ann", 1), ("ann", 2), ("ann", 3), ("gold", 1)]
    lines = [verdict("t0", e, "initiative", "yes", rater=r, rater_kind="human") for r, e in people]
    coaudit("ratings", "import", write_lines(workspace / "votes.jsonl", lines))
    told = coaudit("train", "--codebook", "initiative", status=2).err
    assert "gold settled 1 labels, others gave 3" in told and "one of ann, gold" in told
    more = [verdict("t0", e, "initiative", "yes", rater="gold", rater_kind="human") for e in (2, 3)]
    coaudit("ratings", "import", write_lines(workspace / "votes.jsonl", more))
    assert "rater 'gold' teaches nothing" in coaudit("train", "--codebook", "initiative", status=1).err


@pytest.mark.library
def test_a_file_that_could_run_code_is_refused(coaudit: Coaudit, workspace: Path, tmp_path: Path) -> None:
    fill(workspace, *chatter(1))
    from skops import io

    evil = tmp_path / "evil.skops"
    io.dump({"about": {"codebook": "initiative", "version": "x"}, "models": {"initiative": os.system}}, evil)
    done = coaudit("judge", "--rater", f"trained:{evil}", status=2)
    assert "types that could run code" in done.err
    evil.write_bytes(b"PK broken")
    assert "not a trained judge" in coaudit("judge", "--rater", f"trained:{evil}", status=2).err


def learnable(number: int) -> Trajectory:
    return team(
        ("human", f"Please add a chart of item {number}."),
        ("agent", "Okay, thank you."),
        ("human", f"Could you also change the title of page {number}?"),
        ("agent", "Sounds good."),
        key=f"t{number}",
    )


def start(workspace: Path, endpoint: Endpoint, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "coaudit.pipeline", *judged(endpoint, *options)]
    env = {**os.environ, "COAUDIT_WORKSPACE": str(workspace)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def kill_after(run: subprocess.Popen[str], endpoint: Endpoint, requests: int) -> None:
    wait_for(lambda: endpoint.requests > requests or run.poll() is not None)
    run.kill()
    run.communicate()


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
