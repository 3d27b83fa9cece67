"""Where trajectories come from: files that are read as they are, or the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...schemas import Quarantined, Trajectory
from ..errors import SourceError, UsageError
from ..store import Selection, Store, execute
from ..systems import ReadOptions
from ..systems.registry import SYSTEMS


def of_files(paths: Sequence[Path]) -> tuple[list[Trajectory], list[Quarantined]]:
    """The trajectories of files, and what could not be read of them.

    SourceError for a file that is no known system's, or of which nothing could be read. A tree file may be
    given on its own; it needs no workspace.
    """
    trajectories: list[Trajectory] = []
    quarantined: list[Quarantined] = []
    for path in paths:
        if not path.exists():
            raise SourceError(f"{path}: no such file or folder")
        if path.is_file() and not path.stat().st_size:
            raise SourceError(f"{path}: the file is empty")
        system = next((s for s in SYSTEMS.values() if not s.on_request and s.recognises(path)), None)
        if system is None:
            raise SourceError(
                f"{path}: no log of a known system; expected a file of trajectories, or a tree of choices "
                "(one JSON object, \"(idx, 'bits')\": step)"
            )
        items = list(system.read(path, ReadOptions()))
        wrong = [item for item in items if isinstance(item, Quarantined)]
        runs = [item for item in items if isinstance(item, Trajectory)]
        if not runs:
            reason = wrong[0].reason if wrong else "it holds no trajectory"
            raise SourceError(f"{path}: nothing could be read: {reason}")
        trajectories += runs
        quarantined += wrong
    return trajectories, quarantined


def of_store(store: Store, only: Selection) -> list[Trajectory]:
    """The trajectories of a selection, with their states; UsageError where there is none."""
    where, values = only.where()
    with store.reading() as connection:
        rows = execute(
            connection, f"SELECT t.id FROM trajectories t WHERE {where} ORDER BY t.id", values
        ).fetchall()
        result = store.load(connection, [row[0] for row in rows], states=True)
    if not result:
        raise UsageError(
            "no trajectory is selected; `coaudit ingest PATH` brings some in, or give files: "
            "`coaudit advise train FILE…`"
        )
    return result
