"""From the store to Label Studio: which project a sample's codebook has, and the tasks it lacks.

A project belongs to one sample, one codebook and one version of it; its description says so, together with
the hash of the configuration we gave it, by which a change by hand is noticed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...annotation.labelstudio import Server, answers, client
from ...annotation.labelstudio import config as label_config
from ...annotation.labelstudio import tasks as labelstudio_tasks
from ...schemas import Codebook, Rating, Trajectory
from ...schemas.unit import unit_hash
from ..errors import CoauditError
from ..store import Store, dictionaries
from ..store.samples import Drawn, Sample
from ..units import spans
from . import draw
from .project import book_of, check_context, keep_codebook, project_of, reported, subject

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
        return draw.only_judge(connection, list(sample.design.codebooks), named)


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
    client.check_config(config, [p["result"] for t in tasks for p in t.get("predictions", ())])
    keep_codebook(store.workspace, book)
    usual = Counter(unit.overlap for unit in units).most_common(1)[0][0]
    project, notes = project_of(server, sample, book, config, context, usual, reset_config)
    sent = client.upload_missing(
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
    result = answers.prediction(book, ratings, data["transcript"], data["seqs"])
    sure = [r.probability for r in ratings if r.probability is not None]
    return {"model_version": judge, "result": result, **({"score": min(sure)} if sure else {})}


def _judgments(store: Store, book: Codebook, judge: str) -> dict[tuple[str, int | None], list[Rating]]:
    query = """
        SELECT trajectory_id, event, code, rater, rater_kind, label, probability, cites
        FROM counted_ratings WHERE codebook = ? AND rater = ? AND label IS NOT NULL
    """
    with store.reading() as connection:
        rows = dictionaries(connection, query, [book.name, judge])
    said: dict[tuple[str, int | None], list[Rating]] = {}
    for row in rows:
        place = (row.pop("trajectory_id"), row["event"])
        rating = Rating(
            trajectory=place[0], codebook=book.name, **{**row, "cites": tuple(row["cites"] or ())}
        )
        said.setdefault(place, []).append(rating)
    return said


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
