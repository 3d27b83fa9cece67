"""How far annotation is: time for a task comes from the browser, of annotations that count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coaudit.annotation.labelstudio.client import ListedTask
from coaudit.pipeline.annotate import draw, push, status
from coaudit.pipeline.cli.labelstudio import _status_cells as status_cells
from tests.conftest import ROOT
from tests.pipeline.annotate.test_push import Remembering
from tests.pipeline.annotate.test_push import store as store

pytestmark = pytest.mark.slow  # Label Studio's SDK checks the configuration: its import takes seconds


class Answering(Remembering):
    """As much of `Server` as a push and a status call; each task has the annotations of `given`."""

    given: list[dict[str, Any]]

    def users(self) -> dict[int, str]:
        return {1: "eva"}

    def tasks(self, key: int) -> list[Any]:
        return [
            ListedTask(id=n, key=name, seqs=(), updated_at="", overlap=1, annotations=[one])
            for n, (name, one) in enumerate(zip(self.sent[key], self.given, strict=False), 1)
        ]


@pytest.mark.parametrize(
    "took, seconds", [((10, 31.5, 90), 31.5), ((10, None, 20), 15), ((None, None, None), None)]
)
def test_a_task_takes_the_median_of_what_the_browser_measured(
    store: Any, tmp_path: Path, took: tuple[float | None, ...], seconds: float | None
) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    server: Any = Answering()
    push.push(store, server, sample)
    given: list[dict[str, Any]] = [
        {"id": n, "completed_by": 1, "lead_time": one, "result": []} for n, one in enumerate(took)
    ]
    skipped = {"id": 9, "completed_by": 1, "lead_time": 5000, "was_cancelled": True, "result": []}
    server.given = [*given, skipped]
    (row, *_) = status.status(store, server, sample)
    assert (row["seconds"], row["skipped"]) == (seconds, 1)


def test_whoever_left_and_whoever_is_told_with_an_address_is_counted_by_name(store: Any) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    server: Any = Answering()
    push.push(store, server, sample)
    people: list[Any] = [1, 5, {"id": 1, "email": "eva"}]
    server.given = [{"id": n, "completed_by": one, "result": []} for n, one in enumerate(people)]
    (row, *_) = status.status(store, server, sample)
    assert row["annotators"] == {"5": 1, "eva": 2}


def test_who_left_is_known_by_what_their_annotations_say(store: Any) -> None:
    """Their answers in their own project were said to be a stranger's, and not to be counted."""
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    server: Any = Answering()
    push.push(store, server, sample, people=["dora@example.org", "bob@example.org"])
    author = {"completed_by": 5, "created_username": "Dora D. dora@example.org, 5"}
    server.given = [{"id": 1, "result": [], **author}]
    first, second = status.status(store, server, sample)
    assert (first["annotators"], first["refused"], first["notes"]) == ({"dora@example.org": 1}, 0, [])
    assert (second["annotators"], second["refused"]) == ({}, 1)
    assert "by dora@example.org: this is the project of bob@example.org" in second["notes"][0]


def test_a_codebook_without_a_project_has_a_dash_for_it(store: Any) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    server: Any = Answering()
    (row,) = status.status(store, server, sample)
    assert row["project"] is None
    assert status_cells(row)[0] == "–"


def test_an_annotator_whose_project_is_gone_has_a_row_that_says_so(store: Any) -> None:
    """A push that was killed between two projects looked like one that was whole."""
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20, overlap=1.0))
    server: Any = Answering()
    push.push(store, server, sample)
    server.given = []
    (gone,) = [project for project in server.made if "annotator=2" in project.description]
    server.made.remove(gone)
    first, second = status.status(store, server, sample)
    assert (first["annotator"], second["annotator"], second["missing"]) == ("1", "2", 20)
    assert second["notes"] == ["codebook initiative: annotator 2 has no project: push makes it"]


def test_a_project_whose_codebook_has_changed_since_it_was_pushed_is_told(store: Any) -> None:
    """People went on labelling what no longer counts; the next pull alone said so."""
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    server: Any = Answering()
    server.given = []
    push.push(store, server, sample)
    assert status.status(store, server, sample)[0]["notes"] == []
    text = (ROOT / "schemas" / "codebooks" / "initiative.toml").read_text()
    store.workspace.codebooks.mkdir()
    own = store.workspace.codebooks / "initiative.toml"
    own.write_text(text.replace('title = "', 'title = "Ours: ', 1))
    store.sync()
    (row, *_) = status.status(store, server, sample)
    (note,) = row["notes"]
    assert note.startswith("project 1: codebook 'initiative' has changed since it was pushed (")
