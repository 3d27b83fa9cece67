"""What a trained judge sees of a unit: its text, and the process around it up to then."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ...schemas import Event, Unit

LONGEST = 20_000
"""Characters of a unit's text that are looked at, from both ends."""
EARLY = 100
"""Events before a unit from which on it makes no difference how many there are."""


@dataclass(frozen=True)
class Features:
    """The text of a unit, and numbers and names of the process."""

    text: str
    process: dict[str, float | str]


def features(unit: Unit) -> Features:
    """Of a unit cut with its transcript; nothing after the unit is looked at."""
    kinds = {p.name: p.kind for p in unit.participants}
    texts = [_text(event) for event in unit.events]
    text = "\n".join(texts)
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]}\n{text[-LONGEST // 2 :]}"
    if unit.event is None:
        return Features(text, _of_trajectory(unit.events, kinds))
    before = _latest(unit)
    last = before[0] if before else None
    process: dict[str, float | str] = {
        "actor": kinds.get(unit.events[0].actor, "unknown"),
        "after": f"{kinds.get(last.actor, 'unknown')} {last.kind}" if last else "nothing",
        "position": len(before) / EARLY,
        "own_last": float(last is not None and last.actor == unit.events[0].actor),
        "length": min(1.0, len(text) / 1000),
        "questions": min(1.0, text.count("?") / 5),
        "exclamations": min(1.0, text.count("!") / 5),
        "reply_length": min(1.0, len(texts[-1]) / 1000) if len(texts) > 1 else 0.0,
    }
    return Features(text, process)


def _latest(unit: Unit) -> list[Event]:
    """At most `EARLY` events before a unit, the last one first: a transcript, in order, may be long."""
    assert unit.event is not None
    place = bisect_left(unit.transcript, unit.event, key=lambda event: event.seq)
    before = (unit.transcript[earlier] for earlier in range(place - 1, -1, -1))
    return list(itertools.islice((event for event in before if not event.live_only), EARLY))


def _of_trajectory(events: tuple[Event, ...], kinds: Mapping[str, str]) -> dict[str, float | str]:
    total = max(1, len(events))
    counts = Counter(f"{kinds.get(e.actor, 'unknown')} {e.kind}" for e in events)
    failures = sum(e.status == "failed" for e in events)
    calls = [f"{e.action.name} {e.action.arguments}" for e in events if e.action]
    return {
        **{f"share {name}": count / total for name, count in counts.items()},
        "events": min(1.0, total / 200),
        "failed": failures / total,
        "repeated": 1 - len(set(calls)) / len(calls) if calls else 0.0,
    }


def _text(event: Event) -> str:
    parts = [event.text or ""]
    if event.action:
        parts.append(f"{event.action.name} {' '.join(map(str, event.action.arguments.values()))}")
    return " ".join(part for part in parts if part)
