"""Traces of TRAIL as OpenInference has them, and the annotations beside them.

A trace `data/GAIA/ID.json` has its annotation as `ID.json` in a folder whose name says so, such as
`processed_annotations_gaia`, beside it or above: `errors`, each with a category, the span where it is,
evidence, description and impact. People looked at whole traces, so what they did not mark is not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ....schemas import JsonValue, Quarantined, Trajectory
from ...codebooks import load
from ..base import Label, ReadOptions, expect, parsed
from ..formats import openinference
from ..formats.otlp import Told, conversations

NAME = "trail"
BOOK, STEPS = "trail", "trail_step"
ABOVE = 4
"""So many folders up, annotations are looked for."""
_COMMA = re.compile(rb",(\s*[}\]])")


def recognises(path: Path) -> bool:
    """A trace of OpenInference; annotations are none."""
    return openinference.recognises(path)


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The run of a trace."""
    given = options.model_copy(update={"condition": options.condition or path.absolute().parent.name})
    for item in _told(path, given):
        yield item if isinstance(item, Quarantined) else item.trajectory


def labels(path: Path) -> Iterator[Label | Quarantined]:
    """What was found in a trace: each kind of error, present or not, and the steps where any is."""
    file = annotation_of(path)
    if file is None:
        yield Quarantined(source=str(path), reason=f"no annotation {path.name} in a folder of them beside it")
        return
    told = next((item for item in _told(path, ReadOptions()) if isinstance(item, Told)), None)
    content = parsed(file.read_bytes(), str(file), None)
    if isinstance(content, Quarantined):  # some have a comma too many
        content = parsed(_COMMA.sub(rb"\1", file.read_bytes()), str(file), None)
    if isinstance(content, Quarantined):
        yield content
    elif told is not None:
        try:
            yield from _labels(expect(content, dict, "annotation"), told, str(file))
        except ValueError as error:
            yield Quarantined(source=str(file), reason=str(error))


def annotation_of(path: Path) -> Path | None:
    """The file of a trace's annotation."""
    for folder in list(path.absolute().parents)[:ABOVE]:
        beside = (
            one for one in sorted(folder.iterdir()) if one.is_dir() and "annotation" in one.name.lower()
        )
        match = next((one / path.name for one in beside if (one / path.name).is_file()), None)
        if match is not None:
            return match
    return None


def _told(path: Path, options: ReadOptions) -> Iterator[Told | Quarantined]:
    return conversations(path, openinference.spans_of_file(path), options, NAME)


def _labels(annotation: dict[str, JsonValue], told: Told, source: str) -> Iterator[Label | Quarantined]:
    name = told.trajectory.id
    cites: dict[str, list[int]] = {}
    why: dict[str, str] = {}
    for number, given in enumerate(expect(annotation.get("errors") or [], list, "errors")):
        error = expect(given, dict, f"errors[{number}]")
        try:
            code = code_of(str(error.get("category")))
        except ValueError as wrong:
            yield Quarantined(source=source, reason=f"errors[{number}].category: {wrong}")
            continue
        why.setdefault(code, str(error.get("description") or error.get("evidence") or ""))
        place = told.places.get(str(error.get("location")))
        if place is None:
            reason = f"errors[{number}].location: no span {str(error.get('location'))[:40]!r} in the trace"
            yield Quarantined(source=source, reason=reason)
        cites.setdefault(code, []).extend([] if place is None else [place])
    base: dict[str, JsonValue] = {"trajectory": name, "rater": "gold"}
    for code in (one.code for one in load(BOOK).codes):
        there: dict[str, JsonValue] = {"label": "present" if code in cites else "absent"}
        there |= {"cites": [*sorted(set(cites.get(code, ())))], "rationale": why.get(code) or None}
        yield Label({**base, "codebook": BOOK, "code": code, **there})
    places = {place for many in cites.values() for place in many}
    steps: dict[str, JsonValue] = {**base, "codebook": STEPS, "code": "error"}
    for place in sorted(places):
        yield Label({**steps, "event": place, "label": "yes"}, "no")


def code_of(category: str) -> str:
    """The code of a category, however it is spelt; ValueError for one that is none."""
    wanted = _letters(category)
    for code in load(BOOK).codes:
        if wanted in (_letters(code.code), _letters(code.name)):
            return code.code
    raise ValueError(f"{category[:60]!r} is none of the set's kinds of errors")


def _letters(text: str) -> str:
    """What tells a kind of error, whatever its plurals, dashes and the word error."""
    words = re.findall(r"[a-z]+", text.lower())
    return "".join(
        word.rstrip("s")
        for word in words
        if word not in ("error", "errors", "issue", "issues", "hallucination", "hallucinations")
    )
