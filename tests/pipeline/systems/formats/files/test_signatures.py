"""What is said of files that are not what their names say."""

from __future__ import annotations

from pathlib import Path

import pytest

from coaudit.pipeline.ingest.look import looks_like
from coaudit.pipeline.systems.formats.files import signatures

FILES = {
    "page.json": (b"\n<!DOCTYPE html><html>", "it is a web page"),
    "pointer.jsonl": (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS"),
    "paper.json": (b"%PDF-1.4\n%\xe2\xe3", "it is a PDF"),
    "book.json": (b"PK\x03\x04\0\0", "name it .xlsx or .zip"),
    "printed.json": (b"{'role': 'user'}", "json.dumps"),
    "lines.csv": (b'{"role": "user"}\n', "it looks like JSON; name it .json, or .jsonl"),
    "list.parquet": (b"[1]", "it looks like JSON; name it .json"),
    "table.xlsx": (b"a,b\n1,2\n", "name a table .csv"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_read_is_named_as_what_it_is(tmp_path: Path, name: str) -> None:
    content, what = FILES[name]
    (tmp_path / name).write_bytes(content)
    assert what in looks_like(tmp_path / name, name)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", b"[10:00] A: hi\n"),
        ("a.csv", b"[info] on,off\n"),
        ("a.log", b"[1] A: hi\n"),
        ("b.log", b"[info]\n"),
        ("a.jsonl.1", b'{"a": 1}\n'),
        ("a.parquet.2", b"PAR1"),
    ],
)
def test_a_log_is_not_taken_for_json_nor_named_as_it_is_named(
    tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    assert signatures.hint(tmp_path / name) == ""


@pytest.mark.parametrize(
    ("name", "content"), [("a.json", b'{"a": '), ("a.parquet", b"PAR1"), ("a.json", b"\0\1")]
)
def test_nothing_is_guessed_of_a_damaged_file(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert looks_like(tmp_path / name, name).startswith("no records: not ")
    assert "it looks like" not in looks_like(tmp_path / name, name)
