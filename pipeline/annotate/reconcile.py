"""Turns the annotations of one project into ratings: new ones, edited ones, and those taken back.

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
from ...annotation.labelstudio.client import ListedTask
from ...schemas import GOLD, Codebook, JsonValue, Maker, Rating, canonical_json
from ...schemas.text import count_of
from ..store import Store, dictionaries, execute
from ..store.ledgers import ledger
from ..store.ledgers.ledger import Ledger
from ..store.ledgers.samples import ADJUDICATION, Sample
from . import project as project_module
from .attribution import Refusal, authors, changed_by, name, origin_of, person, refusals
from .dispute import Dispute, disputes
from .dispute import Place as Disputed
from .project import Mark

CONTENT = ("label", "error", "cites", "quote", "rationale", "error_source")
UNDATED = "1970-01-01T00:00:00.000+00:00"

Key = tuple[str, int | None, str, str]
"""Trajectory, event, code, rater."""
Place = tuple[Any, Any]
"""A task's id, and in a file when it was created."""


@dataclass
class PullResult:
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
class _LastRating:
    """The last line that the ledger has for a key; `origin` is its address in Label Studio."""

    content: tuple[Any, ...]
    retracted: bool
    created: str
    origin: dict[str, Any]
    rating: Rating

    @property
    def is_mixed(self) -> bool:
        """Whether it has one person's name and another's answer, as earlier versions of coaudit took it."""
        return bool(self.origin.get("updated_by")) and self.rating.rater != GOLD


