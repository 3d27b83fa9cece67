"""By what sessions are chosen: fields, tags, the day and outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.errors import UsageError
from coaudit.pipeline.store import Selection, Store, execute
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
        ([("delivered", "true"), ("delivered", "FALSE")], "ab"),
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


@pytest.mark.parametrize(
    ("wish", "values"),
    [
        (("task", "other"), "travel_planning, trip"),
        (("arm", "7"), "–, x"),
        (("delivered", "2"), "–, 0.0, 0.5, 1.0"),
        (("end", "time"), "–, 0, time out"),
        (("day", "2026-01-01"), "–"),
    ],
)
def test_a_value_that_no_session_has_is_an_error_with_those_there_are(
    store: Store, wish: tuple[str, str], values: str
) -> None:
    """A second value of one name, too: a misspelt one would leave its sessions out without a word."""
    for beside in (("setting", NONE), (wish[0], "travel_planning" if wish[0] == "task" else NONE)):
        with pytest.raises(UsageError) as error:
            chosen(store, beside, wish)
        assert str(error.value) == f"no session has {'='.join(wish)}, expected one of {values}"


def test_values_that_no_session_has_together_are_told_from_such_that_none_has(store: Store) -> None:
    with pytest.raises(UsageError, match=r"^no session has arm=x and delivered=1, though each of these some"):
        chosen(store, ("arm", "x"), ("delivered", "1"))


def test_a_selection_says_in_words_what_it_is_of(store: Store) -> None:
    wishes = [("task", "trip"), ("task", "travel_planning"), ("delivered", "0.5"), ("delivered", NONE)]
    with store.reading() as connection:
        only = selection_of(connection, wishes)
    assert only.words() == f"task = trip or travel_planning, delivered = 0.5 or {NONE}"


def test_a_selection_is_written_as_the_options_that_choose_it_again(store: Store) -> None:
    only = Selection(task=("a b", "a b"), tags=("arm=x=1",), outcomes=("end=time out",), days=("2026-01-01",))
    assert (
        only.options() == " --where 'task=a b' --where arm=x=1 --where 'end=time out' --where day=2026-01-01"
    )
    assert not Selection().options() and not Selection(ids=("a",)).options()


@pytest.mark.parametrize(
    ("days", "sessions", "words"),
    [
        (["2026-03-01..2026-03-02"], "ab", "2026-03-01 to 2026-03-02"),
        (["2026-03-02.."], "bc", "from 2026-03-02"),
        (["..2026-03-01"], "a", "until 2026-03-01"),
        (["..2026-03-01", "2026-03-04"], "ac", "until 2026-03-01 or 2026-03-04"),
        ([NONE, "2026-03-04"], "cd", f"{NONE} or 2026-03-04"),
    ],
)
def test_days_are_single_ones_or_spans_with_both_ends(
    tmp_path: Path, days: list[str], sessions: str, words: str
) -> None:
    """Commands beside a page that was filtered by From and Until went beyond them."""
    talk = team(("human", "Hi"))
    began = {"a": "2026-03-01T23:59:59Z", "b": "2026-03-02T00:00:00Z", "c": "2026-03-04T12:00:00Z", "d": None}
    runs = [
        talk.model_copy(
            update={"id": name, "events": tuple(e.model_copy(update={"time": time}) for e in talk.events)}
        )
        for name, time in began.items()
    ]
    store = holding(tmp_path / "workspace", runs)
    wishes = [("day", day) for day in days]
    assert chosen(store, *wishes) == sessions
    with store.reading() as connection:
        assert selection_of(connection, wishes).words() == f"day = {words}"


@pytest.mark.parametrize("day", ["2026-3-1..", "2026-02-30..2026-03-01", "..yesterday", ".."])
def test_a_span_of_days_has_dates_for_its_ends(store: Store, day: str) -> None:
    with pytest.raises(UsageError, match=r"day must be a date .*, got"):
        chosen(store, ("day", day))
