"""Archives whose members are data: reading one ends, what it writes lies in its folder, under any Python."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

HAS_FILTER = hasattr(tarfile, "data_filter")
"""Python has filters from 3.11.4 on; Debian 12 has 3.11.2."""
LONGEST_HEADER = 1 << 20
"""Bytes of a member's name and of what else is said of it; Python takes all of them into memory."""


@contextmanager
def opened(path: Path, mode: Literal["r:", "r:*"] = "r:*") -> Iterator[tarfile.TarFile]:
    """An archive to read. TarError for a header that is too long, here or at its member."""
    with path.open("rb") as file, _Tar.open(fileobj=file, mode=mode) as archive:
        yield archive


def members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members in their order. TarError for one that does not stand behind all others."""
    last = -1
    for member in archive:
        # After a size below 0 the next header is this one or one before, and Python reads round and round.
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
    if member.isdir():  # by Python it is its maker's alone before 3.11.4
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
class _Bounded:
    """A file of which nobody takes more at once than a header may have; members are read by small blocks."""

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
        file: Any = _Bounded(fileobj)
        super().__init__(name, mode, file, **options)
