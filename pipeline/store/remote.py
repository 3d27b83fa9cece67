"""A study whose ledgers lie in an object store, and its mirror: the folder that this machine works in.

Objects are written once and never changed: a segment of a ledger, a sample, a log under the hash of what it
holds. So a mirror is up to the study once it has every name, and everything that reads a workspace reads the
mirror. What is written here is a `.part` until the object store has it: only then does it bear its name and
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

from ..errors import StoreError
from . import disk
from .bucket import Bucket, Listed, endpoint
from .listing import listing
from .locks import without_password
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
"""Seconds for which a look at the object store holds, or so many times what its list took."""
MIRRORS = "COAUDIT_MIRRORS"
"""The variable that names the folder of mirrors, else the user's own for what programs keep."""


class Remote(Bucket):
    """A study's objects, and the mirror of them that is this machine's."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.folder = mirror_of(self.url)
        self.logs = Logs(self, self.folder)
        self._parts = Parts(self, self.folder, self.logs)
        self._fresh = 0.0
        self._there: dict[str, Listed] = {}

    def pull(self, *, at_once: bool = False) -> None:
        """Bring every object that is not here into the mirror; one look holds for a while."""
        start = time.monotonic()
        if not at_once and start < self._fresh:
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        here = {folder: disk.sizes(self.folder / folder) for folder in MIRRORED}
        there = self._listed(here)
        lacking = self._lacking(here, there)
        seconds = time.monotonic() - start
        for _ in self.side_by_side.map(self._bring, lacking, lacking.values()):
            pass
        self._there = there
        if not self._fresh:
            self._parts.hand_over(MIRRORED)
        self._fresh = time.monotonic() + max(FRESH, PATIENCE * seconds)

    def publish(self, part: Path) -> Path:
        """Have the object store hold a part; it bears its name from then on, which is returned."""
        return self._parts.publish(part)

    def secret(self) -> bytes:
        """The study's own random bytes: the first machine that asks makes them.

        StoreError where the object store creates what is there already: no claim could be relied on.
        """
        self.create("secret", secrets.token_bytes(32))
        content = self.read("secret") or b""
        if self.create("secret", content):
            raise StoreError(
                f"{self}: the object store overwrites what is only to be created where nothing is "
                "(`If-None-Match: *`): two machines would take each other's work, so no study can live there"
            )
        return content

    def _listed(self, here: Mapping[str, Mapping[str, int]]) -> dict[str, Listed]:
        """What a mirror is to hold, which has got these files."""
        above = self.above()  # first and alone: it makes the client that the others use
        entries = {name: one for name, one in above.items() if name in SETTINGS}
        names = {folder: sorted(sizes) if _is_final(f"{folder}/") else () for folder, sizes in here.items()}
        there = listing(self, names)
        return entries | {name: one for name, one in there.items() if _is_safe(name)}

    def _lacking(self, here: Mapping[str, Mapping[str, int]], there: Mapping[str, Listed]) -> dict[str, int]:
        """Name -> bytes of what the mirror has not got as it is there, or not all of it.

        StoreError where the object store has lost a file of a ledger: each lay there before it bore its name
        here.
        """
        names = {f"{folder}/{name}": size for folder, sizes in here.items() for name, size in sizes.items()}
        lost_names = sorted(
            name for name in names.keys() - there.keys() if _is_final(name) and _is_ledger(name)
        )
        if lost_names:
            raise StoreError(
                f"{self}: {len(lost_names)} files of its ledgers are gone from there, {lost_names[0]} among them: bring "
                f"them back from {self.folder}, or have another folder for what is there now ({MIRRORS})"
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
    """Whether an object never changes: all do but what a person writes."""
    return not (name in SETTINGS or name.startswith(("codebooks/", "models/")))


def _is_safe(name: str) -> bool:
    """Whether an object's name is a file right in a mirrored folder: a bucket may hold anything."""
    folder, _, file = name.rpartition("/")
    return folder in MIRRORED and bool(re.fullmatch(r"[A-Za-z0-9_~@][A-Za-z0-9_.~@-]{0,200}", file))
