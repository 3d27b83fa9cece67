"""A Postgres and an S3-compatible object store of one's own, each on a free port of 127.0.0.1."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

BUCKET = "bucket"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@contextmanager
def running(command: list[str], ready: Callable[[], object], **settings: object) -> Iterator[None]:
    """A server, once it answers."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, **{**quiet, **settings})  # type: ignore[call-overload]
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                ready()
                break
            except OSError:
                assert process.poll() is None, f"{command[0]} ended at once"
                assert time.monotonic() < deadline, f"{command[0]} does not answer"
                time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


def programs() -> Path:
    """Where Postgres' programs lie; Debian keeps them off the PATH."""
    places = [Path(one).parent for one in (shutil.which("initdb"),) if one]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    places = [one for one in places if (one / "initdb").exists()]
    if places:
        return places[0]
    if os.environ.get("COAUDIT_REQUIRE_SERVERS"):
        pytest.fail("Postgres is not installed, but COAUDIT_REQUIRE_SERVERS is set")
    pytest.skip("Postgres is not installed: a catalog that machines share lies there")


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A Postgres with one database; the string to connect with."""
    where, port = programs(), free_port()
    folder.mkdir(parents=True)
    as_whom: list[str] = []
    if os.geteuid() == 0:  # it refuses to run as root
        as_whom = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
        for above in folder.parents:
            if above.owner() == "root" and above != Path("/") and "pytest" in str(above):
                above.chmod(above.stat().st_mode | 0o011)
    made = [*as_whom, str(where / "initdb"), "-D", str(folder / "db"), "-A", "trust", "-U", "postgres"]
    subprocess.run(made, check=True, capture_output=True, cwd="/")
    command = [*as_whom, str(where / "postgres"), "-D", str(folder / "db"), "-p", str(port), "-F"]
    command += ["-c", "logging_collector=on", "-c", "log_directory=."]
    conninfo = f"dbname=postgres host=127.0.0.1 port={port} user=postgres"

    def ready() -> None:
        import psycopg

        try:
            psycopg.connect(conninfo).close()
        except psycopg.OperationalError as error:
            raise ConnectionError(str(error)) from error

    with running([*command, "-k", str(folder), "-h", "127.0.0.1"], ready, cwd="/"):
        yield conninfo


@contextmanager
def object_store() -> Iterator[dict[str, str]]:
    """An S3 with an empty bucket; the variables by which it is reached."""
    pytest.importorskip("moto", reason="moto's server is not installed")
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-P", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]

    def ready() -> None:
        request = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")
        urllib.request.urlopen(request, timeout=5).close()

    with running(command, ready):
        yield {
            "AWS_ACCESS_KEY_ID": "anybody",
            "AWS_SECRET_ACCESS_KEY": "hush-hush",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": endpoint,
        }


_MAIN = "import runpy; runpy.run_module('coaudit.pipeline', run_name='__main__', alter_sys=True)"


@dataclass
class Machine:
    """One of those that work on a study: its own mirrors, and what it knows of servers."""

    folder: Path
    workspace: str
    environment: Mapping[str, str] = field(default_factory=dict)
    changed: str = ""
    """Python that its processes run before anything else."""

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Begin a command there."""
        known = {"COAUDIT_MIRRORS": str(self.folder), "COAUDIT_WORKSPACE": self.workspace}
        return subprocess.Popen(
            [sys.executable, "-P", "-c", f"{self.changed}\n{_MAIN}", *map(str, arguments)],
            env={**os.environ, **known, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: object, status: int = 0) -> str:
        """Run a command there to its end; what it printed, or what it complained of."""
        process = self.start(*arguments)
        out, err = process.communicate()
        assert process.returncode == status, err
        return out if status == 0 else err
