"""To the cluster that RAY_ADDRESS names, or to a Ray of one's own on this machine."""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .. import guard
from ..engine import Engine
from ..protocol import Fatal
from . import local

ADDRESS = "RAY_ADDRESS"
_ERROR_LINE = re.compile(r"[\w.]*(?:Error|Exception|Exit)\b.*: ")
STARTING_SECONDS = 600.0
KNOCK_SECONDS = 10.0


class Connection:
    """Opened when there is something to ask; what it started ends with it, or with this process."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.log = engine.logs / f"ray-{os.getpid()}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def open(self) -> None:
        """Connect; Fatal where that fails."""
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        address = os.environ.get(ADDRESS)
        if not address:
            key = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
            os.environ.update({**local.ALONE, **key})
            address = self._start()
        _knock(address)
        import ray

        logging.getLogger("ray").setLevel(logging.ERROR)
        try:
            ray.init(address, log_to_driver=False, logging_level="ERROR", namespace="coaudit")
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise Fatal(f"Ray at {address} cannot be reached: {error}") from error
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        for name in ("ray", "ray.data"):
            logging.getLogger(name).setLevel(logging.ERROR)

    def close(self) -> None:
        """Leave the cluster, and end what was started for this run."""
        if "ray" in sys.modules:
            import ray

            ray.shutdown()
        if self._process is not None:
            guard.release(self._process)

    def _start(self) -> str:
        """A Ray below a guard; its address."""
        folder = Path(tempfile.mkdtemp(prefix="coaudit-ray-"))
        cpus = max(self.engine.cores, (self.engine.workers or 1) + 2)
        command = [sys.executable, "-P", local.__file__, str(folder), str(cpus)]
        self.engine.say(f"starting Ray on this machine; its log is {self.log}")
        try:
            self._process = guard.hold(command, self.log, {}, folder)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise Fatal(f"Ray cannot be started: {error}") from error
        deadline = time.monotonic() + STARTING_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines():
                if line.startswith("address="):
                    return line.removeprefix("address=")
            time.sleep(0.1)
        raise Fatal(f"Ray did not start; the last lines of {self.log}:\n{guard.tail(self.log)}")


def _knock(address: str) -> None:
    """Fatal at once where nothing listens: Ray would go on trying for a long time."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdecimal()):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_SECONDS).close()
    except OSError as error:
        raise Fatal(f"Ray at {address} cannot be reached: {error}") from error


def failure_reason(error: Exception) -> str:
    """Why a dataset failed: the first error raised in a worker, which Ray wraps in errors of its own."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR_LINE.match(line) and "UserCodeException" not in line]
    return f"Ray gave up: {(errors or lines[-1:] or [repr(error)])[0][:600]}"
