"""CoBlock's world: coloured blocks on a grid (y is height), built by replaying places and breaks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from ....schemas import JsonValue
from ....schemas.trajectory import number_in
from .. import base

Position = tuple[float, float, float]
Cell = tuple[str, Position]
"""A colour and where it stands."""
MOST = 2**53
"""No coordinate or count of a game comes near; NaN is not below it."""
OCCUPIED = "a block is there already"
NOTHING_BROKEN = "no block of that uid is there"


@dataclass(frozen=True, slots=True)
class Block:
    """A block; `uid` is what a break names."""

    colour: str
    position: Position
    uid: str = ""

    @property
    def cell(self) -> Cell:
        """What a goal asks for."""
        return self.colour, self.position


class World:
    """The blocks that stand, in the order of placing."""

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self._numbers = count()
        self._blocks: dict[int, Block] = {}
        """By numbers of their own: logs may put two at one position, or give two one uid."""
        self._uids: dict[str, list[int]] = defaultdict(list)
        self._positions = Counter[Position]()
        self._cells = Counter[Cell]()
        for one in blocks:
            self._put(one)

    def place(self, block: Block) -> str | None:
        """Put a block; returns what is in its way, if anything. Nothing is enforced: what two machines place
        enters the game unchecked, where both blocks stand then."""
        obstacle = OCCUPIED if self.is_occupied(block.position) else None
        self._put(block)
        return obstacle

    def _put(self, block: Block) -> None:
        number = next(self._numbers)
        self._blocks[number] = block
        self._uids[block.uid].append(number)
        self._positions[block.position] += 1
        self._cells[block.cell] += 1

    def break_(self, uid: str) -> str | None:
        """Remove the blocks of that uid; returns why nothing was removed. An empty uid names none: the game's
        parser loses positions."""
        numbers = self._uids.pop(uid, ()) if uid else ()
        for number in numbers:
            block = self._blocks.pop(number)
            self._positions[block.position] -= 1
            self._cells[block.cell] -= 1
        return None if numbers else NOTHING_BROKEN

    def is_occupied(self, position: Position) -> bool:
        """Whether a block is at a position."""
        return self._positions[position] > 0

    def is_supported(self, position: Position) -> bool:
        """Whether a block there would stand on the ground or touch another block."""
        return position[1] == 0 or any(map(self.is_occupied, neighbours(position)))

    def is_complete(self, goal: Iterable[Block]) -> bool:
        """Every goal block stands, in its colour and place; extra blocks are allowed, as in the game."""
        return not self.missing_blocks(goal)

    def missing_blocks(self, goal: Iterable[Block]) -> list[Block]:
        """The goal blocks that do not stand."""
        return [block for block in goal if not self._cells[block.cell]]

    def extra_blocks(self, goal: Iterable[Block]) -> list[Block]:
        """The blocks that stand and are in no place of the goal."""
        cells = {block.cell for block in goal}
        return [block for block in self._blocks.values() if block.cell not in cells]

    def progress(self, goal: Iterable[Block]) -> float | None:
        """Matching blocks over the larger of goal and standing, as the game reckons it; None where both are
        empty."""
        goal_blocks = list(goal)
        most = max(len(goal_blocks), len(self._blocks))
        return (len(self._blocks) - len(self.extra_blocks(goal_blocks))) / most if most else None


def neighbours(position: Position) -> Iterator[Position]:
    """The positions of the six blocks that one there touches."""
    x, y, z = position
    for step in (-1, 1):
        yield from ((x + step, y, z), (x, y + step, z), (x, y, z + step))


def block(value: JsonValue, where: str, key: str = "pos") -> Block:
    """A logged block: `pos` in structures, `blockPos` in place actions."""
    record = base.expect(value, dict, where)
    uid = record.get("uid")
    colour = base.field(record, "blockType", str, where)
    return Block(colour, position(record, key, where), str(uid) if isinstance(uid, (str, int)) else "")


def position(record: Mapping[str, JsonValue], key: str, where: str) -> Position:
    """(x, y, z) of a logged block."""
    place = base.field(record, key, dict, where)
    x, y, z = (_number(place, axis, f"{where}.{key}") for axis in "xyz")
    return x, y, z


def blocks(values: JsonValue, where: str) -> list[Block]:
    """A logged list of blocks; none where there is no list."""
    return [block(v, f"{where}[{n}]") for n, v in enumerate(values)] if isinstance(values, list) else []


def counts(inventory: JsonValue) -> Counter[str]:
    """Colour -> how many blocks an agent had at first."""
    result: Counter[str] = Counter()
    for item in inventory if isinstance(inventory, list) else []:
        if isinstance(item, dict) and isinstance(count := _read(item.get("count")), (int, float)):
            result[str(item.get("blockType"))] += int(count) if abs(count) < MOST else 0
    return result


def _number(place: Mapping[str, JsonValue], axis: str, where: str) -> float:
    raw = place.get(axis)
    value = _read(raw)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < MOST:
        raise ValueError(f"{where}.{axis}: expected a number, got {raw!r:.40}")
    return value


def _read(value: JsonValue) -> JsonValue:
    """A number that was written as a text; anything else as it is."""
    return number_in(value) if isinstance(value, str) else value
