"""Seconds to push 2,000 tasks and to pull 2,000 annotations, on a Label Studio of this machine.

    python benchmarks/labelstudio.py [--tasks 2000]

Utterances of the sample logs, repeated under new trajectory ids, each task with its whole transcript. The
annotations get into the project by an import of the tasks with annotations: a POST each would take minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from coaudit.annotation.labelstudio import Server
from coaudit.annotation.labelstudio import server as labelstudio_server
from coaudit.pipeline import codebooks
from coaudit.pipeline.annotate import draw, pull, push
from coaudit.pipeline.ingest import run as ingest
from coaudit.pipeline.ingest.measure import save
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.store.ledgers import samples
from coaudit.pipeline.systems import ReadOptions
from tests.annotation.labelstudio.running import TOKEN, Running, choice, started

T = TypeVar("T")
LOGS = Path(__file__).resolve().parents[1] / "data" / "cogym"


def corpus(folder: Path, tasks: int) -> Store:
    """A store with at least so many utterances."""
    store = Store(Workspace(folder / "workspace"))
    ingest.ingest(store, [LOGS], ReadOptions())
    with store.reading() as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM trajectories").fetchall()]
        known = store.load(connection, ids, states=True)
        (utterances,) = connection.execute(
            "SELECT count(*) FROM units WHERE kind = 'utterance' AND NOT opening"
        ).fetchall()[0]
    copies = range(tasks // utterances + 1)
    more = [t.model_copy(update={"id": f"{n}-{t.id}"}) for n in copies for t in known]
    with store.writing() as connection:
        save(store, more, connection)
    return store


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=2000)
    tasks = parser.parse_args().tasks
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        running = started(folder)
        try:
            measure(corpus(folder, tasks), running, tasks)
        finally:
            labelstudio_server.stop(running.process)


def measure(store: Store, running: Running, tasks: int) -> None:
    wish = draw.Wish(codebooks=("initiative",), name="bench", size=tasks, overlap=0, annotators=1)
    sample = draw.draw(store, wish)
    with Server(running.url, TOKEN) as server:
        (pushed,) = timed(f"push {tasks} tasks", running, lambda: push.push(store, server, sample))
        timed("push again", running, lambda: push.push(store, server, sample))
        annotate(store, running, sample, pushed.project)
        done = timed(f"pull {tasks} annotations", running, lambda: pull.pull(store, server, sample))
        assert done.rated == tasks, done
        timed("pull again", running, lambda: pull.pull(store, server, sample))


def annotate(store: Store, running: Running, sample: samples.Sample, project: int) -> None:
    """The same tasks once more with an annotation each, in place of the empty ones."""
    running.api("POST", "/api/dm/actions", params={"id": "delete_tasks", "project": project}, json=EVERYTHING)
    book = codebooks.load("initiative")
    tasks = [task for task in push.tasks_of(store, sample, book, sample.units) if not isinstance(task, str)]
    for start in range(0, len(tasks), 250):
        some = [{**task, "annotations": [GIVEN]} for task in tasks[start : start + 250]]
        running.api("POST", f"/api/projects/{project}/import", json=some)


GIVEN = {"result": [choice("yes")], "ground_truth": False}  # an import makes it true where it is not said
EVERYTHING = {"selectedItems": {"all": True, "excluded": []}}


def timed(what: str, running: Running, do: Callable[[], T]) -> T:
    """Wall time, and the processor time of both sides, which a busy machine does not stretch as much."""
    began, ours, theirs = time.perf_counter(), time.process_time(), cpu(running)
    result = do()
    wall, ours, theirs = time.perf_counter() - began, time.process_time() - ours, cpu(running) - theirs
    print(f"{what}: {wall:.2f} s (processor: coaudit {ours:.2f} s, server {theirs:.2f} s)", flush=True)
    return result


def cpu(running: Running) -> float:
    """Processor seconds that the server has used."""
    fields = Path(f"/proc/{running.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
