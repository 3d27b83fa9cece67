"""CoBlock's metrics against the reference values, and against samples reckoned by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.coblock import SYSTEM, metrics, reader
from coaudit.pipeline.systems.coblock.dependence import task_type
from coaudit.pipeline.systems.coblock.faults import neglected_own_goal, stopped_early
from coaudit.pipeline.systems.coblock.workload import balance, literal_split, split
from coaudit.pipeline.systems.coblock.world import OCCUPIED, Block, World
from coaudit.schemas import Trajectory
from tests.shared import ROOT, shared


def game(record: str) -> Trajectory:
    """One of the sample games."""
    for path in (ROOT / "data/coblock").glob("*.json"):
        for found in reader.read(path, ReadOptions()):
            if isinstance(found, Trajectory) and found.native_id == record:
                return found
    raise KeyError(record)


def values(trajectory: Trajectory) -> dict[str, float | None]:
    found = metrics.measures(trajectory)
    return {f"{row.metric} {row.participant or row.scoring or ''}".strip(): row.value for row in found}


@pytest.mark.parametrize(
    ("a", "b", "target", "shares", "optimal", "done", "gamma"),
    [
        ({"yellow": 5}, {"red": 5}, {"yellow": 3, "red": 3}, (3, 3, 0), (3, 3), (3, 3), 0.5),
        ({"yellow": 5}, {"red": 5}, {"yellow": 6, "red": 2}, (6, 2, 0), (6, 2), (6, 2), 0.5),
        ({"yellow": 6}, {"red": 5}, {"yellow": 6, "red": 2}, (6, 2, 0), (6, 2), (4, 4), 0.3),
        ({"red": 9}, {"red": 9}, {"red": 7}, (0, 0, 7), (4, 3), (4, 3), 0.5),
        ({"red": 9}, {"red": 9}, {"red": 6}, (0, 0, 6), (3, 3), (4, 2), 0.4),
        ({"yellow": 5}, {"red": 5}, {"yellow": 3, "red": 3}, (3, 3, 0), (3, 3), (6, 0), 0),
        ({"purple": 3}, {"red": 5}, {"red": 4}, (0, 4, 0), (0, 4), (0, 4), None),
    ],
)
def test_the_published_examples_of_workload_balance_are_reproduced(
    a: dict[str, int],
    b: dict[str, int],
    target: dict[str, int],
    shares: tuple[int, int, int],
    optimal: tuple[int, int],
    done: tuple[int, int],
    gamma: float | None,
) -> None:
    found = split(Counter(a), Counter(b), Counter(target).elements())
    assert (found.only_a, found.only_b, found.both) == shares
    assert found.optimal == optimal
    value, reason = balance(done, found.optimal)
    assert value == (None if gamma is None else pytest.approx(gamma))
    assert (reason is None) == (gamma is not None)


def test_the_literal_reading_shares_the_intersection_of_the_inventories() -> None:
    # {red 3, blue 1} and {red 1, green 2} share one red; 3 and 2 are left, the shared one goes to the second.
    found = literal_split(Counter(red=3, blue=1), Counter(red=1, green=2))
    assert (found.only_a, found.only_b, found.both) == (3, 2, 1)
    assert found.optimal == (3, 3)


def test_nobody_acting_is_undefined_and_not_unbalanced() -> None:
    assert balance((0, 0), (3, 3)) == (None, "neither agent did anything that counts")


def test_a_split_that_leaves_one_without_a_task_is_undefined_whoever_is_named_first() -> None:
    assert balance((5, 2), (5, 0)) == (None, "the optimal split gives the second agent nothing to do")
    assert balance((2, 5), (0, 5)) == (None, "the optimal split gives the first agent nothing to do")
    # All that there was to do was done: nobody may say that neither did anything.
    assert balance((5, 0), (5, 0))[1] == "the optimal split gives the second agent nothing to do"


def test_a_block_stands_on_the_ground_or_touches_another() -> None:
    world = World([Block("red", (0, 0, 0))])
    assert world.is_supported((5, 0, 5)) and world.is_supported((0, 1, 0)) and world.is_supported((1, 0, 0))
    assert not world.is_supported((1, 1, 0)) and not world.is_supported((0, 2, 0))


def test_progress_is_undefined_where_there_is_nothing_to_build_and_nothing_stands() -> None:
    assert World().progress([]) is None
    assert World([Block("red", (0, 0, 0))]).progress([]) == 0


def test_a_finished_game_with_an_extra_block_gives_what_the_hand_reckons() -> None:
    found = values(game("22"))
    # Four blue blocks either may place and one red of the machine's: 3 and 2 are optimal, 4 and 4 were done.
    assert found["workload_balance"] == pytest.approx((8 / 3 * 4) / ((8 / 3) ** 2 + 16))
    assert (found["success_rate"], found["extra_blocks"]) == (1, 1)
    assert found["progress"] == pytest.approx(5 / 6)
    assert (found["timesteps"], found["timesteps place_break"]) == (13, 8)
    assert (found["illegal_placements Agent 0"], found["illegal_placements Agent 1"]) == (0, 1)


def test_two_blocks_may_stand_in_one_place_as_in_the_game_of_two_machines() -> None:
    goal = [Block("yellow", (0, 0, 0)), Block("red", (1, 0, 0))]
    world = World()
    assert world.place(Block("red", (0, 0, 0), "a")) is None
    assert world.place(Block("yellow", (0, 0, 0), "b")) == OCCUPIED
    assert world.place(Block("red", (1, 0, 0), "c")) is None
    # The game stops here: every block of its goal stands. Two of the three that stand are of it.
    assert world.is_complete(goal) and world.progress(goal) == pytest.approx(2 / 3)
    assert [block.uid for block in world.extra_blocks(goal)] == ["a"]
    assert world.break_("b") is None and not world.is_complete(goal)


def test_progress_follows_the_world_action_by_action() -> None:
    assert metrics.progress(game("22")) == pytest.approx(
        [0, 0, 0, 0.2, 0.2, 0.4, 0.4, 0.4, 0.4, 0.6, 0.8, 1, 5 / 6, 5 / 6]
    )


def test_illegal_placements_are_named_by_their_rule_and_carried_out_all_the_same() -> None:
    trajectory = game("24")
    assert [(f.code, f.cites) for f in metrics.illegal_placements(trajectory)] == [
        ("floating", (3,)),
        ("inventory", (8,)),
        ("occupied", (11,)),
    ]
    assert [f.cites for f in metrics.breaks_without_effect(trajectory)] == [(5,)]
    found = values(trajectory)
    assert (found["success_rate"], found["illegal_placements Agent 1"]) == (1, 2)
    assert found["breaks_without_effect Agent 1"] == 1
    # Three blocks each are optimal; 4 and 5 places and breaks were done.
    assert found["workload_balance"] == pytest.approx(20 / 41)


def test_who_leaves_while_there_is_work_for_them_has_stopped_early() -> None:
    (finding,) = stopped_early(game("23"))
    assert finding.cites == (3,)
    assert finding.why == "Agent 1 stopped with 4 blocks left that they could place"
    assert [f.cites for f in stopped_early(game("25"))] == [(8, 10, 12), (3, 5, 7, 9, 11)]
    assert list(stopped_early(game("22"))) == []


def test_who_builds_for_the_partner_and_not_for_themselves_neglects_their_goal() -> None:
    (finding,) = neglected_own_goal(game("25"))
    assert finding.cites == (2, 4, 6)
    assert finding.why == "Agent 0 placed 3 blocks for the partner and 1 of 3 own"
    assert [list(neglected_own_goal(game(n))) for n in ("22", "23", "24")] == [[], [], []]


def test_both_faults_of_a_game_are_found_for_the_codebook_and_none_where_the_goal_is_not_known() -> None:
    find = SYSTEM.findings["team_faults"]
    codes = [finding.code for finding in find(game("25"), {}) or ()]
    assert codes == ["stopped_early", "stopped_early", "neglected_own_goal"]
    start = game("25").events[0].model_copy(update={"states": {}})
    unknown = game("25").model_copy(update={"events": (start, *game("25").events[1:])})
    assert find(unknown, {}) is None


def test_a_structure_is_exactly_partial_where_nothing_stands_that_the_target_has_not() -> None:
    found = values(game("22"))
    assert (found["extra_blocks"], found["partial_structure"]) == (1, 0)
    # Unfinished, but all that stands is right.
    found = values(game("23"))
    assert (found["success_rate"], found["extra_blocks"], found["partial_structure"]) == (0, 0, 1)


RED, BLUE = Counter(red=4), Counter(blue=4)


@pytest.mark.parametrize(
    ("second_goal", "second_holds", "initial", "kind"),
    [
        ([("blue", (3, 0, 0)), ("blue", (3, 1, 0))], BLUE, [], "independent"),
        ([("blue", (3, 0, 0)), ("blue", (3, 1, 0))], RED, [], "skill-dependent"),
        ([("blue", (3, y, 0)) for y in range(5)], BLUE, [], "skill-dependent"),
        ([("blue", (0, 2, 0))], BLUE, [], "goal-dependent"),
        ([("blue", (0, 2, 0))], RED, [], "goal-dependent"),
        ([("blue", (9, 1, 0))], BLUE, [Block("red", (9, 0, 0))], "independent"),
        # Listed from the top down: the order of the blocks says nothing.
        ([("blue", (3, 1, 0)), ("blue", (3, 0, 0))], BLUE, [], "independent"),
        ([], BLUE, [], None),
        ([("blue", (3, 0, 0))], Counter(), [], None),
    ],
)
def test_the_type_of_a_task_follows_from_goals_inventories_and_gravity(
    second_goal: list[tuple[str, tuple[int, int, int]]],
    second_holds: Counter[str],
    initial: list[Block],
    kind: str | None,
) -> None:
    first = [Block("red", (0, 0, 0)), Block("red", (0, 1, 0))]
    goals = {"a": first, "b": [Block(colour, place) for colour, place in second_goal]}
    assert task_type(goals, {"a": RED, "b": second_holds}, initial) == kind


def test_the_type_of_a_task_is_a_tag() -> None:
    # The machine's red block rests between the pillars of the other.
    assert game("22").tags["task_type"] == "goal-dependent"
    assert game("24").tags["task_type"] == "independent"


def test_a_copy_of_a_record_is_missing_everywhere_and_says_of_which() -> None:
    rows = list(metrics.measures(game("21")))
    assert {(row.value, row.reason) for row in rows} == {(None, "a shorter copy of record 22")}


def test_both_readings_of_the_split_are_there() -> None:
    rows = [row for row in metrics.measures(game("22")) if row.metric == "workload_balance"]
    # Inventories: blue 4 and red 2 with blue 1; one blue is shared, 3 and 2 are left: 3 and 3 are optimal.
    assert [(row.value, row.scoring) for row in rows] == [(pytest.approx(6 / 13), None), (0.5, "literal")]


def test_the_published_game_gives_its_values() -> None:
    for name in ("dumpdata_synthetic", "api_record_detail_synthetic"):
        (trajectory,) = reader.read(shared(f"coblock/{name}.json"), ReadOptions())
        assert isinstance(trajectory, Trajectory)
        assert metrics.progress(trajectory) == pytest.approx([0, 0, 0, 0.2, 0.4, 0.6, 0.6, 0.6, 0.8, 1, 1])
        found = values(trajectory)
        assert (found["timesteps"], found["timesteps place_break"]) == (10, 7)
        assert (found["success_rate"], found["extra_blocks"]) == (1, 0)
