"""Push, label, pull, edit, delete, push again: against a real Label Studio."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coaudit.annotation.labelstudio import LabelStudioError, Server, client
from coaudit.pipeline.annotate import draw, pull, push, status
from coaudit.pipeline.annotate.push import PushResult
from coaudit.pipeline.errors import CoauditError, UsageError
from coaudit.pipeline.ingest import imports
from coaudit.pipeline.store import Store, dictionaries
from coaudit.pipeline.store.ledgers import samples
from coaudit.pipeline.store.ledgers.samples import Sample
from tests.annotation.labelstudio.running import ADMIN, TOKEN, Running, choice
from tests.conftest import Coaudit

pytestmark = pytest.mark.slow


def drawn(store: Store, *books: str, size: int = 6, name: str = "first", annotators: int = 1) -> Sample:
    wish = draw.Wish(codebooks=books, name=name, size=size, overlap=1.0, annotators=annotators)
    return draw.draw(store, wish)


def pushed(store: Store, server: Server, sample: Sample, **options: Any) -> PushResult:
    (one,) = push.push(store, server, sample, **options)
    return one


def human(store: Store) -> list[dict[str, Any]]:
    query = (
        "SELECT * FROM current_ratings WHERE rater_kind = 'human' ORDER BY trajectory_id, event, rater, code"
    )
    with store.reading() as connection:
        return dictionaries(connection, query)


def lines(store: Store) -> int:
    with store.reading() as connection:
        return len(connection.execute("SELECT 1 FROM ratings WHERE rater_kind = 'human'").fetchall())


def test_two_annotators_label_edit_and_delete_and_the_ledger_keeps_every_version(
    store: Store, server: Server, label_studio: Running
) -> None:
    sample = drawn(store, "confirmation", annotators=2)
    second = label_studio.signed_up("second@example.org")
    projects = push.push(store, server, sample, people=[ADMIN, "second@example.org"])
    tasks, theirs = (label_studio.tasks(one.project) for one in projects)
    assert [task["data"] for task in tasks] == [task["data"] for task in theirs]
    mine = label_studio.annotate(tasks[0]["id"], [choice("yes")])
    label_studio.annotate(theirs[0]["id"], [choice("no")], second)
    label_studio.annotate(theirs[1]["id"], [choice("unclear")], second)
    label_studio.annotate(theirs[2]["id"], [], second, was_cancelled=True)

    first = pull.pull(store, server, sample)

    assert (first.annotations, first.rated, first.errors) == (4, 3, 1)
    by = {(r["rater"], r["label"]) for r in human(store)}
    assert by == {
        (f"ls:{ADMIN}", "yes"),
        ("ls:second@example.org", "no"),
        ("ls:second@example.org", "unclear"),
        ("ls:second@example.org", None),
    }
    skipped = next(r for r in human(store) if r["error"])
    assert skipped["error"] == "skipped by the annotator"
    given = next(r for r in human(store) if r["label"] == "yes")
    assert given["seconds"] == 12.5
    assert json.loads(given["external"])["labelstudio"]["annotation"] == mine

    rows = status.status(store, server, sample)
    assert [row["annotator"] for row in rows] == [ADMIN, "second@example.org"]
    counts = ("tasks", "missing", "annotated", "finished", "skipped", "refused")
    assert [[row[name] for name in counts] for row in rows] == [[6, 0, 1, 1, 0, 0], [6, 0, 2, 2, 1, 0]]
    assert [row["annotators"] for row in rows] == [{ADMIN: 1}, {"second@example.org": 2}]
    assert all(row["last_pull"] is not None and row["notes"] == [] for row in rows)

    again = pull.pull(store, server, sample)
    assert (again.rated, again.retracted, again.unchanged) == (0, 0, 4)

    label_studio.api("PATCH", f"/api/annotations/{mine}/", json={"result": [choice("no")]})
    edited = pull.pull(store, server, sample)
    assert edited.rated == 1
    assert [r["label"] for r in human(store) if r["rater"] == f"ls:{ADMIN}"] == ["no"]

    label_studio.api("DELETE", f"/api/annotations/{mine}/")
    deleted = pull.pull(store, server, sample)
    assert deleted.retracted == 1
    assert [r["label"] for r in human(store) if r["rater"] == f"ls:{ADMIN}"] == []
    assert lines(store) == 4 + 1 + 1

    label_studio.annotate(tasks[0]["id"], [choice("yes")])
    assert pull.pull(store, server, sample).rated == 1
    assert [r["label"] for r in human(store) if r["rater"] == f"ls:{ADMIN}"] == ["yes"]

    repeated = push.push(store, server, sample)
    assert [(one.project, one.sent, one.already) for one in repeated] == [
        (one.project, 0, 6) for one in projects
    ]
    assert [one.annotator for one in repeated] == [ADMIN, "second@example.org"]


def test_an_answer_that_somebody_else_changed_or_could_see_is_listed_and_never_counted(
    store: Store, server: Server, label_studio: Running
) -> None:
    sample = drawn(store, "initiative", name="intruded", annotators=2)
    intruder = label_studio.signed_up("intruder@example.org")
    projects = push.push(store, server, sample, people=[ADMIN, "intruder@example.org"])
    tasks = label_studio.tasks(projects[0].project)
    before, unpulled, starred = (label_studio.annotate(t["id"], [choice("yes")]) for t in tasks[:3])
    label_studio.api("DELETE", f"/api/annotations/{unpulled}/")
    pull.pull(store, server, sample)

    unpulled = label_studio.annotate(tasks[1]["id"], [choice("yes")])
    for annotation in (before, unpulled):
        body = {"result": [choice("no")]}
        label_studio.api("PATCH", f"/api/annotations/{annotation}/", intruder, json=body)
    label_studio.api("PATCH", f"/api/annotations/{starred}/", intruder, json={"ground_truth": True})
    label_studio.annotate(tasks[3]["id"], [choice("no")], intruder)
    done = pull.pull(store, server, sample)

    assert (done.rated, done.retracted) == (1, 0)
    assert [(r.annotation, r.completed_by, r.updated_by) for r in done.refused[:3]] == [
        (number, ADMIN, "intruder@example.org") for number in (before, unpulled, starred)
    ]
    assert f"this is the project of {ADMIN}" in done.refused[3].reason
    assert sum("changed by intruder@example.org" in line for line in done.reports) == 3
    assert {(r["rater"], r["label"], r["event"]) for r in human(store)} == {
        (f"ls:{ADMIN}", "yes", tasks[0]["data"]["event"]),
        (f"ls:{ADMIN}", "yes", tasks[2]["data"]["event"]),
        ("gold", "yes", tasks[2]["data"]["event"]),
    }
    (row, _) = status.status(store, server, sample)
    assert (row["refused"], row["finished"], len(row["notes"])) == (4, 0, 4)


def test_a_mark_as_ground_truth_is_the_gold_rating_until_it_is_taken_away(
    store: Store, server: Server, label_studio: Running
) -> None:
    sample = drawn(store, "initiative")
    task = label_studio.tasks(pushed(store, server, sample).project)[0]
    mine = label_studio.annotate(task["id"], [choice("yes")], ground_truth=True)
    pull.pull(store, server, sample)
    assert {(r["rater"], r["label"]) for r in human(store)} == {("gold", "yes"), (f"ls:{ADMIN}", "yes")}
    label_studio.api("PATCH", f"/api/annotations/{mine}/", json={"ground_truth": False})
    pull.pull(store, server, sample)
    assert {(r["rater"], r["label"]) for r in human(store)} == {(f"ls:{ADMIN}", "yes")}


def test_what_people_disagree_on_is_settled_in_a_project_of_its_own_and_comes_back_as_gold(
    store: Store, server: Server, label_studio: Running
) -> None:
    first = drawn(store, "halting", annotators=2)
    second = label_studio.signed_up("other@example.org")
    mine, theirs = (label_studio.tasks(one.project) for one in push.push(store, server, first))
    for task, other, label in zip(mine[:2], theirs[:2], ("no", "yes"), strict=True):
        label_studio.annotate(task["id"], [choice("yes")])
        label_studio.annotate(other["id"], [choice(label)], second)
    pull.pull(store, server, first)

    disputed = draw.draw(store, draw.Wish(("halting",), "disputed", method="disagreements"))
    assert [unit.probability for unit in disputed.units] == [None]
    (task,) = label_studio.tasks(pushed(store, server, disputed).project)
    assert task["data"]["given"] == [
        {"author": "Annotator 1", "text": "yes"},
        {"author": "Annotator 2", "text": "no"},
    ]
    label_studio.annotate(task["id"], [choice("no")])
    pull.pull(store, server, disputed)

    gold = [r for r in human(store) if r["rater"] == "gold"]
    assert [(r["trajectory_id"], r["event"], r["label"]) for r in gold] == [
        (disputed.units[0].trajectory, disputed.units[0].event, "no")
    ]
    assert len(human(store)) == 4 + 1
    with pytest.raises(UsageError, match="the sample is empty"):
        draw.draw(store, draw.Wish(("halting",), "rest", method="disagreements"))


def test_a_label_outside_the_codebook_and_a_double_label_are_reported_and_never_a_no(
    store: Store, server: Server, label_studio: Running
) -> None:
    sample = drawn(store, "halting")
    tasks = label_studio.tasks(pushed(store, server, sample).project)
    label_studio.annotate(tasks[0]["id"], [choice("maybe")])
    label_studio.annotate(tasks[1]["id"], [choice("yes")])
    label_studio.annotate(tasks[1]["id"], [choice("no")])
    label_studio.annotate(tasks[2]["id"], [choice("yes", "somebody_elses")])
    done = pull.pull(store, server, sample)
    assert [r["label"] for r in human(store) if r["label"]] == ["no"]
    told = "\n".join(done.reports)
    assert (
        "'maybe'" in told and "labelled it 2 times, the latest counts" in told and "'somebody_elses'" in told
    )
    assert any(b"maybe" in line for _, _, line in store.workspace.received.lines())


def test_failure_modes_cite_the_events_that_were_marked(
    store: Store, server: Server, label_studio: Running
) -> None:
    sample = drawn(store, "failures", size=3)
    tasks = label_studio.tasks(pushed(store, server, sample).project)
    line = 3
    passage = {
        "start": str(line),
        "end": str(line),
        "startOffset": 0,
        "endOffset": 9,
        "text": "[1] a passage",
    }
    marked = {"id": "r1", "from_name": "evidence", "to_name": "transcript", "type": "paragraphlabels"}
    ticked = {"from_name": "present", "to_name": "transcript", "type": "taxonomy"}
    read = choice("I read the log to its end: what I did not mark is absent", "read")
    result = [
        {**marked, "value": {**passage, "paragraphlabels": ["C.1 Silent start"]}},
        {**choice("scaffolding", "error_source"), "id": "r1"},
        {**ticked, "value": {"taxonomy": [["C Communication", "C.4 No time estimate"]]}},
        {**ticked, "from_name": "cannot_tell", "value": {"taxonomy": [["P", "P.1 Rigid template"]]}},
        read,
    ]
    label_studio.annotate(tasks[0]["id"], result)
    label_studio.annotate(tasks[1]["id"], [{**marked, "value": {**passage, "paragraphlabels": ["Z.9 New"]}}])
    done = pull.pull(store, server, sample)
    assert done.rated == 26 and done.errors == 26
    said = {r["code"]: r for r in human(store) if r["label"]}
    assert said["C.1"]["label"] == said["C.4"]["label"] == "present"
    assert said["C.1"]["cites"] == [tasks[0]["data"]["seqs"][line]]
    assert (said["C.1"]["quote"], said["C.1"]["error_source"]) == ("a passage", "scaffolding")
    assert said["P.1"]["label"] == "unclear" and said["C.2"]["label"] == "absent"
    assert any("'Z.9 New' is not in the codebook" in report for report in done.reports)


def test_a_server_that_dies_in_the_middle_of_a_push_gets_the_rest_next_time_and_nothing_twice(
    store: Store, label_studio: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "BATCH_TASKS", 4)
    sample = drawn(store, "initiative", size=12, name="killed")

    class Dying(Server):
        batches = 0

        def upload(self, key: int, tasks: Any) -> None:
            super().upload(key, tasks)
            self.batches += 1
            if self.batches == 2:  # it arrived, and nobody will ever know
                label_studio.kill()
                raise client.Unreachable("gone")

    monkeypatch.setattr(client, "PATIENCE", 0.0)
    with (
        Dying(label_studio.url, TOKEN) as dying,
        pytest.raises(CoauditError, match=r"went away after 4 of 12 tasks; push again"),
    ):
        push.push(store, dying, sample)
    label_studio.restart()
    with Server(label_studio.url, TOKEN) as again:
        done = pushed(store, again, sample)
    assert (done.sent, done.already) == (4, 8)
    keys = [task["data"]["coaudit_key"] for task in label_studio.tasks(done.project)]
    assert len(keys) == len(set(keys)) == 12


def test_a_configuration_changed_by_hand_is_left_alone_until_reset(
    store: Store, server: Server, label_studio: Running
) -> None:
    sample = drawn(store, "initiative", name="changed")
    project = pushed(store, server, sample).project
    ours = label_studio.api("GET", f"/api/projects/{project}/")["label_config"]
    changed = ours.replace("Notes: why", "Remarks: why")
    label_studio.api("PATCH", f"/api/projects/{project}/", json={"label_config": changed})
    noted = pushed(store, server, sample)
    assert "changed by hand; it is left as it is" in noted.notes[0]
    assert label_studio.api("GET", f"/api/projects/{project}/")["label_config"] == changed
    assert "ours is back" in pushed(store, server, sample, reset_config=True).notes[0]
    assert label_studio.api("GET", f"/api/projects/{project}/")["label_config"] == ours
    assert pushed(store, server, sample).notes == []


def test_tasks_imported_by_hand_are_known_by_their_key(
    store: Store, server: Server, label_studio: Running
) -> None:
    sample = drawn(store, "halting", name="byhand")
    project = pushed(store, server, sample).project
    tasks = label_studio.tasks(project)
    for task in tasks[:3]:
        label_studio.api("DELETE", f"/api/tasks/{task['id']}/")
    label_studio.api("POST", f"/api/projects/{project}/import", json=[{"data": tasks[0]["data"]}])
    foreign = {**tasks[0]["data"], "coaudit_key": "of somebody else"}
    label_studio.api("POST", f"/api/projects/{project}/import", json=[{"data": foreign}])
    assert pushed(store, server, sample).sent == 2
    for task in label_studio.tasks(project):
        label_studio.annotate(task["id"], [choice("yes")])
    done = pull.pull(store, server, sample)
    assert done.rated == 6
    assert any("carries no key of this sample" in report for report in done.reports)


def test_a_deleted_task_takes_its_ratings_back_and_a_changed_unit_is_kept_and_not_counted(
    store: Store, server: Server, label_studio: Running
) -> None:
    sample = drawn(store, "initiative", size=3, name="gone")
    tasks = label_studio.tasks(pushed(store, server, sample).project)
    for task in tasks:
        label_studio.annotate(task["id"], [choice("yes")])
    with store.writing() as connection:
        place = [sample.units[0].trajectory, sample.units[0].event]
        connection.execute("UPDATE units SET hash = 'x' WHERE trajectory_id = ? AND event = ?", place)
        connection.execute("UPDATE events SET text = 'x' WHERE trajectory_id = ? AND seq = ?", place)
    done = pull.pull(store, server, sample)
    assert any("has changed since it was sampled" in report for report in done.reports)
    with store.reading() as connection:
        counted = connection.execute("SELECT count(*) FROM counted_ratings WHERE rater_kind = 'human'")
        assert counted.fetchall() == [(2,)]
    label_studio.api("DELETE", f"/api/tasks/{tasks[1]['id']}/")
    assert pull.pull(store, server, sample).retracted == 1
    left = push.push(store, server, sample)[0]
    assert left.left_out and "changed since the sample was drawn" in left.left_out[0]


def test_annotators_see_no_judge_unless_asked_for(
    store: Store, server: Server, label_studio: Running, tmp_path: Path
) -> None:
    with store.reading() as connection:
        unit = dictionaries(
            connection, "SELECT * FROM units WHERE kind = 'utterance' AND NOT opening ORDER BY ALL LIMIT 1"
        )[0]
    rating = {"trajectory": unit["trajectory_id"], "event": unit["event"], "codebook": "initiative"}
    rating |= {
        "code": "initiative",
        "rater": "judge-x",
        "rater_kind": "llm",
        "label": "yes",
        "probability": 0.9,
    }
    (tmp_path / "r.jsonl").write_text(json.dumps(rating))
    imports.ratings(store, tmp_path / "r.jsonl")
    everything = draw.Wish(
        codebooks=("initiative",), name="blind", size=10_000, method="stratified", by=("judge",), annotators=1
    )
    blind = draw.draw(store, everything)
    assert {unit.stratum for unit in blind.units} == {"judge=yes", "judge=none"}
    tasks = label_studio.tasks(pushed(store, server, blind).project)
    # Lists and the unit hold the log's own words, in which somebody may speak of judging.
    own = [
        {k: v for k, v in task["data"].items() if not isinstance(v, list) and k != "unit"} for task in tasks
    ]
    assert "judge" not in json.dumps(own) and "judge-x" not in json.dumps([task["data"] for task in tasks])
    assert not any({"stratum", "probability"} & set(one) for one in own)
    assert all(not task["predictions"] for task in tasks)
    seen = drawn(store, "initiative", size=10_000, name="seen")
    shown = label_studio.tasks(pushed(store, server, seen, judge="judge-x").project)
    (prediction,) = [p for task in shown for p in task["predictions"]]
    assert prediction["result"][0]["value"] == {"choices": ["yes"]} and prediction["score"] == 0.9


def test_both_kinds_of_token_work_and_a_wrong_one_is_named_but_never_printed(
    store: Store, label_studio: Running, process: Coaudit
) -> None:
    drawn(store, "initiative", name="tokens")
    personal = {
        "LABEL_STUDIO_URL": label_studio.url,
        "LABEL_STUDIO_API_KEY": label_studio.personal_access_token(),
    }
    pushed_by_command = process("labelstudio", "push", "--json", **personal).json
    assert pushed_by_command["projects"][0]["sent"] == 6
    assert pushed_by_command["invitation"].startswith(f"{label_studio.url}/user/signup/?token=")
    wrong = process("labelstudio", "pull", status=1, **{**personal, "LABEL_STUDIO_API_KEY": "no-such-token"})
    assert "refuses the token" in wrong.err and "no-such-token" not in wrong.err + wrong.out
    with (
        Server("http://127.0.0.1:9", "no-such-token") as gone,
        pytest.raises(LabelStudioError, match=r"^http://127.0.0.1:9: no answer from Label Studio"),
    ):
        gone.check()


def test_an_export_by_hand_comes_back_as_the_same_ratings(
    store: Store, server: Server, label_studio: Running, process: Coaudit, tmp_path: Path
) -> None:
    sample = drawn(store, "confirmation", name="files")
    process("labelstudio", "export", tmp_path / "files")
    tasks = json.loads((tmp_path / "files" / "files.confirmation.tasks.json").read_text())
    config = (tmp_path / "files" / "files.confirmation.config.xml").read_text()
    made = label_studio.api("POST", "/api/projects/", json={"title": "by hand", "label_config": config})
    label_studio.api("POST", f"/api/projects/{made['id']}/import", json=tasks)
    for task in label_studio.tasks(made["id"])[:2]:
        label_studio.annotate(task["id"], [choice("no")])
    exported = label_studio.api("GET", f"/api/projects/{made['id']}/export", params={"exportType": "JSON"})
    (tmp_path / "export.json").write_text(json.dumps(exported))
    who = exported[0]["annotations"][0]["completed_by"]
    done = process(
        "labelstudio", "import", tmp_path / "export.json", "--annotator", f"{who}=a@b.org", "--json"
    )
    assert done.json["rated"] == 2
    assert {(r["rater"], r["label"]) for r in human(store)} == {("ls:a@b.org", "no")}
    assert sample.design.identity == samples.load(store.workspace, "files").design.identity
