"""What does not fit in memory: a folder of each process, gone with it, however it ends."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from coaudit.pipeline.store import memory

PROGRAM = """
import sys
from pathlib import Path
from coaudit.pipeline.store.memory import spill_folder
folder = Path(spill_folder())
(folder / "spilled").write_text("what did not fit")
print(folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of this process and those that it starts."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def process() -> tuple[subprocess.Popen[str], Path]:
    """One that spills, and waits for its end."""
    command = [sys.executable, "-P", "-c", PROGRAM]
    started = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert started.stdout is not None
    return started, Path(started.stdout.readline().strip())


@pytest.mark.slow
def test_what_a_killed_process_spilled_goes_with_the_next_and_a_living_one_keeps_its_own(
    temporary: Path,
) -> None:
    (killed, left), (alive, kept) = process(), process()
    assert left.parent == kept.parent == temporary
    killed.kill()
    killed.communicate(timeout=20)
    assert killed.returncode == -signal.SIGKILL
    assert (left / "spilled").exists()
    own = Path(memory.make_spill_folder.__wrapped__())
    assert not left.exists()
    assert (kept / "spilled").exists() and own.exists()
    alive.communicate("", timeout=20)
    assert not kept.exists()


def test_a_folder_that_is_only_named_so_is_left(temporary: Path) -> None:
    bare, linked = temporary / f"{memory.SPILL}bare", temporary / f"{memory.SPILL}linked"
    bare.mkdir()
    (bare / "kept").write_text("mine")
    linked.mkdir()
    (linked / memory.LOCK).symlink_to(bare / "kept")
    memory.make_spill_folder.__wrapped__()
    assert (bare / "kept").exists() and linked.exists()


def test_a_folder_that_was_not_removed_to_its_end_goes_when_it_is_old(temporary: Path) -> None:
    young, old = temporary / f"{memory.SPILL}young", temporary / f"{memory.SPILL}old"
    for folder in (young, old):
        folder.mkdir()
        (folder / "table").write_text("what a reader wrote behind the one who removed")
    os.utime(old, (0, 0))
    memory.make_spill_folder.__wrapped__()
    assert young.exists() and not old.exists()


def test_who_still_writes_into_a_folder_that_is_being_removed_is_refused(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a reader does in the second in which it does not know yet that who started it was killed."""
    folder = temporary / f"{memory.SPILL}left"
    folder.mkdir()
    (folder / memory.LOCK).touch()
    remove = shutil.rmtree

    def removed(path: Path, ignore_errors: bool = False) -> None:
        with pytest.raises(FileNotFoundError):
            (folder / "table").write_text("late")
        remove(path, ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", removed)
    own = memory.make_spill_folder.__wrapped__()
    monkeypatch.undo()
    assert list(temporary.iterdir()) == [Path(own)]


def test_two_processes_may_remove_one_folder(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one had its lock first, and is done."""
    folder = temporary / f"{memory.SPILL}left"
    folder.mkdir()
    (folder / memory.LOCK).touch()
    lock = fcntl.flock

    def late(file: int, how: int) -> None:
        lock(file, how)
        if folder.exists():
            shutil.rmtree(folder)

    monkeypatch.setattr(fcntl, "flock", late)
    own = memory.make_spill_folder.__wrapped__()
    assert list(temporary.iterdir()) == [Path(own)]


def test_a_folder_that_a_cleaner_took_away_is_made_again(temporary: Path) -> None:
    memory.make_spill_folder.cache_clear()
    first = Path(memory.spill_folder())
    assert memory.spill_folder() == str(first)
    shutil.rmtree(first)
    again = Path(memory.spill_folder())
    assert again.is_dir() and again.parent == temporary
    memory.make_spill_folder.cache_clear()


def test_a_full_folder_for_temporary_files_is_named(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "spill_folder", memory.make_spill_folder.__wrapped__)
    with pytest.raises(OSError, match=f"No space left on device: '{temporary}'"), memory.spill_file():
        raise OSError(errno.ENOSPC, "No space left on device")
