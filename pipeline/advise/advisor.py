"""An advisor: the policies that were learnt for some penalties, with the features they look at; a JSON file.

The file holds names, numbers and words and nothing that could run; reading it checks every shape. It names
the version it was written by, the training data by name and hash, and how the choice among candidates was
made.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ...annotation.statistics.intervals import Floats, Ints
from ...schemas import canonical_json, text_hash
from ..errors import CoauditError, UsageError
from ..store import Workspace, disk
from .features import View, vectorizer
from .policies import BASELINES, ORACLE, BoostedTrees, Condition, Ensemble, Linear, Model, Policy, Rule

FORMAT = 1
KIND = "coaudit advisor"
MOST = 256 * 1024 * 1024
"""Bytes of a file that are read."""


@dataclass(frozen=True, eq=False)
class PolicySet:
    """What was learnt for one penalty λ."""

    penalty: float
    chosen: str
    without_question: str
    """Name of the policy that is followed where a log holds no question."""
    policies: Mapping[str, Policy]
    kinds: Mapping[str, str]
    gains: Mapping[str, Model]
    """Name of a policy (`chosen`, `without_question`) -> the model of a person's expected gain under it."""
    report: Mapping[str, Any]
    """What cross-validation said of every candidate, and of the choice."""


@dataclass(frozen=True, eq=False)
class Advisor:
    """Policies by penalty over one set of features; `about` says from what, when and how they were made."""

    view: View
    policy_sets: Sequence[PolicySet]
    about: Mapping[str, Any]
    fingerprints: Mapping[str, Any]
    """Fingerprints of the training questions, to notice them in an evaluation."""
    version: str = ""
    """The hash of its file."""

    @property
    def penalties(self) -> list[float]:
        """The penalties it was trained for."""
        return [one.penalty for one in self.policy_sets]

    def at(self, penalty: float | None) -> tuple[PolicySet, str | None]:
        """What was learnt for a penalty, or for the one next to it, and a note where that is another.

        UsageError for a penalty that does not lie between 0 and 1.
        """
        if penalty is None:
            return self.policy_sets[0], None
        check_penalty(penalty)
        nearest = min(self.policy_sets, key=lambda one: abs(one.penalty - penalty))
        if math.isclose(nearest.penalty, penalty, abs_tol=1e-9):
            return nearest, None
        choices = ", ".join(f"{value:g}" for value in self.penalties)
        return nearest, (
            f"λ = {penalty:g} was not trained, only {choices}: the policy for λ = {nearest.penalty:g} is used"
        )


def check_penalty(penalty: float) -> None:
    """UsageError where λ is negative, or more than a whole task earns."""
    if not (math.isfinite(penalty) and 0 <= penalty <= 1):
        raise UsageError(f"--penalty must lie between 0 and 1, got {penalty:g}")


def default(workspace: Workspace) -> Path:
    """Where a workspace keeps its advisor, beside its trained judges."""
    return workspace.path / "models" / "advisor.json"


def save(advisor: Advisor, path: Path) -> None:
    """Write an advisor to a file; an earlier one is replaced at once or not at all."""
    document = {
        "kind": KIND,
        "format": FORMAT,
        "coaudit": version("coaudit"),
        "about": advisor.about,
        "fingerprints": advisor.fingerprints,
        "view": _view(advisor.view),
        "trained": [_trained_document(one) for one in advisor.policy_sets],
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.put(path, canonical_json(document).encode())
    except OSError as error:
        raise CoauditError(f"{path}: cannot be written: {error.strerror}") from error


def load(path: Path) -> Advisor:
    """The advisor of a file; UsageError names what is wrong with one."""
    try:
        if path.stat().st_size > MOST:
            raise UsageError(f"{path}: longer than {MOST // 2**20} MiB, no advisor is")
        text = path.read_text(encoding="utf-8")
        document = json.loads(text, parse_constant=_no_constant)
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no advisor there; `coaudit advise train` makes one") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not an advisor's file: {error}") from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise UsageError(f"{path}: not an advisor's file; `coaudit advise train --out FILE` writes one")
    if document.get("format") != FORMAT:
        raise UsageError(f"{path}: format {document.get('format')!r}, expected {FORMAT}; train it again")
    try:
        return _advisor(document, text_hash(text)[:12])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise UsageError(f"{path}: damaged: {error!r:.200}") from error


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no number")


