"""A model with nothing to ask reads nothing, and whatever could change a prompt has it look again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from coaudit.pipeline.annotate import draw
from coaudit.pipeline.ingest.measure import save
from coaudit.pipeline.judge import shown
from coaudit.pipeline.store import Store
from coaudit.pipeline.store.queries import stream
from coaudit.schemas import Trajectory
from tests.conftest import ROOT, Coaudit
from tests.judges.endpoint import Endpoint
from tests.judges.teams import team
from tests.pipeline.stores import made, opened, rows

NAMES = ("t0", "t1", "t2")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint().serving() as serving:
        yield serving


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which trajectories are read, one after the other."""
    names: list[str] = []

    def noted(
        store: Store, sizes: Sequence[stream.Size], most: int, *, states: bool
    ) -> Iterator[list[Trajectory]]:
        for some in stream.stream(store, sizes, most, states=states):
            names.extend(one.id for one in some)
            yield some

    monkeypatch.setattr(shown, "stream", noted)
    return names


def log(name: str, *more: str, task: str | None = None) -> Trajectory:
    """A question with its reply, and what the human says further: two utterances and more."""
    said = [("agent", f"Shall I use {name}?"), ("human", "Yes."), *(("human", text) for text in more)]
    return team(*said, key=name).model_copy(update={"task": task})


def add(store: Store, *logs: Trajectory) -> None:
    with store.writing() as connection:
        save(store, logs, connection)


@pytest.fixture
def store(workspace: Path) -> Store:
    """Three of them."""
    store = made(workspace)
    add(store, *map(log, NAMES))
    return store


def judged(coaudit: Coaudit, endpoint: Endpoint, *options: str) -> tuple[int, int]:
    """A run on initiative: how many units were rated, and how many were already."""
    wanted = ["judge", "--json", "--model", "hosted_vllm/judge", "--api-base", endpoint.url]
    done: Any = coaudit(*wanted, "--codebook", "initiative", *options).json
    return done["rated"], done["already"]


@pytest.mark.long
def test_where_all_was_asked_no_trajectory_is_read(
    coaudit: Coaudit, store: Store, endpoint: Endpoint, read: list[str]
) -> None:
    assert judged(coaudit, endpoint) == (6, 0)
    assert set(read) == set(NAMES)
    read.clear()
    assert judged(coaudit, endpoint) == (0, 6)
    assert read == []
    coaudit("rebuild")
    add(store, *map(log, NAMES))
    assert judged(coaudit, endpoint) == (0, 6)
    assert judged(coaudit, endpoint, "--retry-errors") == (0, 6)


@pytest.mark.long
def test_one_open_unit_has_its_own_trajectory_read_and_no_other(
    coaudit: Coaudit, store: Store, endpoint: Endpoint, read: list[str]
) -> None:
    judged(coaudit, endpoint)
    add(store, log("t1", "Go on."))
    read.clear()
    assert judged(coaudit, endpoint) == (1, 6)
    assert set(read) == {"t1"}


@pytest.mark.long
def test_what_is_seen_beside_a_unit_has_it_asked_again_once_it_has_changed(
    coaudit: Coaudit, store: Store, endpoint: Endpoint, read: list[str]
) -> None:
    seeing = ("--context", "transcript")
    assert judged(coaudit, endpoint, *seeing) == (6, 0)
    assert judged(coaudit, endpoint, *seeing) == (0, 6)
    add(store, log("t1", "Go on."))
    read.clear()
    assert judged(coaudit, endpoint, *seeing) == (3, 4)
    assert set(read) == {"t1"}
    read.clear()
    assert judged(coaudit, endpoint, *seeing) == (0, 7)
    assert read == []


@pytest.mark.long
def test_with_another_secret_every_prompt_is_another(
    coaudit: Coaudit, store: Store, endpoint: Endpoint
) -> None:
    judged(coaudit, endpoint)
    (store.workspace.path / "secret").unlink()
    assert judged(coaudit, endpoint) == (6, 0)
    assert judged(coaudit, endpoint) == (0, 6)


@pytest.mark.long
def test_once_a_recipe_is_known_what_was_asked_without_it_is_asked_again(
    coaudit: Coaudit, endpoint: Endpoint, store: Store
) -> None:
    """With nothing but a note that all is answered, recipes that came later were in no prompt."""
    kitchen = ROOT / "data" / "overcooked"
    assert coaudit("ingest", kitchen / "logs").status == 0
    options = ("--codebook", "team_faults")
    judged(coaudit, endpoint, *options)
    assert judged(coaudit, endpoint, *options)[0] == 0
    assert coaudit("ingest", kitchen / "logs", "--reference", kitchen / "recipe").status == 0
    runs = len(rows(store, "SELECT id FROM trajectories WHERE system = 'overcooked'"))
    assert judged(coaudit, endpoint, *options)[0] == runs > 0
    assert judged(coaudit, endpoint, *options)[0] == 0


