"""Small hand-written trajectories."""

from __future__ import annotations

from coaudit.schemas import Action, Event, Participant, Trajectory
from coaudit.schemas.event import EventKind

TEAM = (
    Participant(name="human", kind="human"),
    Participant(name="agent", kind="agent"),
    Participant(name="environment", kind="environment"),
)
KINDS: dict[str, EventKind] = {
    "ASK": "confirm_request",
    "ACCEPT": "confirm_accept",
    "REJECT": "confirm_reject",
    "WAIT": "wait",
    "FINISH": "finish",
}


def team(*said: tuple[str, str], key: str = "t1", failing: dict[int, str] | None = None) -> Trajectory:
    """A trajectory; (actor, "text") is a message, (actor, "NAME(argument)") what was done.

    `failing` gives the error of the events, by seq, that failed. Event 0 is the start.
    """
    start = Event(seq=0, actor="environment", kind="start", text="Plan a trip.", status="succeeded")
    errors = failing or {}
    events = [_event(seq, actor, what, errors.get(seq)) for seq, (actor, what) in enumerate(said, start=1)]
    return Trajectory(
        id=key,
        native_id=key,
        source="here",
        system="cogym",
        task="travel_planning",
        participants=TEAM,
        events=(start, *events),
    )


def _event(seq: int, actor: str, what: str, error: str | None) -> Event:
    status = "failed" if error else "succeeded"
    name, call, argument = what.partition("(")
    if not (call and name.isupper() and what.endswith(")")):
        return Event.model_validate(
            {"seq": seq, "actor": actor, "kind": "message", "text": what, "status": status}
        )
    return Event.model_validate(
        {
            "seq": seq,
            "actor": actor,
            "kind": KINDS.get(name, "action"),
            "action": Action(name=name, arguments={"text": argument[:-1]} if argument != ")" else {}),
            "status": status,
            "error": error,
        }
    )