@dataclass
class ProjectPull:
    """Brings the annotations of one project into the ledger."""

    store: Store
    sample: Sample
    book: Codebook
    server: str
    project: int
    users: dict[int, str]
    result: PullResult
    mark: Mark | None = None
    created_at: str = ""
    """When the project was made, where that is known."""

    def take(self, tasks: Sequence[ListedTask], alive: set[int] | None) -> None:
        """Write what changed in these tasks to the ledger.

        `alive` has the ids of all tasks that still exist; None where they are not known.
        """
        subjects = {s.key: s for s in self._subjects()}
        existing = self._last_ratings()
        self.users = {**self._former_members(existing, tasks), **self.users}
        ratings: dict[Key, Rating] = {}
        refusal_ids: set[tuple[Any, Any]] = set()
        for task in tasks:
            subject = subjects.get(task.key or "")
            if subject is None:
                self._report(f"task {task.id} carries no key of this sample: its annotations are not counted")
                continue
            refused = refusals(self.project, self.mark, task.id, task.annotations, self.users)
            self._report_refusals(refused.values())
            refusal_ids |= {(task.id, refusal.annotation) for refusal in refused.values()}
            for rating in self._ratings(task, subject, refused):
                self._prefer(ratings, rating)
        self._report_predictions(tasks)
        keep_raw(self.store.workspace.received, self.server, tasks)
        self._check_units(subjects, tasks)
        self._check_codebook(tasks)
        places = {(task.id, task.created_at) for task in tasks}
        fresh = list(
            self._new_ratings(
                ratings, existing, lambda origin: self._still_stands(origin, refusal_ids, places, alive)
            )
        )
        live = {key: before for key, before in existing.items() if not self._is_kept(before, refusal_ids)}
        retractions = list(self._retractions(ratings, live, places, alive))
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

    def _former_members(
        self, existing: dict[Key, _LastRating], tasks: Sequence[ListedTask]
    ) -> dict[int, str]:
        """Names by number of who is no member any more: as their annotations have them, or the ledger."""
        raters = {
            before.origin.get("annotation"): before.rating.rater.removeprefix("ls:")
            for before in existing.values()
            if self.mark and self._is_ours(before.origin) and before.rating.rater != GOLD
        }
        items = [annotation for task in tasks for annotation in task.annotations]
        people = [(person(one.get("completed_by")), raters.get(one.get("id"))) for one in items]
        names = {number: rater for number, rater in people if number is not None and rater}
        return names | authors(items)

    def _report_predictions(self, tasks: Sequence[ListedTask]) -> None:
        """Say how many answers somebody began from one that the page showed them."""
        items = [annotation for task in tasks for annotation in task.annotations]
        if count := sum(bool(annotation.get("parent_prediction")) for annotation in items):
            self._report(
                f"{count} of {count_of(len(items), 'annotation', 'annotations')} began from a "
                "prediction that Label Studio showed: they "
                "are not blind to whoever made it, and agree with it more than others would"
            )

    def _report_refusals(self, refused: Iterable[Refusal]) -> None:
        for refusal in refused:
            self.result.refused.append(refusal)
            self._report(refusal.text())

    def _is_kept(self, before: _LastRating, refusal_ids: set[tuple[Any, Any]]) -> bool:
        """Whether a rating stays though its annotation is refused now: it was the person's own before."""
        ours = self._is_ours(before.origin)
        return (
            ours
            and not before.is_mixed
            and (before.origin.get("task"), before.origin.get("annotation")) in refusal_ids
        )

    def _ratings(
        self, task: ListedTask, subject: Subject, refused: Mapping[int, Refusal]
    ) -> Iterable[Rating]:
        by_rater: dict[str, list[dict[str, Any]]] = {}
        own = [annotation for place, annotation in enumerate(task.annotations) if place not in refused]
        self.result.annotations += len(refused)
        for annotation in sorted(own, key=lambda a: (_moment(a), a.get("id") or 0)):
            by_rater.setdefault(self._rater(annotation), []).append(annotation)
            self.result.annotations += 1
        if self.sample.design.method == ADJUDICATION:
            # An adjudicator has seen the others' answers, and so is no independent annotator.
            last = [group[-1] for group in by_rater.values()]
            with_answer = [annotation for annotation in last if not annotation.get("was_cancelled")]
            yield from self._gold_ratings(task, subject, with_answer or last)
            return
        for rater, group in by_rater.items():
            if len(group) > 1:
                self._report(f"task {task.id}: {rater} labelled it {len(group)} times, the latest counts")
            yield from self._annotation_ratings(task, subject, group[-1], rater)
        yield from self._gold_ratings(task, subject, [a for a in task.annotations if a.get("ground_truth")])

    def _gold_ratings(
        self, task: ListedTask, subject: Subject, group: Sequence[dict[str, Any]]
    ) -> Iterable[Rating]:
        if len(group) > 1:
            self._report(f"task {task.id}: {len(group)} annotations settle it, the latest counts")
        for annotation in sorted(group, key=_moment)[-1:]:
            yield from self._annotation_ratings(task, subject, annotation, GOLD)

    def _annotation_ratings(
        self, task: ListedTask, subject: Subject, annotation: dict[str, Any], rater: str
    ) -> Iterable[Rating]:
        read = answers.read(self.book, annotation, task.seqs, self._codes_to_settle(task, subject))
        for problem in read.problems:
            where = f"task {task.id}, annotation {annotation.get('id')} by {self._rater(annotation)}"
            self._report(f"{where}: {problem}", once=True)
        origin: dict[str, JsonValue] = {"server": self.server, "project": self.project}
        if self.created_at:
            origin["project_created_at"] = self.created_at
        origin |= {"task": task.id, "key": subject.key}
        if task.created_at:
            origin["task_created_at"] = task.created_at
        origin |= {"annotation": annotation.get("id"), "updated_at": _moment(annotation)}
        if other := changed_by(annotation):
            origin["updated_by"] = name(self.users, other)
        if annotation.get("parent_prediction"):
            origin["parent_prediction"] = annotation["parent_prediction"]
        maker = Maker(rater, "human", None, self.book, {"created": _moment(annotation)})
        place = (subject.trajectory, subject.event, subject.unit_hash)
        for verdict in read.verdicts:
            yield maker.rating_at(
                place, verdict, seconds=annotation.get("lead_time"), external={"labelstudio": origin}
            )

    def _codes_to_settle(self, task: ListedTask, subject: Subject) -> Sequence[str] | None:
        """The codes that a task is to settle; where it does not name them, those that people dispute."""
        if task.disputed is not None or self.sample.design.method != ADJUDICATION:
            return task.disputed
        dispute = self._disputes.get((subject.trajectory, subject.event))
        return dispute.codes if dispute else None

    @cached_property
    def _disputes(self) -> Mapping[Disputed, Dispute]:
        return disputes(self.store, self.book)

    def _is_ours(self, origin: Mapping[str, Any]) -> bool:
        """Whether a rating came from this project."""
        return is_of(origin, self.server, self.project, self.created_at)

    def _prefer(self, ratings: dict[Key, Rating], rating: Rating) -> None:
        """Two tasks may ask about one unit, after a race or a re-import: the later annotation counts."""
        key = (rating.trajectory, rating.event, rating.code, rating.rater)
        if key not in ratings or (ratings[key].created or "") <= (rating.created or ""):
            ratings[key] = rating

    def _still_stands(
        self,
        origin: dict[str, Any],
        refusal_ids: set[tuple[Any, Any]],
        places: set[Place],
        alive: set[int] | None,
    ) -> bool:
        """Whether the annotation of an earlier rating still counts.

        One of another project does; one of a task that was pulled just now, only if it is refused and kept;
        any other, while its task exists.
        """
        if not self._is_ours(origin):
            return True
        task = origin.get("task")
        if _place(origin) in places:
            return (task, origin.get("annotation")) in refusal_ids
        return alive is None or task in alive

    def _new_ratings(
        self,
        ratings: dict[Key, Rating],
        existing: dict[Key, _LastRating],
        still_stands: Callable[[dict[str, Any]], bool],
    ) -> Iterable[Rating]:
        for key, rating in ratings.items():
            before = existing.get(key)
            self._report_rival_gold(before, rating, still_stands)
            if before is None:
                yield rating
            elif (
                not before.retracted
                and before.content == _content(rating)
                and _is_same_annotation(before.origin, origin_of(rating.external))
            ):
                self.result.unchanged += 1
            elif before.retracted and not before.origin and (rating.created or "") <= before.created:
                self.result.unchanged += 1  # retracted by `ratings import`, after it was given
            elif (
                not before.retracted
                and before.origin.get("updated_at", "") > (rating.created or "")
                and still_stands(before.origin)
            ):
                # A later annotation counts: another task's, or a refused one that is kept.
                self.result.unchanged += 1
            else:
                yield rating.model_copy(update={"created": _after(before.created, rating.created)})

    def _report_rival_gold(
        self, before: _LastRating | None, rating: Rating, still_stands: Callable[[dict[str, Any]], bool]
    ) -> None:
        """Report gold that another task settles differently, for then the order of the two decides."""
        if before is None or before.retracted or rating.rater != GOLD or not still_stands(before.origin):
            return
        origin, now = before.origin, origin_of(rating.external)
        here, there = rating.label, before.rating.label
        differ = here != there and {here, there} <= {*self.book.labels}
        if differ and origin.get("task") and origin["task"] != now.get("task"):
            self._report(
                f"task {now['task']} settles {rating.code} as {here}, task {origin['task']} of project "
                f"{origin['project']} as {there}: the latest counts"
            )

    def _retractions(
        self,
        ratings: dict[Key, Rating],
        existing: dict[Key, _LastRating],
        places: set[Place],
        alive: set[int] | None,
    ) -> Iterable[Rating]:
        for key, before in existing.items():
            origin = before.origin
            if before.retracted or key in ratings:
                continue
            if not self._is_ours(origin):
                continue
            task = origin.get("task")
            if before.is_mixed or _place(origin) in places or (alive is not None and task not in alive):
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
                    external={"labelstudio": origin},
                )

    def _last_ratings(self) -> dict[Key, _LastRating]:
        """The last line for each key of this codebook's ratings by people, retractions included."""
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
        return {(r["trajectory_id"], r["event"], r["code"], r["rater"]): self._last_rating(r) for r in rows}

    def _last_rating(self, row: dict[str, Any]) -> _LastRating:
        fields = ("event", "unit_hash", "codebook", "codebook_version", "code", "rater", "rater_kind")
        values = {name: row[name] for name in (*fields, *CONTENT, "retracted")}
        rating = Rating(trajectory=row["trajectory_id"], **{**values, "cites": tuple(row["cites"] or ())})
        origin = origin_of(json.loads(row["external"] or "{}"))
        return _LastRating(_content(rating), row["retracted"], row["created"] or "", origin, rating)

    def _check_units(self, subjects: dict[str, Subject], tasks: Sequence[ListedTask]) -> None:
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

    def _check_codebook(self, tasks: Sequence[ListedTask]) -> None:
        note = project_module.change_note(self.store, self.book.name, self.book.version)
        if note and any(task.annotations for task in tasks):
            self._report(note)

    def _rater(self, annotation: dict[str, Any]) -> str:
        return f"ls:{name(self.users, annotation.get('completed_by'))}"

    def _report(self, text: str, *, once: bool = False) -> None:
        line = f"project {self.project}: {text}"
        if not once or line not in self.result.reports:
            self.result.reports.append(line)


