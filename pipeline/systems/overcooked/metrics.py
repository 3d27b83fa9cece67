"""Collab-Overcooked's metrics of one run: success in time, TES, progress, initiating and responding.

`released` is what the repository computes, `paper` what the text says, where they differ: who initiates, and
out of how many, see `collaboration`. An undefined value (no reference, no dialogue) is None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ....schemas import Event, Measure, Trajectory
from ....schemas.trajectory import recorded_outcome
from .collaboration import Collaboration, Definition, collaborations, errors
from .efficiency import tes
from .reader import AGENTS, NO_TURNS
from .references import Reference

GAMMA = 1.5
"""A task may take this many times its optimal number of steps."""
OPTIMAL_STEPS = {1: 16, 2: 23, 3: 35, 4: 32, 5: 55, 6: 64}
"""By level."""
CELLS = {
    (True, True): "both right",
    (True, False): "request right",
    (False, True): "answer right",
    (False, False): "neither right",
}
"""(Request right, answer right) -> the cell's name."""
ERRORS = ("premature", "repetitive", "irrelevant")
NO_DIALOGUE = "the chef opened no dialogue"
"""Why a run has no initiating or responding capability as released."""
NO_PLANS = "the log does not have the agents' plans, which hold their requests"
"""Why nothing is known of a run's collaborations."""
UNANSWERABLE = "the reference has no action for who was asked"
"""Why a run has none though the chef opened a dialogue."""


def time_limit(reference: Reference | None, gamma: float = GAMMA, optimal: int | None = None) -> int | None:
    """Steps within which the order must be out; None where the optimal number is not known."""
    steps = optimal if optimal is not None else OPTIMAL_STEPS.get(reference.level) if reference else None
    return None if steps is None else int(gamma * steps)


def timestep(event: Event) -> int | None:
    """The step of its run at which something happened."""
    step = event.action.arguments.get("timestep") if event.action else None
    return step if isinstance(step, int) else None


@dataclass(frozen=True, slots=True)
class Run:
    """A run as far as its time limit counts it."""

    trajectory: Trajectory
    events: tuple[Event, ...]
    success: bool
    last: int | None

    def actions(self, agent: int) -> list[tuple[int, str]]:
        """(timestep, action) of all that an agent completed."""
        return [
            (timestep(event) or 0, event.action.raw or "")
            for event in self.events
            if event.actor == AGENTS[agent]
            and event.kind == "action"
            and event.status == "succeeded"
            and event.action
        ]

    def dialogues(self) -> list[tuple[int, int]]:
        """(timestep, opener) of every dialogue."""
        dialogues = recorded_outcome(self.trajectory, "dialogues").data
        items = [item for item in dialogues if isinstance(item, dict)] if isinstance(dialogues, list) else []
        places = [(int(str(item["timestep"])), AGENTS.index(str(item["opener"]))) for item in items]
        return [place for place in places if self.last is None or place[0] <= self.last]


def run(trajectory: Trajectory, limit: int | None) -> Run:
    """The run up to its order (a log may go on after it), cut at its limit as the released `time_step.py`
    cuts it: a success at the limit is kept."""
    success = recorded_outcome(trajectory, "success").value == 1
    last = recorded_outcome(trajectory, "last_timestep")
    end = None if last.value is None else int(last.value)
    finish = last.data.get("finished_at") if isinstance(last.data, dict) else None
    if success and isinstance(finish, int) and (limit is None or finish <= limit):
        return Run(trajectory, _events_before(trajectory, finish + 1), success, finish)
    if limit is None or end is None or (success and end <= limit):
        return Run(trajectory, trajectory.events, success, end)
    return Run(trajectory, _events_before(trajectory, limit), False, min(end, limit - 1))


def _events_before(trajectory: Trajectory, step: int) -> tuple[Event, ...]:
    """The events of earlier timesteps, and those of none."""
    return tuple(e for e in trajectory.events if (at := timestep(e)) is None or at < step)


