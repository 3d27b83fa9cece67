"""MAST: records in the shape that was published, and the agreement of three people on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.systems.mast.annotations import code_of
from coaudit.pipeline.systems.mast.reader import turns_of
from tests.conftest import Coaudit
from tests.pipeline.systems.formats.logs import read

CHATDEV = (
    "[2025-01-01 10:00:00 INFO] Chief Product Officer: **go**\nA plan.\n"
    "[2025-01-01 10:00:01 INFO] Programmer: ok"
)
OF_CHATDEV = [("Chief Product Officer", "**go**\nA plan."), ("Programmer", "ok")]
MAGENTIC = "x\n---------- MagenticOne ----------\nhi\n---------- WebSurfer ----------\nyo"
AG2 = json.dumps(
    {"trajectory": [{"content": ["Solve", "it"], "name": "proxy"}, {"content": "5", "name": "solver"}]}
)
VOTES = ((True, True, True), (False, True, True), (True, True, True), (False, True, False))
"""Of three annotators on mode 1.1 in four traces; the second says it of all, as in the published file."""


def records(count: int = 4, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "round": "Generlazability",
            "mas_name": ("ChatDev", "AG2")[n % 2],
            "benchmark_name": "ProgramDev",
            "trace_id": n,
            "trace": (CHATDEV, AG2)[n % 2],
            "annotations": [
                {
                    "failure mode": f"{mode}\n\nA definition.",
                    **{f"annotator_{k + 1}": vote for k, vote in enumerate(votes)},
                }
                for mode, votes in (
                    ("1.1 Disobey Task Specification", VOTES[n]),
                    ("3.1 Premature Termination", (False,) * 3),
                )
            ],
            **more,
        }
        for n in range(count)
    ]


def dumped(folder: Path, value: object) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "MAD_human_labelled_dataset.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("trace", "turns"),
    [
        (CHATDEV, OF_CHATDEV),
        (AG2, [("proxy", "Solve\nit"), ("solver", "5")]),
        ({"key": "k", "index": 1, "trajectory": CHATDEV}, OF_CHATDEV),
        (MAGENTIC, [("environment", "x"), ("MagenticOne", "hi"), ("WebSurfer", "yo")]),
        ("nothing marks a turn here", [("team", "nothing marks a turn here")]),
        ("", []),
        (None, []),
    ],
)
def test_a_trace_is_cut_where_its_framework_marks_turns(trace: Any, turns: list[tuple[str, str]]) -> None:
    assert turns_of(trace, "team") == turns


def test_a_record_without_a_trace_costs_only_itself(tmp_path: Path) -> None:
    value = [*records(1), *records(1, trace="", trace_id=9)]
    trajectories, wrong = read("mast", dumped(tmp_path, value))
    assert [t.native_id for t in trajectories] == ["ChatDev/ProgramDev/0"]
    assert [(q.line, "nothing in it" in q.reason) for q in wrong] == [(2, True)]


@pytest.mark.parametrize(
    ("mode", "numbers", "code"),
    [
        ("1.3 Step Repetition", {"1.3"}, "1.3"),
        ("2.2 Step repetition", {"2.2", "4.1"}, "1.3"),
        ("1.5 Step repetition", {"1.5", "1.7"}, "1.3"),
        ("2.1 Unbatched repetitive execution", {"4.1"}, "D.2"),
        ("3.4 Waiting for known information", {"4.1"}, "D.4"),
    ],
)
def test_the_modes_of_earlier_rounds_are_those_that_were_published(
    mode: str, numbers: set[str], code: str
) -> None:
    assert code_of(mode, numbers) == code


@pytest.mark.parametrize("mode", ["no number", "1.3 Something new"])
def test_a_mode_that_is_none_is_refused(mode: str) -> None:
    with pytest.raises(ValueError, match="failure mode: "):
        code_of(mode, {"4.1"})


@pytest.mark.long
def test_the_agreement_of_three_people_is_printed_a_mode(tmp_path: Path, coaudit: Coaudit) -> None:
    coaudit("import", "mast", dumped(tmp_path / "set", records()).parent)
    (book,) = coaudit("validate", "--json").json["people"]
    rows = {(r["code"], r["coefficient"], tuple(r["raters"])): r for r in book["codes"]}
    trio = ("annotator_1", "annotator_2", "annotator_3")
    # Cohen: whoever says the same of all agrees as chance has it, 0; annotators 1 and 3 agree on 3 of 4
    # traces, their margins are 2/4 and 3/4: expected 1/2, kappa (3/4 − 1/2) / (1/2) = 1/2. The mean is 1/6.
    assert rows["1.1", "cohen_kappa", trio[:2]]["value"] == pytest.approx(0)
    assert rows["1.1", "mean_cohen_kappa", trio]["value"] == pytest.approx(1 / 6)
    # Fleiss: present 3, 2, 3, 1 of 3: agreeing pairs 1, 1/3, 1, 1/3, mean 2/3; p = 9/12, expected 5/8;
    # kappa (2/3 − 5/8) / (3/8) = 1/9.
    assert rows["1.1", "fleiss_kappa", trio]["value"] == pytest.approx(1 / 9)
    # 3.1 is constant: nobody found it anywhere.
    assert rows["3.1", "fleiss_kappa", trio]["value"] is None
    assert rows["3.1", "fleiss_kappa", trio]["reason"]
    text = coaudit("validate").out
    assert "1.1: mean_cohen_kappa 0.167" in text and "found 2 of 4, 4 of 4, 3 of 4" in text


@pytest.mark.long
def test_modes_are_pooled_over_all_and_by_round(tmp_path: Path, coaudit: Coaudit) -> None:
    value = [{**record, "round": f"Round {1 + n // 2}"} for n, record in enumerate(records())]
    coaudit("import", "mast", dumped(tmp_path / "set", value).parent)
    (book,) = coaudit("validate", "--json").json["people"]
    fleiss = {row["group"]: row["value"] for row in book["pooled"] if row["coefficient"] == "fleiss_kappa"}
    # 8 cells: present 3, 2, 3, 1 and four times 0; agreeing pairs (1 + 1/3 + 1 + 1/3 + 4) / 8 = 5/6;
    # p = 9/24, expected (9/24)² + (15/24)² = 17/32; kappa (5/6 − 17/32) / (15/32) = 29/45.
    assert fleiss[None] == pytest.approx(29 / 45)
    # Round 1: present 3, 2 and twice 0 of 3: (1 + 1/3 + 2) / 4 = 5/6; p = 5/12, expected 37/72; 23/35.
    assert fleiss["Round 1"] == pytest.approx(23 / 35)


@pytest.mark.long
def test_what_a_model_annotated_is_a_rater_of_its_own(tmp_path: Path, coaudit: Coaudit) -> None:
    value = records(mast_annotation={"1.1": 1, "1.2": 0, "3.1": None})
    coaudit("import", "mast", dumped(tmp_path / "set", value).parent)
    codes = coaudit("validate", "mast_annotator", "--json").json["codes"]
    assert {code["code"]: code["n_judged"] for code in codes} == {"1.1": 4, "1.2": 4}


def test_an_annotator_who_contradicts_themself_is_named(tmp_path: Path, coaudit: Coaudit) -> None:
    value = records(1)
    first = value[0]["annotations"][0]
    value[0]["annotations"].append({**first, "annotator_1": not first["annotator_1"]})
    folder = dumped(tmp_path / "set", value).parent
    (sentence,) = coaudit("import", "mast", folder, "--json").json["contradicted"]
    assert "_dataset.json: annotator_1 on 1.1" in sentence and sentence.endswith("; the last counts")
    assert sentence in coaudit("import", "mast", folder).err


def test_a_label_that_is_none_is_refused_and_the_others_of_its_record_are_kept(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    value = records(2, mast_annotation={"1.1": 7, "1.2": 0})
    value[0]["annotations"][0]["annotator_1"] = "TRUE"
    value[1]["annotations"][0]["annotator_1"] = "perhaps"
    value[1]["annotations"][1]["failure mode"] = "Premature"
    value[1]["annotations"].append("none")
    document = coaudit("import", "mast", dumped(tmp_path / "set", value).parent, "--json").json
    seven = "mast_annotation.1.1: expected true or false of an annotator, got 7"
    assert [(item["line"], item["reason"]) for item in document["quarantined"]] == [
        (1, seven),
        (2, "annotations[0].annotator_1: expected true or false of an annotator, got 'perhaps'"),
        (2, "annotations[1]: failure mode: expected a number and a name, got 'Premature'"),
        (2, "annotations[2]: label: expected an object, got a text"),
        (2, seven),
    ]
    assert document["labels"]["imported"] == 2 * (2 * 3 + 1) - 1 - 3
