"""TRAIL: traces with annotations beside them, as they were published."""

from __future__ import annotations

import json
from pathlib import Path

import polars
import pytest

from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.trail.reader import code_of, labels, read
from coaudit.schemas import Quarantined, Trajectory
from tests.conftest import Coaudit
from tests.pipeline.systems.formats.traces.test_openinference import nested

ERRORS = [
    {"category": "Formatting Error", "location": "b", "description": "No end mark.", "impact": "LOW"},
    {"category": "Goal deviation", "location": "c", "evidence": "It booked.", "impact": "HIGH"},
    {"category": "Goal Deviation", "location": "d", "impact": "HIGH"},
]


def published(folder: Path, annotation: str) -> Path:
    for name in ("data/GAIA", "processed_annotations_gaia"):
        (folder / name).mkdir(parents=True)
    trace = folder / "data" / "GAIA" / "t1.json"
    trace.write_text(json.dumps(nested()), encoding="utf-8")
    (folder / "processed_annotations_gaia" / "t1.json").write_text(annotation, encoding="utf-8")
    return trace


def test_errors_are_cited_where_their_spans_came_to_stand(tmp_path: Path, coaudit: Coaudit) -> None:
    published(tmp_path, json.dumps({"errors": ERRORS, "scores": []}).replace('"LOW"}', '"LOW",}'))
    coaudit("import", "trail", tmp_path)
    lines = [json.loads(line) for line in coaudit("ratings", "export").out.splitlines()]
    cited = {one["code"]: one["cites"] for one in lines if one["label"] == "present"}
    assert cited == {"formatting_errors": [2], "goal_deviation": [2, 3]}
    assert sum(one["codebook"] == "trail" for one in lines) == 20
    assert {one["event"]: one["label"] for one in lines if one["codebook"] == "trail_step"} == {
        1: "no",
        2: "yes",
        3: "yes",
    }


def test_no_step_of_a_trace_without_errors_is_one(tmp_path: Path, coaudit: Coaudit) -> None:
    published(tmp_path, json.dumps({"errors": [], "scores": []}))
    coaudit("import", "trail", tmp_path)
    lines = [json.loads(line) for line in coaudit("ratings", "export").out.splitlines()]
    steps = {one["event"]: one["label"] for one in lines if one["codebook"] == "trail_step"}
    assert steps == {1: "no", 2: "no", 3: "no"}


def test_what_names_no_span_and_no_kind_is_refused_and_the_rest_is_kept(tmp_path: Path) -> None:
    odd = [
        *ERRORS[:1],
        {"category": "Formatting Errors", "location": "zz"},
        {"category": "Sloth", "location": "b"},
    ]
    items = list(labels(published(tmp_path, json.dumps({"errors": odd}))))
    assert [item.reason.partition(":")[0] for item in items if isinstance(item, Quarantined)] == [
        "errors[1].location",
        "errors[2].category",
    ]
    kept = [item for item in items if not isinstance(item, Quarantined)]
    assert [(one.fields["codebook"], one.fields["label"], one.rest) for one in kept] == [
        ("trail", "present", None),
        ("trail_step", "yes", None),
    ]


def test_an_error_of_an_unknown_kind_makes_no_other_kind_absent_and_its_step_is_one(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    published(tmp_path, json.dumps({"errors": [*ERRORS[:1], {"category": "Sloth", "location": "d"}]}))
    coaudit("import", "trail", tmp_path)
    lines = [json.loads(line) for line in coaudit("ratings", "export").out.splitlines()]
    assert [one["label"] for one in lines if one["codebook"] == "trail"] == ["present"]
    steps = {one["event"]: one["label"] for one in lines if one["codebook"] == "trail_step"}
    assert list(steps.values()) == ["no", "yes", "yes"]


def test_an_error_at_an_unknown_step_leaves_open_which_steps_have_none(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    published(tmp_path, json.dumps({"errors": [*ERRORS[:1], {**ERRORS[1], "location": "zz"}]}))
    coaudit("import", "trail", tmp_path)
    lines = [json.loads(line) for line in coaudit("ratings", "export").out.splitlines()]
    assert sum(one["codebook"] == "trail" for one in lines) == 20
    assert [one["label"] for one in lines if one["codebook"] == "trail_step"] == ["yes"]


@pytest.mark.parametrize("annotation", [{}, {"scores": []}, {"errors": None}, {"errors": {}}])
def test_an_annotation_without_a_list_of_errors_says_nothing_of_any(
    tmp_path: Path, annotation: dict[str, object]
) -> None:
    (item,) = labels(published(tmp_path, json.dumps(annotation)))
    assert isinstance(item, Quarantined) and item.reason.startswith("errors: ")


@pytest.mark.long
def test_a_table_of_traces_gives_what_their_files_give_and_the_scores(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    why = "It stopped early."
    scores = [{"reliability_score": 2, "reliability_reasoning": why, "overall": 3.5}]
    rows = [json.dumps({"errors": ERRORS, "scores": scores}), "no JSON"]
    traces = [json.dumps(nested()), json.dumps(nested()).replace("t1", "t2")]
    (tmp_path / "gaia").mkdir()
    path = tmp_path / "gaia" / "gaia.parquet"
    polars.DataFrame({"trace": traces, "labels": rows}).write_parquet(path)
    runs = [item for item in read(path, ReadOptions()) if isinstance(item, Trajectory)]
    assert [(o.name, o.value, o.data) for o in runs[0].outcomes] == [
        ("reliability", 2.0, {"reasoning": why}),
        ("overall", 3.5, None),
    ]
    items = list(labels(path))
    assert [item.line for item in items if isinstance(item, Quarantined)] == [2]
    assert len(items) == 20 + 2 + 1
    coaudit("import", "trail", tmp_path)


@pytest.mark.parametrize(
    ("category", "code"),
    [
        ("Language-only", "language_only"),
        ("Language-Only", "language_only"),
        ("Tool Selection Errors", "tool_selection_errors"),
        ("Tool Selection", "tool_selection_errors"),
        ("Context Handling Failure", "context_handling_failures"),
        ("Task Orchestration Errors", "task_orchestration"),
        ("Instruction Non-compliance", "instruction_non_compliance"),
        ("Timeout Issues", "timeout_issues"),
        ("Resource Not Found", "resource_not_found"),
        ("Incorrect Problem Identification", "incorrect_problem_identification"),
    ],
)
def test_a_kind_of_error_is_known_however_it_is_spelt(category: str, code: str) -> None:
    assert code_of(category) == code


def test_a_trace_without_an_annotation_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t9.json"
    path.write_text(json.dumps(nested()), encoding="utf-8")
    (item,) = labels(path)
    assert isinstance(item, Quarantined) and item.reason.startswith("no annotation t9.json")
