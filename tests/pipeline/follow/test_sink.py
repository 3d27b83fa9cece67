"""A follower of Redis is killed, or finds the disk full, at its steps to the disk, and is started again.

What is recorded is acknowledged: all of it is in the store then, once, and rated once.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from coaudit.pipeline.ingest.rebuild import rebuild
from coaudit.pipeline.store import Store, Workspace
from tests.pipeline.follow.conftest import Server
from tests.pipeline.follow.emulator import Env, play
from tests.test_chaos import content, ended, forks, run, start

__all__ = ["forks"]
pytestmark = pytest.mark.slow
STEPS = (1, 2, 4, 6, 9, 14, 21, 30)
"""Of the steps to the disk, those at which it is broken."""
FOLLOW = ("--judge", "initiative", "--stop-when-idle", "1")
JUDGE = ["judge", "--codebook", "initiative"]


def perform(server: Server, follower: ForkServerProcess) -> None:
    """Two sessions side by side for about a second, once somebody listens."""
    while follower.is_alive() and not server.subscribers():
        time.sleep(0.02)
    envs = [Env(f"env_travel_planning_{n}", server.publish, query=f"Trip {n}") for n in range(2)]
    running = [play(env, n, steps=15) for n, env in enumerate(envs)]
    while running and follower.is_alive():
        running = [one for one in running if next(one, "over") != "over"]
        time.sleep(0.05)


def broken(server: Server, workspace: Path, how: str, at: int) -> tuple[int, str]:
    """A follower whose step `at` to the disk fails."""
    process = start(workspace, ["follow", server.url, *FOLLOW], how, at)
    performing = threading.Thread(target=perform, args=(server, process))
    performing.start()
    end = ended(process, workspace)
    performing.join()
    return end


def twice(workspace: Path) -> list[tuple[str, ...]]:
    """Units that the ledgers rate more than once."""
    lines = [
        line for path in (workspace / "ratings").glob("*.jsonl") for line in path.read_text().splitlines()
    ]
    names = ("trajectory", "event", "codebook", "code", "rater")
    keys = Counter(tuple(str(json.loads(line).get(name)) for name in names) for line in lines)
    return [key for key, number in keys.items() if number > 1]


def recorded(workspace: Path) -> bool:
    """Whether any observation is, from which on there is something to tell."""
    return any("/observation" in path.read_text() for path in (workspace / "raw" / "live").rglob("0*.jsonl"))


def read_from_recordings(workspace: Path, other: Path) -> dict[str, list[str]]:
    """What the recordings alone give in a workspace of their own."""
    streams = [str(path) for path in (workspace / "raw" / "live").glob("*") if any(path.glob("0*.jsonl"))]
    for arguments in (["ingest", *streams], JUDGE):
        status, said = run(other, arguments)
        assert status == 0, said
    return content(other)


@pytest.mark.parametrize("how", ["kill", "full"])
def test_a_follower_broken_at_its_steps_to_the_disk_loses_nothing_that_it_recorded(
    redis: Server, forks: None, tmp_path: Path, how: str
) -> None:
    for at in STEPS:
        workspace = tmp_path / str(at)
        status, said = broken(redis, workspace, how, at)
        if status == 0:
            break
        assert status == (-signal.SIGKILL if how == "kill" else 1), said
        assert how == "kill" or "No space left" in said
        for arguments in (["follow", redis.url, *FOLLOW], JUDGE):
            again, said = run(workspace, arguments)
            assert again == 0, said
        assert not twice(workspace), at
        there = content(workspace)
        if recorded(workspace):
            expected = read_from_recordings(workspace, tmp_path / f"{at}-alone")
            assert {**there, "sources": []} == {**expected, "sources": []}, at
        else:
            assert not there["trajectories"]
        rebuild(Store(Workspace(workspace)))
        # A stream that is followed has no hash of its content before a rebuild has read it.
        assert {**content(workspace), "sources": []} == {**there, "sources": []}, at
    assert at > 5, "a good many steps were broken"
