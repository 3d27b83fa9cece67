"""Files of any shape as records."""

from __future__ import annotations

import io
import json
import os
import random
import struct
import sys
import zipfile
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import polars
import pyarrow as pa
import pytest
from openpyxl import Workbook
from pyarrow import parquet

from coaudit.pipeline.systems.formats.fields.mapping import Input
from coaudit.pipeline.systems.formats.files import excel, sheets
from coaudit.pipeline.systems.formats.files import parquet as tables_of_parquet
from coaudit.pipeline.systems.formats.files.inputs import format_of, records
from coaudit.pipeline.systems.formats.mapped.reader import recognises
from coaudit.schemas import JsonValue, Quarantined


def values(path: Path, **given: object) -> list[object]:
    return [value for _, value in records(path, Input.model_validate(given))]


def reasons(path: Path) -> list[tuple[int | None, str]]:
    return [(one.line, one.reason) for _, one in records(path, Input()) if isinstance(one, Quarantined)]


def test_the_cells_of_a_csv_are_numbers_only_where_a_whole_column_is(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('id,n,score,ok,text\n007,1,0.5,true,"a, ""b""\nc"\n8,2,,false,3\n', encoding="utf-8-sig")
    assert values(path) == [
        {"id": "007", "n": 1, "score": 0.5, "ok": True, "text": 'a, "b"\nc'},
        {"id": "8", "n": 2, "score": None, "ok": False, "text": "3"},
    ]


def test_the_three_lines_of_names_that_a_survey_tool_writes_are_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "survey.csv"
    names = 'ResponseId,sat,Finished\nResponse ID,"How satisfied\nwere you?",Finished\n'
    ids = '"{""ImportId"":""_recordId""}","{""ImportId"":""QID3_1""}","{""ImportId"":""finished""}"\n'
    path.write_text(f"{names}{ids}R_1,4,True\nR_2,5,False\n", encoding="utf-8-sig")
    assert list(records(path, Input())) == [
        (5, {"ResponseId": "R_1", "sat": "4", "Finished": "True"}),
        (6, {"ResponseId": "R_2", "sat": "5", "Finished": "False"}),
    ]
    path.write_text(f"{names}{ids}", encoding="utf-8")
    assert reasons(path) == [(None, "no rows in it")]
    path.write_text(f"{names}R_1,4,True\n", encoding="utf-8")
    assert len(values(path)) == 2


def test_cells_that_would_be_one_number_and_differ_are_names(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("session,n,score\n1.1,2.0,0.5\n1.10,2,0.50\n", encoding="utf-8")
    assert [value for _, value in records(path, Input(), names={"session", "n"})] == [
        {"session": "1.1", "n": 2.0, "score": 0.5},
        {"session": "1.10", "n": 2.0, "score": 0.5},
    ]
    assert list(records(path, Input()))[1] == (3, {"session": 1.1, "n": 2.0, "score": 0.5})


@pytest.mark.parametrize(
    ("cells", "stored"),
    [
        (["1.50", "NaN", "2"], ["1.50", None, "2"]),
        (["1.5", "2"], ["1.5", "2"]),
        (["1234e56"], ["1234e56"]),
        (["1.50", " 1.50", "  ", "12e4 "], ["1.50", "1.50", None, "12e4"]),
        (["1.5", "2.5"], [1.5, 2.5]),
        (["2.0", "2"], [2.0, 2.0]),
        (["7", "8"], [7, 8]),
    ],
)
def test_a_name_in_a_table_stays_as_it_is_written(
    tmp_path: Path, cells: list[str], stored: list[object]
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("session,said\n" + "".join(f"{cell},Hi\n" for cell in cells), encoding="utf-8")
    found = [value for _, value in records(path, Input(), names={"session"})]
    assert [one["session"] for one in found if isinstance(one, dict)] == stored


def test_whole_numbers_of_a_table_as_it_is_written_are_texts_without_the_point_of_an_empty_cell(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("gap,none,id\n2.0,2.0,1e3\n,3.0,2e3\n-4,4.0,\n", encoding="utf-8")
    assert [value for _, value in records(path, Input(), as_written=True)] == [
        {"gap": "2", "none": "2.0", "id": "1e3"},
        {"gap": None, "none": "3.0", "id": "2e3"},
        {"gap": "-4", "none": "4.0", "id": None},
    ]


@pytest.mark.parametrize(
    ("name", "sign"), [("log.csv", ";"), ("log.csv", "\t"), ("log.csv", "|"), ("log.tsv", "\t")]
)
def test_a_table_is_parted_by_what_its_first_line_has_most_of(tmp_path: Path, name: str, sign: str) -> None:
    path = tmp_path / name
    path.write_text(f"who{sign}said\nAda{sign}Hi, you\n", encoding="utf-8")
    assert values(path) == [{"who": "Ada", "said": "Hi, you"}]


def test_what_parts_a_table_is_not_looked_for_in_quotes_and_may_stand_above_it(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('who;"said, as, it, was, ""heard"""\nAda;Hi, you\n', encoding="utf-8")
    assert values(path) == [{"who": "Ada", 'said, as, it, was, "heard"': "Hi, you"}]
    path.write_text("sep=|\nwho|said\nAda|Hi; you\n", encoding="utf-8-sig")
    assert list(records(path, Input())) == [(3, {"who": "Ada", "said": "Hi; you"})]
    path.write_text("sep= \nwho said\nAda Hi\n", encoding="utf-8")
    assert list(records(path, Input())) == [(3, {"who": "Ada", "said": "Hi"})]
    path.write_text('who,4",said\nAda,1,"a; b; c; d"\n', encoding="utf-8")
    assert values(path) == [{"who": "Ada", '4"': 1, "said": "a; b; c; d"}]


def test_a_quotation_mark_that_nothing_closes_takes_no_row_in_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('who,said,note\nAda,Hi,\nBob,"No","oh\nEve,Yes,\n', encoding="utf-8")
    assert [value for value in values(path) if isinstance(value, dict)] == [
        {"who": "Ada", "said": "Hi", "note": None}
    ]
    ((line, why),) = reasons(path)
    assert line == 3 and why.startswith("a quotation mark opens a cell that nothing closes")
    path.write_text('"who,said\nAda,Hi\n', encoding="utf-8")
    assert [line for line, _ in reasons(path)] == [1]
    path.write_text('who,said\nAda,Hi\n\n\nBob,"Yes\n', encoding="utf-8")
    assert [line for line, _ in reasons(path)] == [5]


def test_a_column_that_stands_twice_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("who,said,said,,\nAda,Hi,Yes,,\n", encoding="utf-8")
    assert reasons(path) == [
        (None, "the first line has the column 'said' 2 times: only the last can be read")
    ]


def test_a_row_with_too_many_cells_is_quarantined_with_its_line_and_the_others_are_kept(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("a,b\n1,2\n1,2,3\n4,5\n", encoding="utf-8")
    assert reasons(path) == [(3, "3 cells where the first line names 2")]
    assert [value for value in values(path) if isinstance(value, dict)] == [
        {"a": 1, "b": 2},
        {"a": 4, "b": 5},
    ]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.csv", b"", "no rows in it"),
        ("a.csv", b"a,b\n", "no rows in it"),
        ("a.csv", b"a\n\xff\n", "not UTF-8"),
        ("a.txt", b"  \n", "the file is empty"),
        ("a.txt", b"\xff\xfe\xff", "not UTF-16-LE"),
        ("a.parquet", b"PAR1", "not Parquet"),
        ("a.json", b"{", "not JSON"),
    ],
)
def test_a_file_that_holds_no_records_says_why(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    ((_, reason),) = reasons(path)
    assert reason.startswith(why)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "shift_jis"])
def test_texts_are_read_in_the_encoding_that_the_mapping_names(tmp_path: Path, encoding: str) -> None:
    word = "Größe" if encoding != "shift_jis" else "大きさ"
    record = {"a": word, "b": 2}
    whole = json.dumps(record, ensure_ascii=False)
    contents = {"a.csv": f"a,b\n{word},2\n", "b.json": whole, "c.txt": f"{word}\n"}
    contents["d.jsonl"] = f"{whole}\n\n{whole}\n"
    for name, text in contents.items():
        (tmp_path / name).write_bytes(text.encode(encoding))
    assert values(tmp_path / "a.csv", encoding=encoding) == [record]
    assert values(tmp_path / "b.json", encoding=encoding) == [record]
    assert values(tmp_path / "c.txt", encoding=encoding) == [{"file": "c", "text": f"{word}\n"}]
    assert values(tmp_path / "d.jsonl", encoding=encoding) == [record, record]
    assert recognises(tmp_path / "d.jsonl")
    if encoding == "utf-16":  # which a mark says, whatever else is said
        assert values(tmp_path / "a.csv") == values(tmp_path / "a.csv", encoding="cp1252") == [record]
        return
    (wrong,) = values(tmp_path / "a.csv", encoding="ascii")
    assert isinstance(wrong, Quarantined) and wrong.reason.startswith("not ASCII (byte ")
    (tmp_path / "e.csv").write_text(contents["a.csv"], encoding="utf-8-sig")
    assert values(tmp_path / "e.csv", encoding="utf-8") == [record]


def test_a_json_file_is_its_list_its_object_the_list_at_sessions_or_its_lines(tmp_path: Path) -> None:
    one, two = {"n": 1}, {"n": 2}
    path = tmp_path / "log.json"
    for text in (json.dumps([one, two], indent=1), f"{json.dumps(one)}\n{json.dumps(two)}\n"):
        path.write_text(text, encoding="utf-8")
        assert values(path) == [one, two]
    path.write_text(json.dumps({"meta": 1, "runs": [one, two]}, indent=1), encoding="utf-8")
    assert values(path) == [{"meta": 1, "runs": [one, two]}]
    assert values(path, sessions="runs") == [one, two]
    path.write_text(json.dumps({"runs": {"a": one, "b": two}}), encoding="utf-8")
    assert values(path, sessions="runs") == [{"key": "a", **one}, {"key": "b", **two}]
    (wrong,) = values(path, sessions="rnus")
    assert isinstance(wrong, Quarantined) and wrong.reason == "input.sessions: no list at 'rnus'"


def test_the_rows_of_parquet_are_plain_values(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    turns = [{"role": "user", "content": "Hi"}]
    frame = {"id": ["a"], "at": [datetime(2026, 1, 2, 3)], "turns": [turns]}
    polars.DataFrame(frame).write_parquet(path)
    assert values(path) == [{"id": "a", "at": "2026-01-02T03:00:00", "turns": turns}]


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("a.traj", '{\n "a": 1}', "json"),
        ("a.traj", '{"a": 1}\n{"a": 2}\n', "jsonl"),
        ("a", '[{"a": 1}]', "json"),
        ("a", "User: hi", None),
        ("a.TXT", "{}", "text"),
    ],
)
def test_the_format_is_in_the_name_or_in_the_first_bytes(
    tmp_path: Path, name: str, content: str, form: str | None
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    assert format_of(path) == form


def test_what_nobody_says_in_any_round_of_a_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("s,question,reply\na,When?,Now.\n", encoding="utf-8")
    rounds = {"user": "question", "assistant": "answer"}
    (said, told) = values(path, rounds=rounds)
    assert isinstance(said, dict)
    assert said["said"] == {"role": "user", "text": "When?", "id": "2-user"}
    assert isinstance(told, Quarantined)
    assert told.reason == "input.rounds: no record has anything at 'answer'"


def test_a_damaged_parquet_file_is_quarantined_whatever_its_reader_does(tmp_path: Path) -> None:
    """Some damage makes a reader panic, which is no Exception in Python, or abort."""
    path = tmp_path / "log.parquet"
    polars.DataFrame({"role": ["user"] * 4, "many": [[1], [2], [], None]}).write_parquet(path)
    whole, chance = path.read_bytes(), random.Random(0)
    for _ in range(20):
        spoilt = bytearray(whole)
        for _ in range(chance.choice([1, 2, 4])):
            spoilt[chance.randrange(len(spoilt))] = chance.choice([0, 127, 255])
        path.write_bytes(spoilt)
        list(records(path, Input()))


def test_a_row_of_parquet_beyond_the_last_year_costs_itself_alone(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    times = pa.array([0, 2**62, 10**6], pa.timestamp("us"))
    parquet.write_table(pa.table({"text": ["a", "b", "c"], "time": times}), path)
    assert reasons(path) == [(2, "cannot be read: year 148108 is out of range")]
    kept = [value for value in values(path) if not isinstance(value, Quarantined)]
    assert kept == [
        {"text": "a", "time": "1970-01-01T00:00:00"},
        {"text": "c", "time": "1970-01-01T00:00:01"},
    ]


def test_what_a_reader_prints_as_it_panics_is_not_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.parquet"
    times = pa.array([2**62, 10**6], pa.timestamp("ms"))
    parquet.write_table(pa.table({"text": ["a", "b"], "time": times}), path)
    assert [(row, reason[:33]) for row, reason in reasons(path)] == [(1, "cannot be read: its reader failed")]
    os.write(2, b"and what comes next is")
    assert capfd.readouterr() == ("", "and what comes next is")


def test_a_parquet_file_of_one_text_many_times_is_too_large_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables_of_parquet, "MAX_BYTES", 1 << 20)
    path = tmp_path / "log.parquet"
    text = pa.array(["x"] * 100_000)
    parquet.write_table(pa.table({"text": text}), path)
    assert path.stat().st_size < 10_000
    assert [why.partition(":")[0] for _, why in reasons(path)] == ["not Parquet"]


BEYOND_NS = [datetime(9999, 12, 31), datetime(1, 1, 1), None]
KINDS: dict[str, tuple[pa.Array, list[JsonValue]]] = {
    "days of 64 bits": (pa.array([date(2024, 1, 2), None], pa.date64()), ["2024-01-02T00:00:00", None]),
    "INT96": (pa.array(BEYOND_NS, pa.timestamp("us")), ["9999-12-31T00:00:00", "0001-01-01T00:00:00", None]),
    "decimals of 256 bits": (pa.array([Decimal("0.5"), None], pa.decimal256(9, 1)), [0.5, None]),
    "decimals without fraction": (pa.array([Decimal(7), None], pa.decimal128(38, 0)), [7.0, None]),
    "categories in objects": (
        pa.StructArray.from_arrays([pa.array(["a", None]).dictionary_encode()], ["x"]),
        [{"x": "a"}, {"x": None}],
    ),
    "lists of one length": (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), [[1, 2], None]),
    "a time of 24:00": (pa.array([86_400_000_000, 0], pa.int64()).view(pa.time64("us")), [None, "00:00:00"]),
    "times in a zone": (pa.array([0], pa.timestamp("ms", "Asia/Tokyo")), ["1970-01-01T09:00:00+09:00"]),
    "times in UTC": (pa.array([0], pa.timestamp("ms", "Z")), ["1970-01-01T00:00:00+00:00"]),
    "times of an offset": (
        pa.array([[0], None], pa.list_(pa.timestamp("us", "-05:30"))),
        [["1970-01-01T00:00:00+00:00"], None],
    ),
    "not numbers": (pa.array([float("nan"), float("inf"), -0.0]), [None, float("inf"), -0.0]),
    "beyond 64 bits": (pa.array([2**64 - 1, None], pa.uint64()), [2**64 - 1, None]),
    "bytes": (pa.array([b"\xff", None]), ["\ufffd", None]),
}  # fmt: skip
"""Columns, and the values whose text ids have hashed since polars read them."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_parquet_keeps_its_values_whoever_reads_it(tmp_path: Path, kind: str) -> None:
    column, expected = KINDS[kind]
    path = tmp_path / "log.parquet"
    parquet.write_table(
        pa.table({"x": column}), path, row_group_size=1, use_deprecated_int96_timestamps=kind == "INT96"
    )
    assert json.dumps(values(path)) == json.dumps([{"x": one} for one in expected])


def test_integers_of_128_bits_and_a_column_without_a_name_are_read(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    polars.DataFrame({"": [[2**100], None]}, {"": polars.List(polars.Int128)}).write_parquet(path)
    assert values(path) == [{"": [2**100]}, {"": None}]
    polars.DataFrame({"": [1]}).write_parquet(path)
    assert values(path) == [{"": 1}]


def test_rows_before_the_damage_in_a_parquet_file_are_read_once(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    table = pa.table({"text": [f"{n} of them" for n in range(6)]})
    parquet.write_table(table, path, row_group_size=2, compression="none", use_dictionary=False)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"4 of them", b"\xff of them"))
    *kept, wrong = values(path)
    assert kept == [{"text": f"{n} of them"} for n in range(len(kept))] and len(kept) in (0, 4)
    assert isinstance(wrong, Quarantined) and wrong.line is None


def test_damage_beyond_the_rows_that_were_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables_of_parquet, "ROWS", 1000)
    path = tmp_path / "log.parquet"
    table = pa.table({"text": [f"text {n * 7919 % 3011}" for n in range(3000)]})
    parquet.write_table(table, path, row_group_size=1000, compression="zstd", use_dictionary=False)
    column = parquet.read_metadata(path).row_group(1).column(0)
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + 60 : column.data_page_offset + 400] = b"\xff" * 340
    path.write_bytes(content)
    *kept, (row, wrong) = records(path, Input())
    assert [number for number, _ in kept] == list(range(1, 1001))
    assert row is None and isinstance(wrong, Quarantined)


def test_late_cells_of_a_spreadsheet_are_kept_and_change_none_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = Workbook()
    first, second = book.active, book.create_sheet("more")
    second.append(["n"])
    second.append([1])
    first.append(["n", "when", "ok", "score"])
    for number in range(1200):
        first.append([number, datetime(2024, 1, 1, 12), True, 0.5])
    for row in ([], ["late"], [1201, "later", 2, "high"], [1202]):
        first.append(row)
    book.save(tmp_path / "log.xlsx")
    rows = values(tmp_path / "log.xlsx")
    keys, above = ("sheet", "n", "when", "ok", "score"), ("2024-01-01T12:00:00", True, 0.5)
    assert rows == [
        *(dict(zip(keys, ("Sheet", number, *above), strict=True)) for number in range(1200)),
        dict(zip(keys, ("Sheet", "late", None, None, None), strict=True)),
        dict(zip(keys, ("Sheet", 1201, "later", True, "high"), strict=True)),
        dict(zip(keys, ("Sheet", 1202, None, None, None), strict=True)),
        {"sheet": "more", "n": 1},
    ]
    assert all(row["ok"] is True for row in rows[:1200] if isinstance(row, dict))
    monkeypatch.setattr(excel, "MAX_TEXT", -1)
    assert values(tmp_path / "log.xlsx") == rows


def test_a_parquet_file_whose_name_is_a_pattern_is_read_itself(tmp_path: Path) -> None:
    """A column of days is read by the process of its own."""
    for name in ("log[1]", "log1"):
        frame = polars.DataFrame({"day": [date(2020, 1, 1)], "text": [name]})
        frame.write_parquet(tmp_path / f"{name}.parquet")
    assert values(tmp_path / "log[1].parquet") == [{"day": "2020-01-01", "text": "log[1]"}]


def test_a_line_that_the_reading_process_did_not_end_is_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text("""#!/bin/sh\nprintf '{"row": 1}\\n{"row": {"a": '\nexit 1\n""")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    path = tmp_path / "log.parquet"
    polars.DataFrame({"day": [date(2020, 1, 1)]}).write_parquet(path)
    first, wrong = values(path)
    assert first == 1 and isinstance(wrong, Quarantined)


def _book(path: Path, *places: str) -> Path:
    book = Workbook()
    for place in ("A1", "A2", *places):
        book.active[place] = "text"
    book.save(path)
    return path


def test_a_spreadsheet_with_a_cell_in_the_last_corner_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sheets, "MAX_CELLS", 100)
    assert reasons(_book(tmp_path / "tall.xlsx", "A100")) == []
    why = "not a spreadsheet: a sheet of 20 rows and 10 columns; save it as CSV"
    assert reasons(_book(tmp_path / "corner.xlsx", "J20")) == [(None, why)]


EMPTY = "<table-row number-rows-repeated='%d'><table-cell number-columns-repeated='%d'/></table-row>"
FULL = EMPTY.replace("/><", " value='1'/><")


@pytest.mark.parametrize("name", ["sheet.bin", "content.xml"])
@pytest.mark.parametrize(
    ("xml", "is_refused"),
    [
        ("<sheetData><row/><row><c/></row></sheetData>", False),
        ("<sheetData><row r='60'><c/><c s='1'/></row><row r='61'><c/></row></sheetData>", False),
        ("<sheetData><row r='60'><c/><c><v/></c></row></sheetData>", True),
        ("<x:sheetData><x:row><x:c r='b60'><x:is/></x:c></x:row></x:sheetData>", True),
        ("<sheetData><row r='60'><c/><c><v/></c></row></sheetDat>", True),
        (f"<table>{FULL % (9, 1)}{EMPTY % (999, 99)}</table>", False),
        (f"<table>{FULL % (60, 2)}</table>", True),
        (f"<table>{EMPTY % (59, 9)}{FULL % (1, 2)}</table>", True),
        ("<sheetData><row><c r='B000000000060'><v/></c></row></sheetData>", True),
        ("<sheetData><row r='0000000000060'><c/><c><v/></c></row></sheetData>", True),
        (f"<table>{FULL.replace('%d', '%s') % ('+60', '0000000000002')}</table>", True),
        ("<sheetData><row><c r='60'><v/></c></row></sheetData>", True),
        (f"<table>{FULL.replace('%d', '%s') % ('1234567890', '1')}</table>", True),
    ],
)
def test_what_a_sheet_spans_is_told_from_its_places_and_repetitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, xml: str, is_refused: bool
) -> None:
    monkeypatch.setattr(sheets, "MAX_CELLS", 100)
    with zipfile.ZipFile(tmp_path / "book.xlsx", "w") as packed:
        packed.writestr(name, xml.replace("<x:sheetData>", "<x:sheetData xmlns:x='x'>"))
    if not is_refused:
        sheets.measure(tmp_path / "book.xlsx")
        return
    with pytest.raises(ValueError, match=r"sheet|a cell at '60'|'1234567890' in place of"):
        sheets.measure(tmp_path / "book.xlsx")


