"""Which of a person's annotations of a unit counts, from one pull to the next."""

from __future__ import annotations

from typing import Any

from coaudit.annotation.labelstudio.client import Listed
from coaudit.pipeline.annotate import draw
from coaudit.pipeline.annotate.project import book_of, subject
from coaudit.pipeline.annotate.reconcile import Pulled, Pulling
from coaudit.pipeline.store import Store
from coaudit.pipeline.store.samples import Sample
from tests.pipeline.annotate.test_push import store as store

URL = "http://127.0.0.1:1"


def said(number: int, label: str, minute: int, **more: Any) -> dict[str, Any]:
    answer = {
        "from_name": "answer",
        "to_name": "transcript",
        "type": "choices",
        "value": {"choices": [label]},
    }
    moment = f"2026-01-01T10:{minute:02}:00Z"
    return {
        "id": number,
        "completed_by": 1,
        "created_at": moment,
        "updated_at": moment,
        "result": [answer],
    } | more


def pulled(
    store: Store, sample: Sample, tasks: dict[int, list[dict[str, Any]]], alive: set[int] | None
) -> list[str]:
    """The labels that hold once these tasks of one unit were pulled."""
    book, units = book_of(sample, "initiative", store.workspace)
    key = subject(sample, units[0], book.version).key
    touched = [Listed(task, key, (), "", 1, annotations) for task, annotations in tasks.items()]
    Pulling(store, sample, book, URL, 1, {1: "ann", 2: "bob"}, Pulled()).take(touched, alive)
    store.sync()
    with store.reading() as connection:
        return [row[0] for row in connection.execute("SELECT label FROM counted").fetchall()]


def test_the_answer_before_counts_again_where_the_latest_was_deleted(store: Store) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    first, again = said(1, "no", 0), said(2, "yes", 5)
    assert pulled(store, sample, {7: [first, again]}, {7}) == ["yes"]
    assert pulled(store, sample, {7: [first]}, {7}) == ["no"]
    assert pulled(store, sample, {7: [first]}, {7}) == ["no"]


def test_the_answer_before_counts_again_where_the_task_of_the_latest_was_deleted(store: Store) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    first, again = said(1, "no", 0), said(2, "yes", 5)
    assert pulled(store, sample, {7: [first], 8: [again]}, {7, 8}) == ["yes"]
    assert pulled(store, sample, {7: [first]}, {7, 8}) == ["yes"]
    assert pulled(store, sample, {7: [first]}, {7}) == ["no"]


def test_a_later_answer_that_somebody_else_changed_since_stays_as_it_was(store: Store) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "pilot", size=20))
    first, again = said(1, "no", 0), said(2, "yes", 5)
    assert pulled(store, sample, {7: [first, again]}, {7}) == ["yes"]
    assert pulled(store, sample, {7: [first, said(2, "no", 6, updated_by=2)]}, {7}) == ["yes"]
