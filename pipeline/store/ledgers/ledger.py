"""Append-only ledgers: JSON Lines that are on disk before anything counts as done.

A ledger is a folder of files. Every writer has one of its own, so that no machine waits for another and a
line cut off by a kill never runs into another's; their names are in the order in which they count.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import threading
import time
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from pydantic import ValidationError

from ....schemas import Quarantined, Rating
from ....schemas.text import rule_of
from ....schemas.trajectory import GivenOutcome
from .. import disk
from ..disk import AppendOnly

LIVE = ".live.jsonl"
"""Suffix of a ledger whose writer loads it into the store itself."""
_ENDS = ".jsonl"
PART = ".part"
"""Suffix of a file that only its writer reads so far."""
DISK_PAUSE, REMOTE_PAUSE = 0.3, 5.0
PAUSE_SHARE = 0.01
"""The share of a run's time that may pass before other machines see its results: it leaves some hundreds of
objects at most, and a kill costs no more than that share."""
Publish = Callable[[Path], Path]
"""Makes a part readable by every machine of a study; returns its final path."""
SOON = 5.0
"""Seconds that readers leave a live ledger to its writer; then that is taken to be gone, and a reader loads
it."""


def now() -> str:
    """This moment in UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def append(path: Path, lines: Iterable[str]) -> tuple[int, int]:
    """Append whole lines to a ledger that several processes write; returns the offsets at which they
    begin and end, once on disk."""
    file = AppendOnly(path)
    try:
        with file.lock():
            begin = path.stat().st_size
            file.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
            file.sync()
            return begin, path.stat().st_size
    finally:
        file.close()


def line(rating: Rating) -> bytes:
    """A rating as its ledger has it."""
    return rating.model_dump_json(exclude_defaults=True).encode("utf-8", "replace")


class Ledger:
    """The lines of one kind: `NAME/*.jsonl`, behind the `NAME.jsonl` that all writers once shared."""

    def __init__(
        self, folder: Path, publish: Publish | None = None, begin: Callable[[], None] = lambda: None
    ) -> None:
        self.folder = folder
        self._publish = publish
        self._begin = begin
        self._own: Path | None = None

    def exists(self) -> bool:
        """Whether there is a file of it."""
        return bool(self._shared_files() or _names(self.folder))

    def files(self) -> list[Path]:
        """Its files in the order in which they count."""
        return [*self._shared_files(), *files(self.folder)]

    def append(self, lines: Iterable[str]) -> tuple[Path, int, int]:
        """Append whole lines to this process's own file; returns it with the offsets at which they begin and
        end."""
        self._begin()
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._publish:
            return self._append_published(self._publish, lines)
        self._own = self._own or self.folder / f"{new_name(self.folder)}.jsonl"
        return self._own, *append(self._own, lines)

    def _append_published(self, publish: Publish, lines: Iterable[str]) -> tuple[Path, int, int]:
        """Append to a part of this process's own, and publish it."""
        part = self.folder / f"{new_name(self.folder)}.jsonl{PART}"
        file = AppendOnly(part, alone=True)
        try:
            file.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
            file.sync()
            end = part.stat().st_size
            return publish(part), 0, end
        finally:
            file.close()

    def lines(self, offsets: Mapping[str, int] | None = None) -> Iterator[tuple[Path, int, bytes]]:
        """File, line number and line of all that lies behind each file's byte offset (by name, else 0)."""
        for path in self.files():
            for number, line in lines(path, (offsets or {}).get(path.name, 0)):
                yield path, number, line

    def has_grown(self, offsets: Mapping[str, int]) -> bool:
        """Whether a file holds a whole line behind its byte offset."""
        paths = [*self._shared_files(), *changed_files(self.folder, offsets)]
        return any(has_grown(path, offsets.get(path.name, 0)) for path in paths)

    def ends(self, offsets: Mapping[str, int]) -> dict[str, int]:
        """Name -> offset behind the last whole line, of each file that may have grown."""
        paths = [*self._shared_files(), *changed_files(self.folder, offsets)]
        return {path.name: end(path, offsets.get(path.name, 0)) for path in paths}

    def sizes(self) -> dict[str, int]:
        """Name -> bytes of its files, in the order in which they count."""
        return {**{path.name: path.stat().st_size for path in self._shared_files()}, **sizes(self.folder)}

    def _shared_files(self) -> list[Path]:
        path = self.folder.with_suffix(".jsonl")
        return [path] if path.exists() else []


