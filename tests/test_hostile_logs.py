"""Logs of hostile shape through every exit: the shape costs its own record, never a neighbour or an exit.

What hostile *text* does is looked at in test_hostile.py; here it is numbers, names, times, nesting,
encodings, and what lies about in folders.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import pytest

from coaudit.judges.llm import Case, LLMJudge
from coaudit.pipeline import codebooks
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.store.queries import trajectories
from coaudit.pipeline.units import cut
from tests.conftest import Coaudit

pytestmark = pytest.mark.slow
Record = dict[str, Any]


def session(name: str, head: Record | None = None, event: Record | None = None, **more: Any) -> list[Record]:
    """A person asks, an agent asks back, acts, and the session has an outcome; in coaudit's own format."""
    person = more.get("person", "ann")
    people = [{"name": person, "kind": "human"}, {"name": "bot", "kind": "agent"}]
    action = {"name": "search", "arguments": more.get("arguments", {"q": 1})}
    events: list[Record] = [
        {"actor": person, "kind": "message", "text": "Please look?"},
        {"actor": "bot", "kind": "message", "text": "Shall I?"},
        {"actor": "bot", "kind": "action", "action": action, "status": "failed", "error": "no"},
    ]
    lines: list[Record] = [{"type": "trajectory", "native_id": name, "participants": people} | (head or {})]
    for seq, one in enumerate(events):
        lines.append({"type": "event", "trajectory": name, "seq": seq} | one | (event or {}))
    value = more.get("value", 1)
    return [*lines, {"type": "outcome", "trajectory": name, "name": "delivered", "value": value}]


def raw(records: list[Record]) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


SHAPES: dict[str, str] = {
    "half of a character": raw(session("\ud800 half", {"task": "\udfff"}, {"text": "cut \ud83d"})),
    "NUL in names and keys": raw(session("nul\x00id", {"tags": {"a\x00": "b"}}, arguments={"k\x00": "v"})),
    "integers of 400 digits": raw(session("integer", arguments={"n": 10**400, "m": -(2**63) - 1})),
    "integers of 5,000 digits": raw(session("digits")).replace('{"q": 1}', '{"q": ' + "9" * 5000 + "}"),
    "1e400": raw(session("infinite")).replace('{"q": 1}', '{"q": 1e400}').replace("value", "VALUE"),
    "outcomes near the end of floats": raw(session("largest", value=1.7e308)),
    "nested 100,000 deep": raw(session("deep")).replace('{"q": 1}', nested(100_000)),
    "a key said twice": raw(session("twice")).replace('"kind": "action"', '"kind": "note", "kind": "action"'),
    "a name of a megabyte": raw(session("N" * 1_000_000, person="P" * 100_000)),
    "a name that is a path": raw(session("../../etc/passwd", {"condition": "/etc", "task": "..\\.."})),
    "a name that is an option": raw(session("--help", {"condition": "-rf"})),
    "names of nothing to see": raw(session("\u200b\u2066\U000e0041", person="\u3000 ")),
    "an empty name": raw(session("", person="")),
    "the year 0": raw(session("year zero", None, {"time": "0000-01-01T00:00:00"})),
    "the year 1, east of Greenwich": raw(session("year one", None, {"time": "0001-01-01T00:00:00+14:00"})),
    "the last day there is": raw(session("last day", None, {"time": "9999-12-31T23:59:59-14:00"})),
    "a time in 1e20 seconds": raw(session("far", None, {"time": 1e20})),
    "seq beyond an integer": raw(session("seq", None, {"seq": 2**70})),
    "tokens beyond an integer": raw(session("tokens", {"participants": [{"name": "ann", "kind": "human",
                                    "tokens": {"prompt": 2**70}}, {"name": "bot", "kind": "agent"}]})),
    "a person and an agent of one name": raw(session("one name", person="bot")),
    "20,000 arguments": raw(session("arguments", arguments={f"k{n}": n for n in range(20_000)})),
}  # fmt: skip


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that took in each shape, each file with an ordinary neighbour, and judged them by rules."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "logs").mkdir()
    for number, (name, text) in enumerate(SHAPES.items()):
        file = folder / "logs" / f"{number}.jsonl"
        file.write_text(text + raw(session(f"neighbour of {name}")), encoding="utf-8")
    return folder


@pytest.fixture
def workspace(audited: Path) -> Path:
    """One for all tests of this module."""
    return audited / "workspace"


@pytest.fixture
def ready(coaudit: Coaudit, audited: Path) -> Coaudit:
    if not (audited / "workspace").exists():
        coaudit("ingest", audited / "logs")
        coaudit("judge")
        coaudit("judge", "--codebook", "failures", "--rater", "detectors")
    return coaudit


