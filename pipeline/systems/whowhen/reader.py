"""Who&When (Zhang et al. 2025): failed runs of agent teams, each with who made the decisive error, and when.

Two folders of one JSON file a case: `history` is a list of turns. In `Algorithm-Generated` a turn has a
`name` and a framework's role that says nothing; in `Hand-Crafted` the role carries the name, with what it
is doing behind it: `Orchestrator (thought)`. Everybody but the human counts as an agent, the terminal too:
the set's labels name any of them. The step of a label is the place in `history`, and so is an event's
number.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ....schemas import JsonValue, Quarantined, Trajectory
from ..base import Label, ReadOptions, expect, json_file
from ..formats.mapped.reader import read as read_mapped

NAME = "whowhen"
LOOK = 64 * 1024
"""Bytes at either end of a file that tell whose it is."""
MAP = """
[input]
format = "json"
[constants]
system = "whowhen"
setting = "simulated"
[trajectory]
native_id = "question_ID"
hidden = "ground_truth"
[tags]
level = "level"
[outcomes]
success = "is_correct"
[event]
actor = ["history[].name", "history[].role"]
text = "history[].content"
[names]
strip = ' \\([^)]*\\)$'
[[roles]]
where = { "history[].role" = "human" }
kind = "human"
[[roles]]
where = { "history[].content" = "~" }
kind = "agent"
"""
BOOKS = ("responsible_agent", "decisive_step")


def recognises(path: Path) -> bool:
    """A JSON file with a history and, at one of its ends, who made the mistake."""
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(LOOK)
        file.seek(max(0, path.stat().st_size - LOOK))
        tail = file.read(LOOK)
    return head.lstrip()[:1] == b"{" and b'"history"' in head + tail and b'"mistake_agent"' in head + tail


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The run of a case."""
    settings = options.model_copy(
        update={"map": MAP, "condition": options.condition or path.absolute().parent.name}
    )
    for item in read_mapped(path, settings):
        yield item if isinstance(item, Quarantined) else item.model_copy(update={"system": NAME})


def labels(path: Path) -> Iterator[Label | Quarantined]:
    """Who made the decisive error and when, as the set's gold labels; every other unit is none."""
    value = json_file(path)
    run = next((item for item in read(path, ReadOptions()) if isinstance(item, Trajectory)), None)
    if run is None or isinstance(value, Quarantined):
        return
    try:
        case = expect(value, dict, "case")
        why = case.get("mistake_reason")
        base: dict[str, JsonValue] = {
            "trajectory": run.id,
            "code": "decisive",
            "label": "yes",
            "rater": "gold",
            "rationale": why if isinstance(why, str) else None,
        }
        yield Label({**base, "codebook": BOOKS[0], "participant": case.get("mistake_agent")}, "no")
        yield Label({**base, "codebook": BOOKS[1], "event": _step(case.get("mistake_step"))}, "no")
    except ValueError as error:
        yield Quarantined(source=str(path), reason=str(error))


def _step(value: JsonValue) -> int:
    if isinstance(value, (int, str)) and str(value).strip().isdigit():
        return int(value)
    raise ValueError(f"mistake_step: expected a place in the history, got {value!r:.40}")
