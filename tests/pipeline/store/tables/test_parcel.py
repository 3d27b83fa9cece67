"""Tables that wait for the store, in memory and in files: the same rows either way, each once."""

from __future__ import annotations

from pathlib import Path

import pytest

from coaudit.pipeline.store.tables.columns import SCHEMAS, Columns, trajectories
from coaudit.pipeline.store.tables.parcel import Parcel
from coaudit.schemas import Event, JsonValue, Participant, Trajectory, content_hash


def parcel(*ids: str) -> Parcel:
    columns = Columns()
    state: JsonValue = {"seen": "rain"}
    for key in ids:
        events = [
            Event(
                seq=0, actor="ann", kind="message", text=f"{key} ä\n", states={"public": content_hash(state)}
            ),
            Event(seq=1, actor="bot", kind="wait"),
        ]
        columns.add(
            Trajectory(
                id=key,
                native_id=key,
                source="here",
                system="made",
                participants=(Participant(name="ann", kind="human"), Participant(name="bot", kind="agent")),
                events=tuple(events),
                states={content_hash(state): state},
            )
        )
    return Parcel.of(columns.tables())


def test_tables_in_a_file_are_those_in_memory_and_take_none(tmp_path: Path) -> None:
    held = parcel("a", "b")
    aside = held.set_aside(tmp_path)
    assert (held.bytes_held > 0, aside.bytes_held) == (True, 0)
    assert (aside.rows, aside.bytes) == (held.rows, held.bytes)
    for name in SCHEMAS:
        assert aside.tables()[name].equals(held.tables()[name])
    columns = ["trajectory_id", "seq", "kind"]
    for one in (held, aside):
        (batch,) = one.batches("events", columns)
        assert sorted(batch.column_names) == sorted(columns)
        assert batch["kind"].to_pylist() == ["message", "wait"] * 2


@pytest.mark.parametrize("in_file", [True, False])
def test_what_is_left_out_is_in_no_table_but_its_states(tmp_path: Path, in_file: bool) -> None:
    whole = parcel("a", "b", "c")
    some = (whole.set_aside(tmp_path) if in_file else whole).without({"b"}).without({"c"})
    tables = some.tables()
    assert {key for name in ("events", "units") for key in tables[name]["trajectory_id"].to_pylist()} == {"a"}
    assert [one.id for one in trajectories(tables, ["a", "b"])] == ["a"]
    assert tables["states"].num_rows == 1
    taken = [row for batch in some.drain("trajectories") for row in batch["id"].to_pylist()]
    assert taken == ["a"]


def test_a_file_goes_with_what_was_stored_and_where_there_is_no_room_tables_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aside = parcel("a").set_aside(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    aside.remove()
    aside.remove()
    assert list(tmp_path.iterdir()) == []
    assert parcel("a").set_aside(tmp_path / "gone").tables()["trajectories"].num_rows == 1

    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.ipc.new_stream", full)
    kept = parcel("a").set_aside(tmp_path)
    assert kept.bytes_held and kept.tables()["events"].num_rows == 2
    assert list(tmp_path.iterdir()) == [], "nothing half is left"
