"""Annotations of one project into ratings: what is new, what was edited, what was taken back.

An edit is a new rating, a deletion a retraction; nothing is ever removed from the ledger.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from ...annotation.labelstudio import Subject, answers
from ...annotation.labelstudio.client import Listed
from ...schemas import GOLD, Codebook, JsonValue, Maker, Rating, canonical_json
from ..store import Store, dictionaries, execute, ledger
from ..store.ledger import Ledger
from ..store.samples import ADJUDICATION, Sample
from . import project as project_module
from .attribution import Refusal, changed_by, name, person, refusals
from .dispute import Dispute, disputes
from .dispute import Place as Disputed
from .project import Mark

SAID = ("label", "error", "cites", "quote", "rationale", "error_source")
UNDATED = "1970-01-01T00:00:00.000+00:00"

Key = tuple[str, int | None, str, str]
"""Trajectory, event, code, rater."""
Place = tuple[Any, Any]
"""A task's id, and in a file when it was created."""


@dataclass
class Pulled:
    """What a pull found; `reports` are for people to look into."""

    projects: int = 0
    annotations: int = 0
    rated: int = 0
    retracted: int = 0
    unchanged: int = 0
    errors: int = 0
    reports: list[str] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    """Annotations that can't be attributed or were not blind: kept as received, never counted."""


@dataclass
class _Known:
    """The last line that the ledger has for a rating's key."""

    said: tuple[Any, ...]
    retracted: bool
    created: str
    at: dict[str, Any]
    rating: Rating

    @property
    def mixed(self) -> bool:
        """One person's rating in another's words, as coaudit used to take them."""
        return bool(self.at.get("updated_by")) and self.rating.rater != GOLD


