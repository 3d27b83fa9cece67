"""Reference action trajectories (RATs) and recipes of Collab-Overcooked, as its prompts folder has them.

`<level>_<order>_ref.txt` is JSON: `{"reference_1": {"agent_0": [action, ...], "agent_1": [...]}, ...}`;
`<level>_<order>.txt` is the recipe's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ....schemas import JsonValue, Model, Quarantined
from ..base import expect, field, json_file, only_object
from .reader import recognises as is_log

_NAME = re.compile(r"(\d+)_(.+?)(_ref)?\.txt")
_RECIPE = b"NAME:"
"""Begins a recipe."""


class Reference(Model):
    """What is right for one order: one or more pairs of action sequences (chef's, assistant's)."""

    order: str
    level: int
    trajectories: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    recipe: str | None = None

    def of(self, agent: int) -> tuple[tuple[str, ...], ...]:
        """The reference sequences of one agent, 0 the chef, 1 the assistant."""
        return tuple(pair[agent] for pair in self.trajectories)

    @property
    def required_collaborations(self) -> int:
        """How often something must be handed over a counter: put there by one, picked up by the other.

        The least over the reference trajectories.
        """
        return min((_handovers(*pair) + _handovers(*pair[::-1]) for pair in self.trajectories), default=0)


def references(folder: Path) -> tuple[dict[str, Reference], list[Quarantined]]:
    """Order -> reference of all files below `folder`, and the files that were not understood; logs of runs
    may lie beside them.
    """
    by_name: dict[str, Reference] = {}
    bad: list[Quarantined] = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and not is_log(p)):
        reference = _read(path)
        if isinstance(reference, Quarantined):
            bad.append(reference)
        else:
            by_name[reference.order] = _union(by_name.get(reference.order), reference)
    return by_name, bad


def is_reference(path: Path) -> bool:
    """Whether a file is a reference or a recipe; one that cannot be read is neither."""
    name = _NAME.fullmatch(path.name)
    if name is None:
        return False
    try:
        if name[3]:
            return isinstance(_read(path), Reference)
        with path.open("rb") as recipe:
            return recipe.read(len(_RECIPE)) == _RECIPE
    except OSError:
        return False


def bare(action: str) -> str:
    """An action without spaces, which references and logs set differently."""
    return "".join(action.split())


def _read(path: Path) -> Reference | Quarantined:
    name = _NAME.fullmatch(path.name)
    if name is None:
        reason = "expected <level>_<order>_ref.txt or <level>_<order>.txt"
        return Quarantined(source=str(path), reason=reason)
    level, order = int(name[1]), name[2]
    try:
        if name[3]:
            return Reference(order=order, level=level, trajectories=tuple(_pairs(path)))
        return Reference(order=order, level=level, recipe=path.read_text(encoding="utf-8"))
    except ValueError as error:
        return Quarantined(source=str(path), reason=str(error))


def _pairs(path: Path) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    value = only_object(json_file(path), str(path), None)
    if isinstance(value, Quarantined):
        raise ValueError(value.reason)
    for key, reference in value.items():
        pair = expect(reference, dict, key)
        yield _sequence(pair, "agent_0", key), _sequence(pair, "agent_1", key)


def _sequence(pair: dict[str, JsonValue], agent: str, where: str) -> tuple[str, ...]:
    actions = field(pair, agent, list, where)
    return tuple(bare(expect(action, str, f"{where}.{agent}[{n}]")) for n, action in enumerate(actions))


def _union(one: Reference | None, other: Reference) -> Reference:
    if one is None:
        return other
    trajectories = one.trajectories or other.trajectories
    return one.model_copy(update={"trajectories": trajectories, "recipe": one.recipe or other.recipe})


def _handovers(giver: tuple[str, ...], taker: tuple[str, ...]) -> int:
    """How often `taker` picks up from a counter, as far as `giver` put things there."""
    placements = sum(action.startswith("place_obj_on_counter") for action in giver)
    pickups = sum(action.startswith("pickup(") and action.endswith(",counter)") for action in taker)
    return min(placements, pickups)
