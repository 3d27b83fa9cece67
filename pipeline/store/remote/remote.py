"""A study whose ledgers lie in an object store, and its mirror: the folder that this machine works in.

Objects are written once and never changed: a segment of a ledger, a sample, a log under the hash of what it
holds. So a mirror is up to date once it has every name, and everything that reads a workspace reads the
mirror. What is written here is a `.part` until the object store has it: only then does it get its name and
count. What a killed process left as a part is handed over by the next one.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from platformdirs import user_state_path

from ....schemas.text import count_of
from ...errors import StoreError
from .. import disk
from ..locks import without_password
from .bucket import Bucket, Entry, endpoint
from .listing import listing
from .logs import Logs
from .parts import Parts

MIRRORED = (
    *("ratings", "sources", "outcomes", "forgotten", "samples", "codebooks", "models"),
    *("raw/labelstudio/received", "raw/labelstudio/codebooks"),
)
"""Folders of a workspace that every machine has in full."""
SETTINGS = ("coaudit.toml", "secret", "sources.jsonl", "outcomes.jsonl", "forgotten.jsonl")
"""Files of a workspace that every machine has; the last three are ledgers of before."""
FRESH, PATIENCE = 2.0, 5.0
"""Seconds for which a look at the object store holds; or so many times as long as the look took."""
MIRRORS = "COAUDIT_MIRRORS"
"""The variable that names the folder of mirrors, else the user's own for what programs keep."""


class Remote(Bucket):
    """A study's objects, and this machine's mirror of them."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.folder = mirror_of(self.url)
        self.logs = Logs(self, self.folder)
        self._parts = Parts(self, self.folder, self.logs)
        self._fresh = 0.0
        self._there: dict[str, Entry] = {}

    def pull(self, *, at_once: bool = False) -> None:
        """Download every object that the mirror lacks; one look holds for a while, unless `at_once`."""
        start = time.monotonic()
        if not at_once and start < self._fresh:
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        here = {folder: disk.sizes(self.folder / folder) for folder in MIRRORED}
        there = self._remote_entries(here)
        lacking = self._missing_objects(here, there)
        seconds = time.monotonic() - start
        for _ in self.side_by_side.map(self._bring, lacking, lacking.values()):
            pass
        self._there = there
        if not self._fresh:
            self._parts.hand_over(MIRRORED)
        self._fresh = time.monotonic() + max(FRESH, PATIENCE * seconds)

    def publish(self, part: Path) -> Path:
        """Store a part in the object store and give it its final name, which is returned."""
        return self._parts.publish(part)

    def secret(self) -> bytes:
        """The study's own random bytes, made by the first machine that asks.

        StoreError where the object store overwrites what is only to be created: no claim could be relied on.
        """
        self.create("secret", secrets.token_bytes(32))
        content = self.read("secret") or b""
        if self.create("secret", content):
            raise StoreError(
                f"{self}: the object store ignores `If-None-Match: *` and overwrites existing objects: "
                "two machines would overwrite each other's work, so a study cannot be kept there"
            )
        return content

    def _remote_entries(self, here: Mapping[str, Mapping[str, int]]) -> dict[str, Entry]:
        """The objects that a mirror with these files has to hold."""
        above = self.root_entries()  # first and alone: it makes the client that the others use
        entries = {name: one for name, one in above.items() if name in SETTINGS}
        names = {folder: sorted(sizes) if _is_final(f"{folder}/") else () for folder, sizes in here.items()}
        there = listing(self, names)
        return entries | {name: one for name, one in there.items() if _is_safe(name)}

    def _missing_objects(
        self, here: Mapping[str, Mapping[str, int]], there: Mapping[str, Entry]
    ) -> dict[str, int]:
        """Name -> bytes of what the mirror lacks, or has otherwise.

        StoreError where the object store has lost a file of a ledger: each was stored there before it got its
        name here.
        """
        names = {f"{folder}/{name}": size for folder, sizes in here.items() for name, size in sizes.items()}
        lost_names = sorted(
            name for name in names.keys() - there.keys() if _is_final(name) and _is_ledger(name)
        )
        if lost_names:
            raise StoreError(
                f"{self}: {count_of(len(lost_names), 'ledger file is', 'ledger files are')} missing "
                "there, such as "
                f"{lost_names[0]}: restore from {self.folder}, or use another folder for what is there now "
                f"({MIRRORS})"
            )
        names |= disk.sizes(self.folder)
        return {
            name: entry.size
            for name, entry in there.items()
            if names.get(name) != entry.size or not (_is_final(name) or self._there.get(name) == entry)
        }

    def _bring(self, name: str, size: int) -> None:
        self.fetch(name, self.folder / name, size if _is_final(name) else None)


def mirror_of(url: str) -> Path:
    """The folder of this machine that mirrors a study."""
    above, seen_at = os.environ.get(MIRRORS), endpoint()
    readable = re.sub(r"[^\w.-]+", "-", without_password(url))[-60:].strip("-")
    name = f"{readable}-{blake2b((url + seen_at).encode(), digest_size=4).hexdigest()}"
    return (Path(above).absolute() if above else user_state_path("coaudit") / "mirrors") / name


def _is_ledger(name: str) -> bool:
    return name.endswith(".jsonl")


def _is_final(name: str) -> bool:
    """Whether an object never changes: all but what a person writes."""
    return not (name in SETTINGS or name.startswith(("codebooks/", "models/")))


def _is_safe(name: str) -> bool:
    """Whether an object's name is a file right in a mirrored folder: a bucket may hold anything."""
    folder, _, file = name.rpartition("/")
    return folder in MIRRORED and bool(re.fullmatch(r"[A-Za-z0-9_~@][A-Za-z0-9_.~@-]{0,200}", file))
