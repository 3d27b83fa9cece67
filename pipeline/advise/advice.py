"""An advisor's advice on a trajectory: who should act next, what a person's step would gain, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ...annotation.statistics.intervals import Floats
from ...schemas import Trajectory
from .advisor import Advisor, PolicySet
from .features import StateFeatures, View
from .policies import Ensemble, Linear, Model, Rule
from .states import State, Step, has_ended, state, states

SHOWN = 5
"""Steps and features that are named."""
WEIGHED = 100
"""Last steps that are weighed: each is a walk through the whole path."""
APART = (
    "the policy and the expected gain, which is learnt apart, say different things: the policy is what "
    "`coaudit advise evaluate` tries"
)


@dataclass(frozen=True)
class Reason:
    """A feature or a step, with how much less the expected gain would be without it."""

    what: str
    weight: float
    event: int | None = None


@dataclass(frozen=True)
class Advice:
    """Whether to call a person for the next step; `gain` is what that should earn, its price included."""

    trajectory: str
    native_id: str
    event: int | None
    """The seq of the last step that was seen."""
    step: int
    """The number of the step that comes next, from 1."""
    call: bool
    chance: float
    """The chance that the policy calls a person."""
    gain: float
    policy: str
    rule: str | None
    penalty: float
    features: tuple[Reason, ...]
    steps: tuple[Reason, ...]
    ended: bool
    advisor: str
    notes: tuple[str, ...]


def advise(advisor: Advisor, trajectory: Trajectory, penalty: float | None = None) -> Advice:
    """The advice for the next step of a trajectory."""
    trained, note = advisor.at(penalty)
    now = state(trajectory)
    name = trained.chosen if now.question else trained.without_question
    policy, model = trained.policies[name], trained.gains[name]
    features = advisor.view.see([now])
    chance, gain = float(policy.chance(features)[0]), float(model.score(features)[0])
    over = has_ended(trajectory)
    call = chance > 0.5 and not over
    notes = _notes(advisor, trained, now, note, name, over=over)
    if not over and call != (gain > 0):
        notes.append(APART)
    return Advice(
        trajectory=trajectory.id,
        native_id=trajectory.native_id,
        event=now.last.seq if now.last else None,
        step=now.length + 1,
        call=call,
        chance=chance,
        gain=gain,
        policy=name,
        rule=str(policy) if isinstance(policy, Rule) else None,
        penalty=trained.penalty,
        features=tuple(_features(model, features, advisor.view)),
        steps=tuple(_steps(advisor, model, now, gain)),
        ended=over,
        advisor=advisor.version,
        notes=tuple(notes),
    )


def _notes(
    advisor: Advisor, trained: PolicySet, now: State, note: str | None, name: str, *, over: bool
) -> list[str]:
    notes = [note] if note else []
    if over:
        notes.append("its outcome is known: nobody needs to step in any more")
    if name != trained.chosen:
        notes.append(f"no question text: {name!r} is followed in place of {trained.chosen!r}")
    if now.last and f"last: action {now.last.action[:40]}" not in advisor.view.columns:
        notes.append(f"training never saw the action {now.last.action[:40]!r}: only what is known is weighed")
    if now.length >= advisor.view.cap:
        notes.append(f"training episodes took {advisor.view.cap} steps at most")
    return notes


def _features(model: Model, features: StateFeatures, view: View) -> list[Reason]:
    """The largest terms of a linear model's score, or of the linear models of an ensemble; none of trees."""
    parts = _parts(model, features, view)
    best = sorted(parts, key=lambda reason: -abs(reason.weight))
    return [reason for reason in best[:SHOWN] if abs(reason.weight) > 1e-6]


def _parts(model: Model, features: StateFeatures, view: View) -> list[Reason]:
    models = model.models if isinstance(model, Ensemble) else (model,)
    linear = [regression for regression in models if isinstance(regression, Linear)]
    total: dict[str, float] = {}
    for regression in linear:
        row = np.clip((features.process[0] - regression.mean) / regression.scale, -4, 4) * regression.process
        for name, weight in zip(features.columns, row, strict=True):
            total[name] = total.get(name, 0.0) + float(weight) / len(models)
        for block, weights in regression.words.items():
            for word, weight in _words(getattr(features, block), getattr(view, block), weights):
                label = f"{'question' if block == 'question' else 'last step'} says {word!r}"
                total[label] = total.get(label, 0.0) + weight / len(models)
    return [Reason(name, weight) for name, weight in total.items()]


def _words(row: Any, fitted: Any, weights: Floats) -> list[tuple[str, float]]:
    if row is None or fitted is None:
        return []
    names, places = fitted.get_feature_names_out(), row.indices
    return [(str(names[i]), float(v * weights[i])) for i, v in zip(places, row.data, strict=True)]


def _steps(advisor: Advisor, model: Model, now: State, gain: float) -> list[Reason]:
    """How much less gain would be expected if the first or one of the last steps had said nothing and not
    failed."""
    if not now.length:
        return []
    places = sorted({0, *range(max(0, now.length - WEIGHED), now.length)})
    scores = model.score(advisor.view.see([_without_step(now, place) for place in places]))
    reasons = [
        Reason(_step(now.path[place]), gain - float(score), now.path[place].seq)
        for place, score in zip(places, scores, strict=True)
    ]
    return sorted(reasons, key=lambda reason: -abs(reason.weight))[:SHOWN]


def _without_step(now: State, place: int) -> State:
    step = replace(now.path[place], thought="", argument="", observation="", failed=False)
    return replace(now, path=(*now.path[:place], step, *now.path[place + 1 :]))


def _step(step: Step) -> str:
    who = "person" if step.human else "agent"
    return f"{who}: {step.action} {step.argument[:60]}".strip() + (" (failed)" if step.failed else "")


def course(advisor: Advisor, trajectory: Trajectory, penalty: float | None = None) -> list[dict[str, Any]]:
    """The advice before each step that was taken, and for the next one: event, call, gain."""
    trained, _ = advisor.at(penalty)
    before = states(trajectory)
    name = trained.chosen if before[0].question else trained.without_question
    features = advisor.view.see(before)
    calls = trained.policies[name].chance(features)
    gains = trained.gains[name].score(features)
    steps: list[Step | None] = [*before[-1].steps, None]
    return [
        {
            "event": step.seq if step else None,
            "human": step.human if step else None,
            "call": bool(call > 0.5),
            "gain": float(gain),
        }
        for step, call, gain in zip(steps, calls, gains, strict=True)
    ]


def document(advice: Advice) -> dict[str, Any]:
    """The advice as JSON; λ under its name."""
    result = asdict(advice)
    result["lambda"] = result.pop("penalty")
    return result


def lines(advice: Advice) -> Sequence[str]:
    """The advice for reading."""
    who = "call a person" if advice.call else "let the agent go on"
    if advice.ended:
        who = "it has ended"
    result = [f"{advice.native_id}: {who} (step {advice.step})"]
    if not advice.ended:
        price = f"at λ = {advice.penalty:g}, its price included"
        result.append(f"a person's step should gain {advice.gain:+.3f} {price}")
    result.append(f"policy: {advice.policy}" + (f" ({advice.rule})" if advice.rule else ""))
    for reason in advice.features:
        result.append(f"  {reason.weight:+.3f}  {reason.what}")
    for reason in advice.steps:
        result.append(f"  {reason.weight:+.3f}  event {reason.event}, {reason.what}")
    return [*result, *(f"note: {note}" for note in advice.notes)]
