"""A study whose ledgers lie in an object store, and its mirror: the folder that this machine works in.

Objects are written once and never changed: a segment of a ledger, a sample, a log under the hash of what it
holds. So a mirror is up to the study once it has every name, and everything that reads a workspace reads the
mirror. What is written here is a `.part` until the object store has it: only then does it bear its name and
count. What a killed process left as a part is handed over by the next one.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from platformdirs import user_state_path

from ..errors import StoreError
from . import disk
from .ledger import PART, SOON, files
from .locks import reason, without_password

MIRRORED = (
    *("ratings", "sources", "outcomes", "forgotten", "samples", "codebooks", "models"),
    *("raw/labelstudio/received", "raw/labelstudio/codebooks"),
)
"""Folders of a workspace that every machine has in full."""
SCHEMES = ("s3", "gs", "az")
SETTINGS = ("coaudit.toml", "secret", "sources.jsonl", "outcomes.jsonl", "forgotten.jsonl")
"""Files of a workspace that every machine has; the last three are ledgers of before."""
SIDE_BY_SIDE = 16
"""Requests at a time."""
FRESH = 2.0
"""Seconds for which a look at the object store holds."""
MIRRORS = "COAUDIT_MIRRORS"
"""The variable that names the folder of mirrors, else the user's own for what programs keep."""
_METADATA = ("/latest/api/token", "/latest/meta-data", "metadata.google.internal", "/metadata/identity")
"""Where clients look for credentials when the environment has none: in the cloud they hope to be in."""
_READ_BACK = 1 << 20
"""Bytes up to which what was written is read again."""


class Listed(NamedTuple):
    """A word that changes with what an object holds, and its bytes."""

    tag: str
    size: int


class Seen(NamedTuple):
    """When an object was written, by the object store's clock, and a word that changes with what it holds."""

    at: datetime
    tag: str


