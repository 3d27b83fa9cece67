"""Who&When: cases in the shape that was published, and the accuracies that its paper reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.systems.whowhen.reader import labels
from coaudit.schemas import Quarantined
from tests.conftest import Coaudit
from tests.pipeline.systems.formats.logs import one

NAMES = ("Excel_Expert", "Computer_terminal", "Data_Expert", "Excel_Expert")
ROLES = ("human", "Orchestrator (thought)", "Orchestrator (-> WebSurfer)", "WebSurfer")


def case(folder: Path, number: int, agent: str, step: object, *, made: bool = True) -> Path:
    """A case of `Algorithm-Generated`, or else of `Hand-Crafted`."""
    turns: list[dict[str, Any]]
    if made:
        roles = {"Computer_terminal": "user"}
        turns = [
            {"content": f"turn {n}", "role": roles.get(x, "assistant"), "name": x}
            for n, x in enumerate(NAMES)
        ]
    else:
        turns = [{"content": f"turn {n}", "role": role} for n, role in enumerate(ROLES)]
    value = {
        "is_correct" if made else "is_corrected": False,
        "question": "How many?",
        "question_ID": f"{'m' if made else 'w'}{number}",
        "ground_truth" if made else "groundtruth": "SECRET",
        "history": turns,
        "mistake_agent": agent,
        "mistake_step": step,
        "mistake_reason": "It was wrong.",
    }
    path = folder / ("Algorithm-Generated" if made else "Hand-Crafted") / f"{number}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=4), encoding="utf-8")
    return path


def published(folder: Path) -> Path:
    """Two cases of each folder; in the last one, the step is a text as in the files."""
    case(folder, 1, "Excel_Expert", 3)
    case(folder, 2, "Computer_terminal", "1")
    case(folder, 1, "WebSurfer", "3", made=False)
    case(folder, 2, "Orchestrator", "1", made=False)
    return folder


def test_speakers_go_by_their_names_and_all_but_the_human_are_agents(tmp_path: Path) -> None:
    made = one("whowhen", case(tmp_path, 1, "Excel_Expert", 3))
    assert [(p.name, p.kind) for p in made.participants] == [(name, "agent") for name in dict.fromkeys(NAMES)]
    written = one("whowhen", case(tmp_path, 1, "WebSurfer", "3", made=False))
    people = [("human", "human"), ("Orchestrator", "agent"), ("WebSurfer", "agent")]
    assert [(p.name, p.kind) for p in written.participants] == people
    assert [(made.condition, made.native_id), (written.condition, written.native_id)] == [
        ("Algorithm-Generated", "m1"),
        ("Hand-Crafted", "w1"),
    ]
    assert made.hidden == "SECRET" and [event.seq for event in made.events] == [0, 1, 2, 3]


@pytest.mark.parametrize("step", [None, "three", -1, 1.5])
def test_a_step_that_is_none_is_refused(tmp_path: Path, step: object) -> None:
    path = case(tmp_path, 1, "Excel_Expert", step)
    wrong = [item for item in labels(path) if isinstance(item, Quarantined)]
    assert [item.reason.partition(":")[0] for item in wrong] == ["mistake_step"]


def test_a_label_for_nobody_and_for_no_step_is_refused_and_the_others_are_kept(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    case(tmp_path, 1, "Nobody", 3)
    case(tmp_path, 2, "Data_Expert", 99)
    document = coaudit("import", "whowhen", tmp_path, "--json").json
    reasons = sorted(item["reason"] for item in document["quarantined"])
    assert reasons[0].startswith("event 99 is no unit of codebook 'decisive_step'")
    assert reasons[1].startswith(
        "participant: nobody called 'Nobody' did anything, expected one of Excel_Expert"
    )
    # Of each case one of the two codebooks is left: 3 participants, and 4 steps.
    assert document["labels"]["imported"] == 3 + 4


@pytest.mark.long
def test_who_and_when_are_counted_as_the_paper_does(tmp_path: Path, coaudit: Coaudit) -> None:
    coaudit("import", "whowhen", published(tmp_path / "set"))
    marks: list[tuple[str, str, dict[str, object]]] = [
        ("m1", "responsible_agent", {"participant": "excel_expert"}),  # right, case aside
        ("m2", "responsible_agent", {"participant": "Data_Expert"}),
        ("w1", "responsible_agent", {"participant": "WebSurfer"}),  # right, but with another one
        ("w1", "responsible_agent", {"participant": "Orchestrator"}),
        ("w2", "responsible_agent", {"participant": "Orchestrator"}),  # right
        ("m1", "decisive_step", {"event": 0}),  # of the right agent, but not the step
        ("m2", "decisive_step", {"event": 1}),  # right
        ("w1", "decisive_step", {"event": 2}),
    ]
    lines: list[dict[str, object]] = [
        {
            "trajectory": name,
            "codebook": book,
            "code": "decisive",
            "rater": "m",
            "rater_kind": "llm",
            "label": "yes",
            **where,
        }
        for name, book, where in marks
    ]
    path = tmp_path / "judge.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    coaudit("ratings", "import", path)
    rows = coaudit("validate", "m", "--json").json["located"]
    shown = {(row["measure"], row["group"]): (row["value"], row["n"], row["several"]) for row in rows}
    assert shown == {
        ("agent_accuracy", None): (2 / 4, 4, 1),
        ("agent_accuracy", "Algorithm-Generated"): (1 / 2, 2, 0),
        ("agent_accuracy", "Hand-Crafted"): (1 / 2, 2, 1),
        ("step_accuracy", None): (1 / 3, 3, 0),
        ("step_accuracy", "Algorithm-Generated"): (1 / 2, 2, 0),
        ("step_accuracy", "Hand-Crafted"): (0, 1, 0),
    }
    assert "step_accuracy: 0.333 [0.061, 0.792], 3 of 4 runs" in coaudit("validate", "m").out


@pytest.mark.long
def test_importing_a_set_again_changes_nothing(tmp_path: Path, coaudit: Coaudit) -> None:
    first = coaudit("import", "whowhen", published(tmp_path), "--json").json
    again = coaudit("import", "whowhen", tmp_path, "--json").json
    # 3 participants and 4 steps a made case; of a written one 3 participants and 4 steps.
    assert (first["trajectories"], first["labels"]["imported"]) == (4, 4 * 7)
    assert (again["trajectories"], again["unchanged"]) == (0, 4)
    assert again["labels"] == {"imported": 0, "unchanged": 4 * 7}


def test_a_folder_without_such_files_says_what_is_in_it(tmp_path: Path, coaudit: Coaudit) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "log.json").write_text('[{"a": 1}]', encoding="utf-8")
    wrong = coaudit("import", "whowhen", tmp_path / "set", status=1).err
    assert "no files of whowhen in it; it looks like 1 record of json with" in wrong
    assert "expected one of mast, whowhen" in coaudit("import", "else", tmp_path, status=2).err


def test_a_case_that_was_cut_off_is_named_and_other_files_are_not(tmp_path: Path, coaudit: Coaudit) -> None:
    path = case(published(tmp_path), 3, "Excel_Expert", 3)
    path.write_text(path.read_text()[:100])
    (path.parent / "README.md").write_text("Cases.")
    (tmp_path / "summary.json").write_text("{}")
    document = coaudit("import", "whowhen", tmp_path, "--json").json
    assert document["trajectories"] == 4
    assert [one["source"] for one in document["quarantined"]] == [str(path)]
