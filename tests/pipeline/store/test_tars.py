"""Members of archives are written within their folder, whether or not Python has filters of its own."""

from __future__ import annotations

import gzip
import io
import itertools
import lzma
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from coaudit.pipeline.errors import StoreError
from coaudit.pipeline.store import tars
from coaudit.pipeline.store.remote.bucket import Bucket
from coaudit.pipeline.store.remote.logs import Logs

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Python 3.12, without a filter
Write = Callable[[tarfile.TarInfo], Path]


@pytest.fixture(params=[True, False] if tars.HAS_FILTER else [False])
def write(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a member of five bytes into a folder, which is given back."""
    monkeypatch.setattr(tars, "HAS_FILTER", request.param)

    def written(member: tarfile.TarInfo) -> Path:
        packed, folder = tmp_path / "a.tar", tmp_path / "folder"
        member.size = 5 if member.isreg() else 0
        with tarfile.open(packed, "w") as archive:
            archive.addfile(member, io.BytesIO(b"12345"))
        with tars.open_archive(packed) as archive:
            for one in tars.members(archive):
                tars.extract(archive, one, folder)
        return folder

    return written


def test_a_file_is_written_and_is_nobody_elses(write: Write) -> None:
    member = tarfile.TarInfo("logs/a.jsonl")
    member.mode, member.uid, member.uname = 0o4777, 12345, "nobody"
    path = write(member) / "logs" / "a.jsonl"
    assert path.read_bytes() == b"12345"
    assert path.stat().st_uid == path.parent.stat().st_uid and path.stat().st_mode & 0o4000 == 0


@pytest.mark.parametrize("name", ["../out", "a/../../out", "/tmp/out"])
def test_what_leads_out_is_refused(write: Write, name: str) -> None:
    with pytest.raises(tarfile.ExtractError, match="leads out"):
        write(tarfile.TarInfo(name))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_what_is_neither_a_file_nor_a_folder_is_refused(write: Write, kind: bytes) -> None:
    member = tarfile.TarInfo("a")
    member.type, member.linkname = kind, "/etc/hostname"
    with pytest.raises(tarfile.ExtractError, match="neither a file nor a folder"):
        write(member)


def test_a_folder_is_open_to_whom_its_neighbours_are(write: Write, tmp_path: Path) -> None:
    member = tarfile.TarInfo("logs")
    member.type, member.mode = tarfile.DIRTYPE, 0o700
    (tmp_path / "neighbour").mkdir()
    assert (write(member) / "logs").stat().st_mode == (tmp_path / "neighbour").stat().st_mode


def test_logs_come_back_from_an_object_store_under_whatever_names_they_have(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    names = ["a.jsonl", "..\\b.jsonl", "\\\\host\\c.jsonl", "c\\..\\ü.jsonl"]
    (folder / "deep" / "empty").mkdir(parents=True)
    for name in names:
        (folder / "deep" / name).write_text(name, encoding="utf-8")
    kept = Logs(cast(Bucket, Shelf(tmp_path / "shelf")), tmp_path)
    kept.hold("hash", folder)
    assert kept.fetch("hash", tmp_path / "back")
    there = {
        path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "back" / "deep").glob("*.jsonl")
    }
    assert there == {name: name for name in names}
    assert (tmp_path / "back" / "deep" / "empty").is_dir()


@pytest.mark.parametrize("end", [0, 9, 30, 100])
def test_a_log_that_is_damaged_in_an_object_store_is_named(tmp_path: Path, end: int) -> None:
    folder, shelf = tmp_path / "log", Shelf(tmp_path / "shelf")
    folder.mkdir()
    (folder / "a.jsonl").write_text("{}\n" * 99, encoding="utf-8")
    kept = Logs(cast(Bucket, shelf), tmp_path)
    kept.hold("hash", folder)
    shelf.object.write_bytes(shelf.object.read_bytes()[:end])
    with pytest.raises(StoreError, match=r"logs/hash\.tar\.gz: damaged: "):
        kept.fetch("hash", tmp_path / "back")
    assert not (tmp_path / "back").exists()


@dataclass
class Shelf:
    """One object, as a bucket keeps it."""

    object: Path

    def has(self, name: str) -> bool:
        return self.object.exists()

    def send(self, name: str, path: Path) -> None:
        shutil.copy(path, self.object)

    def fetch(self, name: str, path: Path) -> None:
        shutil.copy(self.object, path)


def header(kind: bytes, size: int, fields: dict[int, bytes] | None = None) -> bytes:
    """A member's header of GNU tar, some bytes of which are others."""
    member = tarfile.TarInfo("a")
    member.type, member.size = kind, size
    block = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    for place, value in (fields or {}).items():
        block[place : place + len(value)] = value
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def test_a_member_whose_size_leads_back_to_it_ends_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    below_zero = header(tarfile.REGTYPE, 0, {124: b"\xff" * 10 + b"\xfe\0"})
    path.write_bytes(header(tarfile.REGTYPE, 0) + below_zero + b"\0" * 10240)
    with tars.open_archive(path) as archive, pytest.raises(tarfile.ReadError, match="stands at byte 512"):
        list(itertools.islice(tars.members(archive), 9))


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_a_header_that_is_too_long_is_not_taken_into_memory(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "a.tar.gz"
    size = tars.LONGEST_HEADER + 512
    content = header(kind, size) + b"\0" * size + header(tarfile.REGTYPE, 0)
    path.write_bytes(gzip.compress(header(tarfile.REGTYPE, 0) + content + b"\0" * 1024))
    with (
        tars.open_archive(path) as archive,
        pytest.raises(tarfile.ReadError, match="a header of 1049088 bytes"),
    ):
        list(tars.members(archive))


def test_a_member_with_holes_is_no_larger_than_it_says(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    for size in (1536, 1535):
        sizes = {386: b"%011o\0%011o\0" % (512, 1024), 483: b"%011o\0" % size}
        holes = header(tarfile.GNUTYPE_SPARSE, 1024, sizes)
        path.write_bytes(holes + b"x" * 1024 + b"\0" * 1024)
        with tars.open_archive(path) as archive:
            (member,) = tars.members(archive)
            if size == 1536:
                tars.extract(archive, member, tmp_path)
                assert (tmp_path / "a").read_bytes() == b"\0" * 512 + b"x" * 1024
            else:
                with pytest.raises(tarfile.ExtractError, match="parts beyond its 1535 bytes"):
                    tars.extract(archive, member, tmp_path)


@pytest.mark.parametrize("name", ["member", "BZhang.json", "]"])
@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
def test_the_first_bytes_tell_how_an_archive_is_compressed_whatever_its_name_and_its_first_members(
    tmp_path: Path, compression: str, name: str
) -> None:
    packed = tmp_path / "a.tar"
    with tarfile.open(packed, f"w:{compression}") as archive:  # type: ignore[call-overload]
        archive.addfile(tarfile.TarInfo(name))
    with tars.open_archive(packed) as archive:
        assert [one.name for one in tars.members(archive)] == [name]


def test_an_archive_of_lzma_as_before_there_was_xz_is_read(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.tar", tmp_path / "b.tar.xz"
    with tarfile.open(plain, "w:") as archive:
        archive.addfile(tarfile.TarInfo("member"))
    for preset in (0, 6, 9):
        packed.write_bytes(lzma.compress(plain.read_bytes(), lzma.FORMAT_ALONE, preset=preset))
        with tars.open_archive(packed) as archive:
            assert [one.name for one in tars.members(archive)] == ["member"]


def test_zeros_that_a_crash_left_of_an_archive_are_not_looked_through_for_a_compression(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python looked for xz in all of them: 36 s for 256 MiB."""
    packed = tmp_path / "a.tar"
    packed.write_bytes(bytes(1 << 20))
    monkeypatch.setattr(lzma, "LZMAFile", lambda *_, **__: pytest.fail("looked for xz"))
    with tars.open_archive(packed) as archive:
        assert list(tars.members(archive)) == []
