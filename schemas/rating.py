"""A rating: one rater's label for one unit under one code, or the rater's failure to give one."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field, FiniteFloat, model_validator

from .base import JsonValue, Model
from .codebook import Codebook, ErrorSource
from .event import Seq
from .trajectory import Count
from .unit import Unit

RaterKind = Literal["human", "llm", "rule", "model"]
GOLD = "gold"
"""The rater whose ratings are adjudicated and settle what is so."""


RESERVED: dict[str, RaterKind] = {GOLD: "human", "rules": "rule", "detectors": "rule"}
"""Names that say who rated: only raters of that kind may have them."""


def kind_of_name(rater: str) -> RaterKind | None:
    """The kind of rater that a reserved name stands for; None for any other name."""
    return "model" if rater.startswith("trained:") else RESERVED.get(rater)


class Rating(Model):
    """A rater gave a label to a unit for a code of a codebook, or failed to (an error, never a "no").

    The unit is addressed by trajectory and the seq of its first event (None: the whole trajectory).
    """

    trajectory: str
    """The trajectory's id; in imports also a native_id that is unique."""
    event: Seq | None = None
    """seq of the unit's first event; null for the whole trajectory."""
    unit_hash: str | None = None
    """Content hash of the unit as it was rated: a rating of other content does not count."""
    codebook: str
    """The codebook's name."""
    codebook_version: str | None = None
    """The codebook's version at the time: ratings on different versions are never mixed."""
    code: str
    """The code that was looked for."""
    rater: str
    """Who rated: a person, a judge, `rules`, `detectors` or `gold`."""
    rater_kind: RaterKind
    """`human`, `llm`, `rule` or `model` (a trained judge)."""
    rater_version: str | None = None
    """Version of a judge: a hash of what decides its answers."""
    repeat: int = Field(default=0, ge=0, lt=2**31)
    """0 is the rating that counts; a higher one answers the same question once more and only tells how far
    the rater agrees with itself."""
    label: str | None = None
    """The answer. A rating has exactly one of `label`, `error` and `retracted`."""
    error: str | None = None
    """Why there is no answer; it never counts as a "no"."""
    retracted: bool = False
    """True where the rater took the rating back: this line only ends the one before."""
    cites: tuple[Seq, ...] = ()
    """seq of the events that the rating rests on."""
    quote: str | None = None
    """The words that the rating rests on, as they stand in the log."""
    error_source: ErrorSource | None = None
    """For failure modes: what is behind it, the language model, the scaffolding or both."""
    rationale: str | None = None
    """Why, in the rater's own words."""
    probability: float | None = Field(default=None, ge=0, le=1)
    """Probability of the given label, where the rater states one."""
    model: str | None = None
    """The model as the endpoint named it."""
    prompt_hash: str | None = None
    """Hash of the prompt as it was sent."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """What was demanded of the model, such as its temperature."""
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    """Seed of the model's sampling, where one was set."""
    prompt_tokens: Count | None = None
    """Tokens of the prompt."""
    cached_tokens: Count | None = None
    """Those of them that the endpoint had in its cache."""
    completion_tokens: Count | None = None
    """Tokens of the answer."""
    cost_usd: FiniteFloat | None = None
    """What the request cost, in US dollars; null where no price is known."""
    seconds: FiniteFloat | None = None
    """What it took: a judge's latency, an annotator's lead time."""
    created: str | None = None
    """ISO 8601 with zone: when the rating was made."""
    external: dict[str, JsonValue] = Field(default_factory=dict)
    """Where it came from outside coaudit, such as a Label Studio annotation id."""

    @model_validator(mode="after")
    def _label_or_error(self) -> Rating:
        count = (self.label is not None) + (self.error is not None) + self.retracted
        if count != 1:
            raise ValueError("a rating has exactly one of label, error and retracted")
        return self

    @model_validator(mode="after")
    def _name_of_its_kind(self) -> Rating:
        if not self.rater.strip():
            raise ValueError("rater: a name, got an empty text")
        kind = kind_of_name(self.rater)
        if kind not in (None, self.rater_kind):
            raise ValueError(f"rater {self.rater!r} is a {kind}'s name, got rater_kind {self.rater_kind!r}")
        return self


@dataclass(frozen=True)
class Verdict:
    """A label for a code, or the error that stands in its place."""

    code: str
    label: str | None = None
    error: str | None = None
    cites: tuple[int, ...] = ()
    quote: str | None = None
    error_source: ErrorSource | None = None
    rationale: str | None = None
    probability: float | None = None


@dataclass(frozen=True)
class Maker:
    """Who rates, on which codebook: what every rating of a rater says about it."""

    rater: str
    kind: RaterKind
    version: str | None
    book: Codebook
    extra_fields: dict[str, Any] = field(default_factory=dict)
    """Further fields of Rating, such as model, prompt_hash and parameters."""

    def rating(self, unit: Unit, verdict: Verdict, **fields: Any) -> Rating:
        """The rating that a verdict on a unit is."""
        return self.rating_at((unit.trajectory_id, unit.event, unit.hash), verdict, **fields)

    def rating_at(self, place: tuple[str, int | None, str | None], verdict: Verdict, **fields: Any) -> Rating:
        """The same for a unit of which only trajectory, event and hash are known."""
        trajectory, event, unit_hash = place
        return Rating(
            trajectory=trajectory,
            event=event,
            unit_hash=unit_hash,
            codebook=self.book.name,
            codebook_version=self.book.version,
            rater=self.rater,
            rater_kind=self.kind,
            rater_version=self.version,
            **vars(verdict),
            **{
                "created": datetime.now(UTC).isoformat(timespec="milliseconds"),
                **self.extra_fields,
                **fields,
            },
        )