@pytest.mark.parametrize(
    ("xml", "size"),
    [
        ("<sst><si><t>ä</t></si><si><r><t>four</t></r><r><t>teen</t></r></si></sst>", 0),
        ("<sheetData><row><c t='s'><v>1</v></c><c><v>7</v></c></row></sheetData>", 0),
        (f"<table>{FULL % (1000, 2)}</table>", 0),
        (FULL.replace("/><", "><p>five5</p></table-cell><") % (10, 3), 150),
        (FULL.replace("/><", " string-value='four4'><p>x</p></table-cell><") % (10, 3), 150),
        ("<x:sst a='1' a='2'><si><t>text</t></si></x:sst>", None),
        ("<?xml version='1.0' encoding='foo'?><sst><si><t>text</t></si></sst>", None),
        ("<p><r><t>&not_declared;</t></r></p>", 0),
    ],
)
def test_the_texts_of_a_sheet_are_at_most_so_many_bytes(tmp_path: Path, xml: str, size: int | None) -> None:
    path = tmp_path / "book.xlsx"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.xml", xml)
        assert packed.testzip() is None
    assert sheets.measure(path) == size
    path.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + path.read_bytes())
    assert zipfile.is_zipfile(path) and sheets.measure(path) is None


def test_cells_that_share_a_text_are_measured_as_what_they_unpack_to(tmp_path: Path) -> None:
    """A file of two kilobytes has gigabytes of text, if each cell refers to one long text."""
    path = tmp_path / "book.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        rows = "<row><c t='s'><v>0</v></c></row>" * 900
        packed.writestr("sheet1.xml", f"<sheetData>{rows}</sheetData>")
        packed.writestr("sharedStrings.xml", f"<sst><si><t>{'x' * 32_000}</t></si></sst>")
    assert path.stat().st_size < 2000 and sheets.measure(path) == 900 * 32_000


