"""Logs that come as one archive: unpacked into a temporary folder, without links and `..`."""

from __future__ import annotations

import lzma
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...schemas import Quarantined

MAX_BYTES = 64 * 2**30
"""What an archive may hold, unpacked."""
_TOO_LARGE = f"the archive holds more than {MAX_BYTES // 2**30} GiB; unpack it yourself and give the folder"
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, zlib.error, lzma.LZMAError)
SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


def is_archive(path: Path) -> bool:
    """Whether the name is an archive's."""
    return path.is_file() and path.name.lower().endswith(SUFFIXES)


@contextmanager
def unpacked(path: Path) -> Iterator[tuple[Path, list[Quarantined]]]:
    """A folder with the archive's regular files, and the members that were refused; removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="coaudit-") as folder:
        # The folder bears the archive's name, so that what is named after it makes sense.
        target = Path(folder) / path.name
        target.mkdir()
        refused: list[Quarantined] = []
        try:
            unpack = _unzip if path.suffix.lower() == ".zip" else _untar
            refused.extend(
                Quarantined(source=f"{path}!{name}", reason=why) for name, why in unpack(path, target)
            )
        except _BROKEN as error:
            refused.append(Quarantined(source=str(path), reason=f"broken archive: {error}"))
        yield target, refused


def _unzip(path: Path, target: Path) -> Iterator[tuple[str, str]]:
    size = 0
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if (member.external_attr >> 16) & 0o170000 == 0o120000:
                yield member.filename, "a link inside an archive is not followed"
            elif _escapes(member.filename):
                yield member.filename, "its path leads out of the archive"
            elif (size := size + member.file_size) > MAX_BYTES:
                yield member.filename, _TOO_LARGE
                return
            else:
                try:
                    archive.extract(member, target)
                except (*_BROKEN, RuntimeError, NotImplementedError) as error:
                    (target / member.filename).unlink(missing_ok=True)
                    yield member.filename, f"damaged: {error}"


def _untar(path: Path, target: Path) -> Iterator[tuple[str, str]]:
    size = 0
    with tarfile.open(path) as archive:
        for member in archive:
            if member.issym() or member.islnk():
                yield member.name, "a link inside an archive is not followed"
            elif _escapes(member.name):
                yield member.name, "its path leads out of the archive"
            elif (size := size + member.size) > MAX_BYTES:
                yield member.name, _TOO_LARGE
                return
            elif member.isfile() or member.isdir():
                archive.extract(member, target, filter="data")
            else:
                yield member.name, "neither a file nor a folder"


def _escapes(name: str) -> bool:
    path = Path(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts
