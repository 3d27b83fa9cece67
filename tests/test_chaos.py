"""Every verb is killed at each step to the disk, meets a full disk there, and runs beside every other verb.

Afterwards nothing that was acknowledged is missing, nothing is there twice, and a rebuild gives the same.
"""

from __future__ import annotations

import errno
import itertools
import json
import multiprocessing
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import ModuleType

import pytest

from coaudit.pipeline.annotate.project import Mark
from coaudit.pipeline.cli import main
from coaudit.pipeline.ingest.rebuild import rebuild
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.store import Store, Workspace, disk
from coaudit.pipeline.store.ledgers import samples
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.cogym.generate import generate
from tests.annotation.labelstudio import stub
from tests.conftest import ROOT

pytestmark = pytest.mark.slow
# Children are forked from a server that has imported all this and opened nothing.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "tests.test_chaos",
        *(f"coaudit.pipeline.cli.{m}" for m in ("ingest", "judge", "ratings", "outcomes", "metrics")),
        *(f"coaudit.pipeline.cli.{m}" for m in ("sample", "labelstudio", "follow")),
    ]
)
TABLES = {
    "trajectories": "id, native_id, n_events, digest",
    "events": "trajectory_id, seq, sub, kind, text",
    "units": "*",
    "sources": "path, content_hash",
    "counted": "trajectory_id, event, codebook, code, rater, label",
    "outcomes": "*",
    "measured": "metric, trajectory_id, value, participant, rater, scoring, definition",
    "samples": "sample, trajectory_id, event, codebook, probability",
}


