"""The trained judge: a linear model on words and process features, learnt from existing ratings.

It is the judge that runs offline once there are labels; how far it can be trusted is what its
cross-validation says, and nothing more. So of whatever it has learnt from, and of other units of the same
instances, it says what it did before it had seen these (Zrnic and Candès 2024): of what was learnt by heart
it would be right in all, and rates that people's labels correct would be its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...schemas import Codebook, Rating, Unit, Verdict
from ...schemas.rating import Maker
from .features import features
from .model import Model


@dataclass(frozen=True)
class TrainedJudge:
    """Models that were loaded from a file, for their codebook; `version` is the hash of the file.

    `instances`: trajectory -> the instance of which it is a run, as the models name it. `teacher` is the
    rater whose labels it learnt.
    """

    codebook: Codebook
    name: str
    version: str
    models: Mapping[str, Model]
    instances: Mapping[str, str] = field(default_factory=dict)
    teacher: str = ""

    @cached_property
    def maker(self) -> Maker:
        """The rater."""
        parameters = {"parameters": {"learnt_from": self.teacher}}
        return Maker(f"trained:{self.name}", "model", self.version, self.codebook, parameters)

    def rate(self, units: Sequence[Unit]) -> Iterator[list[Rating]]:
        """Of each unit a rating for each code that was learnt."""
        inputs = [features(unit) for unit in units]
        names = [self._names(unit) for unit in units]
        answers = {code: model.predict(inputs, names) for code, model in self.models.items()}
        for place, unit in enumerate(units):
            yield [
                self.maker.rating(unit, Verdict(code, label, probability=probability))
                for code, many in answers.items()
                for label, probability in [many[place]]
            ]

    def _names(self, unit: Unit) -> list[str]:
        """What a unit may have been held out with, its own log before runs of the same instance."""
        trajectory = unit.trajectory_id
        return [trajectory, self.instances.get(trajectory, trajectory), name_of(unit)]


def name_of(unit: Unit) -> str:
    """What tells a unit from all others, and from what it was before it was changed."""
    return f"{unit.trajectory_id} {unit.hash}"