def test_a_spreadsheet_is_the_same_read_here_and_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = values(_book(tmp_path / "log.xlsx"))
    monkeypatch.setattr(excel, "MAX_TEXT", -1)
    assert values(tmp_path / "log.xlsx") == here and here


def test_an_old_spreadsheet_is_read_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(pytest.importorskip("statsmodels").__file__).parent
    example = next(filter(Path.is_file, package.rglob("macrodata.xls")), None)
    if example is None:
        pytest.skip("this version of statsmodels has no old spreadsheet")
    rows = values(example)
    assert len(rows) == 1350
    assert rows[0] == {"sheet": "README", "Data List: macrodata": "Data Updated: 2009-12-11"}
    monkeypatch.setattr(excel, "APART", "none.such")
    (wrong,) = values(example)
    assert isinstance(wrong, Quarantined)
    assert wrong.reason == "not a spreadsheet: it takes more than 8 GiB of memory; save it as CSV"


def test_a_spreadsheet_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    path = _book(tmp_path / "log.xlsx")
    honest = path.read_bytes()
    size = zipfile.ZipFile(io.BytesIO(honest)).getinfo("xl/worksheets/sheet1.xml").file_size
    path.write_bytes(honest.replace(struct.pack("<I", size), struct.pack("<I", 10)))
    assert reasons(path) == [(None, "not a spreadsheet: Bad CRC-32 for file 'xl/worksheets/sheet1.xml'")]


