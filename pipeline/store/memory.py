"""How much memory DuckDB may take, and where what does not fit goes."""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

import duckdb

from .connection import constant, first_row, is_shared

READER = "500MB"
"""For all connections of a process that only looks, such as the dashboard."""
WRITER = "300MB"
"""While ledgers come in: what does not fit is written earlier, and takes no longer."""
MMAP_THRESHOLD = -3
"""Option of glibc's `mallopt`."""
LARGE = 128 * 1024
"""Bytes of a piece of memory from which on it is a mapping of its own: where glibc starts by itself."""
SPILL, LOCK = "coaudit-spill-", "lock"
"""Begins the name of a process's folder; the file in it that is locked as long as the process lives."""
OLD = 3600.0
"""Seconds after which a folder that has no lock is nobody's."""
Result = TypeVar("Result")


def within(memory: str, work: Callable[[str | None], Result]) -> Result:
    """Work in so much memory, or once more in as much as it takes (None): DuckDB spills no long texts."""
    try:
        return work(memory)
    except duckdb.OutOfMemoryException:
        return work(None)


def bounded(connection: duckdb.DuckDBPyConnection, memory: str | None) -> None:
    """Have DuckDB take no more memory than that (None: than it does by itself); what does not fit spills
    outside the workspace.

    One thread: two that share little memory spill so much that they took three times as long. In a lake it
    stays at its threads: DuckDB waits for those at work to end, and they for it.
    """
    if not is_shared(connection):
        connection.execute("SET threads = 1")
    most = memory or f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') // 5 * 4 >> 20}MiB"
    connection.execute(f"SET memory_limit = '{most}'")  # RESET shows the limit of old and keeps this one
    setting = first_row(connection, "SELECT current_setting('temp_directory')")
    if setting != (spill(),):  # one that has been used stays
        connection.execute(f"SET temp_directory = {constant(spill())}")


def release(connection: duckdb.DuckDBPyConnection) -> None:
    """Have DuckDB give back the memory that a query is done with, which its allocator keeps for ten seconds:
    setting the limit that there is does so."""
    limit = first_row(connection, "SELECT current_setting('memory_limit')")
    connection.execute(f"SET memory_limit = '{limit and limit[0]}'")


def spare_memory() -> None:
    """Have this process give large pieces of memory back at once: Arrow's own allocator keeps 20 MB of them,
    glibc's ever larger ones. Another C library knows no such setting."""
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())
    if set_option := getattr(ctypes.CDLL(None), "mallopt", None):
        set_option(MMAP_THRESHOLD, LARGE)


def write_out(connection: duckdb.DuckDBPyConnection, copy: str, memory: str) -> None:
    """Run a `COPY` in little memory, if that is enough."""

    def run(most: str | None) -> None:
        bounded(connection, most)
        connection.execute(copy)
        release(connection)

    within(memory, run)


def spill() -> str:
    """This process's own folder for what does not fit in memory; nobody can guess or read it.

    It is locked as long as the process lives, and those that a kill left behind are removed. Where a cleaner
    took it away, there is another one.
    """
    if not Path(own_spill(), LOCK).exists():
        own_spill.cache_clear()
    return own_spill()


@cache
def own_spill() -> str:
    """The same, made once."""
    _remove_left(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=SPILL))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    lock = os.open(folder / "locking", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    (folder / "locking").rename(folder / LOCK)  # nobody else sees it unlocked
    return str(folder)


def _remove_left(parent: Path) -> None:
    """Remove the folders of processes that have ended: they may hold as much as the disk does."""
    for folder in parent.glob(f"{SPILL}*"):
        try:
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:  # another user's, or one that is just being made, or removed
            _remove_old(folder)
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Readers outlive a killed process by a second: under another name they write nothing more there.
            shutil.rmtree(folder.rename(f"{folder}-left"), ignore_errors=True)
        except OSError:
            pass  # at work, or another one has just removed it
        finally:
            os.close(lock)


def _remove_old(folder: Path) -> None:
    """Remove a folder of one's own without a lock, which whoever removes such was kept from finishing."""
    with suppress(OSError):
        status = folder.lstat()
        if status.st_uid == os.getuid() and time.time() - status.st_mtime > OLD:
            shutil.rmtree(folder, ignore_errors=True)
