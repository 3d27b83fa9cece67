"""Which files a ledger has, which of them hold more than is known, and where the next one stands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from coaudit.pipeline.store import disk
from coaudit.pipeline.store.ledgers import ledger


def _written(folder: Path, **files: str) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / f"{name}.jsonl").write_text(content)


def test_only_files_that_do_not_end_where_they_are_known_to_are_looked_at_oldest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _written(tmp_path / "ratings", b="{}\n", a="{}\n", c="", d="{}\n{}\n")
    (tmp_path / "ratings" / "e.jsonl.part").write_text("{}\n")
    noted = ledger.Ledger(tmp_path / "ratings")
    known = {"b.jsonl": 3, "d.jsonl": 3}
    assert [path.name for path in ledger.changed_files(noted.folder, known)] == ["a.jsonl", "d.jsonl"]
    assert list(ledger.sizes(noted.folder)) == ["a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl"]
    opened: list[Path] = []
    monkeypatch.setattr(ledger, "has_grown", lambda path, offset: opened.append(path))
    assert not noted.has_grown({"a.jsonl": 3, **known})
    assert [path.name for path in opened] == ["d.jsonl"]


def test_a_file_that_goes_while_a_ledger_is_looked_at_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _written(tmp_path, a="{}\n", b="")
    really = disk._size

    def late(entry: os.DirEntry[str]) -> int:
        (tmp_path / "b.jsonl").unlink(missing_ok=True)  # a writer that never got a rating ends
        return really(entry)

    monkeypatch.setattr(disk, "_size", late)
    assert {name for name, size in ledger.sizes(tmp_path).items() if size} == {"a.jsonl"}
    assert ledger.sizes(tmp_path / "nowhere") == {} and ledger.files(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    ("there", "begin"),
    [
        (("20990101T000000000000-vm-1-a",), "20990101T000000000000~000001-"),
        (
            ("20990101T000000000000~000009-vm-1-a", "20990101T000000000000-vm-1-b"),
            "20990101T000000000000~000010-",
        ),
    ],
)
def test_the_name_of_a_new_file_stands_behind_every_other_whatever_the_clock_says(
    tmp_path: Path, there: tuple[str, ...], begin: str
) -> None:
    _written(tmp_path, **dict.fromkeys(there, ""))
    name = ledger.new_name(tmp_path)
    assert name.startswith(begin) and all(name > other for other in there)
