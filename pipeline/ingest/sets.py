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
from .imports import Given, Imported, taken
from .look import looks_like
from .result import Ingested, Progress
from .run import ingest

SETS = ("mast", "whowhen", "trail")
"""Systems whose sources come with labels."""


@dataclass
class Brought:
    """What came in: logs, then labels."""

    logs: Ingested
    labels: Imported = field(default_factory=Imported)


def bring(
    store: Store, name: str, folder: Path, options: ReadOptions, progress: Progress | None = None
) -> Brought:
    """Ingest the logs of a set and import its labels; SourceError where the place holds none of it."""
    if name not in SETS:
        raise UsageError(f"unknown set {name!r}, expected one of {', '.join(SETS)}")
    if not folder.exists():
        raise SourceError(f"{folder}: no such file or folder")
    sources = [path for path, _ in discover(folder, name)]
    if not sources:
        raise SourceError(f"{folder}: no files of {name} in it; {looks_like(folder, str(folder))}")
    result = Brought(ingest(store, [folder], options, system=name, progress=progress))
    taken(store, _label_lines(name, sources, result.labels), result.labels)
    return result


def _label_lines(name: str, sources: list[Path], result: Imported) -> Iterator[Given]:
    """The labels of all sources; what is none of them is quarantined."""
    for path in sources:
        for item in SYSTEMS[name].labels(path):
            if isinstance(item, Quarantined):
                result.quarantined.append(item)
            else:
                values = {key: value for key, value in item.said.items() if value is not None}
                yield Given(str(path), None, values, item.rest)
