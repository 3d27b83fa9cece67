"""The soak of benchmarks/live.py in short: nothing is lost, no read fails, memory does not run away."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT, needs


@pytest.mark.slow
def test_ten_seconds_beside_a_judge_and_a_dashboard_lose_no_event_and_fail_no_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    # A process that is spawned runs the main module first, for which Streamlit leaves a page's script.
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    from benchmarks.live import soak

    needs("redis-server", "the soak goes through a real Redis")
    found = soak(10.0, 200.0, tmp_path / "workspace").document()
    assert found["lost"] == 0
    assert found["failed_reads"] == 0
    assert found["reads"] > 5
    # How fast they are visible is for the benchmark on a quiet machine to say; a test must not depend on it.
    assert found["memory_end"] < 600
