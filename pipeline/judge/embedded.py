"""The raters that need no endpoint, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ...judges import JudgeError
from ...judges.rules import detectors, lexical
from ...schemas import Codebook
from ..errors import UsageError
from ..store import Store
from ..systems.registry import DETECTED
from . import scope as judging
from . import training
from .detectors import VERSION, CurrentTrajectories, SystemDetectors, Trajectories, books_of
from .dialogue import judge_dialogue
from .local import LocalRater, judge_locally
from .scope import Say, Scope, Summary

EMBEDDED = (lexical.NAME, detectors.NAME)


@dataclass(frozen=True)
class EmbeddedRater:
    """A rater of one codebook that comes with the package."""

    rater: LocalRater
    maker: tuple[str, str]
    """Its name and version."""


def embedded_rater(book: Codebook, name: str, logs: Callable[[Codebook], Trajectories]) -> EmbeddedRater:
    """The rules or the detectors of a codebook; UsageError where they have none for it.

    `logs` is where detectors that need more than a unit find the trajectories.
    """
    if name == lexical.NAME:
        return EmbeddedRater(rules_of(book), (name, lexical.VERSION))
    with _usage_errors(book, name):
        if book.name in DETECTED:
            return EmbeddedRater(SystemDetectors(book, logs(book)), (name, VERSION))
        return EmbeddedRater(detectors.Detectors(book), (name, detectors.VERSION))


def rules_of(book: Codebook) -> lexical.Rules:
    """The rules of a codebook; UsageError where there are none."""
    with _usage_errors(book, lexical.NAME):
        return lexical.Rules(book)


@contextmanager
def _usage_errors(book: Codebook, name: str) -> Iterator[None]:
    try:
        yield
    except JudgeError as error:
        others = [detectors.NAME] if name == lexical.NAME and _detects(book) else []
        hint = "".join(f"`--rater {other}` can, or " for other in others)
        raise UsageError(f"{error}; {hint}a language model: --rater NAME --model MODEL") from error


def _detects(book: Codebook) -> bool:
    return book.name == detectors.CODEBOOK or book.name in DETECTED


def judge(store: Store, rater: str, names: Sequence[str], scope: Scope, say: Say) -> Summary:
    """Rate with an embedded or a trained rater; UsageError names the ones there are."""
    if rater == lexical.NAME:
        return _rules(store, scope.on(judging.load_codebooks(store, names)), say)
    if rater == detectors.NAME:
        return _detectors(store, names, scope, say)
    choices = training.trained_names(store)
    if not rater.startswith(training.PREFIX) and rater not in choices:
        listing = "".join(f", {training.PREFIX}{name}" for name in choices)
        raise UsageError(
            f"unknown rater {rater!r}, expected {', '.join(EMBEDDED)}, jury{listing or ', trained:FILE'}; "
            "a language model needs --model"
        )
    return _judge_with_trained(store, rater, names, scope, say)


def _rules(store: Store, scope: Scope, say: Say) -> Summary:
    return judge_dialogue(store, scope, [rules_of(book) for book in scope.books], say)


def _detectors(store: Store, names: Sequence[str], scope: Scope, say: Say) -> Summary:
    """Rate with the detectors for any system on `failures`, and those for one system on its own codebooks."""
    books = judging.load_codebooks(store, names, (detectors.CODEBOOK, *books_of(store)))
    general = tuple(book for book in books if book.name not in DETECTED)
    special = tuple(book for book in books if book.name in DETECTED)
    summary = Summary()
    if general:
        summary = _judge_with_detectors(store, scope.on(general), say, None)
    if special:
        rest = scope.less(summary.rated).on(special)
        summary = summary.plus(_judge_with_detectors(store, rest, say, CurrentTrajectories(store)))
    return summary


def _judge_with_detectors(
    store: Store, scope: Scope, say: Say, trajectories: CurrentTrajectories | None
) -> Summary:
    items = [
        embedded_rater(book, detectors.NAME, lambda _: trajectories or CurrentTrajectories(store))
        for book in scope.books
    ]
    raters = [one.rater for one in items]
    systems = {book.name: DETECTED[book.name].name for book in scope.books if book.name in DETECTED}
    show = trajectories.show if trajectories else None
    return judge_locally(store, scope, raters, items[0].maker, say, show, systems)


def _judge_with_trained(store: Store, rater: str, names: Sequence[str], scope: Scope, say: Say) -> Summary:
    result = training.load_trained(store, rater)
    books = judging.load_codebooks(store, names, (result.codebook.name,))
    if [book.name for book in books] != [result.codebook.name]:
        raise UsageError(
            f"rater {rater!r} was trained on codebook {result.codebook.name!r} and rates only that"
        )
    # Its features look at what precedes a unit, whatever context the codebook gives a reader.
    wider = replace(scope, books=books, context="transcript")
    return judge_locally(store, wider, [result], (result.maker.rater, result.version), say)
