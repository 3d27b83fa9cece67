"""`detectors`: rules that find failure modes which need no model, on the `failures` codebook.

Each detector looks at one trajectory by the kinds of its events, so that it works on any system's logs,
and answers a code with `present` and the events that show it, or with `absent`. It answers nothing where
the log lacks what it looks at: a detector that has no question to see repeated says nothing about
repetition. What needs understanding (a wrong report, an ignored hint) is left to people and models: those
codes get no rating at all.

A detector is right about what it finds far more often than about what it does not: `absent` means that
this rule found nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ...schemas import Codebook, Rating, Unit, Verdict, content_hash
from ...schemas.rating import Maker
from ..errors import JudgeError
from . import breaches, repetitions, silences
from .log import Finding, Log

NAME = "detectors"
CODEBOOK = "failures"
REVISION = 5
Detector = Callable[[Log], "list[Finding] | None"]
"""The findings in a log; None where the log lacks what the detector looks at."""
DETECTORS: dict[str, tuple[Detector, ...]] = {
    "C.1": (silences.silent_start,),
    "C.3": (silences.long_silence, silences.unanswered_human, silences.end_without_a_word),
    "C.5": (silences.bare_summary,),
    "SA.2": (repetitions.question_asked_again, repetitions.search_repeated),
    "SA.5": (breaches.change_after_refusal,),
    "PL.2": (repetitions.step_repeated,),
    "EA.2": (breaches.unknown_action,),
}
"""Code -> the detectors that speak to it."""
VERSION = content_hash("detectors", REVISION, sorted(DETECTORS))[:12]


@dataclass(frozen=True)
class ByUnit(ABC):
    """Detectors of one codebook that look at one unit after the other."""

    codebook: Codebook
    version: ClassVar[str]

    @cached_property
    def maker(self) -> Maker:
        """The rater, at the version of its rules."""
        return Maker(NAME, "rule", self.version, self.codebook)

    def rate(self, units: Iterable[Unit]) -> Iterator[list[Rating]]:
        """The ratings of each unit; where its rules fail, an error for each code that they speak to."""
        return map(self._rated, units)

    def _rated(self, unit: Unit) -> list[Rating]:
        try:
            return list(self.of(unit))
        except Exception as error:  # one log that nobody thought of must not stop the other thousand
            return [self.failed(unit, code, error) for code in self.codes]

    def failed(self, unit: Unit, code: str, error: Exception) -> Rating:
        """The rating of a code whose rules fail on a unit."""
        reason = f"its rules failed: {type(error).__name__}: {str(error)[:200]}"
        return self.maker.rating(unit, Verdict(code, error=reason))

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes that the rules speak to."""
        return tuple(code.code for code in self.codebook.codes)

    @abstractmethod
    def of(self, unit: Unit) -> Iterator[Rating]:
        """The ratings of one unit."""


@dataclass(frozen=True)
class Detectors(ByUnit):
    """All detectors over a trajectory."""

    version = VERSION

    def __post_init__(self) -> None:
        if self.codebook.name != CODEBOOK:
            raise JudgeError(f"rater {NAME!r} cannot rate codebook {self.codebook.name!r}, only {CODEBOOK}")

    @property
    def codes(self) -> tuple[str, ...]:
        """Those of the codebook that have a detector."""
        names = {code.code for code in self.codebook.codes}
        return tuple(code for code in DETECTORS if code in names)

    def of(self, unit: Unit) -> Iterator[Rating]:
        """A rating for each code that a detector can speak to in this log; one that fails costs its code."""
        log = Log.of(unit)
        for code in self.codes:
            try:
                results = [result for detector in DETECTORS[code] if (result := detector(log)) is not None]
            except Exception as error:  # as in `_rated`
                yield self.failed(unit, code, error)
                continue
            if results:
                findings = [finding for result in results for finding in result]
                yield self.maker.rating(unit, _verdict(self.codebook, code, findings))


def _verdict(codebook: Codebook, code: str, findings: list[Finding]) -> Verdict:
    if not findings:
        return Verdict(code, codebook.labels[1], rationale="the detectors of this code found nothing")
    cites = tuple(sorted({seq for finding in findings for seq in finding.cites}))
    return Verdict(
        code,
        codebook.positive,
        cites=cites,
        quote=findings[0].quote,
        error_source=codebook.code(code).error_source,
        rationale="; ".join(dict.fromkeys(finding.why for finding in findings))[:1000],
    )
