"""The soak of benchmarks/live.py in short: nothing is lost, no read fails, memory does not run away."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import ROOT, needs


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
