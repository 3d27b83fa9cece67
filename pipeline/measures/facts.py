"""What measures rest on: the outcomes a log recorded, and findings that cite the events behind them."""

from __future__ import annotations

from dataclasses import dataclass

from coaudit.schemas.trajectory import Outcome, Trajectory


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule found something in a trajectory; `cites` are the seqs of the events that show it."""

    code: str
    trajectory: str
    cites: tuple[int, ...]
    why: str


def recorded(trajectory: Trajectory, name: str) -> Outcome:
    """The outcome of that name; where there is none, an outcome without value that says so."""
    for outcome in trajectory.outcomes:
        if outcome.name == name:
            return outcome
    return Outcome(name=name, reason=f"the log records no {name}")
