"""The workspace: one folder with the ledgers that are kept and the database that is derived from them."""

from __future__ import annotations

import os
import re
import secrets
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...schemas import content_hash, toml
from ...schemas.text import is_utf8
from ..errors import StoreError
from . import disk
from .ledgers.ledger import Ledger, Publish, RatingLedger
from .locks import FolderLocks, without_password

if TYPE_CHECKING:
    from .remote.remote import Remote

DEFAULT = Path("workspace")
VARIABLE = "COAUDIT_WORKSPACE"


class Workspace:
    """Paths and settings of a workspace; nothing is created before it is needed."""

    def __init__(self, path: Path, *, remote: Remote | None = None, read_only: str = "") -> None:
        # DuckDB takes ~ at the beginning for the home folder, Python for a name.
        self.path = path = path.absolute() if str(path).startswith("~") else path
        self.read_only = read_only
        """Why nothing may be written to it; "" where something may."""
        self.database = path / "coaudit.duckdb"
        self.remote = remote
        """Where the ledgers lie, where that is not the folder itself: then it is their mirror."""

    @classmethod
    def at(cls, place: str | Path | None) -> Workspace:
        """The workspace in a folder or at a URL, else the environment's, else ./workspace."""
        location = str(place or os.environ.get(VARIABLE) or DEFAULT)
        if "://" not in location:
            if re.match("(s3|gs|az):", location):
                raise StoreError(
                    f"{location}: a workspace in an object store is {location.partition(':')[0]}://..."
                )
            workspace = cls(Path(os.path.expanduser(location)))  # no shell does so after `--workspace=`
            workspace._check_name()
            return workspace
        from .remote.remote import Remote

        remote = Remote(location)
        return cls(remote.folder, remote=remote)

    def _check_name(self) -> None:
        """StoreError for a path that is not UTF-8, or has `?`, behind which DuckDB takes the rest of a
        database's name for parameters."""
        if not is_utf8(str(self.path.absolute())):
            raise StoreError(
                f"{self.path.absolute()}: a workspace's path must be UTF-8; rename the folder, or name "
                "another with --workspace"
            )
        if "?" in str(self.path.absolute()) and self.store_url == str(self.database):
            raise StoreError(
                f"{self.path.absolute()}: a workspace's path must not contain ?, where DuckDB ends a "
                "name; rename the folder, or name another with --workspace"
            )

    def read_only_copy(self, why: str = "opened read-only") -> Workspace:
        """The same workspace, to which nothing may be written."""
        return Workspace(self.path, remote=self.remote, read_only=why)

    def pull(self, *, at_once: bool = False) -> None:
        """Bring here what other machines wrote, where the ledgers lie in an object store."""
        if self.remote:
            self.remote.pull(at_once=at_once)

    @property
    def _publish(self) -> Publish | None:
        return self.remote.publish if self.remote else None

    def new_ratings(self, *, live: bool = False) -> RatingLedger:
        """A new file of ratings for this process."""
        self.create()
        return RatingLedger(self.ratings, live=live, publish=self._publish)

    @property
    def raw(self) -> Path:
        return self.path / "raw"

    @property
    def ratings(self) -> Path:
        return self.path / "ratings"

    @property
    def samples(self) -> Path:
        return self.path / "samples"

    @property
    def codebooks(self) -> Path:
        """The workspace's own codebooks."""
        return self.path / "codebooks"

    @property
    def pushed_codebooks(self) -> Path:
        """The codebooks of Label Studio's projects, as they were when they were pushed."""
        return self.raw / "labelstudio" / "codebooks"

    @cached_property
    def received(self) -> Ledger:
        """Annotations as Label Studio gave them, and how far each pull got."""
        return Ledger(self.raw / "labelstudio" / "received", self._publish, self.create)

    @cached_property
    def sources(self) -> Ledger:
        """What was ingested: from where, and how."""
        return Ledger(self.path / "sources", self._publish, self.create)

    @cached_property
    def outcomes(self) -> Ledger:
        """Outcomes that people gave."""
        return Ledger(self.path / "outcomes", self._publish, self.create)

    @cached_property
    def forgotten(self) -> Ledger:
        """What is to be left out."""
        return Ledger(self.path / "forgotten", self._publish, self.create)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """coaudit.toml, or {} where there is none. Secrets are never read from it."""
        self.pull()
        path = self.path / "coaudit.toml"
        if not path.is_file():
            return {}
        try:
            return toml.parse(path.read_bytes())
        except ValueError as error:
            raise StoreError(f"{path}: {error}") from error

    @property
    def store_url(self) -> str:
        """Where the tables live: `store` of coaudit.toml, else the DuckDB file of the workspace."""
        setting = str(self.settings.get("store", ""))
        if not setting:
            return str(self.database)
        if (scheme := re.match(r"[A-Za-z][\w+.-]+:", setting)) and scheme[0] != "ducklake:":
            raise StoreError(
                f"{self.path / 'coaudit.toml'}: `store` must be the path of a file, ducklake:sqlite:PATH or "
                f"ducklake:postgres:CONNECTION, got {scheme[0]}..."
            )
        kind = next((kind for kind in ("ducklake:sqlite:", "ducklake:") if setting.startswith(kind)), "")
        return setting if kind == "ducklake:" else kind + self.resolve_path(setting.removeprefix(kind))

    def resolve_path(self, path: str) -> str:
        """A path of coaudit.toml, which is relative to the folder of the workspace; a URL as it is."""
        return path if "://" in path else str(self.path.absolute() / path)

    @property
    def shown_store(self) -> str:
        """Where the tables lie, without any password."""
        return without_password(self.store_url)

    @property
    def has_begun(self) -> bool:
        """Whether this workspace has ledgers, and so is its own study."""
        return (self.path / "secret").exists() or self.sources.exists() or self.ratings.exists()

    @property
    def study(self) -> str:
        """Identifies this study on every machine that works on it."""
        return content_hash("study", self.secret().hex())[:16]

    @property
    def home(self) -> str:
        """Where the ledgers lie."""
        return str(self.remote or self.path.absolute())

    def exists(self) -> bool:
        """Whether anything was ever ingested or rated here, or tables lie where others can look at them."""
        return self.has_begun or self.database.exists() or self.store_url != str(self.database)

    @property
    def is_writable(self) -> bool:
        """Whether this process may bring the database up to the ledgers: a colleague may only be given a
        study to read. True where there is nothing yet."""
        return all(os.access(path, os.W_OK) for path in (self.path, self.database) if path.exists())

    def create(self) -> None:
        """Make the folder, for its owner alone: logs are confidential. Everything that writes begins here.

        StoreError where it can't be made, or nothing may be written.
        """
        if self.read_only:
            raise StoreError(f"{self.home}: {self.read_only}, so nothing is written to it")
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.path}: cannot make the workspace: {error.strerror}") from error
        if not os.access(self.path, os.W_OK):
            raise StoreError(f"{self.path}: the workspace is read-only")

    def secret(self) -> bytes:
        """32 random bytes that only this workspace has, made at first use."""
        path = self.path / "secret"
        if not _holds_something(path):
            self.create()
            with FolderLocks(self.path / "locks").exclusive("secret", lambda holder: None):
                if not _holds_something(path):
                    disk.put(path, self.remote.secret() if self.remote else secrets.token_bytes(32))
        return path.read_bytes()


def _holds_something(path: Path) -> bool:
    """Whether a file is there with anything in it: a kill or a full disk may have left an empty one."""
    return path.exists() and path.stat().st_size > 0