class Remote:
    """The object store's side of a study."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.folder = mirror_of(self.url)
        self._looked = 0.0
        self._there: dict[str, Listed] = {}
        self._store: Any = None
        self._uploads: list[Future[None]] = []

    def __str__(self) -> str:
        return without_password(self.url)

    def pull(self, *, at_once: bool = False) -> None:
        """Bring every object that is not here into the mirror; one look holds for `FRESH` seconds."""
        if not at_once and time.monotonic() - self._looked < FRESH:
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        here = self._segments()
        there = self._listed()
        if gone := sorted(here - there.keys()):
            raise StoreError(
                f"{self}: {len(gone)} files of its ledgers are gone from there, {gone[0]} among them: bring "
                f"them back from {self.folder}, or have another folder for what is there now ({MIRRORS})"
            )
        lacking = {name: listed.size for name, listed in there.items() if self._lacks(name, listed)}
        for _ in self._side_by_side.map(self._bring, lacking, lacking.values()):
            pass
        self._there = there
        if not self._looked:
            self._hand_over()
        self._looked = time.monotonic()

    def publish(self, part: Path) -> Path:
        """Have the object store hold a part; it bears its name from then on, which is returned."""
        final = part.with_name(part.name.removesuffix(PART))
        uploads, self._uploads = self._uploads, []
        for upload in uploads:
            upload.result()
        self.put(self._name(final), part)
        if not final.exists():  # another process may have handed it over
            disk.rename(part, final)
        part.unlink(missing_ok=True)
        return final

    def put(self, name: str, path: Path) -> None:
        """Write an object that is not there yet, and see that it is. StoreError where it holds otherwise."""
        from obstore.exceptions import AlreadyExistsError, BaseError

        size = path.stat().st_size
        try:
            with self._explained(name):
                self._client.put(name, path, mode="create", use_multipart=False)
        except AlreadyExistsError:
            pass  # an answer that got lost, or the same log from elsewhere
        with self._explained(name):
            try:
                there = self._client.head(name)["size"]
                same = there == size and (size > _READ_BACK or self._read(name) == path.read_bytes())
            except (FileNotFoundError, BaseError) as error:
                raise StoreError(f"{self}/{name}: was written and is not there: {_short(error)}") from error
        if not same:
            raise StoreError(f"{self}/{name}: holds something else than what was to be written")

    def create(self, name: str, content: bytes) -> bool:
        """Write a small object if there is none of that name; whether there was none."""
        from obstore.exceptions import AlreadyExistsError

        try:
            with self._explained(name):
                self._client.put(name, content, mode="create")
        except AlreadyExistsError:
            return False
        return True

    def replace(self, name: str, content: bytes, there: bytes) -> bool:
        """Write a small object in place of one that holds what is `there`; False if it does not by now.

        The object store compares, so of two machines that do it at once one is told.
        """
        from obstore.exceptions import PreconditionError

        with self._explained(name), suppress(FileNotFoundError, PreconditionError):
            held = self._client.get(name)
            if bytes(held.bytes()) == there:
                seen = {word: held.meta[word] for word in ("e_tag", "version") if held.meta.get(word)}
                self._client.put(name, content, mode=seen, use_multipart=False)
                return True
        return False

    def read(self, name: str) -> bytes | None:
        """A small object; None where there is none."""
        with self._explained(name):
            try:
                return self._read(name)
            except FileNotFoundError:
                return None

    def secret(self) -> bytes:
        """The study's own random bytes: the first machine that asks makes them."""
        self.create("secret", secrets.token_bytes(32))
        return self.read("secret") or b""

    def keep_log(self, content: str, folder: Path) -> None:
        """Hold a log's files under the hash of what they hold, by the time that anything is published."""
        self._uploads.append(self._side_by_side.submit(self._keep, content, folder))

    def _keep(self, content: str, folder: Path) -> None:
        name = f"logs/{content}.tar.gz"
        if self._has(name):
            return
        with tempfile.TemporaryDirectory(dir=self.folder) as aside:
            packed = Path(aside) / "log.tar.gz"
            with tarfile.open(packed, "w:gz", compresslevel=1) as archive:
                archive.add(folder, arcname=".", filter=_nobodys)
            with self._explained(name):
                self._client.put(name, packed)
            if not self._has(name, packed.stat().st_size):
                raise StoreError(f"{self}/{name}: was written and is not there")

    def fetch_log(self, content: str, folder: Path) -> bool:
        """Bring the files of a log here; whether the study holds it."""
        name = f"logs/{content}.tar.gz"
        if not self._has(name):
            return False
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as aside:
            packed, opened = Path(aside) / "log.tar.gz", Path(aside) / "log"
            self._fetch(name, packed)
            with tarfile.open(packed, "r:gz") as archive:
                archive.extractall(opened, filter="data")
            if not folder.exists():
                opened.rename(folder)
        return True

    def seen(self, folder: str) -> dict[str, Seen]:
        """The objects of a folder as they are now."""
        with self._explained(folder):
            objects = [meta for batch in self._client.list(folder) for meta in batch]
        return {str(meta["path"]): Seen(meta["last_modified"], _tag(meta)) for meta in objects}

    def touch(self, name: str) -> datetime:
        """Write a small object again; what time it is then by the object store's clock."""
        with self._explained(name):
            self._client.put(name, b"-")
            at: datetime = self._client.head(name)["last_modified"]
        return at

    def delete(self, names: Sequence[str]) -> None:
        """Take objects away that never were part of a ledger."""
        with suppress(FileNotFoundError), self._explained(", ".join(names[:1])):
            self._client.delete(list(names))

    @cached_property
    def _side_by_side(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(SIDE_BY_SIDE)

    def _segments(self) -> set[str]:
        """The files of ledgers in the mirror: each lay in the object store before it bore its name here."""
        folders = (name for name in MIRRORED if _is_final(f"{name}/"))
        return {f"{name}/{path.name}" for name in folders for path in files(self.folder / name)}

    def _listed(self) -> dict[str, Listed]:
        """What a mirror is to hold."""
        with self._explained(""):  # first and alone: it makes the client that the others use
            above = self._client.list_with_delimiter()["objects"]
        listed = {meta["path"]: _listed(meta) for meta in above if meta["path"] in SETTINGS}
        for part in self._side_by_side.map(self._listed_in, MIRRORED):
            listed |= part
        return listed

    def _listed_in(self, folder: str) -> dict[str, Listed]:
        with self._explained(""):
            objects = [meta for batch in self._client.list(folder) for meta in batch]
        return {meta["path"]: _listed(meta) for meta in objects if _is_safe(meta["path"])}

    def _lacks(self, name: str, listed: Listed) -> bool:
        """Whether the mirror has not got an object as it is there, or not all of it."""
        try:
            size = (self.folder / name).stat().st_size
        except FileNotFoundError:
            return True
        return size != listed.size or not (_is_final(name) or self._there.get(name) == listed)

    def _bring(self, name: str, size: int) -> None:
        self._fetch(name, self.folder / name, size)

    def _hand_over(self) -> None:
        """Publish what processes left that were killed before they could."""
        for name in MIRRORED:
            for part in sorted((self.folder / name).glob(f"[!.]*{PART}")):
                with suppress(FileNotFoundError), part.open("rb") as file:  # another process may be faster
                    if _is_left(part, file):
                        self._finish(part)

    def _finish(self, part: Path) -> None:
        """Publish a part; the logs that it notes go first, or other machines would look for them in vain."""
        final = part.with_name(part.name.removesuffix(PART))
        for content, folder in self._noted(part):
            self._keep(content, folder)
        whole = part.read_bytes().rpartition(b"\n")
        os.truncate(part, len(whole[0]) + len(whole[1]))  # a line that was cut off never counted
        if final.exists() or not part.stat().st_size:
            part.unlink()  # it was published, and the kill came before the name
        else:
            self.publish(part)

    def _noted(self, part: Path) -> Iterator[tuple[str, Path]]:
        """Hash and folder of the logs that a part of the ledger of sources notes, as far as they are here."""
        for line in part.read_bytes().splitlines() if part.parent.name == "sources" else ():
            try:
                source = json.loads(line)
            except ValueError:  # cut off by the kill
                continue
            if source.get("copied"):
                folder = self.folder / "raw" / "copied" / str(source["content_hash"])
                if folder.is_dir():
                    yield folder.name, folder

    def _fetch(self, name: str, target: Path, size: int | None = None) -> None:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}")
        with self._explained(name), aside.open("wb") as file:
            for block in self._client.get(name).stream():
                file.write(block)
        got = aside.stat().st_size
        if size not in (None, got) and _is_final(name):
            aside.unlink()
            raise StoreError(
                f"{self}/{name}: the object store gave {got} bytes and says that it holds {size}"
            )
        aside.replace(target)

    def _has(self, name: str, size: int | None = None) -> bool:
        with self._explained(name):
            try:
                there = self._client.head(name)["size"]
            except FileNotFoundError:
                return False
        return size is None or there == size

    def _read(self, name: str) -> bytes:
        return bytes(self._client.get(name).bytes())

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    @property
    def _client(self) -> Any:
        if self._store is None:
            try:
                from obstore.store import from_url
            except ImportError as error:
                raise StoreError(
                    f"{self}: a workspace in an object store needs the extra `remote`: "
                    "pip install coaudit[remote]"
                ) from error
            if self.url.partition("://")[0] not in SCHEMES:
                raise StoreError(
                    f"{self}: a workspace is a folder or lies at {', '.join(f'{one}://' for one in SCHEMES)}"
                )
            with self._explained(""):
                plain = {"client_options": {"allow_http": True}} if _endpoint().startswith("http://") else {}
                self._store = from_url(self.url, **plain)
        return self._store

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        from obstore.exceptions import AlreadyExistsError, BaseError

        try:
            yield
        except (AlreadyExistsError, FileNotFoundError):
            raise
        except (BaseError, OSError, ValueError) as error:
            raise StoreError(f"{self}/{name}: the object store refuses: {_short(error)}") from error


