"""Parts of a file of coaudit's own JSON Lines: whole trajectories with the states that they point at."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....schemas import content_hash
from ..base import Span, parsed, placed_lines
from .interleaved import Extent, Nobodys, together

SYSTEM = "coaudit"
_PLAIN = re.compile(rb'\{"type":"(?:event|outcome)","trajectory":"([^"\\]+)",')
"""How a line begins that `export` wrote, whose other fields say no more of whose it is."""
_Place = tuple[int, int, int]
"""The number of a line, and the bytes at which it begins and ends."""


def spans(path: Path, size: int) -> Iterator[Span]:
    """Parts of about `size` bytes, in the order in which their trajectories end.

    What the file has is held as the places of its lines. One that is nobody's, such as what cannot be read,
    is in a part by itself or with others.
    """
    lines = _Lines()
    number = 0
    for number, begin, end, line in placed_lines(path):
        lines.add((number, begin, end), line or b"")
    return together(list(lines.extents(size)), size, number)


def identity(head: Mapping[str, Any], team: Iterable[str]) -> str:
    """The id of a trajectory that has none: of its system, native_id and who is in it."""
    return content_hash(head.get("system", SYSTEM), head["native_id"], sorted(team))[:16]


@dataclass
class _Lines:
    """Which lines belong together."""

    by_name: defaultdict[str, Extent] = field(default_factory=lambda: defaultdict(Extent))
    """Trajectory, by one of its names -> its lines, and those of its states that stand behind its head."""
    nobodys: Nobodys = field(default_factory=Nobodys)
    states: dict[str, tuple[_Place, int]] = field(default_factory=dict)
    """State -> its last line, and what that says."""
    heads: dict[str, str] = field(default_factory=dict)
    """State that stands in a head -> the trajectory's name."""
    needs: dict[str, set[str]] = field(default_factory=dict)
    """Name -> the states that events of that trajectory point at and that do not stand behind its head."""
    same: dict[str, str] = field(default_factory=dict)
    """Name -> another one of the same trajectories; the last of such a chain stands for all."""
    last: tuple[str, ...] = ()
    """The names in the last head."""
    behind: dict[str, _Place] = field(default_factory=dict)
    """The states behind it that its events have not pointed at yet."""
    told: set[str] = field(default_factory=set)
    """Those that they have."""
    differ: bool = False
    """Whether a state is told twice, and not in the same words: the last ones hold for all of the file."""

    def add(self, place: _Place, line: bytes) -> None:
        """Take in a line."""
        if name := _owner(line):
            self._append(name, place)
            return
        value = parsed(line, "", None)
        if not isinstance(value, dict):
            self._append(None, place)
        elif value.get("type") == "state" and isinstance(state := value.get("hash"), str):
            self._tell(state, place, hash(line))
        elif value.get("type") == "trajectory":
            self._open(value, place)
        else:
            owner = value.get("trajectory")
            name = owner if isinstance(owner, str) else None
            if name is not None:
                self._need(name, [value])
            self._append(name, place)

    def _tell(self, state: str, place: _Place, words: int) -> None:
        self.differ |= self.states.get(state, (place, words))[1] != words
        self.states[state] = place, words
        self.behind[state] = place

    def _open(self, head: dict[str, Any], place: _Place) -> None:
        names = tuple(_names(head))
        self._append(names[0] if names else None, place)
        if not names:  # it opens nothing
            return
        self.last, self.behind, self.told = names, {}, set()
        name = names[0]
        for other in self.last[1:]:
            self._unite(name, other)
        events, states = head.get("events"), head.get("states")
        self._need(name, events if isinstance(events, list) else [])
        for state in states if isinstance(states, dict) else {}:
            self._unite(name, self.heads.setdefault(state, name))

    def _append(self, name: str | None, place: _Place) -> None:
        (self.nobodys if name is None else self.by_name[name]).add(*place)

    def _need(self, name: str, events: Iterable[Any]) -> None:
        views = (event.get("states") for event in events if isinstance(event, dict))
        pointed = (one for view in views if isinstance(view, dict) for one in view.values())
        hashes = {one for one in pointed if isinstance(one, str)}
        if name in self.last:
            for one in hashes & self.behind.keys():
                self._append(self.last[0], self.behind.pop(one))
                self.told.add(one)
            hashes -= self.told
        if hashes:
            self.needs.setdefault(name, set()).update(hashes)

    def _root(self, name: str) -> str:
        while (above := self.same.get(name, name)) != name:
            self.same[name] = self.same.get(above, above)
            name = above
        return name

    def _unite(self, one: str, other: str) -> None:
        first, second = self._root(one), self._root(other)
        if first != second:
            self.same[second] = first

    def extents(self, size: int) -> Iterator[Extent]:
        """Where the trajectories lie that have a name or a state in common, and what is nobody's; all of it
        together where parts of that size would read the states that they have in common again and again."""
        is_one_part = self.differ or not self.heads.keys().isdisjoint(self.states)
        for name, hashes in self.needs.items():
            for one in hashes & self.heads.keys():
                self._unite(self.heads[one], name)
        uses = Counter(one for hashes in self.needs.values() for one in hashes if one in self.states)
        total = sum(extent.size for extent in self.by_name.values())
        parts = total // size
        is_one_part |= sum(self._bytes(one) * min(count - 1, parts) for one, count in uses.items()) > total
        by_root: dict[str, Extent] = {}
        for name, extent in self.by_name.items():
            root = "" if is_one_part else self._root(name)
            for one in self.needs.get(name, set()) & uses.keys():
                extent.borrow(*self.states[one][0])
            if root in by_root:
                by_root[root].join(extent)
            else:
                by_root[root] = extent
        if is_one_part and by_root:
            for last, _ in self.states.values():
                by_root[""].borrow(*last)
        yield from by_root.values()
        yield from self.nobodys

    def _bytes(self, state: str) -> int:
        _, begin, end = self.states[state][0]
        return end - begin


def _owner(line: bytes) -> str | None:
    """Whose event or outcome a line is, where it shows without reading the line."""
    if (begin := _PLAIN.match(line)) is None:
        return None
    if line.count(b'"trajectory"') > 1 or line.count(b'"type"') > 1 or b'"states"' in line or b"\\u" in line:
        return None
    try:
        return begin[1].decode()
    except UnicodeDecodeError:
        return None


def _names(head: dict[str, Any]) -> Iterator[str]:
    """By what lines may name a trajectory."""
    native, own, team = head.get("native_id"), head.get("id"), head.get("participants", [])
    if not isinstance(native, str):
        return
    yield native
    if isinstance(own, str):
        yield own
    elif "id" not in head and isinstance(team, list):
        names = [one.get("name") for one in team if isinstance(one, dict)]
        if all(isinstance(name, str) for name in names):
            yield identity(head, names)  # type: ignore[arg-type]
