"""Reading with many processes: the same tables as with one, whatever is in the file, and whoever dies."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaudit.pipeline.ingest import blocks, intake, workers
from coaudit.pipeline.ingest.blocks import Reading
from coaudit.pipeline.ingest.forgetting import forget
from coaudit.pipeline.ingest.sources import Place
from coaudit.pipeline.store import Store
from coaudit.pipeline.store.tables.columns import trajectories
from coaudit.pipeline.store.tables.parcel import Parcel
from coaudit.pipeline.systems import ReadOptions, base
from coaudit.pipeline.systems.base import Span, line_spans, numbered_lines
from coaudit.pipeline.systems.cogym.generate import generate
from coaudit.pipeline.systems.formats.mapped import reader
from coaudit.pipeline.systems.registry import system_of
from coaudit.schemas import JsonValue, Trajectory, content_hash
from tests.pipeline.stores import made, rows, take

MAPPING = """
[constants]
system = "calls"
[trajectory]
native_id = "call"
[event]
role = "turns[].who"
text = "turns[].said"
time = "turns[].at"
[roles]
caller = "human"
bot = "agent"
"""
TABLES = ("trajectories", "participants", "events", "units", "outcomes", "states", "computed", "measured")


def call(number: int, turns: int = 3) -> str:
    said = [
        {
            "who": ("caller", "bot")[turn % 2],
            "said": f"{number}/{turn} ä",
            "at": f"2026-01-01T00:00:{turn:02}",
        }
        for turn in range(turns)
    ]
    return json.dumps({"call": f"c{number}", "turns": said}, ensure_ascii=False)


def difficult(path: Path, count: int = 60) -> Path:
    """Sessions with a line that stands twice far apart, one that goes on further down, and broken ones, of
    which one stands twice as well."""
    lines = [call(number) for number in range(count)]
    lines[20] = '{"broken'
    lines.insert(30, "")
    lines += [lines[1], call(5, turns=9), '{"call": "x", "turns": 3}', call(7, turns=2), lines[20]]
    path.write_text("\n".join(lines) + "\n")
    return path


def contents(store: Store) -> dict[str, list[Any]]:
    return {
        **{name: rows(store, f"SELECT * FROM {name} ORDER BY ALL") for name in TABLES},
        "quarantine": rows(store, "SELECT * FROM quarantine ORDER BY ALL"),
        "ids": rows(store, "SELECT list_sort(list_distinct(trajectory_ids)) FROM sources ORDER BY ALL"),
    }


@pytest.fixture
def small_shares(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def shared_out() -> None:
        monkeypatch.setattr(workers, "WORTH", 0)
        monkeypatch.setattr(workers, "SHARE", 2000)
        monkeypatch.setattr(intake, "FLUSH_ROWS", 40)
        monkeypatch.setattr(blocks, "BLOCK_EVENTS", 10)

    return shared_out


@pytest.mark.long
def test_many_processes_and_transactions_give_the_tables_of_one(
    tmp_path: Path, small_shares: Callable[[], None]
) -> None:
    log = difficult(tmp_path / "calls.jsonl")
    generate(tmp_path / "folders", 6, 0)
    one, many = made(tmp_path / "one"), made(tmp_path / "many")
    said = [take(one, log, map=MAPPING, system="mapped"), take(one, tmp_path / "folders")]
    small_shares()
    again = [take(many, log, map=MAPPING, system="mapped"), take(many, tmp_path / "folders")]
    assert contents(one) == contents(many)
    counts = [(d.trajectories, d.events, d.again, d.unchanged, d.quarantined) for d in again]
    assert [(d.trajectories, d.events, d.again, d.unchanged, d.quarantined) for d in said] == counts
    assert [q.line for q in said[0].quarantined] == [21, 64, 66]
    assert len(rows(one, "SELECT * FROM events WHERE text LIKE '5/%'")) == 9


@pytest.mark.long
@pytest.mark.parametrize("room", [True, False])
def test_tables_that_wait_in_files_are_those_that_wait_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: bool
) -> None:
    """In this process, which reads what is small or has no parts; without room they stay in memory."""
    log = difficult(tmp_path / "calls.jsonl")
    generate(tmp_path / "folders", 4, 0)
    one, many = made(tmp_path / "one"), made(tmp_path / "many")
    places = tmp_path / "waiting"
    monkeypatch.setattr(workers.Readers, "folder", places)
    if room:
        places.mkdir()
    aside: list[bool] = []
    original = Parcel.set_aside

    def set_aside(self: Parcel, folder: Path) -> Parcel:
        result = original(self, folder)
        aside.append(result.bytes_held == 0)
        return result

    for store in (one, many):
        take(store, log, map=MAPPING, system="mapped")
        take(store, tmp_path / "folders")
        monkeypatch.setattr(intake, "HELD_BYTES", 0)
        monkeypatch.setattr(blocks, "BLOCK_EVENTS", 10)
        monkeypatch.setattr(Parcel, "set_aside", set_aside)
    assert contents(one) == contents(many)
    assert set(aside) == {room} and len(aside) > 10
    assert not room or list(places.iterdir()) == [], "what is stored takes no room"


EVENTS = """
[constants]
system = "calls"
[trajectory]
native_id = "call"
[event]
id = "id"
role = "who"
text = "said"
time = "at"
[roles]
caller = "human"
bot = "agent"
"""


def interleaved(path: Path, calls: int = 24, turns: int = 12) -> Path:
    """An event a line, several calls at a time, one that is open from the first line to the last; with lines
    that are broken, blank, nobody's, no object, late, twice there and cut off."""
    events = [
        (
            5 * number + 3 * turn,
            {"call": f"c{number}", "id": f"{number}-{turn}", "said": f"{number}/{turn} ä"},
        )
        for number in range(calls)
        for turn in range(turns)
    ]
    events += [(-1, {"call": "whole", "id": "a", "said": "begins"}), (10**6, {"call": "whole", "id": "b"})]
    lines = [
        json.dumps({"who": ("caller", "bot")[place % 2], "at": f"2026-01-01T{at % 24:02}:00:00", **event})
        for place, (at, event) in enumerate(sorted(events, key=lambda pair: pair[0]))
    ]
    lines[7] = '{"call": "c1", "broken'
    lines.insert(30, "")
    lines[40:40] = ['{"who": "bot", "said": "whose?"}', "[1, 2]", lines[20], lines[3]]
    path.write_text("\n".join([*lines, '{"call": "whole", "id": "c"']))
    return path


