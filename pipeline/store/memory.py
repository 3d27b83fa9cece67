"""How much memory DuckDB may take, and where what does not fit goes."""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, TypeVar

import duckdb

from . import disk
from .connection import constant, first_row, is_shared

READER = "500MB"
"""For all connections of a process that only looks, such as the dashboard."""
WRITER = "300MB"
"""While ledgers come in: what does not fit is written earlier, and takes no longer."""
MMAP_THRESHOLD = -3
"""Option of glibc's `mallopt`."""
LARGE = 128 * 1024
"""Bytes from which on a piece of memory is a mapping of its own: the value that glibc begins with."""
SPILL, LOCK = "coaudit-spill-", "lock"
"""Prefix of the name of a process's folder; the file in it that is locked as long as the process lives."""
OLD = 3600.0
"""Seconds after which a folder that has no lock is nobody's."""
Result = TypeVar("Result")


def run_within(memory: str, work: Callable[[str | None], Result]) -> Result:
    """Run `work` with so much memory or, where that is not enough, without a limit (None): DuckDB spills no
    long texts."""
    try:
        return work(memory)
    except duckdb.OutOfMemoryException:
        return work(None)


def limit_memory(connection: duckdb.DuckDBPyConnection, memory: str | None) -> None:
    """Limit DuckDB's memory (None: to its default); what does not fit spills outside the workspace.

    One thread: two that share little memory spill so much that they took three times as long. In a lake the
    threads stay: DuckDB waits for those at work to end, and they for it.
    """
    if not is_shared(connection):
        connection.execute("SET threads = 1")
    most = memory or f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') // 5 * 4 >> 20}MiB"
    connection.execute(f"SET memory_limit = '{most}'")  # RESET would show the old limit and keep this one
    setting = first_row(connection, "SELECT current_setting('temp_directory')")
    if setting != (spill_folder(),):  # DuckDB refuses to change one that has been used
        connection.execute(f"SET temp_directory = {constant(spill_folder())}")


def release_memory(connection: duckdb.DuckDBPyConnection) -> None:
    """Have DuckDB give back the memory of a finished query, which its allocator keeps for ten seconds:
    setting the limit to what it is does so."""
    limit = first_row(connection, "SELECT current_setting('memory_limit')")
    connection.execute(f"SET memory_limit = '{limit and limit[0]}'")


def spare_memory() -> None:
    """Have this process give large pieces of memory back at once: Arrow's own allocator keeps 20 MB of them,
    glibc's ever larger ones. Other C libraries have no such setting."""
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())
    if set_option := getattr(ctypes.CDLL(None), "mallopt", None):
        set_option(MMAP_THRESHOLD, LARGE)


def write_out(connection: duckdb.DuckDBPyConnection, copy: str, memory: str) -> None:
    """Run a `COPY` in little memory, if that is enough."""

    def run(most: str | None) -> None:
        limit_memory(connection, most)
        connection.execute(copy)
        release_memory(connection)

    run_within(memory, run)


def spill_folder() -> str:
    """This process's own folder for what does not fit in memory; nobody else can guess or read it.

    It is locked as long as the process lives, and those that a kill left behind are removed. Where a cleaner
    removed it, a new one is made.
    """
    if not Path(make_spill_folder(), LOCK).exists():
        make_spill_folder.cache_clear()
    return make_spill_folder()


@contextmanager
def spill_file() -> Iterator[IO[bytes]]:
    """A file in it without a name, which a kill removes, too. Where there is no more room the error names the
    folder for temporary files."""
    folder = spill_folder()
    with disk.named(Path(folder).parent), tempfile.TemporaryFile(dir=folder) as file:
        yield file


@cache
def make_spill_folder() -> str:
    """Make that folder; cached."""
    _remove_leftovers(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=SPILL))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    lock = os.open(folder / "locking", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    (folder / "locking").rename(folder / LOCK)  # nobody else sees it unlocked
    return str(folder)


def _remove_leftovers(parent: Path) -> None:
    """Remove the folders of processes that have ended: they may hold as much as the disk does."""
    for folder in parent.glob(f"{SPILL}*"):
        try:
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:  # another user's, or one that is just being made, or removed
            _remove_old(folder)
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Readers outlive a killed process by a second: in a renamed folder they write nothing more.
            shutil.rmtree(folder.rename(f"{folder}-left"), ignore_errors=True)
        except OSError:
            pass  # at work, or another one has just removed it
        finally:
            os.close(lock)


def _remove_old(folder: Path) -> None:
    """Remove an old folder of one's own without a lock, whose removal was interrupted."""
    with suppress(OSError):
        status = folder.lstat()
        if status.st_uid == os.getuid() and time.time() - status.st_mtime > OLD:
            shutil.rmtree(folder, ignore_errors=True)
