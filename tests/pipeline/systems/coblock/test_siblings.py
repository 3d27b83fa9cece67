"""Which files may hold other saves of a game where each record has a folder of its own."""

from __future__ import annotations

import importlib
import json
import string
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.systems.coblock.siblings import siblings
from tests.shared import ROOT

SERVED = ROOT / "data/coblock/record_25.json"


def save(path: Path, number: int, actions: int | None = None, made: str | None = None) -> Path:
    value = json.loads(SERVED.read_text(encoding="utf-8"))
    value["id"] = number
    value["record"]["actionHistory"] = value["record"]["actionHistory"][:actions]
    if made:
        value["session"]["created_at"] = made
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_a_save_that_comes_later_than_its_folder_is_seen_and_one_that_goes_is_not(tmp_path: Path) -> None:
    first, whole = save(tmp_path / "24" / "record.json", 24, 2), tmp_path / "25" / "record.json"
    whole.parent.mkdir()
    assert siblings(first) == []
    save(whole, 25)
    assert (siblings(whole), siblings(first)) == ([first], [whole])
    whole.unlink()
    assert siblings(first) == [], "a file that is gone would keep a follower from reading this one"


def test_sessions_that_two_servers_number_alike_are_two(tmp_path: Path) -> None:
    times = ("2026-02-01T09:00:01.5Z", "2026-02-01T09:00:07Z")
    paths = [save(tmp_path / str(n) / "record.json", n, 2 * n, made) for n, made in enumerate(times)]
    assert list(map(siblings, paths)) == [[], []]
    again = [save(tmp_path / "one" / str(n) / "save.json", n, 2 * n, times[0]) for n in range(2)]
    assert list(map(siblings, again)) == [[again[1]], [again[0]]]
    same = ("2026-02-01T09:00:01.5Z", "2026-02-01T03:00:01.5-06:00")
    zones = [save(tmp_path / "zone" / str(n) / "a.json", n, 2 * n, made) for n, made in enumerate(same)]
    assert list(map(siblings, zones)) == [[zones[1]], [zones[0]]], (
        "one moment, as servers of two zones print it"
    )


def test_each_file_is_read_once_for_all_however_many_names_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number_read = 0

    def count(content: bytes, *rest: Any) -> Any:
        nonlocal number_read
        number_read += 1
        return json.loads(content)

    module = importlib.import_module(siblings.__module__)
    monkeypatch.setattr(module, "parse_json", count)
    names = [f"{letter}.json" for letter in string.ascii_letters[:20]]
    paths = [save(tmp_path / person / name, 1) for person in ("Ada", "Eve", "Bob") for name in names]
    for path in paths:
        siblings(path)
    assert number_read == 2 * len(paths), "once among those of its folder, once among those of its name"