@pytest.mark.long
def test_events_of_interleaved_sessions_shared_out_give_the_tables_of_one_process(
    tmp_path: Path, small_shares: Callable[[], None]
) -> None:
    log = interleaved(tmp_path / "events.jsonl")
    one, many = made(tmp_path / "one"), made(tmp_path / "many")
    said = take(one, log, map=EVENTS, system="mapped")
    small_shares()
    parts = list(apart(log, workers.SHARE))
    assert len(parts) > 5
    again = take(many, log, map=EVENTS, system="mapped")
    assert contents(one) == contents(many)
    assert said.trajectories == again.trajectories == 25
    assert sorted(map(str, said.quarantined)) == sorted(map(str, again.quarantined))
    assert len(said.quarantined) >= 4


@given(
    names=st.lists(st.sampled_from(["a", "b", "c", None, "", "not json"]), max_size=40),
    size=st.integers(1, 90),
)
def test_parts_with_whole_sessions_hold_each_line_once(
    tmp_path_factory: pytest.TempPathFactory, names: list[str | None], size: int
) -> None:
    path = tmp_path_factory.mktemp("parts") / "log.jsonl"
    lines = [name if name in ("", "not json") else json.dumps({"call": name}) for name in names]
    path.write_text("\n".join(map(str, lines)))
    parts = [dict(numbered_lines(path, span)) for span in apart(path, size)]
    assert sorted(pair for part in parts for pair in part.items()) == list(numbered_lines(path))
    for name in ("a", "b", "c"):
        own = [part for part in parts if any(f'"{name}"'.encode() in (line or b"") for line in part.values())]
        assert len(own) <= 1, "a session lies in one part"


def apart(path: Path, size: int) -> Iterator[Span]:
    """The parts in which whole sessions of EVENTS lie."""
    return system_of("mapped").sessions_apart(path, ReadOptions(map=EVENTS), size)


def event(name: str, number: int) -> str:
    return json.dumps({"call": name, "id": f"{name}-{number}", "who": "bot", "said": str(number)})


