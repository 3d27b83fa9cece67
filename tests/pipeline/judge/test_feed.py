"""What takes a run's ratings: only what is on disk counts, and what cannot be written ends the run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from coaudit.judges.llm import Budget
from coaudit.judges.llm.limits import Limiter
from coaudit.pipeline.judge.feed import Sink
from coaudit.pipeline.judge.model import State
from coaudit.pipeline.judge.run_claims import RunClaims
from coaudit.pipeline.judge.scope import Summary
from coaudit.pipeline.store.ledgers.ledger import RatingLedger, ratings
from coaudit.schemas import Rating

HALF = "\ud83d"
"""Half of a character, which no file in UTF-8 can hold."""


class NoClaims:
    """Nothing is claimed, and so nothing is given back."""

    def plan(self) -> frozenset[tuple[str, str]]:
        return frozenset()

    def count_answer(self, codebook: str, trajectory: str) -> None:
        pass

    def give_back(self, plan: frozenset[tuple[str, str]]) -> None:
        pass


def rated(event: int, model: str = "judge") -> list[Rating]:
    """One unit's."""
    about = {"codebook": "initiative", "code": "initiative", "rater": "judge", "rater_kind": "llm"}
    rating = Rating.model_validate({"trajectory": "t1", "event": event, "label": "yes", **about})
    return [rating.model_copy(update={"model": model})]


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    state = State(Summary(), Budget(), Limiter(1))
    return Sink(RatingLedger(tmp_path / "ratings"), state, cast(RunClaims, NoClaims()))


async def test_what_is_on_disk_counts_as_rated(sink: Sink) -> None:
    sink.put([rated(1), rated(2)])
    await asyncio.sleep(0)
    assert (sink.state.answered, sink.state.summary.rated) == (2, 0)
    sink.flush()
    assert sink.state.summary.rated == len(list(ratings(sink.ledger.path))) == 2
    assert sink.state.fatal is None


async def test_a_rating_that_cannot_be_written_ends_the_run_and_does_not_count(sink: Sink) -> None:
    sink.put([rated(1)])
    await asyncio.sleep(0)
    sink.put([rated(2, HALF)])
    await asyncio.sleep(0)
    assert "the ledger cannot be written" in str(sink.state.fatal) == sink.state.stopping
    sink.flush()
    assert sink.state.summary.rated == len(list(ratings(sink.ledger.path))) == 1


async def test_a_rating_that_cannot_be_written_takes_none_of_its_neighbours_with_it(sink: Sink) -> None:
    sink.put([rated(1), rated(2, HALF), rated(3)])
    await asyncio.sleep(0)
    sink.put([rated(4)])
    sink.flush()
    written = [rating.event for rating, _ in ratings(sink.ledger.path) if isinstance(rating, Rating)]
    assert written == [1, 3, 4]
    assert sink.state.summary.rated == 3
    assert sink.state.fatal is not None


async def test_a_copied_rating_that_cannot_be_written_ends_the_run(sink: Sink) -> None:
    sink.copy(rated(1, HALF))
    assert "the ledger cannot be written" in str(sink.state.fatal)


async def test_a_disk_that_fails_in_the_background_ends_the_run(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing() -> None:
        raise ValueError("no such part")

    monkeypatch.setattr(RatingLedger, "pause", 0.01)
    monkeypatch.setattr(sink.ledger, "flush", failing)
    flushing = asyncio.create_task(sink.keep_flushing())
    sink.put([rated(1)])
    await asyncio.sleep(0.1)
    assert "no such part" in str(sink.state.fatal) and sink.state.summary.rated == 0
    flushing.cancel()
    await asyncio.wait([flushing])