@pytest.fixture(scope="module")
def forks() -> Iterator[None]:
    """The server of forks finds this module by PYTHONPATH; a child would run what Streamlit's tests leave as
    the main module, so it gets an empty one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setitem(sys.modules, "__main__", ModuleType("__main__"))
        yield


@pytest.fixture(scope="module")
def base(forks: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs, ratings and outcomes to bring in, and a workspace that has some already."""
    folder = tmp_path_factory.mktemp("chaos")
    generate(folder / "a", 3, 1)
    generate(folder / "b", 3, 2)
    store = Store(Workspace(folder / "workspace"))
    ingest(store, [folder / "a"], ReadOptions())
    with store.reading() as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM trajectories ORDER BY 1").fetchall()]
    outcome = [{"trajectory": key, "name": "satisfaction", "value": 4} for key in ids]
    (folder / "outcomes.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in outcome))
    _sampled(folder)
    return folder


def _sampled(folder: Path) -> None:
    """Draw a sample, and have its tasks as Label Studio would be given them."""
    workspace = folder / "workspace"
    for arguments in (
        ["sample", "--codebook", "initiative", "--size", "5"],
        ["labelstudio", "export", str(folder / "tasks")],
    ):
        assert run(workspace, arguments)[0] == 0


@pytest.fixture(scope="module")
def label_studio(base: Path) -> Iterator[None]:
    """A stub that lists the sample's tasks as labelled: a real server's answers take a second each."""
    (path,) = (base / "tasks").glob("*.tasks.json")
    tasks = json.loads(path.read_text())
    sample = samples.load(Workspace(base / "workspace"), None)
    version = tasks[0]["data"]["codebook_version"]
    mark = Mark(sample.design.identity, "initiative", version, "transcript", "0")
    listed = [stub.annotated(task, n, ("yes", "no")[n % 2]) for n, task in enumerate(tasks, 1)]
    with pytest.MonkeyPatch.context() as patch, stub.serving(mark.text(), listed) as url:
        patch.setenv("LABEL_STUDIO_URL", url)
        patch.setenv("LABEL_STUDIO_API_KEY", "0123456789abcdef0123456789abcdef01234567")
        yield


def verbs(base: Path) -> dict[str, list[str]]:
    return {
        "ingest": ["ingest", str(base / "b")],
        "judge": ["judge", "--codebook", "initiative"],
        "ratings": ["ratings", "import", str(base / "a" / "truth.jsonl")],
        "outcomes": ["outcomes", "import", str(base / "outcomes.jsonl")],
        "rebuild": ["rebuild"],
        "metrics": ["metrics", "--json"],
        "sample": ["sample", "--codebook", "halting", "--name", "second", "--size", "5"],
        "pull": ["labelstudio", "pull", "--sample", "sample"],
        "follow": ["follow", str(base / "b"), "--judge", "initiative", "--stop-when-idle", "0.5"],
    }


def fresh(base: Path, folder: Path) -> Path:
    shutil.copytree(base / "workspace", folder)
    return folder


def child(workspace: Path, arguments: Sequence[str], how: str, at: int, environment: dict[str, str]) -> None:
    """Run a command whose step number `at` to the disk is its last one, or finds the disk full."""
    left = [at]
    os.environ.update(environment)

    def fault(point: str, path: Path) -> None:
        left[0] -= 1
        if left[0] == 0 and how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if left[0] == 0 and how == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    disk.fault = fault
    with workspace.with_suffix(f".{os.getpid()}").open("w") as said:
        os.dup2(said.fileno(), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.argv = ["coaudit", "--workspace", str(workspace), *arguments]
        main.main()


def start(workspace: Path, arguments: Sequence[str], how: str = "", at: int = 0) -> ForkServerProcess:
    environment = {name: value for name, value in os.environ.items() if name.startswith("LABEL_STUDIO_")}
    process = FORKS.Process(target=child, args=(workspace, arguments, how, at, environment))
    process.start()
    return process


def ended(process: ForkServerProcess, workspace: Path) -> tuple[int, str]:
    process.join(180)
    assert process.exitcode is not None, "it did not end"
    return process.exitcode, workspace.with_suffix(f".{process.pid}").read_text()


def run(workspace: Path, arguments: Sequence[str], how: str = "", at: int = 0) -> tuple[int, str]:
    return ended(start(workspace, arguments, how, at), workspace)


def content(workspace: Path) -> dict[str, list[str]]:
    with Store(Workspace(workspace)).reading() as connection:
        return {
            table: sorted(map(str, connection.execute(f"SELECT {columns} FROM {table}").fetchall()))
            for table, columns in TABLES.items()
        }


def ratings(workspace: Path) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in (workspace / "ratings").glob("*.jsonl"))


BROKEN = ("ingest", "judge", "ratings", "outcomes", "rebuild", "sample", "pull", "follow")
AFTERWARDS = {"follow": ["judge", "--codebook", "initiative"]}
"""What a follower stored and had not rated when it was killed, `judge` rates. It has some sixty steps, of
which nine are broken."""


@pytest.mark.parametrize("verb", BROKEN)
@pytest.mark.parametrize("how", ["kill", "full"])
def test_broken_at_each_step_to_the_disk_a_verb_is_whole_when_it_is_run_again(
    base: Path, label_studio: None, tmp_path: Path, verb: str, how: str
) -> None:
    arguments = verbs(base)[verb]
    whole = fresh(base, tmp_path / "whole")
    assert run(whole, arguments)[0] == 0
    if verb in AFTERWARDS:
        assert run(whole, AFTERWARDS[verb])[0] == 0
    expected, lines = content(whole), ratings(whole)
    for at in itertools.chain(range(1, 4), itertools.count(6, 9)) if verb == "follow" else itertools.count(1):
        workspace = fresh(base, tmp_path / str(at))
        status, said = run(workspace, arguments, how, at)
        if status == 0:
            break
        assert status == (-signal.SIGKILL if how == "kill" else 1), said
        assert how == "kill" or ("No space left" in said and str(workspace) in said)
        again, said = run(workspace, arguments)
        assert again == 0, said
        if verb in AFTERWARDS:
            assert run(workspace, AFTERWARDS[verb])[0] == 0
        assert content(workspace) == expected, at
        assert ratings(workspace) == lines, "nothing is asked or written twice"
        rebuild(Store(Workspace(workspace)))
        assert content(workspace) == expected, at
    assert at > 2, "some step was broken"


VERBS = ("ingest", "judge", "ratings", "outcomes", "rebuild", "metrics")


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations_with_replacement(VERBS, 2)))
def test_two_verbs_at_once_leave_what_both_would_one_after_the_other(
    base: Path, tmp_path: Path, one: str, other: str
) -> None:
    both = [verbs(base)[one], verbs(base)[other]]
    after = fresh(base, tmp_path / "after")
    for arguments in both:
        assert run(after, arguments)[0] == 0
    workspace = fresh(base, tmp_path / "at-once")
    running = [start(workspace, arguments) for arguments in both]
    ends = [ended(process, workspace) for process in running]
    assert [status for status, _ in ends] == [0, 0], ends
    # Judging while sessions come in rates those that were there: the next run rates the rest.
    for arguments in both:
        assert run(workspace, arguments)[0] == 0
        assert run(after, arguments)[0] == 0
    assert content(workspace) == content(after)
    before = content(workspace)
    rebuild(Store(Workspace(workspace)))
    assert content(workspace) == before


def test_all_verbs_at_once_end_and_lose_nothing(base: Path, tmp_path: Path) -> None:
    workspace = fresh(base, tmp_path / "w")
    known = verbs(base)
    running = [start(workspace, known[name]) for name in ("ingest", "judge", "metrics", "ratings", "rebuild")]
    ends = [ended(process, workspace) for process in running]
    assert [status for status, _ in ends] == [0] * 5, ends
    assert len(content(workspace)["trajectories"]) == 6
    assert os.listdir(workspace) and not list(workspace.glob("rebuilding-*"))
