"""`labelstudio up`: a stand-in for Label Studio's program, which starts at once or does not."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coaudit.annotation.labelstudio import server
from tests.conftest import Coaudit
from tests.pipeline.stores import made

SERVES = """
import http.server, os, pathlib, time
pathlib.Path("pid").write_text(str(os.getpid()))
time.sleep(DELAY)
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *args):
        pass
http.server.HTTPServer(("127.0.0.1", port), Health).serve_forever()
"""


def installed(folder: Path, does: str) -> list[str]:
    """The options of `labelstudio up` with a program that does this."""
    program = server.program(folder / "env")
    program.parent.mkdir(parents=True)
    port = "import sys\nport = int(sys.argv[sys.argv.index('--port') + 1])\n"
    program.write_text(f"#!{sys.executable}\n{port}{does}")
    program.chmod(0o755)
    return ["--env", str(folder / "env"), "--data", str(folder / "data"), "--port", str(free_port())]


def free_port() -> int:
    with socket.socket() as free:
        free.bind((server.HOST, 0))
        return int(free.getsockname()[1])


@contextmanager
def up(options: list[str]) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-P", "-m", "coaudit.pipeline", "labelstudio", "up", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize(("number", "delay"), [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGTERM, 60)])
def test_its_server_ends_with_it_also_while_it_starts(tmp_path: Path, number: int, delay: int) -> None:
    with up(installed(tmp_path, SERVES.replace("DELAY", str(delay)))) as running:
        assert running.stderr is not None
        told = running.stderr.readline()
        assert "minutes on a busy machine" in told
        if not delay:
            told = "".join(running.stderr.readline() for _ in range(7))
            assert "/user/signup" in told and "Annotators need an account each" in told
        pid = tmp_path / "data" / "pid"
        while not pid.exists() or not pid.read_text():
            time.sleep(0.02)
        child = int(pid.read_text())
        running.send_signal(number)
        running.wait(15)
        assert not is_alive(child)
        assert "Traceback" not in running.stderr.read()


@pytest.mark.long
@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("sys.exit('OSError: [Errno 28] No space left on device')", "did not start: the disk is full"),
        ("import no_such_module_at_all", "its installation is not whole"),
        ("print('going'); sys.exit(3)", "it ended with status 3: going"),
        ("import os; os.kill(os.getpid(), 9)", "most likely for want of memory"),
    ],
)
def test_a_start_that_fails_says_why_in_a_sentence(
    coaudit: Coaudit, tmp_path: Path, does: str, why: str
) -> None:
    told = coaudit("labelstudio", "up", *installed(tmp_path, does), status=1).err
    assert why in told and "Traceback" not in told and "its log" in told


@pytest.mark.long
def test_a_port_that_another_program_has_is_named(coaudit: Coaudit, tmp_path: Path) -> None:
    options = installed(tmp_path, "")
    with socket.socket() as taken:
        taken.bind((server.HOST, int(options[-1])))
        taken.listen()
        assert (
            f"port {options[-1]} on 127.0.0.1 is taken"
            in coaudit("labelstudio", "up", *options, status=1).err
        )


@pytest.mark.slow
def test_a_slow_start_is_told_and_one_that_never_answers_ends_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "TELL", 0.2)
    log, data, said = tmp_path / "log", tmp_path / "data", list[str]()
    installed(tmp_path, "import time; print('  Applying tasks.0001 ... OK', flush=True); time.sleep(60)")
    port = free_port()
    with (
        server.running_server(tmp_path / "env", port, data, log) as process,
        pytest.raises(server.InstallError, match="it did not answer within 2 s"),
    ):
        server.wait(process, port, log, seconds=2, say=said.append)
    assert process.poll() is not None
    assert any("it makes its database (only the first time)" in line for line in said)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("htp://me:hunter2@h", "got 'htp://h'"),
        ("http://me:hunter2@h", "more than 'http://h'"),
        ("https://h/ls?key=hunter2", "more than 'https://h/ls'"),
    ],
)
def test_an_address_with_a_secret_is_refused_before_it_stands_in_a_ledger_and_not_shown(
    coaudit: Coaudit, workspace: Path, url: str, said: str
) -> None:
    made(workspace)
    told = coaudit("labelstudio", "pull", status=2, LABEL_STUDIO_API_KEY="key", LABEL_STUDIO_URL=url)
    assert said in told.err and "hunter2" not in told.err
