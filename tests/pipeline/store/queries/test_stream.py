"""Trajectories in an order of one's own: what loading gives, in a few passes however many there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.store import Store, memory
from coaudit.pipeline.store.queries import stream
from coaudit.schemas import Outcome, Trajectory
from tests.judges.teams import team
from tests.pipeline.stores import holding

NAMES = [f"t{(7 * number) % 40:02}" for number in range(40)]


def log(name: str) -> Trajectory:
    """A conversation with states, of which two share one, and outcomes."""
    length = 1 + int(name[1:]) % 5
    made = team(*[(("human", "agent")[i % 2], f"Item {i} of {name}?") for i in range(length)], key=name)
    states = {f"{name}-a": {"draft": name}, "shared": [1, "two", None]}
    events = [
        event.model_copy(update={"states": {"public": "shared", "agent": f"{name}-a"} if event.seq else {}})
        for event in made.events
    ]
    outcomes = (Outcome(name="delivered", value=1), Outcome(name="result", text=name))
    return made.model_copy(update={"events": tuple(events), "outcomes": outcomes, "states": states})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return holding(tmp_path_factory.mktemp("stream") / "w", [log(name) for name in sorted(NAMES)])


def sizes(names: Sequence[str]) -> list[tuple[str, int]]:
    """Names with the number of their events."""
    return [(name, len(log(name).events)) for name in names]


@pytest.mark.long
@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("most", [1, 7, 10_000])
def test_it_gives_what_loading_gives_in_the_order_asked_for(store: Store, most: int, *, states: bool) -> None:
    with store.reading() as connection:
        whole = store.load(connection, NAMES, states=states)
    read = list(stream.stream(store, sizes(NAMES), most, states=states))
    assert [one for some in read for one in some] == whole
    assert bool(whole[0].states) == states
    assert most == 10_000 or all(sum(len(one.events) for one in some[:-1]) < most for some in read)


def test_those_that_are_not_there_are_left_out(store: Store) -> None:
    names = ["none", *NAMES[:9], "gone", *NAMES[9:]]
    wanted = [(name, 3) for name in names]
    assert [one.id for some in stream.stream(store, wanted, 4) for one in some] == NAMES


def test_it_goes_through_the_tables_a_few_times_and_only_as_far_as_is_asked(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = [0]
    reading = Store.reading

    def counted(self: Store, **options: Any) -> Any:
        opened[0] += 1
        return reading(self, **options)

    monkeypatch.setattr(Store, "reading", counted)
    read = stream.stream(store, sizes(NAMES), 4)
    assert not opened[0]
    next(read)
    assert opened == [1]
    list(read)
    # 4, 20 and 100 events, and the rest of 160.
    assert opened == [4]


@pytest.mark.long
def test_texts_that_do_not_fit_in_little_memory_are_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = [team(*[("human", f"{name}{i}" * 100_000) for i in range(40)], key=name) for name in ("a", "b")]
    store = holding(tmp_path / "w", long)
    given: list[str | None] = []
    bounded = memory.limit_memory

    def noted(connection: Any, most: str | None) -> None:
        given.append(most)
        bounded(connection, most)

    monkeypatch.setattr(memory, "limit_memory", noted)
    monkeypatch.setattr(stream, "MEMORY", "20MB")
    read = list(stream.stream(store, [("a", 20), ("b", 41)], 20))
    assert [one for some in read for one in some] == long
    assert None in given
