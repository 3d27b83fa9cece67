"""The Python interface: docs/python.md runs as it stands, and says what the command line says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import coaudit as face
from coaudit.pipeline.audit import EVENTS, OUTCOMES, RATINGS, TRAJECTORIES
from coaudit.pipeline.errors import SourceError, UsageError
from coaudit.pipeline.store import Store, Workspace
from coaudit.schemas import Outcome
from tests.conftest import ROOT, Coaudit
from tests.judges.teams import team
from tests.pipeline.stores import holding

TURNS = """conversation_id,turn,speaker,text,rating
c1,0,customer,"To Ulm, please.",
c1,1,bot,By train?,4
c2,0,customer,Hello?,
c2,1,bot,How may I help?,2
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The names that the page leaves behind, in the folder where it ran."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "turns.csv").write_text(TURNS, encoding="utf-8")
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for code in re.findall(r"<!-- run -->\n```python\n(.*?)```", page, re.DOTALL):
            exec(compile(code, "docs/python.md", "exec"), names)
        yield names


@pytest.mark.long
def test_the_page_runs_and_gives_what_it_says(ran: dict[str, Any]) -> None:
    assert (ran["result"].trajectories, ran["result"].quarantined) == (2, [])
    assert (ran["brought"].imported, ran["brought"].quarantined) == (4, [])
    assert ran["per_speaker"].rows() == [("bot", 2), ("customer", 2)]
    # ann says present, absent; bob present twice: as chance has it.
    assert ran["kappa"] == pytest.approx(0)
    assert ran["page"]["people"][0]["raters"] == ["ann", "bob"]
    assert "task" in ran["by_task"].columns and ran["each"]["trajectory"].n_unique() == 2


@pytest.mark.long
def test_frames_say_what_the_command_line_says(ran: dict[str, Any], coaudit: Coaudit) -> None:
    ws = ran["ws"]
    where = {"COAUDIT_WORKSPACE": str(ws.workspace.path)}
    for name in ("metrics", "agreement", "rates"):
        rows = coaudit(name, "--json", **where).json["rows"]
        frame = getattr(ws, name)()
        assert frame["value" if name != "rates" else "rate"].to_list() == [
            row["value" if name != "rates" else "rate"] for row in rows
        ]
    compared = coaudit("compare", "--by", "task", "--cluster", "person", "--json", **where).json["rows"]
    frame = ws.compare("task", cluster="person")
    assert frame.schema == face.open("nothing").compare("task").schema
    assert frame["statement"].to_list() == [row["statement"] for row in compared]
    listed = coaudit("trajectory", "list", "--json", **where).json["rows"]
    assert ws.trajectories()["id"].to_list() == [row["id"] for row in listed]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "schema"),
    [("trajectories", TRAJECTORIES), ("events", EVENTS), ("outcomes", OUTCOMES), ("ratings", RATINGS)],
)
def test_a_frame_has_the_same_columns_and_types_whether_anything_is_in_it(
    ran: dict[str, Any], tmp_path: Path, name: str, schema: dict[str, Any]
) -> None:
    empty = getattr(face.open(tmp_path / "nothing"), name)()
    assert_frame_equal(empty, pl.DataFrame(schema=schema))
    full = getattr(ran["ws"], name)()
    assert full.height > 0 and full.schema == empty.schema
    assert not (tmp_path / "nothing").exists()


@pytest.mark.long
def test_a_frame_has_the_columns_of_its_groups_though_nothing_is_in_it(tmp_path: Path) -> None:
    ws = face.open(tmp_path / "nothing")
    assert ws.metrics(by=["task"]).columns == ["task", *ws.metrics().columns]
    assert ws.rates(by=["task"]).columns == ["task", *ws.rates().columns]


def test_a_rating_that_does_not_fit_is_refused_with_its_row(ran: dict[str, Any]) -> None:
    odd = pl.DataFrame(
        {"trajectory": ["c1", "none"], "codebook": "failures", "code": "C.1", "rater": "z", "label": "x"}
    )
    result = ran["ws"].rate(odd)
    assert [(item.line, item.reason[:13]) for item in result.quarantined] == [
        (1, "label must be"),
        (2, "no trajectory"),
    ]