def test_another_word_of_the_same_rater_has_it_look_again(
    coaudit: Coaudit, store: Store, endpoint: Endpoint
) -> None:
    judged(coaudit, endpoint)
    assert judged(coaudit, endpoint, "--seed", "1") == (6, 0)
    assert judged(coaudit, endpoint) == (6, 0)
    assert len(endpoint.asked) == 12


@pytest.mark.long
def test_a_run_that_asks_only_some_leaves_the_others_to_the_next(
    coaudit: Coaudit, store: Store, endpoint: Endpoint
) -> None:
    assert judged(coaudit, endpoint, "--limit", "3") == (3, 0)
    assert rows(store, "FROM settled") == []
    assert judged(coaudit, endpoint) == (3, 3)
    assert judged(coaudit, endpoint, "--repeats", "2") == (6, 6)
    assert judged(coaudit, endpoint, "--repeats", "2") == (0, 12)


@pytest.mark.long
def test_failures_are_settled_until_they_are_to_be_asked_again(coaudit: Coaudit, store: Store) -> None:
    refused = ["t1"]

    def answer(body: dict[str, Any]) -> str | web.Response:
        said = body["messages"][-1]["content"]
        return web.Response(status=400) if any(name in said for name in refused) else "no"

    with Endpoint(answer=answer).serving() as endpoint:
        assert judged(coaudit, endpoint) == (5, 0)
        assert judged(coaudit, endpoint) == (0, 6)
        refused.clear()
        assert judged(coaudit, endpoint, "--retry-errors") == (1, 5)


@pytest.mark.long
def test_of_a_codebook_for_few_and_of_a_sample_only_those_are_read(
    coaudit: Coaudit, store: Store, endpoint: Endpoint, read: list[str]
) -> None:
    add(store, log("few", task="related_work"))
    book = store.workspace.codebooks / "few.toml"
    book.parent.mkdir()
    book.write_text(
        'name = "few"\ntitle = "Few"\nunit = "utterance"\nlabels = ["yes", "no"]\nquestion = "Is it?"\n'
        'applies_to = {task = "related_work"}\n[[codes]]\ncode = "few"\nname = "Few"\ndefinition = "It is."\n'
    )
    wanted = ["judge", "--json", "--model", "hosted_vllm/judge", "--api-base", endpoint.url]
    assert coaudit(*wanted, "--codebook", "few").json["rated"] == 2
    assert set(read) == {"few"}
    sample = draw.draw(opened(store.workspace.path), draw.Wish(("initiative",), "one", size=1))
    read.clear()
    assert judged(coaudit, endpoint, "--sample", "one") == (1, 0)
    assert set(read) == {unit.trajectory for unit in sample.units}


def current(store: Store) -> list[dict[str, Any]]:
    """The last word on each unit, by the prompt that it answers."""
    return rows(
        store, "SELECT trajectory_id, event, prompt_hash FROM current_ratings ORDER BY trajectory_id, event"
    )


@pytest.mark.long
def test_a_log_that_is_what_it_was_has_the_words_that_answer_it(
    coaudit: Coaudit, store: Store, endpoint: Endpoint
) -> None:
    seeing = ("--context", "transcript")
    judged(coaudit, endpoint, *seeing)
    before = current(store)
    add(store, log("t1", "Go on."))
    judged(coaudit, endpoint, *seeing, "--limit", "1")
    add(store, log("t1"))
    judged(coaudit, endpoint, *seeing)
    assert current(store) == before


@pytest.mark.long
def test_another_secret_and_the_first_again_restore_the_first_words(
    coaudit: Coaudit, store: Store, endpoint: Endpoint
) -> None:
    secret = store.workspace.path / "secret"
    first = secret.read_bytes() if secret.exists() else None
    judged(coaudit, endpoint)
    first = first or secret.read_bytes()
    before = current(store)
    secret.write_bytes(b"0" * len(first))
    judged(coaudit, endpoint)
    assert current(store) != before
    secret.write_bytes(first)
    judged(coaudit, endpoint)
    assert current(store) == before