def _advisor(document: Mapping[str, Any], name: str) -> Advisor:
    fields = document["view"]
    view = View(
        [str(column) for column in fields["columns"]],
        int(_number(fields["cap"])),
        _words(fields["last"]),
        _words(fields["question"]),
    )
    sizes = {"process": len(view.columns)} | {
        block: len(fields[block]["words"]) if fields[block] else 0 for block in ("last", "question")
    }
    trained = [_read_trained(one, sizes) for one in document["trained"]]
    if not trained:
        raise ValueError("no policy in it")
    return Advisor(view, trained, dict(document["about"]), _fingerprints(document["fingerprints"]), name)


def _fingerprints(document: Mapping[str, Any]) -> dict[str, Any]:
    """Fingerprints of training questions, checked: damaged ones would let these pass for unseen."""
    return {"texts": _names(document["texts"]), "episodes": [_names(one) for one in document["episodes"]]}


def _names(names: Any) -> list[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"expected a list of hashes, got {names!r:.40}")
    return names


def _read_trained(one: Mapping[str, Any], sizes: Mapping[str, int]) -> PolicySet:
    policies = {str(name): _policy(policy, sizes) for name, policy in one["policies"].items()}
    gains = {str(name): _model(model, sizes) for name, model in one["gains"].items()}
    for name, policy in policies.items():
        # A baseline must be what its name says, for others are compared with it.
        if name == ORACLE or BASELINES.get(name, policy) != policy:
            raise ValueError(f"the policy {name!r} is not what is called so")
    for name in (one["chosen"], one["without_question"]):
        if name not in policies or name not in gains:
            raise ValueError(f"the policy {name!r} is missing")
    penalty, report = _number(one["penalty"]), dict(one["report"])
    if not 0 <= penalty <= 1:
        raise ValueError(f"a penalty must lie between 0 and 1, got {penalty:g}")
    for count in ("tried", "learnt"):
        _number(report[count])
    kinds = {name: str(one["kinds"][name]) for name in policies}
    return PolicySet(penalty, one["chosen"], one["without_question"], policies, kinds, gains, report)


def _trained_document(one: PolicySet) -> dict[str, Any]:
    return {
        "penalty": one.penalty,
        "chosen": one.chosen,
        "without_question": one.without_question,
        "policies": {name: _policy_document(policy) for name, policy in one.policies.items()},
        "kinds": dict(one.kinds),
        "gains": {name: _policy_document(model) for name, model in one.gains.items()},
        "report": dict(one.report),
    }


def _view(view: View) -> dict[str, Any]:
    def words(fitted: Any) -> dict[str, Any] | None:
        if fitted is None:
            return None
        return {"words": fitted.get_feature_names_out().tolist(), "idf": fitted.idf_.tolist()}

    return {
        "columns": list(view.columns),
        "cap": view.cap,
        "last": words(view.last),
        "question": words(view.question),
    }


def _words(document: Mapping[str, Any] | None) -> Any:
    if document is None:
        return None
    words = [str(word) for word in document["words"]]
    fitted = vectorizer(vocabulary={word: place for place, word in enumerate(words)})
    fitted.idf_ = _array(document["idf"], (len(words),))
    return fitted


