"""A Label Studio server of one's own: installed into its own environment, on 127.0.0.1, without telemetry."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

PACKAGE = "label-studio>=1.23"
HOST = "127.0.0.1"
QUIET = {
    "COLLECT_ANALYTICS": "false",
    "LATEST_VERSION_CHECK": "false",
    "SENTRY_DSN": "",
    "FRONTEND_SENTRY_DSN": "",
}
"""With these Label Studio makes no outbound call."""


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
    kept = {key: value for key, value in os.environ.items() if not key.startswith("LABEL_STUDIO_")}
    given = {**kept, **QUIET, "LABEL_STUDIO_BASE_DATA_DIR": str(data), **(settings or {})}
    command = [str(program(environment)), "start", "--no-browser", "--internal-host", HOST]
    command += ["--port", str(port), "--data-dir", str(data)]
    with log.open("ab") as out:
        return subprocess.Popen(command, env=given, stdout=out, stderr=subprocess.STDOUT, cwd=data)


def wait(process: subprocess.Popen[bytes], port: int, log: Path, seconds: float = 180.0) -> str:
    """The server's URL once it answers; InstallError with the end of its log where it does not."""
    url = f"http://{HOST}:{port}"
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        if healthy(url):
            return url
        time.sleep(0.3)
    stop(process)
    told = log.read_text(errors="replace")[-600:] if log.exists() else ""
    raise InstallError(f"Label Studio did not start on {url}: {told}")


def healthy(url: str) -> bool:
    """Whether a Label Studio answers there."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=3) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
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
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallError(f"{' '.join(command[:4])} … failed: {done.stderr.strip()[-600:]}")
