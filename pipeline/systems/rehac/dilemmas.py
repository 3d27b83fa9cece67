"""The three dilemmas of agents that the ReHAC paper describes, as rules that cite the steps behind them.

The paper shows cases and gives no rule; what is taken for each is said in `dilemmas`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from ....schemas import Event, Finding, Trajectory
from .metrics import normalised, steps

_FOUND_NOTHING = ("Could not find", "No more results")
_NO_ANSWER = re.compile(r"\b(unknown|unclear|ambiguous|cannot|cant|not enough|undetermined)\b", re.IGNORECASE)
_MEANINGS = re.compile(r"\bmay (also )?refer to\b")
_SEVERAL = re.compile(_MEANINGS.pattern + r"|\(disambiguation\)|Similar: \[")


def dilemmas(trajectory: Trajectory) -> Iterator[Finding]:
    """The paper's three: missing information, ambiguity, dead loop; each cites the steps that show it.

    Missing information: two or more different searches in a row found nothing. Ambiguity: an answer that
    says it cannot be told, or a page that names several meanings. Dead loop: the same action again with
    the same result, or three or more searches in a row with nearly the same words, all in vain.
    """
    yield from _missing_information(trajectory)
    yield from _ambiguity(trajectory)
    yield from _dead_loop(trajectory)


def observation(trajectory: Trajectory, event: Event) -> str:
    """What the environment answered to a step; empty where it did not."""
    state = trajectory.states[event.states["public"]] if "public" in event.states else None
    return str(state.get("observation") or "") if isinstance(state, dict) else ""


def _argument(event: Event) -> str:
    arguments = event.action.arguments if event.action else {}
    return normalised(" ".join(str(value) for value in arguments.values()))


def _in_vain(trajectory: Trajectory) -> Iterator[list[Event]]:
    """The longest runs of steps in a row that found nothing."""
    run: list[Event] = []
    for event in steps(trajectory):
        if observation(trajectory, event).startswith(_FOUND_NOTHING):
            run.append(event)
            continue
        if run:
            yield run
        run = []
    if run:
        yield run


def _missing_information(trajectory: Trajectory) -> Iterator[Finding]:
    for run in _in_vain(trajectory):
        if len({_argument(event) for event in run}) >= 2:
            cites = tuple(event.seq for event in run)
            why = f"{len(run)} searches in a row found nothing"
            yield Finding("missing_information", trajectory.id, cites, why)


def _ambiguity(trajectory: Trajectory) -> Iterator[Finding]:
    several = [e.seq for e in steps(trajectory) if _SEVERAL.search(observation(trajectory, e))]
    for event in steps(trajectory):
        if event.kind == "finish" and _NO_ANSWER.search(_argument(event)):
            cites = (*several, event.seq)
            yield Finding("ambiguity", trajectory.id, cites, f"the answer was {_argument(event)!r}")
        elif _MEANINGS.search(observation(trajectory, event)):
            yield Finding("ambiguity", trajectory.id, (event.seq,), "the page names several meanings")


def _dead_loop(trajectory: Trajectory) -> Iterator[Finding]:
    seqs_by_step: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for event in steps(trajectory):
        name = event.action.name if event.action else ""
        seqs_by_step[name, _argument(event), observation(trajectory, event)].append(event.seq)
    repetitions = [tuple(seqs) for seqs in seqs_by_step.values() if len(seqs) > 1]
    for cites in repetitions:
        yield Finding("dead_loop", trajectory.id, cites, "the same action again with the same result")
    for run in _in_vain(trajectory):
        alike = all(_alike(one, other) for one, other in pairwise(run))
        cites = tuple(event.seq for event in run)
        if len(run) >= 3 and alike and not any(set(cites) <= set(seqs) for seqs in repetitions):
            yield Finding("dead_loop", trajectory.id, cites, f"{len(run)} searches in a row, nearly alike")


def _alike(one: Event, other: Event) -> bool:
    """At least half of the words of both are shared."""
    first, second = set(_argument(one).split()), set(_argument(other).split())
    return bool(first | second) and len(first & second) / len(first | second) >= 0.5
