"""What tests share: the command line in a workspace of its own, and where real logs may lie."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.servers import object_store

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("COAUDIT_SHARED", ROOT.parent / "shared"))

# An example has no time limit: a machine busy with other work would fail what is right.
settings.register_profile("busy", deadline=None)
settings.load_profile("busy")


@dataclass(frozen=True)
class Finished:
    """A command that ran to its end."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


Coaudit = Callable[..., Finished]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty place for a workspace."""
    return tmp_path / "workspace"


@pytest.fixture
def coaudit(workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Coaudit:
    """Run the command line in the test's own workspace, in this process: starting one takes a second."""
    from coaudit.pipeline.cli import main

    def run(*arguments: str | Path, status: int | None = 0, **environment: str) -> Finished:
        for name, value in {"COAUDIT_WORKSPACE": str(workspace), "COLUMNS": "160", **environment}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["coaudit", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main.main()
        code = int(ended.value.code or 0)
        out, err = capsys.readouterr()
        assert status is None or code == status, err
        return Finished(code, out, err)

    return run


@pytest.fixture
def process(workspace: Path) -> Coaudit:
    """Run the command line in the test's own workspace, in a process of its own."""

    def run(*arguments: str | Path, status: int | None = 0, **environment: str) -> Finished:
        env = {**os.environ, "COAUDIT_WORKSPACE": str(workspace), "COLUMNS": "160", **environment}
        command = [sys.executable, "-P", "-m", "coaudit.pipeline", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
        if status is not None:
            assert done.returncode == status, done.stderr
        return Finished(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """How an object store of a module's own is reached."""
    with object_store() as environment:
        yield environment


@pytest.fixture
def shared() -> Path:
    """Real logs that the project does not contain; the test is skipped where they are absent."""
    if not SHARED.is_dir():
        pytest.skip(f"no real logs at {SHARED}")
    return SHARED


SLOW = (
    "dashboards/test_app.py",
    "dashboards/drawing/test_choices.py",
    "pipeline/report/test_build.py",
    "pipeline/follow/test_tail.py",
    "annotation/labelstudio/test_answers.py",
    "pipeline/judge/test_detectors.py",
)
"""Files whose tests take over a second each, most of it for a workspace of their own or for Streamlit (whose
first versions also leave event loops open, which fails whatever test comes next)."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What leaves slow tests out does not import them: Streamlit alone takes a second a worker."""
    slow = collection_path.as_posix().endswith(SLOW)
    return True if slow and config.option.markexpr.startswith("not slow") else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker runs all tests that share a server or a browser, one after the other, and imports libraries
    that others do without. A slow test, which waits for other programs on a machine that others share, is run
    once more before it counts as failed; the summary names it either way."""
    for item in items:
        if item.path.as_posix().endswith(SLOW):
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.flaky(reruns=1))
        if item.get_closest_marker("library"):
            item.add_marker(pytest.mark.xdist_group("library"))
        for shared in ("label_studio", "browser"):
            if shared in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(shared))


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: no look for garbage need go through it again."""
    gc.freeze()


def needs(program: str, why: str) -> None:
    """Skip where a server's program is absent; fail where CI promised to install it."""
    import shutil

    if shutil.which(program):
        return
    if os.environ.get("COAUDIT_REQUIRE_SERVERS"):
        pytest.fail(f"{program} is not installed, but COAUDIT_REQUIRE_SERVERS is set")
    pytest.skip(f"{program} is not installed: {why}")
