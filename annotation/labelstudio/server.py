"""A Label Studio server of one's own: installed into its own environment, on 127.0.0.1, without telemetry."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from ...schemas.url import is_local
from .deadline import within

PACKAGE = "label-studio>=1.23"
HOST = "127.0.0.1"
QUIET = {
    "COLLECT_ANALYTICS": "false",
    "LATEST_VERSION_CHECK": "false",
    "SENTRY_DSN": "",
    "FRONTEND_SENTRY_DSN": "",
}
"""With these Label Studio makes no outbound call."""
PATIENCE = 1800.0
"""Seconds that a start may take: making the database takes minutes where the machine is busy."""
LONGEST_ANSWER = 1 << 16
"""Bytes; Label Studio says in fewer that it is healthy, and others may never end."""
TELL = 15.0
"""Seconds between two words on how far a start is."""
_REASONS = (
    ("No space left on device", "the disk is full"),
    ("database or disk is full", "the disk is full"),
    ("database is locked", "another program has its database open"),
    ("unable to open database file", "its database can't be opened"),
    ("readonly database", "its database can't be written"),
    ("Permission denied", "a file of its own can't be read or written"),
    ("MemoryError", "there is not enough memory"),
    ("ModuleNotFoundError", "its installation is not whole; delete the environment, then start again"),
    ("ImportError", "its installation is not whole; delete the environment, then start again"),
)
"""What its log says -> what that means."""


class InstallError(Exception):
    """Label Studio can't be installed or does not start; the message ends with what the tool said."""


def default_environment() -> Path:
    """Where the environment is kept between runs."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "coaudit" / "label-studio"


def program(environment: Path) -> Path:
    """The `label-studio` command in an environment."""
    return environment / ("Scripts" if os.name == "nt" else "bin") / "label-studio"


def install(environment: Path, say: Callable[[str], None] = lambda text: None) -> Path:
    """The `label-studio` command, installed from the registry where it is not there yet (some 800 MB)."""
    if program(environment).exists():
        return program(environment)
    say(f"installing {PACKAGE} into {environment}")
    environment.parent.mkdir(parents=True, exist_ok=True)
    python = program(environment).with_name("python")
    if uv := shutil.which("uv"):
        _run([uv, "venv", "-q", "--clear", "--python", sys.executable, str(environment)])
        _run([uv, "pip", "install", "-q", "--python", str(python), PACKAGE])
    else:
        _run([sys.executable, "-m", "venv", "--clear", str(environment)])
        _run([str(python), "-m", "pip", "install", "-q", PACKAGE])
    return program(environment)


def start(
    environment: Path, port: int, data: Path, log: Path, settings: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start the server on 127.0.0.1; it lives until it is terminated. `settings` go into its environment."""
    data.mkdir(parents=True, exist_ok=True)
    base = {key: value for key, value in os.environ.items() if not key.startswith("LABEL_STUDIO_")}
    variables = {
        **base,
        **QUIET,
        "PYTHONUNBUFFERED": "1",
        "LABEL_STUDIO_BASE_DATA_DIR": str(data),
        **(settings or {}),
    }
    command = [str(program(environment)), "start", "--no-browser", "--internal-host", HOST]
    command += ["--port", str(port), "--data-dir", str(data)]
    with log.open("wb") as out:
        return subprocess.Popen(command, env=variables, stdout=out, stderr=subprocess.STDOUT, cwd=data)


@contextmanager
def running_server(environment: Path, port: int, data: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server that ends with the block, also where the program is told to end (SIGTERM, as SIGINT)."""
    if not _is_free(port):
        raise InstallError(f"port {port} on {HOST} is taken by another program; choose another one")
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        process = start(environment, port, data, log)
        try:
            yield process
        finally:
            stop(process)
    finally:
        signal.signal(signal.SIGTERM, before)


def wait(
    process: subprocess.Popen[bytes],
    port: int,
    log: Path,
    seconds: float = PATIENCE,
    say: Callable[[str], None] = lambda text: None,
) -> str:
    """The server's URL once it answers; InstallError with the reason in a sentence where it does not."""
    url = f"http://{HOST}:{port}"
    start_time = last_report = time.monotonic()
    while (now := time.monotonic()) < start_time + seconds and process.poll() is None:
        if is_healthy(url):
            return url
        if now >= last_report + TELL:
            last_report = now
            say(f"still starting after {now - start_time:.0f} s: {_stage(log)}")
        time.sleep(0.3)
    status = process.poll()
    stop(process)
    raise InstallError(f"Label Studio did not start: {reason(log, status, seconds)} (its log: {log})")


def reason(log: Path, status: int | None, seconds: float = PATIENCE) -> str:
    """Why a server ended with this status, or (None) did not answer in time."""
    tail = _tail(log)
    for sign, meaning in _REASONS:
        if sign in tail:
            return meaning
    if status is None:
        return f"it did not answer within {seconds:.0f} s"
    if status == -signal.SIGKILL:
        return "it was killed, most likely for want of memory"
    last = next((line.strip() for line in reversed(tail.splitlines()) if line.strip()), "and said nothing")
    return f"it ended with status {status}: {last[:200]}"


def _stage(log: Path) -> str:
    lines = [line for line in _tail(log).splitlines() if line.strip()]
    if lines and "Applying" in lines[-1]:
        return "it makes its database (only the first time)"
    return "it loads its program" if not lines else "it gets ready to answer"


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-4000:] if log.exists() else ""


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except OSError:
            return False
    return True


def is_healthy(url: str) -> bool:
    """Whether a Label Studio answers there."""

    def is_up() -> bool:
        with httpx.stream("GET", f"{url}/health", trust_env=not is_local(url)) as answer:
            body = next(answer.iter_raw(LONGEST_ANSWER), b"")
            return answer.status_code == 200 and len(body) < LONGEST_ANSWER

    try:
        return within(3, is_up)
    except (httpx.HTTPError, TimeoutError):
        return False


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a server that `start` started."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise InstallError(f"{' '.join(command[:4])} … failed: {result.stderr.strip()[-600:]}")
