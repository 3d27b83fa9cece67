"""What is hashed of a source."""

from __future__ import annotations

import json
import os
import resource
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.ingest import run, sources
from coaudit.pipeline.ingest.sources import Place, content, size
from tests.pipeline.stores import made, rows, take


def hashed(*said: bytes) -> str:
    return blake2b(b"".join(said), digest_size=16).hexdigest()


def test_a_folder_is_hashed_by_the_names_and_bytes_of_its_files_links_aside(tmp_path: Path) -> None:
    folder = tmp_path / "env_x"
    (folder / "a").mkdir(parents=True)
    for name in ("a/z", "a-b", "B", ".hidden"):
        (folder / name).write_text(f"<{name}>")
    (folder / "link").symlink_to(folder / "B")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    place = Place(folder, str(folder), "cogym")
    wanted = hashed(*(f"env_x/{name}<{name}>".encode() for name in (".hidden", "B", "a/z", "a-b")))
    assert content(place) == wanted
    assert size(place) == sum(len(f"<{name}>") for name in ("a/z", "a-b", "B", ".hidden"))


def test_no_folder_is_too_deep(tmp_path: Path) -> None:
    deep = tmp_path.joinpath("env", *["d"] * 400)
    deep.mkdir(parents=True)
    (deep / "log").write_text("x")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
    try:
        assert size(Place(tmp_path / "env", "env", "cogym")) == 1
        assert content(Place(tmp_path / "env", "env", "cogym")) == hashed(b"env/" + b"d/" * 400 + b"logx")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def calls(path: Path, first: int, last: int) -> Path:
    with path.open("a") as log:
        for number in range(first, last):
            said = [{"role": "user", "content": f"{number}?"}, {"role": "assistant", "content": f"{number}!"}]
            log.write(json.dumps({"messages": said}) + "\n")
    return path


def test_what_is_hashed_while_it_is_read_is_hashed_as_it_was_when_reading_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "LARGE", 1)
    log, store = calls(tmp_path / "calls.jsonl", 0, 20), made(tmp_path / "workspace")
    place, size_then = Place(log, str(log), "chat"), log.stat().st_size
    before = content(place)
    original = sources.content

    def late(*given: Any) -> str:
        """Whoever writes the log is faster than the hash."""
        if log.stat().st_size == size_then:
            calls(log, 20, 22)
        return original(*given)

    monkeypatch.setattr(sources, "content", late)
    assert take(store, log).trajectories in (20, 22)
    (source,) = rows(store, "SELECT content_hash, bytes FROM sources")
    assert (source["content_hash"], source["bytes"]) == (before, size_then)
    monkeypatch.undo()
    take(store, log)
    assert rows(store, "SELECT count(*) AS n FROM trajectories") == [{"n": 22}]
    assert take(store, log).unchanged == 22
    (source,) = rows(store, "SELECT content_hash FROM sources")
    assert source["content_hash"] == content(place) != before


def test_a_large_log_that_is_gone_before_it_is_hashed_is_read_again_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "LARGE", 1)
    log, store = calls(tmp_path / "calls.jsonl", 0, 3), made(tmp_path / "workspace")

    def gone(*given: Any) -> str:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(sources, "content", gone)
    assert take(store, log).trajectories == 3
    monkeypatch.undo()
    again = take(store, log)
    assert (again.trajectories, again.unchanged) == (0, 3)
    (source,) = rows(store, "SELECT content_hash FROM sources")
    assert source["content_hash"] == content(Place(log, str(log), "chat"))


@pytest.mark.parametrize("most", [0, 1, 7, 10**6])
def test_no_more_is_hashed_than_is_asked_for(tmp_path: Path, most: int) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"0123456789")
    assert content(Place(path, "log", "chat"), most) == hashed(b"log", b"0123456789"[:most])
