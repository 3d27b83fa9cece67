"""The one way to the disk for what must never be lost: appended whole, synced, renamed into place.

`fault` is the seam through which tests break each of these steps.
"""

from __future__ import annotations

import errno
import fcntl
import os
import pwd
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from ..errors import StoreError, WriteError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TAIL = 4096
"""Bytes at a file's end by which it is told from another."""


def fault(point: str, path: Path) -> None:
    """Called before each `write`, `sync`, `rename` and `commit`; does nothing."""


def mode_in(folder: Path) -> int:
    """The mode of a new file in a folder, of which the process's umask still takes bits: logs are
    confidential, so it is its owner's alone, unless the folder is there for a group to write to, and that
    group is the file's. In a folder that all may write to, as for temporary files, nobody was chosen."""
    status = folder.stat()
    is_group_writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) == stat.S_IWGRP
    return 0o660 if is_group_writable and _gives_its_group(status) else 0o600


def _gives_its_group(folder: os.stat_result) -> bool:
    """Whether a new file in a folder is of the folder's group: in Linux it is of its writer's by default."""
    is_inherited = folder.st_mode & stat.S_ISGID or not sys.platform.startswith("linux")
    return bool(is_inherited) or folder.st_gid == os.getegid()


class AppendOnly:
    """A file that only grows, by whole lines. WriteError names the file that the disk refuses.

    With `alone` it is locked as long as its writer lives.
    """

    def __init__(self, path: Path, *, alone: bool = False) -> None:
        self.path = path
        fresh = not path.exists()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        try:
            self._file = os.open(path, flags, mode_in(path.parent))
        except OSError as error:
            raise write_error(path, error) from error
        if alone:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        if fresh:
            _sync_folder(path.parent)
        self._cut = not self._ends_whole()
        self._end = 0
        """Bytes of the file after the last write: it never has less again."""

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes out while lines are appended, where several write one file."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            self._cut = not self._ends_whole()
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def write(self, lines: bytes | memoryview) -> None:
        """Append whole lines: all of them, or none. They survive a kill of this process, not of the machine.
        StoreError as `sync`, where the file was cut since.

        A line that a kill or a full disk cut off is ended first, so that the next one does not fuse with it.
        """
        end = os.fstat(self._file).st_size
        if end < self._end:
            raise self._loss()
        rest = memoryview(b"\n" + lines if self._cut else lines)
        try:
            while rest:
                fault("write", self.path)
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            self._take_back(end)
            raise write_error(self.path, error) from error
        self._cut = False
        self._end = os.fstat(self._file).st_size

    def sync(self) -> None:
        """Return once all that was written is on disk, and is read under this file's name.

        StoreError where it is not: what goes into a file that was deleted, or replaced by another, is lost,
        nobody finds what goes into one that was moved, and an editor that saves what it had read cuts off
        what came since.
        """
        try:
            fault("sync", self.path)
            os.fsync(self._file)
        except OSError as error:
            raise write_error(self.path, error) from error
        if not self._is_read():
            raise self._loss()

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _loss(self) -> StoreError:
        return StoreError(
            f"{self.path}: moved, replaced, cut or deleted while it was written, and with it what it held"
        )

    def _is_read(self) -> bool:
        """Whether who opens the file by its name reads what was written.

        Words are compared, not the files' numbers: some network disks number a file anew. Another thread may
        write meanwhile: the file must have what had been written before its size was asked for.
        """
        least, end = self._end, os.fstat(self._file).st_size
        place = max(0, end - _TAIL)
        with suppress(OSError), _readable(self.path) as other:
            is_same = os.pread(other, end - place, place) == os.pread(self._file, end - place, place)
            return is_same and end >= least
        return False

    def _ends_whole(self) -> bool:
        size = os.fstat(self._file).st_size
        return size == 0 or os.pread(self._file, 1, size - 1) == b"\n"

    def _take_back(self, end: int) -> None:
        try:
            os.ftruncate(self._file, end)
        except OSError:
            self._cut = not self._ends_whole()


