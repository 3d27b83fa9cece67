"""The logs of a study in an object store, under the hash of what they hold."""

from __future__ import annotations

import gzip
import tarfile
import tempfile
import zlib
from concurrent.futures import Future
from pathlib import Path

from ...errors import StoreError
from ..tars import extract, members, open_archive
from .bucket import Bucket


class Logs:
    """The logs of a study: sent in the background, packed and unpacked in a folder `aside`."""

    def __init__(self, bucket: Bucket, aside: Path) -> None:
        self._bucket = bucket
        self._aside = aside
        self._uploads: list[Future[None]] = []

    def keep(self, content: str, folder: Path) -> None:
        """Begin to store a log's files under the hash of what they hold."""
        self._uploads.append(self._bucket.side_by_side.submit(self.hold, content, folder))

    def wait(self) -> None:
        """Return once all that was begun is stored."""
        uploads, self._uploads = self._uploads, []
        for upload in uploads:
            upload.result()

    def hold(self, content: str, folder: Path) -> None:
        """Store a log's files under the hash of what they hold."""
        name = f"logs/{content}.tar.gz"
        if self._bucket.has(name):
            return
        with tempfile.TemporaryDirectory(dir=self._aside) as aside:
            tarball = Path(aside) / "log.tar.gz"
            with tarfile.open(tarball, "w:gz", compresslevel=1) as archive:
                archive.add(folder, arcname=".", filter=_nobodys)
            self._bucket.send(name, tarball)

    def fetch(self, content: str, folder: Path) -> bool:
        """Download the files of a log; whether the study has them."""
        name = f"logs/{content}.tar.gz"
        if not self._bucket.has(name):
            return False
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as aside:
            tarball, contents = Path(aside) / "log.tar.gz", Path(aside) / "log"
            self._bucket.fetch(name, tarball)
            try:
                with open_archive(tarball) as archive:
                    for member in members(archive):
                        extract(archive, member, contents)
            except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise StoreError(f"{self._bucket}/{name}: damaged: {error}") from error
            if not folder.exists():
                contents.rename(folder)
        return True


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """A file without its owner; links and devices stay out."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member if member.isfile() or member.isdir() else None
