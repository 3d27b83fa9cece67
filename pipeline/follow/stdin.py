"""coaudit's own JSON Lines on standard input: recorded under raw/, then tailed like any file that grows."""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from ..errors import WriteError
from ..store import Workspace
from ..store.disk import AppendOnly

STDIN = "-"


def place(workspace: Workspace) -> Path:
    """A new file for what comes on standard input."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    return workspace.raw / "stdin" / f"{moment}-{os.getpid()}.jsonl"


def open_file(path: Path) -> AppendOnly:
    """Make the file for appending. WriteError where the disk refuses."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"{path.parent}: cannot make it: {error.strerror}") from error
    return AppendOnly(path)


async def record(file: AppendOnly) -> None:
    """Append what standard input holds to a file, until it ends. WriteError where the disk refuses."""
    try:
        while data := await _read_some(sys.stdin.buffer):
            file.write(data)
        file.sync()
    finally:
        file.close()


async def _read_some(stream: BinaryIO) -> bytes:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        loop.remove_reader(stream.fileno())
        if ready.done():  # cancelled just now: what is there stays there
            return
        ready.set_result(os.read(stream.fileno(), 1 << 16))

    try:
        loop.add_reader(stream.fileno(), read)
    except (PermissionError, OSError):
        # A regular file is always ready, and epoll does not take it.
        return os.read(stream.fileno(), 1 << 16)
    try:
        return await ready
    finally:
        loop.remove_reader(stream.fileno())
