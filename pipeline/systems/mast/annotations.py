"""The labels of MAST: three people's on 19 traces, and those of the authors' model on all.

People's labels stand under the number and name of a mode, true or false an annotator. The numbers changed
between the rounds of annotation: the first round asked about 18 modes, the second and third about 17, only
the last about the 14 that were published. They are aligned here by the modes' definitions, which were
carried over; what was given up stands under D.1 to D.4. `mast_annotation` has 1, 0 or null a published
mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ....schemas import JsonValue, Quarantined
from ..base import Label, ReadOptions, expect
from .reader import records, trajectory

BOOK = "mast"
MODEL = "mast_annotator"
"""The rater behind `mast_annotation`."""
FIRST = {
    "1.1": "1.1",
    "1.2": "2.6",
    "1.4": "2.2",
    "1.5": "1.5",
    "2.2": "1.3",
    "2.3": "1.4",
    "2.4": "2.1",
    "2.5": "2.3",
    "2.6": "1.2",
    "3.2": "2.4",
    "3.3": "2.5",
    "4.1": "3.1",
    "4.2": "3.3",
    "4.3": "3.2",
}
"""Number in the first round -> published mode."""
SECOND = {
    "1.1": "1.1",
    "1.2": "2.6",
    "1.3": "1.5",
    "1.5": "1.3",
    "1.6": "1.4",
    "1.7": "1.2",
    "2.1": "2.1",
    "2.2": "2.2",
    "2.3": "2.3",
    "2.6": "2.4",
    "2.7": "2.5",
    "3.1": "3.1",
    "3.2": "3.2",
    "3.3": "3.3",
}
"""The same of the second and third round."""
GIVEN_UP = {"undetected": "D.1", "unbatched": "D.2", "disagreement": "D.3", "waiting": "D.4"}
"""First word of a mode's name that no published mode took over -> its code."""
_MODE = re.compile(r"\s*(\d\.\d)\s*(.*)")


def labels(path: Path) -> Iterator[Label | Quarantined]:
    """Every label of a file; one that cannot be read costs no other."""
    for number, record in records(path):
        if isinstance(record, Quarantined):
            continue
        try:
            for item in of_record(expect(record, dict, "record"), str(path)):
                if isinstance(item, str):
                    yield Quarantined(source=str(path), line=number, reason=item)
                else:
                    yield item
        except (ValueError, TypeError, AttributeError) as error:
            yield Quarantined(source=str(path), line=number, reason=str(error))


def of_record(record: dict[str, JsonValue], source: str) -> Iterator[Label | str]:
    """People's labels of a record, then the model's; a sentence for each that cannot be read."""
    name = trajectory(record, source, ReadOptions()).id
    base: dict[str, JsonValue] = {"trajectory": name, "codebook": BOOK}
    items = expect(record.get("annotations") or [], list, "annotations")
    modes = [str(entry.get("failure mode")) for entry in items if isinstance(entry, dict)]
    numbers = {match[1] for mode in modes if (match := _MODE.match(mode))}
    for number, entry in enumerate(items):
        place = f"annotations[{number}]"
        try:
            item = expect(entry, dict, "label")
            code = code_of(str(item.get("failure mode")), numbers)
        except ValueError as error:
            yield f"{place}: {error}"
            continue
        for rater, value in item.items():
            if rater.lower().startswith("annotator") and value not in (None, ""):
                yield _read_label({**base, "code": code, "rater": rater}, value, f"{place}.{rater}")
    annotation = record.get("mast_annotation")
    for code, value in expect(annotation, dict, "mast_annotation").items() if annotation is not None else ():
        if value is not None:
            fields = {**base, "code": code, "rater": MODEL, "rater_kind": "llm"}
            yield _read_label(fields, value, f"mast_annotation.{code}")


def _read_label(fields: dict[str, JsonValue], value: JsonValue, place: str) -> Label | str:
    try:
        return Label({**fields, "label": "present" if _truth(value) else "absent"})
    except ValueError as error:
        return f"{place}: {error}"


def code_of(mode: str, numbers: set[str]) -> str:
    """The published mode of a label, by the round whose numbers a record has; ValueError for none."""
    match = _MODE.match(mode)
    if match is None:
        raise ValueError(f"failure mode: expected a number and a name, got {mode[:60]!r}")
    first = re.split(r"\W", match[2].lower())[0]
    if first in GIVEN_UP:
        return GIVEN_UP[first]
    table = FIRST if numbers & {"4.1", "4.2", "4.3"} else SECOND if numbers & {"1.6", "1.7", "2.7"} else None
    code = match[1] if table is None else table.get(match[1])
    if code is None:
        raise ValueError(f"failure mode: {mode.splitlines()[0][:60]!r} is none that was published")
    return code


def _truth(value: JsonValue) -> bool:
    """True or false, as such, as a number or as a word; ValueError for anything else."""
    word = str(value).strip().lower()
    if word in ("true", "yes", "1", "1.0", "y", "x"):
        return True
    if word in ("false", "no", "0", "0.0", "n"):
        return False
    raise ValueError(f"expected true or false of an annotator, got {value!r:.40}")
