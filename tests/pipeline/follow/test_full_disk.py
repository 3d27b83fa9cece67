"""A follower on a disk that is full, at each place that it writes: told in a sentence, and nothing is lost.

The disk is a small file system in memory that holds just that place, so it takes somebody who may mount one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coaudit.pipeline.systems.cogym.generate import generate
from tests.hostile import CORPUS, sessions
from tests.pipeline.follow.conftest import Server, until
from tests.pipeline.follow.emulator import Env, play
from tests.test_chaos import content

pytestmark = pytest.mark.slow
SIZE = 32 << 20


@contextmanager
def disk(place: Path, free: int) -> Iterator[Path]:
    """A disk of its own at that place, which holds what was there, with so many KiB free; the filler."""
    place.mkdir(parents=True, exist_ok=True)
    aside = shutil.copytree(place, place.resolve().with_name(f"{place.resolve().name}-aside"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only who may mount a small file system can fill one")
    try:
        shutil.copytree(aside, place, dirs_exist_ok=True)
        there = os.statvfs(place)
        filler = place / "filler"
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, there.f_bavail * there.f_frsize - (free << 10))
        yield filler
    finally:
        subprocess.run(["umount", str(place)], check=True)


def follow(workspace: Path, *targets: object, given: bytes = b"") -> tuple[int, str]:
    """Follow until nothing comes any more; the status, and what was said last."""
    options = ("--judge", "initiative", "--stop-when-idle", "0.5")
    return run(workspace, "follow", *targets, *options, given=given)


def run(workspace: Path, *arguments: object, given: bytes = b"") -> tuple[int, str]:
    command = [sys.executable, "-P", "-m", "coaudit.pipeline", "--workspace", workspace, *arguments]
    done = subprocess.run(list(map(str, command)), capture_output=True, input=given, timeout=120)
    said = done.stderr.decode().splitlines()
    return done.returncode, said[-1] if said else ""


def told(said: str, workspace: Path) -> bool:
    """Whether it is a sentence that names what was to be written, why that failed and what to do."""
    parts = (f"coaudit: {workspace}/", "No space left on device", "is safe; run `coaudit follow` again")
    return all(part in said for part in parts) and "unexpected" not in said


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """One whose tables are in a folder of their own, and that has followed a session."""
    folder = tmp_path / "workspace"
    (folder / "tables").mkdir(parents=True)
    (folder / "coaudit.toml").write_text(f'store = "{folder}/tables/coaudit.duckdb"\n')
    generate(tmp_path / "logs" / "a", 1, 1)
    assert follow(folder, tmp_path / "logs")[0] == 0
    return folder


PLACES = {
    "ratings": ("ratings", 0),
    "sources": ("sources", 0),
    "WAL as it begins": ("tables", 0),
    "WAL in a transaction": ("tables", 600),
    "WAL later on": ("tables", 1200),
    "all, at once": (".", 0),
    "all, soon": (".", 200),
    "all, later": (".", 1500),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_full_disk_is_told_and_nothing_is_lost_once_it_is_not(
    tmp_path: Path, workspace: Path, name: str
) -> None:
    place, free = PLACES[name]
    generate(tmp_path / "logs" / "b", 8, 2)
    with disk(workspace / place, free) as filler:
        status, said = follow(workspace, tmp_path / "logs")
        assert status == 1 and told(said, workspace), said
        status, said = follow(workspace, tmp_path / "logs")
        assert status == 0 or told(said, workspace), "which is so where all but the ratings is stored"
        filler.unlink()
        assert follow(workspace, tmp_path / "logs")[0] == 0
        assert run(workspace, "judge", "--codebook", "initiative")[0] == 0
        there = content(workspace)
    other = tmp_path / "other"
    assert follow(other, tmp_path / "logs")[0] == 0
    assert there == content(other)


def test_what_a_full_disk_does_not_record_of_standard_input_is_told(tmp_path: Path, workspace: Path) -> None:
    lines = sessions(tmp_path / "log.jsonl").read_bytes()
    with disk(workspace / "raw", 4) as filler:
        status, said = follow(workspace, "-", given=lines)
        assert status == 1 and told(said, workspace), said
        filler.unlink()
        assert follow(workspace, "-", given=lines)[0] == 0
        there = content(workspace)
    assert len(there["trajectories"]) == 1 + len(CORPUS)


def test_what_was_recorded_of_redis_before_the_disk_was_full_is_in_the_store_afterwards(
    redis: Server, tmp_path: Path, workspace: Path
) -> None:
    with disk(workspace / "raw", 16) as filler:
        performing = threading.Thread(target=perform, args=(redis,))
        performing.start()
        status, said = follow(workspace, redis.url)
        performing.join()
        assert status == 1 and told(said, workspace), said
        filler.unlink()
        heard = sum(len(path.read_bytes().splitlines()) for path in (workspace / "raw").rglob("0*.jsonl"))
        assert heard > 2, "it had recorded some"
        assert follow(workspace, redis.url)[0] == 0
        assert run(workspace, "judge", "--codebook", "initiative")[0] == 0
        there = content(workspace)
        other = tmp_path / "other"
        streams = [path for path in (workspace / "raw" / "live").glob("*") if any(path.glob("0*.jsonl"))]
        assert run(other, "ingest", *streams, tmp_path / "logs")[0] == 0
        assert run(other, "judge", "--codebook", "initiative")[0] == 0
    assert {**there, "sources": []} == {**content(other), "sources": []}


def perform(server: Server) -> None:
    """Two sessions side by side, once somebody listens."""
    until(server.subscribers)
    running = [
        play(Env(f"env_travel_planning_{n}", server.publish, query=f"Trip {n}"), n, steps=15) for n in (0, 1)
    ]
    while running:
        running = [one for one in running if next(one, "over") != "over"]
        time.sleep(0.05)
