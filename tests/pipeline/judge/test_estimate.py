"""What a run would take is said before it begins, also where answers exist that no longer fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.analyze.validate import validate
from coaudit.pipeline.ingest.measure import save
from coaudit.pipeline.judge import estimate
from coaudit.pipeline.store import Store
from tests.conftest import Coaudit
from tests.judges.endpoint import Endpoint
from tests.judges.teams import team
from tests.pipeline.stores import made

SAYING = re.compile(r"(\d+) (?:units?|answers?) to (?:ask about|get)[^:]*: about (\d+) requests?")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint().serving() as serving:
        yield serving


@pytest.fixture
def store(workspace: Path) -> Store:
    return made(workspace)


def add(store: Store, names: range, *more: str) -> None:
    """Sessions of a question and its reply, and of what the human says further."""
    words = ["Shall I book it?", "Yes.", *more]
    sides = ["agent", *["human"] * (len(words) - 1)]
    logs = [team(*((side, f"{text} {i}") for side, text in zip(sides, words, strict=True)), key=f"t{i:03}")
            for i in names]  # fmt: skip
    with store.writing() as connection:
        save(store, logs, connection)


def judged(coaudit: Coaudit, endpoint: Endpoint, *options: str) -> tuple[int, int, Any]:
    """The units and requests that were announced, and what the run did."""
    wanted = ["judge", "--json", "--model", "hosted_vllm/judge", "--api-base", endpoint.url]
    done = coaudit(*wanted, "--codebook", "initiative", *options)
    units, requests = map(int, SAYING.search(done.err).groups())  # type: ignore[union-attr]
    return units, requests, done.json


def test_what_an_older_version_answered_to_the_same_prompt_is_not_announced(
    coaudit: Coaudit, store: Store, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, range(3))
    assert judged(coaudit, endpoint)[:2] == (6, 6)
    monkeypatch.setattr("coaudit.judges.llm.judge.REVISION", -1)
    units, requests, done = judged(coaudit, endpoint)
    assert (units, requests, done["requests"], done["rated"]) == (0, 0, 0, 6)


def test_versions_that_take_turns_copy_each_answer_once_repeats_among_them(
    coaudit: Coaudit, store: Store, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, range(2))
    for turn in range(5):
        monkeypatch.setattr("coaudit.judges.llm.judge.REVISION", -1 - turn % 2)
        units, requests, done = judged(coaudit, endpoint, "--repeats", "3")
        assert (units, requests, done["requests"], done["rated"]) == (
            (12, 12, 12, 12) if not turn else (0, 0, 0, 12 if turn == 1 else 0)
        )
    with store.reading() as connection:
        query = "SELECT repeat, count(*), count(DISTINCT rater_version) FROM ratings GROUP BY 1 ORDER BY 1"
        assert connection.execute(query).fetchall() == [(0, 8, 2), (1, 8, 2), (2, 8, 2)]


def test_a_version_does_not_agree_with_the_answers_that_it_took_over(
    coaudit: Coaudit, store: Store, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 12 units 5 were copied: two judges agreed on all of them, kappa 1."""
    add(store, range(6))
    judged(coaudit, endpoint)
    monkeypatch.setattr("coaudit.judges.llm.judge.REVISION", -1)
    assert judged(coaudit, endpoint, "--limit", "5")[2]["rated"] == 5
    assert not [row for row in coaudit("agreement", "--json").json["rows"] if row["n_units"]]


def test_a_judge_that_copied_what_another_had_said_is_not_called_unmoved(
    coaudit: Coaudit, store: Store, endpoint: Endpoint
) -> None:
    add(store, range(6))
    judged(coaudit, endpoint, "--rater", "a", "--limit", "8")
    judged(coaudit, endpoint, "--rater", "b")
    (code,) = validate(store, "b", previous="a")["codes"]
    assert (code["drift"]["n"], code["drift"]["copies"]) == (8, 8)
    said = coaudit("validate", "b", "--previous", "a").out
    assert "8 have one answer for both, to the same prompt" in said
    assert validate(store, "a", previous="b")["codes"][0]["drift"]["copies"] == 8


