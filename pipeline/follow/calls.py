"""An advisor that watches: an alert where a person's next step is expected to gain more than a threshold."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...schemas import Trajectory
from ..advise import Advisor
from ..advise.advice import Advice, advise
from ..advise.states import has_ended, steps
from ..store.ledgers import ledger
from .alerts import Alert, Emit


@dataclass
class Calls:
    """Asks the advisor once a step of each trajectory; for one that was there before, only once it grows."""

    emit: Emit
    advisor: Advisor
    above: float
    initial: Mapping[str, int] = field(default_factory=dict)
    """Trajectory -> seq of the last event that was there before."""
    _step_counts: dict[str, int] = field(default_factory=dict)
    """How many steps a trajectory had when it was last looked at."""

    async def __call__(self, trajectories: Sequence[Trajectory]) -> None:
        """Look at trajectories as they are now."""
        for trajectory in trajectories:
            seqs = [step.seq for step in steps(trajectory)]
            initial = self.initial.get(trajectory.id)
            before = None if initial is None else sum(seq <= initial for seq in seqs)
            previous = self._step_counts.get(trajectory.id, before)
            self._step_counts[trajectory.id] = len(seqs)
            if len(seqs) == previous or has_ended(trajectory):
                continue
            advice = await asyncio.to_thread(advise, self.advisor, trajectory)
            if advice.gain > self.above:
                self.emit(alert(advice))


def alert(advice: Advice) -> Alert:
    """The advice as an alert, with what it rests on."""
    because = [{"what": one.what, "weight": round(one.weight, 4)} for one in advice.features]
    return {
        "alert": "call_a_person",
        "gain": round(advice.gain, 4),
        "step": advice.step,
        "call": advice.call,
        "policy": advice.policy,
        "lambda": advice.penalty,
        "because": because,
        "time": ledger.now(),
        "trajectory": advice.trajectory,
        "native_id": advice.native_id,
        **({} if advice.event is None else {"event": advice.event}),
    }