@dataclass
class Pulling:
    """One project on the way into the ledger."""

    store: Store
    sample: Sample
    book: Codebook
    server: str
    project: int
    users: dict[int, str]
    result: Pulled
    mark: Mark | None = None
    created_at: str = ""
    """When the project was made, where that is known."""

    def take(self, tasks: Sequence[Listed], alive: set[int] | None) -> None:
        """Ratings of the touched tasks into the ledger; `alive` tasks are all there are, where known."""
        subjects = {s.key: s for s in self._subjects()}
        existing = self._known()
        self.users = {**self._who_left(existing, tasks), **self.users}
        ratings: dict[Key, Rating] = {}
        refusal_ids: set[tuple[Any, Any]] = set()
        for task in tasks:
            subject = subjects.get(task.key or "")
            if subject is None:
                self._report(f"task {task.id} carries no key of this sample: its annotations are not counted")
                continue
            refused = refusals(self.project, self.mark, task.id, task.annotations, self.users)
            self._refuse(refused.values())
            refusal_ids |= {(task.id, refusal.annotation) for refusal in refused.values()}
            for rating in self._ratings(task, subject, refused):
                self._prefer(ratings, rating)
        self._tell_shown(tasks)
        keep_raw(self.store.workspace.received, self.server, tasks)
        self._check_units(subjects, tasks)
        self._check_codebook(tasks)
        places = {(task.id, task.created_at) for task in tasks}
        fresh = list(
            self._fresh(ratings, existing, lambda at: self._is_there(at, refusal_ids, places, alive))
        )
        live = {key: before for key, before in existing.items() if not self._stays(before, refusal_ids)}
        retractions = list(self._gone(ratings, live, places, alive))
        if fresh or retractions:
            with self.store.workspace.new_ratings() as file:
                file.append([*fresh, *retractions])
        self.result.rated += sum(rating.label is not None for rating in fresh)
        self.result.errors += sum(rating.error is not None for rating in fresh)
        self.result.retracted += len(retractions)

    def _subjects(self) -> Iterable[Subject]:
        for unit in self.sample.units:
            if unit.codebook == self.book.name:
                yield project_module.subject(self.sample, unit, self.book.version)

    def _who_left(self, existing: dict[Key, _Known], tasks: Sequence[Listed]) -> dict[int, str]:
        """People by number, as the ledger names them: the server forgets who is no member any more."""
        raters = {
            before.at.get("annotation"): before.rating.rater.removeprefix("ls:")
            for before in existing.values()
            if self.mark and self._is_ours(before.at) and before.rating.rater != GOLD
        }
        items = [annotation for task in tasks for annotation in task.annotations]
        people = [(person(one.get("completed_by")), raters.get(one.get("id"))) for one in items]
        return {number: rater for number, rater in people if number is not None and rater}

    def _tell_shown(self, tasks: Sequence[Listed]) -> None:
        """Say how many answers somebody began from one that the page showed them."""
        items = [annotation for task in tasks for annotation in task.annotations]
        if count := sum(bool(annotation.get("parent_prediction")) for annotation in items):
            self._report(
                f"{count} of {len(items)} annotations began from a prediction that Label Studio showed: they "
                "are not blind to whoever made it, and agree with it more than others would"
            )

    def _refuse(self, refused: Iterable[Refusal]) -> None:
        for refusal in refused:
            self.result.refused.append(refusal)
            self._report(refusal.text())

    def _stays(self, before: _Known, refusal_ids: set[tuple[Any, Any]]) -> bool:
        """What was a person's own answer when it was pulled stays, though somebody changed it since."""
        ours = self._is_ours(before.at)
        return (
            ours and not before.mixed and (before.at.get("task"), before.at.get("annotation")) in refusal_ids
        )

    def _ratings(self, task: Listed, subject: Subject, refused: Mapping[int, Refusal]) -> Iterable[Rating]:
        by_rater: dict[str, list[dict[str, Any]]] = {}
        own = [annotation for place, annotation in enumerate(task.annotations) if place not in refused]
        self.result.annotations += len(refused)
        for annotation in sorted(own, key=lambda a: (_moment(a), a.get("id") or 0)):
            by_rater.setdefault(self._rater(annotation), []).append(annotation)
            self.result.annotations += 1
        if self.sample.design.method == ADJUDICATION:
            # Who settles a dispute has seen it, and is no further independent annotator.
            last = [group[-1] for group in by_rater.values()]
            with_answer = [annotation for annotation in last if not annotation.get("was_cancelled")]
            yield from self._settled(task, subject, with_answer or last)
            return
        for rater, group in by_rater.items():
            if len(group) > 1:
                self._report(f"task {task.id}: {rater} labelled it {len(group)} times, the latest counts")
            yield from self._of(task, subject, group[-1], rater)
        yield from self._settled(task, subject, [a for a in task.annotations if a.get("ground_truth")])

    def _settled(self, task: Listed, subject: Subject, group: Sequence[dict[str, Any]]) -> Iterable[Rating]:
        if len(group) > 1:
            self._report(f"task {task.id}: {len(group)} annotations settle it, the latest counts")
        for annotation in sorted(group, key=_moment)[-1:]:
            yield from self._of(task, subject, annotation, GOLD)

    def _of(self, task: Listed, subject: Subject, annotation: dict[str, Any], rater: str) -> Iterable[Rating]:
        read = answers.read(self.book, annotation, task.seqs, self._asked(task, subject))
        for problem in read.problems:
            where = f"task {task.id}, annotation {annotation.get('id')} by {self._rater(annotation)}"
            self._report(f"{where}: {problem}", once=True)
        at: dict[str, JsonValue] = {"server": self.server, "project": self.project}
        if self.created_at:
            at["project_created_at"] = self.created_at
        at |= {"task": task.id, "key": subject.key}
        if task.created_at:
            at["task_created_at"] = task.created_at
        at |= {"annotation": annotation.get("id"), "updated_at": _moment(annotation)}
        if other := changed_by(annotation):
            at["updated_by"] = name(self.users, other)
        if annotation.get("parent_prediction"):
            at["parent_prediction"] = annotation["parent_prediction"]
        maker = Maker(rater, "human", None, self.book, {"created": _moment(annotation)})
        place = (subject.trajectory, subject.event, subject.unit_hash)
        for verdict in read.verdicts:
            yield maker.rating_at(
                place, verdict, seconds=annotation.get("lead_time"), external={"labelstudio": at}
            )

    def _asked(self, task: Listed, subject: Subject) -> Sequence[str] | None:
        """The codes that a task is to settle; of one that does not say so yet, those that people dispute."""
        if task.disputed is not None or self.sample.design.method != ADJUDICATION:
            return task.disputed
        dispute = self._disputes.get((subject.trajectory, subject.event))
        return dispute.codes if dispute else None

    @cached_property
    def _disputes(self) -> Mapping[Disputed, Dispute]:
        return disputes(self.store, self.book)

    def _is_ours(self, at: Mapping[str, Any]) -> bool:
        """Whether a rating came from this project."""
        return is_of(at, self.server, self.project, self.created_at)

    def _prefer(self, ratings: dict[Key, Rating], rating: Rating) -> None:
        """Two tasks may ask about one unit, after a race or a re-import: the later annotation counts."""
        key = (rating.trajectory, rating.event, rating.code, rating.rater)
        if key not in ratings or (ratings[key].created or "") <= (rating.created or ""):
            ratings[key] = rating

    def _is_there(
        self,
        at: dict[str, Any],
        refusal_ids: set[tuple[Any, Any]],
        places: set[Place],
        alive: set[int] | None,
    ) -> bool:
        """Whether an annotation that was pulled, and is not among those wanted now, is still there."""
        if not self._is_ours(at):
            return True
        task = at.get("task")
        if _place(at) in places:
            return (task, at.get("annotation")) in refusal_ids
        return alive is None or task in alive

    def _fresh(
        self,
        ratings: dict[Key, Rating],
        existing: dict[Key, _Known],
        is_there: Callable[[dict[str, Any]], bool],
    ) -> Iterable[Rating]:
        for key, rating in ratings.items():
            before = existing.get(key)
            self._tell_rival(before, rating, is_there)
            if before is None:
                yield rating
            elif not before.retracted and before.said == _content(rating) and _same(before.at, _at(rating)):
                self.result.unchanged += 1
            elif before.retracted and not before.at and (rating.created or "") <= before.created:
                self.result.unchanged += 1  # taken back by `ratings import`, after it was said
            elif (
                not before.retracted
                and before.at.get("updated_at", "") > (rating.created or "")
                and is_there(before.at)
            ):
                self.result.unchanged += 1  # a later annotation stands: another task's, or one that is held
            else:
                yield rating.model_copy(update={"created": _after(before.created, rating.created)})

    def _tell_rival(
        self, before: _Known | None, rating: Rating, is_there: Callable[[dict[str, Any]], bool]
    ) -> None:
        """Say where gold of another task is another label: what is settled twice is settled by chance."""
        if before is None or before.retracted or rating.rater != GOLD or not is_there(before.at):
            return
        at, now = before.at, _at(rating)
        here, there = rating.label, before.rating.label
        differ = here != there and {here, there} <= {*self.book.labels}
        if differ and at.get("task") and at["task"] != now.get("task"):
            self._report(
                f"task {now['task']} settles {rating.code} as {here}, task {at['task']} of project "
                f"{at['project']} as {there}: the latest counts"
            )

    def _gone(
        self,
        ratings: dict[Key, Rating],
        existing: dict[Key, _Known],
        places: set[Place],
        alive: set[int] | None,
    ) -> Iterable[Rating]:
        for key, before in existing.items():
            at = before.at
            if before.retracted or key in ratings:
                continue
            if not self._is_ours(at):
                continue
            task = at.get("task")
            if before.mixed or _place(at) in places or (alive is not None and task not in alive):
                if alive is not None and task not in alive:
                    self._report(f"task {task} was deleted: the ratings from it are taken back", once=True)
                yield Rating(
                    **before.rating.model_dump(
                        include={"trajectory", "event", "unit_hash", "codebook", "codebook_version", "code"}
                    ),
                    rater=before.rating.rater,
                    rater_kind="human",
                    retracted=True,
                    created=_after(before.created, ledger.now()),
                    external={"labelstudio": at},
                )

    def _known(self) -> dict[Key, _Known]:
        """The last word on every rating that came from Label Studio, retractions included."""
        query = """
            SELECT * FROM (
                SELECT *, row_number() OVER (
                    PARTITION BY trajectory_id, event, code, rater
                    ORDER BY ledger DESC, line DESC
                ) AS place
                FROM ratings WHERE codebook = ? AND codebook_version = ? AND rater_kind = 'human'
            ) WHERE place = 1
        """
        with self.store.reading() as connection:
            rows = dictionaries(connection, query, [self.book.name, self.book.version])
        return {(r["trajectory_id"], r["event"], r["code"], r["rater"]): self._row(r) for r in rows}

    def _row(self, row: dict[str, Any]) -> _Known:
        fields = ("event", "unit_hash", "codebook", "codebook_version", "code", "rater", "rater_kind")
        values = {name: row[name] for name in (*fields, *SAID, "retracted")}
        rating = Rating(trajectory=row["trajectory_id"], **{**values, "cites": tuple(row["cites"] or ())})
        external = json.loads(row["external"]) if row["external"] else {}
        at = external.get("labelstudio") or {}
        return _Known(_content(rating), row["retracted"], row["created"] or "", at, rating)

    def _check_units(self, subjects: dict[str, Subject], tasks: Sequence[Listed]) -> None:
        labelled = {task.key for task in tasks if task.annotations}
        query = "SELECT trajectory_id, event, hash FROM units WHERE kind = ?"
        with self.store.reading() as connection:
            now = set(execute(connection, query, [self.book.unit]).fetchall())
        for subject in (subjects[str(key)] for key in labelled if key in subjects):
            if (subject.trajectory, subject.event, subject.unit_hash) not in now:
                self._report(
                    f"{project_module.unit_name(subject)} is gone or has changed since it was sampled: its "
                    "annotations are kept and not counted"
                )

    def _check_codebook(self, tasks: Sequence[Listed]) -> None:
        note = project_module.changed(self.store, self.book.name, self.book.version)
        if note and any(task.annotations for task in tasks):
            self._report(note)

    def _rater(self, annotation: dict[str, Any]) -> str:
        return f"ls:{name(self.users, annotation.get('completed_by'))}"

    def _report(self, text: str, *, once: bool = False) -> None:
        line = f"project {self.project}: {text}"
        if not once or line not in self.result.reports:
            self.result.reports.append(line)


