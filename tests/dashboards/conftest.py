"""A small workspace of all systems with made-up ratings and one hostile session, and the app over it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.ingest import imports
from coaudit.pipeline.ingest import run as ingest
from coaudit.pipeline.ingest.measure import save
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.systems import ReadOptions
from coaudit.schemas import Action, Event, Participant, Rating, Trajectory
from tests.conftest import ROOT, needs
from tests.dashboards import samples

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
EVIL = (
    "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'> "
    "**bold** [link](http://evil.example/) "
    "![pic](http://evil.example/p.png) &lt;b&gt; &amp; $x^2$ :red[no] \u202egnorw\u202c `code` </div></pre>"
)


def hostile() -> Trajectory:
    """A session in which every text tries to be more than text, with a message of 1 MB."""
    events = [
        Event(seq=0, actor="environment", kind="start", text=EVIL, time="2026-06-01T10:00:00"),
        Event(seq=1, actor=f"user {EVIL[:30]}", kind="message", text=EVIL, time="2026-06-01T10:01:00"),
        Event(seq=2, actor="agent", kind="message", text="A" * 1_000_000, time="2026-06-01T10:02:00"),
        Event(
            seq=3,
            actor="agent",
            kind="action",
            action=Action(name="RUN<b>", arguments={"code": EVIL}),
            status="failed",
            error=EVIL,
            time="2026-06-01T10:03:00",
        ),
    ]
    return Trajectory(
        id="hostile0000000001",
        native_id=f"env_{EVIL[:60]}",
        source="/nowhere",
        system="cogym",
        setting="real",
        condition="=1+1 <i>arm</i> **x**",
        task="related_work",
        agent_model="<b>model</b>",
        participants=(
            Participant(name=f"user {EVIL[:30]}", kind="human"),
            Participant(name="agent", kind="agent", model="<b>model</b>"),
            Participant(name="environment", kind="environment"),
        ),
        events=tuple(events),
    )


@pytest.fixture(scope="session")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace; tests do not write it."""
    folder = tmp_path_factory.mktemp("looked") / "workspace"
    store = Store(Workspace(folder))
    paths = [ROOT / "data" / name for name in ("cogym", "rehac", "overcooked", "coblock")]
    ingest.ingest(store, paths, ReadOptions())
    with store.writing() as connection:
        save(store, [hostile()], connection)
    imports.outcomes(store, ROOT / "data" / "cogym" / "real" / "outcomes.jsonl")
    lines = folder.parent / "ratings.jsonl"
    lines.write_text("\n".join([*samples.lines(store), *_evil()]) + "\n", encoding="utf-8")
    done = imports.ratings(store, lines)
    assert not done.quarantined
    return folder


def _evil() -> list[str]:
    rating = Rating(
        trajectory="hostile0000000001",
        codebook="failures",
        code="C.2",
        rater=f"rater {EVIL[:40]}",
        rater_kind="llm",
        label="present",
        cites=(1,),
        quote=EVIL,
        rationale=EVIL,
        external={"url": "javascript:window.pwned=1"},
    )
    return [json.dumps(rating.model_dump(exclude_defaults=True))]


@pytest.fixture
def here(looked: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace as the one that pages look at."""
    monkeypatch.setenv("COAUDIT_WORKSPACE", str(looked))
    return looked


RATED = ("failures", "initiative", "confirmation", "halting")


@pytest.fixture(scope="session")
def many(looked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace of thirty conditions with three versions each, one session of them hostile."""
    folder = tmp_path_factory.mktemp("many") / "workspace"
    source, store = Store(Workspace(looked), read_only=True), Store(Workspace(folder))
    query = "SELECT id FROM trajectories WHERE system = 'cogym' ORDER BY id"
    with source.reading() as connection:
        ids = [name for (name,) in connection.execute(query).fetchall()]
        known = source.load(connection, ids, states=True)
    runs = [
        known[i % len(known)].model_copy(
            update={
                "id": f"many{i:012}",
                "native_id": f"many_{i}",
                "condition": f"arm_{i % 30:02} of a long name",
                "tags": {"version": f"v{i % 3}"},
            }
        )
        for i in range(90)
    ]
    with store.writing() as connection:
        save(store, runs, connection)
    lines = folder.parent / "ratings.jsonl"
    raters = {"ann_a": "human", "judge-large": "llm"}
    some = [line for line in samples.lines(store, raters) if json.loads(line)["codebook"] in RATED]
    lines.write_text("\n".join(some) + "\n", encoding="utf-8")
    assert not imports.ratings(store, lines).quarantined
    return folder


@pytest.fixture
def thirty(many: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace of thirty conditions as the one that pages look at."""
    monkeypatch.setenv("COAUDIT_WORKSPACE", str(many))
    return many


@pytest.fixture
def copied(looked: Path, tmp_path: Path) -> Path:
    """A copy that may be written."""
    return Path(shutil.copytree(looked, tmp_path / "workspace"))


def started(workspace: Path, folder: Path | None = None) -> tuple[subprocess.Popen[bytes], str]:
    """The app over a workspace, started in a folder, once it answers, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-P", "-m", "coaudit.pipeline", "dashboard", "--port", str(port)]
    env = {**os.environ, "COAUDIT_WORKSPACE": str(workspace)}
    quiet = subprocess.DEVNULL
    app = subprocess.Popen(command, env=env, cwd=folder, stdout=quiet, stderr=quiet)
    address = f"http://127.0.0.1:{port}"
    for _ in range(150):
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=1) as answer:
                if answer.status == 200:
                    return app, address
        except OSError:
            time.sleep(0.2)
    app.kill()
    raise AssertionError("the dashboard did not start within 30 s")


@pytest.fixture(scope="session")
def app(looked: Path) -> Iterator[str]:
    """The address of the app over the workspace."""
    needs("chromium", "the browser tests drive it")
    process, address = started(looked)
    yield address
    process.terminate()
    process.wait(10)


@pytest.fixture(scope="session")
def many_app(many: Path) -> Iterator[str]:
    """The address of the app over thirty conditions."""
    needs("chromium", "the browser tests drive it")
    process, address = started(many)
    yield address
    process.terminate()
    process.wait(10)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium. While it is driven no other event loop can run in the process: not for longer
    than the module that needs it, whose tests one worker runs in one go."""
    needs("chromium", "the browser tests drive it")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()
