"""Reads one trajectory for its replay: events with their states, and the ratings pinned to them."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from typing import Any

from ...advise import advice, advisor, states
from ...store import Store, dictionaries, execute
from ...store.queries import trajectories
from ...store.queries.trajectories import resolve

Rows = list[dict[str, Any]]
WINDOW = 2000
"""Events that are shown at once."""
LONGEST = 4000
"""Characters of a text that are shown at once; the rest is a click away."""
DIFF_LINES = 200
IN_PLACE = 100_000
"""Bytes of a state up to which its change is shown in place; of a larger one, when the event is opened."""
ALL_IN_PLACE = 8_000_000


@dataclass(frozen=True)
class Replay:
    """A trajectory's head, the events of one window, and every rating of it."""

    head: dict[str, Any]
    participants: Rows
    outcomes: Rows
    events: Rows
    first: int
    ratings: Rows
    changes: dict[int, dict[str, list[str]]]
    """Event -> view -> the lines by which its state differs from the one before; without large states."""


def replay(store: Store, name: str, first: int = 0) -> Replay:
    """The trajectory of that id or native id, with events from place `first` on; UsageError where none."""
    with store.reading() as connection:
        key = resolve(connection, name)
        head = dictionaries(connection, "SELECT * EXCLUDE (hidden) FROM trajectories WHERE id = ?", [key])[0]
        events = dictionaries(connection, _EVENTS, [LONGEST + 1, LONGEST, key, WINDOW, max(0, first)])
        return Replay(
            head={**head, "tags": json.loads(head["tags"] or "{}")},
            participants=dictionaries(connection, f"FROM participants {_OF}", [key]),
            outcomes=dictionaries(connection, f"FROM outcomes {_OF} ORDER BY name", [key]),
            events=events,
            first=max(0, first),
            ratings=dictionaries(connection, _RATINGS, [key]),
            changes=_changes(connection, events, whole=first <= 0),
        )


def advisor_stamp(store: Store) -> str:
    """A text that changes whenever the workspace's advisor does; empty without one."""
    file = advisor.default(store.workspace)
    return f"{file.stat().st_mtime_ns}" if file.exists() else ""


def advice_rows(store: Store, name: str, stamp: str) -> Rows:
    """The workspace's advisor on each step of a trajectory, and on the next one; empty without an advisor.

    `stamp` (from `advisor_stamp`) is a key for caches. The row for the next step has no event; a trajectory
    that has ended has no such row.
    """
    if not stamp:
        return []
    file = advisor.default(store.workspace)
    item = trajectories.one(store, name, states=True)
    rows = advice.course(advisor.load(file), item)
    return rows[:-1] if states.has_ended(item) else rows


_OF = "WHERE trajectory_id = ?"
_EVENTS = """
    SELECT e.seq, e.sub, e.live_only, e.time, e.actor, p.kind AS party, e.kind, left(e.text, ?) AS text,
        coalesce(strlen(e.text), 0) + coalesce(strlen(e.arguments), 0) AS bytes, e.action,
        left(e.arguments, ?) AS arguments, e.status, e.error, e.states, e.notices
    FROM events e LEFT JOIN participants p ON p.trajectory_id = e.trajectory_id AND p.name = e.actor
    WHERE e.trajectory_id = ? ORDER BY e.seq, e.sub LIMIT ? OFFSET ?
"""
_RATINGS = """
    SELECT c.event, c.codebook, c.code, b.code_name, b.unit, c.rater, c.rater_kind, c.label, c.error,
        c.positive, c.cites, c.quote, c.rationale, c.probability, c.error_source, c.model, c.external
    FROM counted_ratings c JOIN codebooks b ON b.name = c.codebook AND b.code = c.code
    WHERE c.trajectory_id = ? ORDER BY c.codebook, c.code, c.rater
"""


def place(store: Store, name: str, event: int) -> int:
    """The place of an event in its trajectory, counted from 0 with live-only ones."""
    with store.reading() as connection:
        key = resolve(connection, name)
        query = "SELECT count(*) FROM events WHERE trajectory_id = ? AND seq < ?"
        return int(execute(connection, query, [key, event]).fetchall()[0][0])


def full_event(store: Store, name: str, event: int) -> dict[str, Any]:
    """One event with its text and arguments in full, and `changes`: view -> diff of its state; empty without
    such an event."""
    with store.reading() as connection:
        key = resolve(connection, name)
        rows = dictionaries(
            connection, "FROM events WHERE trajectory_id = ? AND seq = ? AND sub = 0", [key, event]
        )
        if not rows:
            return {}
        before = dictionaries(
            connection,
            "SELECT states FROM events WHERE trajectory_id = ? AND seq < ? AND states IS NOT NULL "
            "ORDER BY seq DESC LIMIT 20",
            [key, event],
        )
        now = json.loads(rows[0]["states"] or "{}")
        earlier = {view: _last(before, view) for view in now}
        contents = _contents(connection, {*now.values(), *(h for h in earlier.values() if h)})
    changes = {view: diff(contents.get(earlier[view] or ""), contents.get(now[view])) for view in now}
    return {**rows[0], "changes": changes}


def _changes(connection: Any, events: Rows, *, whole: bool) -> dict[int, dict[str, list[str]]]:
    """Event -> view -> diff of its state. `whole`: no event comes before these, so first states are new."""
    steps: list[tuple[int, str, str | None, str]] = []
    last: dict[str, str] = {}
    for row in events:
        for view, key in json.loads(row["states"] or "{}").items() if not row["sub"] else ():
            if whole or view in last:
                steps.append((row["seq"], view, last.get(view), key))
            last[view] = key
    contents = _contents(
        connection, _small_states(connection, {key for *_, a, b in steps for key in (a, b) if key})
    )
    changes: dict[int, dict[str, list[str]]] = {}
    for seq, view, before, now in steps:
        if now in contents and (before is None or before in contents):
            changes.setdefault(seq, {})[view] = diff(contents.get(before or ""), contents[now])
    return changes


def _small_states(connection: Any, hashes: set[str]) -> set[str]:
    query = (
        "SELECT hash, strlen(content) FROM states WHERE hash IN (SELECT unnest(?::VARCHAR[])) ORDER BY 2, 1"
    )
    small, size = set(), 0
    for key, length in execute(connection, query, [sorted(hashes)]).fetchall():
        size += length
        if length <= IN_PLACE and size <= ALL_IN_PLACE:
            small.add(key)
    return small


def _last(before: Rows, view: str) -> str | None:
    return next((states[view] for row in before if view in (states := json.loads(row["states"]))), None)


def _contents(connection: Any, hashes: set[str]) -> dict[str, Any]:
    query = "SELECT hash, content FROM states WHERE hash IN (SELECT unnest(?::VARCHAR[]))"
    return {key: json.loads(text) for key, text in execute(connection, query, [sorted(hashes)]).fetchall()}


def diff(before: Any, after: Any) -> list[str]:
    """The lines by which a state differs from the one before, as a unified diff without its head."""
    lines = list(difflib.unified_diff(_lines(before), _lines(after), lineterm="", n=1))[2:]
    rest = [f"… {len(lines) - DIFF_LINES} more lines"] if len(lines) > DIFF_LINES else []
    return [line[:400] for line in lines[:DIFF_LINES]] + rest


def _lines(state: Any) -> list[str]:
    if state is None:
        return []
    if isinstance(state, dict):
        return [
            f"{key}: {line}"
            for key, value in state.items()
            for line in (
                value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
            ).split("\n")
        ]
    return json.dumps(state, ensure_ascii=False, indent=1).split("\n")
