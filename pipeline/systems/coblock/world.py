"""CoBlock's world: coloured blocks on a grid (y is height), built by replaying places and breaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ....schemas import JsonValue
from ....schemas.trajectory import number_in
from .. import base

Position = tuple[float, float, float]
MOST = 2**53
"""No number of a game comes near; NaN is none."""
OCCUPIED = "a block is there already"
NOTHING_BROKEN = "no block of that uid is there"


@dataclass(frozen=True, slots=True)
class Block:
    """A block; `uid` is what a break names."""

    colour: str
    position: Position
    uid: str = ""


@dataclass
class World:
    """The blocks that stand, in the order of placing."""

    blocks: list[Block] = field(default_factory=list)

    def place(self, block: Block) -> str | None:
        """Put a block; what stands in its way, if anything. Gravity and inventories are not enforced."""
        if self.at(block.position) is not None:
            return OCCUPIED
        self.blocks.append(block)
        return None

    def break_(self, uid: str) -> str | None:
        """Remove the block of that uid. An empty uid names none: the game's parser loses positions."""
        left = [block for block in self.blocks if not uid or block.uid != uid]
        removed = len(left) < len(self.blocks)
        self.blocks = left
        return None if removed else NOTHING_BROKEN

    def at(self, position: Position) -> Block | None:
        """The block at a position."""
        return next((block for block in self.blocks if block.position == position), None)

    def supported(self, position: Position) -> bool:
        """Whether a block there would stand on the ground or touch another block."""
        return position[1] == 0 or any(_touch(position, block.position) for block in self.blocks)

    def cells(self) -> set[tuple[str, Position]]:
        """Colour and position of every block."""
        return {(block.colour, block.position) for block in self.blocks}

    def complete(self, goal: Iterable[Block]) -> bool:
        """Every goal block stands, in its colour and place; extra blocks are allowed, as in the game."""
        return not self.missing(goal)

    def missing(self, goal: Iterable[Block]) -> list[Block]:
        """The goal blocks that do not stand."""
        standing = self.cells()
        return [block for block in goal if (block.colour, block.position) not in standing]

    def extra(self, goal: Iterable[Block]) -> list[Block]:
        """The blocks that stand and are in no place of the goal."""
        wanted = {(block.colour, block.position) for block in goal}
        return [block for block in self.blocks if (block.colour, block.position) not in wanted]

    def progress(self, goal: Iterable[Block]) -> float | None:
        """Matching blocks over the larger of goal and standing; None where both are empty."""
        wanted = list(goal)
        most = max(len(wanted), len(self.blocks))
        return (len(wanted) - len(self.missing(wanted))) / most if most else None


def block(value: JsonValue, where: str, key: str = "pos") -> Block:
    """A logged block: `pos` in structures, `blockPos` in place actions."""
    there = base.expect(value, dict, where)
    uid = there.get("uid")
    colour = base.field(there, "blockType", str, where)
    return Block(colour, position(there, key, where), str(uid) if isinstance(uid, (str, int)) else "")


def position(there: Mapping[str, JsonValue], key: str, where: str) -> Position:
    """(x, y, z) of a logged block."""
    place = base.field(there, key, dict, where)
    x, y, z = (_number(place, axis, f"{where}.{key}") for axis in "xyz")
    return x, y, z


def blocks(values: JsonValue, where: str) -> list[Block]:
    """A logged list of blocks; none where there is no list."""
    return [block(v, f"{where}[{n}]") for n, v in enumerate(values)] if isinstance(values, list) else []


def counts(inventory: JsonValue) -> Counter[str]:
    """Colour -> how many an agent had at first."""
    result: Counter[str] = Counter()
    for item in inventory if isinstance(inventory, list) else []:
        if isinstance(item, dict) and isinstance(count := _read(item.get("count")), (int, float)):
            result[str(item.get("blockType"))] += int(count) if abs(count) < MOST else 0
    return result


def _number(place: Mapping[str, JsonValue], axis: str, where: str) -> float:
    given = place.get(axis)
    value = _read(given)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < MOST:
        raise ValueError(f"{where}.{axis}: expected a number, got {given!r:.40}")
    return value


def _read(value: JsonValue) -> JsonValue:
    """A number that was written as a text; anything else as it is."""
    return number_in(value) if isinstance(value, str) else value


def _touch(one: Position, other: Position) -> bool:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) == 1
