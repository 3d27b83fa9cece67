"""What policies that need no model would earn, on questions of which every choice was played out (a tree).

Source: the baselines of ReHAC, table 5. Random is the exact expectation over the tree, where the paper
averages three runs. The oracle knows how each path ends and takes the best: no policy can earn more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ....schemas import Trajectory
from ....schemas.trajectory import recorded
from .metrics import PENALTY, steps


@dataclass(frozen=True, slots=True)
class Path:
    """One way through a question: who took which step, and the task reward in the end."""

    actors: tuple[str, ...]
    task_reward: float

    @property
    def human(self) -> int:
        """How many steps the human took."""
        return self.actors.count("human")


Tree = Sequence[Path]


@dataclass(frozen=True, slots=True)
class Policy:
    """What a policy earns over `questions`; the human intervention rate is pooled over steps."""

    name: str
    questions: int
    human_intervention_rate: float
    task_reward: float
    reward: float


def trees(trajectories: Iterable[Trajectory]) -> tuple[dict[str, Tree], int]:
    """Question -> all its paths, where every choice was played out; how many questions are left out."""
    result: dict[str, list[Path]] = defaultdict(list)
    for trajectory in trajectories:
        earned = recorded(trajectory, "task_reward").value
        actors = tuple(event.actor for event in steps(trajectory))
        if earned is not None and trajectory.instance is not None:
            result[trajectory.instance].append(Path(actors, earned))
    whole: dict[str, Tree] = {question: paths for question, paths in result.items() if _is_complete(paths)}
    return whole, len(result) - len(whole)


def _is_complete(paths: Sequence[Path]) -> bool:
    """Whether fair coin tosses always lead to exactly one of the paths (Kraft's equality)."""
    ways = {path.actors for path in paths}
    prefixes = {way[:n] for way in ways for n in range(len(way))}
    return len(ways) == len(paths) and not ways & prefixes and sum(2.0 ** -len(way) for way in ways) == 1


def policies(whole: Mapping[str, Tree], penalty: float = PENALTY) -> list[Policy]:
    """Agent-only, human-only, random and the oracle on these trees; none where there is no tree."""
    chosen: dict[str, Callable[[Tree], list[tuple[float, Path]]]] = {
        "Agent-only": lambda tree: _only(tree, "agent"),
        "Human-only": lambda tree: _only(tree, "human"),
        "Random": lambda tree: [(2.0 ** -len(path.actors), path) for path in tree],
        "Oracle": lambda tree: [(1.0, max(tree, key=lambda path: _worth(path, penalty)))],
    }
    return [
        _policy(name, [choose(t) for t in whole.values()], penalty)
        for name, choose in chosen.items()
        if whole
    ]


def _only(tree: Tree, actor: str) -> list[tuple[float, Path]]:
    return [(1.0, path) for path in tree if set(path.actors) == {actor}]


def _worth(path: Path, penalty: float) -> tuple[float, int, int]:
    """The reward; among equals fewer human steps, then fewer steps."""
    return path.task_reward - penalty * path.human, -path.human, -len(path.actors)


def _policy(name: str, taken: Sequence[Sequence[tuple[float, Path]]], penalty: float) -> Policy:
    chances = [pair for question in taken for pair in question]
    human = sum(chance * path.human for chance, path in chances)
    length = sum(chance * len(path.actors) for chance, path in chances)
    earned = sum(chance * path.task_reward for chance, path in chances) / len(taken)
    return Policy(name, len(taken), human / length, earned, earned - penalty * human / len(taken))
