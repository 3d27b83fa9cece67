"""Which of a person's annotations of a unit counts, from one pull to the next."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from coaudit.annotation.labelstudio import Project, client
from coaudit.annotation.labelstudio import config as label_config
from coaudit.annotation.labelstudio.client import ListedTask
from coaudit.pipeline.annotate import draw, pull, push
from coaudit.pipeline.annotate.project import Mark, book_of, keep_codebook, subject
from coaudit.pipeline.annotate.reconcile import ProjectPull, PullResult
from coaudit.pipeline.errors import SourceError
from coaudit.pipeline.ingest import imports
from coaudit.pipeline.store import Store
from coaudit.pipeline.store.ledgers.samples import Sample
from tests.pipeline.annotate.test_push import store as store
from tests.pipeline.stores import rate, verdict, write_lines

URL = "http://127.0.0.1:1"


def said(number: int, label: str, minute: int, **more: Any) -> dict[str, Any]:
    answer = {
        "from_name": "answer",
        "to_name": "transcript",
        "type": "choices",
        "value": {"choices": [label]},
    }
    moment = f"2026-01-01T10:{minute:02}:00Z"
    return {
        "id": number,
        "completed_by": 1,
        "created_at": moment,
        "updated_at": moment,
        "result": [answer],
    } | more


def pulled(
    store: Store, sample: Sample, tasks: dict[int, list[dict[str, Any]]], alive: set[int] | None
) -> list[str]:
    """The labels that hold once these tasks of one unit were pulled."""
    book, units = book_of(sample, "initiative", store.workspace)
    key = subject(sample, units[0], book.version).key
    touched = [ListedTask(task, key, (), "", 1, annotations) for task, annotations in tasks.items()]
    ProjectPull(store, sample, book, URL, 1, {1: "ann", 2: "bob"}, PullResult()).take(touched, alive)
    store.sync()
    return labels(store)


def labels(store: Store) -> list[str]:
    with store.reading() as connection:
        return [row[0] for row in connection.execute("SELECT label FROM counted").fetchall()]


@pytest.mark.parametrize(
    "origin",
    [
        *("x", ["x"], {}, {"server": URL}, {"server": URL, "project": 1, "task": [7]}),
        *({"server": URL, "project": 1, "updated_at": 5}, {"server": URL, "project": 2}),
    ],
)
def test_an_imported_rating_with_any_origin_stops_no_pull(store: Store, origin: Any) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    event = sample.units[0].event
    line = verdict("t", event, "initiative", "no", rater="ls:ann", rater_kind="human")
    rate(store, [line | {"external": {"labelstudio": origin}}])
    server: Any = Listing()
    server.add(store, sample)
    server.answer(1, said(1, "yes", 0))
    pull.pull(store, server, sample)
    store.sync()
    assert "yes" in labels(store)


@pytest.mark.long
def test_the_answer_before_counts_again_where_the_latest_was_deleted(store: Store) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    first, again = said(1, "no", 0), said(2, "yes", 5)
    assert pulled(store, sample, {7: [first, again]}, {7}) == ["yes"]
    assert pulled(store, sample, {7: [first]}, {7}) == ["no"]
    assert pulled(store, sample, {7: [first]}, {7}) == ["no"]


@pytest.mark.long
def test_the_answer_before_counts_again_where_the_task_of_the_latest_was_deleted(store: Store) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    first, again = said(1, "no", 0), said(2, "yes", 5)
    assert pulled(store, sample, {7: [first], 8: [again]}, {7, 8}) == ["yes"]
    assert pulled(store, sample, {7: [first]}, {7, 8}) == ["yes"]
    assert pulled(store, sample, {7: [first]}, {7}) == ["no"]


@pytest.mark.long
def test_a_later_answer_that_somebody_else_changed_since_stays_as_it_was(store: Store) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    first, again = said(1, "no", 0), said(2, "yes", 5)
    assert pulled(store, sample, {7: [first, again]}, {7}) == ["yes"]
    assert pulled(store, sample, {7: [first, said(2, "no", 6, updated_by=2)]}, {7}) == ["yes"]


def exported(sample: Sample, store: Store, created: str, *given: dict[str, Any] | None) -> list[Any]:
    """A JSON export with a task a unit; a new server numbers its people, projects and tasks from 1."""
    book, units = book_of(sample, "initiative", store.workspace)
    keep_codebook(store.workspace, book)
    data = [{"coaudit_key": subject(sample, unit, book.version).key, "codebook": book.name} for unit in units]
    return [
        {
            "id": n + 1,
            "data": data[n] | {"codebook_version": book.version},
            "created_at": created,
            "annotations": [{"project": 1} | one] if one else [],
        }
        for n, one in enumerate(given)
    ]


@pytest.mark.long
def test_an_export_of_another_server_with_the_same_numbers_takes_nothing_back(store: Store) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    file = store.workspace.path / "export.json"

    def taken(created: str, who: str, *given: dict[str, Any] | None) -> PullResult:
        file.write_text(json.dumps(exported(sample, store, created, *given)))
        return pull.import_file(store, sample, file, {1: who})

    mine = (said(1, "yes", 0), said(2, "yes", 0))
    taken("2026-01-01T09:00:00Z", "ann@example.org", *mine)
    assert taken("2026-01-02T09:00:00Z", "bob@example.org", said(1, "no", 5), None).retracted == 0
    assert sorted(labels(store)) == ["no", "yes", "yes"]
    assert taken("2026-01-01T09:00:00Z", "ann@example.org", *mine).unchanged == 2
    assert taken("2026-01-01T09:00:00Z", "ann@example.org", None, mine[1]).retracted == 1
    assert sorted(labels(store)) == ["no", "yes"]


@pytest.mark.long
def test_an_export_is_checked_before_anything_of_it_is_taken_over(store: Store) -> None:
    """A list for an id went into the ledger, and no pull or import of the codebook got past it again."""
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    file = store.workspace.path / "export.json"
    for spoilt in ({"id": [1]}, {"lead_time": "abc"}, {"project": "x"}, {"completed_by": "ann"}):
        file.write_text(json.dumps(exported(sample, store, "", said(1, "yes", 0, **spoilt))))
        with pytest.raises(SourceError, match=f"0.annotations.0.{next(iter(spoilt))}"):
            pull.import_file(store, sample, file, {1: "ann"})
    tasks = exported(sample, store, "", said(1, "yes", 0))
    file.write_text(json.dumps([{**tasks[0]["data"], "id": 1, "answer": "yes"}]))
    with pytest.raises(SourceError, match="JSON, of its formats"):  # JSON-MIN
        pull.import_file(store, sample, file, {1: "ann"})
    file.write_text(json.dumps([{**tasks[0], "data": tasks[0]["data"] | {"seqs": [2**31]}}]))
    with pytest.raises(SourceError, match=r"0\.data\.seqs\.0: Input should be less than"):
        pull.import_file(store, sample, file, {1: "ann"})
    tasks[0]["data"]["codebook"] = "../../codebooks/initiative"
    file.write_text(json.dumps(tasks))
    with pytest.raises(SourceError, match="carries a codebook"):
        pull.import_file(store, sample, file, {1: "ann"})
    assert labels(store) == []


@pytest.mark.long
def test_a_person_of_whom_an_export_has_the_number_alone_is_asked_for(store: Store) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    file = store.workspace.path / "export.json"
    file.write_text(json.dumps(exported(sample, store, "", said(1, "yes", 0))))
    (told,) = pull.import_file(store, sample, file, {}).reports
    assert "--annotator 1=EMAIL" in told
    assert pull.import_file(store, sample, file, {1: "ann@example.org"}).reports == []
    by_hand = {"id": 9, "data": {"text": "mine", "codebook": None}, "annotations": []}
    file.write_text(json.dumps([*json.loads(file.read_text()), by_hand]))
    (told,) = pull.import_file(store, sample, file, {1: "ann@example.org"}).reports
    assert told == f"{file}: 1 task without a codebook of coaudit's, not counted"


@pytest.mark.long
def test_who_skips_a_dispute_does_not_take_back_what_another_settled(store: Store) -> None:
    wish = draw.Wish(("initiative",), "pilot", size=20)
    for rater, label in (("ann", "yes"), ("bob", "no")):
        rate(store, [verdict("t", 3, "initiative", label, rater=rater, rater_kind="human")])
    sample = draw.draw(store, replace(wish, name="disputed", method="disagreements"))
    settled, skipped = said(1, "yes", 0), said(2, "no", 5, completed_by=2, was_cancelled=True)
    assert pulled(store, sample, {7: [settled, skipped]}, {7}).count("yes") == 2


@pytest.mark.long
@pytest.mark.parametrize("tells", [True, False], ids=["now", "pushed before"])
@pytest.mark.parametrize("by", ["server", "file"])
def test_who_settles_one_mode_leaves_those_that_people_agree_on_as_they_are(
    store: Store, by: str, tells: bool
) -> None:
    """What was not marked was settled as absent, and outdid a mode that both had found."""
    for rater, modes in (("ann", ("C.1", "P.3")), ("bob", ("C.1",))):
        who = {"rater": rater, "rater_kind": "human"}
        found = {"C.1": "absent", "C.2": "absent", "P.3": "absent"} | dict.fromkeys(modes, "present")
        rate(store, [verdict("t", None, "failures", said, code=code, **who) for code, said in found.items()])
    who = {"rater": "carl", "rater_kind": "human", "code": "C.2"}
    rate(store, [verdict("t", None, "failures", "", **who) | {"label": None, "error": "skipped"}])
    sample = draw.draw(store, draw.Wish(("failures",), "disputed", method="disagreements"))
    book, units = book_of(sample, "failures", store.workspace)
    (task,) = push.tasks_of(store, sample, book, units)
    assert isinstance(task, dict)
    assert [line["text"][:3] for line in task["data"]["given"]] == ["P.3", "P.3"]
    if not tells:  # tasks once did not say what they are about
        del task["data"]["disputed"], task["meta"]["disputed"]
    read = {"from_name": "read", "type": "choices", "value": {"choices": ["I read it"]}}
    noticed = [*label_config.code_path(book, book.code("PL.1"))]
    ticked = {"from_name": "present", "type": "taxonomy", "value": {"taxonomy": [noticed]}}
    answered = {"id": 7, "annotations": [said(1, "", 0, result=[read, ticked])], "updated_at": ""}
    if by == "server":
        touched = client._parse_task({**answered, "meta": task["meta"]}, "meta")
        result = PullResult()
        ProjectPull(store, sample, book, URL, 1, {1: "ann"}, result).take([touched], {7})
        store.sync()
    else:
        keep_codebook(store.workspace, book)
        file = store.workspace.path / "export.json"
        file.write_text(json.dumps([{**answered, "data": task["data"]}]))
        result = pull.import_file(store, sample, file, {1: "ann"})
    query = "SELECT code, label FROM counted_ratings WHERE rater = 'gold' ORDER BY code"
    with store.reading() as connection:
        assert connection.execute(query).fetchall() == [("P.3", "absent")]
    (told,) = result.reports
    assert "nobody disputes PL.1: what it says of that is not counted" in told


@pytest.mark.long
def test_several_who_settle_one_unit_are_told(store: Store) -> None:
    server: Any = Listing()
    sample = draw.draw(store, draw.Wish(("initiative",), "one", size=41))
    server.add(store, sample)
    server.members |= {2: "bob"}
    server.answer(
        1, said(1, "no", 0, ground_truth=True), said(2, "yes", 5, completed_by=2, ground_truth=True)
    )
    told = pull.pull(store, server, sample).reports
    assert told == ["project 1: task 1: 2 annotations settle it, the latest counts"]
    assert sorted(labels(store)) == ["no", "yes", "yes"]


@pytest.mark.long
def test_two_projects_that_settle_one_unit_differently_are_told(store: Store) -> None:
    server: Any = Listing()
    samples = [draw.draw(store, draw.Wish(("initiative",), name, size=41)) for name in ("one", "other")]
    for sample in samples:
        server.add(store, sample)
    server.answer(1, said(1, "no", 0, ground_truth=True))
    assert pull.pull(store, server, samples[0]).reports == []
    server.answer(2, said(2, "yes", 5, completed_by=2, ground_truth=True))
    told = "project 2: task 2 settles initiative as yes, task 1 of project 1 as no: the latest counts"
    assert pull.pull(store, server, samples[1]).reports == [told]
    assert sorted(labels(store)) == ["no", "yes", "yes"]


@pytest.mark.long
def test_people_who_shared_a_project_by_hand_are_said_to_be_not_blind(store: Store) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    file = store.workspace.path / "export.json"
    tasks = exported(sample, store, "", said(1, "yes", 0), said(2, "no", 0))
    tasks[0]["annotations"] += [said(3, "yes", 1, completed_by=2)]
    tasks[1]["annotations"] += [said(4, "yes", 1, completed_by=2, was_cancelled=True)]
    file.write_text(json.dumps(tasks))
    (told,) = pull.import_file(store, sample, file, {1: "ann@example.org", 2: "bob@example.org"}).reports
    assert "several people answered the same task (1 such)" in told


class Listing:
    """As much of `Server` as a pull calls: a project of one task for each sample."""

    url = URL

    def __init__(self, created_at: str = "") -> None:
        self.created_at = created_at
        self.made: list[Project] = []
        self.listed: dict[int, ListedTask] = {}
        self.touched: set[int] = set()
        self.members = {1: "ann"}

    def add(self, store: Store, sample: Sample) -> None:
        book, units = book_of(sample, "initiative", store.workspace)
        keep_codebook(store.workspace, book)
        number = len(self.made) + 1
        mark = Mark(sample.design.identity, book.name, book.version, "transcript", "c")
        self.made.append(Project(number, "t", mark.text(), "", self.created_at))
        key = subject(sample, min(units, key=lambda unit: unit.event or 0), book.version).key
        self.listed[number] = ListedTask(number, key, (), "2026-01-01T10:00:00+00:00", 1, [])

    def answer(self, number: int, *given: dict[str, Any]) -> None:
        self.listed[number].annotations[:] = given
        self.touched = {number}

    def check(self) -> str:
        return "admin"

    def users(self) -> dict[int, str]:
        return self.members

    def projects(self, mark: str) -> list[Project]:
        return [one for one in self.made if mark in one.description]

    def tasks(self, key: int, since: str | None = None) -> list[ListedTask]:
        return [self.listed[key]] if since is None or key in self.touched else []

    def heads(self, key: int) -> list[ListedTask]:
        return [self.listed[key]]


@pytest.mark.long
def test_an_answer_counts_again_where_a_later_one_in_another_sample_was_deleted(store: Store) -> None:
    server: Any = Listing()
    one, other = (draw.draw(store, draw.Wish(("initiative",), name, size=41)) for name in ("one", "other"))
    for sample in (one, other):
        server.add(store, sample)
    server.answer(1, said(1, "no", 0))
    pull.pull(store, server, one)
    server.answer(2, said(2, "yes", 5))
    pull.pull(store, server, other)
    assert labels(store) == ["yes"]
    server.answer(2)
    assert pull.pull(store, server, other).retracted == 1
    assert pull.pull(store, server, one).rated == 1
    assert labels(store) == ["no"]
    assert pull.pull(store, server, one).rated == pull.pull(store, server, other).rated == 0


@pytest.mark.long
def test_of_two_pulls_at_once_the_one_that_listed_earlier_does_not_have_the_last_word(store: Store) -> None:
    """The change was before the mark of the other pull, so that no later one saw it again."""
    server: Any = Listing()
    sample = draw.draw(store, draw.Wish(("initiative",), "one", size=41))
    server.add(store, sample)
    server.answer(1, said(1, "no", 0))
    other = threading.Thread(target=lambda: pull.pull(store, server, sample))
    really = server.tasks

    def listed(key: int, since: str | None = None) -> list[ListedTask]:
        """A list that is on its way while the answer is changed and another pull begins."""
        before = [replace(task, annotations=[*task.annotations]) for task in really(key, since)]
        if not other.ident:
            server.answer(1, said(1, "yes", 0, updated_at="2026-01-01T10:30:00Z"))
            other.start()
            other.join(0.5)
        return before

    server.tasks = listed
    pull.pull(store, server, sample)
    other.join()
    store.sync()
    assert labels(store) == ["yes"]


@pytest.mark.long
def test_answers_that_began_from_a_prediction_are_told_and_marked(store: Store) -> None:
    server: Any = Listing()
    sample = draw.draw(store, draw.Wish(("initiative",), "one", size=41))
    server.add(store, sample)
    server.answer(1, said(1, "no", 0, parent_prediction=9))
    assert "1 of 1 annotation began from a prediction" in pull.pull(store, server, sample).reports[0]
    query = "SELECT external->>'$.labelstudio.parent_prediction' FROM ratings"
    with store.reading() as connection:
        assert connection.execute(query).fetchall() == [("9",)]


@pytest.mark.long
def test_a_project_that_is_gone_is_named_and_its_answers_count_as_before(store: Store) -> None:
    server: Any = Listing()
    sample = draw.draw(store, draw.Wish(("initiative",), "one", size=41))
    for _ in range(2):
        server.add(store, sample)
    server.answer(1, said(1, "no", 0))
    assert pull.pull(store, server, sample).reports == []
    del server.made[0]
    (told,) = pull.pull(store, server, sample).reports
    assert told == "project 1 is gone: its ratings (1) count as before"
    assert labels(store) == ["no"]


@pytest.mark.long
def test_a_server_that_began_anew_takes_nothing_back(store: Store) -> None:
    """Another Label Studio at the same address numbers its projects and tasks from 1, too."""
    before: Any = Listing("2026-01-01T08:00:00Z")
    names = (("one", 20), ("other", 3))  # whose first units are two
    one, other = (draw.draw(store, draw.Wish(("initiative",), name, size=size)) for name, size in names)
    before.add(store, one)
    before.answer(1, said(1, "no", 0))
    pull.pull(store, before, one)
    for sample in (other, one):
        anew: Any = Listing("2026-02-01T08:00:00Z")
        anew.add(store, sample)
        if sample is other:
            anew.answer(1, said(1, "yes", 5))
        done = pull.pull(store, anew, sample)
        assert (done.retracted, sorted(labels(store))) == (0, ["no", "yes"])
    assert done.reports == ["project 1 is gone: its ratings (1) count as before"]


@pytest.mark.long
def test_who_left_the_organisation_keeps_their_name_and_nobody_takes_it(store: Store) -> None:
    """Label Studio called all of them Deleted, so that two people were one, and one person two."""
    server: Any = Listing()
    sample = draw.draw(store, draw.Wish(("initiative",), "one", size=41))
    server.add(store, sample)
    bobs = said(2, "no", 0, completed_by=2)
    server.answer(1, said(1, "yes", 0), bobs)
    server.members = {1: "ann@example.org", 2: "bob@example.org"}
    pull.pull(store, server, sample)
    server.members = {}
    server.answer(1, said(1, "yes", 0), said(2, "yes", 5, completed_by=2), said(3, "no", 6, completed_by=3))
    done = pull.pull(store, server, sample)
    assert (done.rated, done.retracted) == (2, 0)
    with store.reading() as connection:
        query = "SELECT rater, label FROM counted_ratings WHERE rater <> 'gold' ORDER BY rater"
        assert connection.execute(query).fetchall() == [
            ("ls:3", "no"),
            ("ls:ann@example.org", "yes"),
            ("ls:bob@example.org", "yes"),
        ]


@pytest.mark.long
def test_who_left_before_the_first_pull_keeps_their_answers(store: Store) -> None:
    """They were refused: the server's list of people had no address to tell that the project is theirs."""
    server: Any = Listing()
    sample = draw.draw(store, draw.Wish(("initiative",), "one", size=41))
    server.add(store, sample)
    (project,) = server.made
    mark = f"{project.description} annotator=1 person=Dora@example.org"
    server.made[:] = [replace(project, description=mark)]
    server.answer(1, said(1, "yes", 0, completed_by=5, created_username=" dora@example.org, 5"))
    done = pull.pull(store, server, sample)
    assert (done.rated, done.refused) == (1, [])
    with store.reading() as connection:
        raters = connection.execute("SELECT rater FROM counted_ratings WHERE rater <> 'gold'").fetchall()
    assert raters == [("ls:dora@example.org",)]


