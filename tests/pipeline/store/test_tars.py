"""Members of archives are written within their folder, whether or not Python has filters of its own."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from coaudit.pipeline.store import tars

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
        with tarfile.open(packed) as archive:
            for one in archive:
                tars.extract(archive, one, folder)
        return folder

    return written


def test_a_file_is_written_and_is_nobody_elses(write: Write) -> None:
    member = tarfile.TarInfo("logs/a.jsonl")
    member.mode, member.uid, member.uname = 0o4777, 12345, "nobody"
    path = write(member) / "logs" / "a.jsonl"
    assert path.read_bytes() == b"12345"
    assert path.stat().st_uid == path.parent.stat().st_uid and path.stat().st_mode & 0o4000 == 0


@pytest.mark.parametrize("name", ["../out", "a/../../out", "/tmp/out", "..\\out"])
def test_what_leads_out_is_refused(write: Write, name: str) -> None:
    with pytest.raises(tarfile.ExtractError, match="leads out"):
        write(tarfile.TarInfo(name))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_what_is_neither_a_file_nor_a_folder_is_refused(write: Write, kind: bytes) -> None:
    member = tarfile.TarInfo("a")
    member.type, member.linkname = kind, "/etc/hostname"
    with pytest.raises(tarfile.ExtractError, match="neither a file nor a folder"):
        write(member)
