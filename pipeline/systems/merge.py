"""One session known twice: from live traffic and from its folder. The log decides what was logged.

What only live traffic knows (waits, late reminders, hidden information) is kept beside it. Which of the two
is read first makes no difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from difflib import SequenceMatcher

from ...schemas import Event, Outcome, Trajectory, canonical_json

HEARD = "heard"
"""Name of the outcome that every trajectory with live knowledge has."""
END_REASON = "end_reason"
"""Name of the outcome that says why a session ended; its data has under `heard` or `inferred` what that rests
on."""
CLOCK = 3.0
"""Seconds by which our clock and the environment's may differ where a start shows no time of its own."""


def hearing_outcome(
    late: bool, gaps: int, recovered: int = 0, missed: int = 0, *, unsettled: bool = False
) -> Outcome:
    """The outcome that says how well a session was heard: `whole`, `with gaps`, or `joined late`.

    `recovered` events nobody heard, but the chat brought them back; `missed` is how many others there were at
    least, until the session's log tells. `unsettled`: no state was shown since the last gap, so that its
    losses are not counted yet.
    """
    text = "joined late" if late else "with gaps" if gaps or recovered or missed else "whole"
    counts = {"gaps": gaps, "recovered": recovered, "missed": missed}
    return Outcome(name=HEARD, text=text, data={**counts, "unsettled": unsettled, "joined": False})


def is_heard(trajectory: Trajectory) -> bool:
    """Whether all that is known of a trajectory comes from live traffic."""
    outcome = _hearing(trajectory)
    return outcome is not None and isinstance(outcome.data, dict) and not outcome.data.get("joined")


def was_heard(trajectory: Trajectory) -> bool:
    """Whether anything that is known of a trajectory comes from live traffic."""
    return _hearing(trajectory) is not None


def is_unsettled(trajectory: Trajectory) -> bool:
    """Whether nothing was shown since the last gap, nor read in a folder, so that losses are not counted."""
    outcome = _hearing(trajectory)
    return outcome is not None and isinstance(outcome.data, dict) and bool(outcome.data.get("unsettled"))


def combine_readings(existing: Trajectory, incoming: Trajectory) -> Trajectory | None:
    """Two readings of one session as one; None where neither has live knowledge, or where they are two
    sessions.

    Each reading may be a log, a hearing, or both joined already. Of two logs the longer one counts, of two
    hearings the one that heard more: a hearing may be older or newer than the one that was joined with a log
    meanwhile.
    """
    hearings = [one for one in (incoming, existing) if was_heard(one)]
    if not hearings:
        return None
    live = max(hearings, key=_extent)
    logs = [one for one in (incoming, existing) if not is_heard(one)]
    if not logs:
        return live
    log = max(logs, key=lambda one: len(_log_events(one)))
    if len(logs) == 2 and not agree(existing, incoming):
        return None
    together = join(log, existing if log is incoming else incoming)
    if together is None:
        return None
    result = log if live is log else together
    return result.model_copy(update={"tags": incoming.tags or existing.tags}) if log is incoming else result


def join(log: Trajectory, live: Trajectory) -> Trajectory | None:
    """A log's trajectory with what live traffic knew beside it; None where they are not one session."""
    log_events = _log_events(log)
    places = _places(log_events, _log_events(live))
    if places is None:
        return None
    beside = [e for e in _asides(live.events, places) if not _is_notice(e, log_events)]
    outcome = _hearing(live)
    flags = {"joined": True, "unsettled": False}
    hearing = (
        ()
        if outcome is None
        else (_with_details(outcome, **flags, **_hearing_counts(len(log_events), places, live)),)
    )
    end = _end(log, live)
    outcomes = [end if end and o.name == END_REASON else o for o in log.outcomes if o.name != HEARD]
    events = sorted([*log_events, *_with_subs(beside)], key=lambda e: (e.seq, e.sub))
    by_name = {
        "events": tuple(events),
        "outcomes": (*outcomes, *hearing),
        "hidden": log.hidden or live.hidden,
    }
    return log.model_copy(update=by_name)


def _end(log: Trajectory, live: Trajectory) -> Outcome | None:
    """The end reason as it was heard, where the log's is only inferred; None elsewhere."""
    ours, theirs = (next((o for o in t.outcomes if o.name == END_REASON), None) for t in (log, live))
    was_heard = theirs is not None and isinstance(theirs.data, dict) and "heard" in theirs.data
    return theirs if ours is not None and ours.inferred and was_heard else None