def test_a_draft_of_nothing_is_refused_as_the_command_does(tmp_path: Path, coaudit: Coaudit) -> None:
    (tmp_path / "empty.jsonl").touch()
    for name in ("nowhere", "empty.jsonl"):
        with pytest.raises(SourceError) as refused:
            face.open(tmp_path / "audit").draft(tmp_path / name)
        assert f"coaudit: {refused.value}" in coaudit("map", tmp_path / name, status=1).err


def test_a_group_that_is_called_as_a_column_of_the_row_has_one_of_its_own(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    ws = face.open(tmp_path / "workspace")
    for value in ("a", "b"):
        log = tmp_path / f"{value}.jsonl"
        log.write_text(
            f'{{"messages": [{{"role": "user", "content": "Go to {value}"}}]}}\n', encoding="utf-8"
        )
        ws.ingest(log, tags={"value": value, "arm": value})
    frame = ws.metrics(by=["value", "arm"])
    assert frame.columns[:2] == ["group.value", "arm"]
    assert frame["group.value"].to_list() == frame["arm"].to_list()
    assert frame["group.value"].unique().sort().to_list() == ["a", "b"]
    assert frame.schema["value"] == pl.Float64
    assert_frame_equal(ws.metrics(by=iter(["value", "arm"])), frame)  # type: ignore[arg-type]


def test_what_a_method_cannot_do_it_refuses(ran: dict[str, Any]) -> None:
    ws = ran["ws"]
    with pytest.raises(UsageError, match=r"by must be a list of names, got 'task': by=\['task'\]"):
        ws.metrics(by="task")
    with pytest.raises(UsageError, match="per_trajectory has a row for each trajectory"):
        ws.metrics(by=["task"], per_trajectory=True)
    with pytest.raises(UsageError, match="ratings must be a polars DataFrame, got list"):
        ws.rate([{"trajectory": "c1"}])
    with pytest.raises(UsageError, match="unknown codebook 'nope', expected one of"):
        ws.ratings("nope")


def test_where_takes_any_collection_and_what_stands_for_no_value_but_never_none_for_all(
    tmp_path: Path,
) -> None:
    here = {"outcomes": (Outcome(name="success", value=1.0),), "task": None}
    talk = team(("human", "Hi"), ("agent", "Ho"))
    runs = [talk.model_copy(update={"id": "a", "native_id": "a", **here})]
    runs.append(talk.model_copy(update={"id": "b", "native_id": "b", "task": "trip"}))
    holding(tmp_path / "study", runs)
    ws = face.open(tmp_path / "study")

    def sessions(where: Any) -> list[str]:
        return sorted(set(ws.metrics(per_trajectory=True, where=where)["trajectory"]))

    assert sessions({"task": None}) == sessions({"success": True}) == ["a"]
    assert sessions({"task": {"trip"}}) == sessions({"task": pl.Series(["trip"])}) == ["b"]
    with pytest.raises(UsageError, match="where must have a value for each name, got none for task"):
        sessions({"success": 1, "task": []})
    with pytest.raises(UsageError, match=r"where must be a dictionary such as .*, got 'task=trip'"):
        sessions("task=trip")


def test_a_workspace_in_an_object_store_is_shown_by_its_url() -> None:
    pytest.importorskip("obstore", reason="the extra `remote` is not installed")
    assert repr(face.open("s3://bucket/study")) == "coaudit.open('s3://bucket/study')"


def test_what_is_damaged_is_named_once_however_often_a_script_looks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store(Workspace(tmp_path)).writing():
        pass
    (tmp_path / "ratings").mkdir()
    (tmp_path / "ratings" / "a.jsonl").write_text("{no rating\n")
    for _ in range(2):
        audit = face.open(tmp_path)
        for _ in range(3):
            assert audit.trajectories().is_empty()
        assert capsys.readouterr().err.count("a.jsonl:1: ") == 1