@pytest.mark.long
def test_an_answer_that_was_taken_back_by_an_import_stays_so_until_it_is_changed(store: Store) -> None:
    """The next pull read the whole project for it, and the answer counted again."""
    server: Any = Listing()
    sample = draw.draw(store, draw.Wish(("initiative",), "one", size=41))
    server.add(store, sample)
    server.answer(1, said(1, "no", 0))
    pull.pull(store, server, sample)
    with store.reading() as connection:
        query = "SELECT trajectory_id, event FROM counted"
        ((trajectory, event),) = connection.execute(query).fetchall()
    line = verdict(trajectory, event, "initiative", "no", rater="ls:ann", rater_kind="human", retracted=True)
    del line["label"]
    imports.ratings(store, write_lines(store.workspace.path / "back.jsonl", [line]))
    for _ in range(2):
        assert pull.pull(store, server, sample).rated == 0
        assert labels(store) == []
    later = {"updated_at": "2100-01-01T10:00:00+00:00"}
    server.answer(1, said(1, "yes", 0) | later)
    assert pull.pull(store, server, sample).rated == 1
    assert labels(store) == ["yes"]


@pytest.mark.long
def test_answers_on_a_codebook_that_has_changed_since_are_kept_and_said_not_to_count(store: Store) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    book, units = book_of(sample, "initiative", store.workspace)
    former = book.model_copy(update={"title": "Who begins"})
    for asked, told in ((book, 0), (former, 1)):
        result = PullResult()
        key = subject(sample, units[0], asked.version).key
        task = ListedTask(7, key, (), "", 1, [said(1, "yes", 0)])
        ProjectPull(store, sample, asked, URL, 1, {1: "ann"}, result).take([task], {7})
        assert (result.rated, len(result.reports)) == (1, told)
    assert result.reports == [
        f"project 1: codebook 'initiative' has changed since it was pushed ({former.version}, now "
        f"{book.version}): its annotations are kept and not counted"
    ]


class Doubled(Listing):
    """The same with a second task for the first unit, as after an import by hand."""

    def add(self, store: Store, sample: Sample) -> None:
        super().add(store, sample)
        self.listed[2] = replace(self.listed[1], id=2, annotations=[])

    def tasks(self, key: int, since: str | None = None) -> list[ListedTask]:
        return [one for one in self.listed.values() if since is None or one.id in self.touched]

    def heads(self, key: int) -> list[ListedTask]:
        return [*self.listed.values()]


@pytest.mark.long
@pytest.mark.parametrize("what", ["annotation", "task"])
def test_an_answer_of_another_task_counts_again_though_nobody_touched_that_task(
    store: Store, what: str
) -> None:
    server: Any = Doubled()
    sample = draw.draw(store, draw.Wish(("initiative",), "one", size=41))
    server.add(store, sample)
    server.answer(1, said(1, "no", 0))
    server.answer(2, said(2, "yes", 5))
    pull.pull(store, server, sample)
    assert labels(store) == ["yes"]
    if what == "annotation":
        server.answer(2)
    else:
        server.touched = set()
        del server.listed[2]
    pull.pull(store, server, sample)
    assert labels(store) == ["no"]
    assert pull.pull(store, server, sample).rated == 0
