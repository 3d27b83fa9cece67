"""Parts of a file of coaudit's own JSON Lines: whole trajectories with the states that they point at."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....schemas import content_hash
from ..base import Span, parse_json, placed_lines
from .files.interleaved import Extent, StrayLines, spans_of

SYSTEM = "coaudit"
_PLAIN = re.compile(rb'\{"type":"(?:event|outcome)","trajectory":"([^"\\]+)",')
"""How `export` begins an event or outcome: nothing that follows says more of which trajectory it is of."""
_Place = tuple[int, int, int]
"""The number of a line, and the bytes at which it begins and ends."""


def spans(path: Path, size: int) -> Iterator[Span]:
    """Parts of about `size` bytes, in the order in which their trajectories end.

    Only the places of the lines are held. Lines of no trajectory, such as those that cannot be read, are
    together in parts with others.
    """
    lines = _Lines()
    number = 0
    for number, begin, end, line in placed_lines(path):
        lines.add((number, begin, end), line or b"")
    return spans_of(list(lines.extents(size)), size, number)


def identity(head: Mapping[str, Any], team: Iterable[str]) -> str:
    """The id of a trajectory without one: a hash of its system, native_id and the names of who is in it."""
    return content_hash(head.get("system", SYSTEM), head["native_id"], sorted(team))[:16]


@dataclass
class _Lines:
    """Which lines are of which trajectory, and which trajectories must be in one part."""

    by_name: defaultdict[str, Extent] = field(default_factory=lambda: defaultdict(Extent))
    """A trajectory's name -> its lines, and those of the states after its head that its events point at."""
    strays: StrayLines = field(default_factory=StrayLines)
    states: dict[str, tuple[_Place, int]] = field(default_factory=dict)
    """State -> (its last line, hash of what that says)."""
    heads: dict[str, str] = field(default_factory=dict)
    """State in a head -> a name of the trajectory."""
    needed_states: dict[str, set[str]] = field(default_factory=dict)
    """Name -> the states that the trajectory's events point at and that do not stand after its head."""
    aliases: dict[str, str] = field(default_factory=dict)
    """Name -> another name in the same part (union-find); the last one of a chain stands for all."""
    last_names: tuple[str, ...] = ()
    """The names in the last head."""
    pending_states: dict[str, _Place] = field(default_factory=dict)
    """The states after the last head that its events have not pointed at yet."""
    placed_states: set[str] = field(default_factory=set)
    """Those that they have pointed at, whose lines are with the trajectory's."""
    has_conflict: bool = False
    """Whether a state has two lines that differ: the last one holds for all of the file."""

    def add(self, place: _Place, line: bytes) -> None:
        """Add a line."""
        if name := _owner(line):
            self._append(name, place)
            return
        value = parse_json(line, "", None)
        if not isinstance(value, dict):
            self._append(None, place)
        elif value.get("type") == "state" and isinstance(state := value.get("hash"), str):
            self._add_state(state, place, hash(line))
        elif value.get("type") == "trajectory":
            self._add_head(value, place)
        else:
            owner = value.get("trajectory")
            name = owner if isinstance(owner, str) else None
            if name is not None:
                self._add_pointers(name, [value])
            self._append(name, place)

    def _add_state(self, state: str, place: _Place, words: int) -> None:
        self.has_conflict |= self.states.get(state, (place, words))[1] != words
        self.states[state] = place, words
        self.pending_states[state] = place

    def _add_head(self, head: dict[str, Any], place: _Place) -> None:
        names = tuple(_names(head))
        self._append(names[0] if names else None, place)
        if not names:  # it opens nothing
            return
        self.last_names, self.pending_states, self.placed_states = names, {}, set()
        name = names[0]
        for other in self.last_names[1:]:
            self._unite(name, other)
        events, states = head.get("events"), head.get("states")
        self._add_pointers(name, events if isinstance(events, list) else [])
        for state in states if isinstance(states, dict) else {}:
            self._unite(name, self.heads.setdefault(state, name))

    def _append(self, name: str | None, place: _Place) -> None:
        (self.strays if name is None else self.by_name[name]).add(*place)

    def _add_pointers(self, name: str, events: Iterable[Any]) -> None:
        views = (event.get("states") for event in events if isinstance(event, dict))
        pointed = (one for view in views if isinstance(view, dict) for one in view.values())
        hashes = {one for one in pointed if isinstance(one, str)}
        if name in self.last_names:
            for one in hashes & self.pending_states.keys():
                self._append(self.last_names[0], self.pending_states.pop(one))
                self.placed_states.add(one)
            hashes -= self.placed_states
        if hashes:
            self.needed_states.setdefault(name, set()).update(hashes)

    def _root(self, name: str) -> str:
        while (above := self.aliases.get(name, name)) != name:
            self.aliases[name] = self.aliases.get(above, above)
            name = above
        return name

    def _unite(self, one: str, other: str) -> None:
        first, second = self._root(one), self._root(other)
        if first != second:
            self.aliases[second] = first

    def extents(self, size: int) -> Iterator[Extent]:
        """The extents of trajectories, joined where they share a name or a state in a head, then those of
        stray lines.

        All trajectories are one extent where two lines of a state differ, where a state stands in a head and
        in a line, and where parts of `size` bytes would read more bytes of shared states again than the
        trajectories have.
        """
        is_one_part = self.has_conflict or not self.heads.keys().isdisjoint(self.states)
        for name, hashes in self.needed_states.items():
            for one in hashes & self.heads.keys():
                self._unite(self.heads[one], name)
        uses = Counter(one for hashes in self.needed_states.values() for one in hashes if one in self.states)
        total = sum(extent.size for extent in self.by_name.values())
        parts = total // size
        is_one_part |= sum(self._bytes(one) * min(count - 1, parts) for one, count in uses.items()) > total
        by_root: dict[str, Extent] = {}
        for name, extent in self.by_name.items():
            root = "" if is_one_part else self._root(name)
            for one in self.needed_states.get(name, set()) & uses.keys():
                extent.borrow(*self.states[one][0])
            if root in by_root:
                by_root[root].join(extent)
            else:
                by_root[root] = extent
        if is_one_part and by_root:
            for last, _ in self.states.values():
                by_root[""].borrow(*last)
        yield from by_root.values()
        yield from self.strays

    def _bytes(self, state: str) -> int:
        _, begin, end = self.states[state][0]
        return end - begin


def _owner(line: bytes) -> str | None:
    """The trajectory whose event or outcome a line is, where it shows without parsing the line; else None."""
    if (begin := _PLAIN.match(line)) is None:
        return None
    if line.count(b'"trajectory"') > 1 or line.count(b'"type"') > 1 or b'"states"' in line or b"\\u" in line:
        return None
    try:
        return begin[1].decode()
    except UnicodeDecodeError:
        return None


def _names(head: dict[str, Any]) -> Iterator[str]:
    """The names by which lines may refer to a trajectory."""
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
