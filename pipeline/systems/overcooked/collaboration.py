"""Requests and answers in Collab-Overcooked: which are right, and what is wrong with the other requests.

With H the responder's completed actions, R what was requested and R̂ what the responder planned:
c1 = ITES(H + R, H) judges the request, c3 = ITES(H + R̂, H) the answer, c2 = ITES(H + R, H + R̂) compares
them; ITES (Eq. 3) is the difference of the best TES over the responder's references.

As released a dialogue is one collaboration, begun by who speaks first. In the paper it is begun by who states
a `request(...)` (appendix A.1.2), whoever spoke before, and the answer is what the other one plans after
that.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ....schemas import Event, Finding, Trajectory
from .efficiency import best_reference, can, prefix_length, tes, valid_actions
from .reader import AGENTS
from .references import Reference, without_spaces

Definition = Literal["released", "paper"]
_REQUEST = re.compile(r"request\((.+?)\)")
_CALL = re.compile(r"(?<!\w)\w++\(.*?\)")


@dataclass(frozen=True, slots=True)
class Collaboration:
    """One dialogue, judged. `request_cites` and `answer_cites` are the seqs that it rests on."""

    trajectory: str
    timestep: int
    initiator: int
    responder: int
    requested_actions: tuple[str, ...]
    answered_actions: tuple[str, ...]
    history: tuple[str, ...]
    initiating: float
    """c1"""
    comparison: float
    """c2"""
    responding: float
    """c3"""
    asked_hand_overs: frozenset[int] = frozenset()
    """Indices of the responder's hand-overs that the request furthers."""
    given_hand_overs: frozenset[int] = frozenset()
    """The same of the answer."""
    request_cites: tuple[int, ...] = ()
    answer_cites: tuple[int, ...] = ()

    @property
    def initiated(self) -> bool:
        """The request furthers the task."""
        return self.initiating > 0

    @property
    def responded(self) -> bool:
        """The answer furthers the task."""
        return self.responding > 0

    @property
    def agreement(self) -> str:
        """The sign of c2: `>0` where the answer is worth less than what was asked, `<0` where it is worth
        more."""
        return ">0" if self.comparison > 0 else "<0" if self.comparison < 0 else "=0"

    @property
    def code(self) -> int:
        """As released: 0 both right, 1 only the request, 2 only the answer, 3 neither."""
        return (not self.initiated) * 2 + (not self.responded)


def compare(
    request: Sequence[str],
    reply: Sequence[str],
    history: Sequence[str],
    references: Sequence[Sequence[str]],
) -> tuple[float, float, float] | None:
    """(c1, c2, c3), each an ITES (Eq. 3), or None where there is no reference."""
    request_score, reply_score, history_score = (
        tes([*history, *more], references) for more in (request, reply, ())
    )
    if request_score is None or reply_score is None or history_score is None:
        return None
    return request_score - history_score, request_score - reply_score, reply_score - history_score


def collaborations(
    trajectory: Trajectory,
    openings: Iterable[tuple[int, int]],
    histories: Mapping[int, tuple[Sequence[str], Sequence[str]]],
    reference: Reference,
    definition: Definition = "released",
) -> Iterator[Collaboration]:
    """Judge the collaborations of each dialogue (timestep, opener) with both agents' histories up to then.

    As released there is one a dialogue, and one in which nobody spoke requests nothing. In the paper there is
    one for each agent who states a request.
    """
    dialogues = _dialogues(trajectory)
    for step, opener in openings:
        entries = dialogues.get((step, AGENTS[opener]), [])
        for initiator in _initiators(entries, opener, definition):
            history = histories[step][1 - initiator]
            result = _collaboration(trajectory.id, step, initiator, entries, history, reference, definition)
            if result is not None:
                yield result


def _initiators(entries: Sequence[Event], opener: int, definition: Definition) -> list[int]:
    if definition == "paper":
        return list(dict.fromkeys(AGENTS.index(e.actor) for e in entries if requests(plan(e))))
    return [next((AGENTS.index(e.actor) for e in entries if e.kind == "message"), opener)]