@pytest.mark.parametrize("name", ["a", "new"])
@pytest.mark.parametrize("shared_out", [True, False])
def test_a_line_that_was_being_written_is_left_for_the_next_ingest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, shared_out: bool
) -> None:
    """Whose it is was not known when the file was looked through."""
    log, late = tmp_path / "log.jsonl", event(name, 9)
    log.write_text("".join(event(own, turn) + "\n" for turn in range(3) for own in "ab") + late[:20])

    def written() -> None:
        with log.open("a") as file:
            file.write(late[20:] + "\n" + event("b", 9) + "\n")

    looked = reader._last_records

    def overtaken(*given: Any) -> Any:
        result = looked(*given)
        written()
        return result

    options = ReadOptions(map=EVENTS)
    if shared_out:
        parts = list(apart(log, 50))
        written()
        read = [item for part in parts for item in reader.read_span(log, options, part)]
    else:
        monkeypatch.setattr(reader, "_last_records", overtaken)
        read = list(reader.read(log, options))
    assert [(one.native_id, len(one.events)) for one in read if isinstance(one, Trajectory)] == [
        *[("a", 3), ("b", 3)]
    ]
    assert len(read) == 2


@pytest.mark.long
def test_a_large_source_that_cannot_be_parted_costs_no_other(
    tmp_path: Path, small_shares: Callable[[], None]
) -> None:
    small_shares()
    log = interleaved(tmp_path / "log.jsonl")
    good, bad, gone = _reading(difficult(tmp_path / "calls.jsonl")), _reading(log), _reading(log)
    bad = replace(bad, source=1, options=ReadOptions(map="no mapping"))
    gone = replace(gone, source=2, place=Place(tmp_path / "gone.jsonl", "gone", "mapped"))
    read = shared_out([good, bad, gone])
    assert sum(block.parcel.rows["trajectories"] for block in read) > 50
    wrong = [pair for block in read for pair in block.quarantined if pair[1]]
    reasons = [(item.reason.split(":")[0], source) for item, source in wrong]
    assert reasons == [("its reader failed", 1), ("cannot be read", 2)]


@pytest.mark.parametrize("vanishes", [False, True])
def test_a_source_whose_parts_end_midway_is_read_once_or_as_far_as_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vanishes: bool
) -> None:
    monkeypatch.setattr(workers, "SHARE", 400)
    reading = _reading(difficult(tmp_path / "calls.jsonl"))
    before = list(numbered_lines(reading.place.path))

    def broken(*place: Any) -> Iterator[Span]:
        yield from itertools.islice(line_spans(*place), 3)
        if vanishes:
            reading.place.path.unlink()
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(workers, "line_spans", broken)
    parts = list(workers._parts(reading))
    assert len(parts) == 4
    if vanishes:
        assert parts[3].size == 0
        return
    lines = [line for part in parts for line in numbered_lines(reading.place.path, part.span)]
    assert lines == before


def test_sessions_that_are_open_all_the_time_cost_no_reading_of_the_whole_file_for_each_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(event(f"c{turn % 8}", turn) + "\n" for turn in range(160)))
    parts = list(apart(log, 500))
    assert len(parts) == 8
    looked_at: list[bytes | None] = []
    bounded = base._bounded_lines

    def counted(file: Any) -> Iterator[bytes | None]:
        for line in bounded(file):
            looked_at.append(line)
            yield line

    monkeypatch.setattr(base, "_bounded_lines", counted)
    read = sum(len(list(numbered_lines(log, part))) for part in parts)
    assert read == len(looked_at) == 160


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="counts what is read, which Linux tells")
def test_a_part_of_an_interleaved_file_reads_little_of_what_lies_between_its_lines(tmp_path: Path) -> None:
    log, line, apart_by = tmp_path / "log.jsonl", b'{"a": 1}\n', 100_000
    log.write_bytes((line + b" " * (apart_by - len(line) - 1) + b"\n") * 50)
    span = Span(0, log.stat().st_size, 1, tuple((n + 1, n * apart_by, 1) for n in range(50)))

    def read() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    before = read()
    assert [content for _, content in numbered_lines(log, span)] == [line] * 50
    assert read() - before < log.stat().st_size / 2


