"""What is hashed of a source."""

from __future__ import annotations

import os
import resource
from hashlib import blake2b
from pathlib import Path

from coaudit.pipeline.ingest.sources import Place, content, size


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
