"""Progress of annotation: what Label Studio has for a sample, and when it was last pulled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import median
from typing import Any

from ...annotation.labelstudio import Project, Server
from ...annotation.labelstudio.config import config_hash
from ...schemas.text import count_of
from ..store import Store
from ..store.ledgers.samples import Sample
from . import project as project_module
from . import pull
from .assign import annotator_shares
from .attribution import authors, refusals
from .attribution import name as person_name
from .project import Mark


def status(store: Store, server: Server, sample: Sample) -> list[dict[str, Any]]:
    """A row for each project of the sample, oldest first, and one for each project that is missing."""
    with project_module.coaudit_errors():
        server.check()
        users = server.users()
        projects = server.projects(f"coaudit sample={sample.design.identity} ")
        rows = [_row(store, server, sample, project, users) for project in projects]
    marks = [mark for project in projects if (mark := project_module.mark_of(project))]
    return rows + [row for name in sample.design.codebooks for row in _missing_rows(sample, name, marks)]


def _row(
    store: Store, server: Server, sample: Sample, project: Project, users: dict[int, str]
) -> dict[str, Any]:
    mark = project_module.mark_of(project)
    name, version = (mark.codebook, mark.version) if mark else ("?", "?")
    tasks = list(server.tasks(project.id))
    task_keys = _task_keys(sample, name, mark)
    keys = Counter(task.key for task in tasks)
    users = {**authors(a for task in tasks for a in task.annotations), **users}
    refused = {t.id: refusals(project.id, mark, t.id, t.annotations, users) for t in tasks}
    answers = [
        [a for n, a in enumerate(t.annotations) if not a.get("was_cancelled") and n not in refused[t.id]]
        for t in tasks
    ]
    by = Counter(person_name(users, a.get("completed_by")) for group in answers for a in group)
    notes = []
    if mark and config_hash(project.config) != mark.config:
        notes.append(f"project {project.id}: its labelling configuration was changed by hand")
    if mark and (note := project_module.change_note(store, mark.codebook, mark.version)):
        notes.append(f"project {project.id}: {note}")
    if duplicates := sum(1 for key, n in keys.items() if key in task_keys and n > 1):
        notes.append(
            f"project {project.id}: {count_of(duplicates, 'unit has', 'units have')} more than one task"
        )
    if foreign := sum(n for key, n in keys.items() if key not in task_keys):
        notes.append(
            f"project {project.id}: {count_of(foreign, 'task carries', 'tasks carry')} no key of this sample"
        )
    notes += [
        f"project {project.id}: {one.text()}" for by_place in refused.values() for one in by_place.values()
    ]
    return {
        "project": project.id,
        "annotator": (mark.person or mark.annotator) if mark else "",
        "url": f"{server.url}/projects/{project.id}",
        "codebook": name,
        "version": version,
        "tasks": len(tasks),
        "missing": len(task_keys - set(keys)),
        "annotated": sum(bool(group) for group in answers),
        "finished": sum(len(group) >= task.overlap for group, task in zip(answers, tasks, strict=True)),
        "refused": sum(map(len, refused.values())),
        "skipped": sum(bool(a.get("was_cancelled")) for task in tasks for a in task.annotations),
        "seconds": _pace([a for group in answers for a in group]),
        "annotators": dict(sorted(by.items())),
        "last_pull": _last_pull(store, server, project.id),
        "notes": notes,
    }


def _pace(annotations: list[dict[str, Any]]) -> float | None:
    """Median seconds that a task took in the browser, as Label Studio measures them; None without any."""
    took = [float(a["lead_time"]) for a in annotations if isinstance(a.get("lead_time"), int | float)]
    return median(took) if took else None


def _task_keys(sample: Sample, name: str, mark: Mark | None) -> set[str | None]:
    """The keys of the tasks that a project should have."""
    units = [unit for unit in sample.units if unit.codebook == name]
    if mark and mark.annotator:
        units = annotator_shares(sample, units)[int(mark.annotator) - 1]
    return {project_module.subject(sample, unit, mark.version).key for unit in units} if mark else set()


def _last_pull(store: Store, server: Server, project: int) -> str | None:
    records = pull.pulls(store.workspace.received, server.url, project)
    return str(records[-1]["pulled"]) if records else None


def _missing_rows(sample: Sample, name: str, marks: list[Mark]) -> Iterator[dict[str, Any]]:
    """A row for a codebook, or an annotator of it, without a project."""
    units = [unit for unit in sample.units if unit.codebook == name]
    annotators = {mark.annotator for mark in marks if mark.codebook == name}
    if not annotators:
        yield _empty_row(name, "", len(units), f"codebook {name}: not pushed yet")
    elif "" not in annotators:
        for number, share in enumerate(annotator_shares(sample, units), start=1):
            if share and str(number) not in annotators:
                note = f"codebook {name}: annotator {number} has no project: push makes it"
                yield _empty_row(name, str(number), len(share), note)


def _empty_row(name: str, annotator: str, missing: int, note: str) -> dict[str, Any]:
    return {
        "project": None,
        "annotator": annotator,
        "url": None,
        "codebook": name,
        "version": None,
        "tasks": 0,
        "missing": missing,
        "annotated": 0,
        "finished": 0,
        "refused": 0,
        "skipped": 0,
        "seconds": None,
        "annotators": {},
        "last_pull": None,
        "notes": [note],
    }
