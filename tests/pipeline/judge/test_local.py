"""Raters that need no endpoint: what is left is rated in one pass, whatever was rated before."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from coaudit.judges.rules import Rules
from coaudit.pipeline import codebooks
from coaudit.pipeline.errors import StoreError
from coaudit.pipeline.ingest.measure import save
from coaudit.pipeline.judge import dialogue, embedded, local
from coaudit.pipeline.judge.scope import Scope, Summary
from coaudit.pipeline.store import Store
from coaudit.pipeline.store.ledgers import ledger
from coaudit.pipeline.store.queries.stream import stream
from coaudit.pipeline.units import cut
from coaudit.schemas import Rating, Trajectory, Unit
from coaudit.schemas.codebook import ContextKind
from tests.judges.teams import team
from tests.pipeline.stores import made, rows


def fill(path: Path, *logs: Trajectory) -> Store:
    """A store of these trajectories."""
    store = made(path)
    add(store, *logs)
    return store


def add(store: Store, *logs: Trajectory) -> None:
    """Store trajectories, or store them anew."""
    with store.writing() as connection:
        save(store, logs, connection)


def talk(key: str, *more: str) -> Trajectory:
    """A query, a question with its reply, and what the human says further."""
    said = [("human", "Make a plan."), ("agent", "Shall I use blue?"), ("human", "Yes, use blue.")]
    log = team(*said, *(("human", text) for text in more), key=key)
    # It lies in the chat before anything is done: without a status.
    query = log.events[1].model_copy(update={"status": None})
    return log.model_copy(update={"events": (log.events[0], query, *log.events[2:])})


def judge(store: Store, scope: Scope | None = None, rater: str = "rules") -> Summary:
    """A run on the codebooks that are judged where none is asked for."""
    return embedded.judge(store, rater, (), scope or Scope(()), print)


def held(store: Store) -> list[Rating]:
    """Every rating in the ledgers, in their order."""
    items = [item for path in ledger.files(store.workspace.ratings) for item, _ in ledger.ratings(path)]
    return [item for item in items if isinstance(item, Rating)]


def timeless(ratings: list[Rating]) -> list[Rating]:
    """The same, whenever they were made."""
    return [rating.model_copy(update={"created": None}) for rating in ratings]


def places(ratings: list[Rating]) -> list[tuple[str, str, int | None]]:
    """Codebook, trajectory and event of each."""
    return [(r.codebook, r.trajectory, r.event) for r in ratings]


# Messages are events 1 to 3; 1 is the opening query. Utterances 2 and 3, the question 2, the human's 3.
OF_ONE = [("initiative", 2), ("initiative", 3), ("confirmation", 2), ("halting", 3)]


@pytest.mark.long
def test_ratings_follow_codebooks_trajectories_and_events(tmp_path: Path) -> None:
    store = fill(tmp_path / "w", talk("b"), talk("a"))
    assert judge(store).rated == 8
    assert places(held(store)) == [
        *[("initiative", key, seq) for key in "ab" for seq in (2, 3)],
        *[("confirmation", key, 2) for key in "ab"],
        *[("halting", key, 3) for key in "ab"],
    ]


@pytest.mark.long
def test_batches_that_are_rated_side_by_side_come_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [talk(f"{key:02}", "Stop.", "Why?") for key in range(20)]
    at_once = fill(tmp_path / "at once", *logs)
    judge(at_once)
    monkeypatch.setattr(dialogue, "AT_ONCE", 7)
    monkeypatch.setattr(dialogue, "cores", lambda: 64)
    lines, first = dialogue._lines, threading.Event()

    def late(rules: Rules, batch: pa.RecordBatch) -> tuple[memoryview, int]:
        """The first batch is ready when another one is."""
        if first.is_set():
            return lines(rules, batch)
        first.set()
        time.sleep(0.2)
        return lines(rules, batch)

    monkeypatch.setattr(dialogue, "_lines", late)
    store = fill(tmp_path / "seven", *logs)
    assert judge(store).rated == 20 * 8
    assert timeless(held(store)) == timeless(held(at_once))


@pytest.mark.long
def test_where_nothing_is_left_no_trajectory_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fill(tmp_path / "w", talk("a"), talk("b"))
    judge(store, rater="detectors")

    def refused(*_: object, **__: object) -> list[Trajectory]:
        raise StoreError("read")

    monkeypatch.setattr(Store, "load", refused)
    again = judge(store, rater="detectors")
    assert (again.rated, again.already) == (0, 2)
    add(store, talk("c"))
    with pytest.raises(StoreError, match="read"):
        judge(store, rater="detectors")


@pytest.mark.long
def test_only_what_is_left_is_rated(tmp_path: Path) -> None:
    store = fill(tmp_path / "w", talk("a"), talk("b"))
    judge(store)
    add(store, talk("b", "Stop here."), talk("c"))
    again = judge(store)
    assert (again.rated, again.already) == (6, 8)
    fresh = places(held(store)[8:])
    assert sorted(fresh) == sorted(
        [("initiative", "b", 4), ("halting", "b", 4), *[(book, "c", seq) for book, seq in OF_ONE]]
    )


@pytest.mark.long
def test_a_folder_for_temporary_files_may_have_a_quote_in_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "it's here"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert judge(fill(tmp_path / "w", talk("a"))).rated == 4
    assert not list(folder.iterdir())


@pytest.mark.long
def test_long_texts_are_rated_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [talk(key, "Stop here. " * 200) for key in "abcdefgh"]
    whole, parts = fill(tmp_path / "whole", *logs), fill(tmp_path / "parts", *logs)
    judge(whole)
    sizes: list[tuple[int, int]] = []
    labels = Rules.labels

    def noted(self: Rules, columns: Sequence[pa.StringArray]) -> list[str]:
        sizes.append((len(columns[0]), max(column.nbytes for column in columns)))
        return labels(self, columns)

    monkeypatch.setattr(Rules, "labels", noted)
    monkeypatch.setattr(dialogue, "BYTES", 5000)
    assert judge(parts).rated == 48
    assert sum(count for count, _ in sizes) == 48
    assert all(size <= 5000 for _, size in sizes)
    assert timeless(held(parts)) == timeless(held(whole))


@pytest.mark.long
def test_a_unit_that_has_changed_is_rated_again(tmp_path: Path) -> None:
    store = fill(tmp_path / "w", talk("a", "Go on."))
    judge(store)
    add(store, talk("a", "Stop here."))
    again = judge(store)
    assert (again.rated, again.already) == (2, 4)
    assert [r.label for r in held(store) if r.event == 4 and r.codebook == "halting"] == ["no", "yes"]


@pytest.mark.long
def test_what_another_version_of_the_rater_said_last_is_rated_again(tmp_path: Path) -> None:
    store = fill(tmp_path / "w", talk("a"))
    judge(store)
    older = [r.model_copy(update={"rater_version": "older"}) for r in held(store) if r.codebook == "halting"]
    with ledger.RatingLedger(store.workspace.ratings) as file:
        file.append(older)
    again = judge(store)
    assert (again.rated, again.already) == (1, 3)


@pytest.mark.long
def test_what_was_taken_back_is_rated_again(tmp_path: Path) -> None:
    store = fill(tmp_path / "w", talk("a"))
    judge(store)
    back = {"label": None, "retracted": True}
    with ledger.RatingLedger(store.workspace.ratings) as file:
        file.append([r.model_copy(update=back) for r in held(store) if r.codebook == "initiative"])
    again = judge(store)
    assert (again.rated, again.already) == (2, 2)


@pytest.mark.long
def test_a_failure_is_rated_again_only_where_that_is_asked_for(tmp_path: Path) -> None:
    store = fill(tmp_path / "w", talk("a"))
    judge(store)
    failed = {"label": None, "error": "no answer"}
    with ledger.RatingLedger(store.workspace.ratings) as file:
        file.append([r.model_copy(update=failed) for r in held(store) if r.codebook == "confirmation"])
    assert (judge(store).rated, judge(store).already) == (0, 4)
    retried = judge(store, Scope((), retry_errors=True))
    assert (retried.rated, retried.already) == (1, 3)


@pytest.mark.long
def test_a_limit_takes_the_first_units_of_the_first_codebook(tmp_path: Path) -> None:
    store = fill(tmp_path / "w", talk("a"), talk("b"))
    assert judge(store, Scope((), limit=3)).rated == 3
    assert places(held(store)) == [("initiative", "a", 2), ("initiative", "a", 3), ("initiative", "b", 2)]
    more = judge(store, Scope((), limit=2))
    assert (more.rated, more.already) == (2, 3)
    assert places(held(store)[3:]) == [("initiative", "b", 3), ("confirmation", "a", 2)]


@pytest.mark.long
def test_the_opening_query_is_rated_where_that_is_asked_for(tmp_path: Path) -> None:
    store = fill(tmp_path / "w", talk("a"))
    judge(store)
    asked = judge(store, Scope((), include_query=True))
    assert (asked.rated, asked.already) == (2, 4)
    assert places(held(store)[4:]) == [("initiative", "a", 1), ("halting", "a", 1)]


@pytest.mark.long
def test_a_trajectory_as_a_whole_is_known_again(tmp_path: Path) -> None:
    store = fill(tmp_path / "w", talk("a"))
    first = judge(store, rater="detectors")
    assert (first.rated, first.already) == (1, 0)
    again = judge(store, rater="detectors")
    assert (again.rated, again.already) == (0, 1)


@pytest.mark.long
def test_actions_and_failed_messages_among_the_dialogue_change_no_unit(tmp_path: Path) -> None:
    said = [
        ("agent", "WAIT()"),
        ("human", "Make a plan."),
        ("agent", "Shall I use blue?"),
        ("agent", "EDIT(draft)"),
        ("human", "Never mind."),
        ("human", "Yes, use blue."),
    ]
    store = fill(tmp_path / "w", team(*said, failing={5: "not sent"}))
    assert judge(store).rated == 6
    assert places(held(store)) == [
        *[("initiative", "t1", seq) for seq in (2, 3, 6)],
        ("confirmation", "t1", 3),
        *[("halting", "t1", seq) for seq in (2, 6)],
    ]
    # What counts has the hash of a unit of the whole trajectory.
    assert rows(store, "SELECT count(*) AS n FROM counted_ratings") == [{"n": 6}]


@pytest.mark.long
@pytest.mark.parametrize("rater", ["rules", "detectors"])
def test_little_in_memory_at_a_time_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rater: str
) -> None:
    logs = [talk(key) for key in "abcde"]
    whole = fill(tmp_path / "whole", *logs)
    judge(whole, rater=rater)
    monkeypatch.setattr(local, "HELD", 1)
    monkeypatch.setattr(dialogue, "AT_ONCE", 1)
    parts = fill(tmp_path / "parts", *logs)
    assert judge(parts, rater=rater).rated == (20 if rater == "rules" else 5)
    same = {"created": None}
    assert [r.model_copy(update=same) for r in held(parts)] == [
        r.model_copy(update=same) for r in held(whole)
    ]


@pytest.mark.long
def test_rules_say_of_columns_what_they_say_of_units(tmp_path: Path) -> None:
    """Two ways to the same rating: from the tables (`judge`), and from units (`follow`)."""
    logs = [
        talk("a", "Please stop, 小明.", "", "…", "Let us start with the hotels?"),
        talk("b", "Hold on.\nWhat about blue?"),
        team(
            ("agent", "Shall I go on? Which one?"), ("agent", "Or wait?"), ("human", "The second."), key="c"
        ),
    ]
    store = fill(tmp_path / "w", *logs)
    judge(store, Scope((), include_query=True))
    books = [codebooks.load(name) for name in codebooks.PROCESS]
    units = [
        rating
        for book in books
        for log in logs
        for ratings in Rules(book).rate(list(cut(log, book, include_query=True)))
        for rating in ratings
    ]
    assert len(units) > 12
    assert sorted(timeless(held(store)), key=repr) == sorted(timeless(units), key=repr)


@dataclass
class Noting:
    """A rater that has seen what it is asked of."""

    seen: list[Unit] = field(default_factory=list)

    def rate(self, units: Sequence[Unit]) -> list[list[Rating]]:
        self.seen += units
        return [[] for _ in units]


@pytest.mark.long
def test_codebooks_with_different_contexts_share_a_pass_and_see_what_each_is_to_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [talk(key, *["Go on."] * length) for length, key in enumerate("abcdef")]
    store = fill(tmp_path / "w", *logs)
    contexts: dict[str, ContextKind] = {"initiative": "none", "trail_step": "transcript", "failures": "none"}
    books = tuple(
        codebooks.load(name).model_copy(update={"context": kind}) for name, kind in contexts.items()
    )
    raters = [Noting() for _ in books]
    monkeypatch.setattr(local, "HELD", 5)
    local.judge_locally(store, Scope(books), raters, ("noting", "1"), print)
    for book, rater in zip(books, raters, strict=True):
        units = [unit for one in logs for unit in cut(one, book)]
        assert [unit.model_dump() for unit in rater.seen] == [unit.model_dump() for unit in units]
        assert [unit.hash for unit in rater.seen] == [unit.hash for unit in units]


@pytest.mark.long
def test_what_is_left_of_one_trajectory_has_no_other_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = fill(tmp_path / "w", *(talk(key) for key in "abcdef"))
    judge(store, rater="detectors")
    add(store, talk("d", "Go on."))
    read: list[list[str]] = []

    def noted(store: Store, sizes: Sequence[tuple[str, int]], *given: int, **more: bool) -> Any:
        read.append([key for key, _ in sizes])
        return stream(store, sizes, *given, **more)

    monkeypatch.setattr(local, "stream", noted)
    assert (judge(store, rater="detectors").rated, read) == (1, [["d"]])


@pytest.mark.long
def test_detectors_of_a_system_read_its_own_trajectories_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = talk("own").model_copy(update={"system": "rehac"})
    store = fill(tmp_path / "w", own, *(talk(key) for key in "abc"))
    read: list[list[str]] = []

    def noted(store: Store, sizes: Sequence[tuple[str, int]], *given: int, **more: bool) -> Any:
        read.append([key for key, _ in sizes])
        return stream(store, sizes, *given, **more)

    monkeypatch.setattr(local, "stream", noted)
    judge(store, rater="detectors")
    assert read[1:] == [["own"]]