def _policy_document(policy: Policy) -> dict[str, Any]:
    if isinstance(policy, Rule):
        lines = [[[c.feature, c.relation, c.value] for c in line] for line in policy.lines]
        return {"is": "rule", "lines": lines, "odds": policy.odds}
    if isinstance(policy, Linear):
        words = {block: weights.tolist() for block, weights in policy.words.items()}
        arrays = {name: getattr(policy, name).tolist() for name in ("mean", "scale", "process")}
        return {"is": "linear", **arrays, "words": words, "intercept": policy.intercept}
    if isinstance(policy, Ensemble):
        return {"is": "mixed", "models": [_policy_document(model) for model in policy.models]}
    assert isinstance(policy, BoostedTrees)
    names = ("feature", "threshold", "left", "right", "value", "chosen")
    return {"is": "boosted", **{n: getattr(policy, n).tolist() for n in names}, "intercept": policy.intercept}


def _policy(document: Mapping[str, Any], sizes: Mapping[str, int]) -> Policy:
    if document["is"] != "rule":
        return _model(document, sizes)
    odds = _number(document["odds"])
    if not 0 <= odds <= 1:
        raise ValueError(f"odds must lie between 0 and 1, got {odds:g}")
    return Rule(tuple(tuple(map(_condition, line)) for line in document["lines"]), odds)


def _condition(parts: Sequence[Any]) -> Condition:
    feature, relation, value = parts
    if relation not in (">=", "<=", "="):
        raise ValueError(f"unknown relation {relation!r}")
    return Condition(str(feature), relation, _number(value))


def _model(document: Mapping[str, Any], sizes: Mapping[str, int], depth: int = 0) -> Model:
    if document["is"] == "mixed" and not depth:
        models = [_model(one, sizes, depth + 1) for one in document["models"]]
        if not models or any(isinstance(model, Ensemble) for model in models):
            raise ValueError("a mean of no models")
        return Ensemble(tuple(models))  # type: ignore[arg-type]
    if document["is"] == "linear":
        return _linear(document, sizes)
    if document["is"] == "boosted":
        return _trees(document, sizes)
    raise ValueError(f"unknown policy {document['is']!r}")


def _linear(document: Mapping[str, Any], sizes: Mapping[str, int]) -> Linear:
    mean, scale, process = (_array(document[n], (sizes["process"],)) for n in ("mean", "scale", "process"))
    if (scale <= 0).any():
        raise ValueError("scales must be positive")
    words = {}
    for block, weights in document["words"].items():
        if block not in ("last", "question"):
            raise ValueError(f"unknown block {block!r}")
        words[block] = _array(weights, (sizes[block],))
    return Linear(mean, scale, process, words, _number(document["intercept"]))


def _trees(document: Mapping[str, Any], sizes: Mapping[str, int]) -> BoostedTrees:
    feature = _places(document["feature"])
    indices = _places(document["chosen"])
    left, right = (_places(document[name]) for name in ("left", "right"))
    threshold, value = (_array(document[name], feature.shape) for name in ("threshold", "value"))
    count = np.arange(feature.shape[1])
    inner = feature >= 0
    for side in (left, right):
        # A child lies behind its parent, so that no way goes round in a circle.
        if side.shape != feature.shape or ((side <= count) & inner).any() or (side >= len(count)).any():
            raise ValueError("a tree's branches lead nowhere")
    if (
        (feature >= sizes["process"] + len(indices)).any()
        or (indices >= sizes["last"]).any()
        or (indices < 0).any()
    ):
        raise ValueError("a tree asks for a feature that is not there")
    return BoostedTrees(feature, threshold, left, right, value, indices, _number(document["intercept"]))


def _array(values: Any, shape: tuple[int, ...]) -> Floats:
    table = np.asarray(values, dtype=np.float64)
    if table.shape != shape or not np.isfinite(table).all():
        raise ValueError(f"expected {shape} finite numbers, got {table.shape}")
    return table


def _places(values: Any) -> Ints:
    table = np.asarray(values)
    if table.size and table.dtype.kind not in "iu":
        raise ValueError("expected whole numbers")
    return table.astype(np.int64)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"expected a finite number, got {value!r:.40}")
    return float(value)
