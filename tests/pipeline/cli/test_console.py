"""Tables and documents of any length: nothing is lost, broken off or held back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from rich.cells import cell_len

from coaudit.pipeline.cli import console

COLUMNS = ["name", "n", "remark"]


@pytest.fixture
def width(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("COLUMNS", "40")
    return 40


def test_a_row_beyond_those_that_were_measured_widens_columns_and_then_is_folded(
    capsys: pytest.CaptureFixture[str], width: int
) -> None:
    later = ["a longer name", "1", "a remark that is longer than all before it"]
    console.table(
        "Rows", COLUMNS, [["short", str(i), "brief"] for i in range(console.MEASURED)] + [later] * 2
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["Rows", "name   n    remark", "short  0    brief"]
    folded = [
        "a longer name  1    a remark that is",
        "                    longer than all",
        "                    before it",
    ]
    assert lines[console.MEASURED + 2 :] == folded * 2


def test_rows_are_printed_as_they_come(capsys: pytest.CaptureFixture[str], width: int) -> None:
    def rows() -> Iterator[list[str]]:
        for i in range(console.MEASURED + 500):
            yield [f"row{i}", "", ""]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        console.table("", COLUMNS, rows())
    assert capsys.readouterr().out.splitlines()[-1] == f"row{console.MEASURED + 499}"


@pytest.mark.parametrize("columns", [10, 20, 40, 80])
def test_no_line_is_wider_than_the_terminal_and_no_character_is_lost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    cells = ["東京の会議の計画|", "two words|", "a remark of several words, and one\tlongerthananycolumn"]
    console.table("", ["a", "b", "c"], [cells])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(cell_len, lines)) <= columns
    assert sorted("".join(lines).replace(" ", "")) == sorted("abc" + "".join("".join(cells).split()))


def test_a_long_text_gives_way_before_short_words_are_broken(
    capsys: pytest.CaptureFixture[str], width: int
) -> None:
    console.table("", COLUMNS, [["confirmations", "12", "a long remark that says what the number rests on"]])
    assert capsys.readouterr().out.splitlines()[:2] == [
        "name           n   remark",
        "confirmations  12  a long remark that",
    ]


def test_wide_characters_keep_columns_in_line(capsys: pytest.CaptureFixture[str], width: int) -> None:
    console.table("", COLUMNS, [["会議", "1", "x"], ["plan", "1", "x"]])
    assert capsys.readouterr().out.splitlines() == ["name  n  remark", "会議  1  x", "plan  1  x"]


def test_a_name_with_a_line_feed_makes_no_line_of_its_own(
    capsys: pytest.CaptureFixture[str], width: int
) -> None:
    console.table("title\nforged", COLUMNS, [["x\nforged", "1", ""]])
    console.tell("first\nforged", "second")
    console.say("a message\nforged")
    printed = capsys.readouterr()
    lines = ["title\\nforged", "name       n  remark", "x\\nforged  1", "first\\nforged", "second"]
    assert printed.out.splitlines() == lines
    assert printed.err == "a message\\nforged\n"


@pytest.mark.parametrize("rows", [[], [{"a": 1}], [{"a": "\x1b["}, {"b": None}]])
def test_rows_are_one_document(capsys: pytest.CaptureFixture[str], rows: list[dict[str, Any]]) -> None:
    console.emit_rows(iter(rows))
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"rows": rows}
    console.emit({"rows": rows})
    assert capsys.readouterr().out == printed


def test_an_error_before_any_row_leaves_nothing_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    def rows() -> Iterator[dict[str, Any]]:
        raise ValueError
        yield {}

    with pytest.raises(ValueError):
        console.emit_rows(rows())
    assert capsys.readouterr().out == ""
