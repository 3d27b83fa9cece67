"""`coaudit advise evaluate`: what an advisor's choice earns on other questions, beside its rivals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...schemas import Trajectory
from ...schemas.text import count_of
from ..errors import UsageError
from .advisor import Advisor, PolicySet
from .behaviour import LEAST_CHANCE
from .choice import REFERENCE
from .features import StateFeatures, View, view
from .fingerprints import training_questions
from .policies import BASELINES, ORACLE, Policy, rules
from .scores import LEAST_KNOWN, SURE, UNSEEN, WEIGHTED, Bench, Score, bench, is_sampled
from .states import Episode, State, episodes
from .training import estimate_document
from .trees import counts, forest

CURVE = tuple(round(0.02 * k, 2) for k in range(11))


def evaluate(
    advisor: Advisor,
    trajectories: Sequence[Trajectory],
    penalty: float | None = None,
    *,
    outcome: str | None = None,
    keep_seen: bool = False,
) -> dict[str, Any]:
    """Rows of every baseline, rule, learnt policy and the oracle, with the chosen; the curve over λ; notes.

    Questions that the advisor learnt from are left out unless `keep_seen`; UsageError where all are such.
    """
    paths, left_out = episodes(trajectories, outcome)
    fresh, notes, seen_before = _unseen_paths(advisor, paths, keep_seen)
    if left_out:
        notes.append(
            f"{count_of(left_out, 'trajectory', 'trajectories')} without an outcome or a step left out"
        )
    woods = forest(fresh)
    features = advisor.view.see(woods.states)
    # Who acted here may depend on words that training never saw.
    on = bench(woods, view(woods.states).see(woods.states) if is_sampled(woods) else features)
    trained, note = advisor.at(penalty)
    price = trained.penalty if penalty is None else penalty
    lacks_question = not any(state.question for state in woods.states)
    choice = trained.without_question if lacks_question else trained.chosen
    notes += [note] if note else []
    if choice != trained.chosen:
        notes.append(f"no question texts here: {choice!r} is used instead of {trained.chosen!r}")
    notes += _gap_notes(woods.states, advisor.view, counts(woods), is_sample=on.behaviour is not None)
    cap = int(woods.depth.max()) + 1
    policies = _policies(trained, cap)
    scores = {name: (kind, on.score(policy.chance(features))) for name, (kind, policy) in policies.items()}
    notes += _unknown_notes(
        {name: score.effective for name, (_, score) in scores.items() if on.is_thin(score)}
    )
    scores = {name: (kind, on.if_known(score)) for name, (kind, score) in scores.items()}
    notes += _weight_notes(on, {name: scores[name][1] for name in dict.fromkeys((*BASELINES, choice))})
    if on.behaviour is None:
        scores[ORACLE] = ("oracle", on.score(woods.oracle(price)))
    rows = [_row(name, kind, score, scores, price, cap, choice) for name, (kind, score) in scores.items()]
    return {
        "lambda": price,
        "trained": trained.penalty,
        "policy": choice,
        "rows": rows,
        "share": _share(rows),
        "tried": {"candidates": trained.report["tried"], "learnt": trained.report["learnt"]},
        "curve": _curve(advisor, on, features, lacks_question=lacks_question),
        "already_seen": seen_before,
        **counts(woods),
        "sampled": on.behaviour is not None,
        "advisor": advisor.version,
        "trained_on": advisor.about,
        "notes": notes,
    }


def _unseen_paths(
    advisor: Advisor, paths: Sequence[Episode], keep: bool
) -> tuple[Sequence[Episode], list[str], int]:
    before = training_questions(paths, advisor.fingerprints)
    if not before:
        return paths, [], 0
    total, number = len({path.question for path in paths}), len({question for _, question in before})
    sentence = f"the advisor learnt from {number} of these {count_of(total, 'question', 'questions')}"
    if keep:
        return paths, [f"{sentence}: what it earns on them says nothing about others"], number
    rest = [path for path in paths if (path.experiment, path.question) not in before]
    if not rest:
        raise UsageError(
            f"{sentence}, so nothing is left to evaluate on; --keep-seen evaluates on them anyway"
        )
    return rest, [f"{sentence}, which are left out"], number


def _gap_notes(
    states: Sequence[State], view: View, number: Mapping[str, int], *, is_sample: bool
) -> list[str]:
    """Notes on what training never saw, and on what is missing here."""
    notes = []
    number_of_action = Counter(state.last.action[:40] for state in states if state.last)
    unknown = sorted(name for name in number_of_action if f"last: action {name}" not in view.columns)
    if unknown:
        number_of = sum(number_of_action[name] for name in unknown)
        listing = ", ".join(unknown[:5])
        notes.append(
            f"{number_of} of {len(states)} states follow actions that were not in the training data "
            f"({listing})"
        )
    longer = sum(state.length >= view.cap for state in states)
    if longer:
        notes.append(
            f"{count_of(longer, 'state', 'states')} beyond {view.cap} steps, the most in the training data"
        )
    if is_sample:
        notes.append(f"one choice in nearly every state: {WEIGHTED}; there is no oracle")
        notes.append(UNSEEN)
    elif number["one_choice"]:
        notes.append(
            f"{number['one_choice']} states, in {number['incomplete_questions']} questions, have one choice "
            "recorded, which every policy is forced to take"
        )
    return notes


def _unknown_notes(thin: Mapping[str, float]) -> list[str]:
    if not thin:
        return []
    listing = ", ".join(f"{name} ({effective:.1f})" for name, effective in list(thin.items())[:5])
    more = f" and {len(thin) - 5} others" if len(thin) > 5 else ""
    return [
        f"no value where a policy's choices were logged in the equivalent of fewer than {LEAST_KNOWN} "
        f"questions: {listing}{more}"
    ]


def _weight_notes(on: Bench, scores: Mapping[str, Score]) -> list[str]:
    """Notes where importance weights are extreme, so that few questions speak for many."""
    if on.behaviour is None:
        return []
    notes = []
    certain = int((np.abs(on.behaviour - 0.5) >= 0.5 - LEAST_CHANCE - 1e-9).sum())
    if certain:
        notes.append(
            f"who acts was almost certain in {certain} of {len(on.behaviour)} states: the other's "
            f"probability is set to {LEAST_CHANCE:g}, and little is known of what they would have done there"
        )
    few = {name: score.effective for name, score in scores.items() if 0 < score.effective < SURE}
    if few:
        listing = ", ".join(f"{name} ({effective:.0f})" for name, effective in few.items())
        notes.append(
            f"extreme weights: of {len(set(on.woods.clusters))} questions, the equivalent of fewer than "
            f"{SURE} supports {listing}; the intervals may be too narrow"
        )
    return notes


def _policies(trained: PolicySet, cap: int) -> dict[str, tuple[str, Policy]]:
    """Every baseline and rule, then what was learnt; the chosen rule may be one of longer episodes."""
    result: dict[str, tuple[str, Policy]] = {name: ("baseline", rule) for name, rule in BASELINES.items()}
    result |= {name: ("rule", rule) for name, rule in rules(cap).items()}
    return result | {name: (trained.kinds[name], policy) for name, policy in trained.policies.items()}


def _row(
    name: str,
    kind: str,
    score: Score,
    scores: Mapping[str, tuple[str, Score]],
    penalty: float,
    cap: int,
    choice: str,
) -> dict[str, Any]:
    result = score.estimate(penalty, cap)
    apart = score.minus(scores[REFERENCE][1], penalty)
    return {
        "policy": name,
        "kind": kind,
        "chosen": name == choice,
        "lambda": penalty,
        "task_reward": score.task,
        "human_steps": score.human_steps,
        "human_intervention_rate": score.rate,
        "reward": result.value,
        "low": result.low,
        "high": result.high,
        "n": result.clusters,
        "effective": score.effective,
        **estimate_document("difference", apart),
    }


def _share(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """The part of the way from agent-only to the oracle that the chosen covers."""
    oracle = next((row["difference"] for row in rows if row["policy"] == ORACLE), None)
    gain = next(row["difference"] for row in rows if row["chosen"])
    return gain / oracle if oracle and gain is not None else None


def _curve(
    advisor: Advisor, on: Bench, features: StateFeatures, *, lacks_question: bool
) -> list[dict[str, Any]]:
    """Reward and interventions over λ: of baselines, of the oracle, and of what is followed at each λ."""
    fixed = {name: on.if_known(on.score(rule.chance(features))) for name, rule in BASELINES.items()}
    rows: list[dict[str, Any]] = []
    by_penalty: dict[float, Score] = {}
    for penalty in sorted({*CURVE, *advisor.penalties}):
        trained, _ = advisor.at(penalty)
        if trained.penalty not in by_penalty:
            policy = trained.policies[trained.without_question if lacks_question else trained.chosen]
            by_penalty[trained.penalty] = on.if_known(on.score(policy.chance(features)))
        scores = {**fixed, "chosen": by_penalty[trained.penalty]}
        if on.behaviour is None:
            scores[ORACLE] = on.score(on.woods.oracle(penalty))
        rows += [_point(name, penalty, score, trained.penalty) for name, score in scores.items()]
    return rows


def _point(name: str, penalty: float, score: Score, trained: float) -> dict[str, Any]:
    return {
        "policy": name,
        "lambda": penalty,
        "task_reward": score.task,
        "human_steps": score.human_steps,
        "human_intervention_rate": score.rate,
        "reward": score.mean(penalty),
        **({"trained": trained} if name == "chosen" else {}),
    }
