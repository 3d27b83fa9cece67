"""A verdict: what a rater found under one code; with its unit and its maker it becomes a rating."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from ..schemas import Codebook, Rating, Unit, Verdict
from ..schemas.rating import RaterKind


class JudgeError(Exception):
    """A judge cannot be used as asked; the message says what would be right."""


@dataclass(frozen=True)
class Maker:
    """Who rates, on which codebook: what every rating of a rater says about it."""

    rater: str
    kind: RaterKind
    version: str
    book: Codebook
    made: dict[str, Any] = field(default_factory=dict)
    """Further fields of Rating, such as model, prompt_hash and parameters."""

    @cached_property
    def book_version(self) -> str:
        """The codebook's version: a hash of all that it says, computed once."""
        return self.book.version

    def rating(self, unit: Unit, verdict: Verdict, **made: Any) -> Rating:
        """The rating that a verdict on a unit is."""
        return Rating(
            trajectory=unit.trajectory_id,
            event=unit.event,
            unit_hash=unit.hash,
            codebook=self.book.name,
            codebook_version=self.book_version,
            code=verdict.code,
            rater=self.rater,
            rater_kind=self.kind,
            rater_version=self.version,
            label=verdict.label,
            error=verdict.error,
            cites=verdict.cites,
            quote=verdict.quote,
            error_source=verdict.error_source,
            rationale=verdict.rationale,
            probability=verdict.probability,
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            **{**self.made, **made},
        )
