"""From units to questions: what a language model still has to be asked.

A question is known by the hash of its prompt with the parameters it is sent with. One that this rater
asked before is `already` rated. One that another rater, or an older version of this one, asked of the same
model is answered from the ledger. Units with the very same prompt (a "Yes." said twice in a trajectory) are
asked once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...judges.llm import Case, LLMJudge
from ...judges.llm.ask import Outcome
from ...judges.llm.prompt_hashes import PromptHashes
from ...judges.llm.quoting import nonce
from ...schemas import Maker, Rating, Trajectory, Unit, Verdict, canonical_json
from .scope import PriorRating, Scope, Summary


@dataclass
class Job:
    """One question, and the units with the same prompt that its answer is for."""

    judge: LLMJudge
    maker: Maker
    case: Case
    prompt_hash: str
    repeat: int = 0
    units: list[Unit] = field(default_factory=list)

    def ratings(self, outcome: Outcome) -> list[list[Rating]]:
        """The ratings of each unit. Tokens and cost are split among the codes of the first unit, so that
        ratings sum to what the requests took."""
        codes = len(outcome.verdicts)
        left_out = _external_left_out(outcome.left_out)
        external = left_out | ({"windows": outcome.windows} if outcome.windows > 1 else {})
        shares = [
            {
                "prompt_tokens": _share(outcome.prompt_tokens, codes, i),
                "cached_tokens": _share(outcome.cached_tokens, codes, i),
                "completion_tokens": _share(outcome.completion_tokens, codes, i),
                "cost_usd": None if outcome.cost_usd is None else outcome.cost_usd / codes,
                "external": external,
            }
            for i in range(codes)
        ]
        first, *same = self.units
        copies: list[dict[str, Any]] = [{"external": {"same_prompt_as": first.event, **left_out}}] * codes
        return [
            self._unit_ratings(first, outcome, shares),
            *(self._unit_ratings(unit, outcome, copies) for unit in same),
        ]

    def _unit_ratings(self, unit: Unit, outcome: Outcome, extras: list[dict[str, Any]]) -> list[Rating]:
        common = {"prompt_hash": self.prompt_hash, "model": outcome.model, "seconds": outcome.seconds}
        common |= {"repeat": self.repeat} if self.repeat else {}
        pairs = zip(outcome.verdicts, extras, strict=True)
        return [self.maker.rating(unit, v, **common, **m) for v, m in pairs]


@dataclass
class Planner:
    """Turns units into jobs; counts the units that need none."""

    judge: LLMJudge
    maker: Maker
    scope: Scope
    secret: bytes
    summary: Summary
    background: Callable[[Trajectory], str | None]
    copies: list[Rating] = field(default_factory=list)
    """Ratings copied from another rater's, who asked the same model the same question."""
    units: int = 0
    """Units that were asked about, or answered by copies."""

    @cached_property
    def _hashes(self) -> PromptHashes:
        return PromptHashes(self.judge)

    @property
    def is_full(self) -> bool:
        """Whether --limit is reached."""
        return self.scope.limit is not None and self.units >= self.scope.limit

    def jobs(self, units: Iterable[tuple[Trajectory, Unit, list[PriorRating]]]) -> Iterator[Job]:
        """The questions that units with their earlier ratings leave open, those of a trajectory together."""
        waiting: dict[tuple[str, int], Job] = {}
        current = ""
        for trajectory, unit, ratings in units:
            # Prompts have a marker of their trajectory, so that only its units share one.
            if trajectory.id != current:
                yield from waiting.values()
                waiting.clear()
                current = trajectory.id
            if self.is_full:
                break
            mark = nonce(self.secret, trajectory.id)
            case = Case(unit, mark, trajectory.result, self.background(trajectory))
            key, copies_before = self._hashes.of(case), len(self.copies)
            repeats = [
                repeat
                for repeat in range(self.scope.repeats)
                if not self._is_known(unit, key, ratings, repeat)
            ]
            self.units += bool(repeats) or len(self.copies) > copies_before
            for repeat in repeats:
                job = waiting.setdefault((key, repeat), Job(self.judge, self.maker, case, key, repeat))
                job.units.append(unit)
        yield from waiting.values()

    def _is_known(self, unit: Unit, key: str, ratings: list[PriorRating], repeat: int) -> bool:
        same = [k for k in ratings if k.prompt_hash == key and k.parameters == self._parameters]
        answers = [k for k in same if k.repeat == repeat]
        own = [k for k in answers if k.rater == self.maker.rater]
        current = [k for k in own if k.current]
        # Versions that take turns in one workspace each copy the other's answer once.
        if self._covers(current) and self._covers([k for k in own if k.rater_version == self.maker.version]):
            if self.scope.retry_errors and any(k.failed for k in current):
                return False
            self.summary.already += 1
            return True
        # Another's answers are no repeats; of several to the first question the rater's own stays its own.
        usable = [k for k in (own if repeat else answers) if not k.failed]
        if not self._covers(usable):
            return False
        by_code = {k.rest["code"]: k for k in sorted(usable, key=lambda k: k.rater == self.maker.rater)}
        self.copies += [self._copy(unit, k) for k in by_code.values()]
        self.summary.rated += 1
        for rater in {k.rater for k in by_code.values()} - {self.maker.rater}:
            self.summary.copies[rater] = self.summary.copies.get(rater, 0) + 1
        return True

    def _covers(self, ratings: list[PriorRating]) -> bool:
        return {code.code for code in self.judge.codebook.codes} <= {k.rest["code"] for k in ratings}

    def _copy(self, unit: Unit, rating: PriorRating) -> Rating:
        rest = rating.rest
        verdict = Verdict(
            code=rest["code"],
            label=rating.label,
            cites=tuple(rest["cites"] or ()),
            quote=rest["quote"],
            error_source=rest["error_source"],
            rationale=rest["rationale"],
            probability=rest["probability"],
        )
        fields = {"model": rest["model"], "prompt_hash": rating.prompt_hash, "repeat": rating.repeat}
        external = {"answered_for": rating.rater, **_external_left_out(rating.left_out)}
        return self.maker.rating(unit, verdict, **fields, external=external)

    @property
    def _parameters(self) -> str:
        return canonical_json(self.maker.extra_fields["parameters"])


def _external_left_out(names: Sequence[str]) -> dict[str, Any]:
    """What `external` of a rating says of the parameters that the endpoint did not take."""
    return {"left_out": list(names)} if names else {}


def _share(total: int, parts: int, index: int) -> int:
    return total // parts + (index < total % parts)