def rows(coaudit: Coaudit, *arguments: str) -> list[Record]:
    """The rows of a command's JSON, which no number spoils that JSON has not."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(constant)

    there: list[Record] = json.loads(coaudit(*arguments, "--json").out, parse_constant=refuse)["rows"]
    return there


def test_no_shape_costs_a_neighbour_and_what_it_costs_has_an_address(ready: Coaudit, audited: Path) -> None:
    names = {row["native_id"] for row in rows(ready, "trajectory", "list")}
    assert {f"neighbour of {name}" for name in SHAPES} <= names
    assert any("\ufffd half" in name for name in names), "half a character is no reason to lose a session"
    wrong = rows(ready, "quarantine", "list")
    assert wrong and all(row["line"] and row["reason"] and Path(row["source"]).is_file() for row in wrong)


def test_every_shape_can_be_shown_and_listed_in_bounded_space(ready: Coaudit) -> None:
    for row in rows(ready, "trajectory", "list"):
        ready("trajectory", "show", row["id"])
        json.loads(ready("trajectory", "show", row["id"], "--json").out)
    for command in (["trajectory", "list"], ["metrics"], ["report"], ["report", "--full"], ["agreement"]):
        done = ready(*command)
        assert len(done.out) < 200_000, command
        hint = "no unit has been rated by two raters yet" if command == ["agreement"] else ""
        assert done.err.startswith(hint) and bool(done.err) == bool(hint), command


def test_numbers_that_cannot_be_reckoned_with_are_undefined_with_a_reason(ready: Coaudit) -> None:
    (row,) = (row for row in rows(ready, "metrics") if row["metric"] == "delivery_rate")
    why = "one outcome of 1.7e308 costs its own session only; of another session it has a field that is none"
    assert (row["value"], row["missing"]) == (1, 2), why
    each = rows(ready, "metrics", "--per", "trajectory")
    (row,) = (row for row in each if (row["native_id"], row["metric"]) == ("largest", "delivered"))
    assert row["value"] is None and row["reason"] == "delivered must be from 0 to 1, got 1.7e+308"


def test_reports_and_exports_hold_every_trajectory(ready: Coaudit, tmp_path: Path) -> None:
    count = len(rows(ready, "trajectory", "list"))
    for name in ("r.html", "r.md", "r.tex"):
        ready("report", "--out", tmp_path / name)
        assert (tmp_path / name).stat().st_size < 1_000_000
    for kind in ("csv", "parquet", "jsonl"):
        ready("export", tmp_path / kind, "--format", kind)
    for reader, file in (
        ("read_csv", "csv/trajectories.csv"),
        ("read_parquet", "parquet/trajectories.parquet"),
    ):
        query = f"SELECT count(*) FROM {reader}('{tmp_path / file}')"
        assert duckdb.sql(query).fetchall() == [(count,)]


def test_prompts_and_labelling_tasks_come_of_every_shape(
    ready: Coaudit, workspace: Path, tmp_path: Path
) -> None:
    store, book = Store(Workspace(workspace)), codebooks.load("initiative")
    judge = LLMJudge(book, "transcript")
    for head in trajectories.heads(store):
        for unit in cut(trajectories.one(store, head["id"]), book):
            judge.whole(Case(unit, "mark")).question.messages[-1].content.encode()
    ready("sample", "--codebook", "failures", "--unit", "trajectory", "--size", "60")
    ready("labelstudio", "export", tmp_path / "tasks")
    assert list((tmp_path / "tasks").glob("*.tasks.json"))


def test_a_rebuild_gives_the_same(ready: Coaudit) -> None:
    before = rows(ready, "trajectory", "list")
    ready("rebuild")
    assert rows(ready, "trajectory", "list") == before


def test_what_lies_about_in_a_folder_keeps_nobody_waiting(coaudit: Coaudit, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "dir.jsonl").mkdir(parents=True)
    (folder / "good.jsonl").write_text(raw(session("good")))
    (folder / "name of\ntwo lines.jsonl").write_text(raw(session("two lines")))
    (folder / "packed.jsonl.gz").write_bytes(gzip.compress(raw(session("packed")).encode()))
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress(raw(session("cut")).encode())[:-20])
    links = {"loop": ".", "itself.jsonl": "itself.jsonl", "gone.jsonl": "/nowhere"}
    links |= {"zero.jsonl": "/dev/zero", "passwd.jsonl": "/etc/passwd"}
    for name, target in links.items():
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "fifo.jsonl")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(folder / "socket.jsonl"))
        done = coaudit("--workspace", tmp_path / "own", "ingest", folder, "--json").json
        coaudit("map", folder)
    assert done["trajectories"] == 4  # with what the cut one still gives
    broken, line = done["quarantined"]
    assert broken["source"].endswith("cut.jsonl.gz") and "broken archive" in broken["reason"]
    assert line["source"].endswith("cut.jsonl.gz!cut.jsonl") and "the last line is cut off" in line["reason"]


def test_a_first_line_that_is_spoilt_does_not_hide_what_the_file_is(coaudit: Coaudit, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text("{cut off\n" + raw(session("good")))
    done = coaudit("--workspace", tmp_path / "own", "ingest", file, "--json").json
    assert done["trajectories"] == 1 and done["quarantined"][0]["line"] == 1


def test_a_file_in_utf_16_says_so(coaudit: Coaudit, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(raw(session("good")).encode("utf-16"))
    done = coaudit("--workspace", tmp_path / "own", "ingest", file, status=1)
    assert "UTF-16" in done.err
