"""What looks on never ends the following. And the soak of benchmarks/live.py in short: nothing is lost, no
read fails, memory does not run away.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from coaudit.judges.clients import Offer, Parameters, Question, Reply
from coaudit.pipeline import codebooks
from coaudit.pipeline.errors import WriteError
from coaudit.pipeline.follow import run
from coaudit.pipeline.follow.model_judge import ModelJudge
from coaudit.pipeline.follow.run import Follower, Plan
from coaudit.pipeline.judge import Scope
from coaudit.pipeline.judge.model import Model
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.systems.cogym.generate import generate
from coaudit.schemas import Trajectory
from tests.conftest import ROOT, needs


class Following:
    """A follower of a folder with two sessions, until it is idle, and what it says."""

    def __init__(self, workspace: Path, folder: Path) -> None:
        generate(folder, 2, 1)
        self.said: list[str] = []
        plan = Plan((str(folder),), stop_when_idle=1.0)
        self.follower = Follower(plan, Store(Workspace(workspace)), self.said.append)

    async def stored(self) -> int:
        """Trajectories in the store when it has ended."""
        await self.follower.run()
        with self.follower.sink.store.reading() as connection:
            return len(connection.execute("SELECT id FROM trajectories").fetchall())

    @property
    def stopped(self) -> list[str]:
        return [said for said in self.said if "judging or alerting stopped" in said]


@pytest.fixture
def following(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Following:
    monkeypatch.setattr(run, "SWITCH", sys.getswitchinterval())
    return Following(workspace, tmp_path / "logs")


class Erring:
    """Looks on, and raises at what is stored, at its own work and at the end."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.looked = 0

    async def __call__(self, saved: Sequence[Trajectory]) -> None:
        self.looked += 1
        await self.work()

    async def work(self) -> None:
        raise self.error


class Odd:
    """A client of a model that raises what no client should."""

    async def offer(self) -> Offer:
        return Offer()

    async def __call__(self, question: Question) -> Reply:
        raise ZeroDivisionError("no such answer")


@pytest.mark.long
async def test_whatever_a_judge_raises_is_said_once_and_the_events_are_stored(following: Following) -> None:
    erring = Erring(ZeroDivisionError("at what was stored"))
    seen: list[Trajectory] = []

    async def sees(saved: Sequence[Trajectory]) -> None:
        seen.extend(saved)

    following.follower.watchers += [erring, sees]
    following.follower.beside.append(Erring(ExceptionGroup("", [KeyError("beside")])).work)
    following.follower.endings.append(Erring(ValueError("at the end")).work)
    assert await following.stored() == len({trajectory.id for trajectory in seen}) == 2
    assert erring.looked == 1
    for what in ("at what was stored", "KeyError('beside')", "at the end"):
        assert sum(what in said for said in following.stopped) == 1


@pytest.mark.long
async def test_a_model_judge_that_errs_says_what_it_leaves(following: Following) -> None:
    follower = following.follower
    book = codebooks.load("initiative", Path("nowhere"))
    model = Model("openai/judge", "judge", Parameters(), concurrency=2)
    judge = ModelJudge(follower.sink, Scope((book,)), model, Odd(), following.said.append, 60.0)
    follower.watchers.append(judge)
    follower.beside.append(judge.run)
    follower.endings.append(judge.finish)
    assert await following.stored() == 2
    assert ["no such answer" in said for said in following.stopped] == [True]
    assert "units not judged yet" in following.said[-1]


@pytest.mark.parametrize("error", [WriteError("no space"), ExceptionGroup("", [WriteError("no space")])])
async def test_a_disk_that_takes_no_ratings_ends_the_following(
    following: Following, error: Exception
) -> None:
    following.follower.beside.append(Erring(error).work)
    with pytest.raises(WriteError, match="no space"):
        await following.stored()


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The benchmark's."""
    needs("redis-server", "the soak goes through a real Redis")
    monkeypatch.syspath_prepend(ROOT)
    # A process that is spawned runs the main module first, for which Streamlit leaves a page's script.
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    from benchmarks.live import soak

    return soak


@pytest.mark.slow
def test_ten_seconds_beside_a_judge_and_a_dashboard_lose_no_event_and_fail_no_read(
    tmp_path: Path, soak: Callable[..., Any]
) -> None:
    found = soak(10.0, 200.0, tmp_path / "workspace", large=1.0).document()
    assert found["large_messages"] > 1
    assert found["lost"] == 0
    assert found["failed_reads"] == 0
    assert found["reads"] > 5
    # How fast they are visible is for the benchmark on a quiet machine to say; a test must not depend on it.
    assert found["memory_end"] < 600


@pytest.mark.slow
def test_what_a_killed_redis_loses_is_lost_of_sessions_that_say_so(
    tmp_path: Path, soak: Callable[..., Any]
) -> None:
    found = soak(10.0, 200.0, tmp_path / "workspace", sessions=50, large=1.0, kills=1).document()
    assert found["refused"] > 0
    assert found["lost_of_sessions_without_a_mark"] == 0
    assert found["recovered"] + found["unsettled"] > 0