def _hearing_counts(count: int, places: Mapping[int, int], live: Trajectory) -> dict[str, int]:
    """How many of the log's `count` events the hearing missed, and by how many it is ahead of a log that
    still grows."""
    theirs = sum(not event.live_only for event in live.events)
    if is_heard(live):
        return {"missed": count - len(places), "events": _extent(live), "ahead": theirs - len(places)}
    # It was joined with the log of then: what the log got since was missed, unless the hearing was ahead.
    growth, ahead = max(0, count - theirs), _number(live, "ahead")
    return {"missed": _number(live, "missed") + max(0, growth - ahead), "ahead": max(0, ahead - growth)}


def _extent(live: Trajectory) -> int:
    """How many events were heard, notes aside: a late reminder becomes part of the record after it."""
    if is_heard(live):
        return sum(event.kind != "note" for event in live.events)
    return _number(live, "events")


def _number(live: Trajectory, name: str) -> int:
    outcome = _hearing(live)
    value = outcome.data.get(name) if outcome and isinstance(outcome.data, dict) else None
    return value if isinstance(value, int) else 0


def same_start(log: Trajectory, live: Trajectory) -> bool:
    """Whether a log begins like a session whose id could not be computed: joined late, or without an opening
    query."""
    first, second = log.events[0], live.events[0]
    if log.native_id != live.native_id or first.text != second.text:
        return False
    ours, theirs = _opening(log), _opening(live)
    if ours or theirs:
        return ours == theirs
    return seconds_apart(log, live) <= CLOCK


def agree(one: Trajectory, other: Trajectory) -> bool:
    """Whether two trajectories logged much the same, as two readings of one session do.

    Two logs agree where one continues the other: to have much in common is not enough, as two runs have that
    were heard at once.
    """
    ours, theirs = _log_events(one), _log_events(other)
    if is_heard(one) or is_heard(other):
        return _places(ours, theirs) is not None
    return all(a.digest() == b.digest() for a, b in zip(ours, theirs, strict=False))


def seconds_apart(one: Trajectory, other: Trajectory) -> float:
    """Seconds between the starts of two trajectories; infinite where one does not say when it began."""
    between = abs(_seconds(one.events[0].time) - _seconds(other.events[0].time))
    return math.inf if math.isnan(between) else between


def _log_events(trajectory: Trajectory) -> list[Event]:
    return [event for event in trajectory.events if not event.live_only]


def _opening(trajectory: Trajectory) -> tuple[str | None, ...]:
    items = [e for e in trajectory.events[1:2] if e.kind == "message" and e.status is None]
    return tuple(text for e in items for text in (e.actor, e.time, e.text))


def _seconds(time: str | None) -> float:
    try:
        return datetime.fromisoformat(time or "").timestamp()
    except (ValueError, OverflowError):
        return -math.inf


def _places(log_events: Sequence[Event], live: Sequence[Event]) -> dict[int, int] | None:
    """seq of a live event -> seq of the same event in the log; None where they begin differently, or less
    than half of the shorter one is found."""
    ours, theirs = [_likeness(e) for e in log_events], [_likeness(e) for e in live]
    short = min(len(ours), len(theirs))
    if ours[:short] == theirs[:short]:
        return {b.seq: a.seq for a, b in zip(log_events, live, strict=False)}
    if ours[:1] != theirs[:1]:
        return None
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    places = {live[b + n].seq: log_events[a + n].seq for a, b, size in blocks for n in range(size)}
    return places if 2 * len(places) >= short else None


def _likeness(event: Event) -> tuple[object, ...]:
    action = canonical_json(event.action.model_dump()) if event.action else None
    return (event.actor, event.kind, event.text, action)


def _asides(events: Sequence[Event], places: dict[int, int]) -> list[Event]:
    """The live_only events, each after the log's counterpart of the event that it followed; behind a log that
    still grows, where that counterpart will be."""
    end = max(places, default=0)
    result, last = [], 0
    for event in events:
        if event.live_only:
            ahead = max(0, event.seq - end)
            result.append(event.model_copy(update={"seq": last + ahead}))
        else:
            last = places.get(event.seq, last)
    return result


def _is_notice(event: Event, log_events: Sequence[Event]) -> bool:
    """Whether a reminder that was heard late turned out to be in the log after all."""
    if event.kind != "note":
        return False
    return any(n.text == event.text and n.time == event.time for e in log_events for n in e.notices)


def _with_subs(events: Sequence[Event]) -> list[Event]:
    counts: dict[int, int] = {}
    result = []
    for event in events:
        counts[event.seq] = counts.get(event.seq, 0) + 1
        result.append(event.model_copy(update={"sub": counts[event.seq]}))
    return result


def _hearing(trajectory: Trajectory) -> Outcome | None:
    return next((o for o in trajectory.outcomes if o.name == HEARD), None)


def _with_details(outcome: Outcome, **more: object) -> Outcome:
    """The outcome with these details in place of those it had."""
    data = outcome.data if isinstance(outcome.data, dict) else {}
    return outcome.model_copy(update={"data": {**data, **more}})