def measures(
    trajectory: Trajectory,
    reference: Reference | None,
    definition: Definition = "released",
    gamma: float = GAMMA,
    optimal: int | None = None,
) -> Iterator[Measure]:
    """Every metric of one run against its order's reference."""
    episode = run(trajectory, time_limit(reference, gamma, optimal))
    yield Measure("success_rate", trajectory.id, float(episode.success))
    late = None if episode.success else "the order was not finished in time"
    yield Measure(
        "timesteps", trajectory.id, float(episode.last or 0) if episode.success else None, reason=late
    )
    for name in AGENTS:
        yield _refusals(episode, name)
    if reference is None or not reference.trajectories:
        yield from _without_reference(trajectory, definition)
        return
    yield from _efficiency(episode, reference)
    if not plans_are_logged(trajectory):
        yield from _without_collaborations(trajectory, definition, NO_PLANS)
        return
    items = list(run_collaborations(episode, reference, definition))
    yield from _gains(episode, items, definition)
    yield from _capabilities(episode, items, reference, definition)
    yield from _confusion(episode, items, definition)
    yield from _initiation_errors(episode, items, reference, definition)


def _refusals(episode: Run, name: str) -> Measure:
    """How many of an agent's actions the game refused, which only the log's timesteps tell."""
    if recorded_outcome(episode.trajectory, "dialogues").reason == NO_TURNS:
        return Measure("invalid_actions", episode.trajectory.id, None, reason=NO_TURNS, participant=name)
    refusals = sum(e.actor == name and e.status == "failed" for e in episode.events)
    return Measure("invalid_actions", episode.trajectory.id, float(refusals), participant=name)


def _without_reference(trajectory: Trajectory, definition: Definition) -> Iterator[Measure]:
    reason = f"no reference action trajectories for {trajectory.task!r} (--reference DIR)"
    for name in AGENTS:
        yield Measure("tes", trajectory.id, None, reason=reason, participant=name)
    yield Measure("progress_completeness", trajectory.id, None, reason=reason)
    yield from _without_collaborations(trajectory, definition, reason)


def plans_are_logged(trajectory: Trajectory) -> bool:
    """Whether the log tells what was planned, so that it shows who requested what: a released log has a plan
    with all that an agent said or thought, and nobody acts without."""
    entries = [e for e in trajectory.events if e.action and e.action.name in ("say", "plan")]
    plans = [e.action.arguments["plan"] for e in entries if e.action and "plan" in e.action.arguments]
    if plans:
        return any(plan is not None for plan in plans)
    return not any(e.kind == "action" and e.status == "succeeded" for e in trajectory.events)


def _without_collaborations(trajectory: Trajectory, definition: Definition, reason: str) -> Iterator[Measure]:
    for name in AGENTS:
        yield Measure("ites", trajectory.id, None, reason=reason, participant=name, definition=definition)
    for metric in ("initiating_capability", "responding_capability"):
        yield Measure(metric, trajectory.id, None, reason=reason, definition=definition)


def _efficiency(episode: Run, reference: Reference) -> Iterator[Measure]:
    scores = [tes([action for _, action in episode.actions(agent)], reference.of(agent)) for agent in (0, 1)]
    for name, score in zip(AGENTS, scores, strict=True):
        reason = None if score is not None else "the reference has no action for this agent"
        yield Measure("tes", episode.trajectory.id, score, reason=reason, participant=name)
    there = [score for score in scores if score is not None]
    mean = sum(there) / len(there) if there else None
    reason = None if there else "the reference has no action"
    yield Measure("progress_completeness", episode.trajectory.id, mean, reason=reason)


def _gains(episode: Run, rows: Sequence[Collaboration], definition: Definition) -> Iterator[Measure]:
    """ITES of each agent: the mean gain of what it asked for and what it answered."""
    for agent, name in enumerate(AGENTS):
        gains = [c.initiating for c in rows if c.initiator == agent]
        gains += [c.responding for c in rows if c.responder == agent]
        mean = sum(gains) / len(gains) if gains else None
        reason = None if gains else "took part in no collaboration"
        yield Measure(
            "ites",
            episode.trajectory.id,
            mean,
            float(len(gains)),
            reason,
            participant=name,
            definition=definition,
        )


