"""InterCode's task reward, intersection over union of the rows of an answer and of the gold answer.

The logs hold no gold answers: the last observation of a run that earned the whole reward is taken for its
question's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ....schemas import Trajectory
from ....schemas.trajectory import recorded_outcome
from ..base import python_literal
from .metrics import steps
from .tree import MAX_LITERAL

Rows = Counter[str]


def iou(answer: Rows, gold: Rows) -> float:
    """Rows in both over rows in either, each as often as it stands there; 1 where both are empty."""
    either = (answer | gold).total()
    return (answer & gold).total() / either if either else 1.0


def answer_rows(trajectory: Trajectory) -> Rows | None:
    """The rows in the last observation; None where that is no list of rows."""
    observation = _last_observation(trajectory)
    try:
        rows = python_literal(observation) if len(observation) <= MAX_LITERAL else None
    except ValueError:
        return None
    return Counter(map(repr, rows)) if isinstance(rows, list) else None


def _last_observation(trajectory: Trajectory) -> str:
    events = steps(trajectory)
    state = trajectory.states.get(events[-1].states.get("public", "")) if events else None
    return str(state.get("observation") or "") if isinstance(state, dict) else ""


def gold_rows(trajectories: Iterable[Trajectory]) -> dict[str, Rows]:
    """Question -> the rows of a run that earned the whole reward."""
    by_name: dict[str, Rows] = {}
    for trajectory in trajectories:
        rows = answer_rows(trajectory) if recorded_outcome(trajectory, "task_reward").value == 1 else None
        if rows is not None and trajectory.instance is not None:
            by_name.setdefault(trajectory.instance, rows)
    return by_name


def overlap(trajectory: Trajectory, gold: Mapping[str, Rows]) -> tuple[float | None, str | None]:
    """IoU of a run's last answer, or None with the reason; 0 where the statement was an error."""
    if recorded_outcome(trajectory, "task_reward").value == 1:
        return 1.0, None
    if _last_observation(trajectory).startswith("Error"):
        return 0.0, None
    rows = answer_rows(trajectory)
    if rows is None:
        return None, "its last observation is no list of rows"
    right = gold.get(trajectory.instance or "")
    if right is None:
        return None, "no run solved its question, whose gold answer the logs do not hold"
    return iou(rows, right), None
