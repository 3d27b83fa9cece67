"""TES of Collab-Overcooked (Eq. 1): how much of a reference action trajectory a history has done.

D walks the reference in order and stops at its first action that the history lacks, so that nothing after a
wrong step counts: the modified longest common subsequence of the paper's appendix B.1, and what is released.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import takewhile

from .references import bare

History = Sequence[str]
BETA = 0.95
_SHARED_ACTIONS = r"place_obj_on_counter\(\)|pickup\(\w+,counter\)"
ACTION_SPACE = (
    re.compile(
        _SHARED_ACTIONS + r"|check_recipe\(\)|deliver_soup\(\)|cook\(pot0\)|bake\(oven0\)"
        r"|fill_dish_with_food\((pot0|oven0|chopping_board0|blender0)?\)"
        r"|put_obj_in_utensil\((pot0|oven0)\)|pickup\(\w+,(pot0|oven0)\)"
    ),
    re.compile(
        _SHARED_ACTIONS
        + r"|cut\(chopping_board0\)|stir\(blender0\)|put_obj_in_utensil\((chopping_board0|blender0)\)"
        r"|pickup\(\w+,(ingredient_dispenser|dish_dispenser|chopping_board0|blender0)\)"
    ),
)
"""What the chef and the assistant can do at all. The released list also limits what may be picked up."""


def can(agent: int, action: str) -> bool:
    """Whether an action is in the action space of that agent."""
    return ACTION_SPACE[agent].fullmatch(action) is not None


def known(actions: Iterable[str]) -> list[str]:
    """The actions without spaces, those that neither agent can do left out; `[NONE]` where none is left."""
    result = [action for action in map(_plain_action, actions) if action is not None]
    return result or ["[NONE]"]


@lru_cache(maxsize=4096)
def _plain_action(action: str) -> str | None:
    """One of `known`: a run has few actions, which each look at its history meets again."""
    action = bare(action)
    return action if can(0, action) or can(1, action) else None


def tes(actions: Iterable[str], references: Iterable[History], beta: float = BETA) -> float | None:
    """Trajectory efficiency score: (1 + β²)·D / (|g| + β²·|h|), the best over the references g.

    None where there is no reference. 1 is a history that is a reference, 0 one that has nothing of it.
    """
    history, weight = known(actions), beta**2
    scores = [
        (1 + weight) * walked(history, reference) / (len(reference) + weight * len(history))
        for reference in references
        if reference
    ]
    return max(scores, default=None)


def best(history: Iterable[str], references: Sequence[History]) -> History | None:
    """The reference with the highest score, the first of equals; None where there is none."""
    actions = list(history)
    return max((g for g in references if g), key=lambda g: tes(actions, [g]) or 0.0, default=None)


def walked(history: History, reference: History) -> int:
    """D: the longest prefix of the reference that the history has in order."""
    rest = iter(history)  # of which each look takes what stands before the action, and it
    return sum(1 for _ in takewhile(lambda action: action in rest, reference))
