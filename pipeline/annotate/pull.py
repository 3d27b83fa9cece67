"""From Label Studio to the rating ledger: what people said, changed and took back since the last pull.

Every annotation is kept as received (`raw/labelstudio/received/`), and becomes one rating a code (see
`reconcile`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError

from ...annotation.labelstudio import Project, Server
from ...annotation.labelstudio.client import ListedTask
from ...annotation.labelstudio.tasks import DISPUTED, KEY, SEQS
from ...schemas import Codebook, JsonValue, Quarantined, canonical_json
from ...schemas.text import count_of, rule_of
from ..errors import CoauditError, SourceError
from ..store import Store, execute
from ..store.ledgers import ledger
from ..store.ledgers.ledger import Ledger
from ..store.ledgers.samples import Sample
from ..systems.base import json_file
from . import project as project_module
from .assign import adjudicates
from .attribution import origin_of, person
from .reconcile import ProjectPull, PullResult, is_of

FILE = "file"
"""The server of annotations that came in a file."""
MARGIN = timedelta(seconds=10)
"""A transaction may be stamped a little before the listing that misses it: look back so far."""


def pull(store: Store, server: Server, sample: Sample) -> PullResult:
    """Take over what changed in the sample's projects since the last pull."""
    store.admit_writes()
    result = PullResult()
    with project_module.coaudit_errors(), _pull_lock(store):
        server.check()
        projects = server.projects(f"coaudit sample={sample.design.identity} ")
        if not projects:
            raise CoauditError(f"no project of sample {sample.design.name!r} on {server.url}: push it first")
        users = server.users()
        for project in projects:
            _pull(store, server, sample, project, users, result)
        store.sync()
        result.reports += _gone_project_notes(store, server.url, sample, projects)
    return result


def _gone_project_notes(store: Store, server: str, sample: Sample, projects: Sequence[Project]) -> list[str]:
    """Notes on ratings whose project is gone: no pull can retract them any more."""
    query = """
        SELECT codebook_version, external FROM current_ratings
        WHERE rater_kind = 'human' AND codebook = ? AND (external->>'$.labelstudio.server') = ?
    """
    counts: Counter[int] = Counter()
    for name in sample.design.codebooks:
        with store.reading() as connection:
            rows = execute(connection, query, [name, server]).fetchall()
        versions = {version for version, _ in rows}
        units = [unit for unit in sample.units if unit.codebook == name]
        keys = {project_module.subject(sample, unit, version).key for unit in units for version in versions}
        origins = (origin_of(json.loads(external)) for _, external in rows)
        places = [at for at in origins if at.get("key") in keys]
        counts.update(
            at["project"]
            for at in places
            if not any(is_of(at, server, project.id, project.created_at) for project in projects)
        )
    return [f"project {number} is gone: its ratings ({n}) count as before" for number, n in counts.items()]


def _pull_lock(store: Store) -> AbstractContextManager[None]:
    """A lock for pulls: two at once could write an older listing after a newer one."""
    return store.tables.locks.exclusive("labels", lambda holder: None)


def _pull(
    store: Store, server: Server, sample: Sample, project: Project, users: dict[int, str], result: PullResult
) -> None:
    mark = project_module.mark_of(project)
    book = project_module.pushed_codebook(store.workspace, mark.codebook, mark.version) if mark else None
    if book is None:
        result.reports.append(f"project {project.id}: its codebook is not known here, nothing was imported")
        return
    received = store.workspace.received
    last = last_pull(received, server.url, project.id)
    since = None
    if last and not _has_retraction(store, book, server.url, project.id, last["pulled"]):
        since = last["mark"]
    tasks = list(server.tasks(project.id, since=since and _with_margin(since)))
    heads = list(server.heads(project.id)) if since else tasks
    if since and _has_unlisted_answer(store, book, server.url, project, tasks, heads):
        heads = tasks = list(server.tasks(project.id))
    alive = {task.id for task in heads}
    result.projects += 1
    whose = (users, result, mark, project.created_at)
    pulling = ProjectPull(store, sample, book, server.url, project.id, *whose)
    pulling.take(tasks, alive)
    newest = max([task.updated_at for task in tasks], default=since)
    record = {"pulled": ledger.now(), "server": server.url, "project": project.id, "mark": newest}
    received.append([canonical_json(record)])


