"""Choosing among policies: cautious cross-validation by question, and an estimate of what the choice earns.

Each candidate is tried on questions that it did not learn from. The one with the largest paired difference to
agent-only, less one standard error, is chosen; agent-only itself has 0 there, and among equals the simpler
one wins. What the procedure as a whole reaches is estimated by letting it choose without each fold in turn
and trying its choice there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...annotation.statistics.estimate import Estimate
from ...annotation.statistics.intervals import Ints
from .features import StateFeatures
from .learners import (
    Learner,
    Lesson,
    boosting,
    gradient,
    imitation,
    policy_iteration,
    ridge,
    rule_list,
)
from .policies import BASELINES, Kind, Policy, rules
from .scores import LEAST_KNOWN, Bench, Score
from .trees import Forest, folds

FOLDS = 5
REPEATS = 3
"""Cross-validations, each with other folds, where there are few questions."""
FEW = 2500
"""States up to which cross-validation is repeated."""
CAUTION = 1.0
"""Standard errors that are taken off a gain."""
REFERENCE = "agent-only"


@dataclass(frozen=True)
class Candidate:
    """A fixed policy, or the learner of one."""

    kind: Kind
    policy: Policy | None = None
    learn: Learner | None = None
    question: bool = False
    """Whether it looks at the words of the question."""
    family: str = ""

    def policy_for(self, lesson: Lesson) -> Policy:
        """The fixed policy, or the one that is learnt from the lesson."""
        if self.policy is not None:
            return self.policy
        assert self.learn is not None
        return self.learn(lesson)


@dataclass(frozen=True, eq=False)
class Trial:
    """What cross-validation says of one candidate, on questions that it did not learn from."""

    candidate: Candidate
    score: Score
    gain: Estimate
    """Its paired difference to agent-only."""
    floor: float = 0.0
    """Added to its standard error in quadrature: where few questions differ here, more may elsewhere."""

    @property
    def cautious(self) -> float:
        """The gain less one standard error; -∞ where it is undefined."""
        if self.gain.value is None or self.gain.error is None or not np.isfinite(self.floor):
            return -np.inf
        return float(self.gain.value - CAUTION * np.hypot(self.gain.error, self.floor))


@dataclass(frozen=True, eq=False)
class Choice:
    """The trials of all candidates, the name of the chosen, and what choosing so is worth."""

    penalty: float
    trials: Mapping[str, Trial]
    chosen: str
    without_question: str
    """The chosen among those that do not look at the question."""
    procedure: Estimate
    """The paired difference to agent-only where each fold's policy is chosen by the other folds' scores."""
    oracle_gain: float | None
    """How much the oracle gains; None on samples."""


def candidates(features: StateFeatures, cap: int, *, is_sample: bool) -> dict[str, Candidate]:
    """All candidates, the simplest first; on samples without those that need both choices of a state."""
    result = {name: Candidate("baseline", rule, family=name) for name, rule in BASELINES.items()}
    result |= {name: Candidate("rule", rule, family="rule") for name, rule in rules(cap).items()}
    learners: dict[str, tuple[Learner, str]] = {}
    if not is_sample:
        learners["learnt rule"] = (rule_list(1, 2), "learnt rule")
        for variant in ("paper", "released"):
            name = f"policy gradient ({variant})"
            learners[name] = (gradient(variant), name)
        learners["imitation"] = (imitation(), "imitation")
    rounds = 1 if is_sample else 3
    course, words = ridge(300), ridge(300, ("last",))
    trees = boosting() if features.last is not None else boosting(words=0)
    for name, fits in {
        "regression on the course, 100": [ridge(100)],
        "regression on the course, 1000": [ridge(1000)],
        "regression on course and words, 300": [words],
        "regression on course and words, 1000": [ridge(1000, ("last",))],
        "mean of regressions": [course, words, ridge(3000)],
        "boosted trees": [trees],
        "mean of regressions and trees": [course, words, trees],
    }.items():
        learners[name] = (policy_iteration(*fits, rounds=rounds), name.partition(",")[0])
    result |= {
        name: Candidate("learnt", learn=learner, family=family)
        for name, (learner, family) in learners.items()
    }
    if features.question is not None:
        with_question = ridge(300, ("last", "question"))
        for name, fits in {
            "regression on course, words and question, 300": [with_question],
            "mean of regressions, with the question": [course, with_question, ridge(3000)],
        }.items():
            learner = policy_iteration(*fits, rounds=rounds)
            result[name] = Candidate("learnt", learn=learner, question=True, family=name.partition(",")[0])
    return result


def choose(
    on: Bench,
    features: StateFeatures,
    cap: int,
    penalty: float,
    seed: int = 0,
    report: Callable[[str, int, int], None] = lambda what, count, total: None,
) -> Choice:
    """Try all candidates on held-out questions and choose one.

    `features` are those of all states: which words and names there are is taken from all of them, what they
    are worth only from the questions that are not held out.
    """
    options = candidates(features, cap, is_sample=on.behaviour is not None)
    parts = _folds(on.woods, seed)
    scores = _cross_validate(on, features, options, parts, penalty, seed, report)
    trials = {
        name: _trial(options[name], score, scores[REFERENCE], penalty) for name, score in scores.items()
    }
    winner = best(trials)
    plain = best({name: trial for name, trial in trials.items() if not trial.candidate.question})
    oracle = None
    if on.behaviour is None:
        oracle = on.score(on.woods.oracle(penalty)).minus(scores[REFERENCE], penalty).value
    worth = _procedure(on, options, scores, parts[0], penalty)
    return Choice(penalty, trials, winner, plain, worth, oracle)


def best(trials: Mapping[str, Trial]) -> str:
    """The name of the largest cautious gain, the first (simplest) among equals; agent-only if none is > 0."""
    name = max(trials, key=lambda name: round(trials[name].cautious, 9))
    return name if trials[name].cautious > 0 else REFERENCE


def _trial(candidate: Candidate, score: Score, reference: Score, penalty: float) -> Trial:
    effective = min(score.effective, reference.effective)
    # As in the intervals of bounded values: ¼ of a question at either bound, a reward's range being about 1.
    floor = float(np.sqrt(0.5) / effective) if effective >= LEAST_KNOWN - 1e-9 else np.inf
    return Trial(candidate, score, score.minus(reference, penalty), floor)


def _folds(woods: Forest, seed: int) -> list[Ints]:
    """The fold of each question (Q,), for each repetition."""
    draw = np.random.default_rng(seed)
    return [folds(woods, FOLDS, draw) for _ in range(REPEATS if len(woods.states) <= FEW else 1)]


def _cross_validate(
    on: Bench,
    features: StateFeatures,
    options: Mapping[str, Candidate],
    repetitions: Sequence[Ints],
    penalty: float,
    seed: int,
    report: Callable[[str, int, int], None],
) -> dict[str, Score]:
    """The score of each candidate on questions that were held out, averaged over repetitions."""
    parts: dict[str, list[Score]] = {name: [] for name in options}
    fixed = {n: on.score(one.policy.chance(features)) for n, one in options.items() if one.policy is not None}
    rounds = [(fold, number) for fold in repetitions for number in np.unique(fold)]
    for count, (fold, number) in enumerate(rounds):
        holdout = fold == number
        lesson = Lesson(on.woods, features, ~holdout[on.woods.tree], penalty, seed, on.behaviour)
        for name, candidate in options.items():
            score = fixed[name] if name in fixed else on.score(candidate.policy_for(lesson).chance(features))
            parts[name].append(score.of(holdout / len(repetitions)))
        report("cross-validation", count + 1, len(rounds))
    return {name: _sum(scores) for name, scores in parts.items()}


def _sum(scores: Sequence[Score]) -> Score:
    total = scores[0]
    for score in scores[1:]:
        total = total.plus(score)
    return total


def _procedure(
    on: Bench, options: Mapping[str, Candidate], scores: Mapping[str, Score], fold: Ints, penalty: float
) -> Estimate:
    """Choose by the other folds' held-out scores, and count what that earns on each fold.

    None where agent-only itself has no value: on a part of the questions it may count as known.
    """
    reference = scores[REFERENCE]
    if on.is_thin(reference):
        few = f"agent-only's choices were logged in the equivalent of {reference.effective:.1f} questions"
        return Estimate(None, None, None, len(reference.weight), len(set(reference.clusters)), reason=few)
    picks: list[Score] = []
    for number in np.unique(fold):
        holdout = (fold == number).astype(np.float64)
        others = {name: score.of(1 - holdout) for name, score in scores.items()}
        trials = {
            name: _trial(options[name], one, others[REFERENCE], penalty) for name, one in others.items()
        }
        picks.append(scores[best(trials)].of(holdout))
    return _sum(picks).minus(reference, penalty)


def fit_candidates(
    on: Bench, features: StateFeatures, penalty: float, selection: Mapping[str, Candidate], seed: int
) -> dict[str, Policy]:
    """These candidates, learnt from all questions."""
    rows = np.ones(len(on.woods.states), dtype=bool)
    lesson = Lesson(on.woods, features, rows, penalty, seed, on.behaviour)
    return {name: candidate.policy_for(lesson) for name, candidate in selection.items()}