def _capabilities(
    episode: Run, rows: Sequence[Collaboration], reference: Reference, definition: Definition
) -> Iterator[Measure]:
    """IC and RC (Eqs. 5 and 6): right requests and answers, of all (released) or the required ones (paper).

    A required collaboration counts once, however often it was tried; a request for two counts for both.
    """
    released = definition == "released"
    n = len(rows) if released else reference.required_collaborations
    none = "the reference needs no hand-over"
    if released:
        has_opening = any(opener == 0 for _, opener in episode.dialogues())
        none = UNANSWERABLE if has_opening else NO_DIALOGUE
    initiations = sum(c.initiated for c in rows)
    responses = sum(c.responded for c in rows)
    if not released:
        initiations = len({(c.responder, place) for c in rows for place in c.asked_hand_overs})
        responses = len({(c.responder, place) for c in rows for place in c.given_hand_overs})
    for metric, good in (("initiating_capability", initiations), ("responding_capability", responses)):
        value = min(good, n) / n if n else None
        reason = None if n else none
        yield Measure(metric, episode.trajectory.id, value, float(n), reason, definition=definition)


def _confusion(episode: Run, rows: Sequence[Collaboration], definition: Definition) -> Iterator[Measure]:
    """The cells of initiating × responding, each as a share of the run's collaborations."""
    counts = Counter((c.initiated, c.responded) for c in rows)
    reason = None if rows else "no collaboration was begun"
    for cell, name in CELLS.items():
        share = counts[cell] / len(rows) if rows else None
        yield Measure(
            "collaboration", episode.trajectory.id, share, float(len(rows)), reason,
            scoring=name, definition=definition,
        )  # fmt: skip


def _initiation_errors(
    episode: Run, rows: Sequence[Collaboration], reference: Reference, definition: Definition
) -> Iterator[Measure]:
    """Each class of wrong requests (appendix C.3.1) as a share of the requests that name an action."""
    requests = [c for c in rows if c.requested_actions]
    counts = Counter(finding.code for finding in errors(requests, reference))
    reason = None if requests else "no request names an action"
    for code in ERRORS:
        share = counts[code] / len(requests) if requests else None
        yield Measure(
            "initiation_errors", episode.trajectory.id, share, float(len(requests)), reason,
            scoring=code, definition=definition,
        )  # fmt: skip


def run_collaborations(
    episode: Run, reference: Reference, definition: Definition = "released"
) -> Iterator[Collaboration]:
    """The collaborations of a run; as released only those in dialogues that the chef opened."""
    openings = [
        (step, opener) for step, opener in episode.dialogues() if definition == "paper" or opener == 0
    ]
    chef, assistant = episode.actions(0), episode.actions(1)
    histories = {step: (_until(chef, step), _until(assistant, step)) for step, _ in openings}
    yield from collaborations(episode.trajectory, openings, histories, reference, definition)


def _until(actions: Iterable[tuple[int, str]], step: int) -> list[str]:
    """What was completed up to and including a step."""
    return [action for number, action in actions if number <= step]


def confusion(rows: Iterable[Collaboration]) -> Counter[tuple[str, bool, bool]]:
    """How often (sign of c2, request right, answer right) occurred, as released; the sign is >0, =0 or <0."""
    return Counter((c.agreement, c.initiated, c.responded) for c in rows)


def invalid_actions(trajectories: Iterable[Trajectory]) -> Counter[tuple[str, str]]:
    """How often each agent's plan was refused, by class."""
    return Counter(
        (event.actor, str(event.action.arguments.get("class")))
        for trajectory in trajectories
        for event in trajectory.events
        if event.status == "failed" and event.action
    )