def import_file(store: Store, sample: Sample, path: Path, people: dict[int, str]) -> PullResult:
    """Take over a JSON export of Label Studio, made by hand; a task that isn't in it stays as it was."""
    store.admit_writes()
    tasks = _read_export(path)
    result = PullResult()
    for name, version in sorted({_book_of(task) for task in tasks if _book_of(task)[0]}):
        book = project_module.pushed_codebook(store.workspace, name, version)
        if book is None:
            result.reports.append(f"{path}: codebook {name}@{version} is not known here")
            continue
        book_tasks = [_listed_task(task) for task in tasks if _book_of(task) == (name, version)]
        project = next((a["project"] for t in book_tasks for a in t.annotations if a.get("project")), 0)
        result.projects += 1
        result.reports += [
            *_anonymous_notes(path, book_tasks, people),
            *_blindness_notes(path, sample, book_tasks),
        ]
        pulling = ProjectPull(store, sample, book, FILE, project, people, result)
        with _pull_lock(store):
            pulling.take(book_tasks, None)
    if (strange := sum(_book_of(task) == ("", "") for task in tasks)) and result.projects:
        tasks_without = count_of(strange, "task", "tasks")
        result.reports.append(f"{path}: {tasks_without} without a codebook of coaudit's, not counted")
    if not result.projects:
        raise SourceError(f"{path}: none of its tasks carries a codebook that coaudit pushed or exported")
    store.sync()
    return result


def pulls(received: Ledger, server: str, project: int) -> list[dict[str, Any]]:
    """The finished pulls from a project, oldest first; one with a damaged record never ended."""
    records = []
    for _, _, line in received.lines():
        if line.startswith(b'{"mark"'):
            with suppress(ValueError, RecursionError):
                records.append(_checked_record(json.loads(line)))
    return [one for one in records if (one["server"], one["project"]) == (server, project)]


def _checked_record(record: dict[str, Any]) -> dict[str, Any]:
    """A record of a pull with its fields and times (one without tasks has no mark); else ValueError."""
    if not {"mark", "project", "pulled", "server"} <= record.keys():
        raise ValueError("a field is missing")
    for moment in (record["pulled"], record["mark"] or record["pulled"]):
        datetime.fromisoformat(str(moment))
    return record


def last_pull(received: Ledger, server: str, project: int) -> dict[str, Any] | None:
    """The last finished pull from a project; its `mark` is updated_at of the newest task that it saw."""
    records = pulls(received, server, project)
    return records[-1] if records else None


def _has_retraction(store: Store, book: Codebook, server: str, project: int, since: str) -> bool:
    """Whether a rating from another project was retracted since: an earlier one of this project may now count
    again, so that all of it must be read."""
    query = """
        SELECT external FROM ratings
        WHERE codebook = ? AND codebook_version = ? AND rater_kind = 'human' AND retracted AND created >= ?
    """
    with store.reading() as connection:
        rows = execute(connection, query, [book.name, book.version, since]).fetchall()
    places = [origin_of(json.loads(external or "{}")) for (external,) in rows]
    return any((at.get("server"), at.get("project")) != (server, project) for at in places)


def _has_unlisted_answer(
    store: Store,
    book: Codebook,
    server: str,
    project: Project,
    tasks: Sequence[ListedTask],
    heads: Sequence[ListedTask],
) -> bool:
    """Whether an answer of a task that did not change may now count: another task of its unit changed, or is
    gone with the ratings from it."""
    query = """
        SELECT external FROM current_ratings
        WHERE codebook = ? AND codebook_version = ? AND rater_kind = 'human'
    """
    with store.reading() as connection:
        rows = execute(connection, query, [book.name, book.version]).fetchall()
    origins = [origin_of(json.loads(external or "{}")) for (external,) in rows]
    alive = {head.id for head in heads}
    lost_keys = {
        at.get("key")
        for at in origins
        if is_of(at, server, project.id, project.created_at) and at.get("task") not in alive
    }
    changed = {task.id for task in tasks}
    keys = (lost_keys | {task.key for task in tasks}) - {None}
    return any(head.key in keys and head.id not in changed for head in heads)