def mirror_of(url: str) -> Path:
    """The folder of this machine that mirrors a study."""
    above, seen_at = os.environ.get(MIRRORS), _endpoint()
    readable = re.sub(r"[^\w.-]+", "-", without_password(url))[-60:].strip("-")
    name = f"{readable}-{blake2b((url + seen_at).encode(), digest_size=4).hexdigest()}"
    return (Path(above).absolute() if above else user_state_path("coaudit") / "mirrors") / name


def _listed(meta: Mapping[str, Any]) -> Listed:
    return Listed(_tag(meta), int(meta["size"]))


def _tag(meta: Mapping[str, Any]) -> str:
    return str(meta["e_tag"] or meta["last_modified"])


def _endpoint() -> str:
    """Where S3 is reached, if that is said: a bucket of one name is another one there."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


def _is_final(name: str) -> bool:
    """Whether an object never changes: all do but what a person writes."""
    return not (name in SETTINGS or name.startswith(("codebooks/", "models/")))


def _is_safe(name: str) -> bool:
    """Whether an object's name is a file right in a mirrored folder: a bucket may hold anything."""
    folder, _, file = name.rpartition("/")
    return folder in MIRRORED and bool(re.fullmatch(r"[A-Za-z0-9_~@][A-Za-z0-9_.~@-]{0,200}", file))


def _is_left(part: Path, file: BinaryIO) -> bool:
    """Whether nobody writes a part any more; then it is ours as long as it is open here."""
    if time.time() - part.stat().st_mtime < SOON:
        return False
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """A file without its owner; links and devices stay out."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member if member.isfile() or member.isdir() else None


def _short(error: BaseException) -> str:
    """An object store's reason on one line, without its debugging."""
    text = reason(error).partition("Debug source")[0].strip()
    if any(place in text for place in _METADATA):
        return "there are no credentials for it in the environment (AWS_ACCESS_KEY_ID and so on)"
    code = re.search(r"<Code>(\w+)</Code>", text)
    return code[1] if code else text[:300]