class RatingLedger:
    """This process's own file among the workspace's ratings; a `live` one is loaded into the store by its
    writer."""

    def __init__(self, folder: Path, *, live: bool = False, publish: Publish | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._name, self._end = folder / new_name(folder), LIVE if live else ".jsonl"
        self._publish = publish
        self._turn = threading.Lock()
        self._segment = 0
        self._began = time.monotonic()
        self._begin()

    def _begin(self) -> None:
        """Start a new file; where files are published, each publication ends one."""
        if self._publish:
            self._segment += 1
            self.path = Path(f"{self._name}.{self._segment:06d}{self._end}{PART}")
        else:
            self.path = Path(f"{self._name}{self._end}")
        self._file = AppendOnly(self.path, alone=self._publish is not None)

    def __enter__(self) -> RatingLedger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pause(self) -> float:
        """Seconds to wait between two calls of `flush`."""
        if not self._publish:
            return DISK_PAUSE
        return max(REMOTE_PAUSE, PAUSE_SHARE * (time.monotonic() - self._began))

    def owns(self, path: Path) -> bool:
        """Whether a file is one of its own."""
        return path.name.startswith(self._name.name)

    def append(self, ratings: Iterable[Rating]) -> None:
        """Write ratings and return once they are on disk."""
        self.write(ratings)
        self.flush()

    def write(self, ratings: Iterable[Rating]) -> None:
        """Hand ratings to the system: a kill of this process loses none. They count after `flush` only."""
        self.write_lines(map(line, ratings))

    def write_lines(self, lines: Iterable[bytes]) -> None:
        """The same for ratings that are already lines of a ledger."""
        self.write_text(b"".join(part for line in lines for part in (line, b"\n")))

    def write_text(self, text: bytes | memoryview) -> None:
        """The same for lines with their ends."""
        with self._turn:
            self._file.write(text)

    def flush(self) -> None:
        """Return once everything written is on disk and, in a shared study, can be read by every machine."""
        if not self._publish:
            self._file.sync()
            return
        with self._turn:
            part, file = self.path, self._file
            file.sync()
            if not part.stat().st_size:
                return
            self._begin()
        try:
            self._publish(part)
        finally:
            file.close()

    def close(self) -> None:
        """Close the file; one that never got a rating is removed."""
        if self._publish:
            self.flush()
        self._file.close()
        if self.path.exists() and not self.path.stat().st_size:
            self.path.unlink()


def ratings(path: Path, offset: int = 0) -> Iterator[tuple[Rating | Quarantined, int]]:
    """Ratings of one ledger file from a byte offset on, each with the offset behind it."""
    return ((rating(line, path), behind) for _, line, behind in whole_lines(path, offset))


def whole_lines(path: Path, offset: int = 0) -> Iterator[tuple[int, bytes, int]]:
    """Lines that say something from a byte offset on: each numbered from 1 there, empty ones included, and
    with the offset behind it.

    A last line without its end was cut off by a kill: it never counted, and reading stops before it.
    """
    with path.open("rb") as file:
        file.seek(offset)
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            start, offset = offset, offset + len(line)
            if line.strip():
                yield number, line if start else line.removeprefix(BOM_UTF8), offset


def rating(line: bytes, path: Path) -> Rating | Quarantined:
    """The rating in a line of a file."""
    try:
        return Rating.model_validate_json(line)
    except ValidationError as error:
        return _quarantine(error, path)


def outcomes(ledger: Ledger) -> Iterator[tuple[Path, int, GivenOutcome | Quarantined]]:
    """The imported outcomes of a ledger with file and line, and what could not be read of it."""
    for path, number, line in ledger.lines():
        try:
            yield path, number, GivenOutcome.model_validate_json(line)
        except ValidationError as error:
            yield path, number, _quarantine(error, path)


def lines(path: Path, offset: int = 0) -> Iterator[tuple[int, bytes]]:
    """The lines of a ledger behind a byte offset, numbered from 1 at the file's begin.

    A last one without its end was cut off by a kill and never counted.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        first = 1 + sum(1 for _ in iter(file.readline, b"") if file.tell() <= offset) if offset else 1
        file.seek(offset)
        for number, line in enumerate(file, start=first):
            if line.endswith(b"\n") and line.strip():
                yield number, line if number > 1 else line.removeprefix(BOM_UTF8)


def has_grown(path: Path, offset: int) -> bool:
    """Whether a ledger holds a whole line that says something from a byte offset on."""
    if path.stat().st_size <= offset:
        return False
    with path.open("rb") as file:
        file.seek(offset)
        return any(line.endswith(b"\n") and line.strip() for line in file)


def end(path: Path, offset: int) -> int:
    """Bytes of a ledger up to the end of the last whole line from a byte offset on.

    Another process may be in the midst of writing the next one.
    """
    with path.open("rb") as file:
        file.seek(offset)
        return offset + sum(len(line) for line in file if line.endswith(b"\n"))


def is_unattended(path: Path) -> bool:
    """Whether readers have to load a ledger: all but live ones that were written within SOON seconds.

    A time in the future is another clock's, and no reason to wait.
    """
    return not path.name.endswith(LIVE) or abs(time.time() - path.stat().st_mtime) > SOON


def files(folder: Path) -> list[Path]:
    """The ledger files of a folder, oldest first."""
    return [folder / name for name in sorted(_names(folder))]


def sizes(folder: Path) -> dict[str, int]:
    """Name -> bytes of the ledger files of a folder, oldest first."""
    by_name = disk.sizes(folder)
    return {name: by_name[name] for name in sorted(by_name) if name.endswith(_ENDS)}


def changed_files(folder: Path, offsets: Mapping[str, int]) -> list[Path]:
    """The ledger files of a folder that don't end at the byte offset of their name (else 0), oldest first."""
    return [folder / name for name, size in sizes(folder).items() if size != offsets.get(name, 0)]


def _names(folder: Path) -> list[str]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.name.endswith(_ENDS) and entry.is_file()]
    return []


def new_name(folder: Path) -> str:
    """A new file's name: moment, machine, process and a random part.

    The moment is now, but behind that of every file there is, whatever clocks say: the order of names is the
    order in which lines count.
    """
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    last = max(_names(folder), default="").split("-")[0]
    if now <= last:
        match = re.fullmatch(r"(.*~)(\d{6})", last)
        now = f"{match[1]}{int(match[2]) + 1:06d}" if match else f"{last}~000001"
    machine = re.sub(r"[^A-Za-z0-9_]+", "_", socket.gethostname())[:20]
    return f"{now}-{machine}-{os.getpid()}-{secrets.token_hex(4)}"


def _quarantine(error: ValidationError, path: Path) -> Quarantined:
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"])) or "line"
    return Quarantined(source=str(path), reason=f"{place}: {rule_of(first)}")
