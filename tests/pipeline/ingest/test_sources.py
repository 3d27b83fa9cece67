"""What is hashed of a source."""

from __future__ import annotations

import os
import resource
from hashlib import blake2b
from pathlib import Path

import pytest

from coaudit.pipeline.ingest.sources import Place, Source, content, copy_source, locate, size
from coaudit.pipeline.store import Workspace
from coaudit.pipeline.systems import ReadOptions


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


@pytest.mark.parametrize("outside", ["../secret.jsonl", "raw/../../secret.jsonl", "{}/secret.jsonl"])
def test_a_ledger_names_no_copy_outside_the_workspace(tmp_path: Path, outside: str) -> None:
    """In a study other machines write ledgers; a copy that is not there is fetched to its place."""
    (tmp_path / "secret.jsonl").write_text("{}\n", encoding="utf-8")
    workspace = Workspace(tmp_path / "workspace")
    inside = workspace.raw / "copied" / "h" / "log.jsonl"
    inside.parent.mkdir(parents=True)
    inside.write_text("{}\n", encoding="utf-8")
    source = Source(
        path="/gone", system="coaudit", content_hash="h", options=ReadOptions(), ingested="2026-01-01",
        copied="raw/copied/h/log.jsonl",
    )  # fmt: skip
    place = locate(workspace, source)
    assert place and place.path == inside
    outside = outside.format(tmp_path)
    assert locate(workspace, source.model_copy(update={"copied": outside})) is None
    assert locate(workspace, source.model_copy(update={"content_hash": outside})) is None


@pytest.mark.parametrize(("mode", "file"), [(0o2770, 0o660), (0o700, 0o600)])
def test_copies_of_private_logs_are_the_groups_where_the_workspace_is(
    tmp_path: Path, mode: int, file: int
) -> None:
    log = tmp_path / "env_x" / "a" / "log.jsonl"
    log.parent.mkdir(parents=True, mode=0o700)
    log.write_text("{}")
    log.chmod(0o600)
    workspace = Workspace(tmp_path / "w")
    workspace.path.mkdir()
    workspace.path.chmod(mode)
    place = Place(tmp_path / "env_x", str(tmp_path / "env_x"), "cogym")
    before = os.umask(0o002 if mode == 0o2770 else 0o022)
    try:
        copy = workspace.path / copy_source(workspace, place, "h") / "a"
    finally:
        os.umask(before)
    assert (copy / "log.jsonl").stat().st_mode & 0o777 == file
    assert copy.stat().st_mode & 0o070 == (0o070 if mode == 0o2770 else 0)
