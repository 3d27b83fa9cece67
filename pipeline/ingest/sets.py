"""Public data sets with labels: their logs and what their own people said of them, in one go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ...schemas import Quarantined
from ..errors import SourceError, UsageError
from ..store import Store
from ..systems import ReadOptions
from ..systems.registry import SYSTEMS
from .discover import discover
from .imports import ImportResult, RatingLine, import_lines
from .look import looks_like
from .result import IngestResult, Progress
from .run import ingest

SETS = ("mast", "whowhen", "trail")
"""Systems whose sources come with labels."""


@dataclass
class SetImport:
    """The results of importing a set: its logs, then its labels."""

    logs: IngestResult
    labels: ImportResult = field(default_factory=ImportResult)


def bring(
    store: Store, name: str, folder: Path, options: ReadOptions, progress: Progress | None = None
) -> SetImport:
    """Ingest the logs of a set and import its labels; SourceError where the place holds none of it."""
    if name not in SETS:
        raise UsageError(f"unknown set {name!r}, expected one of {', '.join(SETS)}")
    if not folder.exists():
        raise SourceError(f"{folder}: no such file or folder")
    unknown: list[Path] = []
    sources = [path for path, _ in discover(folder, name, unknown=unknown.append)]
    if not sources:
        raise SourceError(f"{folder}: no files of {name} in it; {looks_like(folder, str(folder))}")
    result = SetImport(ingest(store, [folder], options, system=name, progress=progress))
    result.labels.quarantined += _strangers(name, sources, unknown)
    import_lines(store, _label_lines(name, sources, result.labels), result.labels)
    return result


def _strangers(name: str, sources: list[Path], unknown: list[Path]) -> Iterator[Quarantined]:
    """The files beside the sources that are called as they are, and are none."""
    kin = {(path.parent, path.suffix) for path in sources}
    for path in unknown:
        if (path.parent, path.suffix) in kin and not path.name.startswith("."):
            yield Quarantined(
                source=str(path), reason=f"not read: no file of {name}, or one that was cut off"
            )


def _label_lines(name: str, sources: list[Path], result: ImportResult) -> Iterator[RatingLine]:
    """The labels of all sources; what is no label is quarantined."""
    for path in sources:
        for item in SYSTEMS[name].labels(path):
            if isinstance(item, Quarantined):
                result.quarantined.append(item)
            else:
                values = {key: value for key, value in item.fields.items() if value is not None}
                yield RatingLine(str(path), None, values, item.rest)
