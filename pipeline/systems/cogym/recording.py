"""Recordings: what was received, as received, on disk before anything is made of it.

A stream (one Redis server and database) has a folder of recordings, numbered in the order in which
they were made: raw/live/<server>/<number>-<date>-<pid>.jsonl. A line is a message (time, channel,
payload) or a note of the follower's own (time, note). One process at a time records a stream.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from ....schemas import Quarantined
from ...errors import StoreError, WriteError
from ..base import CUT_OFF, checked_length, json_lines, parse_json
from .messages import RawMessage

FILES = "[0-9][0-9][0-9][0-9][0-9][0-9]-*.jsonl"


LATEST = 2**33
"""Seconds since 1970; a later time is not valid."""


class BusyError(StoreError):
    """Another process records this stream."""


HELD = 1 << 20
"""Bytes; lines are gathered until there are more, or until `flush`, then written at once."""
LONGEST = 256 << 20
"""Bytes of one recording; what follows goes into the next one of its stream."""


@dataclass(frozen=True, slots=True)
class Note:
    """What the follower itself wrote between the messages."""

    content: dict[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a line stands: the recording's number in its stream and the line's (1-based)."""

    number: int
    line: int


Line = RawMessage | Note | Quarantined


class AppendFile(Protocol):
    """A file that grows by whole lines; WriteError where the disk refuses."""

    def write(self, lines: bytes) -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...


class Recorder:
    """Appends to a stream; what was written has left the process after `flush`, and is on disk after `sync`.

    Small writes are gathered into one: a thread that writes lets the others run, and has to wait for its turn
    afterwards.
    """

    def __init__(self, folder: Path, open_file: Callable[[Path], AppendFile]) -> None:
        self.folder = folder
        self._open_file = open_file
        self._lock = _lock_folder(folder)
        self.number = max((number(path) for path in files(folder)), default=0)
        self.problem: Quarantined | None = None
        """What a replay will find wrong with the last line."""
        self._file: AppendFile | None = None
        self._dirty = False
        self._waiting: list[bytes] = []
        self._start_file()

    def write(self, message: RawMessage) -> Place:
        """Append a message and return its place."""
        return self._append({"time": message.time, "channel": message.channel, "payload": message.payload})

    def note(self, **content: Any) -> Place:
        """Append a note."""
        return self._append({"time": time.time(), "note": content})

    def flush(self) -> None:
        """Have everything out of this process. WriteError names the file that the disk refuses."""
        if not self._waiting:
            return
        data, self._waiting, self._held = b"".join(self._waiting), [], 0
        if self._file is None:
            self._file = self._open_file(self.path)
        self._file.write(data)
        self._dirty = True

    def sync(self) -> None:
        """Have everything on disk."""
        self.flush()
        if self._file is not None and self._dirty:
            self._file.sync()
            self._dirty = False

    def close(self) -> None:
        """Have everything on disk, and let another process record this stream."""
        self.sync()
        if self._file is not None:
            self._file.close()
            self._file = None
        os.close(self._lock)

    def _start_file(self) -> None:
        """Go on in a new file, which is made with its first line."""
        self.sync()
        if self._file is not None:
            self._file.close()
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        self.number += 1
        self.path = self.folder / f"{self.number:06d}-{moment}-{os.getpid()}.jsonl"
        self.line, self._bytes, self._held, self._file = 0, 0, 0, None

    def _append(self, content: dict[str, Any]) -> Place:
        data = json.dumps(content).encode() + b"\n"
        if self._bytes + len(data) > LONGEST and self.line:
            self._start_file()
        self._bytes += len(data)
        self._waiting.append(data)
        self._held += len(data)
        if self._held > HELD:
            self.flush()
        self.line += 1
        self.problem = checked_length(data, str(self.path), self.line)
        return Place(self.number, self.line)


def files(folder: Path) -> list[Path]:
    """The recordings of a stream in the order in which they were made."""
    return sorted(folder.glob(FILES))


def is_recording(path: Path) -> bool:
    """Whether a file is a recording, or a folder a stream of them."""
    if path.is_dir():
        return any(is_recording(file) for file in files(path)[:1])
    if path.suffix != ".jsonl" or not path.is_file():
        return False
    with path.open("rb") as file:
        first = file.readline(1 << 20)
    if b'"channel"' not in first and b'"note"' not in first:
        return False
    try:
        value = json.loads(first)
    except ValueError:
        return False
    return isinstance(value, dict) and set(value) in ({"time", "channel", "payload"}, {"time", "note"})


def lines(
    path: Path, since: Place | None = None
) -> Iterator[tuple[Path, int, RawMessage | Note | Quarantined]]:
    """The lines of a recording or stream, from a place on; a last line that a kill cut off never counted."""
    for file in files(path) if path.is_dir() else [path]:
        place = number(file) if path.is_dir() else 0
        if since and place < since.number:
            continue
        for line, value in json_lines(file):
            if since and (place, line) < (since.number, since.line):
                continue
            result = _line(file, line, value)
            if result is not None:
                yield file, line, result


def last_checkpoint(folder: Path) -> Place | None:
    """From where on a stream has to be replayed to know what was open when it broke off; None: from its
    beginning."""
    for file in reversed(files(folder)):
        for _, note in reversed([*notes(file)]):
            match note.get("checkpoint"):
                case [int(place), int(line)]:
                    return Place(place, line)
    return None


def notes(path: Path) -> Iterator[tuple[float, dict[str, Any]]]:
    """The notes of a recording or stream with their times, without looking into its messages; `lines` names
    those that cannot be read."""
    for file in files(path) if path.is_dir() else [path]:
        with file.open("rb") as content:
            for line in content:
                if b'"note": {' in line and line.endswith(b"\n"):
                    value = parse_json(line, str(file), None)
                    if isinstance(value, dict) and isinstance(note := _line(file, 0, value), Note):
                        yield float(value["time"]), note.content  # type: ignore[arg-type]


def _line(file: Path, line: int, value: object) -> RawMessage | Note | Quarantined | None:
    if isinstance(value, Quarantined):
        return None if value.reason.endswith(CUT_OFF) else value
    if isinstance(value, dict) and isinstance(value.get("time"), (int, float)):
        if not 0 <= value["time"] < LATEST:
            reason = "its time is not in seconds since 1970"
            return Quarantined(source=str(file), line=line, reason=reason)
        if isinstance(value.get("note"), dict):
            return Note(value["note"])
        channel, payload = value.get("channel"), value.get("payload")
        if isinstance(channel, str) and isinstance(payload, str):
            return RawMessage(float(value["time"]), channel, payload)
    return Quarantined(
        source=str(file), line=line, reason="neither a message (time, channel, payload) nor a note"
    )


def _lock_folder(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise WriteError(f"{folder}: cannot record here: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise BusyError(f"{folder}: another process records this stream") from error
    return descriptor


def number(path: Path) -> int:
    """A recording's place in its stream."""
    return int(path.name.partition("-")[0])
