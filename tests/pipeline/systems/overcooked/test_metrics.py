"""Collab-Overcooked's metrics against the reference values, and against samples reckoned by hand."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.overcooked import metrics, reader
from coaudit.pipeline.systems.overcooked.collaboration import Definition, calls, compare, errors, requests
from coaudit.pipeline.systems.overcooked.efficiency import prefix_length, tes, valid_actions
from coaudit.pipeline.systems.overcooked.references import Reference, references
from coaudit.schemas import Trajectory
from tests.shared import ROOT, shared

SAMPLES = ROOT / "data" / "overcooked"
CHEF = [
    "pickup(pear,counter)",
    "put_obj_in_utensil(pot0)",
    "cook(pot0)",
    "pickup(poached_pear,pot0)",
    "deliver_soup()",
]
HELP = ["pickup(pear,ingredient_dispenser)", "place_obj_on_counter()"]
WRONG = ["pickup(plum,ingredient_dispenser)", "place_obj_on_counter()"]


def sample(stamp: str) -> tuple[Trajectory, Reference]:
    """One of the sample runs with its reference."""
    (path,) = SAMPLES.rglob(f"experiment_2026-01-12_{stamp}-00_*.json")
    return loaded(path, SAMPLES / "reference")


def loaded(path: Path, folder: Path) -> tuple[Trajectory, Reference]:
    (trajectory,) = reader.read(path, ReadOptions())
    assert isinstance(trajectory, Trajectory)
    return trajectory, references(folder)[0][trajectory.task or ""]


def values(
    trajectory: Trajectory,
    reference: Reference | None,
    definition: Definition = "released",
    gamma: float = 1.5,
) -> dict[str, float | None]:
    found = metrics.measures(trajectory, reference, definition, gamma)
    rows = (row for row in found if row.scoring is None)
    return {row.metric + (f" {row.participant}" if row.participant else ""): row.value for row in rows}


@pytest.mark.parametrize(
    ("history", "score"),
    [
        (CHEF, 1.0),
        ([], 0.0),
        (CHEF[:3], 0.7405124878365229),
        (CHEF[1:], 0.0),
        (CHEF * 2, 0.67825311942959),
        ([CHEF[0], CHEF[2], CHEF[1], CHEF[3], CHEF[4]], 0.4),
        # Appendix B.1: what stands behind a wrong step earns nothing, redundant steps only cost.
        ([*CHEF[:3], "pickup(egg,counter)", CHEF[4]], 1.9025 * 3 / (5 + 0.9025 * 5)),
        ([*CHEF[:3], "pickup(egg,counter)", *CHEF[3:]], 1.9025 * 5 / (5 + 0.9025 * 6)),
    ],
)
def test_tes_is_that_of_the_released_code_and_of_the_appendix(history: list[str], score: float) -> None:
    found = tes(history, [CHEF])
    assert found == pytest.approx(score, abs=1e-15)


def test_putting_down_what_nobody_wanted_is_no_progress() -> None:
    assert tes(WRONG, [HELP]) == 0


def test_the_walk_may_start_again_where_the_first_action_comes_again() -> None:
    assert prefix_length(["a", "x", "a", "b"], ["a", "b", "c"]) == 2


def test_tes_without_a_reference_is_undefined() -> None:
    assert tes(CHEF, []) is None
    assert compare(HELP, HELP, [], []) is None


def test_what_no_agent_can_do_is_left_out_of_a_history() -> None:
    assert valid_actions(["pickup(pear, counter)", "wait(1)", "dance()"]) == ["pickup(pear,counter)"]
    assert valid_actions(["wait(1)"]) == ["[NONE]"]


def test_requests_and_plans_are_read_with_and_without_quotes() -> None:
    line = "Chef plan: request('pickup(egg, counter)');request(cut(chopping_board0));wait(1);cook(pot0)"
    assert requests(line) == ("pickup(egg,counter)", "cut(chopping_board0)")
    assert calls(line) == ("cook(pot0)",)


@pytest.mark.parametrize(
    ("requested", "answered", "history", "scores"),
    [
        (HELP, HELP, [], (1, 0, 1)),
        (HELP, WRONG, [], (1, 1, 0)),
        (WRONG, HELP, [], (0, -1, 1)),
        (WRONG, WRONG, [], (0, 0, 0)),
        (HELP * 2, HELP, [], (0.678253, -0.321747, 1)),
    ],
)
def test_a_request_and_its_answer_are_judged_by_what_they_would_further(
    requested: list[str], answered: list[str], history: list[str], scores: tuple[float, ...]
) -> None:
    assert compare(requested, answered, history, [HELP]) == pytest.approx(scores, abs=5e-7)


def test_the_published_examples_of_requests_for_a_soup_are_reproduced() -> None:
    soup = references(shared("overcooked/reference"))[0]["baked_pumpkin_soup"]
    ((*rat,),) = soup.of(1)
    for requested, answered, history, scores in (
        (rat[:5], rat[:3], [], (0.826276, 0.238328, 0.587947)),
        (rat[5:], rat[5:], rat[:2], (-0.073517, 0, -0.073517)),
        (rat[:5], rat[5:], rat[:5], (-0.232672, -0.406396, 0.173724)),
    ):
        assert compare(requested, answered, history, soup.of(1)) == pytest.approx(scores, abs=5e-7)


def test_the_published_scores_of_histories_are_reproduced() -> None:
    found = references(shared("overcooked/reference"))[0]
    soup = found["baked_pumpkin_soup"].of(0)
    assert tes(soup[0][:6], soup) == pytest.approx(0.7918834547346514, abs=1e-15)
    stew = found["sliced_bell_pepper_and_corn_stew"].of(0)
    assert tes(stew[1][:4], stew) == pytest.approx(0.6554694229112834, abs=1e-15)


@pytest.mark.parametrize(
    ("run", "success", "tes0", "tes1", "initiating", "responding", "codes", "last"),
    [
        ("egg_ok", 1, 1, 1, 1, 1, [0], 15),
        ("egg_invalid_first", 1, 1, 1, 1, 1, [0], 16),
        ("soup", 1, 1, 1, 1, 1, [0, 0], 37),
        ("egg_bad_response", 0, 0.883856, 0.678253, 1, 0.5, [1, 0], None),
        ("egg_ignore", 0, 0, 0, 1, 0, [1], None),
        # The released code prints 0 where no dialogue was opened; 0/0 is undefined here.
        ("noformat", 0, 0, 0, None, None, [], None),
    ],
)
def test_the_published_logs_give_their_values(
    run: str,
    success: float,
    tes0: float,
    tes1: float,
    initiating: float | None,
    responding: float | None,
    codes: list[int],
    last: float | None,
) -> None:
    (path,) = shared(f"overcooked/logs/{run}").rglob("experiment*.json")
    trajectory, reference = loaded(path, shared("overcooked/reference"))
    found = values(trajectory, reference)
    assert found["success_rate"] == success
    assert found["tes chef"] == pytest.approx(tes0, abs=5e-7)
    assert found["tes assistant"] == pytest.approx(tes1, abs=5e-7)
    assert found["progress_completeness"] == pytest.approx((tes0 + tes1) / 2, abs=5e-7)
    assert (found["initiating_capability"], found["responding_capability"]) == (initiating, responding)
    assert found["timesteps"] == last
    assert [c.code for c in metrics.run_collaborations(metrics.run(trajectory, None), reference)] == codes
    assert found["invalid_actions chef"] == {"egg_invalid_first": 1, "noformat": 6}.get(run, 0)


def test_a_run_with_a_repeated_hand_over_gives_what_the_hand_reckons() -> None:
    (path,) = SAMPLES.rglob("*10-05-00*.json")
    trajectory, reference = loaded(path, SAMPLES / "reference")
    found = values(trajectory, reference)
    # The assistant did 3 actions, 2 of its 2; the chef 2 of 5; the second request was repetitive.
    assert found["tes assistant"] == pytest.approx(1.9025 * 2 / (2 + 0.9025 * 3))
    assert found["tes chef"] == pytest.approx(1.9025 * 2 / (5 + 0.9025 * 2))
    assert found["initiating_capability"] == found["responding_capability"] == 0.5
    seen = list(metrics.run_collaborations(metrics.run(trajectory, None), reference))
    assert [c.initiating for c in seen] == pytest.approx([1, 1.9025 * 2 / (2 + 0.9025 * 4) - 1])
    assert dict(metrics.confusion(seen)) == {("=0", True, True): 1, ("=0", False, False): 1}
    # One hand-over is required, and it was asked for rightly once.
    paper = values(trajectory, reference, "paper")
    assert paper["initiating_capability"] == 1


def test_wrong_requests_are_irrelevant_premature_or_repetitive_and_cite_who_asked() -> None:
    trajectory, reference = sample("11-00")
    seen = list(metrics.run_collaborations(metrics.run(trajectory, None), reference))
    found = list(errors(seen, reference))
    assert [f.code for f in found] == ["irrelevant", "premature"]
    assert [trajectory.events[seq].text for f in found for seq in f.cites] == [
        "Bring me an onion, please.",
        "Where are the slices?",
    ]
    assert [c.code for c in seen] == [2, 3]
    (path,) = SAMPLES.rglob("*10-05-00*.json")
    trajectory, reference = loaded(path, SAMPLES / "reference")
    seen = list(metrics.run_collaborations(metrics.run(trajectory, None), reference))
    assert [f.code for f in errors(seen, reference)] == ["repetitive"]


def run_of(*entries: tuple[int, str, str], opener: int = 1, done: int = 0) -> Trajectory:
    """A run of one dialogue at step 1 (speaker, words, plan); the assistant has completed `done` of HELP."""
    spoken = [{"agent": who, "analysis": "", "say": say, "plan": plan} for who, say, plan in entries]
    said: list[list[dict[str, object]]] = [[], []]
    said[opener] = spoken
    calls = [{"call": int(opener == agent), "turn": [], "token": []} for agent in (0, 1)]
    no_error = {"error_num": 0, "error_message": []}
    turn = {
        "timestamp": 1,
        "order_list": ["poached_pear"],
        "map": "",
        "statistical_data": {
            "score": 0,
            "communication": calls,
            "error": [{"format_error": no_error, "validator_error": no_error}] * 2,
        },
        "content": {"observation": [[], []], "content": said},
    }
    completed = [[], [{"timestamp": 0, "action": action} for action in HELP[:done]]]
    log = {
        "total_timestamp": [0, 1],
        "total_order_finished": [],
        "total_score": 0,
        "total_action_list": completed,
        "content": [turn],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "experiment_2026-01-12_10-00-00_poached_pear.json")
        path.write_text(json.dumps(log))
        (trajectory,) = reader.read(path, ReadOptions())
    assert isinstance(trajectory, Trajectory)
    return trajectory


PEAR = references(SAMPLES / "reference")[0]["poached_pear"]
ASKED = "Chef plan: " + ";".join(f"request('{action}')" for action in HELP)
DONE = "Assistant plan: " + ";".join(HELP)
AMISS = "Assistant plan: " + ";".join(WRONG)


@pytest.mark.parametrize(
    ("entries", "opener", "initiating", "responding"),
    [
        # Who asks what to do begins nothing; who states the request does, and the answer comes after it.
        ([(1, "And I?", "Assistant plan: wait(1)"), (0, "A pear.", ASKED), (1, "Yes.", DONE)], 1, 1, 1),
        ([(1, "What should I do?", ""), (0, "A pear.", ASKED), (1, "A plum?", AMISS)], 1, 1, 0),
        ([(0, "A pear.", ASKED), (1, "Yes.", DONE)], 0, 1, 1),
        ([(0, "Hello.", ""), (1, "Hello.", DONE)], 0, 0, 0),
        ([(0, "A pear.", ASKED)], 0, 1, 0),
    ],
)  # fmt: skip
def test_in_the_papers_reading_who_states_a_request_initiates(
    entries: list[tuple[int, str, str]], opener: int, initiating: float, responding: float
) -> None:
    found = values(run_of(*entries, opener=opener), PEAR, "paper")
    assert found["initiating_capability"] == initiating
    assert found["responding_capability"] == responding


def test_as_released_who_speaks_first_initiates_and_only_where_the_chef_opened() -> None:
    entries = [(1, "What should I do?", ""), (0, "A pear.", ASKED), (1, "Yes.", DONE)]
    assert values(run_of(*entries, opener=1), PEAR)["initiating_capability"] is None
    # The assistant is taken to have asked for nothing, and the chef's plan has no step of its own.
    assert values(run_of(*entries, opener=0), PEAR)["initiating_capability"] == 0


def test_of_who_has_nothing_to_do_in_the_reference_no_request_is_judged_and_the_reason_says_so() -> None:
    alone = Reference(order="poached_pear", level=1, trajectories=((tuple(CHEF), ()),))
    for opener, reason in ((0, metrics.UNANSWERABLE), (1, metrics.NO_DIALOGUE)):
        rows = list(metrics.measures(run_of((0, "A pear.", ASKED), opener=opener), alone))
        (asked,) = [row for row in rows if row.metric == "initiating_capability"]
        assert (asked.value, asked.reason) == (None, reason)


def test_both_agents_may_state_requests_in_one_dialogue() -> None:
    back = DONE + ";request(pickup(pear,counter))"
    run = run_of(
        (0, "A pear.", ASKED), (1, "Then take it.", back), (0, "I do.", "Chef plan: pickup(pear,counter)")
    )
    seen = list(metrics.run_collaborations(metrics.run(run, None), PEAR, "paper"))
    assert [(c.initiator, c.initiated, c.responded) for c in seen] == [(0, True, True), (1, True, True)]


def test_a_request_for_two_hand_overs_counts_for_both() -> None:
    leek = references(SAMPLES / "reference")[0]["leek_soup"]
    assert leek.required_collaborations == 2
    for steps, initiating in ((leek.of(1)[0], 1.0), (leek.of(1)[0][:5], 0.5), (leek.of(1)[0][:1], 0.5)):
        asked = "Chef plan: " + ";".join(f"request({action})" for action in steps)
        run = run_of((0, "Everything, please.", asked), opener=0)
        assert values(run, leek, "paper")["initiating_capability"] == initiating


def test_the_same_hand_over_asked_for_twice_is_not_two() -> None:
    leek = references(SAMPLES / "reference")[0]["leek_soup"]
    asked = "Chef plan: " + ";".join(f"request({action})" for action in leek.of(1)[0][:5])
    wrong = "Assistant plan: pickup(plum,ingredient_dispenser)"
    run = run_of((0, "Slices.", asked), (1, "Plums.", wrong), opener=0)
    (first,) = metrics.run_collaborations(metrics.run(run, None), leek, "paper")
    assert (first.asked_hand_overs, first.given_hand_overs) == (frozenset({0}), frozenset())
    both = [first, replace(first, timestep=2)]
    rows = metrics._capabilities(metrics.run(run, None), both, leek, "paper")
    assert [row.value for row in rows] == [0.5, 0]


def test_the_cells_of_the_confusion_and_the_classes_of_errors_are_shares_of_a_runs_collaborations() -> None:
    run = run_of((0, "A pear.", ASKED), (1, "Yes.", DONE), opener=0, done=2)
    rows = {r.scoring: (r.value, r.weight) for r in metrics.measures(run, PEAR, "paper") if r.scoring}
    assert rows == {
        "both right": (0, 1),
        "request right": (0, 1),
        "answer right": (0, 1),
        "neither right": (1, 1),
        "premature": (0, 1),
        "repetitive": (1, 1),
        "irrelevant": (0, 1),
    }
    silent = [r for r in metrics.measures(run_of(), PEAR, "paper") if r.scoring]
    assert {(r.value, r.weight) for r in silent} == {(None, 0)}
    assert {r.reason for r in silent} == {"no collaboration was begun", "no request names an action"}


def test_a_success_counts_only_within_its_time() -> None:
    trajectory, reference = sample("10-00")
    assert values(trajectory, reference)["success_rate"] == 1
    late = values(trajectory, reference, gamma=0.99)
    assert metrics.time_limit(reference, 0.99) == 15
    assert late["success_rate"] == 0 and late["timesteps"] is None
    # The delivery at step 16 and what was cooked at step 14 and before: 4 of 5 actions remain.
    assert late["tes chef"] == pytest.approx(1.9025 * 4 / (5 + 0.9025 * 4))
    assert values(trajectory, reference, gamma=1)["success_rate"] == 1
    assert metrics.time_limit(None) is None
    assert metrics.time_limit(None, 2, optimal=7) == 14


def test_without_a_reference_scores_are_undefined_and_say_what_is_missing() -> None:
    trajectory, _ = sample("10-00")
    rows = {row.metric: row for row in metrics.measures(trajectory, None)}
    assert rows["success_rate"].value == 1
    assert rows["tes"].value is None
    assert rows["tes"].reason == "no reference action trajectories for 'poached_pear' (--reference DIR)"


def test_refused_plans_are_counted_by_agent_and_class() -> None:
    trajectory, _ = sample("11-00")
    assert dict(metrics.invalid_actions([trajectory])) == {
        ("assistant", "hand"): 1,
        ("assistant", "argument"): 1,
        ("chef", "hand"): 1,
    }


def changed_log(folder: Path, edit: Callable[[dict[str, Any]], None]) -> Path:
    """The log of the first sample run, changed."""
    (path,) = SAMPLES.rglob("experiment_2026-01-12_10-00-00_*.json")
    log = json.loads(path.read_text())
    edit(log)
    other = folder / path.name
    other.write_text(json.dumps(log))
    return other


def changed(folder: Path, edit: Callable[[dict[str, Any]], None]) -> tuple[Trajectory, Reference]:
    """The first sample run, its log changed, with its reference."""
    return loaded(changed_log(folder, edit), SAMPLES / "reference")


def test_a_run_that_goes_on_after_its_order_ended_with_it(tmp_path: Path) -> None:
    def go_on(log: dict[str, Any]) -> None:
        last = log["content"][-1]
        assert last["statistical_data"]["score"] == 20
        for step in range(last["timestamp"] + 1, 60):
            again = json.loads(json.dumps(last)) | {"timestamp": step}
            again["statistical_data"]["score"] = 20 * (step == 50)
            again["statistical_data"]["communication"][0]["call"] = 1
            log["content"].append(again)
            log["total_timestamp"].append(step)
            log["total_action_list"][0].append({"timestamp": step, "action": "cook(pot0)"})
        log["total_order_finished"] *= 2

    trajectory, reference = sample("10-00")
    longer, _ = changed(tmp_path, go_on)
    assert longer.id == trajectory.id
    for definition in ("released", "paper"):
        assert values(longer, reference, definition) == values(trajectory, reference, definition)
    assert values(longer, None)["success_rate"] == 1
    assert values(longer, reference, gamma=0.99)["success_rate"] == 0


@pytest.mark.parametrize("kept", [False, True])
def test_without_a_timestep_that_can_be_read_refused_actions_are_unknown(tmp_path: Path, kept: bool) -> None:
    """As in logs without `content`, which is most of a file, or of a version that counts no errors."""

    def strip(log: dict[str, Any]) -> None:
        for turn in log["content"]:
            del turn["statistical_data"]["error"]
        log["content"] = log["content"] if kept else []

    path = changed_log(tmp_path, strip)
    other = next(one for one in reader.read(path, ReadOptions()) if isinstance(one, Trajectory))
    trajectory, reference = sample("10-00")
    before, after = values(trajectory, reference), values(other, reference)
    assert after == dict.fromkeys(before) | {
        name: before[name] for name in before if name.startswith(("success", "timesteps", "tes", "progress"))
    }
    rows = list(metrics.measures(other, reference))
    assert {row.reason for row in rows if row.metric == "invalid_actions"} == {reader.NO_TURNS}


def test_without_plans_collaborations_are_unknown_and_other_words_are_kept(tmp_path: Path) -> None:
    def reword(log: dict[str, Any]) -> None:
        for turn in log["content"]:
            for entry in (entry for side in turn["content"]["content"] for entry in side):
                entry["think"], entry["action"] = entry.pop("analysis"), entry.pop("plan")

    def drop(log: dict[str, Any]) -> None:
        for turn in log["content"]:
            turn["content"]["content"] = [[], []]

    trajectory, reference = sample("10-00")
    for edit in (reword, drop):
        other, _ = changed(tmp_path, edit)
        for definition in ("released", "paper"):
            rows = list(metrics.measures(other, reference, definition))
            empty = {row.metric: row.reason for row in rows if row.value is None}
            assert empty == dict.fromkeys(
                ("ites", "initiating_capability", "responding_capability"), metrics.NO_PLANS
            )
            assert values(other, reference)["tes chef"] == values(trajectory, reference)["tes chef"]
    other, _ = changed(tmp_path, reword)
    before, after = (next(e.action for e in t.events if e.kind == "message") for t in (trajectory, other))
    assert before and after and after.arguments["action"] == before.arguments["plan"]
    assert after.arguments["think"] == before.arguments["analysis"] and after.arguments["plan"] is None
