"""The soak of benchmarks/live.py in short: nothing is lost, no read fails, memory does not run away."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT, needs


def benchmark() -> ModuleType:
    """benchmarks/live.py, which is no package."""
    spec = importlib.util.spec_from_file_location("live_benchmark", ROOT / "benchmarks" / "live.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_ten_seconds_beside_a_judge_and_a_dashboard_lose_no_event_and_fail_no_read(tmp_path: Path) -> None:
    needs("redis-server", "the soak goes through a real Redis")
    found = benchmark().soak(10.0, 200.0, tmp_path / "workspace").document()
    assert found["lost"] == 0
    assert found["failed_reads"] == 0
    assert found["reads"] > 5
    # How fast they are visible is for the benchmark on a quiet machine to say; a test must not depend on it.
    assert found["memory_end"] < 600