@pytest.mark.long
def test_readers_are_started_for_what_is_new_alone_and_end_before_anything_is_derived(
    tmp_path: Path, small_shares: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_shares()
    log, store = difficult(tmp_path / "calls.jsonl"), made(tmp_path / "workspace")
    pools = []
    start, derive = workers._pool, intake.Intake._derive

    def started(count: int) -> Any:
        pools.append(start(count))
        return pools[-1]

    def derived(self: intake.Intake, *given: Any, last: bool) -> None:
        ended.append(self._readers._pool is None or not last)
        derive(self, *given, last=last)

    ended: list[bool] = []
    monkeypatch.setattr(workers, "_pool", started)
    monkeypatch.setattr(intake.Intake, "_derive", derived)
    take(store, log, system="mapped", map=MAPPING)
    assert len(pools) == 1 and ended and all(ended)
    take(store, log, system="mapped", map=MAPPING)
    assert len(pools) == 1, "nothing is new"
    forget(store, str(log))
    take(store, log, system="mapped", map=MAPPING)
    assert len(pools) == 1, "what was forgotten is not read"


def test_many_cores_start_no_more_readers_than_keep_the_one_that_stores_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[int] = []
    monkeypatch.setattr(workers, "_pool", started.append)
    for cores in (1, 2, 4, 128):
        monkeypatch.setattr(workers, "cores", lambda cores=cores: cores)
        with workers.Readers() as readers:
            readers.expect(workers.WORTH)
    assert started == [1, workers.MOST, workers.MOST]


class Deadly(Place):
    """A place that ends the process which comes to know of it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (3,)


@pytest.mark.long
def test_a_source_that_kills_its_reader_costs_no_other(
    tmp_path: Path, small_shares: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read in this process, none of them would do anything."""
    small_shares()
    monkeypatch.setattr(workers, "_claims", lambda claim: False)
    options = ReadOptions(map=MAPPING)
    readings = []
    for number in range(5):
        path = tmp_path / f"{number}.jsonl"
        path.write_text(call(number) + "\n")
        kind = Deadly if number == 2 else Place
        readings.append(Reading(number, kind(path, str(path), "mapped"), options, path.stat().st_size))
    read = shared_out(readings)
    names = [
        name for block in read for name in block.parcel.tables()["trajectories"]["native_id"].to_pylist()
    ]
    wrong = [item for block in read for item in block.quarantined]
    assert sorted(names) == ["c0", "c1", "c3", "c4"]
    assert [(q.source, source) for q, source in wrong] == [(str(tmp_path / "2.jsonl"), 2)]
    assert "process" in wrong[0][0].reason


def test_what_no_process_has_begun_is_read_meanwhile_and_comes_in_its_order(
    tmp_path: Path, small_shares: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first share is with a process that gives it back when all others have been read here."""
    small_shares()
    monkeypatch.setattr(workers, "SHARE", 1)
    readings = []
    for number in range(6):
        path = tmp_path / f"{number}.jsonl"
        path.write_text(call(number) + "\n")
        readings.append(_reading(path))
    with_a_process: Future[list[blocks.Block] | None] = Future()
    given: list[workers.Share] = []
    original = workers._read

    def submit(self: Any, share: workers.Share, claim: Path, references: Any) -> Future[Any]:
        given.append(share)
        if len(given) == 1:
            claim.touch()
            return with_a_process
        return Future()

    def read(share: workers.Share, *rest: Any) -> list[blocks.Block]:
        if share is given[-1]:
            with_a_process.set_result(original(given[0], *rest))
        return original(share, *rest)

    monkeypatch.setattr(workers.Readers, "_submit", submit)
    monkeypatch.setattr(workers, "_read", read)
    names = [head.native_id for block in shared_out(readings) for head in block.heads]
    assert names == [f"c{number}" for number in range(6)] and len(given) == 6


@pytest.mark.long
def test_places_one_after_another_are_each_read_whole(
    tmp_path: Path, small_shares: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the same readers: a share of the second place is not one that the first had."""
    small_shares()
    claims: list[Path] = []
    original = workers.Readers._submit

    def submit(self: workers.Readers, share: workers.Share, claim: Path, references: Any) -> Any:
        claims.append(claim)
        return original(self, share, claim, references)

    monkeypatch.setattr(workers.Readers, "_submit", submit)
    store = made(tmp_path / "workspace")
    for number, folder in enumerate(("one", "two")):
        (tmp_path / folder).mkdir()
        lines = [call(100 * number + k) for k in range(40)]
        (tmp_path / folder / "calls.jsonl").write_text("\n".join(lines) + "\n")
    done = take(store, tmp_path / "one", tmp_path / "two", map=MAPPING, system="mapped")
    assert (done.trajectories, done.quarantined) == (80, [])
    assert len(rows(store, "SELECT * FROM trajectories")) == 80
    assert len(set(claims)) == len(claims) > 2


@pytest.mark.long
def test_readers_end_without_a_word_while_shares_wait(
    tmp_path: Path,
    small_shares: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The way of Ctrl-C, while this process reads and the queue of the others is full."""
    small_shares()
    monkeypatch.setattr(workers, "SHARE", 200)
    original = workers._read
    here: list[list[blocks.Block]] = []

    def interrupted(*share: Any) -> list[blocks.Block]:
        here.append(original(*share))
        time.sleep(0.05)
        if len(here) == 6:
            raise KeyboardInterrupt
        return here[-1]

    monkeypatch.setattr(workers, "_read", interrupted)
    monkeypatch.setattr(workers, "cores", lambda: 2)
    reading = _reading(difficult(tmp_path / "calls.jsonl"))
    with pytest.raises(KeyboardInterrupt):
        shared_out([reading])
    assert (caplog.text, *capfd.readouterr()) == ("", "", "")


@pytest.mark.slow
def test_readers_end_with_a_process_that_is_killed() -> None:
    program = """
import os, signal
from coaudit.pipeline.ingest import workers
pool = workers._pool(2)
assert pool.submit(os.getpid).result() != os.getpid()
os.kill(os.getpid(), signal.SIGKILL)
"""
    # The readers hold the pipe that is read here to its end.
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=20, check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_interrupting_is_for_who_started_the_readers_from_their_very_start() -> None:
    program = """
import signal
from coaudit.pipeline.ingest import workers
blocked = workers._pool(1).submit(signal.pthread_sigmask, signal.SIG_BLOCK, ()).result()
own = signal.pthread_sigmask(signal.SIG_BLOCK, ())
print(signal.SIGINT in blocked, signal.SIGINT in own)
"""
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "True False\n"


@pytest.mark.parametrize("at_once", [1, 7, blocks.LOOSE_EVENTS])
def test_a_trajectory_that_no_table_holds_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(blocks, "LOOSE_EVENTS", at_once)
    read = list(blocks.blocks([_reading(difficult(tmp_path / "calls.jsonl", 22))], {}))
    (whole,) = [block for block in read if block.parcel.rows["trajectories"] > 5]
    making = blocks._OpenBlock({})
    state: JsonValue = {"weather": "rain"}
    key = content_hash(state)
    for position, one in enumerate(_trajectories(whole)):
        text = "half a sign: \ud83d" if position == 3 else one.events[0].text
        # A state that comes in with what is refused is there for the others.
        shown, states = ({"public": key}, {key: state}) if position >= 3 else ({}, {})
        event = one.events[0].model_copy(update={"text": text, "states": shown})
        log = one.model_copy(update={"events": (event, *one.events[1:]), "states": states})
        making.add(log, 0)
    block = making.block(0)
    assert block.parcel.rows["trajectories"] == len(block.heads) == len(whole.heads) - 1
    assert [q.reason.split(":")[0] for q, _ in block.quarantined] == ["cannot be stored"]
    assert set(block.parcel.tables()["states"]["hash"].to_pylist()) == {key}


@pytest.mark.parametrize("value", [{1, 2}, object(), 1j])
def test_a_trajectory_with_what_is_no_json_costs_no_other(tmp_path: Path, value: object) -> None:
    read = list(blocks.blocks([_reading(difficult(tmp_path / "calls.jsonl", 22))], {}))
    (whole,) = [block for block in read if block.parcel.rows["trajectories"] > 5]
    making = blocks._OpenBlock({})
    for position, one in enumerate(_trajectories(whole)):
        states = {"0" * 32: value} if position == 3 else one.states
        making.add(one.model_copy(update={"states": states}), 0)
    block = making.block(0)
    assert block.parcel.rows["trajectories"] == len(block.heads) == len(whole.heads) - 1
    stored = set(block.parcel.tables()["events"]["trajectory_id"].to_pylist())
    assert stored == {head.id for head in block.heads}, "nothing of it is left in any table"
    assert [q.reason.split(":")[:2] for q, _ in block.quarantined] == [["cannot be stored", " TypeError"]]


def shared_out(readings: Sequence[Reading]) -> list[blocks.Block]:
    with workers.Readers() as readers:
        read = readers.blocks(readings, {})
        return [replace(block, parcel=Parcel.of(block.parcel.tables())) for block in read]


def _reading(path: Path) -> Reading:
    return Reading(0, Place(path, str(path), "mapped"), ReadOptions(map=MAPPING), path.stat().st_size)


def _trajectories(block: blocks.Block) -> list[Trajectory]:
    return trajectories(block.parcel.tables(), [head.id for head in block.heads])


@given(lines=st.lists(st.binary(max_size=12)), size=st.integers(1, 30))
def test_the_parts_of_a_file_hold_its_lines_under_their_numbers(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], size: int
) -> None:
    path = tmp_path_factory.mktemp("parts") / "log"
    path.write_bytes(b"\n".join(lines))
    parts = [line for span in line_spans(path, size) for line in numbered_lines(path, span)]
    assert parts == list(numbered_lines(path))


@pytest.mark.long
def test_a_file_that_grew_is_read_from_where_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New sessions, one that goes on, one known already, and what is wrong on either side."""
    whole = difficult(tmp_path / "whole.jsonl").read_bytes()
    grown, fresh, log = made(tmp_path / "grown"), made(tmp_path / "fresh"), tmp_path / "calls.jsonl"
    read: list[int] = []
    original = blocks.blocks

    def counted(readings: Any, references: Any) -> Any:
        for reading in readings:
            read.append(reading.size)
            yield from original([reading], references)

    monkeypatch.setattr(workers, "blocks", counted)
    end = whole.index(b"\n", len(whole) * 9 // 10) + 1
    log.write_bytes(whole[:end])
    take(grown, log, map=MAPPING, system="mapped")
    log.write_bytes(whole)
    second = take(grown, log, map=MAPPING, system="mapped")
    assert read == [end, len(whole) - end]
    take(fresh, log, map=MAPPING, system="mapped")
    assert contents(grown) == contents(fresh)
    assert [q.line for q in second.quarantined] == [21, 64, 66]
    assert take(grown, log, map=MAPPING, system="mapped").trajectories == 0


@pytest.mark.long
@pytest.mark.parametrize("change", ["before", "cut off"])
def test_a_file_that_changed_otherwise_is_read_anew(tmp_path: Path, change: str) -> None:
    lines = [call(number).encode() for number in range(6)]
    store, log = made(tmp_path / "workspace"), tmp_path / "calls.jsonl"
    log.write_bytes(b"\n".join(lines[:4]) + (b"" if change == "cut off" else b"\n"))
    take(store, log, map=MAPPING, system="mapped")
    if change == "before":
        lines[0] = call(0, turns=5).encode()
    log.write_bytes(b"\n".join(lines) + b"\n")
    take(store, log, map=MAPPING, system="mapped")
    assert len(rows(store, "SELECT * FROM trajectories")) == 6
    assert len(rows(store, "SELECT * FROM events")) == (20 if change == "before" else 18)


@pytest.mark.long
def test_pandas_is_kept_out_of_an_ingest_and_there_for_whoever_wants_it_afterwards(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.systems import ReadOptions
log, text, place = map(Path, sys.argv[1:])
done = ingest(Store(Workspace(place)), [log], ReadOptions(map=text.read_text()), system="mapped")
assert (done.trajectories, done.again) == (59, 1) and "pandas" not in sys.modules
import pyarrow
assert pyarrow.table({"a": [1]}).to_pandas().shape == (1, 1)
"""
    mapping = tmp_path / "calls.toml"
    mapping.write_text(MAPPING)
    log = difficult(tmp_path / "calls.jsonl")
    command = [sys.executable, "-P", "-c", program, *map(str, (log, mapping, tmp_path / "workspace"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
