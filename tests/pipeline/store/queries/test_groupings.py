"""By what sessions are chosen: fields, tags, the day and outcomes."""

from __future__ import annotations

from typing import Any

import pytest

from coaudit.pipeline.errors import UsageError
from coaudit.pipeline.store import Store, execute
from coaudit.pipeline.store.queries.groupings import selection_of
from coaudit.pipeline.store.queries.selection import NONE
from coaudit.schemas import Outcome
from tests.judges.teams import team
from tests.pipeline.stores import holding


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Five sessions: a failed, b succeeded, c half, d ended early, e says nothing; success is d's tag."""
    said: dict[str, dict[str, Any]] = {
        "a": {"outcomes": (Outcome(name="delivered", value=0), Outcome(name="end", text="time out"))},
        "b": {"outcomes": (Outcome(name="delivered", value=1), Outcome(name="task", text="other"))},
        "c": {"outcomes": (Outcome(name="delivered", value=0.5),), "task": "trip"},
        "d": {
            "outcomes": (Outcome(name="end", text="0"), Outcome(name="arm", value=7)),
            "tags": {"arm": "x"},
        },
        "e": {},
    }
    talk = team(("human", "Hi"), ("agent", "Ho"))
    runs = [talk.model_copy(update={"id": key, "native_id": key, **own}) for key, own in said.items()]
    return holding(tmp_path_factory.mktemp("groupings") / "workspace", runs)


def chosen(store: Store, *wishes: tuple[str, str]) -> str:
    """The sessions that have what is asked for."""
    with store.reading() as connection:
        where, values = selection_of(connection, wishes).where()
        query = f"SELECT string_agg(t.id, '' ORDER BY t.id) FROM trajectories t WHERE {where}"
        ((ids,),) = execute(connection, query, values).fetchall()
    return str(ids)


@pytest.mark.parametrize(
    ("wishes", "sessions"),
    [
        ([], "abcde"),
        ([("delivered", "0")], "a"),
        ([("delivered", "0.0"), ("delivered", "1")], "ab"),
        ([("delivered", ".5")], "c"),
        ([("delivered", NONE)], "de"),
        ([("end", "time out"), ("end", NONE)], "abce"),
        ([("end", "0")], "d"),
        ([("delivered", "0.5"), ("task", "trip")], "c"),
        ([("arm", "x")], "d"),
        ([("instance", NONE), ("delivered", "1")], "b"),
    ],
)
def test_any_value_of_one_name_and_one_of_each_is_wanted_of_fields_then_tags_then_outcomes(
    store: Store, wishes: list[tuple[str, str]], sessions: str
) -> None:
    assert chosen(store, *wishes) == sessions


def test_a_name_that_no_session_has_is_an_error_with_those_there_are(store: Store) -> None:
    with pytest.raises(
        UsageError, match=r"an outcome 'colour', expected one of .*, day, arm, delivered, end"
    ):
        chosen(store, ("colour", "red"))


@pytest.mark.parametrize("wish", [("task", "other"), ("arm", "7"), ("delivered", "2"), ("day", "2026-01-01")])
def test_values_that_no_session_has_are_an_error_that_names_them(store: Store, wish: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match=f" and {'='.join(wish)}, expected values that the logs have"):
        chosen(store, ("setting", NONE), wish)


def test_a_selection_says_in_words_what_it_is_of(store: Store) -> None:
    wishes = [("task", "trip"), ("task", NONE), ("delivered", "0.5"), ("delivered", NONE)]
    with store.reading() as connection:
        only = selection_of(connection, wishes)
    assert only.words() == f"task = trip or {NONE}, delivered = 0.5 or {NONE}"
