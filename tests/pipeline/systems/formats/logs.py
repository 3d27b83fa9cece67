"""What the tests of the open formats share: a file with these lines, and what a reader makes of it."""

from __future__ import annotations

import json
from pathlib import Path

from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.registry import system_of
from coaudit.schemas import Event, Quarantined, Trajectory


def write_lines(path: Path, *values: object) -> Path:
    """A JSON Lines file; a text is a line as it is."""
    lines = [value if isinstance(value, str) else json.dumps(value) for value in values]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def read(system: str, path: Path, **options: object) -> tuple[list[Trajectory], list[Quarantined]]:
    """The trajectories of a file, and what could not be read of it."""
    reader = system_of(system)
    assert reader.recognises(path)
    found = list(reader.read(path, ReadOptions.model_validate(options)))
    wrong = [item for item in found if isinstance(item, Quarantined)]
    return [item for item in found if isinstance(item, Trajectory)], wrong


def one(system: str, path: Path, **options: object) -> Trajectory:
    """The only trajectory of a file with which nothing is wrong."""
    found, wrong = read(system, path, **options)
    assert not wrong, wrong
    (trajectory,) = found
    return trajectory


def call_and_answer(call: str, answer: object, **more: object) -> list[dict[str, object]]:
    """A tool call and its answer, as a chat has them."""
    function = {"name": "look", "arguments": "{}"}
    return [
        {"role": "assistant", "tool_calls": [{"id": call, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": call, "content": answer, **more},
    ]


def outline(events: tuple[Event, ...]) -> list[tuple[str, str, str | None]]:
    """Actor, kind, and the text or what was done."""
    return [(e.actor, e.kind, e.action.name if e.action else e.text) for e in events]
