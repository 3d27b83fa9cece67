"""Logs that come as one archive: unpacked into a temporary folder, without links and `..`."""

from __future__ import annotations

import gzip
import itertools
import lzma
import os
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ...schemas import Quarantined
from ...schemas.text import is_utf8
from ..store.memory import spill_folder
from ..store.tars import extract, leads_out, members, open_archive
from ..systems.base import walk
from ..systems.registry import SYSTEMS

MAX_BYTES = 64 * 2**30
"""What an archive may hold, unpacked, wherever there is room for it."""
FREE_SHARE = 0.8
"""Share of the free disk space that an unpacked archive may take."""
_BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, zlib.error, lzma.LZMAError),
    *(ValueError, OverflowError, RecursionError),
)
"""The last three come from bad headers: a name with NUL, a size or time that is not a number or too large, a
thousand headers for one member."""
LONGEST_NAME = 255
"""Bytes of one part of a path, as file systems have it."""
DEEPEST = 100
"""At most so many folders may lie above a member: creating and removing them is recursive."""
COMPRESSED = (".gz", ".zst")
"""Suffixes of a single compressed file; with `.tar` before it, `.gz` is an archive's."""
SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", *COMPRESSED)
BLOCK = 1 << 16
"""Bytes read at a time from a compressed file: of a truncated one, up to so many are lost."""
FOLDERS_ABOVE = 5
"""Folders above an archive whose names are kept, for they tell what is in it."""


def is_archive(path: Path) -> bool:
    """Whether the name is an archive's, and can be written into a ledger."""
    return path.name.lower().endswith(SUFFIXES) and is_utf8(str(path)) and path.is_file()


def is_packed(path: Path) -> bool:
    """Whether it is a zip or an uncompressed tar: a log stored in it as it is makes it look like a log
    itself."""
    if not is_archive(path):
        return False
    with suppress(*_BROKEN), open_archive(path, "r:"):
        return True
    return zipfile.is_zipfile(path)


def archives_below(folder: Path) -> list[Path]:
    """The archives in a folder and those below it, in order; links are not followed."""
    below = itertools.islice(walk(folder), 1, None)
    return [path for path in below if is_archive(path) and not path.is_symlink()]


@contextmanager
def unpacked_folder(path: Path) -> Iterator[tuple[Path, list[Quarantined]]]:
    """A temporary folder with the archive's regular files, removed afterwards, and the members that were
    refused."""
    with tempfile.TemporaryDirectory(dir=spill_folder()) as folder:
        # The folder has the archive's name and lies in folders named like those of the archive, so that what
        # is named after them makes sense.
        above = os.path.abspath(path).split(os.sep)[1:-1][-FOLDERS_ABOVE:]
        target = Path(folder, *above, path.name)
        target.mkdir(parents=True)
        refused: list[Quarantined] = []
        try:
            unpack = _unpacker(path.name.lower())
            refused.extend(
                Quarantined(source=f"{path}!{name}", reason=why) for name, why in unpack(path, target)
            )
        except _BROKEN as error:
            refused.append(Quarantined(source=str(path), reason=f"broken archive: {error}"))
        yield target, refused


@dataclass
class _Room:
    """How many bytes may still be unpacked, and the names of the members that have been. A member is refused
    alone, the others go on."""

    left: int
    names: set[str] = field(default_factory=set)

    @classmethod
    def at(cls, folder: Path) -> _Room:
        """As much as MAX_BYTES and the free space of the disk allow."""
        return cls(min(MAX_BYTES, int(shutil.disk_usage(folder).free * FREE_SHARE)))

    def refusal(self, name: str, size: int, *, link: bool) -> str | None:
        """Why a member is not unpacked; None where it is."""
        if link:
            return "a link inside an archive is not followed"
        if leads_out(name.replace("\\", "/")):  # as Windows parts them
            return "its path leads out of the archive"
        if any(len(os.fsencode(part)) > LONGEST_NAME for part in Path(name).parts):
            return f"its name is longer than {LONGEST_NAME} bytes"
        if len(Path(name).parts) > DEEPEST + 1:
            return f"it lies in more than {DEEPEST} folders"
        plain = os.path.normpath(name)
        if plain in self.names:
            return "another member of this name came before; the first one counts"
        if size < 0:
            return f"its size is {size} bytes"
        if size > self.left:
            return (
                f"too large: {self.left} bytes may still be unpacked; unpack it yourself and give the folder"
            )
        self.left -= size
        self.names.add(plain)
        return None


