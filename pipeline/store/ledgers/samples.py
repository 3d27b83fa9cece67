"""Samples: which units people are asked about, kept as a ledger each (`samples/NAME.jsonl`).

The first line is the design, then comes a line for each unit in the order in which to ask, with its inclusion
probability. A sample is written once and never changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from ....schemas import Model, content_hash
from ....schemas.text import rule_of
from ...errors import SourceError, UsageError
from .. import disk
from ..connection import Row
from ..workspace import Workspace
from . import ledger

ADJUDICATION = "disagreements"
"""The method that draws what people disagree on; the answer to it settles the unit and becomes its gold
rating."""


class Design(Model):
    """How a sample was drawn: with the same design from the same corpus it is drawn again."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$")
    codebooks: dict[str, str]
    """Name -> version when the sample was drawn."""
    method: str
    unit: str
    size: int
    seed: int
    strata: tuple[str, ...] = ()
    judge: str | None = None
    pilot: str | None = None
    overlap: float
    annotators: int
    where: tuple[tuple[str, str], ...] = ()
    """Fields or tags of the trajectories drawn from, with their values."""
    corpus: dict[str, int] = Field(default_factory=dict)
    """Codebook -> how many units there were to draw from."""
    created: str
    coaudit: str

    @property
    def identity(self) -> str:
        """What tells two samples of one name apart."""
        unsaid = set() if self.where else {"where"}  # as in samples made before there was this field
        return content_hash(self.model_dump(mode="json", exclude=unsaid))[:12]


class SampledUnit(Model):
    """A unit that people are asked about."""

    codebook: str
    trajectory: str
    event: int | None = None
    unit_hash: str
    probability: float | None = Field(default=None, gt=0, le=1)
    stratum: str | None = None
    overlap: int = Field(default=1, ge=1)
    """How many annotators are to label it."""


class Frame(Model):
    """The units of a codebook that had one and the same probability of being drawn, drawn or not.

    A unit that two samples could have drawn has the probability that either does, so both must say theirs,
    also where they did not draw it.
    """

    frame: str
    """The codebook."""
    probability: float = Field(gt=0, le=1)
    units: dict[str, tuple[int | None, ...]]
    """Trajectory -> seq of the first event of each unit."""


class Sample(Model):
    """A design, what was drawn under it, and from what."""

    design: Design
    units: tuple[SampledUnit, ...]
    frames: tuple[Frame, ...] = ()


def this_version() -> str:
    """coaudit's version, for the design."""
    return version("coaudit")


def path(workspace: Workspace, name: str) -> Path:
    """Where a sample lies; UsageError for a name that is no file name."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}", name):
        raise UsageError(f"a sample's name must be at most 40 letters, digits, '.', '_' or '-', got {name!r}")
    return workspace.samples / f"{name}.jsonl"


def names(workspace: Workspace) -> list[str]:
    """The samples there are."""
    return [file.stem for file in ledger.files(workspace.samples)]


def save(workspace: Workspace, sample: Sample) -> Path:
    """Write a new sample; one that exists is never overwritten."""
    target = path(workspace, sample.design.name)
    if target.exists():
        raise UsageError(f"{target}: this sample exists; choose another --name")
    if not sample.units:
        raise UsageError("the sample is empty: no unit of the codebook to draw from")
    workspace.create()
    workspace.samples.mkdir(parents=True, exist_ok=True)
    lines = (sample.design, *sample.units, *sample.frames)
    content = "".join(f"{line.model_dump_json()}\n" for line in lines).encode()
    if workspace.remote and not workspace.remote.create(f"samples/{target.name}", content):
        raise UsageError(f"{workspace.home}/samples/{target.name}: this sample exists; choose another --name")
    disk.put(target, content)
    return target


def load(workspace: Workspace, name: str | None) -> Sample:
    """The sample of that name, or the only one there is."""
    existing = names(workspace)
    if name is None:
        if len(existing) != 1:
            raise UsageError(
                f"--sample must name one of {', '.join(existing) or '(none yet: coaudit sample)'}"
            )
        name = existing[0]
    if name not in existing:
        raise UsageError(f"no sample {name!r}, expected one of {', '.join(existing) or '(none yet)'}")
    return read(path(workspace, name))


def read(file: Path) -> Sample:
    """A sample from its file; SourceError names the line that isn't one."""
    units, frames = [], []
    design: Design | None = None
    for number, line in enumerate(file.read_bytes().splitlines(), start=1):
        try:
            if design is None:
                design = Design.model_validate_json(line)
            elif line.startswith(b'{"frame"'):
                frames.append(Frame.model_validate_json(line))
            else:
                units.append(SampledUnit.model_validate_json(line))
        except ValidationError as error:
            raise SourceError(f"{file}:{number}: {rule_of(error.errors()[0])}") from error
    if design is None:
        raise SourceError(f"{file}: the file is empty, so it is not a sample")
    if design.name != file.stem:
        raise SourceError(f"{file}: holds the sample {design.name!r}, whose file is {design.name}.jsonl")
    return Sample(design=design, units=tuple(units), frames=tuple(frames))


def rows(sample: Sample) -> Iterator[Row]:
    """The rows of the table `samples`."""
    design = sample.design
    more = design.model_dump(include={"judge", "pilot", "where", "corpus"}, exclude_defaults=True)
    described = {"method": design.method, "unit": design.unit, "strata": design.strata, **more}
    design_json = json.dumps(described)
    for unit in sample.units:
        yield {
            "sample": design.name,
            "trajectory_id": unit.trajectory,
            "event": unit.event,
            "codebook": unit.codebook,
            "unit_hash": unit.unit_hash,
            "probability": unit.probability,
            "stratum": unit.stratum,
            "overlap": unit.overlap,
            "design": design_json,
            "seed": design.seed,
            "created": design.created,
        }


def frame_columns(sample: Sample) -> dict[str, list[Any]]:
    """The columns of the table `frames`: every unit there was to draw from, which may be many."""
    units = [
        (frame, trajectory, event)
        for frame in sample.frames
        for trajectory, events in frame.units.items()
        for event in events
    ]
    return {
        "sample": [sample.design.name] * len(units),
        "codebook": [frame.frame for frame, _, _ in units],
        "trajectory_id": [trajectory for _, trajectory, _ in units],
        "event": [event for _, _, event in units],
        "probability": [frame.probability for frame, _, _ in units],
    }


def changed_files(workspace: Workspace, offsets: dict[str, int]) -> Sequence[Path]:
    """The sample files whose size is not the one that the table was loaded at."""
    sizes = ledger.sizes(workspace.samples)
    return [workspace.samples / name for name in sizes if offsets.get(f"samples/{name}") != sizes[name]]