def keep_raw(received: Ledger, server: str, tasks: Sequence[Listed]) -> None:
    """Keep annotations as they were received."""
    lines = [
        canonical_json({"task": task.id, "key": task.key, "server": server, "annotation": annotation})
        for task in tasks
        for annotation in task.annotations
    ]
    if lines:
        received.append(lines)


def is_of(at: Mapping[str, Any], server: str, project: int, created_at: str) -> bool:
    """Whether a rating came from a project; of early ones nobody noted when that was made."""
    same = (at.get("server"), at.get("project")) == (server, project)
    return same and at.get("project_created_at", created_at) == created_at


def _at(rating: Rating) -> dict[str, Any]:
    at = rating.external.get("labelstudio")
    return at if isinstance(at, dict) else {}


def _place(at: dict[str, Any]) -> Place:
    """The task that a rating came from."""
    return at.get("task"), at.get("task_created_at", "")


def _same(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether it is the same annotation in the same version of it."""
    return all(before.get(name) == now.get(name) for name in ("server", "task", "annotation", "updated_at"))


def _content(rating: Rating) -> tuple[Any, ...]:
    return tuple(getattr(rating, name) for name in SAID)


def _moment(annotation: dict[str, Any]) -> str:
    """When an annotation was last changed, as the ledger writes moments."""
    text = str(annotation.get("updated_at") or annotation.get("created_at") or "")
    try:
        return _utc_text(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return UNDATED


def _after(before: str, moment: str | None) -> str:
    """The wanted moment, or just after `before` where clocks disagree: the last word must be last."""
    try:
        least = _utc_text(datetime.fromisoformat(before) + timedelta(milliseconds=1))
    except (ValueError, OverflowError):
        return moment or ledger.now()
    return max(moment or "", least)


def _utc_text(moment: datetime) -> str:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="milliseconds")
