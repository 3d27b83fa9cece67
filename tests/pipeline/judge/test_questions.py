"""`judge --repeats`: the same questions asked again, which never count twice."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from aiohttp import web

from coaudit.pipeline.annotate import draw
from coaudit.pipeline.ingest.measure import save
from coaudit.pipeline.store import Store
from tests.conftest import Coaudit
from tests.judges.endpoint import Endpoint
from tests.judges.teams import team
from tests.pipeline.stores import made, rows


def fill(workspace: Path, messages: int = 6) -> Store:
    """Two sessions whose messages all differ."""
    store = made(workspace)
    logs = [
        team(
            *[(("human", "agent")[i % 2], f"Please check item {i} of {session}?") for i in range(messages)],
            key=f"t{session}",
        )
        for session in range(2)
    ]
    with store.writing() as connection:
        save(store, logs, connection)
    return store


def asked(endpoint: Endpoint, *options: str) -> list[str]:
    """A run on initiative."""
    wanted = ["judge", "--json", "--model", "hosted_vllm/judge", "--api-base", endpoint.url]
    return [*wanted, "--codebook", "initiative", *options]


def test_ratings_and_copies_of_them_say_which_parameter_the_endpoint_did_not_take(
    coaudit: Coaudit, workspace: Path
) -> None:
    def answer(body: dict[str, object]) -> str | web.Response:
        text = "'temperature' does not support 0.0 with this model"
        return web.json_response({"error": {"message": text}}, status=400) if "temperature" in body else "no"

    store = fill(workspace)
    with Endpoint(answer=answer).serving() as endpoint:
        assert coaudit(*asked(endpoint, "--rater", "a")).json["errors"] == 0
        coaudit(*asked(endpoint, "--rater", "b"))
    query = "SELECT DISTINCT rater, external->>'$.left_out' AS names FROM ratings ORDER BY rater"
    assert [(row["rater"], row["names"]) for row in rows(store, query)] == [
        ("a", '["temperature"]'),
        ("b", '["temperature"]'),
    ]


def test_a_rating_made_elsewhere_may_say_anything_of_what_was_left_out(
    coaudit: Coaudit, workspace: Path, tmp_path: Path
) -> None:
    store = fill(workspace)
    unit = rows(store, "SELECT trajectory_id, event FROM units WHERE kind = 'utterance' AND NOT opening")[0]
    rating = {"trajectory": unit["trajectory_id"], "event": unit["event"], "codebook": "initiative"}
    rating |= {"code": "initiative", "label": "no", "rater_kind": "llm", "rater_version": "1"}
    values = ["temperature", None, {"a": 1}, [1, None]]
    lines = [rating | {"rater": f"r{i}", "external": {"left_out": one}} for i, one in enumerate(values)]
    file = tmp_path / "labels.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    coaudit("ratings", "import", file)
    with Endpoint().serving() as endpoint:
        assert coaudit(*asked(endpoint)).json["errors"] == 0
    assert "r3" in coaudit("report", "--format", "md").out


@pytest.mark.slow
def test_a_question_is_asked_so_often_and_its_first_answer_counts(coaudit: Coaudit, workspace: Path) -> None:
    store, turn = fill(workspace), itertools.count()
    units = rows(store, "SELECT count(*) AS n FROM units WHERE kind = 'utterance' AND NOT opening")[0]["n"]
    answers = Endpoint(answer=lambda body: ("yes", "no")[next(turn) % 2])
    with answers.serving() as endpoint:
        first = coaudit(*asked(endpoint, "--repeats", "3"))
        assert (first.json["rated"], first.json["requests"]) == (3 * units, 3 * units)
        assert f"{3 * units} answers to get, 3 for each unit" in first.err
        assert coaudit(*asked(endpoint, "--repeats", "3")).json["already"] == 3 * units
        assert coaudit(*asked(endpoint)).json["already"] == units
    stored = rows(store, "SELECT repeat, count(*) AS n FROM ratings GROUP BY repeat ORDER BY repeat")
    assert [(row["repeat"], row["n"]) for row in stored] == [(0, units), (1, units), (2, units)]
    assert rows(store, "SELECT count(*) AS n FROM counted_ratings") == [{"n": units}]
    assert rows(store, "SELECT count(*) AS n FROM uncounted_ratings") == [{"n": 0}]
    assert rows(store, "SELECT answers FROM rater_provenance") == [{"answers": units}]
    found = coaudit("agreement", "--json").json["rows"]
    assert {row["coefficient"]: row["n_units"] for row in found} == {
        "intra_rater_alpha": units,
        "flip_rate": units,
    }


@pytest.mark.slow
def test_a_sample_is_asked_again_and_the_rest_is_left_alone(coaudit: Coaudit, workspace: Path) -> None:
    store = fill(workspace)
    draw.draw(store, draw.Wish(("initiative",), "few", size=4))
    with Endpoint(answer=lambda body: "yes").serving() as endpoint:
        assert coaudit(*asked(endpoint, "--sample", "few", "--repeats", "2")).json["rated"] == 8
        everything = coaudit(*asked(endpoint)).json
        assert everything["already"] == 4 and everything["rated"] > 0
        assert (
            "no sample 'many', expected one of few"
            in coaudit(*asked(endpoint, "--sample", "many"), status=2).err
        )


@pytest.mark.slow
def test_a_limit_is_one_of_units_however_often_each_is_asked(coaudit: Coaudit, workspace: Path) -> None:
    store = fill(workspace)
    with Endpoint(answer=lambda body: "yes").serving() as endpoint:
        assert coaudit(*asked(endpoint, "--limit", "1")).json["rated"] == 1
        done = coaudit(*asked(endpoint, "--limit", "2", "--repeats", "3"))
        assert done.json["rated"] == 5, "one of six is known"
        assert "6 answers to get, 3 for each unit: about 6 requests" in done.err
    repeats = "SELECT event, count(*) AS n FROM ratings GROUP BY trajectory_id, event"
    assert [row["n"] for row in rows(store, repeats)] == [3, 3]


def test_only_a_model_can_be_asked_again(coaudit: Coaudit, workspace: Path) -> None:
    fill(workspace)
    assert "--repeats asks a model again" in coaudit("judge", "--repeats", "2", status=2).err
