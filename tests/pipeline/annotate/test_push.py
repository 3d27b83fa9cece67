"""Which projects a push makes: a server that only remembers, since a real one takes minutes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coaudit.annotation.labelstudio import Project, config
from coaudit.pipeline import codebooks
from coaudit.pipeline.annotate import draw, project, push
from coaudit.pipeline.annotate.project import Mark, mark_of
from coaudit.pipeline.errors import UsageError
from coaudit.pipeline.ingest.measure import save
from coaudit.pipeline.store import Store
from tests.judges.teams import team
from tests.pipeline.stores import made, rate, verdict

pytestmark = pytest.mark.slow  # Label Studio's SDK checks the configuration: its import takes seconds


class Remembering:
    """As much of `Server` as a push calls."""

    url = "http://127.0.0.1:1"

    def __init__(self, *projects: Project) -> None:
        self.made = list(projects)
        self.sent: dict[int, list[str]] = {}

    def check(self) -> str:
        return "admin@example.org"

    def projects(self, mark: str) -> list[Project]:
        return [project for project in self.made if mark in project.description]

    def create(self, title: str, description: str, config: str, instruction: str, overlap: int) -> Project:
        assert overlap == 1
        self.made.append(Project(len(self.made) + 1, title, description, config))
        return self.made[-1]

    def configure(self, key: int, config: str, description: str) -> None:
        at = next(n for n, project in enumerate(self.made) if project.id == key)
        self.made[at] = Project(key, self.made[at].title, description, config)

    def heads(self, key: int) -> list[Any]:
        return []

    def upload(self, key: int, tasks: list[dict[str, Any]]) -> None:
        self.sent.setdefault(key, []).extend(task["data"]["coaudit_key"] for task in tasks)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    kept = made(tmp_path / "workspace")
    with kept.writing() as connection:
        log = team(*[(("human", "agent")[n % 2], f"Message {n}") for n in range(41)], key="t")
        save(kept, [log], connection)
    return kept


def test_each_annotator_has_a_project_with_the_units_that_are_theirs(store: Store) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20, overlap=0.5))
    server: Any = Remembering()
    done = push.push(store, server, sample, people=["ann@example.org", "bob@example.org"])
    assert [one.annotator for one in done] == ["ann@example.org", "bob@example.org"]
    assert [project.title for project in server.made] == [
        "pilot · Initiative · ann@example.org",
        "pilot · Initiative · bob@example.org",
    ]
    ann, bob = (set(server.sent[one.project]) for one in done)
    assert (len(ann), len(bob), len(ann | bob), len(ann & bob)) == (15, 15, 20, 10)


def test_a_sample_that_was_pushed_as_one_project_stays_one_and_it_is_said(store: Store) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    server: Any = Remembering()
    push.push(store, server, sample)
    (mark, *_) = (mark_of(project) for project in server.made)
    assert mark is not None and mark.annotator == "1"
    before = Mark(mark.sample, mark.codebook, mark.version, mark.context, mark.config)
    old: Any = Remembering(Project(1, "pilot", before.text(), server.made[0].config))
    (done,) = push.push(store, old, sample)
    assert (done.project, done.sent, done.annotator, len(old.made)) == (1, 20, "", 1)
    assert "pushed as one project for everybody" in done.notes[0]


def test_annotators_are_named_once_each_and_as_many_as_the_sample_was_drawn_for(store: Store) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    ann = "ann@example.org"
    for people in ([ann], [ann, ann], [ann, "Ann@Example.org"], ["ann", "bob"]):
        with pytest.raises(UsageError, match="--annotator"):
            push.push(store, Remembering(), sample, people=people)  # type: ignore[arg-type]


def test_a_project_named_after_one_person_never_becomes_anothers(store: Store) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    server: Any = Remembering()
    push.push(store, server, sample, people=["ann@example.org", "bob@example.org"])
    with pytest.raises(UsageError, match=r"is that of ann@example.org: it can't become that of bob@"):
        push.push(store, server, sample, people=["bob@example.org", "ann@example.org"])


def test_an_address_in_another_case_is_the_same_person(store: Store) -> None:
    """Label Studio has one account for both, so that they can't be two people."""
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    server: Any = Remembering()
    push.push(store, server, sample, people=["ann@example.org", "bob@example.org"])
    server.made[:] = [
        replace(one, description=one.description.replace("person=ann", "person=Ann")) for one in server.made
    ]
    done = push.push(store, server, sample, people=["Ann@Example.org", "BOB@example.org"])
    assert [one.annotator for one in done] == ["ann@example.org", "bob@example.org"]
    assert len(server.made) == 2


