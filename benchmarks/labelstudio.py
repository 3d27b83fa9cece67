"""Seconds to push 2,000 tasks and to pull 2,000 annotations, on a Label Studio of this machine.

    python benchmarks/labelstudio.py [--tasks 2000]

Utterances of the sample logs, repeated under new trajectory ids, each task with its whole transcript. The
annotations get into the project by an import of the tasks with annotations: a POST each would take minutes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from coaudit.annotation import labelstudio_server
from coaudit.annotation.labelstudio import Server
from coaudit.pipeline import annotating, codebooks, drawing, ingest, pulling, samples
from coaudit.pipeline.sources.reader import ReadOptions
from coaudit.pipeline.store import Store
from coaudit.pipeline.workspace import Workspace
from tests.annotation.labelstudio_fixture import TOKEN, Running, choice, started

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
        store.save(more, connection)
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
    wish = drawing.Wish(codebooks=("initiative",), name="bench", size=tasks, overlap=0)
    sample = drawing.draw(store, wish)
    with Server(running.url, TOKEN) as server:
        (pushed,) = timed(f"push {tasks} tasks", lambda: annotating.push(store, server, sample))
        timed("push again", lambda: annotating.push(store, server, sample))
        annotate(store, running, sample, pushed.project)
        done = timed(f"pull {tasks} annotations", lambda: pulling.pull(store, server, sample))
        assert done.rated == tasks, done
        timed("pull again", lambda: pulling.pull(store, server, sample))


def annotate(store: Store, running: Running, sample: samples.Sample, project: int) -> None:
    """The same tasks once more with an annotation each, in place of the empty ones."""
    running.api("POST", "/api/dm/actions", params={"id": "delete_tasks", "project": project}, json=EVERYTHING)
    book = codebooks.load("initiative")
    tasks, _ = annotating.tasks_of(store, sample, book, sample.units)
    for start in range(0, len(tasks), 250):
        some = [{**task, "annotations": [{"result": [choice("yes")]}]} for task in tasks[start : start + 250]]
        running.api("POST", f"/api/projects/{project}/import", json=some)


EVERYTHING = {"selectedItems": {"all": True, "excluded": []}}


def timed(what: str, do):  # type: ignore[no-untyped-def]
    began = time.perf_counter()
    result = do()
    print(f"{what}: {time.perf_counter() - began:.2f} s", flush=True)
    return result


if __name__ == "__main__":
    main()
