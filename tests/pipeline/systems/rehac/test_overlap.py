"""InterCode's intersection over union, by hand."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.rehac import reader
from coaudit.pipeline.systems.rehac.overlap import gold_rows, iou, overlap
from coaudit.schemas import Trajectory


@pytest.mark.parametrize(
    ("answer", "gold", "value"),
    [
        ("ab", "ab", 1),
        ("ab", "bc", 1 / 3),
        ("", "", 1),
        ("", "a", 0),
        ("aab", "ab", 2 / 3),
    ],
)
def test_iou_counts_rows_as_often_as_they_stand_there(answer: str, gold: str, value: float) -> None:
    assert iou(Counter(answer), Counter(gold)) == pytest.approx(value)


def runs(folder: Path, *observations: tuple[str, str, float]) -> list[Trajectory]:
    """Runs of one step each: question, what was shown, reward."""
    path = folder / "intercode.jsonl"
    text = "Question: {}\n<solver> agent\nAction 1: SELECT a FROM b\nObservation 1: {}\nreward = {}\n\n"
    lines = [
        json.dumps({"trajectory": text.format(question, shown, reward), "em": reward, "f1": reward})
        for question, shown, reward in observations
    ]
    path.write_text("\n".join(lines) + "\n")
    return [t for t in reader.read(path, ReadOptions()) if isinstance(t, Trajectory)]


def test_the_gold_answer_is_what_a_run_with_the_whole_reward_was_shown(tmp_path: Path) -> None:
    found = runs(
        tmp_path,
        ("Who?", "[('a',), ('b',)]", 1),
        ("Who?", "[('b',), ('c',)]", 0),
        ("Who?", "Error executing query: no such table", 0),
        ("Who?", "a sentence", 0),
        ("Who?", "[{{}}]", 0),
        ("When?", "[(1,)]", 0),
    )
    gold = gold_rows(found)
    assert [overlap(run, gold) for run in found] == [
        (1.0, None),
        (pytest.approx(1 / 3), None),
        (0.0, None),
        (None, "its last observation is no list of rows"),
        (None, "its last observation is no list of rows"),
        (None, "no run solved its question, whose gold answer the logs do not hold"),
    ]
