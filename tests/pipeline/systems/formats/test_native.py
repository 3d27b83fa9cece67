"""A large file of coaudit's own JSON Lines in parts: what comes of them is what comes of the whole file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coaudit.pipeline.ingest import workers
from coaudit.pipeline.store.queries.export import export
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.base import placed_lines
from coaudit.pipeline.systems.cogym.generate import generate
from coaudit.pipeline.systems.formats import native, native_parts
from coaudit.pipeline.systems.formats.native_parts import identity
from coaudit.schemas import Quarantined, Trajectory
from tests.pipeline.stores import made, rows, take
from tests.pipeline.systems.formats.logs import write_lines

TEAM = [{"name": "bot", "kind": "agent"}, {"name": "eve", "kind": "human"}]
OPTIONS = ReadOptions()
NAMES = ("a", "b", "c", "é")
COMPUTED = identity({"native_id": "a"}, ["bot", "eve"])
"""The id of a trajectory that has none."""
STATES = ("s0", "s1", "s2")
name = st.sampled_from(NAMES)
states = st.dictionaries(st.sampled_from(["public", "bot"]), st.sampled_from(STATES), max_size=2)


def event(owner: object, **more: Any) -> dict[str, Any]:
    return {"type": "event", "trajectory": owner, "actor": "bot", "kind": "message", "text": "Yes?", **more}


def head(native_id: object, **more: Any) -> dict[str, Any]:
    return {"type": "trajectory", "native_id": native_id, "participants": TEAM, **more}


def state(key: object) -> dict[str, Any]:
    return {"type": "state", "hash": key, "content": {"of": key}}


def owned(kind: str, owner: str) -> str:
    """A line as `export` begins it, with what only looks like another owner in its text."""
    rest = {"name": "score", "value": 1} if kind == "outcome" else {"actor": "eve", "kind": "message"}
    text = {} if kind == "outcome" else {"text": 'of "trajectory":"b"'}
    line = {"type": kind, "trajectory": owner, **rest, **text}
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


heads = st.one_of(
    st.builds(head, name),
    st.builds(lambda native_id, own: head(native_id, id=own), name, name),
    st.builds(
        lambda n, own: head(n, states={one: {"of": one} for one in own}),
        name,
        st.sets(st.sampled_from(STATES)),
    ),
    st.builds(lambda n, own: head(n, events=[{"actor": "bot", "kind": "note", "states": own}]), name, states),
    st.sampled_from(
        [head(3), head("a", participants=7), head("a", participants=[{"name": 1}]), head("a", colour=1)]
    ),
)
others = st.one_of(
    st.builds(lambda owner, own: event(owner, states=own), st.sampled_from([*NAMES, COMPUTED]), states),
    st.builds(owned, st.sampled_from(["event", "outcome"]), st.sampled_from([*NAMES, COMPUTED])),
    st.builds(lambda owner: {"type": "outcome", "trajectory": owner, "name": "score", "value": 1}, name),
    st.builds(state, st.sampled_from(STATES)),
    st.builds(
        lambda key, content: {**state(key), "content": content}, st.sampled_from(STATES), st.integers(0, 1)
    ),
    st.sampled_from(
        [
            event(None),
            event("nobody"),
            state(None),
            {"type": "x"},
            7,
            None,
            "",
            "{",
            '{"type":"event","trajectory":"a",',
        ]
    ),
    st.just('{"type":"event","trajectory":"a","actor":"bot","kind":"note","trajectory":"b"}'),
)


def said(items: Iterable[Trajectory | Quarantined]) -> Counter[str]:
    return Counter(item.model_dump_json() for item in items)


ESCAPED = [
    '{"type":"event","trajectory":"a","actor":"bot","kind":"note","st\\u0061tes":{"public":"s0"}}',
    '{"type":"event","trajectory":"a","actor":"bot","kind":"note","\\u0074rajectory":"b"}',
    '{"type":"event","trajectory":"a","\\u0074ype":"state","hash":"s0","content":1}',
]
"""Lines that say more than their bytes look like."""


@example(lines=[state("s0"), head("a"), ESCAPED[0]], size=1)
@example(lines=[head("a"), head("b"), ESCAPED[1]], size=1)
@example(lines=[head("a"), ESCAPED[2], head("b"), event("b", states={"public": "s0"})], size=1)
@example(
    lines=[
        *(head("a"), state("s0"), event("a", states={"public": "s0"})),
        *({"type": "trajectory"}, {**state("s0"), "content": 2}),
    ],
    size=1,
)
@given(lines=st.lists(st.one_of(heads, others), max_size=40), size=st.integers(1, 1500))
def test_parts_give_what_the_whole_file_does(
    tmp_path_factory: pytest.TempPathFactory, lines: list[Any], size: int
) -> None:
    path = write_lines(tmp_path_factory.mktemp("parts") / "log.jsonl", *lines)
    whole = list(native.read_span(path, OPTIONS, None))
    parts = list(native.sessions_apart(path, OPTIONS, size))
    read = [list(native.read_span(path, OPTIONS, part)) for part in parts]
    assert said(item for part in read for item in part) == said(whole)
    for own in {item.id for item in whole if isinstance(item, Trajectory)}:
        before = [item for item in whole if isinstance(item, Trajectory) and item.id == own]
        after = [one for part in read for one in part if isinstance(one, Trajectory) and one.id == own]
        assert after == before, "of one id, which came first counts"


def test_trajectories_that_share_nothing_lie_in_parts_of_their_own(tmp_path: Path) -> None:
    lines = [line for n in range(20) for line in (head(f"run-{n}"), *[event(f"run-{n}")] * 5, state(f"s{n}"))]
    path = write_lines(tmp_path / "log.jsonl", *lines)
    parts = list(native.sessions_apart(path, OPTIONS, 100))
    assert len(parts) == 20
    assert all(part.runs is None for part in parts), "what lies in one piece is read in one"
    mixed = write_lines(
        tmp_path / "mixed.jsonl", *sorted(lines, key=lambda line: line["type"] != "trajectory")
    )
    assert len(list(native.sessions_apart(mixed, OPTIONS, 100))) == 20


def test_a_state_that_all_share_is_read_once_a_part_and_not_once_a_trajectory(tmp_path: Path) -> None:
    def shared(content: str) -> Path:
        runs = [
            line for n in range(40) for line in (head(f"run-{n}"), event(f"run-{n}", states={"public": "s0"}))
        ]
        return write_lines(tmp_path / "log.jsonl", {**state("s0"), "content": content}, *runs)

    small = list(native.sessions_apart(shared("x" * 200), OPTIONS, 1000))
    assert 5 < len(small) < 15
    large = list(native.sessions_apart(shared("x" * 20_000), OPTIONS, 1000))
    assert len(large) == 1, "each part would read it again"
    assert [len(list(native.read_span(tmp_path / "log.jsonl", OPTIONS, part))) for part in large] == [40]


def test_states_that_come_between_lines_of_others_are_each_their_own_s(tmp_path: Path) -> None:
    """As a log has them to which several sessions append at once."""
    heads = [head(f"run-{n}") for n in range(40)]
    turns = [
        line
        for turn in range(5)
        for n in range(40)
        for line in (state(f"{n}-{turn}"), event(f"run-{n}", states={"public": f"{n}-{turn}"}))
    ]
    path = write_lines(tmp_path / "log.jsonl", *heads, *turns)
    parts = list(native.sessions_apart(path, OPTIONS, 1000))
    assert len(parts) == 20
    assert max(sum(count for *_, count in part.runs or ()) for part in parts) == 22, (
        "two sessions with theirs"
    )
    read = [item for part in parts for item in native.read_span(path, OPTIONS, part)]
    assert said(read) == said(native.read_span(path, OPTIONS, None))


def test_lines_that_are_nobody_s_lie_together(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", head("a"), *["{"] * 5000, head("b"))
    extents = native_parts._Lines()
    for number, begin, end, line in placed_lines(path):
        extents.add((number, begin, end), line or b"")
    assert len(list(extents.extents(1))) == 3
    assert (
        sum(
            len(list(native.read_span(path, OPTIONS, part)))
            for part in native.sessions_apart(path, OPTIONS, 1)
        )
        == 5002
    )


def test_a_line_that_was_being_written_when_parts_were_made_is_left(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", head("a"), event("a"), head("b"), event("b"))
    late = json.dumps(event("b"))
    with path.open("a") as file:
        file.write(late[:20])
    parts = list(native.sessions_apart(path, OPTIONS, 1))
    with path.open("a") as file:
        file.write(f"{late[20:]}\n{late}\n")
    read = [item for part in parts for item in native.read_span(path, OPTIONS, part)]
    assert [(one.native_id, len(one.events)) for one in read if isinstance(one, Trajectory)] == [
        ("a", 1),
        ("b", 1),
    ]
    assert len(read) == 2


@pytest.mark.long
def test_an_export_that_is_shared_out_comes_back_as_it_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate(tmp_path / "folders", 12, 0)
    store, alone, shared = (made(tmp_path / place) for place in ("store", "alone", "shared"))
    take(store, tmp_path / "folders")
    (log,) = export(store, tmp_path / "log.jsonl", "jsonl", hidden=True)
    take(alone, log)
    monkeypatch.setattr(workers, "WORTH", 0)
    monkeypatch.setattr(workers, "SHARE", 20_000)
    monkeypatch.setattr(native, "LARGE", 20_000)
    assert len(list(native.sessions_apart(log, OPTIONS, 20_000))) == 3
    take(shared, log)
    for table in ("trajectories", "participants", "events", "units", "outcomes", "states", "measured"):
        assert rows(shared, f"SELECT * FROM {table} ORDER BY ALL") == rows(
            alone, f"SELECT * FROM {table} ORDER BY ALL"
        )
    assert len(list(native.read(log, OPTIONS))) == 12


def test_tags_of_the_command_line_are_added_to_those_of_the_log(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", head("a", tags={"own": "1", "both": "log"}), event("a"))
    (trajectory,) = native.read(path, ReadOptions(tags={"new": "2", "both": "option"}))
    assert isinstance(trajectory, Trajectory)
    assert trajectory.tags == {"own": "1", "both": "option", "new": "2"}
