"""To the cluster that RAY_ADDRESS names, or to a Ray of one's own on this machine."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from .. import guard
from ..protocol import Fatal
from . import local

if TYPE_CHECKING:
    from ..engines import Engine

ADDRESS = "RAY_ADDRESS"
STARTING_SECONDS = 180.0


class Connection:
    """Opened when there is something to ask; what it started ends with it, or with this process."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.log = engine.logs / f"ray-{os.getpid()}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None

    def open(self) -> None:
        """Connect; Fatal where that fails."""
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        address = os.environ.get(ADDRESS)
        if not address:
            key = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
            os.environ.update({**local.ALONE, **key})
            address = self._start()
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
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def explained(self, error: Exception) -> str:
        """Why a dataset failed: what the worker said last."""
        cause: BaseException = error
        while (inner := getattr(cause, "cause", None) or cause.__cause__) is not None and inner is not cause:
            cause = inner
        lines = [line for line in str(cause).splitlines() if line.strip()]
        return "Ray gave up: " + "\n".join(line[:300] for line in lines[-6:])

    def _start(self) -> str:
        """A Ray below a guard; its address."""
        self._folder = Path(tempfile.mkdtemp(prefix="coaudit-ray-"))
        cpus = max(os.cpu_count() or 1, (self.engine.workers or 1) + 2)
        command = [sys.executable, "-P", local.__file__, str(self._folder), str(cpus)]
        self.engine.say(f"starting Ray on this machine; its log is {self.log}")
        self._process = guard.hold(command, self.log, {})
        deadline = time.monotonic() + STARTING_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines():
                if line.startswith("address="):
                    return line.removeprefix("address=")
            time.sleep(0.1)
        raise Fatal(f"Ray did not start; the last lines of {self.log}:\n{guard.tail(self.log)}")
