"""An object store: objects under one URL, each written once, or replaced only by who knows what it holds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from ....schemas.extras import pip_command
from ....schemas.url import shown_url
from ...errors import StoreError
from .. import disk
from ..locks import reason, without_password

SCHEMES = ("s3", "gs", "az")
SIDE_BY_SIDE = 48
"""Requests at a time."""
_METADATA = ("/latest/api/token", "/latest/meta-data", "metadata.google.internal", "/metadata/identity")
"""Where clients look for credentials when the environment has none: at the metadata services of clouds."""
_AWAY = ("error sending request", "client error (Connect)", "dns error")
"""Parts of a client's error where nobody answers, after it has tried ten times."""
_CHUNK = 1000
"""Names that are handed to Python at a time."""
_READ_BACK = 1 << 20
"""Bytes up to which an object is read again after it was written."""


class Entry(NamedTuple):
    """An object's tag, which changes with its content, and its size in bytes."""

    tag: str
    size: int


class Stamp(NamedTuple):
    """When an object was written, by the object store's clock, and its tag (it changes with the content)."""

    at: datetime
    tag: str


class Bucket:
    """The objects under one URL. StoreError names the object and what the object store says."""

    def __init__(self, url: str) -> None:
        self.scheme, _, place = url.partition("://")
        self.url = f"{self.scheme}://{place.strip('/')}"
        self._store: Any = None
        if self.scheme not in SCHEMES or not place.strip("/") or shown_url(url) != url:
            places = ", ".join(f"{one}://BUCKET/NAME" for one in SCHEMES)
            raise StoreError(
                f"{shown_url(url)}: a workspace must be a folder or one of {places}; "
                "keys come from the environment"
            )
        try:
            import_module("obstore")
        except ImportError as error:
            raise StoreError(
                f"{self}: a workspace in an object store needs the extra `remote`: {pip_command('remote')}"
            ) from error

    def __str__(self) -> str:
        return without_password(self.url)

    def put(self, name: str, path: Path) -> None:
        """Write a new object and check that it is there. StoreError where it holds something else."""
        from obstore.exceptions import AlreadyExistsError, BaseError

        size = path.stat().st_size
        try:
            with self._explain_errors(name):
                self._client.put(name, path, mode="create", use_multipart=False)
        except AlreadyExistsError:
            pass  # an answer that got lost, or the same log from elsewhere
        with self._explain_errors(name):
            try:
                actual = self._client.head(name)["size"]
                same = actual == size and (size > _READ_BACK or self._read(name) == path.read_bytes())
            except (FileNotFoundError, BaseError) as error:
                raise StoreError(f"{self}/{name}: was written but is not there: {_short(error)}") from error
        if not same:
            raise StoreError(f"{self}/{name}: contains something other than what was written")

    def create(self, name: str, content: bytes) -> bool:
        """Write a small object unless there is one of that name; whether it was written."""
        from obstore.exceptions import AlreadyExistsError

        try:
            with self._explain_errors(name):
                self._client.put(name, content, mode="create")
        except AlreadyExistsError:
            return False
        return True

    def replace(self, name: str, content: bytes, there: bytes) -> bool:
        """Write a small object in place of one that still holds `there`; False where it no longer does.

        The object store compares, so of two machines that do it at once one gets False.
        """
        from obstore.exceptions import PreconditionError

        with self._explain_errors(name), suppress(FileNotFoundError, PreconditionError):
            current = self._client.get(name)
            if bytes(current.bytes()) == there:
                version = {
                    word: current.meta[word] for word in ("e_tag", "version") if current.meta.get(word)
                }
                self._client.put(name, content, mode=version, use_multipart=False)
                return True
        return False

    def read(self, name: str) -> bytes | None:
        """A small object; None where there is none."""
        with self._explain_errors(name):
            try:
                return self._read(name)
            except FileNotFoundError:
                return None

    def stamps(self, folder: str) -> dict[str, Stamp]:
        """The objects of a folder with when they were written."""
        with self._explain_errors(folder):
            objects = [meta for batch in self._client.list(folder) for meta in batch]
        return {str(meta["path"]): Stamp(meta["last_modified"], _tag(meta)) for meta in objects}

    def touch(self, name: str) -> datetime:
        """Write a small object again; returns when, by the object store's clock."""
        with self._explain_errors(name):
            self._client.put(name, b"-")
            time: datetime = self._client.head(name)["last_modified"]
        return time

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects that were never part of a ledger."""
        with suppress(FileNotFoundError), self._explain_errors(", ".join(names[:1])):
            self._client.delete(list(names))

    def root_entries(self) -> dict[str, Entry]:
        """The objects that lie in no folder."""
        with self._explain_errors(""):
            objects = self._client.list_with_delimiter()["objects"]
        return {meta["path"]: _entry(meta) for meta in objects}

    def entries(self, folder: str) -> dict[str, Entry]:
        """The objects of a folder."""
        return dict(self.names(folder))

    def names(self, folder: str, after: str | None = None) -> Iterator[tuple[str, Entry]]:
        """The objects of a folder one by one as they are listed, those behind the name `after` where one is
        given."""
        with self._explain_errors(folder):
            for batch in self._client.list(folder, offset=after, chunk_size=_CHUNK):
                yield from [(meta["path"], _entry(meta)) for meta in batch]

    def send(self, name: str, path: Path) -> None:
        """Write a file as an object, in place of any that is there; StoreError where it has not arrived."""
        with self._explain_errors(name):
            self._client.put(name, path)
        if not self.has(name, path.stat().st_size):
            raise StoreError(f"{self}/{name}: was written but is not there")

    def fetch(self, name: str, target: Path, size: int | None = None) -> None:
        """Download an object; the file appears whole. StoreError where it has not the `size` that it must
        have, WriteError where there is no room for it."""
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = target.with_name(f".{target.name}.{disk.unique_part()}")
        try:
            actual = disk.write_blocks(aside, self._blocks(name))
            if size not in (None, actual):
                raise StoreError(
                    f"{self}/{name}: the object store sent {actual} bytes, but reports a size of {size}"
                )
            aside.replace(target)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise

    def _blocks(self, name: str) -> Iterator[bytes]:
        """What an object holds, as it comes."""
        try:
            with self._explain_errors(name):
                yield from self._client.get(name).stream()
        except FileNotFoundError as error:
            raise StoreError(f"{self}/{name}: is there no longer") from error

    def has(self, name: str, size: int | None = None) -> bool:
        """Whether there is an object of that name, and of that size where one is given."""
        with self._explain_errors(name):
            try:
                actual = self._client.head(name)["size"]
            except FileNotFoundError:
                return False
        return size is None or actual == size

    @cached_property
    def side_by_side(self) -> ThreadPoolExecutor:
        """Threads for so many requests at a time."""
        return ThreadPoolExecutor(SIDE_BY_SIDE)

    def _read(self, name: str) -> bytes:
        return bytes(self._client.get(name).bytes())

    @property
    def _client(self) -> Any:
        if self._store is None:
            from obstore.store import from_url

            with self._explain_errors(""):
                plain = {"client_options": {"allow_http": True}} if endpoint().startswith("http://") else {}
                self._store = from_url(self.url, **plain)
        return self._store

    @contextmanager
    def _explain_errors(self, name: str) -> Iterator[None]:
        from obstore.exceptions import AlreadyExistsError, BaseError

        try:
            yield
        except (AlreadyExistsError, FileNotFoundError):
            raise
        except (BaseError, OSError, ValueError) as error:
            about = f"{self}/{name}".rstrip("/")
            if any(sign in str(error) for sign in _AWAY) and not _lacks_access(str(error)):
                where = shown_url(endpoint()) or f"{self.scheme}://"
                raise StoreError(
                    f"{about}: the object store does not answer at {where}: check the network and "
                    "AWS_ENDPOINT_URL, or whatever else sets its address"
                ) from error
            raise StoreError(f"{about}: the object store refused the request: {_short(error)}") from error


def endpoint() -> str:
    """S3's endpoint in the environment, or "": a bucket of one name is another bucket at another endpoint."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


def _entry(meta: Mapping[str, Any]) -> Entry:
    return Entry(_tag(meta), int(meta["size"]))


def _tag(meta: Mapping[str, Any]) -> str:
    return str(meta["e_tag"] or meta["last_modified"])


def _lacks_access(text: str) -> bool:
    return any(place in text for place in _METADATA)


def _short(error: BaseException) -> str:
    """An object store's reason on one line, without its debugging."""
    text = reason(error).partition("Debug source")[0].strip()
    if _lacks_access(text):
        return "there are no credentials for it in the environment (AWS_ACCESS_KEY_ID and so on)"
    code = re.search(r"<Code>(\w+)</Code>", text)
    return code[1] if code else text[:300]
