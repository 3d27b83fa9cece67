"""A spoilt record costs at most its own trajectory: thousands of mutated records over every reader.

A mutation puts a value that nobody expects at a random place of one record, takes a key out, or breaks the
line. Whatever comes of it: no reader raises, every trajectory of the other records is read as before, what
is lost has an address, and what is read can be measured and stored.
"""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.store.tables.columns import Columns
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.formats.fields import mapping
from coaudit.pipeline.systems.registry import SYSTEMS, measures
from coaudit.schemas import Quarantined, Trajectory
from tests.conftest import ROOT
from tests.test_docs import EXAMPLES

EACH = 200
"""Mutations a source; with the sources below over 2,000."""
HOSTILE: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 2**70, 1e308, float("inf"), float("-inf"), float("nan")),
    *("", " ", "x" * 5000, "\ud800", "\x00", "../../etc/passwd", "=1+1", "1970", "{", "[]", "99999-99-99"),
    *([], {}, [None], [[]], {"": None}, ["agent"], {"role": {"role": []}}, [1, "a", None, {}]),
)


@dataclass(frozen=True)
class Source:
    """A source that a system reads, and the file in it whose records are spoilt."""

    system: str
    place: Path
    file: str = ""
    map: str | None = None
    lines: bool = True


def cogym() -> Path:
    return next((ROOT / "data" / "cogym" / "simulated" / "collaborative").iterdir())


def written(folder: Path) -> list[Source]:
    """Every source, in a folder of its own, each with several trajectories where its format allows that."""
    data = ROOT / "data"
    folder.mkdir(parents=True)
    shutil.copytree(cogym(), folder / cogym().name)
    game = next((data / "overcooked" / "logs" / "model_a").rglob("*.json"))
    shutil.copy(game, folder / game.name)
    for name in ("strategyqa_tree.jsonl", "hotpotqa_pairs.jsonl", "intercode_results.jsonl"):
        shutil.copy(data / "rehac" / name, folder / name)
    shutil.copy(data / "coblock" / "record_25.json", folder / "record_25.json")
    shutil.copy(data / "coblock" / "dumpdata.json", folder / "dumpdata.json")
    for name in ("coaudit", "chat", "otlp"):
        (folder / f"{name}.jsonl").write_text("".join(many(name)), encoding="utf-8")
    (folder / "mapped.jsonl").write_text("".join(many("mapped")), encoding="utf-8")
    return [
        Source("cogym", folder / cogym().name, "event_log.jsonl"),
        Source("cogym", folder / cogym().name, "task_performance.json", lines=False),
        Source("overcooked", folder / game.name, lines=False),
        Source("rehac", folder / "strategyqa_tree.jsonl", lines=False),
        Source("rehac", folder / "hotpotqa_pairs.jsonl"),
        Source("rehac", folder / "intercode_results.jsonl"),
        Source("coblock", folder / "record_25.json", lines=False),
        Source("coblock", folder / "dumpdata.json", lines=False),
        Source("coaudit", folder / "coaudit.jsonl"),
        Source("chat", folder / "chat.jsonl"),
        Source("otlp", folder / "otlp.jsonl"),
        Source("mapped", folder / "mapped.jsonl", map=EXAMPLES["map"]),
    ]


def many(name: str) -> Iterator[str]:
    """The example of docs/formats.md six times, with the ids of each copy its own."""
    text = EXAMPLES[name].strip() + "\n"
    ids = {"coaudit": "run-1", "otlp": "conv-1", "mapped": "s1"}
    for number in range(6):
        wanted = ids.get(name)
        yield text.replace(wanted, f"{wanted}{number}") if wanted else text


def mutated(value: Any, chance: random.Random, *, whole: bool = False) -> Any:
    """The value with something else at one place in it.

    In a `whole` file nothing is taken out, and what says of a row what it is stays: that would be another
    file, not a spoilt one.
    """
    spoilt = copy.deepcopy(value)
    places = [place for place in _places(spoilt) if not (whole and place[1] in ("model", "pk"))]
    if not places:
        return chance.choice(HOSTILE)
    inside, key = chance.choice(places)
    if isinstance(inside, dict) and not whole and chance.random() < 0.2:
        del inside[key]
    else:
        inside[key] = chance.choice(HOSTILE)
    return spoilt


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from _places(inner)


def spoilt(text: str, source: Source, chance: random.Random) -> str:
    """The file with one record spoilt."""
    if not source.lines:
        return _dumped(mutated(json.loads(text), chance, whole=True))
    lines = text.splitlines()
    number = chance.randrange(len(lines))
    if chance.random() < 0.1 or not lines[number].startswith("{"):
        lines[number] = lines[number][: chance.randrange(1, len(lines[number]))]
    else:
        lines[number] = _dumped(mutated(json.loads(lines[number]), chance))
    return "\n".join(lines) + "\n"


def _dumped(value: Any) -> str:
    return json.dumps(value).encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def read(source: Source) -> tuple[dict[str, Trajectory], list[Quarantined]]:
    options = ReadOptions(map=source.map and mapping.text_of(_kept(source))[0])
    items = list(SYSTEMS[source.system].read(source.place, options))
    trajectories = [item for item in items if isinstance(item, Trajectory)]
    for trajectory in trajectories:
        list(measures(trajectory, {}))
        columns = Columns()
        columns.add(trajectory)
        columns.tables()
    wrong = [item for item in items if isinstance(item, Quarantined)]
    assert all(item.source and item.reason for item in wrong)
    return {t.id: t for t in trajectories}, wrong


def _kept(source: Source) -> str:
    path = source.place.with_name("mapping.toml")
    path.write_text(source.map or "", encoding="utf-8")
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(12))
def test_a_spoilt_record_costs_at_most_its_own_trajectory(tmp_path: Path, number: int) -> None:
    source = written(tmp_path / "logs")[number]
    file = source.place / source.file if source.file else source.place
    text = file.read_text(encoding="utf-8")
    whole, nothing = read(source)
    assert whole and not nothing, nothing
    chance = random.Random(number)
    for _ in range(EACH):
        wrong = spoilt(text, source, chance)
        file.write_text(wrong, encoding="utf-8")
        if not SYSTEMS[source.system].recognises(source.place):
            continue  # the log is then said to be of no known system
        found, lost = read(source)
        gone = [key for key in whole if key not in found]
        assert len(gone) <= 1 or not source.lines, (gone, wrong)
        assert not gone or lost or len(found) >= len(whole), "what is lost has an address"
