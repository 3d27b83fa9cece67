"""Whose an answer is: Label Studio lets anybody answer and change anything."""

from __future__ import annotations

from typing import Any

import pytest

from coaudit.annotation.labelstudio import Project
from coaudit.pipeline.annotate.attribution import refusals
from coaudit.pipeline.annotate.project import Mark, mark_of

ANN, BOB, EVE = 1, 2, 3
USERS = {ANN: "ann@example.org", BOB: "bob@example.org", EVE: "eve@example.org"}
EVERYBODY = Mark("s", "initiative", "1", "transcript", "c")
NUMBERED = Mark("s", "initiative", "1", "transcript", "c", annotator="1")
NAMED = Mark("s", "initiative", "1", "transcript", "c", annotator="1", person="Ann@example.org")


def answer(by: Any, updated: Any = None, created: str = "2026-01-01T10:00:00Z") -> dict[str, Any]:
    return {"id": 7, "completed_by": by, "updated_by": updated, "created_at": created}


def refused(mark: Mark | None, *annotations: dict[str, Any]) -> list[int]:
    return sorted(refusals(1, mark, 5, annotations, USERS))


@pytest.mark.parametrize("mark", [None, EVERYBODY, NUMBERED, NAMED])
def test_an_answer_that_somebody_else_changed_is_nobodys(mark: Mark | None) -> None:
    assert refused(mark, answer(ANN), answer(ANN, ANN)) == []
    assert refused(mark, answer(ANN, BOB)) == [0]
    assert refused(mark, answer({"id": ANN, "email": "x"}, {"id": BOB})) == [0]
    (why,) = refusals(1, mark, 5, [answer(ANN, BOB)], USERS).values()
    assert (why.completed_by, why.updated_by, why.task) == ("ann@example.org", "bob@example.org", 5)
    assert why.text().startswith("task 5, annotation 7 by ann@example.org: changed by bob@example.org")
    assert why.text().endswith("it is not counted; one that was pulled before the change still is")


def test_in_a_named_annotators_project_only_they_answer() -> None:
    assert refused(NAMED, answer(EVE), answer(ANN)) == [0]


def test_in_a_numbered_project_the_second_to_answer_a_task_could_see_the_first() -> None:
    late, early = answer(EVE, created="2026-01-02T10:00:00Z"), answer(ANN)
    assert refused(NUMBERED, late, early, answer(ANN, created="2026-01-01T11:00:00Z")) == [0]


@pytest.mark.parametrize("mark", [NUMBERED, NAMED])
def test_a_second_answer_after_somebody_elses_leaves_the_first_which_was_blind(mark: Mark) -> None:
    again = answer(ANN, created="2026-01-03T10:00:00Z")
    assert refused(mark, answer(ANN), answer(EVE, created="2026-01-02T10:00:00Z"), again) == [1, 2]
    assert refused(mark, answer(ANN), again) == []
    skipped = answer(EVE, created="2026-01-02T10:00:00Z") | {"was_cancelled": True}
    assert refused(mark, answer(ANN), skipped, again) == [1]


def test_who_skips_a_task_of_another_leaves_nothing_to_see() -> None:
    """Whose project it was had answered for nothing once somebody else had skipped the task by mistake."""
    skipped = answer(EVE) | {"was_cancelled": True}
    own = answer(ANN, created="2026-01-02T10:00:00Z")
    assert refused(NUMBERED, skipped, own) == [0]
    assert refused(NUMBERED, skipped) == refused(NUMBERED, own) == []


def test_a_project_for_everybody_takes_several_answers() -> None:
    assert refused(EVERYBODY, answer(ANN), answer(BOB)) == []


@pytest.mark.parametrize("mark", [EVERYBODY, NUMBERED, NAMED])
def test_a_projects_description_tells_whose_it_is(mark: Mark) -> None:
    assert mark_of(Project(1, "t", f"Who leads. Do not edit this line: {mark.text()}", "")) == mark
    assert mark.text().startswith(mark.head)
