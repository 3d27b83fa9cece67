"""One hostile corpus through every exit: what a log says is data, wherever it comes out.

Native lines carry it, so that every field has it: names, conditions, tasks, actions, arguments, errors,
tags. The dashboard's pages have tests of their own (tests/dashboards/test_hostile.py).
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import duckdb
import pytest

from coaudit.judges.llm import Case, LLMJudge
from coaudit.pipeline import codebooks
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.store.queries import trajectories
from coaudit.pipeline.units import cut
from tests.conftest import Coaudit
from tests.hostile import CORPUS, Tags, sessions

OBEYED = [c for text in CORPUS for c in text if not c.isprintable() and c not in "\n\u200b\ufeff"]


@pytest.fixture
def audited(coaudit: Coaudit, tmp_path: Path) -> Coaudit:
    """A workspace that holds a session for each text, with the text in every field, rated by rules."""
    assert coaudit("ingest", sessions(tmp_path / "log.jsonl"), "--json").json["trajectories"] == len(CORPUS)
    coaudit("judge")
    return coaudit


@pytest.mark.long
def test_no_terminal_obeys_what_a_log_says(audited: Coaudit) -> None:
    said = [audited("trajectory", "list"), audited("report"), audited("compare", "--by", "condition")]
    said += [audited("metrics", "--by", "condition,agent"), audited("trajectory", "show", f"s3 {CORPUS[3]}")]
    said.append(audited("trajectory", "show", CORPUS[3], status=2))
    for done in said:
        assert not set(OBEYED) & set(done.out + done.err)
        forged = [line for line in done.out.splitlines() if line.startswith(("coaudit: forged", "  kappa"))]
        assert not forged, "a name makes no line of its own"


@pytest.mark.long
def test_json_says_all_of_it_and_a_terminal_that_shows_it_obeys_nothing(
    audited: Coaudit, tmp_path: Path
) -> None:
    done = audited("trajectory", "list", "--json")
    assert {row["condition"] for row in done.json["rows"]} == set(CORPUS)
    assert not set(OBEYED) & set(done.out)
    audited("report", "--out", tmp_path / "r.json")
    text = (tmp_path / "r.json").read_text(encoding="utf-8")
    assert json.loads(text) and not set(OBEYED) & set(text) and "\\u202egnp.exe" in text


@pytest.mark.long
def test_lines_that_are_exported_say_all_of_it_and_hold_nothing_that_a_terminal_obeys(
    audited: Coaudit, tmp_path: Path
) -> None:
    ids = [row["id"] for row in audited("trajectory", "list", "--json").json["rows"]]
    rating = {"codebook": "failures", "code": "C.2", "rater": "ann", "label": "present", "cites": [1]}
    lines = [
        {"trajectory": name, "rationale": text, **rating} for name, text in zip(ids, CORPUS, strict=True)
    ]
    (tmp_path / "people.jsonl").write_text("\n".join(map(json.dumps, lines)))
    audited("ratings", "import", tmp_path / "people.jsonl")
    ratings = audited("ratings", "export").out
    reasons = {json.loads(line).get("rationale") for line in ratings.splitlines()}
    assert reasons >= set(CORPUS) and not set(OBEYED) & set(ratings)
    audited("export", tmp_path / "log.jsonl", "--format", "jsonl")
    logs = (tmp_path / "log.jsonl").read_text(encoding="utf-8")
    heads = [json.loads(line) for line in logs.splitlines()]
    assert {head.get("condition") for head in heads} >= set(CORPUS) and not set(OBEYED) & set(logs)


@pytest.mark.long
def test_html_and_markdown_hold_no_tag_of_a_log(audited: Coaudit, tmp_path: Path) -> None:
    audited("report", "--out", tmp_path / "r.html")
    written = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert not set(OBEYED) & set(written) and "\\u202egnp.exe" in written
    page = Tags(written)
    assert not page.names & {"script", "img", "iframe", "object"}
    assert not {name for name in page.attributes if name.startswith("on")}
    audited("report", "--out", tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "<script" not in text and "](javascript:" not in text and "![x](" not in text


@pytest.mark.long
def test_a_spreadsheet_computes_nothing_and_files_stay_in_their_folder(
    audited: Coaudit, tmp_path: Path
) -> None:
    audited("export", tmp_path / "csv", "--format", "csv")
    audited("export", tmp_path / "parquet")
    for file in (tmp_path / "csv").glob("*.csv"):
        assert not set(OBEYED) & set(file.read_text(encoding="utf-8")), file
        with file.open(newline="", encoding="utf-8") as opened:
            for row in csv.reader(opened):
                assert not [c for c in row if c.lstrip()[:1] in ("=", "@", "＝")], file
    found = duckdb.sql(f"SELECT DISTINCT condition FROM '{tmp_path}/parquet/trajectories.parquet'").fetchall()
    assert {row[0] for row in found} == set(CORPUS)
    assert not [p for p in tmp_path.rglob("*passwd*")]


@pytest.mark.long
def test_no_prompt_holds_it_outside_the_quoted_lines(audited: Coaudit, workspace: Path) -> None:
    store = Store(Workspace(workspace))
    for head in trajectories.heads(store):
        trajectory = trajectories.one(store, head["id"])
        for name in ("initiative", "confirmation", "failures"):
            book = codebooks.load(name)
            judge = LLMJudge(book, "transcript")
            for unit in cut(trajectory, book):
                prompt = judge.whole(Case(unit, "mark")).question.messages[-1].content
                ours = "\n".join(line for line in prompt.splitlines() if not line.startswith("| "))
                assert not [text for text in CORPUS if text.splitlines()[0] in ours]
                for token in ("<|im_start|>", "</s>", "[INST]", "<tool_call>", "[SYSTEM_PROMPT]"):
                    assert token not in prompt
                assert not set(OBEYED) & set(prompt)


@pytest.mark.long
def test_label_studio_gets_it_as_the_text_of_paragraphs_and_nowhere_else(
    audited: Coaudit, tmp_path: Path
) -> None:
    """Paragraphs escape their text: tests/annotation/labelstudio/test_config.py looks in a browser."""
    audited("sample", "--codebook", "failures", "--size", "12", "--unit", "trajectory")
    audited("labelstudio", "export", tmp_path / "tasks")
    for file in (tmp_path / "tasks").iterdir():
        if not file.name.endswith(".tasks.json"):
            assert "alert(" not in file.read_text(encoding="utf-8")
            continue
        for task in json.loads(file.read_text(encoding="utf-8")):
            beside = {name: value for name, value in task["data"].items() if name != "transcript"}
            assert "<script" not in json.dumps(beside)
