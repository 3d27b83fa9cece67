"""Tables of separated values: read twice, in the memory of a few rows, whatever comes in between."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.systems.formats.files import separated
from coaudit.pipeline.systems.formats.files.separated import SEEN, rows
from coaudit.schemas import Quarantined


def count_and_peak(path: Path) -> tuple[int, int]:
    """How many rows a table has, and the most bytes that reading it took."""
    tracemalloc.start()
    try:
        number = sum(1 for _ in rows(path, None, (), as_written=False))
        return number, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_table_takes_the_memory_of_a_few_rows(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("n,share,text\n" + "".join(f"{n},{n / 7},{n} and more words\n" for n in range(40_000)))
    number, peak = count_and_peak(path)
    assert number == 40_000
    assert peak < path.stat().st_size / 2


def test_long_texts_below_an_empty_cell_take_the_memory_of_a_few(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("n,notes\n0,\n" + "".join(f"{n},{n} {'word ' * 4000}\n" for n in range(900)))
    number, peak = count_and_peak(path)
    assert number == 901
    assert peak < path.stat().st_size / 10


def between_readings(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Have something happen after the first reading of a table."""
    outline = separated._outline

    def outline_before_a_change(*arguments: Any) -> Any:
        result = outline(*arguments)
        change()
        return result

    monkeypatch.setattr(separated, "_outline", outline_before_a_change)


@pytest.mark.parametrize("late", [SEEN - 1, SEEN + 1, 3 * SEEN])
def test_a_late_cell_tells_what_a_column_is(late: int, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    cells = [f"{n},{n},true" for n in range(late)]
    path.write_text("\n".join(["a,b,c", *cells, "x,1.5,maybe"]))
    values = [value for _, value in rows(path, None, (), as_written=False)]
    assert values[0] == {"a": "0", "b": 0.0, "c": "true"}
    assert values[-1] == {"a": "x", "b": 1.5, "c": "maybe"}


def test_what_is_added_between_the_two_readings_waits_and_what_is_changed_is_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("a,b\n1,true\n2,false\n")
    between_readings(monkeypatch, lambda: path.write_text("a,b\n1,true\nx,so\nlate,row\n"))
    read = list(rows(path, None, (), as_written=False))
    assert read == [(2, {"a": 1, "b": True}), (3, {"a": "x", "b": "so"})]


def test_the_place_of_a_byte_that_is_no_text_is_that_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"a,b\n" + b"1,2\n" * 100_000 + b"\xff,3\n")
    ((number, wrong),) = rows(path, None, (), as_written=False)
    assert number is None and isinstance(wrong, Quarantined)
    assert "byte 0xff at 400004" in wrong.reason


@pytest.mark.parametrize("encoding", ["utf-16-", "UTF-16-", "utf-32-"])
def test_an_encoding_that_a_mark_should_tell_more_of_is_read_without_one(
    encoding: str, tmp_path: Path
) -> None:
    path = tmp_path / "log.csv"
    codec = f"{encoding}{sys.byteorder[0]}e"
    path.write_bytes("a,b\n1,é\n".encode(codec))
    assert list(rows(path, encoding[:-1], (), as_written=False)) == [(2, {"a": 1, "b": "é"})]
    path.write_bytes(b"a,b\n1,2\n3")
    ((_, wrong),) = rows(path, encoding[:-1], (), as_written=False)
    assert isinstance(wrong, Quarantined) and "not UTF-" in wrong.reason


def test_a_table_in_whose_place_another_comes_between_the_two_readings_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, newer = tmp_path / "log.csv", tmp_path / "newer.csv"
    path.write_text("question,answer\n" + "how,so\n" * 5000)
    newer.write_text("answer,question\n" + "so,how\n" * 5000)
    between_readings(monkeypatch, lambda: newer.replace(path))
    read = [value for _, value in rows(path, None, (), as_written=False)]
    assert read == [{"question": "how", "answer": "so"}] * 5000


def test_a_table_that_is_written_anew_between_the_two_readings_ends_no_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("a,b\n" + "1,2\n" * 20_000)
    between_readings(monkeypatch, lambda: path.write_bytes(b"a,b\n" + b"1,2\n" * 10_000 + b"3,\xc3"))
    read = list(rows(path, None, (), as_written=False))
    assert isinstance(read[-1][1], Quarantined) and "not UTF-8" in read[-1][1].reason


def test_rows_get_no_names_of_columns_that_have_changed_between_the_two_readings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("question,answer\nhow,so\n")
    between_readings(monkeypatch, lambda: path.write_text("answer,question\nso,how\n"))
    ((_, wrong),) = rows(path, None, (), as_written=False)
    assert isinstance(wrong, Quarantined) and "columns have changed" in wrong.reason
