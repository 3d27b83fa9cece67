"""What the Collab-Overcooked reader makes of experiment logs, references and recipes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.overcooked import reader
from coaudit.pipeline.systems.overcooked.collaboration import calls, requests
from coaudit.pipeline.systems.overcooked.log import invalid_class
from coaudit.pipeline.systems.overcooked.references import references
from coaudit.schemas import Quarantined, Trajectory
from coaudit.schemas.trajectory import recorded_outcome
from tests.shared import ROOT, shared

SAMPLES = ROOT / "data" / "overcooked"
GOOD = SAMPLES / "logs/model_a/poached_pear/experiment_2026-01-12_10-00-00_poached_pear.json"
LATE = SAMPLES / "logs/model_a/poached_pear/experiment_2026-01-12_10-05-00_poached_pear.json"
PEOPLE = SAMPLES / "logs/human/poached_pear/experiment_2026-01-12_12-00-00_poached_pear.json"


def read(path: Path) -> Trajectory:
    """The run in a log that has nothing wrong with it."""
    (trajectory,) = reader.read(path, ReadOptions())
    assert isinstance(trajectory, Trajectory)
    return trajectory


def changed(folder: Path, edit: Any, path: Path = GOOD) -> Path:
    """A copy of a log with something changed in it."""
    log = json.loads(path.read_text(encoding="utf-8"))
    edit(log)
    copy = folder / path.name
    copy.write_text(json.dumps(log), encoding="utf-8")
    return copy


def test_a_run_is_told_step_by_step_by_who_really_spoke() -> None:
    told = [
        (e.actor, e.kind, e.text or (e.action and (e.action.raw or e.action.name))) for e in read(GOOD).events
    ]
    assert told == [
        ("environment", "start", "Order: poached_pear"),
        ("chef", "note", "plan"),
        ("chef", "note", "plan"),
        ("chef", "action", "Chef plan: pickup(pear, ingredient_dispenser)"),
        ("chef", "message", "Could you put a pear on the counter?"),
        ("assistant", "message", "On its way! [END]"),
        ("chef", "note", "plan"),
        ("assistant", "action", "pickup(pear, ingredient_dispenser)"),
        ("assistant", "action", "place_obj_on_counter()"),
        ("chef", "action", "pickup(pear, counter)"),
        ("chef", "action", "put_obj_in_utensil(pot0)"),
        ("chef", "action", "cook(pot0)"),
        ("chef", "action", "pickup(poached_pear, pot0)"),
        ("chef", "action", "deliver_soup()"),
        ("environment", "finish", "poached_pear"),
    ]


def test_a_refused_plan_is_a_failed_action_with_its_class() -> None:
    refused = read(GOOD).events[3]
    assert refused.action is not None and refused.status == "failed"
    assert refused.action.arguments == {"timestep": 0, "class": "access"}
    assert (refused.error or "").startswith("Chef can not directly access dispenser")


def test_a_message_keeps_its_plan_and_who_opened_the_dialogue() -> None:
    answer = read(GOOD).events[5]
    assert answer.action is not None
    assert answer.action.arguments == {
        "timestep": 1,
        "opener": "chef",
        "dialogue": True,
        "analysis": "I can.",
        "plan": "Assistant plan: pickup(pear, ingredient_dispenser);place_obj_on_counter()",
    }


def test_a_prompt_is_seen_by_its_agent_only() -> None:
    trajectory = read(GOOD)
    asked = trajectory.events[4]
    assert set(asked.states) == {"chef"}
    assert trajectory.states[asked.states["chef"]] == {"prompt": "Scene 1: <Chef> thinks."}


def test_the_map_is_public_and_follows_what_a_timestep_changed() -> None:
    log = json.loads(GOOD.read_text(encoding="utf-8"))
    maps = {turn["timestamp"]: turn["map"] for turn in log["content"]}
    trajectory = read(GOOD)
    timesteps = [event.action.arguments["timestep"] for event in trajectory.events if event.action]
    for seq, timestep in enumerate(timesteps, 1):
        is_last = timestep not in timesteps[seq:]
        states = trajectory.events[seq].states
        assert ("public" in states) == (is_last and timestep in maps), seq
        assert (
            not is_last
            or timestep not in maps
            or trajectory.states[states["public"]] == {"map": maps[timestep]}
        )


def test_the_folder_is_the_model_and_the_condition_and_the_order_is_the_task(tmp_path: Path) -> None:
    trajectory = read(GOOD)
    assert (trajectory.agent_model, trajectory.condition) == ("model_a", "model_a")
    assert (trajectory.task, trajectory.instance) == ("poached_pear", "poached_pear")
    for place, model in (
        ("src/data/maker/model-7b/poached_pear", "maker/model-7b"),
        ("src/data/overcooked/logs/model_a/poached_pear", "model_a"),  # a checkout in a folder called src
        ("src/data/poached_pear", "data"),
    ):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        assert read(changed(folder, lambda log: None)).agent_model == model


def test_a_folder_of_one_run_is_no_model_and_no_condition(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "2026-01-12_10-00-00_poached_pear"
    folder.mkdir(parents=True)
    trajectory = read(changed(folder, lambda log: None))
    assert (trajectory.condition, trajectory.agent_model) == ("results", None)
    assert [p.model for p in trajectory.team()] == [None, None]


def test_a_folder_of_files_with_other_names_than_the_systems_is_no_model(tmp_path: Path) -> None:
    """A lab's runs lie in MODEL/json/ORDER, others' in whatever they call it."""
    for place, people in (("model-7b/json", False), ("human", True)):
        folder = tmp_path / place / "poached_pear"
        folder.mkdir(parents=True)
        path = changed(folder, lambda log: None).rename(folder / "worker0_7_poached_pear-2026-01-12.json")
        trajectory = read(path)
        assert trajectory.agent_model is None and trajectory.condition == Path(place).name
        assert {p.kind for p in trajectory.team()} == {"human" if people else "agent"}


@pytest.mark.parametrize("untold", [False, True])
def test_a_files_name_says_who_plays_where_the_two_differ(tmp_path: Path, untold: bool) -> None:
    folder = tmp_path / "human_maker_model-7b" / "poached_pear"
    folder.mkdir(parents=True)
    name = "experiment_2026-01-12_10-00-00_chef_human_assistant_maker_model-7b_poached_pear.json"
    path = folder / name
    log = json.loads(GOOD.read_text())
    path.write_text(json.dumps(log | {"content": [], "total_order_finished": []} if untold else log))
    trajectory = read(path)
    assert [(p.kind, p.model) for p in trajectory.team()] == [("human", None), ("agent", "maker_model-7b")]
    assert (trajectory.setting, trajectory.agent_model) == ("real", "maker_model-7b")
    assert (trajectory.task, trajectory.condition) == ("poached_pear", "human_maker_model-7b")


@pytest.mark.parametrize(
    ("place", "kinds"),
    [
        ("Human/poached_pear/experiment_TIME_poached_pear", ["human", "human"]),
        ("human/TIME_poached_pear/experiment_TIME_poached_pear", ["human", "human"]),
        ("x/TIME_poached_pear/experiment_TIME_chef_m_1_assistant_HUMAN_poached_pear", ["agent", "human"]),
        ("superhuman-7b/poached_pear/experiment_TIME_poached_pear", ["agent", "agent"]),
        ("x/poached_pear/experiment_TIME_chef_superhuman_assistant_human-2_poached_pear", ["agent", "agent"]),
    ],
)
def test_people_are_told_from_models_by_the_whole_name(tmp_path: Path, place: str, kinds: list[str]) -> None:
    path = tmp_path / f"{place.replace('TIME', '2026-01-12_10-00-00')}.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(GOOD.read_bytes())
    trajectory = read(path)
    assert [p.kind for p in trajectory.team()] == kinds
    assert trajectory.setting == ("real" if "human" in kinds else None)


def test_people_who_play_are_people() -> None:
    trajectory = read(PEOPLE)
    assert [p.kind for p in trajectory.team()] == ["human", "human"]
    assert (trajectory.setting, trajectory.agent_model) == ("real", None)
    assert [p.kind for p in read(GOOD).team()] == ["agent", "agent"]


def test_a_run_that_goes_on_keeps_its_id_and_its_first_events(tmp_path: Path) -> None:
    def cut(log: Any) -> None:
        log["content"] = log["content"][:6]
        log["total_timestamp"] = log["total_timestamp"][:6]
        log["total_order_finished"] = []
        log["total_action_list"] = [
            [a for a in done if a["timestamp"] < 6] for done in log["total_action_list"]
        ]

    early, whole = read(changed(tmp_path, cut)), read(GOOD)
    assert early.id == whole.id
    assert [e.digest() for e in early.events] == [e.digest() for e in whole.events[: len(early.events)]]
    assert read(LATE).id != whole.id


@pytest.mark.parametrize(
    ("edit", "reason", "events"),
    [
        (
            lambda log: log["content"].__setitem__(3, 5),
            "content[3]: expected an object, got a whole number",
            15,
        ),
        (lambda log: log["content"][1].pop("content"), "content[1].content: missing", 12),
        (
            lambda log: log["content"][1]["content"]["content"][0][0].update(agent=7),
            "content[1].content.content[0][0].agent: expected 0 or 1, got 7",
            12,
        ),
        (
            lambda log: log["content"][1]["content"]["content"].append([{"agent": 0}]),
            "content[1].content.content[2]: more than two agents",
            12,
        ),
        (
            lambda log: log["total_action_list"][0].__setitem__(
                2, {"timestamp": "x", "action": "cook(pot0)"}
            ),
            "total_action_list[0][2].timestamp: expected a whole number, got a text",
            14,
        ),
    ],
)
def test_a_bad_turn_or_action_is_named_and_nothing_else_is_lost(
    tmp_path: Path, edit: Any, reason: str, events: int
) -> None:
    bad, trajectory = reader.read(changed(tmp_path, edit), ReadOptions())
    assert isinstance(bad, Quarantined) and bad.reason == reason
    assert isinstance(trajectory, Trajectory) and len(trajectory.events) == events


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"total_timestamp": [0', "not JSON"),
        ("[]", "expected a JSON object, got list"),
        ('{"total_timestamp": []}', "content: missing"),
        ('{"content": [], "total_action_list": {}}', "total_action_list: expected a list, got an object"),
    ],
)
def test_a_file_that_is_no_log_says_why(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "experiment.json"
    path.write_text(content)
    (bad,) = reader.read(path, ReadOptions())
    assert isinstance(bad, Quarantined) and reason in bad.reason


@pytest.mark.parametrize("form", ["lines", "list"])
def test_runs_in_one_file_are_a_run_each_and_a_bad_one_costs_itself_alone(tmp_path: Path, form: str) -> None:
    logs: list[Any] = [json.loads(path.read_text(encoding="utf-8")) for path in (GOOD, PEOPLE)]
    logs.insert(1, {"content": [], "total_action_list": {}})
    path = tmp_path / "all.jsonl"
    path.write_text("\n".join(map(json.dumps, logs)) if form == "lines" else json.dumps(logs, indent=1))
    assert reader.recognises(path)
    first, bad, last = reader.read(path, ReadOptions())
    assert isinstance(bad, Quarantined) and bad.line == 2 and "total_action_list" in bad.reason
    for run, number, alone in ((first, 1, read(GOOD)), (last, 3, read(PEOPLE))):
        assert isinstance(run, Trajectory) and run.id != alone.id
        assert run.native_id == ("all" if number == 1 else f"all:{number}")
        assert [event.text for event in run.events] == [event.text for event in alone.events]
        values = [[(one.name, one.value) for one in of.outcomes] for of in (run, alone)]
        assert values[0] == values[1]


def test_a_file_of_one_run_that_gets_another_keeps_it(tmp_path: Path) -> None:
    path, lines = tmp_path / "all.jsonl", [json.dumps(json.loads(GOOD.read_text(encoding="utf-8")))] * 2
    path.write_text(lines[0])
    alone = read(path)
    path.write_text("\n".join(lines))
    first, second = reader.read(path, ReadOptions())
    assert isinstance(first, Trajectory) and isinstance(second, Trajectory)
    assert first.id == alone.id != second.id


def test_a_first_line_that_is_cut_off_costs_itself_alone(tmp_path: Path) -> None:
    path, line = tmp_path / "all.jsonl", json.dumps(json.loads(GOOD.read_text(encoding="utf-8")))
    path.write_text("\n".join([line[:-50], line, line]))
    bad, *runs = reader.read(path, ReadOptions())
    assert isinstance(bad, Quarantined) and bad.line == 1
    assert [isinstance(run, Trajectory) and run.native_id for run in runs] == ["all:2", "all:3"]


def test_a_log_without_timesteps_has_a_start_and_no_last_timestep(tmp_path: Path) -> None:
    path = tmp_path / "experiment_2026-01-12_10-00-00_poached_pear.json"
    path.write_text('{"content": [], "total_action_list": [[], []], "total_order_finished": []}')
    trajectory = read(path)
    assert [e.kind for e in trajectory.events] == ["start"] and trajectory.task == "poached_pear"
    assert next(o.reason for o in trajectory.outcomes if o.name == "last_timestep")


def test_only_its_own_files_are_recognised() -> None:
    assert all(reader.recognises(path) for path in SAMPLES.rglob("experiment*.json"))
    others = [*SAMPLES.rglob("*.txt"), *(ROOT / "data" / "rehac").glob("*"), SAMPLES]
    assert not any(reader.recognises(path) for path in others)


def test_references_and_recipes_are_read_by_order_and_other_files_are_named(tmp_path: Path) -> None:
    found, bad = references(SAMPLES / "reference")
    assert sorted(found) == ["leek_soup", "poached_pear"] and bad == []
    assert (found["leek_soup"].level, len(found["leek_soup"].trajectories)) == (3, 2)
    assert found["poached_pear"].of(0)[0][3] == "pickup(poached_pear,pot0)"
    (tmp_path / "1_poached_pear.txt").write_text("NAME:\nPoached Pear\n")
    (tmp_path / "notes.md").write_text("x")
    (tmp_path / "2_plum_ref.txt").write_text('{"reference_1": {"agent_0": ["cook(pot0)"]}}')
    found, bad = references(tmp_path)
    assert found["poached_pear"].recipe == "NAME:\nPoached Pear\n"
    assert [(Path(q.source).name, q.reason) for q in bad] == [
        ("2_plum_ref.txt", "reference_1.agent_1: missing"),
        ("notes.md", "expected <level>_<order>_ref.txt or <level>_<order>.txt"),
    ]


def test_logs_beside_references_are_no_references_that_were_not_understood() -> None:
    found, bad = references(SAMPLES)
    assert sorted(found) == ["leek_soup", "poached_pear"] and bad == []
    assert found["leek_soup"].recipe is not None


def test_required_collaborations_are_the_hand_overs_of_the_reference() -> None:
    found, _ = references(SAMPLES / "reference")
    assert found["poached_pear"].required_collaborations == 1
    assert found["leek_soup"].required_collaborations == 2


def test_all_published_references_are_understood() -> None:
    found, bad = references(shared("overcooked/reference"))
    assert (len(found), bad) == (20, [])
    assert {(r.level, r.required_collaborations) for r in found.values()} == {(1, 1), (2, 1), (3, 2), (4, 3)}


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("please check your plan,make sure", "format"),
        ("Wrong pickup() params", "argument"),
        ("Too long wait time", "wait"),
        ("pot0 is cooking, and you should wait 2 timesteps", "utensil_state"),
        ("There is no dish in hand", "dish"),
        ("Chef can not reach oven0", "access"),
        ("There is no egg on counter", "access"),
        ("There is no object in Chef's hand", "hand"),
        ("There is no egg in pot0", "ingredient"),
        ("There is no empty counter", "counter_full"),
        ("Item in your hand is not finished food", "delivery"),
        ("pot0 is not ready or cooking for filled", "fill"),
        ("You have get the recipe", "recipe"),
        ("You can not move utensil", "utensil_move"),
        ("Something new", "other"),
    ],
)
def test_refused_plans_are_classed_by_their_message(message: str, kind: str) -> None:
    assert invalid_class(message) == kind


def test_of_several_episodes_in_a_file_the_first_counts_and_the_others_are_named(tmp_path: Path) -> None:
    def twice(log: Any) -> None:
        log["content"] += log["content"]
        log["total_action_list"] += log["total_action_list"]

    *wrong, run = reader.read(changed(tmp_path, twice), ReadOptions())
    assert isinstance(run, Trajectory) and run.outcomes == read(GOOD).outcomes
    assert [e.digest() for e in run.events] == [e.digest() for e in read(GOOD).events]
    reasons = [one.reason for one in wrong if isinstance(one, Quarantined)]
    steps = json.loads(GOOD.read_text(encoding="utf-8"))["total_timestamp"]
    assert len(reasons) == len(steps) + 2
    assert reasons[0].endswith("timestep 0 came before; a file holds one episode")
    assert reasons[-1] == "total_action_list[3]: more than two agents"


@pytest.mark.parametrize("score", [float("nan"), True, None, 10**400], ids=["nan", "true", "none", "10**400"])
def test_a_score_that_is_no_number_is_missing_and_the_run_is_read(tmp_path: Path, score: Any) -> None:
    run = read(changed(tmp_path, lambda log: log.update(total_score=score)))
    (outcome,) = [o for o in run.outcomes if o.name == "score"]
    assert (outcome.value, outcome.reason) == (None, "not logged")
    assert len(run.events) == len(read(GOOD).events)


def test_a_log_that_went_through_another_program_is_the_same_run(tmp_path: Path) -> None:
    def edit(log: Any) -> None:
        log["content"].reverse()
        for turn in (*log["content"], *log["total_action_list"][0]):
            turn["timestamp"] = float(turn["timestamp"])
        for done in log["total_action_list"][1]:
            done["timestamp"] = str(done["timestamp"])
        log["content"][0]["map"] += " " * 200_000

    run, whole = read(path := changed(tmp_path, edit)), read(GOOD)
    assert (run.id, len(run.events)) == (whole.id, len(whole.events))
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    assert reader.recognises(path)


@pytest.mark.parametrize("piece", ["request(", "a", "a(", "There is object ", "There is no "])
def test_no_plan_and_no_message_keeps_its_reader_busy(piece: str) -> None:
    began, text = time.process_time(), piece * (200_000 // len(piece))
    assert (requests(text), calls(text), invalid_class(text)) == ((), (), "other")
    assert time.process_time() - began < 5


def test_the_last_timestep_is_the_logs_though_its_turn_cannot_be_read(tmp_path: Path) -> None:
    def edit(log: Any) -> None:
        log["content"][-1] = None

    bad, run = reader.read(changed(tmp_path, edit), ReadOptions())
    assert isinstance(bad, Quarantined) and isinstance(run, Trajectory)
    assert recorded_outcome(run, "last_timestep").value == recorded_outcome(read(GOOD), "last_timestep").value


def test_an_agent_of_whom_no_actions_are_listed_is_named(tmp_path: Path) -> None:
    bad, _ = reader.read(changed(tmp_path, lambda log: log["total_action_list"].pop()), ReadOptions())
    assert isinstance(bad, Quarantined)
    assert bad.reason == "total_action_list[1]: missing, as if no action was completed"


def test_a_run_of_three_is_refused_whole_for_its_words_and_parties_would_be_lost(tmp_path: Path) -> None:
    def join(log: Any) -> None:
        for turn in log["content"]:
            for part in turn["statistical_data"].values():
                if isinstance(part, list):
                    part.append(part[1])
            turn["content"]["content"].append([])
        log["total_action_list"].append([])

    (bad,) = reader.read(changed(tmp_path, join), ReadOptions())
    assert isinstance(bad, Quarantined)
    assert bad.reason.endswith("content: the team has 3 agents, only teams of two can be read")


@pytest.mark.parametrize(
    ("place", "arm", "model"),
    [
        ("src/data/model-7b/poached_pear/always", "always", "model-7b"),
        ("src/data/maker/model-7b/poached_pear/always", "always", "maker/model-7b"),
        ("runs/poached_pear/always", "always", None),
        ("src/data/poached_pear/human", "human", None),
    ],
)
def test_a_folder_of_an_arm_within_the_orders_is_the_condition_and_no_model(
    tmp_path: Path, place: str, arm: str, model: str | None
) -> None:
    (tmp_path / place).mkdir(parents=True)
    trajectory = read(changed(tmp_path / place, lambda log: None))
    assert (trajectory.condition, trajectory.agent_model) == (arm, model)
    assert {p.kind for p in trajectory.team()} == {"human" if arm == "human" else "agent"}
    assert trajectory.id == read(GOOD).id


def test_what_the_log_says_of_its_players_comes_before_the_folder(tmp_path: Path) -> None:
    players: list[dict[str, Any]] = [
        {"player": "P1", "role": "assistant", "model": "model-9b", "agent_type": "plain"},
        {"player": "P0", "role": "chef", "model": "model-7b", "agent_type": "mirror"},
    ]

    def name_players(log: Any) -> None:
        for turn in log["content"]:
            turn["agent_models"] = players

    folder = tmp_path / "mirror_model-7b__plain_model-9b" / "poached_pear"
    folder.mkdir(parents=True)
    trajectory = read(changed(folder, name_players))
    assert [p.model for p in trajectory.team()] == ["model-7b", "model-9b"]
    assert (trajectory.agent_model, trajectory.agent) == ("model-7b", "mirror, plain")
    assert trajectory.condition == "mirror_model-7b__plain_model-9b"
    players[0]["model"] = "human"
    kinds = [p.kind for p in read(changed(folder, name_players)).team()]
    assert kinds == ["agent", "human"]
    players[:] = [{"model": 7}]
    assert read(changed(folder, name_players)).agent_model == folder.parent.name


def test_of_several_orders_the_one_that_was_served_is_the_task(tmp_path: Path) -> None:
    def add_an_order(log: Any) -> None:
        for turn in log["content"]:
            turn["order_list"] = ["baked_plum", "poached_pear"]

    trajectory = read(changed(tmp_path, add_an_order))
    assert trajectory.task == "poached_pear"
    assert trajectory.id == read(GOOD).id


@pytest.mark.parametrize("orders", [["baked_plum", "poached_pear"], ["poached_pear", "baked_plum"]])
def test_of_several_orders_any_may_name_the_folder_and_the_file(tmp_path: Path, orders: list[str]) -> None:
    def serve_plum(log: Any) -> None:
        log["total_order_finished"] = ["baked_plum"]
        for turn in log["content"]:
            turn["order_list"] = orders

    folder = tmp_path / "model-7b" / "poached_pear"
    folder.mkdir(parents=True)
    path = changed(folder, serve_plum)
    trajectory = read(path)
    assert (trajectory.task, trajectory.agent_model) == ("baked_plum", "model-7b")
    assert trajectory.condition == "model-7b"
    # What was said first does not change at the end, when an order is served.
    assert trajectory.events[0].text == f"Order: {orders[0]}"
    name = "experiment_2026-01-12_10-00-00_chef_model-7b_assistant_model-9b_poached_pear.json"
    assert [p.model for p in read(path.rename(folder / name)).team()] == ["model-7b", "model-9b"]


@pytest.mark.parametrize(
    ("place", "name", "assistant"),
    [
        ("any/poached_pear", "chef_model-7b_assistant_human_poached_pear", {}),
        ("human/poached_pear", "poached_pear", {}),
        ("model-7b/poached_pear", "poached_pear", {"agent_type": "human", "model": "none"}),
    ],
)
def test_a_person_beside_a_model_that_the_log_names_stays_one(
    tmp_path: Path, place: str, name: str, assistant: dict[str, str]
) -> None:
    def name_players(log: Any) -> None:
        log["content"][0]["agent_models"] = [
            {"role": "chef", "model": "model-7b", "agent_type": "plain"},
            {"role": "assistant", **assistant},
        ]

    (tmp_path / place).mkdir(parents=True)
    path = changed(tmp_path / place, name_players)
    trajectory = read(path.rename(path.with_name(f"experiment_2026-01-12_10-00-00_{name}.json")))
    assert [(p.kind, p.model) for p in trajectory.team()] == [("agent", "model-7b"), ("human", None)]
    assert (trajectory.setting, trajectory.agent) == ("real", "plain")


def test_a_file_without_an_order_in_its_name_lies_in_its_models_folder(tmp_path: Path) -> None:
    folder = tmp_path / "src" / "data" / "model-7b"
    folder.mkdir(parents=True)
    path = changed(folder, lambda log: None).rename(folder / "experiment_2026-01-12_10-00-00_.json")
    assert read(path).agent_model == "model-7b"
    untold = changed(folder, lambda log: log.update(content=[], total_order_finished=[]))
    assert read(untold.rename(path)).task is None
