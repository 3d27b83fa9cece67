"""Workspaces for tests, used as a library."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from coaudit.pipeline.analyze.metrics import metrics, trajectory_metrics
from coaudit.pipeline.ingest import imports
from coaudit.pipeline.ingest.imports import ImportResult
from coaudit.pipeline.ingest.measure import save
from coaudit.pipeline.ingest.result import IngestResult
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.store import Store, Workspace, dictionaries
from coaudit.pipeline.systems import ReadOptions
from coaudit.schemas import Metric, Trajectory

Line = dict[str, Any]


def opened(path: Path) -> Store:
    """The store of a workspace, as it is or is not."""
    return Store(Workspace(path))


def made(path: Path) -> Store:
    """The store of a new workspace with tables and codebooks: what a test is not about, and takes longest."""
    store = opened(path)
    path.mkdir(parents=True)
    store.workspace.database.write_bytes(_empty())
    return store


def holding(path: Path, runs: Sequence[Trajectory] = ()) -> Store:
    """The same with these trajectories, whichever logs they come from."""
    store = made(path)
    (path / "sources.jsonl").touch()
    with store.writing() as connection:
        save(store, runs, connection)
    return store


@cache
def _empty() -> bytes:
    """A database in which nothing is but the codebooks."""
    with TemporaryDirectory() as folder:
        store = opened(Path(folder))
        with store.writing() as connection:
            store.catch_up(connection)
        return store.workspace.database.read_bytes()


def copied(store: Store, path: Path) -> Store:
    """The store of a copy of a workspace, whose sources lie where they did."""
    shutil.copytree(store.workspace.path, path)
    return opened(path)


def take(
    store: Store, *paths: Path, system: str = "auto", copy: bool = False, **options: Any
) -> IngestResult:
    """Ingest these paths."""
    return ingest(store, paths, ReadOptions.model_validate(options), system=system, copy=copy)


def counts(result: IngestResult) -> tuple[int, int, int]:
    """New or updated trajectories, unchanged ones, pieces that could not be read."""
    return result.trajectories, result.unchanged, len(result.quarantined)


def document(store: Store, **options: Any) -> str:
    """Everything that is measured, in a form whose bytes can be compared."""
    whole = [row.model_dump() for row in metrics(store, **options)]
    each = [row.model_dump() for row in trajectory_metrics(store)]
    return json.dumps([whole, each])


def rows(store: Store, query: str, *parameters: Any) -> list[Line]:
    """What a query says."""
    with store.reading() as connection:
        return dictionaries(connection, query, parameters)


def metric(found: Iterable[Metric], name: str, **which: Any) -> Metric:
    """The one row of a metric; `which` are its other fields, such as `rater`."""
    (row,) = [r for r in found if r.metric == name and all(getattr(r, k) == v for k, v in which.items())]
    return row


def write_lines(path: Path, lines: Iterable[Line]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def rate(store: Store, lines: Iterable[Line]) -> ImportResult:
    """Import ratings."""
    store.workspace.path.mkdir(exist_ok=True)
    return imports.ratings(store, write_lines(store.workspace.path / "given.jsonl", lines))


def give(store: Store, lines: Iterable[Line]) -> ImportResult:
    """Import outcomes."""
    return imports.outcomes(store, write_lines(store.workspace.path / "given.jsonl", lines))


def verdict(trajectory: str, event: int | None, codebook: str, label: str, **more: Any) -> Line:
    """A line that `ratings import` reads; the codebook's only code unless another is given."""
    given = {"trajectory": trajectory, "codebook": codebook, "code": codebook, "label": label, "rater": "ann"}
    return given | ({} if event is None else {"event": event}) | more
