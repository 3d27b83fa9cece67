"""Cut a trajectory into the units that codebooks rate.

Source of the process units: Co-Gym's evaluation (initiative_analysis, controlled_autonomy). An utterance
is a message of a team member; the opening query is no utterance unless asked for. A question with its
reply is an agent's message with a question mark whose next message in the dialogue is a human's: actions,
waits and errors in between do not part them, and of two agent messages in a row only the second can be
answered.

A step is whatever a team member said or did at a time. A participant is all that one team member did; its
address, as of every unit, is its first event, so one who never did anything is no unit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from ..schemas import Codebook, Event, Trajectory, Unit
from ..schemas.codebook import UnitKind
from ..schemas.trajectory import ParticipantKind

UNIT_KINDS: tuple[UnitKind, ...] = (
    *("utterance", "question_reply", "human_message", "step", "participant", "trajectory"),
)
ASKS = frozenset("?？؟")
"""Question marks: of Latin and most scripts, full-width, Arabic."""
_NO_STEPS = ("start", "wait", "control", "note")


def opening_query(trajectory: Trajectory) -> int | None:
    """seq of the message that was in the chat before anything was done, if there is one.

    A message that was logged as an act, with a status or as an action, is none.
    """
    kinds = _kinds(trajectory)
    for event in trajectory.events[:2]:
        acted = event.status is not None or event.action is not None
        if event.kind == "message" and not acted and kinds[event.actor] == "human":
            return event.seq
    return None


def spans(trajectory: Trajectory, kind: UnitKind) -> Iterator[tuple[Event, ...]]:
    """The events of each unit of a kind, in order; a unit's address is the seq of its first event."""
    return (events for other, events in all_spans(trajectory, (kind,)) if other == kind)


def all_spans(
    trajectory: Trajectory, wanted: Sequence[UnitKind] = UNIT_KINDS
) -> Iterator[tuple[UnitKind, tuple[Event, ...]]]:
    """The kind and the events of each unit of the `wanted` kinds, kind by kind."""
    kinds = _kinds(trajectory)
    said, done = _said(trajectory, kinds), _done(trajectory, kinds)
    for kind in wanted:
        if kind == "trajectory":
            yield kind, tuple(e for e in trajectory.events if not e.live_only)
        elif kind == "utterance":
            yield from [(kind, (event,)) for event in said]
        elif kind == "human_message":
            yield from [(kind, (event,)) for event in said if kinds[event.actor] == "human"]
        elif kind == "question_reply":
            yield from [(kind, pair) for pair in _answered_questions(said, kinds)]
        elif kind == "step":
            yield from [(kind, (event,)) for event in done if event.kind not in _NO_STEPS]
        else:
            by_actor: dict[str, list[Event]] = {}
            for event in done:
                by_actor.setdefault(event.actor, []).append(event)
            yield from [(kind, tuple(events)) for events in by_actor.values()]


def _done(trajectory: Trajectory, kinds: Mapping[str, ParticipantKind]) -> list[Event]:
    """What team members did, in order; who is no participant is none of them."""
    team = {name for name, kind in kinds.items() if kind != "environment"}
    return [event for event in trajectory.events if event.actor in team and not event.live_only]


def dialogue(trajectory: Trajectory) -> list[Event]:
    """The messages between team members, the opening query included, in order."""
    return _said(trajectory, _kinds(trajectory))


def _said(trajectory: Trajectory, kinds: Mapping[str, ParticipantKind]) -> list[Event]:
    return [
        event
        for event in trajectory.events
        if event.kind == "message"
        and event.status != "failed"
        and not event.live_only
        and kinds.get(event.actor, "environment") != "environment"
    ]


def cut(trajectory: Trajectory, codebook: Codebook, *, include_query: bool = False) -> Iterator[Unit]:
    """The units of a trajectory under a codebook, with as much transcript as its context allows.

    None where the codebook is not for this trajectory.
    """
    if not codebook.applies(trajectory):
        return
    opening = None if include_query else opening_query(trajectory)
    transcript = trajectory.events if codebook.context != "none" else ()
    for events in spans(trajectory, codebook.unit):
        whole = codebook.unit == "trajectory"
        if codebook.unit not in ("trajectory", "participant") and events[0].seq == opening:
            continue
        # Not validated, which would look through the transcript and copy it for every unit of a long log.
        yield Unit.model_construct(
            trajectory_id=trajectory.id,
            kind=codebook.unit,
            event=None if whole else events[0].seq,
            events=events,
            participants=trajectory.participants,
            transcript=transcript,
            task=trajectory.task,
        )


def _answered_questions(
    said: Sequence[Event], kinds: Mapping[str, ParticipantKind]
) -> Iterator[tuple[Event, Event]]:
    for question, reply in itertools.pairwise(said):
        answered = kinds[question.actor] == "agent" and kinds[reply.actor] == "human"
        if answered and (text := question.text) and any(mark in text for mark in ASKS):
            yield question, reply


def _kinds(trajectory: Trajectory) -> dict[str, ParticipantKind]:
    """Participant -> kind."""
    return {participant.name: participant.kind for participant in trajectory.participants}