def test_a_judge_does_not_agree_with_another_whose_answers_it_has(
    coaudit: Coaudit, store: Store, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 12 units the second copied all, so did its next version: three judges agreed, kappa 1."""
    add(store, range(6))
    judged(coaudit, endpoint, "--rater", "a")
    assert judged(coaudit, endpoint, "--rater", "b")[2]["requests"] == 0
    monkeypatch.setattr("coaudit.judges.llm.judge.REVISION", -1)
    assert judged(coaudit, endpoint, "--rater", "b", "--limit", "5")[2]["requests"] == 0
    assert not [row for row in coaudit("agreement", "--json").json["rows"] if row["n_units"]]
    done = coaudit("judge", "--rater", "jury", "--members", "a,b", "--json")
    assert done.json["rated"] == 0 and "copies of another member's" in done.err


def test_a_model_of_one_name_on_two_servers_is_said_to_have_been_asked_once(
    coaudit: Coaudit, store: Store, endpoint: Endpoint
) -> None:
    """Two servers may call their models `judge`: the second judge was said to have rated 6 units."""
    add(store, range(3))
    options = ("judge", "--model", "hosted_vllm/judge", "--codebook", "initiative", "--json", "--api-base")
    assert "the answer of" not in coaudit(*options, endpoint.url, "--rater", "a").err
    with Endpoint().serving() as other:
        second = coaudit(*options, other.url, "--rater", "b")
        assert (other.requests, second.json["rated"]) == (0, 6)
    assert "6 units have the answer of a, for whom a model of this name was asked the same" in second.err
    assert "copies" not in second.json


@pytest.mark.parametrize("option", [("--temperature", "0.7"), ("--model", "hosted_vllm/other")])
def test_versions_that_asked_with_other_parameters_are_held_against_each_other(
    coaudit: Coaudit, store: Store, endpoint: Endpoint, option: tuple[str, str]
) -> None:
    """Their prompts are the same: the answers of the first were taken for the second's, and left out."""
    add(store, range(6))
    judged(coaudit, endpoint, "--rater", "a")
    assert judged(coaudit, endpoint, "--rater", "a", *option, "--limit", "8")[2]["requests"] == 8
    assert {row["n_units"] for row in coaudit("agreement", "--json").json["rows"]} == {8}


def test_what_a_new_version_asks_in_other_words_is_announced(
    coaudit: Coaudit, store: Store, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, range(3))
    judged(coaudit, endpoint, "--context", "transcript")
    monkeypatch.setattr("coaudit.judges.llm.judge.REVISION", -1)
    monkeypatch.setattr("coaudit.judges.llm.quoting._BREAK", "-")
    monkeypatch.setattr("coaudit.judges.llm.quoting._TEMPLATE", re.compile("(?=Shall)"))
    units, requests, done = judged(coaudit, endpoint, "--context", "transcript")
    assert (units, requests, done["requests"]) == (6, 6, 6)


def test_a_log_that_grew_changes_the_prompts_of_what_was_answered(
    coaudit: Coaudit, store: Store, endpoint: Endpoint
) -> None:
    add(store, range(4))
    judged(coaudit, endpoint, "--context", "transcript")
    add(store, range(1), "And the train?")
    units, requests, done = judged(coaudit, endpoint, "--context", "transcript")
    assert (units, requests, done["requests"], done["already"]) == (3, 3, 3, 6)


def test_where_only_some_are_looked_at_the_rest_is_taken_to_be_alike(
    coaudit: Coaudit, store: Store, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, range(40))
    judged(coaudit, endpoint, "--rater", "first", "--limit", "40")
    monkeypatch.setattr(estimate, "SAMPLE", 20)
    units, _, done = judged(coaudit, endpoint, "--rater", "second", "--repeats", "1", "--max-requests", "0")
    assert 20 <= units <= 60 and done["rated"] == 40


@pytest.mark.parametrize("limit", [(), ("--limit", "1")])
def test_a_question_is_announced_though_none_is_among_those_that_were_looked_at(
    coaudit: Coaudit,
    store: Store,
    endpoint: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
    limit: tuple[str, ...],
) -> None:
    add(store, range(30))
    judged(coaudit, endpoint, "--rater", "first")
    add(store, range(3, 4), "And the train?")
    monkeypatch.setattr(estimate, "SAMPLE", 1)
    assert judged(coaudit, endpoint, "--rater", "second", *limit)[0] > 0


def test_a_limit_is_of_units_of_which_some_answers_are_there(
    coaudit: Coaudit, store: Store, endpoint: Endpoint
) -> None:
    add(store, range(10))
    judged(coaudit, endpoint, "--repeats", "2")
    units, requests, done = judged(coaudit, endpoint, "--repeats", "3", "--limit", "4")
    assert (units, requests, done["requests"]) == (4, 4, 4)


def test_a_limit_is_of_units_and_repeats_are_of_each(
    coaudit: Coaudit, store: Store, endpoint: Endpoint
) -> None:
    add(store, range(4))
    units, requests, done = judged(coaudit, endpoint, "--limit", "3", "--repeats", "2")
    assert (units, requests, done["requests"]) == (6, 6, 6)