def test_a_project_with_an_earlier_layout_keeps_it_and_says_so_until_asked(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20, annotators=1))
    server: Any = Remembering()
    with monkeypatch.context() as earlier:
        earlier.setattr(config, "_CSS", ".coaudit-page { display: block; }")
        push.push(store, server, sample)
        before = server.made[0].config
    (done,) = push.push(store, server, sample)
    assert "keeps the layout that it was pushed with" in done.notes[0]
    assert server.made[0].config == before
    (done,) = push.push(store, server, sample, reset_config=True)
    assert "has the present layout now" in done.notes[0] and server.made[0].config != before
    (done,) = push.push(store, server, sample)
    assert done.notes == []


def test_a_title_that_is_too_long_ends_with_a_word() -> None:
    sample: Any = SimpleNamespace(design=SimpleNamespace(name="pilot"))
    book = codebooks.load("failures")
    mark = Mark(sample="s", codebook="failures", version="v", context="", config="c", annotator="1")
    told = project.title(sample, book, mark)
    assert told == "pilot · Failure modes of agents in … · annotator 1"


def test_an_export_says_which_units_are_no_longer_what_was_drawn(store: Store, tmp_path: Path) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    first = sample.units[0]
    with store.writing() as connection:
        place = [first.trajectory, first.event]
        connection.execute("UPDATE events SET text = 'x' WHERE trajectory_id = ? AND seq = ?", place)
    paths, left_out = push.export(store, sample, tmp_path / "out")
    tasks = json.loads(next(path for path in paths if path.suffix == ".json").read_text())
    assert len(tasks) == 19
    assert left_out == [
        f"trajectory {first.trajectory}, event {first.event}: changed since the sample was drawn"
    ]


def test_nobody_is_asked_to_settle_what_people_no_longer_differ_on(store: Store, tmp_path: Path) -> None:
    """Answers to it would have been gold, or after a change of the codebook all there is."""
    who = {"rater_kind": "human", "codebook": "initiative"}
    for event, label in ((2, "yes"), (3, "yes"), (2, "no"), (3, "no")):
        rater = "ann" if label == "yes" else "bob"
        rate(store, [verdict("t", event, label=label, rater=rater, **who)])
    sample = draw.draw(store, draw.Wish(("initiative",), "disputed", method="disagreements"))
    rate(store, [verdict("t", 3, label="yes", rater="bob", **who)])
    paths, left_out = push.export(store, sample, tmp_path / "out")
    tasks = json.loads(next(path for path in paths if path.suffix == ".json").read_text())
    assert [task["data"]["event"] for task in tasks] == [2]
    assert left_out == [f"trajectory {sample.units[0].trajectory}, event 3: no two people differ on it now"]


def test_who_could_not_tell_disputes_nothing(store: Store) -> None:
    """Such units are not drawn; beside a dispute on another code they were settled all the same."""
    for rater, labels in (("ann", ("present", "present")), ("bob", ("absent", "unclear"))):
        who = {"rater": rater, "rater_kind": "human"}
        for code, label in zip(("C.1", "C.2"), labels, strict=True):
            rate(store, [verdict("t", None, "failures", label, code=code, **who)])
    sample = draw.draw(store, draw.Wish(("failures",), "disputed", method="disagreements"))
    (task,) = push.tasks_of(store, sample, *project.book_of(sample, "failures", store.workspace))
    assert isinstance(task, dict)
    assert task["data"]["disputed"] == ["C.1"]


def test_an_export_asks_in_the_order_in_which_units_were_drawn(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "AT_ONCE", 3)  # events: fewer than one trajectory has
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    paths, _ = push.export(store, sample, tmp_path / "out")
    tasks = json.loads(next(path for path in paths if path.suffix == ".json").read_text())
    book = codebooks.load("initiative")
    drawn = [project.subject(sample, unit, book.version).key for unit in sample.units]
    assert [task["data"]["coaudit_key"] for task in tasks] == drawn
