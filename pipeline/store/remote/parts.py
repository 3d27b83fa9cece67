"""Files of a mirror on their way to the object store: each is a `.part` until that has it."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from .. import disk
from ..ledgers.ledger import PART, SOON
from .bucket import Bucket
from .logs import Logs


class Parts:
    """The parts of a mirror: published by their writer, or by the next process where that was killed."""

    def __init__(self, bucket: Bucket, mirror: Path, logs: Logs) -> None:
        self._bucket = bucket
        self._mirror = mirror
        self._logs = logs

    def publish(self, part: Path) -> Path:
        """Store a part in the object store and give it its final name, which is returned."""
        final = part.with_name(part.name.removesuffix(PART))
        self._logs.wait()
        self._bucket.put(final.relative_to(self._mirror).as_posix(), part)
        if not final.exists():  # another process may have handed it over
            disk.rename(part, final)
        part.unlink(missing_ok=True)
        return final

    def hand_over(self, folders: Iterable[str]) -> None:
        """Publish the parts that killed processes left in these folders."""
        for name in folders:
            for part in sorted((self._mirror / name).glob(f"[!.]*{PART}")):
                with suppress(FileNotFoundError), part.open("rb") as file:  # another process may be faster
                    if _is_orphaned(part, file):
                        self._finish(part)

    def _finish(self, part: Path) -> None:
        """Publish a part, after the logs that it notes: without them other machines would look for them in
        vain."""
        final = part.with_name(part.name.removesuffix(PART))
        for content, folder in self._noted_logs(part):
            self._logs.hold(content, folder)
        lines = part.read_bytes().rpartition(b"\n")
        os.truncate(part, len(lines[0]) + len(lines[1]))  # a line that was cut off never counted
        if final.exists() or not part.stat().st_size:
            part.unlink()  # it was published, and the kill came before it was renamed
        else:
            self.publish(part)

    def _noted_logs(self, part: Path) -> Iterator[tuple[str, Path]]:
        """Hash and folder of the logs that a part of the ledger of sources notes, as far as they are here."""
        for line in part.read_bytes().splitlines() if part.parent.name == "sources" else ():
            try:
                source = json.loads(line)
            except ValueError:  # cut off by the kill
                continue
            if source.get("copied"):
                folder = self._mirror / "raw" / "copied" / str(source["content_hash"])
                if folder.is_dir():
                    yield folder.name, folder


def _is_orphaned(part: Path, file: BinaryIO) -> bool:
    """Whether nobody writes a part any more; then it is locked for this process as long as `file` is open."""
    if time.time() - part.stat().st_mtime < SOON:
        return False
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