def _unpacker(name: str) -> Callable[[Path, Path], Iterator[tuple[str, str]]]:
    if name.endswith(".zip"):
        return _unzip
    return _uncompress if name.endswith(COMPRESSED) and not name.endswith(".tar.gz") else _untar


def _uncompress(path: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Decompress a single file under its name without the suffix, as far as it can be read, and copy beside
    it the files that its system reads with it. Yields name and reason of what is refused."""
    room = _Room.at(target)
    file = target / path.stem
    above = os.path.abspath(path.parent)
    for other in companion_files(path):
        below = other.is_relative_to(above)
        place = Path(os.path.normpath((target if below else target.parent) / os.path.relpath(other, above)))
        place.parent.mkdir(exist_ok=True)
        shutil.copyfile(other, place)
    try:
        with file.open("wb") as plain:
            for block in _blocks(path):
                plain.write(block)
                if plain.tell() > room.left:
                    plain.truncate(0)
                    why = f"too large: more than {room.left} bytes; unpack it yourself and give the file"
                    yield path.name, why
                    break
    finally:
        if not file.stat().st_size:
            file.unlink()


def companion_files(path: Path) -> Iterator[Path]:
    """The files that a system reads beside a log of this name, where `path` is such a log compressed."""
    log, folder = path.stem, Path(os.path.abspath(path.parent))
    if path.suffix.lower() not in COMPRESSED:
        return
    for system in SYSTEMS.values():
        if log in system.link_names:
            for name in sorted(system.link_names - {log}):
                yield from filter(Path.is_file, (folder / name, *folder.glob(f"*/{name}")))
            yield from system.beside(folder / log)


def _blocks(path: Path) -> Iterator[bytes]:
    """The decompressed bytes of a file, as far as it can be read."""
    if path.suffix.lower() == ".gz":
        with gzip.open(path) as packed:
            yield from iter(lambda: packed.read1(BLOCK), b"")
    else:
        import pyarrow as pa

        with pa.input_stream(str(path), compression="zstd") as stream:
            yield from iter(lambda: stream.read1(BLOCK), b"")


def _unzip(path: Path, target: Path) -> Iterator[tuple[str, str]]:
    room = _Room.at(target)
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            link = (member.external_attr >> 16) & 0o170000 == 0o120000
            if member.is_dir():
                continue  # made with what lies in it
            if why := room.refusal(member.filename, member.file_size, link=link):
                yield member.filename, why
                continue
            try:
                archive.extract(member, target)
            except (*_BROKEN, RuntimeError, NotImplementedError) as error:
                with suppress(OSError):
                    (target / member.filename).unlink(missing_ok=True)
                yield member.filename, f"damaged: {error}"


def _untar(path: Path, target: Path) -> Iterator[tuple[str, str]]:
    room = _Room.at(target)
    with open_archive(path) as archive:
        for member in members(archive):
            if member.isdir():
                continue
            if why := room.refusal(member.name, member.size, link=member.issym() or member.islnk()):
                yield member.name, why
            elif not member.isfile():
                yield member.name, "neither a file nor a folder"
            else:
                try:
                    extract(archive, member, target)
                except _BROKEN as error:
                    with suppress(OSError, ValueError):
                        (target / member.name).unlink(missing_ok=True)
                    yield member.name, f"damaged: {error}"