def _collaboration(
    trajectory: str,
    step: int,
    initiator: int,
    entries: Sequence[Event],
    history: Sequence[str],
    reference: Reference,
    definition: Definition,
) -> Collaboration | None:
    """None where there is no reference for the responder."""
    responder = 1 - initiator
    asking = [e for e in entries if e.actor == AGENTS[initiator]]
    answer = _answer([e for e in entries if e.actor == AGENTS[responder]], asking, definition)
    request = tuple(action for e in asking for action in requests(plan(e)) if can(responder, action))
    actions = calls(plan(answer)) if answer else ()
    reply = tuple(action for action in actions if can(responder, action))
    references = reference.of(responder)
    scores = compare(request, reply, history, references)
    if scores is None:
        return None
    return Collaboration(
        trajectory, step, initiator, responder, request, reply, tuple(history), *scores,
        asked_hand_overs=_hand_overs(history, request, references) if scores[0] > 0 else frozenset(),
        given_hand_overs=_hand_overs(history, reply, references) if scores[2] > 0 else frozenset(),
        request_cites=tuple(e.seq for e in asking if requests(plan(e)) or e.kind == "message"),
        answer_cites=(answer.seq,) if answer else (),
    )  # fmt: skip


def _answer(theirs: Iterable[Event], asking: Iterable[Event], definition: Definition) -> Event | None:
    """The event that answers: as released the responder's first plan with any call; in the paper the first
    one after the request that takes on an action."""
    if definition == "released":
        return next((e for e in theirs if _CALL.search(_up_to_last_call(plan(e)))), None)
    since = next((e.seq for e in asking if requests(plan(e))), 0)
    return next((e for e in theirs if e.seq > since and calls(plan(e))), None)


def _hand_overs(
    history: Sequence[str], more: Sequence[str], references: Sequence[Sequence[str]]
) -> frozenset[int]:
    """Indices of the best reference's hand-overs to which the steps lead that `more` adds to a history."""
    after = valid_actions([*history, *more])
    right = best_reference(after, references) or ()
    if not right:
        return frozenset()
    lengths = range(prefix_length(valid_actions(history), right), prefix_length(after, right))
    return frozenset(sum(step.startswith("place_obj_on_counter") for step in right[:n]) for n in lengths)


def _dialogues(trajectory: Trajectory) -> Mapping[tuple[int, str], list[Event]]:
    """What was said and noted in each dialogue, by (timestep, who opened it)."""
    dialogues: dict[tuple[int, str], list[Event]] = defaultdict(list)
    for event in trajectory.events:
        if event.kind in ("message", "note") and event.action:
            step, opener = (event.action.arguments.get(name) for name in ("timestep", "opener"))
            if isinstance(step, int) and isinstance(opener, str):
                dialogues[step, opener].append(event)
    return dialogues


def plan(event: Event) -> str:
    """The plan line of what an agent said or noted."""
    return str(event.action.arguments.get("plan") or "") if event.action else ""


def _up_to_last_call(text: str) -> str:
    """Each line of a text up to its last parenthesis: no call ends behind it, so that none is searched for
    there."""
    return "\n".join(line[: line.rfind(")") + 1] for line in text.split("\n"))


def requests(line: str) -> tuple[str, ...]:
    """The actions that a plan requests, as the released pattern finds them."""
    return tuple(
        without_spaces(inside).strip("'\"") + ")" for inside in _REQUEST.findall(_up_to_last_call(line))
    )


def calls(line: str) -> tuple[str, ...]:
    """The actions that a plan takes on itself: all calls but requests and waits."""
    items = (without_spaces(call) for call in _CALL.findall(_up_to_last_call(line)))
    return tuple(call for call in items if "request" not in call and "wait" not in call)


def errors(rows: Iterable[Collaboration], reference: Reference) -> Iterator[Finding]:
    """A finding for each request that furthers nothing, sorted as by the paper's annotators; one that names
    no action is left out.

    `irrelevant`: in no reference of the responder. `repetitive`: done already and not needed again.
    `premature`: needed, but not yet. The first requested action that is not the next one of the reference
    decides.
    """
    for collaboration in rows:
        if collaboration.initiated or not collaboration.requested_actions:
            continue
        code, action = _error(collaboration, reference)
        why = f"{action} is {code} at timestep {collaboration.timestep}"
        yield Finding(code, collaboration.trajectory, collaboration.request_cites, why)


def _error(collaboration: Collaboration, reference: Reference) -> tuple[str, str]:
    references = reference.of(collaboration.responder)
    history = valid_actions(collaboration.history)
    right = best_reference(history, references) or ()
    position = prefix_length(history, right) if right else 0
    for action in collaboration.requested_actions:
        if action == (right[position] if position < len(right) else None):
            position += 1
        elif not any(action in sequence for sequence in references):
            return "irrelevant", action
        elif action in right[position:]:
            return "premature", action
        else:
            return "repetitive", action
    return "repetitive", collaboration.requested_actions[0]
