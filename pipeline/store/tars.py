"""Archives treated as data: reading one comes to an end, and what it writes stays in its folder, under any
Python."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

HAS_FILTER = hasattr(tarfile, "data_filter")
"""Python has filters from 3.11.4 on; Debian 12 has 3.11.2."""
LONGEST_HEADER = 1 << 20
"""Bytes of a member's header, its name included; Python takes all of it into memory."""


Mode = Literal["r:", "r:gz", "r:bz2", "r:xz"]
_COMPRESSED: dict[bytes, Mode] = {
    rb"\x1f\x8b\x08": "r:gz",
    rb"BZh[1-9]1AY&SY": "r:bz2",
    rb"\xfd7zXZ\0": "r:xz",
    rb"\]\0\0(?!\0\0)": "r:xz",  # LZMA, as before there was xz
}
"""How a compressed file begins, as a pattern -> how it is opened. A plain tar begins with the name of its
first member, which may be BZhang.json."""
_HEAD = 16
"""Bytes that tell so."""


@contextmanager
def open_archive(path: Path, mode: Literal["r:"] | None = None) -> Iterator[tarfile.TarFile]:
    """An archive to read, compressed or not; with `r:`, an uncompressed one. TarError for a header that is
    too long, here or at its member.

    Its first bytes tell the compression: Python tries each, and looks for xz in all zeros that a crash may
    have left of a file, which takes minutes for a gigabyte.
    """
    with path.open("rb") as file:
        how = mode or _compression(file.read(_HEAD))
        file.seek(0)
        with _Tar.open(fileobj=file, mode=how) as archive:
            yield archive


def _compression(head: bytes) -> Mode:
    return next((how for begin, how in _COMPRESSED.items() if re.match(begin, head)), "r:")


def members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members in their order. TarError for one that does not stand behind all before it."""
    last = -1
    for member in archive:
        # After a negative size the next header is this or an earlier one: Python would read on for ever.
        if member.offset <= last:
            raise tarfile.ReadError(f"{member.name!r} stands at byte {member.offset}, expected after {last}")
        last = member.offset
        yield member


def extract(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write a member into a folder, with none of its owner, time and rights.

    TarError for what is neither a file nor a folder, leads out of it or is larger than it says.
    """
    if not (member.isfile() or member.isdir()):
        raise tarfile.ExtractError(f"{member.name!r} is neither a file nor a folder")
    if leads_out(member.name):
        raise tarfile.ExtractError(f"{member.name!r} leads out of the archive")
    parts: Any = member.sparse or ()
    if any(not 0 <= offset <= offset + size <= member.size for offset, size in parts):
        raise tarfile.ExtractError(f"{member.name!r} has parts beyond its {member.size} bytes")
    if member.isdir():  # Python before 3.11.4 would make it for its owner alone
        (folder / member.name).mkdir(parents=True, exist_ok=True)
    elif HAS_FILTER:
        archive.extract(member, folder, set_attrs=False, filter="data")
    else:
        archive.extract(member, folder, set_attrs=False)


def leads_out(name: str) -> bool:
    """Whether a member's path leads out of the folder that it is written to."""
    path = Path(name)
    return path.is_absolute() or ".." in path.parts


@dataclass
class _BoundedFile:
    """A file that gives no more at once than a header may have; members are read by small blocks."""

    file: IO[bytes]

    def read(self, size: int) -> bytes:
        if not 0 <= size <= LONGEST_HEADER:
            raise tarfile.ReadError(f"a header of {size} bytes, expected at most {LONGEST_HEADER}")
        return self.file.read(size)

    def seek(self, offset: int) -> int:
        return self.file.seek(offset)

    def tell(self) -> int:
        return self.file.tell()

    def close(self) -> None:
        self.file.close()


class _Tar(tarfile.TarFile):
    def __init__(self, name: Any, mode: Any, fileobj: IO[bytes], **options: Any) -> None:
        file: Any = _BoundedFile(fileobj)
        super().__init__(name, mode, file, **options)
