"""Blocks of what readers yield: a session that is told of again comes behind what was told of it before."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.ingest import blocks as making
from coaudit.pipeline.ingest import identity, intake
from coaudit.pipeline.ingest.blocks import Block, Reading, blocks
from coaudit.pipeline.ingest.sources import Place
from coaudit.pipeline.store import Store
from coaudit.pipeline.systems import ReadOptions
from tests.pipeline.ingest.test_workers import MAPPING, call, contents
from tests.pipeline.stores import made, take

OPTIONS = ReadOptions(map=MAPPING)


def read(folder: Path, *files: Sequence[str]) -> list[Block]:
    """The blocks of files with these lines."""
    readings = []
    for number, lines in enumerate(files):
        path = folder / f"{number}.jsonl"
        path.write_text("\n".join(lines) + "\n")
        readings.append(Reading(number, Place(path, str(path), "mapped"), OPTIONS, path.stat().st_size))
    return list(blocks(readings, {}))


def told(block: Block) -> list[tuple[str, int]]:
    """Its sessions with their events."""
    return [(head.native_id, head.summary.events) for head in block.heads]


def _looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many trajectories each look at the store loads from now on."""
    looks: list[int] = []
    load = Store.load

    def counted(self: Store, connection: Any, ids: Sequence[str], **more: Any) -> Any:
        looks.append(len(ids))
        return load(self, connection, ids, **more)

    monkeypatch.setattr(Store, "load", counted)
    return looks


def test_sessions_that_grow_side_by_side_make_a_block_a_version(tmp_path: Path) -> None:
    lines = [call(number, turns) for number in range(50) for turns in (1, 2, 3)]
    made_of = read(tmp_path, lines)
    assert [{events for _, events in told(block)} for block in made_of] == [{1}, {2}, {3}]
    assert all(len(block.heads) == block.parcel.rows["trajectories"] == 50 for block in made_of)


@pytest.mark.parametrize("most", [1, 3, 16])
def test_versions_come_in_their_order_however_many_there_are(
    tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "LAYERS", most)
    monkeypatch.setattr(making, "BLOCK_EVENTS", 100)
    lines = [call(number, turns) for turns in range(1, 41) for number in (1, 2)]
    came = [one for block in read(tmp_path, lines) for one in told(block)]
    for name in ("c1", "c2"):
        assert [events for key, events in came if key == name] == list(range(1, 41))
    assert len(came) == 80


def test_no_source_counts_as_read_while_what_it_told_again_waits(tmp_path: Path) -> None:
    """Else a kill in between would lose it: the source would be noted as done."""
    some = read(tmp_path, [call(1)], [call(2)], [call(1, 5)], [call(3)])
    assert [told(block) for block in some] == [[("c1", 3), ("c2", 3), ("c3", 3)], [("c1", 5)]]
    assert [block.source for block in some] == [0, 3]


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_what_is_wrong_with_a_source_is_kept_wherever_a_transaction_ends(
    tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines of a later source came with the first versions, before that source had its turn: they were
    taken out again."""
    monkeypatch.setattr(intake, "FLUSH_ROWS", most)
    (folder := tmp_path / "logs").mkdir()
    for name, lines in {
        "a": [call(1, 3), call(1, 4)],
        "b": [call(2, 3), "{broken", call(2, 5), '{"call": "x", "turns": 3}'],
        "c": [call(3), '{"cut'],
    }.items():
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    store = made(tmp_path / "workspace")
    done = take(store, folder, map=MAPPING, system="mapped")
    wrong = [(Path(row["source"]).name, row["line"]) for row in contents(store)["quarantine"]]
    assert sorted(wrong) == [("b.jsonl", 2), ("b.jsonl", 4), ("c.jsonl", 2)]
    assert len(done.quarantined) == 3


def test_what_stored_sessions_are_held_against_is_few_of_them_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However short the logs that tell of them: a hundred of 4,000 events took a gigabyte."""
    store = made(tmp_path / "workspace")
    (tmp_path / "long.jsonl").write_text("\n".join(call(number, 50) for number in range(30)) + "\n")
    (tmp_path / "short.jsonl").write_text("\n".join(call(number, 2) for number in range(30)) + "\n")
    take(store, tmp_path / "long.jsonl", map=MAPPING, system="mapped")
    looks = _looks(monkeypatch)
    monkeypatch.setattr(identity, "LATE_EVENTS", 500)
    done = take(store, tmp_path / "short.jsonl", map=MAPPING, system="mapped")
    assert (done.trajectories, done.unchanged) == (0, 30)
    assert looks == [10, 10, 10]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_growing_sessions_are_stored_as_one_after_the_other(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions in any order, of which some go on otherwise: whatever is taken together, the tables are those
    of one record at a time."""
    draw = random.Random(seed)
    lines = [call(draw.randrange(12), draw.randrange(1, 9)) for _ in range(120)]
    odd = [line.replace("/2 ", f"/2 {draw.random()} ") for line in draw.sample(lines, 10)]
    lines = draw.sample([*lines, *odd], 130)
    log = tmp_path / "calls.jsonl"
    log.write_text("\n".join(lines) + "\n")
    whole: list[dict[str, Any]] = []
    for number, (layers, late, events) in enumerate([(1, 1, 1), (2, 3, 10), (16, 100, 20_000)]):
        monkeypatch.setattr(making, "LAYERS", layers)
        monkeypatch.setattr(intake, "LATE", late)
        monkeypatch.setattr(intake, "LATE_EVENTS", events)
        monkeypatch.setattr(identity, "LATE_EVENTS", events)
        store = made(tmp_path / f"workspace-{number}")
        done = take(store, log, map=MAPPING, system="mapped")
        told = {"said": [done.trajectories, done.again, done.unchanged, done.events, sorted(done.notes)]}
        whole.append(contents(store) | told)
    assert whole[0] == whole[1] == whole[2]
    assert len(whole[0]["trajectories"]) > 12


@pytest.mark.slow
def test_sessions_that_have_grown_are_looked_for_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look passes over the whole store: one for each took a minute for two thousand sessions."""
    looks = _looks(monkeypatch)
    store = made(tmp_path / "workspace")
    lines = [call(number, turns) for number in range(300) for turns in (1, 2, 4)]
    (tmp_path / "calls.jsonl").write_text("\n".join(lines) + "\n")
    done = take(store, tmp_path / "calls.jsonl", map=MAPPING, system="mapped")
    assert (done.trajectories, done.again, done.events) == (300, 600, 1200)
    assert len(looks) <= 6 + 1 and sum(looks) <= 600