def test_only_a_sheet_has_to_be_xml_without_entities_in_an_encoding_that_is_known(tmp_path: Path) -> None:
    parts = (
        ("<!DOCTYPE x [<!ENTITY e 'e'>]><%s/>", "a sheet declares no entities"),
        ("<?xml version='1.0' encoding='foo'?><%s/>", "a sheet that is not well-formed XML"),
        ("<?xml version='1.0' encoding='gbk'?><%s/>", "a sheet that is not well-formed XML"),
        ("<%s><c r='x'/></%s>", "a cell at 'x'"),
    )
    for number, (part, why) in enumerate(parts):
        path = _book(tmp_path / f"{number}.xlsx")
        with zipfile.ZipFile(path, "a") as packed:
            packed.writestr("xl/media/image1.svg", part.replace("%s", "svg"))
        assert values(path) == [{"text": "text"}]
        with zipfile.ZipFile(path, "a") as packed:
            packed.writestr("xl/other.xml", part.replace("%s", "sheetData"))
        assert reasons(path) == [(None, f"not a spreadsheet: {why}")]


def test_a_spreadsheet_whose_packing_is_damaged_is_quarantined(tmp_path: Path) -> None:
    path = tmp_path / "log.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr("a.xml", "<a>" + "text " * 100 + "</a>")
    content = bytearray(path.read_bytes())
    start = content.index(b"a.xml") + len("a.xml")
    content[start + 9 : start + 20] = b"\xff" * 11  # after LZMA's version and properties
    path.write_bytes(content)
    assert reasons(path) == [(None, "not a spreadsheet: Corrupt input data")]


@pytest.mark.parametrize(("value", "form"), [(3_000_000, "yyyy-mm-dd"), (10**9, "[h]:mm:ss")])
def test_a_time_in_a_spreadsheet_that_python_cannot_hold_costs_its_row_alone(
    tmp_path: Path, value: int, form: str
) -> None:
    book = Workbook()
    for row, one in enumerate((value, 2), start=2):
        book.active.cell(row, 1, one).number_format = form
        book.active.cell(row, 2, row)
    book.active["A1"], book.active["B1"] = "time", "count"
    book.save(tmp_path / "log.xlsx")
    wrong, kept = values(tmp_path / "log.xlsx")
    assert isinstance(wrong, Quarantined) and wrong.line == 1
    time = "1900-01-02" if form.startswith("y") else 172800.0
    assert json.dumps(kept) == json.dumps({"time": time, "count": 3})
