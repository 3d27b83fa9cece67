"""CoBlock's three types of tasks (paper, section 2): how far either agent depends on the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from .world import Block, World, beside

TaskType = Literal["independent", "skill-dependent", "goal-dependent"]


def task_type(
    goals: Mapping[str, Sequence[Block]], inventories: Mapping[str, Counter[str]], initial: Sequence[Block]
) -> TaskType | None:
    """The type of a task, which no export stores; None where it says not all goals and inventories.

    Goal-dependent: somebody's goal would hang in the air without the partner's blocks. Skill-dependent:
    somebody lacks blocks of a colour of their own goal. Independent: neither.
    """
    if len(goals) < 2 or not all(goals.values()) or not all(inventories.get(name) for name in goals):
        return None
    if any(_hanging(goal, initial) for goal in goals.values()):
        return "goal-dependent"
    lacking = (Counter(b.colour for b in goal) - inventories[name] for name, goal in goals.items())
    return "skill-dependent" if any(lacking) else "independent"


def _hanging(goal: Sequence[Block], initial: Sequence[Block]) -> list[Block]:
    """The blocks of a goal that cannot be placed with nothing but the goal's own and the first blocks."""
    world, positions = World(initial), {block.position for block in goal}
    reachable = set(filter(world.supported, positions))
    newest = list(reachable)
    while newest:
        touching = positions.intersection(beside(newest.pop())) - reachable
        reachable |= touching
        newest += touching
    return [block for block in goal if block.position not in reachable]
