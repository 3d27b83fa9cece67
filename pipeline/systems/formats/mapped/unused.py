"""The paths of a mapping that lead nowhere: a misspelled one reads nothing, and nothing else says so."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .....schemas.text import count_of
from ..fields.mapping import Mapping, is_of_message, parse
from ..fields.paths import decode_json, steps
from ..files import inputs
from ..messages import turns
from .reading import PLACES

LOOK = 1000
"""At most so many records are looked at."""
LARGEST = 64 * 1024 * 1024
"""Bytes of the files that are looked into although they have to be read as a whole."""
NAMED = 8
"""At most so many paths are named."""
JOINED = ("trajectory.native_id", "event.arguments", "scores.skip")
"""Keys whose paths are all read; of the others the first that has a value."""
Paths = set[tuple[str, str]]
"""(key of the mapping, path)"""


def unused_paths(files: Iterable[Path], text: str | None) -> str | None:
    """A sentence on the paths at which no record of the files has a field, not even an empty one; None if
    there are none. Of many records the first are looked at. `text` is the mapping's."""
    mapping = parse(text or "")
    at = mapping.events_at
    of_records = {(key, path) for key, path in mapping.head_paths() if path not in PLACES}
    of_scores = set(mapping.score_paths())
    of_events = {one for one in mapping.event_paths() if not is_of_message(*one)}
    every = of_records | of_scores | of_events
    unused = set(every)
    count = 0
    for record in itertools.islice(_records(files, mapping), LOOK):
        count += 1
        unused -= {one for one in unused if one not in of_scores and _leads(one[1], record)}
        if mapping.scores is not None:
            _use(unused, of_scores, turns.events_in(record, mapping.scores.at, None))
        if at is not None and unused & of_events:
            _use(unused, of_events, turns.events_in(record, at, mapping.turns), f"{at}[].")
        if not unused:
            return None
    if mapping.scores is not None and ("scores.at", mapping.scores.at) in unused:
        unused -= of_scores
    used = {key for key, _ in every - unused if key not in JOINED}
    names = [f"{key} ({path!r})" for key, path in sorted(unused) if key not in used]
    if not names or not count:
        return None
    records = f"the {'' if count < LOOK else 'first '}{count_of(count, 'record', 'records')}"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"none of {records} has a field where the mapping looks for {', '.join(names[:NAMED])}{more}"


def _use(unused: Paths, paths: Paths, items: Any, inside: str = "") -> None:
    """Take out the paths that lead somewhere in one of the items."""
    for item in items if isinstance(items, list) else ():
        unused -= {one for one in unused & paths if _leads(one[1].removeprefix(inside), item)}


def _leads(path: str, value: Any) -> bool:
    """Whether there is a field at a path."""
    for key in steps(path):
        value = decode_json(value) if isinstance(value, str) else value
        keys = range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
        if key not in keys:
            return False
        value = value[key]
    return True


def _records(files: Iterable[Path], mapping: Mapping) -> Iterator[dict[str, Any]]:
    size = 0
    for path in files:
        size += 0 if _is_lines(path, mapping) else path.stat().st_size
        if size <= LARGEST and inputs.is_mapped(path, mapping):
            records = inputs.records(path, mapping.input, names=mapping.columns_of_names)
            yield from (record for _, record in records if isinstance(record, dict))


def _is_lines(path: Path, mapping: Mapping) -> bool:
    return path.is_dir() or (mapping.input.format or inputs.format_of(path) or "jsonl") == "jsonl"
