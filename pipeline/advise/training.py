"""`coaudit advise train`: from trajectories with outcomes to an advisor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from ...annotation.statistics.estimate import Estimate
from ...annotation.statistics.intervals import Floats
from ...schemas import Trajectory, content_hash
from ...schemas.text import count_of
from ..errors import CoauditError, UsageError
from .advisor import Advisor, PolicySet, check_penalty
from .choice import CAUTION, FOLDS, REFERENCE, Choice, choose, fit_candidates
from .features import StateFeatures, view
from .fingerprints import fingerprints
from .learners import Lesson, gain_targets, ridge
from .policies import Model, Policy, blocks_of
from .scores import LEAST_KNOWN, UNSEEN, WEIGHTED, Bench, bench
from .states import Episode, episodes
from .trees import Forest, counts, folds, forest

FEWEST = 2 * FOLDS
"""Questions that are needed at the least: two a fold."""
STRENGTH = 300.0
Report = Callable[[str, int, int], None]


def train(
    trajectories: Sequence[Trajectory],
    penalties: Sequence[float],
    *,
    outcome: str | None = None,
    seed: int = 0,
    report: Report = lambda what, count, total: None,
) -> Advisor:
    """An advisor for each penalty λ; CoauditError where nothing can be learned, with why.

    The same trajectories and seed give the same advisor.
    """
    _check_penalties(penalties)
    paths, left_out = episodes(trajectories, outcome)
    _check_actors(paths)
    woods = forest(sorted(paths, key=lambda path: (path.experiment, path.question, path.name)))
    if len(set(woods.clusters)) < FEWEST:
        raise CoauditError(
            f"{count_of(len(set(woods.clusters)), 'question', 'questions')}; at least {FEWEST} are needed, "
            "since some are held out"
        )
    space = view(woods.states)
    features = space.see(woods.states)
    on = bench(woods, features)
    trained = [_train_one(on, features, space.cap, penalty, seed, report) for penalty in penalties]
    about = _about(trajectories, paths, left_out, woods, seed) | {"sampled": on.behaviour is not None}
    return Advisor(space, trained, about, fingerprints(paths))


def _check_penalties(penalties: Sequence[float]) -> None:
    for penalty in penalties:
        check_penalty(penalty)
    if len(set(penalties)) < len(penalties) or not penalties:
        raise UsageError("--penalty: give each value once")


def _check_actors(paths: Sequence[Episode]) -> None:
    """CoauditError where one kind of actor took all the steps."""
    human = sum(step.human for path in paths for step in path.steps)
    total = sum(len(path.steps) for path in paths)
    if human in (0, total):
        who = "people" if human else "agents"
        raise CoauditError(
            f"{count_of(len(paths), 'trajectory', 'trajectories')}, all "
            f"{count_of(total, 'step', 'steps')} by {who}: nothing can be learned about when a "
            "person should step in; agents and people must both have acted"
        )


def _about(
    trajectories: Sequence[Trajectory], paths: Sequence[Episode], left_out: int, woods: Forest, seed: int
) -> dict[str, Any]:
    conditions = sorted({trajectory.condition or "" for trajectory in trajectories})
    rewards = [path.reward for path in paths]
    return {
        "coaudit": version("coaudit"),
        "conditions": conditions,
        "data": content_hash(sorted(trajectory.id for trajectory in trajectories)),
        "trajectories": len(paths),
        "without_outcome": left_out,
        "outcomes": [min(rewards), max(rewards)],
        "seed": seed,
        **counts(woods),
    }


def _train_one(
    on: Bench, features: StateFeatures, cap: int, penalty: float, seed: int, report: Report
) -> PolicySet:
    choice = choose(on, features, cap, penalty, seed, report)
    names = _names_to_keep(choice)
    policies = fit_candidates(
        on, features, penalty, {name: choice.trials[name].candidate for name in names}, seed
    )
    gains, check = {}, {}
    for name in {choice.chosen, choice.without_question}:
        gains[name], check[name] = _gain(on, features, penalty, policies[name], seed)
    kinds = {name: choice.trials[name].candidate.kind for name in names}
    document = _report(on, choice) | {"gain_check": check[choice.chosen]}
    return PolicySet(penalty, choice.chosen, choice.without_question, policies, kinds, gains, document)


def _names_to_keep(choice: Choice) -> list[str]:
    """The chosen, and the most promising of each family that was learnt; rules are made anew."""
    names = [choice.chosen, choice.without_question]
    families: dict[str, str] = {}
    for name, trial in choice.trials.items():
        family = trial.candidate.family
        if trial.candidate.kind == "learnt":
            other = families.get(family)
            if other is None or trial.cautious > choice.trials[other].cautious:
                families[family] = name
    return list(dict.fromkeys([*names, *families.values()]))


def _gain(
    on: Bench, features: StateFeatures, penalty: float, policy: Policy, seed: int
) -> tuple[Model, dict[str, Any]]:
    """A model of the gain of a person's step if `policy` is followed afterwards, and its check on held-out
    questions."""
    blocks = ("last", "question") if "question" in blocks_of(policy) else ("last",)
    fit, woods = ridge(STRENGTH, blocks), on.woods
    lesson = Lesson(woods, features, np.ones(len(woods.states), dtype=bool), penalty, seed, on.behaviour)
    target, weight = gain_targets(lesson, policy.chance(features))
    predictions = np.zeros(len(target))
    fold_of = folds(woods, FOLDS, np.random.default_rng(seed))[woods.tree]
    for fold in range(FOLDS):
        holdout = fold_of == fold
        predictions[holdout] = fit(lesson, target, np.where(holdout, 0.0, weight)).score(features)[holdout]
    return fit(lesson, target, weight), _check(predictions, target, weight)


def _check(predictions: Floats, target: Floats, weight: Floats) -> dict[str, Any]:
    """The mean of the actual gain where a gain was expected, and where none was; weighted by reach."""
    result: dict[str, Any] = {}
    for name, where in (("expected", predictions > 0), ("not_expected", predictions <= 0)):
        total = float(weight[where].sum())
        result[f"states_{name}"] = int((weight[where] > 0).sum())
        result[f"gain_where_{name}"] = float(weight[where] @ target[where]) / total if total > 0 else None
    return result


def _report(on: Bench, choice: Choice) -> dict[str, Any]:
    """The results of cross-validation; a candidate that too few questions tell of has no value."""
    scores = {name: on.if_known(trial.score) for name, trial in choice.trials.items()}
    rows = [
        {
            "policy": name,
            "kind": trial.candidate.kind,
            "chosen": name == choice.chosen,
            "reward": scores[name].mean(choice.penalty),
            "human_steps": scores[name].human_steps,
            "human_intervention_rate": scores[name].rate,
            "effective": trial.score.effective,
            **estimate_document("difference", scores[name].minus(scores[REFERENCE], choice.penalty)),
        }
        for name, trial in choice.trials.items()
    ]
    return {
        "candidates": rows,
        "tried": len(rows),
        "learnt": sum(trial.candidate.learn is not None for trial in choice.trials.values()),
        "rule": f"largest difference to agent-only less {CAUTION:g} standard error, on held-out questions",
        "procedure": estimate_document("difference", choice.procedure),
        "oracle_difference": choice.oracle_gain,
    }


def estimate_document(name: str, result: Estimate) -> dict[str, Any]:
    """An estimate as JSON: value, standard error, low, high, and why any is null."""
    document = {
        name: result.value,
        f"{name}_error": result.error,
        f"{name}_low": result.low,
        f"{name}_high": result.high,
    }
    return document | ({"reason": result.reason} if result.reason else {})


def documents(advisor: Advisor) -> Mapping[str, Any]:
    """The document that `train --json` prints."""
    notes = _notes(advisor.about)
    for one in advisor.policy_sets:
        effective = next(row["effective"] for row in one.report["candidates"] if row["policy"] == REFERENCE)
        if effective < LEAST_KNOWN:
            notes.append(
                f"agent-only's choices were logged in the equivalent of {effective:.1f} questions; at least "
                f"{LEAST_KNOWN} are needed to show that anything is better, so agent-only stays the choice"
            )
            break
    rows = [
        {"lambda": one.penalty, "chosen": one.chosen, "without_question": one.without_question, **one.report}
        for one in advisor.policy_sets
    ]
    return {**advisor.about, "rows": rows, "notes": notes}


def _notes(about: Mapping[str, Any]) -> list[str]:
    """Notes on what the data could not tell."""
    notes = []
    if about["without_outcome"]:
        runs = count_of(about["without_outcome"], "trajectory", "trajectories")
        notes.append(f"{runs} without an outcome or a step left out")
    if about["sampled"]:
        notes.append(
            f"hardly any state has both choices on record: learnt from the logged returns, {WEIGHTED}; a "
            "policy whose choices were never logged has no value"
        )
        notes.append(UNSEEN)
    elif about["one_choice"]:
        notes.append(
            f"{about['one_choice']} states, in {about['incomplete_questions']} questions, have one choice "
            "recorded: it is forced there, and nothing can be learnt from it"
        )
    if about["outcomes"][0] == about["outcomes"][1]:
        notes.append(f"every outcome is {about['outcomes'][0]:g}, so no step can gain anything")
    return notes
