"""The guard: what it holds ends with its caller, whatever ends that, and nothing below escapes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from coaudit.judges.clients import guard
from tests.judges.clients.processes import runs, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked up in /proc"),
]
ESCAPING = """
import os, subprocess, sys, time
inner = "import os, time; print('escaped', os.getpid(), flush=True); time.sleep(600)"
middle = "import subprocess, sys; "
middle += f"subprocess.Popen([sys.executable, '-c', {inner!r}], start_new_session=True)"
subprocess.run([sys.executable, "-c", middle])
print("command", os.getpid(), flush=True)
time.sleep(600)
"""
"""A command with a grandchild in a session of its own, whose parent is gone."""
CALLER = """
import sys, time
from pathlib import Path
from coaudit.judges.clients import guard
process = guard.hold([sys.executable, "-c", sys.argv[1]], Path(sys.argv[2]), {})
time.sleep(600)
"""


def pids(log: Path) -> dict[str, int]:
    """What the command wrote: who runs."""
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    return {line.split()[0]: int(line.split()[1]) for line in text.splitlines()}


def test_kill_9_of_the_caller_ends_the_command_and_a_grandchild_that_left_its_session(tmp_path: Path) -> None:
    log = tmp_path / "log"
    caller = subprocess.Popen([sys.executable, "-P", "-c", CALLER, ESCAPING, str(log)])
    try:
        assert wait_until(lambda: len(pids(log)) == 2, 30)
        there = pids(log)
        assert all(map(runs, there.values()))
    finally:
        caller.send_signal(signal.SIGKILL)
        caller.wait()
    assert wait_until(lambda: not any(map(runs, there.values())), 30), there


def test_what_is_released_is_gone_when_release_returns(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = guard.hold([sys.executable, "-c", ESCAPING], log, {})
    assert wait_until(lambda: len(pids(log)) == 2, 30)
    guard.release(process)
    assert not any(map(runs, pids(log).values()))


def test_a_command_that_ignores_being_told_is_ended_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + ESCAPING
    log = tmp_path / "log"
    process = guard.hold([sys.executable, "-c", stubborn], log, {})
    assert wait_until(lambda: len(pids(log)) == 2, 30)
    monkeypatch.setattr(guard, "ENDING_SECONDS", 60.0)
    guard.release(process)
    assert not any(map(runs, pids(log).values()))


def test_a_folder_of_the_command_is_deleted_after_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "spilled").write_text("a prompt", encoding="utf-8")
    process = guard.hold([sys.executable, "-c", ESCAPING], tmp_path / "log", {}, folder)
    assert wait_until(lambda: len(pids(tmp_path / "log")) == 2, 30) and folder.exists()
    guard.release(process)
    assert not folder.exists()


def test_a_command_that_ends_by_itself_ends_the_guard_with_its_status(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = guard.hold([sys.executable, "-c", "print('no such model'); raise SystemExit(3)"], log, {})
    assert process.wait(30) == 3
    assert guard.tail(log) == "no such model"
    guard.release(process)


def test_a_secret_stands_in_the_environment_of_the_command_alone(tmp_path: Path) -> None:
    show = "import os, sys; print(os.environ['SECRET'] == 'x', len(sys.argv))"
    process = guard.hold([sys.executable, "-c", show], tmp_path / "log", {"SECRET": "x"})
    assert process.wait(30) == 0
    assert guard.tail(tmp_path / "log") == "True 1"
    guard.release(process)
