"""What goes out of the store for other programs, and coaudit's own format, which comes back in."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from coaudit.pipeline.errors import UsageError
from coaudit.pipeline.store import Store
from coaudit.pipeline.store.queries import trajectories
from coaudit.pipeline.store.queries.export import TABLES, _harmless, export
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.formats import native
from coaudit.schemas import Event, Quarantined, Trajectory
from coaudit.schemas.text import inert_cell
from tests.conftest import ROOT, Coaudit
from tests.hostile import CORPUS
from tests.pipeline.stores import (
    copied,
    counts,
    document,
    give,
    made,
    rate,
    rows,
    take,
    verdict,
    write_lines,
)
from tests.pipeline.systems.cogym.folders import AGENT, IDLE, USER, Log, performance, simulated

NAME = "env_travel_planning_0"
FORMULAS = ("=1+1", "+1", "-1-1", "@SUM(A1)", "\t=1", "\r=1", "\u2003\u2060=1")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("original")
    log = Log(private={AGENT: {"search_output": {"query": "x"}}})
    for text in (*FORMULAS, 'quoted "text", with\nlines', "plain = text", "-1.5"):
        log.say(AGENT, text)
    log.hear("environment", IDLE).say(USER, "").act(AGENT, "BOOK()", "no").write(AGENT, "Plan").finish()
    files = performance("Plan", performance_rating=0.5, details={"cost": [True, None]}) | simulated({"b": 1})
    found = made(folder / "workspace")
    take(found, log.folder(folder / "logs" / NAME, files), setting="simulated", tags={"lab": "a"})
    rate(found, [verdict(NAME, 2, "initiative", "yes", cites=[2, 3], rationale="=HYPERLINK()")])
    give(found, [{"trajectory": NAME, "name": "satisfaction", "value": 4}])
    return found


@pytest.fixture
def store(original: Store, workspace: Path) -> Store:
    return copied(original, workspace)


@pytest.mark.long
def test_parquet_holds_every_table_as_the_store_has_it(tmp_path: Path, store: Store) -> None:
    written = export(store, tmp_path / "out", "parquet")
    assert [path.name for path in written] == [f"{name}.parquet" for name in TABLES]
    for name in TABLES:
        frame = pl.read_parquet(tmp_path / "out" / f"{name}.parquet")
        (there,) = rows(store, f"SELECT count(*) AS n FROM {name}")
        assert len(frame) == there["n"]
    texts = pl.read_parquet(tmp_path / "out" / "events.parquet").sort("seq")["text"].to_list()
    assert texts[2 : 2 + len(FORMULAS)] == list(FORMULAS)


def test_what_was_replaced_is_a_rating_and_none_that_counts(tmp_path: Path, store: Store) -> None:
    rate(store, [verdict(NAME, 2, "initiative", "no")])
    labels = {}
    for path in export(store, tmp_path / "out", "parquet", ("ratings", "counted_ratings")):
        labels[path.stem] = sorted(pl.read_parquet(path)["label"])
    assert labels == {"ratings": ["no", "yes"], "counted_ratings": ["no"]}


def test_csv_has_no_cell_that_a_spreadsheet_would_run(tmp_path: Path, store: Store) -> None:
    export(store, tmp_path / "out", "csv")
    for name in TABLES:
        with (tmp_path / "out" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                for column, cell in row.items():
                    assert not cell.startswith(("=", "+", "@", "\t", "\r")), (name, column, cell)
                    assert not cell.startswith("-") or _is_number(cell), (name, column, cell)
    with (tmp_path / "out" / "events.csv").open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file) if row["kind"] == "message"]
    formulas, others = texts[1 : 1 + len(FORMULAS)], texts[1 + len(FORMULAS) :]
    assert [inert_cell(text) for text in FORMULAS] == formulas
    assert {text[0] for text in formulas if text[:2] != "\\u"} == {"'"}
    assert others[:3] == ['quoted "text", with\nlines', "plain = text", "-1.5"]


@pytest.mark.parametrize("text", [*CORPUS, "\x00\x1b", "a\r\nb\rc", "\U000e0041=\u2028"])
def test_a_cell_of_an_exported_csv_is_the_inert_cell_of_its_text(text: str) -> None:
    expression = _harmless("x", "VARCHAR")
    with duckdb.connect() as connection:
        row = connection.execute(f"SELECT {expression} FROM (SELECT ?::VARCHAR AS x)", [text]).fetchone()
    assert row == (inert_cell(text),)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_what_only_the_human_knew_stays_out_of_tables(tmp_path: Path, store: Store) -> None:
    export(store, tmp_path / "out", "parquet", ("trajectories",))
    assert "hidden" not in pl.read_parquet(tmp_path / "out" / "trajectories.parquet").columns


@pytest.mark.slow
def test_json_lines_come_back_as_the_same_trajectories(tmp_path: Path, store: Store) -> None:
    take(store, ROOT / "data" / "rehac", ROOT / "data" / "overcooked", ROOT / "data" / "coblock")
    (path,) = export(store, tmp_path / "out.jsonl", "jsonl", hidden=True)
    other = made(tmp_path / "other")
    result = take(other, path)
    (there,) = rows(store, "SELECT count(*) AS n FROM trajectories")
    assert counts(result) == (there["n"], 0, 0)
    ids = [str(row["id"]) for row in trajectories.heads(store)]
    with store.reading() as a, other.reading() as b:
        wanted, found = store.load(a, ids, states=True), other.load(b, ids, states=True)
    for first, second in zip(wanted, found, strict=True):
        assert second == first
    assert counts(take(other, path)) == (0, there["n"], 0)
    export(other, tmp_path / "again.jsonl", "jsonl", hidden=True)
    assert (tmp_path / "again.jsonl").read_bytes() == path.read_bytes()


def test_two_processes_export_the_same_bytes(tmp_path: Path, process: Coaudit) -> None:
    process("ingest", ROOT / "data" / "cogym")
    for seed in ("1", "2"):
        process("export", tmp_path / f"{seed}.jsonl", "--format", "jsonl", PYTHONHASHSEED=seed)
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()


def test_measures_come_in_an_order_of_their_own(tmp_path: Path, store: Store) -> None:
    (path,) = export(store, tmp_path, "parquet", ("measures",))
    names = pl.read_parquet(path)["metric"].to_list()
    assert names == sorted(names)


def test_json_lines_have_null_for_what_json_cannot_say(tmp_path: Path) -> None:
    given = '{"x": NaN, "y": [-Infinity], "text": "NaN", "n": 1000000000000000000000000000000}'
    act = (
        json.dumps({**HELLO, "kind": "action"})[:-1] + f', "action": {{"name": "f", "arguments": {given}}}}}'
    )
    (tmp_path / "log.jsonl").write_text(f"{json.dumps(HEAD)}\n{act}\n")
    store = made(tmp_path / "w")
    take(store, tmp_path / "log.jsonl")
    (path,) = export(store, tmp_path / "out.jsonl", "jsonl")
    line = path.read_text().splitlines()[1]
    assert '"arguments":{"n":1000000000000000000000000000000,"text":"NaN","x":null,"y":[null]}' in line


def test_an_unknown_format_or_table_names_the_choices(tmp_path: Path, store: Store) -> None:
    with pytest.raises(UsageError, match="--format must be one of parquet, csv, jsonl, got 'xls'"):
        export(store, tmp_path, "xls")
    with pytest.raises(UsageError, match="no table 'secrets', expected one of trajectories"):
        export(store, tmp_path, "csv", ("events", "secrets"))


# The format itself.

HEAD: dict[str, Any] = {
    "type": "trajectory",
    "native_id": "run-1",
    "participants": [{"name": "bot", "kind": "agent"}, {"name": "eve", "kind": "human"}],
}
HELLO: dict[str, Any] = {
    "type": "event",
    "trajectory": "run-1",
    "actor": "bot",
    "kind": "message",
    "text": "Hello?",
}
YES: dict[str, Any] = {**HELLO, "actor": "eve", "text": "Yes"}


def _taken(tmp_path: Path, *lines: dict[str, Any]) -> tuple[Store, tuple[int, int, int], list[str]]:
    store = made(tmp_path / "w")
    result = take(store, write_lines(tmp_path / "given.jsonl", lines))
    return store, counts(result), [f"{q.line}: {q.reason}" for q in result.quarantined]


@pytest.mark.parametrize(
    ("after", "events"),
    [
        ([HEAD], [2]),  # as a logger writes it that is started anew
        ([HEAD, HELLO, YES], [2]),  # a file that was appended to itself
        ([HEAD, HELLO, YES, HELLO], [3]),
        ([HEAD, YES], [1, 2]),
    ],
)
def test_a_head_that_comes_again_takes_nothing_away(
    tmp_path: Path, after: list[dict[str, Any]], events: list[int]
) -> None:
    """All that had come before it was gone, without a word."""
    store, _, wrong = _taken(tmp_path, HEAD, HELLO, YES, *after)
    assert wrong == []
    assert sorted(row["events"] for row in trajectories.heads(store)) == events


def test_the_least_that_is_written_by_hand_is_enough(tmp_path: Path) -> None:
    answer = {**HELLO, "actor": "eve", "text": "Yes"}
    store, taken, wrong = _taken(tmp_path, HEAD, HELLO, answer)
    assert (taken, wrong) == ((1, 0, 0), [])
    found = trajectories.one(store, "run-1")
    assert [(e.seq, e.actor, e.text) for e in found.events] == [(0, "bot", "Hello?"), (1, "eve", "Yes")]
    assert found.system == "coaudit"
    assert document(store)


@pytest.mark.long
def test_lines_of_several_trajectories_may_be_mixed_and_grow(tmp_path: Path) -> None:
    second = {**HEAD, "native_id": "run-2"}
    lines = [HEAD, second, HELLO, {**HELLO, "trajectory": "run-2"}, HELLO]
    store, taken, _ = _taken(tmp_path, *lines)
    assert taken == (2, 0, 0)
    grown = take(store, write_lines(tmp_path / "given.jsonl", [*lines, HELLO]))
    assert counts(grown) == (1, 1, 0)
    assert [row["events"] for row in trajectories.heads(store)] == [3, 1]


@pytest.mark.long
def test_an_event_that_is_known_from_live_traffic_only_is_no_event_of_the_log(tmp_path: Path) -> None:
    wait = {**HELLO, "seq": 0, "sub": 1, "live_only": True, "kind": "wait", "text": None}
    store, taken, _ = _taken(tmp_path, HEAD, {**HELLO, "seq": 0}, wait)
    assert taken == (1, 0, 0)
    assert [e.live_only for e in trajectories.one(store, "run-1").events] == [False, True]
    assert trajectories.heads(store)[0]["events"] == 1
    log = [HEAD, {**HELLO, "seq": 0}, {**HELLO, "seq": 1, "actor": "eve"}]
    take(store, write_lines(tmp_path / "given.jsonl", log))
    kept = trajectories.one(store, "run-1").events
    assert [(e.seq, e.sub) for e in kept] == [(0, 0), (0, 1), (1, 0)], "what only live traffic told stays"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"type": "remark"}, "type must be one of trajectory, event, outcome, state, got 'remark'"),
        ({}, "type must be one of"),
        (
            {**HELLO, "trajectory": "run-9"},
            "event of trajectory 'run-9', whose head is on no line before that could be read",
        ),
        (
            {**HELLO, "trajectory": None},
            "event of trajectory None, whose head is on no line before that could be read",
        ),
        (
            {**HELLO, "trajectory": ["run-1"]},
            "event of trajectory ['run-1'], whose head is on no line before that could be read",
        ),
        ({**HELLO, "actor": "mallory"}, "unknown actor 'mallory', expected one of bot, eve"),
        ({**HELLO, "kind": "song"}, "kind: Input should be 'start', 'message'"),
        ({**HELLO, "seq": -1}, "seq: Input should be greater than or equal to 0"),
        ({**HELLO, "seq": 2**31}, "seq: Input should be less than 2147483648"),
        ({**HELLO, "seq": 0}, "event 0 is there already"),
        ({**HELLO, "colour": "red"}, "colour: Extra inputs are not permitted"),
        ({"type": "state", "content": 1}, "a state needs a hash"),
        ({"type": "outcome", "trajectory": "run-1"}, "name: Field required"),
        (
            {"type": "outcome", "trajectory": "run-1", "name": "x", "value": "many"},
            "value: Input should",
        ),
        ({**HEAD, "native_id": None}, "a trajectory needs a native_id"),
        ({**HEAD, "native_id": "b", "colour": "red"}, "a trajectory has no colour"),
        ({**HEAD, "native_id": "b", "participants": 7}, "participants must be a list"),
        ({**HEAD, "native_id": "b", "events": {"a": 1}}, "events must be a list"),
        ({**HEAD, "native_id": "b", "states": [1]}, "states must be an object"),
        ({**HEAD, "native_id": "b", "setting": "lab"}, "setting: Input should be 'real' or 'simulated'"),
        ({**HEAD, "native_id": "b", "tags": ["x"]}, "tags: Input should be a valid dictionary"),
    ],
)
def test_a_line_that_does_not_fit_is_named_with_its_number_and_the_rest_is_read(
    tmp_path: Path, line: dict[str, Any], reason: str
) -> None:
    path = write_lines(tmp_path / "given.jsonl", [HEAD, HELLO, line])
    wrong, found = list(native.read(path, ReadOptions()))
    assert isinstance(wrong, Quarantined) and isinstance(found, Trajectory)
    assert wrong.line == 3
    assert wrong.reason.startswith(reason)
    assert len(found.events) == 1


def test_a_shown_trajectory_is_a_document_of_the_types(store: Store) -> None:
    shown = json.loads(json.dumps(trajectories.document(trajectories.one(store, NAME))))
    assert [Event.model_validate(event) for event in shown["events"]]
    assert shown["outcome"]["end_reason"] == "finished"
    assert shown["tags"] == {"lab": "a"}
    assert not {"hidden", "states"} & set(shown)


@pytest.mark.long
def test_what_only_the_human_knew_leaves_in_json_lines_only_where_it_is_asked_for(
    tmp_path: Path, store: Store
) -> None:
    take(store, ROOT / "data" / "coblock")
    (plain,) = export(store, tmp_path / "plain.jsonl", "jsonl")
    (whole,) = export(store, tmp_path / "whole.jsonl", "jsonl", hidden=True)
    assert '"hidden"' not in plain.read_text()
    assert '"hidden"' in whole.read_text()
