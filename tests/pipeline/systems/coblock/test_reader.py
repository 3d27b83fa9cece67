"""What the CoBlock reader makes of the two exports."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.coblock import reader as coblock
from coaudit.pipeline.systems.coblock.metrics import measures
from coaudit.pipeline.systems.coblock.world import NOTHING_BROKEN, OCCUPIED
from coaudit.pipeline.systems.overcooked import reader as overcooked
from coaudit.pipeline.systems.registry import SYSTEMS
from coaudit.pipeline.systems.rehac import reader as rehac
from coaudit.schemas import Quarantined, Trajectory
from tests.shared import ROOT, shared

DUMP = ROOT / "data/coblock/dumpdata.json"
SERVED = ROOT / "data/coblock/record_25.json"


def read(path: Path) -> dict[str, Trajectory]:
    """Record id -> game, of an export that has nothing wrong with it."""
    found = list(coblock.read(path, ReadOptions()))
    assert all(isinstance(piece, Trajectory) for piece in found)
    return {piece.native_id: piece for piece in found if isinstance(piece, Trajectory)}


def changed(folder: Path, edit: Callable[[Any], object], path: Path = SERVED) -> Path:
    value = json.loads(path.read_text(encoding="utf-8"))
    edit(value)
    (folder / path.name).write_text(json.dumps(value), encoding="utf-8")
    return folder / path.name


def test_the_action_history_is_told_in_order() -> None:
    game = read(DUMP)["22"]
    assert [(e.seq, e.actor, e.kind) for e in game.events[:6]] == [
        (0, "environment", "start"),
        (1, "Agent 0", "message"),
        (2, "Agent 1", "message"),
        (3, "Agent 0", "action"),
        (4, "Agent 1", "wait"),
        (5, "Agent 0", "action"),
    ]
    placed, last = game.events[3], game.events[-1]
    assert placed.action is not None and placed.action.name == "place"
    assert placed.action.arguments == {"blockType": "blue", "blockPos": {"x": 0, "y": 0, "z": 0}, "uid": "a1"}
    assert game.events[1].text == "I build the two pillars. Can you lay the red block on top in the middle?"
    assert (last.kind, last.text) == ("finish", "done")


def test_people_and_machines_are_told_by_their_role() -> None:
    games = read(DUMP)
    team = [(p.name, p.kind, p.model) for p in games["22"].team()]
    assert team == [("Agent 0", "human", None), ("Agent 1", "agent", "model-x")]
    assert (games["22"].setting, games["24"].setting) == ("real", None)
    assert games["22"].tags["workLoadType"] == "equal" and games["22"].task == "parallel"


def test_each_agent_sees_its_own_goal_and_only_the_environment_the_target() -> None:
    game = read(DUMP)["22"]
    seen = {view: game.states[hashed] for view, hashed in game.events[0].states.items()}
    mine, stage = seen["Agent 1"], seen["environment"]
    assert isinstance(mine, dict) and isinstance(stage, dict)
    assert isinstance(mine["goal"], list) and isinstance(stage["target"], list)
    assert (len(mine["goal"]), len(stage["target"])) == (1, 5)
    assert mine["inventory"] == [{"blockType": "red", "count": 2}, {"blockType": "blue", "count": 1}]


def test_a_machines_raw_reply_stays_with_the_action_it_became() -> None:
    game = read(DUMP)["22"]
    reply = game.states[game.events[4].states["Agent 1"]]
    assert reply == {"reply": "wait()"}


def test_who_did_what_a_machine_replied_is_a_machine_whatever_the_sessions_roles_say(tmp_path: Path) -> None:
    def with_a_person(value: Any) -> None:
        value["session"]["task_config"]["agents"][0]["role"] = "human"
        value["record"]["turns"][0]["checkpoint"]["state"]["agents"][0]["role"] = "human"
        value["record"]["chatGPTRecords"] = [{"agentIndex": 0, "turns": [{"index": 1, "response": "Sure."}]}]

    def with_two_machines(value: Any) -> None:
        with_a_person(value)
        place = value["record"]["actionHistory"][1]
        assert (place["agentName"], place["actionType"]) == ("Agent 0", "place")
        words = 'I build it.\nplace_block(block_type="black", pos=(2, 0, 0))'
        value["record"]["chatGPTRecords"][0]["turns"][0]["response"] = words

    def with_a_person_who_agrees_once(value: Any) -> None:
        with_two_machines(value)
        history = value["record"]["actionHistory"]
        places = [n for n, action in enumerate(history) if action and action["actionType"] == "place"]
        turns = [{"index": n, "response": 'send_message(message="No.")'} for n in places if n != 1]
        assert len(turns) > 1
        value["record"]["chatGPTRecords"][0]["turns"] += turns

    for own in (with_a_person, with_a_person_who_agrees_once):
        game = read(changed(tmp_path, own))["25"]
        assert [p.kind for p in game.team()] == ["human", "agent"] and game.setting == "real"
    game = read(changed(tmp_path, with_two_machines))["25"]
    assert [p.kind for p in game.team()] == ["agent", "agent"] and game.setting is None
    (view,) = game.events[2].states.items()
    assert (view[0], game.states[view[1]]) == (
        "Agent 0",
        {"reply": 'I build it.\nplace_block(block_type="black", pos=(2, 0, 0))'},
    )


def test_a_break_of_nothing_and_a_place_where_a_block_stands_have_failed() -> None:
    game = read(DUMP)["24"]
    failed = {e.seq: e.error for e in game.events if e.status == "failed"}
    assert failed == {5: NOTHING_BROKEN, 11: OCCUPIED}


def test_a_first_save_that_another_record_goes_on_from_is_marked_as_a_copy() -> None:
    games = read(DUMP)
    assert {n: g.tags.get("copy_of") for n, g in games.items()} == {
        "21": "22",
        "22": None,
        "23": None,
        "24": None,
    }
    assert games["21"].outcomes[0].value is None


def test_a_first_save_in_a_file_of_its_own_is_marked_as_a_copy_too(tmp_path: Path) -> None:
    def first(value: Any) -> None:
        value["id"] = 24
        value["record"]["actionHistory"] = value["record"]["actionHistory"][:2]

    folder = tmp_path / "games"  # the folders beside tmp_path are of other tests, with other saves
    folder.mkdir()
    path = changed(folder, first).rename(folder / "record_24.json")
    assert "copy_of" not in read(path)["24"].tags
    whole = changed(folder, lambda value: value)
    assert read(path)["24"].tags["copy_of"] == "25"
    assert SYSTEMS["coblock"].beside(path) == [whole]
    assert "copy_of" not in read(whole)["25"].tags


@pytest.mark.parametrize("name", ["record.json", "record_{}.json", "record.txt"])
def test_a_first_save_in_a_folder_of_its_own_is_marked_as_a_copy_too(tmp_path: Path, name: str) -> None:
    def first(value: Any) -> None:
        value["id"] = 24
        value["record"]["actionHistory"] = value["record"]["actionHistory"][:2]

    paths = [tmp_path / f"game {number}" / name.format(number) for number in (24, 25)]
    for path, change in zip(paths, (first, lambda value: value), strict=True):
        path.parent.mkdir()
        changed(tmp_path, change).rename(path)
    assert read(paths[0])["24"].tags["copy_of"] == "25"
    assert "copy_of" not in read(paths[1])["25"].tags
    beside = SYSTEMS["coblock"].beside
    assert beside(paths[0]) == [paths[1]]
    path = tmp_path / "other" / f"export{paths[0].suffix}"
    path.parent.mkdir()
    path.write_bytes(paths[0].read_bytes())
    assert list(beside(path)) == [], "a file of another name is no folder's one record"


def test_a_game_that_was_resumed_a_day_later_is_one_game(tmp_path: Path) -> None:
    def first(value: Any) -> None:
        value |= {"id": 24, "created_at": "2026-02-01T09:00:00Z"}
        value["record"]["actionHistory"] = value["record"]["actionHistory"][:2]

    before = changed(tmp_path, first).rename(tmp_path / "record_24.json")
    after = changed(tmp_path, lambda value: value.update(created_at="2026-02-02T09:00:00Z"))
    assert read(before)["24"].tags["copy_of"] == "25"
    assert "copy_of" not in read(after)["25"].tags


def test_what_the_page_saved_before_it_had_loaded_the_task_is_not_how_the_game_began(tmp_path: Path) -> None:
    """Its first turns may hold the default agents, or the last turn of the session shown before."""

    def early(value: Any) -> None:
        first = value["record"]["turns"][0]["checkpoint"]["state"]
        first["initialized"] = True
        default = [{"role": "human", "name": "user"}, {"role": "assistant", "name": "assistant"}]
        blank = {"initialized": False, "agents": default, "agentActions": [], "initiablocks": []}
        blank["initialAgentStates"] = [{"agent": agent, "inventory": []} for agent in default]
        other = json.loads(json.dumps(first)) | {"agentActions": value["record"]["actionHistory"][:1]}
        other["initialAgentStates"] = blank["initialAgentStates"]
        turns = [{"index": n, "checkpoint": {"state": state}} for n, state in ((0, blank), (7, other))]
        value["record"]["turns"] = [*turns, *value["record"]["turns"]]

    def unsaved(value: Any) -> None:
        early(value)
        value["record"]["turns"] = value["record"]["turns"][:1]

    whole = read(SERVED)["25"]
    for edit in (early, unsaved):
        game = read(changed(tmp_path, edit))["25"]
        assert (game.id, game.events, game.states) == (whole.id, whole.events, whole.states)
        assert game.participants == whole.participants


@pytest.mark.parametrize("other", ["a day later", "with feedback", "without a time", "at once"])
def test_who_only_began_a_session_that_others_played_has_played_a_game(tmp_path: Path, other: str) -> None:
    rows = json.loads(DUMP.read_text())
    (first,) = (row for row in rows if row["pk"] == 21 and "recordmodel" in row["model"])
    if other == "a day later":
        first["fields"]["created_at"] = "2026-02-04T09:00:00.000Z"
    elif other == "without a time":
        del first["fields"]["created_at"]
    elif other == "with feedback":
        fields = {"record": 21, "content": "Task incompleted \nI gave up", "spec": {}}
        table = "minestructure.collaborationexperimentfeedbackmodel"
        rows.append({"model": table, "pk": 9, "fields": fields})
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(rows))
    game = read(path)["21"]
    copied = other in ("without a time", "at once")
    assert ("copy_of" in game.tags, game.outcomes[0].value) == (copied, None if copied else 0.0)


def test_of_many_games_of_a_session_only_other_saves_of_the_same_one_are_beside_it(tmp_path: Path) -> None:
    """Else a folder of games of one session takes time, and is read, by each pair of them."""
    for day in range(1, 29):

        def later(value: Any, day: int = day) -> None:
            value |= {"id": day, "created_at": f"2026-02-{day:02d}T09:00:00Z"}
            for action in value["record"]["actionHistory"]:
                action |= {"uid": f"{action['uid']} {day}"} if action.get("uid") else {}

        changed(tmp_path, later).rename(tmp_path / f"{day}.json")

    def first(value: Any) -> None:
        value |= {"id": 99, "created_at": "2026-02-03T09:00:09Z"}
        value["record"]["actionHistory"] = []

    path = changed(tmp_path, first).rename(tmp_path / "99.json")
    beside = SYSTEMS["coblock"].beside
    assert beside(path) == [tmp_path / "3.json"] and beside(tmp_path / "3.json") == [path]
    assert list(beside(tmp_path / "4.json")) == []
    assert read(path)["99"].tags["copy_of"] == "3"


@pytest.mark.parametrize(
    ("made", "copied"),
    [
        ("2026-02-03T09:00:01", True),
        ("2026-02-03T10:00:01+01:00", True),
        ("2026-02-03T04:00:01", False),
    ],
)
def test_a_time_without_a_zone_is_the_same_on_every_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str, copied: bool
) -> None:
    def first(value: Any) -> None:
        value |= {"id": 24, "created_at": made}
        value["record"]["actionHistory"] = value["record"]["actionHistory"][:1]

    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        path = changed(tmp_path, first).rename(tmp_path / "record_24.json")
        changed(tmp_path, lambda value: value.update(created_at="2026-02-03T09:00:00Z"))
        assert ("copy_of" in read(path)["24"].tags) == copied
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("2026-02-03T17:04:00.123456+08:00", "2026-02-03T09:04:00.123Z"),
        ("2026-02-03T17:04:00+00:00", "2026-02-03T17:04:00.000Z"),
        ("2026-02-03T17:04:00.5+00:00", "2026-02-03T17:04:00.500Z"),
        ("2026-02-03T17:04:00Z", "2026-02-03T17:04:00Z"),
    ],
)
def test_a_time_with_a_zone_is_told_in_utc(tmp_path: Path, printed: str, told: str) -> None:
    path = changed(tmp_path, lambda value: value.update(created_at=printed))
    assert read(path)["25"].events[0].time == told


def test_a_longer_save_that_was_being_written_is_known_once_it_is_whole(tmp_path: Path) -> None:
    def first(value: Any) -> None:
        value |= {"id": 24}
        value["record"]["actionHistory"] = value["record"]["actionHistory"][:2]

    path = changed(tmp_path, first).rename(tmp_path / "24.json")
    whole = SERVED.read_text(encoding="utf-8")
    with (tmp_path / "25.json").open("w", encoding="utf-8") as file:
        file.write(whole[:-30])
        file.flush()
        assert "copy_of" not in read(path)["24"].tags
        file.write(whole[-30:])
    assert read(path)["24"].tags["copy_of"] == "25"


def test_an_older_version_of_a_record_is_no_copy_of_it(tmp_path: Path) -> None:
    def early(value: Any) -> None:
        value["record"]["actionHistory"] = value["record"]["actionHistory"][:2]

    old = changed(tmp_path, early).rename(tmp_path / "old.json")
    changed(tmp_path, lambda value: value)
    assert "copy_of" not in read(old)["25"].tags


def test_feedback_is_kept_whether_its_details_are_an_object_or_text() -> None:
    games = read(DUMP)
    kept = [o for n in ("22", "23") for o in games[n].outcomes if o.name == "feedback"]
    assert [o.text for o in kept] == [
        "Task completed \nThe other one was quick to understand.",
        "Task incompleted \nIt left.",
    ]
    assert all(isinstance(o.data, list) and o.data[0]["spec"] == {"role": "human"} for o in kept)  # type: ignore[index, call-overload]


def test_the_same_record_has_one_id_in_either_export_and_as_it_grows(tmp_path: Path) -> None:
    whole = read(SERVED)["25"]

    def cut(value: Any) -> None:
        value["record"]["actionHistory"] = value["record"]["actionHistory"][:3]
        value["created_at"] = "2026-02-03T09:04:00.000Z"

    early = read(changed(tmp_path, cut))["25"]
    assert early.id == whole.id
    assert [e.digest() for e in early.events] == [e.digest() for e in whole.events[:4]]


def test_both_published_exports_of_one_game_are_one_trajectory() -> None:
    dumped = read(shared("coblock/dumpdata_synthetic.json"))["1"]
    served = read(shared("coblock/api_record_detail_synthetic.json"))["1"]
    assert dumped.id == served.id
    assert [e.digest() for e in dumped.events] == [e.digest() for e in served.events]
    assert len(dumped.events) == 11


def test_a_record_posted_as_text_is_read_as_well(tmp_path: Path) -> None:
    path = changed(tmp_path, lambda value: value.update(record=json.dumps(value["record"])))
    assert read(path)["25"].id == read(SERVED)["25"].id


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (
            lambda h: h[1].update(actionType="jump"),
            "actionHistory[1].actionType: expected one of place, break, message, end_session, null, got",
        ),
        (lambda h: h[1].pop("blockType"), "actionHistory[1].blockType: missing"),
        (
            lambda h: h[1]["blockPos"].update(y="low"),
            "actionHistory[1].blockPos.y: expected a number, got 'low'",
        ),
        (
            lambda h: h[1].update(agentName="X"),
            "actionHistory[1].agentName: expected one of Agent 0, Agent 1, got 'X'",
        ),
        (lambda h: h.__setitem__(1, None), "actionHistory[1]: expected an object, got null"),
    ],
)
def test_a_bad_action_is_named_and_leaves_its_place_free(
    tmp_path: Path, edit: Callable[[Any], object], reason: str
) -> None:
    path = changed(tmp_path, lambda value: edit(value["record"]["actionHistory"]))
    bad, game = coblock.read(path, ReadOptions())
    assert isinstance(bad, Quarantined) and bad.reason.startswith(f"record 25: {reason}")
    assert isinstance(game, Trajectory)
    assert [e.seq for e in game.events] == [0, 1, *range(3, 13)]


def test_a_record_without_a_history_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    def edit(rows: Any) -> None:
        next(row for row in rows if row["pk"] == 23)["fields"]["record"] = {"id": ""}

    found = list(coblock.read(changed(tmp_path, edit, DUMP), ReadOptions()))
    assert [p.reason for p in found if isinstance(p, Quarantined)] == ["record 23.actionHistory: missing"]
    assert [p.native_id for p in found if isinstance(p, Trajectory)] == ["21", "22", "24"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"session": {"task_config"', "not JSON"),
        ('{"trajectory": "x"}', "item 0 is neither a row of dumpdata nor a record of /api/record/"),
    ],
)
def test_a_file_that_is_no_export_says_why(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    (bad,) = coblock.read(path, ReadOptions())
    assert isinstance(bad, Quarantined) and reason in bad.reason


def test_a_game_without_its_session_is_read_and_its_success_is_undefined(tmp_path: Path) -> None:
    def edit(rows: Any) -> None:
        rows[:] = [row for row in rows if row["model"] == "minestructure.collaborationrecordmodel"]

    games = read(changed(tmp_path, edit, DUMP))
    assert games["22"].outcomes[0].reason == "the export does not say what was to be built"
    assert [p.kind for p in games["22"].team()] == ["human", "agent"]


def test_each_systems_files_are_recognised_by_that_system_alone() -> None:
    data = ROOT / "data"
    own = {
        "coblock": sorted((data / "coblock").glob("*.json")),
        "overcooked": sorted((data / "overcooked").rglob("*.json")),
        "rehac": sorted((data / "rehac").glob("*.jsonl")),
    }
    for reader in (coblock, overcooked, rehac):
        for system, paths in own.items():
            assert [reader.recognises(path) for path in paths] == [system == reader.SYSTEM] * len(paths)


def test_rows_and_records_may_come_one_a_line_or_by_pages(tmp_path: Path) -> None:
    rows, record = (json.loads(path.read_text(encoding="utf-8")) for path in (DUMP, SERVED))
    for name, text, games in (
        ("dump.jsonl", "".join(json.dumps(row) + "\n" for row in rows), read(DUMP)),
        ("records.jsonl", f"{json.dumps(record)}\n" * 2, read(SERVED)),
        ("page.json", json.dumps({"count": 1, "next": None, "results": [record]}), read(SERVED)),
    ):
        (tmp_path / name).write_text(text)
        assert coblock.recognises(tmp_path / name)
        assert {key: g.id for key, g in read(tmp_path / name).items()} == {k: g.id for k, g in games.items()}


def test_a_row_that_was_cut_off_costs_only_itself(tmp_path: Path) -> None:
    record = SERVED.read_text(encoding="utf-8").replace("\n", "")
    path = tmp_path / "records.jsonl"
    path.write_text(f"{record}\n{record[:-30]}")
    game, bad = coblock.read(path, ReadOptions())
    assert isinstance(game, Trajectory) and game.id == read(SERVED)["25"].id
    assert isinstance(bad, Quarantined) and "item 1 is neither" in bad.reason


@pytest.mark.parametrize("name", ["Agent 0", "environment"])
def test_agents_that_cannot_be_told_apart_are_named_and_not_mixed_up(tmp_path: Path, name: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(SERVED.read_text(encoding="utf-8").replace("Agent 1", name))
    (bad,) = coblock.read(path, ReadOptions())
    assert isinstance(bad, Quarantined) and f"{name!r} is not the name of one agent alone" in bad.reason


def test_a_record_that_does_not_say_who_takes_part_says_so_once(tmp_path: Path) -> None:
    def edit(value: Any) -> None:
        value["session"] = 5
        value["record"]["turns"] = []

    (bad,) = coblock.read(changed(tmp_path, edit), ReadOptions())
    assert isinstance(bad, Quarantined) and "say who takes part" in bad.reason


@pytest.mark.parametrize("place", [float("nan"), float("inf"), 10**400])
def test_a_block_that_stands_nowhere_is_not_placed(tmp_path: Path, place: Any) -> None:
    path = changed(tmp_path, lambda v: v["record"]["actionHistory"][1]["blockPos"].update(x=place))
    bad, game = coblock.read(path, ReadOptions())
    assert isinstance(bad, Quarantined) and "blockPos.x: expected a number" in bad.reason
    assert isinstance(game, Trajectory)


@pytest.mark.parametrize("written", [r"\1\2.0", r'\1"\2"'])
def test_counts_and_places_may_be_written_as_decimals_or_texts(tmp_path: Path, written: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(re.sub(r'("(?:count|x|y|z)": *)(\d+)', written, SERVED.read_text(encoding="utf-8")))
    assert [m.value for m in measures(read(path)["25"])] == [m.value for m in measures(read(SERVED)["25"])]


def test_blocks_may_have_numbers_for_ids(tmp_path: Path) -> None:
    def edit(value: Any) -> None:
        uid = uids.pop()
        first = next(act for act in value["record"]["actionHistory"] if act["actionType"] == "place")
        broken = {"agentName": first["agentName"], "actionType": "break", "uid": uid}
        value["record"]["actionHistory"] = [first | {"uid": uid}, broken, first | {"uid": "again"}]

    uids: list[object] = ["7", 7]
    games = [read(changed(tmp_path, edit))["25"] for _ in range(2)]
    assert [[e.status for e in game.events[1:]] for game in games] == [["succeeded"] * 3] * 2
    assert [m.value for m in measures(games[0])] == [m.value for m in measures(games[1])]
