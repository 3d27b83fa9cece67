"""From the store to Label Studio: which project a sample's codebook has, and the tasks it lacks.

A project belongs to one sample, one codebook and one version of it; its description says so, together with
the hash of the configuration we gave it, by which a change by hand is noticed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coaudit.annotation import label_config, labelstudio, labelstudio_answers, labelstudio_tasks
from coaudit.annotation.labelstudio import LabelStudioError, Project, Server
from coaudit.annotation.labelstudio_tasks import KEY, Subject
from coaudit.pipeline import codebooks, drawing
from coaudit.pipeline.errors import CoauditError, UsageError
from coaudit.pipeline.samples import Drawn, Sample
from coaudit.pipeline.store import Store, dictionaries
from coaudit.pipeline.units import spans
from coaudit.pipeline.workspace import Workspace
from coaudit.schemas.codebook import Codebook
from coaudit.schemas.rating import Rating
from coaudit.schemas.trajectory import Trajectory
from coaudit.schemas.unit import unit_hash

CHUNK = 50
"""Trajectories in memory at once."""
Progress = Callable[[str, int, int], None]


@dataclass
class Pushed:
    """What a push did for one codebook of a sample."""

    codebook: str
    version: str
    project: int
    url: str
    title: str
    sent: int
    already: int
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Mark:
    """What a project's description says about itself."""

    sample: str
    codebook: str
    version: str
    context: str
    config: str

    @property
    def head(self) -> str:
        """The part that finds the project again."""
        return f"coaudit sample={self.sample} codebook={self.codebook}@{self.version} "

    def text(self) -> str:
        return f"{self.head}context={self.context} config={self.config}"


_MARK = re.compile(r"coaudit sample=(\w+) codebook=(\w+)@(\w+) context=(\w+) config=(\w+)")


def mark_of(project: Project) -> Mark | None:
    """The mark in a project's description; None where somebody took it out."""
    found = _MARK.search(project.description)
    return Mark(*found.groups()) if found else None


@contextmanager
def reported() -> Iterator[None]:
    """A Label Studio error becomes one that the command line shows as one message."""
    try:
        yield
    except LabelStudioError as error:
        raise CoauditError(str(error)) from error


def subject(sample: Sample, unit: Drawn, version: str) -> Subject:
    """A drawn unit under a version of its codebook."""
    identity = sample.design.identity
    return Subject(identity, unit.trajectory, unit.event, unit.unit_hash, unit.codebook, version)


def book_of(sample: Sample, name: str, workspace: Workspace) -> tuple[Codebook, list[Drawn]]:
    """A codebook as it is now, with the sample's units for it."""
    return codebooks.load(name, workspace.codebooks), [u for u in sample.units if u.codebook == name]


def push(
    store: Store,
    server: Server,
    sample: Sample,
    *,
    context: str = "transcript",
    judge: str | None = None,
    reset_config: bool = False,
    progress: Progress = lambda what, done, total: None,
) -> list[Pushed]:
    """Bring every project of the sample to what the sample says; done twice it changes nothing.

    With `judge` its labels go along as predictions: annotators are then no longer blind to it.
    """
    check_context(context)
    with reported():
        server.check()
        return [
            _push(store, server, sample, name, context, judge, reset_config, progress)
            for name in sample.design.codebooks
        ]


def only_judge(store: Store, sample: Sample, named: str | None) -> str:
    """The judge whose labels go along: the one named, or the only one there is."""
    with store.reading() as connection:
        return drawing.only_judge(connection, list(sample.design.codebooks), named)


def check_context(context: str) -> None:
    """UsageError for a context there is none of."""
    if context not in labelstudio_tasks.CONTEXTS:
        raise UsageError(f"--context must be one of {', '.join(labelstudio_tasks.CONTEXTS)}, got {context!r}")


