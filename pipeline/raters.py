"""The raters that need no endpoint, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from coaudit.judges import detectors, rules
from coaudit.judges.verdict import JudgeError
from coaudit.pipeline import judging, training
from coaudit.pipeline.errors import UsageError
from coaudit.pipeline.judging import LocalRater, Say, Scope, Summary
from coaudit.pipeline.store import Store
from coaudit.schemas.codebook import Codebook

Make = Callable[[Codebook], LocalRater]
EMBEDDED: dict[str, tuple[Make, str, tuple[str, ...]]] = {
    rules.NAME: (rules.Rules, rules.VERSION, judging.PROCESS),
    detectors.NAME: (detectors.Detectors, detectors.VERSION, (detectors.CODEBOOK,)),
}
"""Name -> what makes it for a codebook, its version, and what it rates where nothing is asked for."""


def judge(store: Store, rater: str, names: Sequence[str], scope: Scope, say: Say) -> Summary:
    """Rate with an embedded or a trained rater; UsageError names the ones there are."""
    if rater in EMBEDDED:
        make, version, default = EMBEDDED[rater]
        books = judging.chosen(store, names, default)
        try:
            raters = [make(book) for book in books]
        except JudgeError as error:
            raise UsageError(str(error)) from error
        return judging.judge_locally(store, replace(scope, books=books), raters, (rater, version), say)
    known = training.trained_names(store)
    if not rater.startswith(training.PREFIX) and rater not in known:
        trained = "".join(f", {training.PREFIX}{name}" for name in known)
        raise UsageError(
            f"unknown rater {rater!r}, expected {', '.join(EMBEDDED)}, jury{trained or ', trained:FILE'}; "
            "a language model needs --model"
        )
    return _trained(store, rater, names, scope, say)


def _trained(store: Store, rater: str, names: Sequence[str], scope: Scope, say: Say) -> Summary:
    found = training.trained(store, rater)
    books = judging.chosen(store, names, (found.codebook.name,))
    if [book.name for book in books] != [found.codebook.name]:
        raise UsageError(
            f"rater {rater!r} was trained on codebook {found.codebook.name!r} and rates only that"
        )
    # Its features look at what went before a unit, whatever context the codebook gives a reader.
    wider = replace(scope, books=books, context="transcript")
    return judging.judge_locally(store, wider, [found], (found.maker.rater, found.version), say)
