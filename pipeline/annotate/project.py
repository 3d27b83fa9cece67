"""The Label Studio project of a sample's codebook: how it is marked, found again and kept unchanged.

A project belongs to one sample, one codebook, one version of it and one annotator; its description says so
and has the hash of the configuration we gave it, by which a change by hand is noticed. A project without an
annotator is everybody's: that of an adjudication, or one that was pushed before there were such.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ...annotation.labelstudio import LabelStudioError, Project, Server, Subject
from ...annotation.labelstudio import config as label_config
from ...annotation.labelstudio import tasks as labelstudio_tasks
from ...annotation.labelstudio.client import TITLE
from ...schemas import Codebook
from .. import codebooks
from ..errors import CoauditError, UsageError
from ..store import Store, Workspace, disk, execute
from ..store.ledgers.samples import Sample, SampledUnit


@dataclass(frozen=True)
class Mark:
    """The mark in a project's description, which says what the project is for."""

    sample: str
    codebook: str
    version: str
    context: str
    config: str
    annotator: str = ""
    """The number of the annotator whose project it is; empty where it is everybody's."""
    person: str = ""
    """The annotator's e-mail address, where it was named."""

    @property
    def head(self) -> str:
        """The part that finds the project again."""
        return f"coaudit sample={self.sample} codebook={self.codebook}@{self.version} "

    def text(self) -> str:
        whose = f" annotator={self.annotator}" if self.annotator else ""
        person = f" person={self.person}" if self.person else ""
        return f"{self.head}context={self.context} config={self.config}{whose}{person}"


_MARK = re.compile(
    r"coaudit sample=(\w+) codebook=(\w+)@(\w+) context=(\w+) config=(\w+)"
    r"(?: annotator=(\d+))?(?: person=(\S+))?"
)


def mark_of(project: Project) -> Mark | None:
    """The mark in a project's description; None where somebody took it out."""
    match = _MARK.search(project.description)
    return Mark(*match.groups(default="")) if match else None


@contextmanager
def coaudit_errors() -> Iterator[None]:
    """Raises a Label Studio error as a CoauditError, which the command line shows as one message."""
    try:
        yield
    except LabelStudioError as error:
        raise CoauditError(str(error)) from error


def subject(sample: Sample, unit: SampledUnit, version: str) -> Subject:
    """A drawn unit under a version of its codebook."""
    identity = sample.design.identity
    return Subject(identity, unit.trajectory, unit.event, unit.unit_hash, unit.codebook, version)


def unit_name(unit: SampledUnit | Subject) -> str:
    """A unit's name in a message: its trajectory, and its event unless it is all of it."""
    return f"trajectory {unit.trajectory}" + ("" if unit.event is None else f", event {unit.event}")


def change_note(store: Store, name: str, version: str) -> str | None:
    """A note where a codebook has changed since this version was pushed; None where it has not."""
    with store.reading() as connection:
        query = "SELECT DISTINCT version FROM codebooks WHERE name = ?"
        now = [other for (other,) in execute(connection, query, [name]).fetchall()]
    if not now or version in now:
        return None
    return (
        f"codebook {name!r} has changed since it was pushed ({version}, now {now[0]}): its annotations are "
        "kept and not counted"
    )


def book_of(sample: Sample, name: str, workspace: Workspace) -> tuple[Codebook, list[SampledUnit]]:
    """A codebook as it is now, with the sample's units for it."""
    return codebooks.load(name, workspace.codebooks), [u for u in sample.units if u.codebook == name]


def check_context(context: str) -> None:
    """UsageError for an unknown context."""
    if context not in labelstudio_tasks.CONTEXTS:
        raise UsageError(f"--context must be one of {', '.join(labelstudio_tasks.CONTEXTS)}, got {context!r}")


def title(sample: Sample, book: Codebook, mark: Mark) -> str:
    """A project's name: the sample, what is asked, and whose it is, within what Label Studio allows."""
    whose = mark.person or (f"annotator {mark.annotator}" if mark.annotator else "")
    heading = f"{sample.design.name} · {book.title}"
    room = TITLE - 3 - len(whose) if whose else TITLE
    text = textwrap.shorten(heading, room, placeholder=" …") if len(heading) > room else heading
    return f"{text} · {whose}" if whose else text


def project_of(
    server: Server, sample: Sample, book: Codebook, config: str, mark: Mark, reset_config: bool
) -> tuple[Project, list[str]]:
    """The project that `mark` describes, created where there is none, and notes on what differs there."""
    prefix = f"{book.title}. Do not edit this line: "
    projects = [p for p in server.projects(mark.head) if _annotator(p) == mark.annotator]
    if not projects:
        name, guide = title(sample, book, mark), label_config.instruction(book)
        return server.create(name, prefix + mark.text(), config, guide, overlap=1), []
    project, notes = projects[0], []
    if len(projects) > 1:
        notes.append(
            f"{len(projects)} projects carry this sample and codebook; using {project.id}, the oldest"
        )
    before = mark_of(project) or mark
    _check_same(project, before, mark)
    mark = replace(mark, person=mark.person or before.person)
    if label_config.config_hash(project.config) == before.config:
        if before.config != mark.config:
            if reset_config:
                server.configure(project.id, config, prefix + mark.text())
                notes.append(f"project {project.id} has the present layout now")
                return project, notes
            notes.append(
                f"project {project.id} keeps the layout that it was pushed with (--reset-config gives it the "
                "present one)"
            )
        if mark.person != before.person:
            server.configure(project.id, project.config, prefix + replace(before, person=mark.person).text())
        return project, notes
    if not reset_config:
        notes.append(
            f"the labelling configuration of project {project.id} was changed by hand; it is left as it is "
            "(--reset-config puts ours back)"
        )
        return project, notes
    server.configure(project.id, config, prefix + mark.text())
    notes.append(f"the labelling configuration of project {project.id} was changed by hand; ours is back")
    return project, notes


def _annotator(project: Project) -> str:
    mark = mark_of(project)
    return mark.annotator if mark else ""


def _check_same(project: Project, before: Mark, mark: Mark) -> None:
    if before.context != mark.context:
        raise UsageError(
            f"project {project.id} was pushed with --context {before.context}: what annotators see must not "
            "change on the way; draw a new sample for another context"
        )
    if mark.person and before.person.lower() not in ("", mark.person):
        raise UsageError(
            f"project {project.id} is that of {before.person}: it can't become that of {mark.person}; give "
            "--annotator in the order of the first push"
        )


def keep_codebook(workspace: Workspace, book: Codebook) -> None:
    """Keep a pushed codebook, so that its annotations can be read after it has changed, on any machine."""
    path = codebook_path(workspace, book.name, book.version)
    if not path.exists():
        workspace.create()
        path.parent.mkdir(parents=True, exist_ok=True)
        content = book.model_dump_json(exclude={"version"}, indent=1).encode()
        if workspace.remote:
            workspace.remote.create(path.relative_to(workspace.path).as_posix(), content)
        disk.put(path, content)


def codebook_path(workspace: Workspace, name: str, version: str) -> Path:
    """Where a pushed codebook is kept."""
    return workspace.pushed_codebooks / f"{name}@{version}.json"


def pushed_codebook(workspace: Workspace, name: str, version: str) -> Codebook | None:
    """The codebook of that version: as it is now, or as it was pushed."""
    path = codebook_path(workspace, name, version)
    if path.exists():
        return Codebook.model_validate_json(path.read_bytes())
    if name in codebooks.names(workspace.codebooks):
        book = codebooks.load(name, workspace.codebooks)
        return book if book.version == version else None
    return None