def _push(
    store: Store,
    server: Server,
    sample: Sample,
    name: str,
    context: str,
    judge: str | None,
    reset_config: bool,
    progress: Progress,
) -> Pushed:
    book, units = book_of(sample, name, store.workspace)
    if not units:
        raise CoauditError(f"sample {sample.design.name!r} has no unit for codebook {name!r}")
    tasks, left_out = tasks_of(store, sample, book, units, context, judge)
    config = label_config.label_config(book)
    labelstudio.check_config(config, [p["result"] for t in tasks for p in t.get("predictions", ())])
    keep_codebook(store.workspace, book)
    usual = Counter(unit.overlap for unit in units).most_common(1)[0][0]
    project, notes = _project(server, sample, book, config, context, usual, reset_config)
    sent = labelstudio.upload_missing(
        server, project.id, tasks, progress=lambda done, total: progress(name, done, total)
    )
    _set_overlaps(server, project.id, sample, units, book, usual)
    return Pushed(
        codebook=book.name,
        version=book.version,
        project=project.id,
        url=f"{server.url}/projects/{project.id}",
        title=project.title,
        sent=sent,
        already=len(tasks) - sent,
        left_out=left_out,
        notes=notes,
    )


def tasks_of(
    store: Store,
    sample: Sample,
    book: Codebook,
    units: Sequence[Drawn],
    context: str = "transcript",
    judge: str | None = None,
) -> tuple[list[dict[str, Any]], list[str]]:
    """The tasks of a sample's units, and in words the units that are no longer what was drawn."""
    ids = list(dict.fromkeys(unit.trajectory for unit in units))
    said = _judgments(store, book, judge) if judge else {}
    by_place: dict[tuple[str, int | None], dict[str, Any]] = {}
    left_out: list[str] = []
    for start in range(0, len(ids), CHUNK):
        chunk = set(ids[start : start + CHUNK])
        with store.reading() as connection:
            loaded = {t.id: t for t in store.load(connection, sorted(chunk), states=True)}
        for unit in (unit for unit in units if unit.trajectory in chunk):
            task = _task(sample, book, unit, loaded.get(unit.trajectory), context)
            if isinstance(task, str):
                left_out.append(task)
                continue
            place = (unit.trajectory, unit.event)
            if judge and place in said:
                task["predictions"] = [_prediction(book, said[place], task, judge)]
            by_place[place] = task
    order = [(unit.trajectory, unit.event) for unit in units]
    return [by_place[place] for place in order if place in by_place], left_out


def _task(
    sample: Sample, book: Codebook, unit: Drawn, trajectory: Trajectory | None, context: str
) -> dict[str, Any] | str:
    where = f"trajectory {unit.trajectory}" + ("" if unit.event is None else f", event {unit.event}")
    if trajectory is None:
        return f"{where}: no longer in the store"
    for events in spans(trajectory, book.unit):
        if book.unit == "trajectory" or events[0].seq == unit.event:
            if unit_hash(book.unit, events) != unit.unit_hash:
                return f"{where}: changed since the sample was drawn"
            asked = subject(sample, unit, book.version)
            return dict(labelstudio_tasks.task(asked, trajectory, events, book, context))
    return f"{where}: no longer a unit of codebook {book.name!r}"


def _prediction(book: Codebook, ratings: list[Rating], task: dict[str, Any], judge: str) -> dict[str, Any]:
    data = task["data"]
    result = labelstudio_answers.prediction(book, ratings, data["transcript"], data["seqs"])
    sure = [r.probability for r in ratings if r.probability is not None]
    return {"model_version": judge, "result": result, **({"score": min(sure)} if sure else {})}


def _judgments(store: Store, book: Codebook, judge: str) -> dict[tuple[str, int | None], list[Rating]]:
    query = """
        SELECT trajectory_id, event, code, rater, rater_kind, label, probability, cites
        FROM counted_ratings WHERE codebook = ? AND rater = ? AND label IS NOT NULL
    """
    with store.reading() as connection:
        found = dictionaries(connection, query, [book.name, judge])
    said: dict[tuple[str, int | None], list[Rating]] = {}
    for row in found:
        place = (row.pop("trajectory_id"), row["event"])
        rating = Rating(
            trajectory=place[0], codebook=book.name, **{**row, "cites": tuple(row["cites"] or ())}
        )
        said.setdefault(place, []).append(rating)
    return said


