"""Cut a trajectory into the units that codebooks rate.

Source of the process units: Co-Gym's evaluation (initiative_analysis, controlled_autonomy). An utterance
is a message of a team member; the opening query is no utterance unless asked for. A question with its
reply is an agent's message with a question mark whose next message in the dialogue is a human's: actions,
waits and errors in between do not part them, and of two agent messages in a row only the second can be
answered.

A step is whatever a team member said or did at a time. A participant is all that one team member did; its
address, as of every unit, is its first event, so one who never did anything is no unit. What is a shorter
copy of another trajectory has no units: they are the other one's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from ..schemas import Codebook, Event, Events, Trajectory, Unit
from ..schemas.codebook import UnitKind
from ..schemas.event import EventColumns
from ..schemas.trajectory import ParticipantKind

UNIT_KINDS: tuple[UnitKind, ...] = (
    *("utterance", "question_reply", "human_message", "step", "participant", "trajectory"),
)
ASKS = frozenset("?？؟")
"""Question marks: of Latin and most scripts, full-width, Arabic."""
_NO_STEPS = ("start", "wait", "control", "note")
TELLING = 20
"""Characters of an opening query from which on the same words are the same task, and no greeting."""


def opening_query(trajectory: Trajectory) -> int | None:
    """seq of the message that was in the chat before anybody of the team did anything, if there is one.

    A message that was logged as an act, with a status or as an action, is none.
    """
    kinds, events = _kinds(trajectory), columns(trajectory)
    for place in range(min(2, len(events))):
        party = kinds.get(events.actor[place], "environment")
        is_act = events.status[place] is not None or events.action[place] is not None
        if party == "human" and events.kind[place] == "message" and not is_act:
            return events.seq[place]
        if party != "environment":
            return None
    return None


def query_words(trajectory: Trajectory) -> str | None:
    """The words of the opening query, by which runs of a task are known where logs name no instance; None
    where there is none, or hardly more than a greeting.

    Words that more than half of the sessions begin with are a form, or the one task there is, and tell none
    apart: whoever goes by words leaves these out.
    """
    opening = opening_query(trajectory)
    text = next((event.text or "" for event in trajectory.events if event.seq == opening), "")
    words = " ".join(text.lower().split())
    return words if len(words) >= TELLING else None


def columns(trajectory: Trajectory) -> EventColumns:
    """The fields of a trajectory's events as columns, whatever sequence a copy holds them in."""
    return Events.of(trajectory.events).columns


def spans(trajectory: Trajectory, kind: UnitKind) -> Iterator[tuple[Event, ...]]:
    """The events of each unit of a kind, in order; a unit's address is the seq of its first event."""
    return (events for other, events in all_spans(trajectory, (kind,)) if other == kind)


def all_spans(
    trajectory: Trajectory, unit_kinds: Sequence[UnitKind] = UNIT_KINDS
) -> Iterator[tuple[UnitKind, tuple[Event, ...]]]:
    """The kind and the events of each unit of these kinds, kind by kind."""
    events = trajectory.events
    for kind, units in places_by_kind(trajectory, unit_kinds):
        for places in units:
            yield kind, tuple([events[place] for place in places])


def places_by_kind(
    trajectory: Trajectory, unit_kinds: Sequence[UnitKind] = UNIT_KINDS
) -> Iterator[tuple[UnitKind, Sequence[Sequence[int]]]]:
    """Each kind with its units, as indices of their events; all that is ingested passes through here."""
    if trajectory.copy_of is not None:
        return
    events, kinds = columns(trajectory), _kinds(trajectory)
    places = [place for place, live in enumerate(events.live_only) if not live]
    parties = [kinds.get(actor, "environment") for actor in events.actor]
    team_places = [place for place in places if parties[place] != "environment"]
    utterances = [
        place for place in team_places if events.kind[place] == "message" and events.status[place] != "failed"
    ]
    for kind in unit_kinds:
        if kind == "trajectory":
            yield kind, [places]
        elif kind == "utterance":
            yield kind, [(place,) for place in utterances]
        elif kind == "human_message":
            yield kind, [(place,) for place in utterances if parties[place] == "human"]
        elif kind == "question_reply":
            pairs = itertools.pairwise(utterances)
            yield kind, [(one, other) for one, other in pairs if _is_answered(one, other, parties, events)]
        elif kind == "step":
            yield kind, [(place,) for place in team_places if events.kind[place] not in _NO_STEPS]
        else:
            by_actor: dict[str, list[int]] = {}
            for place in team_places:
                by_actor.setdefault(events.actor[place], []).append(place)
            yield kind, list(by_actor.values())


def _is_answered(question: int, reply: int, parties: Sequence[ParticipantKind], events: EventColumns) -> bool:
    """Whether an agent's question has a human's message for the next one in the dialogue."""
    return parties[reply] == "human" and parties[question] == "agent" and asks(events.text[question])


def asks(text: str | None) -> bool:
    """Whether a message has a question mark in it."""
    return text is not None and any(mark in text for mark in ASKS)


def dialogue(trajectory: Trajectory) -> list[Event]:
    """The messages between team members, the opening query included, in order."""
    return [event for _, (event,) in all_spans(trajectory, ("utterance",))]


def cut(trajectory: Trajectory, codebook: Codebook, *, include_query: bool = False) -> Iterator[Unit]:
    """The units of a trajectory under a codebook, with as much transcript as its context allows.

    There are none where the codebook is not for this trajectory.
    """
    if not codebook.applies(trajectory):
        return
    opening = None if include_query else opening_query(trajectory)
    transcript = trajectory.events if codebook.context != "none" else ()
    for events in spans(trajectory, codebook.unit):
        is_trajectory = codebook.unit == "trajectory"
        if codebook.unit not in ("trajectory", "participant") and events[0].seq == opening:
            continue
        # Not validated, which would look through the transcript and copy it for every unit of a long log.
        yield Unit.model_construct(
            trajectory_id=trajectory.id,
            kind=codebook.unit,
            event=None if is_trajectory else events[0].seq,
            events=events,
            participants=trajectory.participants,
            transcript=transcript,
            task=trajectory.task,
        )


def _kinds(trajectory: Trajectory) -> dict[str, ParticipantKind]:
    """Participant -> kind."""
    return {participant.name: participant.kind for participant in trajectory.participants}