class _Annotation(BaseModel):
    """The fields of an exported annotation that are used without further checks."""

    model_config = ConfigDict(strict=True)
    id: int | None = None
    project: int | None = None
    completed_by: int | dict[str, JsonValue] | None = None
    updated_by: int | dict[str, JsonValue] | None = None
    lead_time: FiniteFloat | None = None
    was_cancelled: bool | None = None
    ground_truth: bool | None = None
    parent_prediction: int | None = None


class _Data(BaseModel):
    model_config = ConfigDict(strict=True)
    seqs: list[Annotated[int, Field(ge=SEQS.start, lt=SEQS.stop)]] = []
    disputed: list[str] | None = None


class _Task(BaseModel):
    model_config = ConfigDict(strict=True)
    id: int
    data: _Data
    annotations: list[_Annotation]


def _read_export(path: Path) -> list[dict[str, Any]]:
    """The tasks of a JSON export; SourceError names the field that does not fit."""
    no_export = f"{path}: not a JSON export of Label Studio (JSON, of its formats)"
    try:
        tasks = json_file(path)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from error
    if isinstance(tasks, Quarantined):
        raise SourceError(f"{no_export}: {tasks.reason}")
    try:
        TypeAdapter(list[_Task]).validate_python(tasks)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise SourceError(f"{no_export}: {place}: {rule_of(first)}, got {first['input']!r:.80}") from error
    return tasks  # type: ignore[return-value]


def _anonymous_notes(path: Path, tasks: list[ListedTask], people: dict[int, str]) -> list[str]:
    """Notes on people whom the file has only by number, which is another person's on another server."""
    by = [annotation.get("completed_by") for task in tasks for annotation in task.annotations]
    numbers = sorted({number for number in by if isinstance(number, int) and number not in people})
    return [
        f"{path}: who is annotator {number}? --annotator {number}=EMAIL says so; now they are ls:{number}, "
        "as is whoever has this number in another export"
        for number in numbers
    ]


def _blindness_notes(path: Path, sample: Sample, tasks: list[ListedTask]) -> Iterator[str]:
    """A note where several people answered one task: Label Studio shows each the others' answers, which only
    adjudicators should see."""
    by_task = [[a for a in task.annotations if not a.get("was_cancelled")] for task in tasks]
    count = sum(len({person(a.get("completed_by")) for a in answers}) > 1 for answers in by_task)
    if count and not adjudicates(sample):
        yield (
            f"{path}: several people answered the same task ({count} such), where the later could see what "
            "the earlier had said: a project for each would be blind"
        )


def _listed_task(task: dict[str, Any]) -> ListedTask:
    data = task["data"]
    return ListedTask(
        id=task["id"],
        key=str(data.get(KEY)),
        seqs=tuple(data.get("seqs", ())),
        updated_at=str(task.get("updated_at") or ""),
        overlap=1,
        annotations=task["annotations"],
        created_at=str(task.get("created_at") or ""),
        disputed=None if (codes := data.get(DISPUTED)) is None else tuple(codes),
    )


def _book_of(task: dict[str, Any]) -> tuple[str, str]:
    name, version = (str(task["data"].get(key) or "") for key in ("codebook", "codebook_version"))
    return (name, version) if re.fullmatch(r"\w+@\w+", f"{name}@{version}") else ("", "")


def _with_margin(moment: str) -> str:
    """`moment` less `MARGIN`, with the microseconds that Label Studio's filter needs."""
    before = (datetime.fromisoformat(moment) - MARGIN).astimezone(UTC)
    return before.isoformat(timespec="microseconds").replace("+00:00", "Z")