def _project(
    server: Server,
    sample: Sample,
    book: Codebook,
    config: str,
    context: str,
    overlap: int,
    reset_config: bool,
) -> tuple[Project, list[str]]:
    """The project of this sample and codebook, made where there is none."""
    mark = Mark(sample.design.identity, book.name, book.version, context, label_config.config_hash(config))
    found = server.projects(mark.head)
    title = f"{sample.design.name} · {book.name} · {book.version}"
    if not found:
        text = f"{book.title}. Do not edit this line: {mark.text()}"
        return server.create(title, text, config, label_config.instruction(book), overlap), []
    project, notes = found[0], []
    if len(found) > 1:
        notes.append(f"{len(found)} projects carry this sample and codebook; using {project.id}, the oldest")
    before = mark_of(project) or mark
    if before.context != context:
        raise UsageError(
            f"project {project.id} was pushed with --context {before.context}: what annotators see must not "
            "change on the way; draw a new sample for another context"
        )
    if label_config.config_hash(project.config) == before.config:
        return project, notes
    if not reset_config:
        notes.append(
            f"the labelling configuration of project {project.id} was changed by hand; it is left as it is "
            "(--reset-config puts ours back)"
        )
        return project, notes
    server.configure(project.id, config, f"{book.title}. Do not edit this line: {mark.text()}")
    notes.append(f"the labelling configuration of project {project.id} was changed by hand; ours is back")
    return project, notes


def _set_overlaps(
    server: Server, project: int, sample: Sample, units: Sequence[Drawn], book: Codebook, usual: int
) -> None:
    """Tell Label Studio which tasks want another number of annotators than most."""
    if all(unit.overlap == usual for unit in units):
        return
    wanted = {subject(sample, unit, book.version).key: unit.overlap for unit in units}
    differ = [t for t in server.heads(project) if t.key in wanted and t.overlap != wanted[t.key]]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda task: server.set_overlap(task.id, wanted[str(task.key)]), differ))


def keep_codebook(workspace: Workspace, book: Codebook) -> None:
    """Keep a pushed codebook, so that its annotations can be read after it has changed."""
    path = codebook_path(workspace, book.name, book.version)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(book.model_dump_json(exclude={"version"}, indent=1), encoding="utf-8")


def codebook_path(workspace: Workspace, name: str, version: str) -> Path:
    """Where a pushed codebook is kept."""
    return workspace.raw / "labelstudio" / "codebooks" / f"{name}@{version}.json"


def pushed_codebook(workspace: Workspace, name: str, version: str) -> Codebook | None:
    """The codebook of that version: as it is now, or as it was pushed."""
    path = codebook_path(workspace, name, version)
    if path.exists():
        return Codebook.model_validate_json(path.read_bytes())
    if name in codebooks.names(workspace.codebooks):
        book = codebooks.load(name, workspace.codebooks)
        return book if book.version == version else None
    return None


def export(store: Store, sample: Sample, folder: Path, context: str = "transcript") -> list[Path]:
    """Files for people without a server of ours: tasks, configuration and instruction per codebook."""
    check_context(context)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in sample.design.codebooks:
        book, units = book_of(sample, name, store.workspace)
        tasks, _ = tasks_of(store, sample, book, units, context)
        keep_codebook(store.workspace, book)
        stem = f"{sample.design.name}.{book.name}"
        for suffix, text in (
            ("tasks.json", json.dumps(tasks, ensure_ascii=False, indent=1)),
            ("config.xml", label_config.label_config(book)),
            ("instruction.html", label_config.instruction(book)),
        ):
            path = folder / f"{stem}.{suffix}"
            path.write_text(text, encoding="utf-8")
            written.append(path)
    return written


__all__ = ["KEY", "Mark", "Pushed", "export", "mark_of", "push", "pushed_codebook", "reported", "subject"]
