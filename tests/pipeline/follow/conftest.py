"""A real Redis on a private port, and the follower as a process of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import RedisError

from tests.conftest import needs


class Server:
    """A redis-server that can be stopped and started again on the same port."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.options = options
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> Server:
        command = ["redis-server", "--port", str(self.port), "--save", "", "--bind", "127.0.0.1"]
        self.process = subprocess.Popen(
            [*command, *self.options], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(self.listens, 10)
        return self

    def listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 0.2):
            return True
        return False

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def freeze(self) -> None:
        """Have it stand still, its connections open."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def thaw_when(self, condition: Callable[[], Any]) -> None:
        """Have it go on once something holds, meanwhile return."""

        def wait() -> None:
            try:
                until(condition)
            finally:
                self.thaw()

        threading.Thread(target=wait).start()

    def publish(self, channel: str, payload: str) -> None:
        with Redis(port=self.port) as client:
            client.publish(channel, payload.encode("utf-8", "surrogateescape"))

    def subscribers(self) -> int:
        with contextlib.suppress(RedisError), Redis(port=self.port) as client:
            return int(client.pubsub_numpat())
        return 0


def until(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    """Wait until something holds; fail where it does not come to."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so after {seconds} s"
        time.sleep(0.02)


@pytest.fixture
def redis_at(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start servers with options of their own."""
    needs("redis-server", "following Co-Gym needs a Redis server")
    started: list[Server] = []

    def start(*options: str) -> Server:
        started.append(Server(tmp_path, *options).start())
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def redis(redis_at: Callable[..., Server]) -> Server:
    """A server without a password."""
    return redis_at()


class Following:
    """A `coaudit follow` that runs beside the test."""

    def __init__(self, workspace: Path, *arguments: str | Path, **environment: str) -> None:
        command = [sys.executable, "-P", "-m", "coaudit.pipeline", "follow", *map(str, arguments), "--json"]
        env = {**os.environ, "COAUDIT_WORKSPACE": str(workspace), **environment}
        env["PYTHONPATH"] = str(Path(__file__).resolve().parents[3])
        self.errors = workspace.parent / f"follow-{time.monotonic_ns()}.err"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    @property
    def said(self) -> str:
        return self.errors.read_text()

    def began(self) -> Following:
        until(lambda: "following" in self.said or self.process.poll() is not None, 60)
        assert self.process.poll() is None, self.said
        return self

    def ready(self, server: Server) -> Following:
        until(lambda: server.subscribers() or self.process.poll() is not None)
        assert self.process.poll() is None, self.said
        return self

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def finish(self, status: int = 0, timeout: float = 120.0) -> str:
        """Wait for its end; what it wrote on stdout."""
        out, _ = self.process.communicate(timeout=timeout)
        assert self.process.returncode == status, self.said
        return out

    def stop(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        return self.finish()


@pytest.fixture
def follow(workspace: Path) -> Iterator[Callable[..., Following]]:
    """Start followers in the test's workspace; what still runs at the end is killed."""
    running: list[Following] = []

    def start(*arguments: str | Path, **environment: str) -> Following:
        running.append(Following(workspace, *arguments, **environment))
        return running[-1]

    yield start
    for one in running:
        if one.process.poll() is None:
            one.kill()
        if one.process.stdout:
            one.process.stdout.close()
    shutil.rmtree(workspace, ignore_errors=True)
