"""Studies that machines share, and what each machine sees of one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.systems.cogym.generate import generate
from tests.servers import BUCKET, Machine

TABLES = {
    "trajectories": "id, native_id, n_events, digest",
    "events": "trajectory_id, seq, sub, kind, text",
    "units": "*",
    "counted": "trajectory_id, event, codebook, code, rater, label",
    "outcomes": "trajectory_id, name, value, imported",
    "measured": "metric, trajectory_id, round(value, 9), participant, rater, scoring, definition",
}


def tables(machine: Machine) -> dict[str, list[str]]:
    """What a machine sees."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**machine.environment, "COAUDIT_MIRRORS": str(machine.folder)}.items():
            patch.setenv(name, value)
        store = Store(Workspace.at(machine.workspace))
        with store.reading() as connection:
            return {
                table: sorted(map(str, connection.execute(f"SELECT {columns} FROM {table}").fetchall()))
                for table, columns in TABLES.items()
            }


def logs(folder: Path, *, parts: int, sessions: int = 4) -> list[Path]:
    """Folders of generated sessions."""
    generate(folder / "all", parts * sessions, 1)
    for number, path in enumerate(sorted((folder / "all").glob("*/*"))):
        target = folder / f"part{number % parts}" / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    return [folder / f"part{part}" for part in range(parts)]


def alone(folder: Path, parts: list[Path], *commands: tuple[object, ...]) -> dict[str, list[str]]:
    """What one machine with a folder of its own comes to."""
    machine = Machine(folder / "alone", str(folder / "alone" / "workspace"))
    for command in (("ingest", *parts), *commands):
        machine.run(*command)
    return tables(machine)


def study(folder: Path, s3: dict[str, str], machines: int = 2, **settings: str) -> list[Machine]:
    """Machines in a folder; the study in the object store, which tests share, has the folder's name."""
    url = f"s3://{BUCKET}/{folder.name}"
    if settings:
        import obstore
        from obstore.store import from_url

        text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
        with pytest.MonkeyPatch.context() as patch:
            for key, value in s3.items():
                patch.setenv(key, value)
            obstore.put(from_url(url, client_options={"allow_http": True}), "coaudit.toml", text.encode())
    return [Machine(folder / f"machine{n}", url, s3) for n in range(machines)]
