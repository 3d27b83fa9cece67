"""From the store to Label Studio: which projects a sample's codebook has, and the tasks that they lack."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, TextIO

from ...annotation.labelstudio import Server, answers, client
from ...annotation.labelstudio import config as label_config
from ...annotation.labelstudio import tasks as labelstudio_tasks
from ...schemas import Codebook, Rating, Trajectory
from ...schemas.unit import unit_hash
from ..errors import CoauditError, UsageError
from ..judge.background import Backgrounds
from ..store import Store, dictionaries, disk
from ..store.ledgers.samples import Sample, SampledUnit
from ..store.queries.stream import stream
from ..units import spans
from . import draw
from .assign import adjudicates, annotator_shares
from .dispute import Dispute, disputes
from .project import (
    Mark,
    book_of,
    check_context,
    coaudit_errors,
    keep_codebook,
    mark_of,
    project_of,
    subject,
    unit_name,
)

AT_ONCE = 2_000
"""Events that are in memory at a time, unless a single trajectory has more."""
Progress = Callable[[str, int, int], None]


@dataclass
class PushResult:
    """What a push did for one project of a sample."""

    codebook: str
    version: str
    project: int
    url: str
    title: str
    annotator: str
    """Whose project it is: an e-mail address or a number; empty where it is everybody's."""
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
    people: Sequence[str] = (),
    reset_config: bool = False,
    progress: Progress = lambda what, part, total: None,
) -> list[PushResult]:
    """Create the projects and tasks that the sample asks for and that are missing; idempotent.

    Each annotator gets a project of their own; `people` are their e-mail addresses, in order, and only what
    they answer in theirs counts. With `judge` its labels go along as predictions: annotators are then no
    longer blind to it.
    """
    store.admit_writes()
    check_context(context)
    people = [address.lower() for address in people]  # as Label Studio keeps it
    _check_people(sample, people)
    with coaudit_errors():
        server.check()
        return [
            part
            for name in sample.design.codebooks
            for part in _push(store, server, sample, name, context, judge, people, reset_config, progress)
        ]


def invitation(server: Server) -> str:
    """Where annotators sign up."""
    with coaudit_errors():
        return server.invitation()


def only_judge(store: Store, sample: Sample, name: str | None) -> str:
    """The judge whose labels go along: the one named, or the only one there is."""
    with store.reading() as connection:
        return draw.only_judge(connection, list(sample.design.codebooks), name)


def _push(
    store: Store,
    server: Server,
    sample: Sample,
    name: str,
    context: str,
    judge: str | None,
    people: Sequence[str],
    reset_config: bool,
    progress: Progress,
) -> Iterator[PushResult]:
    book, units = book_of(sample, name, store.workspace)
    if not units:
        raise CoauditError(f"sample {sample.design.name!r} has no unit for codebook {name!r}")
    results = list(tasks_of(store, sample, book, units, context, judge))
    tasks = [task for task in results if not isinstance(task, str)]
    left_out = [reason for reason in results if isinstance(reason, str)]
    config = label_config.label_config(book, adjudication=adjudicates(sample))
    client.check_config(config, [p["result"] for t in tasks for p in t.get("predictions", ())])
    keep_codebook(store.workspace, book)
    identity, digest = sample.design.identity, label_config.config_hash(config)
    common = Mark(identity, book.name, book.version, context, digest)
    for mark, share, remarks in _shares(server, sample, units, common, people):
        keys = {subject(sample, unit, book.version).key for unit in share}
        own_tasks = [task for task in tasks if task["data"][labelstudio_tasks.KEY] in keys]
        project, notes = project_of(server, sample, book, config, mark, reset_config)
        upload_count = client.upload_missing(
            server, project.id, own_tasks, progress=lambda count, total: progress(name, count, total)
        )
        yield PushResult(
            codebook=book.name,
            version=book.version,
            project=project.id,
            url=f"{server.url}/projects/{project.id}",
            title=project.title,
            annotator=mark.person or (mark_of(project) or mark).person or mark.annotator,
            sent=upload_count,
            already=len(own_tasks) - upload_count,
            left_out=left_out,
            notes=remarks + notes,
        )
        left_out = []


def _shares(
    server: Server, sample: Sample, units: Sequence[SampledUnit], common: Mark, people: Sequence[str]
) -> list[tuple[Mark, Sequence[SampledUnit], list[str]]]:
    """For each project: its mark, its units, and notes on it."""
    if adjudicates(sample):
        return [(common, units, [])]
    before = [mark_of(project) for project in server.projects(common.head)]
    if before and not any(mark and mark.annotator for mark in before):
        note = (
            "this sample was pushed as one project for everybody and stays so: annotators can see each "
            "other's answers there; a new sample gives each a project of their own"
        )
        return [(common, units, [note])]
    addresses = [*people, *[""] * sample.design.annotators]
    shares = enumerate(annotator_shares(sample, units), start=1)
    return [
        (replace(common, annotator=str(number), person=addresses[number - 1]), share, [])
        for number, share in shares
        if share
    ]


def _check_people(sample: Sample, people: Sequence[str]) -> None:
    if not people:
        return
    if adjudicates(sample):
        raise UsageError("--annotator: what people disagree on is settled in one project, whoever does it")
    if len(people) != sample.design.annotators or len(set(people)) != len(people):
        raise UsageError(
            f"--annotator: sample {sample.design.name!r} was drawn for {sample.design.annotators} people, "
            f"name each once, got {', '.join(people)}"
        )
    for address in people:
        if "@" not in address or not re.fullmatch(r"[^\s<>]+", address):
            raise UsageError(f"--annotator must be an e-mail address, got {address!r}")