def keep_raw(received: Ledger, server: str, tasks: Sequence[ListedTask]) -> None:
    """Keep annotations as they were received."""
    lines = [
        canonical_json({"task": task.id, "key": task.key, "server": server, "annotation": annotation})
        for task in tasks
        for annotation in task.annotations
    ]
    if lines:
        received.append(lines)


def is_of(origin: Mapping[str, Any], server: str, project: int, created_at: str) -> bool:
    """Whether a rating came from a project; early ratings lack the time at which theirs was made."""
    same = (origin.get("server"), origin.get("project")) == (server, project)
    return same and origin.get("project_created_at", created_at) == created_at


def _place(origin: dict[str, Any]) -> Place:
    """The task that a rating came from, as `Place` has it."""
    return origin.get("task"), origin.get("task_created_at", "")


def _is_same_annotation(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether both are the same version of the same annotation."""
    return all(before.get(name) == now.get(name) for name in ("server", "task", "annotation", "updated_at"))


def _content(rating: Rating) -> tuple[Any, ...]:
    return tuple(getattr(rating, name) for name in CONTENT)


def _moment(annotation: dict[str, Any]) -> str:
    """When an annotation was last changed, as the ledger writes moments."""
    text = str(annotation.get("updated_at") or annotation.get("created_at") or "")
    try:
        return _utc_text(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return UNDATED


def _after(before: str, moment: str | None) -> str:
    """`moment`, or 1 ms after `before` where clocks disagree: the newer line must have the later time."""
    try:
        least = _utc_text(datetime.fromisoformat(before) + timedelta(milliseconds=1))
    except (ValueError, OverflowError):
        return moment or ledger.now()
    return max(moment or "", least)


def _utc_text(moment: datetime) -> str:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="milliseconds")
