"""Whatever people do between pulls, and in whatever order: what counts is what stands in Label Studio now."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    multiple,
    rule,
    run_state_machine_as_test,
)

from coaudit.annotation.labelstudio import Project
from coaudit.annotation.labelstudio.client import ListedTask
from coaudit.pipeline.annotate import draw, pull
from coaudit.pipeline.annotate.project import Mark, book_of, keep_codebook, subject
from coaudit.pipeline.store import Store
from coaudit.pipeline.store.ledgers.samples import Sample
from tests.pipeline.annotate.test_push import store as store
from tests.pipeline.annotate.test_reconcile import said
from tests.pipeline.stores import rows

PEOPLE = st.sampled_from([1, 1, 2])
LABELS = st.sampled_from(["yes", "no", None])
"""None: skipped."""


class Changing:
    """As much of `Server` as a pull calls: one project, with two tasks of each unit."""

    url = "http://127.0.0.1:1"
    numbers = itertools.count(1)

    def __init__(self, keys: list[str], mark: Mark) -> None:
        self.run = next(self.numbers)
        self.project = Project(self.run, "t", mark.text(), "")
        self.minutes = itertools.count()
        tasks = enumerate([*keys, *keys], 1)
        self.listed = {n: ListedTask(n, key, (), self.moment(), 1, []) for n, key in tasks}

    def moment(self) -> str:
        """A minute later than the last change, as the clock of the server has it."""
        return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=next(self.minutes))).isoformat()

    def check(self) -> str:
        return "admin"

    def users(self) -> dict[int, str]:
        return {1: f"ann{self.run}", 2: f"bob{self.run}"}

    def projects(self, mark: str) -> list[Project]:
        return [self.project]

    def tasks(self, key: int, since: str | None = None) -> Iterator[ListedTask]:
        after = datetime.fromisoformat(since) if since else None
        yield from (
            task
            for task in self.listed.values()
            if after is None or datetime.fromisoformat(task.updated_at) > after
        )

    def heads(self, key: int) -> list[ListedTask]:
        return [*self.listed.values()]

    def put(self, task: int, annotations: list[dict[str, Any]]) -> None:
        self.listed[task] = replace(self.listed[task], annotations=annotations, updated_at=self.moment())


class Sequence(RuleBasedStateMachine):
    """People answer, edit, skip and delete, tasks go, and somebody pulls now and then."""

    store: Store
    sample: Sample
    annotations = Bundle("annotations")

    def __init__(self) -> None:
        super().__init__()
        book, units = book_of(self.sample, "initiative", self.store.workspace)
        keep_codebook(self.store.workspace, book)
        self.units = {subject(self.sample, one, book.version).key: one.event for one in units}
        mark = Mark(self.sample.design.identity, book.name, book.version, "transcript", "c")
        self.server = Changing([*self.units], mark)
        self.ids = itertools.count(1)

    def answer(self, task: int, number: int, by: int, label: str | None) -> None:
        moment = {"created_at": (now := self.server.moment()), "updated_at": now}
        fresh = said(number, label or "yes", 0, completed_by=by, was_cancelled=label is None) | moment
        others = [one for one in self.server.listed[task].annotations if one["id"] != number]
        self.server.put(task, [*others, fresh])

    @initialize(target=annotations, by=PEOPLE, labels=st.tuples(LABELS, LABELS))
    def begin(self, by: int, labels: tuple[str | None, str | None]) -> Any:
        """Somebody answers both tasks of the unit before the first pull."""
        both = [self.give(task, by, label) for task, label in enumerate(labels, 1)]
        self.pull()
        return multiple(*both)

    @rule(target=annotations, task=st.integers(1, 2), by=PEOPLE, label=LABELS)
    def give(self, task: int, by: int, label: str | None) -> Any:
        if task not in self.server.listed:
            return multiple()
        self.answer(task, number := next(self.ids), by, label)
        return task, number, by

    @rule(annotation=annotations, label=LABELS)
    def edit(self, annotation: tuple[int, int, int], label: str | None) -> None:
        task, number, by = annotation
        if task in self.server.listed:
            self.answer(task, number, by, label)

    @rule(annotation=consumes(annotations))
    def delete(self, annotation: tuple[int, int, int]) -> None:
        task, number, _ = annotation
        if task in self.server.listed:
            rest = [one for one in self.server.listed[task].annotations if one["id"] != number]
            self.server.put(task, rest)

    @rule(task=st.integers(1, 2))
    def delete_task(self, task: int) -> None:
        self.server.listed.pop(task, None)

    @rule()
    def pull(self) -> None:
        server: Any = self.server
        pull.pull(self.store, server, self.sample)
        assert self.counting() == self.standing()

    def teardown(self) -> None:
        self.pull()
        server: Any = self.server
        again = pull.pull(self.store, server, self.sample)
        assert (again.rated, again.errors, again.retracted) == (0, 0, 0)

    def standing(self) -> dict[tuple[int | None, str], str | None]:
        """(Event, rater) -> the label of the latest annotation in Label Studio."""
        users = self.server.users()
        last: dict[tuple[int | None, str], tuple[str, str | None]] = {}
        for task in self.server.listed.values():
            for one in task.annotations:
                place = (self.units[str(task.key)], f"ls:{users[one['completed_by']]}")
                label = None if one["was_cancelled"] else one["result"][0]["value"]["choices"][0]
                last[place] = max(last.get(place, ("", None)), (one["updated_at"], label), key=lambda x: x[0])
        return {place: label for place, (_, label) in last.items()}

    def counting(self) -> dict[tuple[int | None, str], str | None]:
        """The same of the ratings that hold."""
        raters = [f"ls:{who}" for who in self.server.users().values()]
        query = "SELECT event, rater, label FROM current_ratings WHERE rater IN (?, ?)"
        return {(row["event"], row["rater"]): row["label"] for row in rows(self.store, query, *raters)}


@pytest.mark.long
def test_after_each_pull_the_labels_that_hold_are_those_in_label_studio(store: Store) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=1))
    machine = type("Here", (Sequence,), {"store": store, "sample": sample})
    few = settings(max_examples=10, stateful_step_count=8, derandomize=True, phases=[Phase.generate])
    run_state_machine_as_test(machine, settings=few)