def tasks_of(
    store: Store,
    sample: Sample,
    book: Codebook,
    units: Sequence[SampledUnit],
    context: str = "transcript",
    judge: str | None = None,
) -> Iterator[dict[str, Any] | str]:
    """A task for each unit, in order; a message in its place where the unit is no longer what was drawn."""
    judgments = _judgments(store, book, judge) if judge else {}
    open_disputes = disputes(store, book) if adjudicates(sample) else None
    for unit, source in _with_sources(store, book, units):
        place = (unit.trajectory, unit.event)
        task = _task(sample, book, unit, source, context)
        if not isinstance(task, str) and open_disputes is not None:
            task = (
                _with_dispute(task, open_disputes[place])
                if place in open_disputes
                else f"{unit_name(unit)}: {_AGREED}"
            )
        if not isinstance(task, str) and judge and place in judgments:
            task["predictions"] = [_prediction(book, judgments[place], task, judge)]
        yield task


def _with_dispute(task: dict[str, Any], dispute: Dispute) -> dict[str, Any]:
    about = {labelstudio_tasks.DISPUTED: list(dispute.codes)}
    annotator_answers = {label_config.GIVEN: list(dispute.answers)}
    return {**task, "data": {**task["data"], **about, **annotator_answers}, "meta": {**task["meta"], **about}}


_AGREED = "no two people differ on it now"


class _Source:
    """A trajectory that tasks are made of."""

    def __init__(self, trajectory: Trajectory, book: Codebook, background: str | None) -> None:
        self.log = labelstudio_tasks.Log(trajectory, background, book.views)
        whole = book.unit == "trajectory"
        self.units = {None if whole else events[0].seq: events for events in spans(trajectory, book.unit)}
        """seq of the unit's first event (None: the whole trajectory) -> its events."""


def _with_sources(
    store: Store, book: Codebook, units: Sequence[SampledUnit]
) -> Iterator[tuple[SampledUnit, _Source | None]]:
    """Each unit with the source of its trajectory; None where the store no longer has that."""
    with store.reading() as connection:
        sizes = dict(connection.execute("SELECT id, n_events FROM trajectories").fetchall())
    ids = [key for key, _ in itertools.groupby(unit.trajectory for unit in units) if key in sizes]
    trajectories = itertools.chain.from_iterable(
        stream(store, [(key, sizes[key]) for key in ids], AT_ONCE, states=True)
    )
    backgrounds = Backgrounds(store)
    ahead = next(trajectories, None)
    for key, own in itertools.groupby(units, attrgetter("trajectory")):
        source = None
        if ahead is not None and ahead.id == key:
            source = _Source(ahead, book, backgrounds.of(ahead))
        yield from ((unit, source) for unit in own)
        ahead = ahead if source is None else next(trajectories, None)


def _task(
    sample: Sample, book: Codebook, unit: SampledUnit, source: _Source | None, context: str
) -> dict[str, Any] | str:
    where = unit_name(unit)
    if source is None:
        return f"{where}: no longer in the store"
    events = source.units.get(unit.event)
    if events is None:
        return f"{where}: no longer a unit of codebook {book.name!r}"
    if unit_hash(book.unit, events) != unit.unit_hash:
        return f"{where}: changed since the sample was drawn"
    task_subject = subject(sample, unit, book.version)
    return dict(labelstudio_tasks.task(task_subject, source.log, events, book, context))


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
    by_place: dict[tuple[str, int | None], list[Rating]] = {}
    for row in rows:
        place = (row.pop("trajectory_id"), row["event"])
        rating = Rating(
            trajectory=place[0], codebook=book.name, **{**row, "cites": tuple(row["cites"] or ())}
        )
        by_place.setdefault(place, []).append(rating)
    return by_place


def export(
    store: Store, sample: Sample, folder: Path, context: str = "transcript"
) -> tuple[list[Path], list[str]]:
    """Write tasks, configuration and instruction of each codebook to files, for import into any Label Studio.

    Returns the files, and messages on units that are no longer what was drawn.
    """
    check_context(context)
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    lacking: list[str] = []
    for name in sample.design.codebooks:
        book, units = book_of(sample, name, store.workspace)
        keep_codebook(store.workspace, book)
        stem = f"{sample.design.name}.{book.name}"
        tasks = folder / f"{stem}.tasks.json"
        with disk.replace_file(tasks) as file:
            lacking += _write(tasks_of(store, sample, book, units, context), file)
        config, instruction = folder / f"{stem}.config.xml", folder / f"{stem}.instruction.html"
        with disk.named(folder):
            config.write_text(label_config.label_config(book, adjudication=adjudicates(sample)), "utf-8")
            instruction.write_text(label_config.instruction(book), "utf-8")
        paths += [tasks, config, instruction]
    return paths, lacking


def _write(tasks: Iterable[dict[str, Any] | str], file: TextIO) -> list[str]:
    """Write tasks as a JSON array, one a line; returns the messages that stand in place of tasks."""
    lacking: list[str] = []
    before = "[\n"
    for task in tasks:
        if isinstance(task, str):
            lacking.append(task)
            continue
        file.write(before + json.dumps(task, ensure_ascii=False))
        before = ",\n"
    file.write("[]\n" if before == "[\n" else "\n]\n")
    return lacking