@contextmanager
def _readable(path: Path) -> Iterator[int]:
    """A file opened for reading; a pipe is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def sizes(folder: Path) -> dict[str, int]:
    """Name -> bytes of the files in a folder, in no order; {} where there is no folder.

    A pipe, a device and a folder are no files, whatever they are called: to read one may never end.
    Each command looks at every file of a ledger, and there may be a hundred thousand: path by path that takes
    ten times as long.
    """
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        return {entry.name: _size(entry) for entry in entries if entry.is_file()}
    return {}


def _size(entry: os.DirEntry[str]) -> int:
    with suppress(FileNotFoundError):  # gone by now
        return entry.stat().st_size
    return 0


def put(path: Path, content: bytes) -> None:
    """Write a whole file in place of what was there: afterwards it is there whole, or as it was."""
    with _aside(path, rename) as part:
        file = AppendOnly(part)
        try:
            file.write(content)
            file.sync()
        finally:
            file.close()


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Have an OSError of a full disk name what was to be written: that of a write names no file."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            error.filename = error.filename or str(path)
        raise


@contextmanager
def replace_file(path: Path) -> Iterator[TextIO]:
    """A text file for content too long to be held: it takes the place of what was there once it is complete.

    Written directly is what cannot be replaced by another file and stay what it is: a pipe, this process's
    output, a file of another owner, one of several names, and one with no room for a temporary file beside
    it. OSError where there is no room, no folder or no permission.
    """
    target = Path(os.path.realpath(path))  # a link stays one
    if not _is_replaceable(path) or not _has_room_beside(target):
        with named(path), path.open("w", encoding="utf-8") as file:
            yield file
        return
    with (
        named(path),
        _aside(target, _rename_or_copy) as part,
        part.open("w", encoding="utf-8") as file,
    ):
        if target.exists():
            if (group := target.stat().st_gid) != part.stat().st_gid:
                os.chown(part, -1, group)
            shutil.copymode(target, part)
        yield file
        file.flush()
        os.fsync(file.fileno())


def _rename_or_copy(part: Path, target: Path) -> None:
    try:
        rename(part, target)
    except WriteError as error:
        if not isinstance(error.__cause__, OSError) or error.__cause__.errno != errno.EBUSY:
            raise
        shutil.copyfile(part, target)  # a file that is mounted by itself, as into a container
        part.unlink()


def _is_replaceable(path: Path) -> bool:
    """Whether another file in place of this one has the same owner, group and names, and is allowed."""
    if not path.exists():
        return True
    status, groups = path.stat(), {os.getegid(), *os.getgroups()}
    is_own = status.st_uid == os.geteuid() and status.st_gid in groups and status.st_nlink == 1
    return path.is_file() and is_own and os.access(path, os.W_OK) and not _is_output(path)


def _is_output(path: Path) -> bool:
    """Whether a file is the one that standard output or standard error goes to."""
    for descriptor in (1, 2):
        with suppress(OSError):  # closed, or no such file
            if os.path.samestat(path.stat(), os.fstat(descriptor)):
                return True
    return False


def _has_room_beside(path: Path) -> bool:
    """Whether the folder of a file can be written to and admits the longer name of a temporary file."""
    folder = path.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return False
    return len(os.fsencode(_part(path).name)) <= os.pathconf(folder, "PC_NAME_MAX")


@contextmanager
def _aside(path: Path, move: Callable[[Path, Path], None]) -> Iterator[Path]:
    """A temporary file beside `path`: `move` puts it there in the end; it is removed where anything fails."""
    part = _part(path)
    try:
        yield part
        move(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}.{unique_part()}.part")


def write_blocks(path: Path, blocks: Iterable[bytes]) -> int:
    """Write a file block by block; returns its bytes. WriteError where the disk refuses it."""
    try:
        with path.open("wb") as file:
            fault("write", path)
            return sum(file.write(block) for block in blocks)
    except OSError as error:
        raise write_error(path, error) from error


def copy(path: Path, target: Path) -> Path:
    """Copy a file into a folder that is made. WriteError where there is no room for it, OSError otherwise."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fault("write", target)
        return Path(shutil.copy2(path, target))
    except OSError as error:
        if error.errno in _FULL:
            raise write_error(target, error) from error
        raise


def share(folder: Path) -> None:
    """Have a group that may write to a folder read and replace what was copied into it: copies have the
    modes of what they were made from."""
    if mode_in(folder) == 0o600:
        return
    for path in folder.rglob("*"):
        path.chmod(stat.S_IMODE(path.stat().st_mode) | (0o2070 if path.is_dir() else 0o060))


def unique_part() -> str:
    """A part of a name that no other process uses, on any machine: process ids alone repeat."""
    return f"{os.getpid()}.{secrets.token_hex(4)}"


def rename(path: Path, target: Path) -> None:
    """Rename a complete file or folder, and have that on disk."""
    try:
        fault("rename", target)
        path.rename(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise write_error(target, error) from error


def _sync_folder(folder: Path) -> None:
    with _readable(folder) as descriptor:
        os.fsync(descriptor)


def write_error(path: Path, error: OSError) -> WriteError:
    """Why a file cannot be written; where another person's file or folder forbids it, with what they do."""
    why = error.strerror or str(error)
    if error.errno == errno.ELOOP and path.is_symlink():
        why = "it is a link, which another person may have put there; remove it"
    elif whose := foreign(path, error):
        why += f"; {whose}, and a workspace of several people needs `chmod g+rwX` and `umask 002` of each"
    return WriteError(f"{path}: cannot write: {why}")


def foreign(path: Path, error: OSError) -> str | None:
    """Whose the file is, or else its folder, where another person's permission is missing."""
    if error.errno != errno.EACCES:
        return None
    with suppress(OSError):
        kind, place = ("it", path) if path.exists() else ("its folder", path.parent)
        if (owner := place.stat().st_uid) != os.geteuid():
            return f"{kind} belongs to {_user(owner)}"
    return None


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
