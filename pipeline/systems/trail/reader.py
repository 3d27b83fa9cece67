"""Traces of TRAIL as OpenInference has them, and the annotations beside them.

A trace `data/GAIA/ID.json` has its annotation as `ID.json` in a folder whose name says so, such as
`processed_annotations_gaia`, beside it or above: `errors`, each with a category, the span where it is,
evidence, description and impact. A Parquet file has both as texts, `trace` and `labels`. People looked at
whole traces, so what they did not mark is not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ....schemas import JsonValue, Outcome, Quarantined, Trajectory
from ...codebooks import load
from ...units import spans
from ..base import Label, ReadOptions, expect, parse_json
from ..formats.fields.mapping import Input
from ..formats.files import inputs
from ..formats.traces import openinference
from ..formats.traces.otlp import PlacedTrajectory, conversations
from ..formats.traces.otlp_spans import Span

NAME = "trail"
COLUMNS = {"trace", "labels"}
"""Columns of a table with one trace a row."""
BOOK, STEPS = "trail", "trail_step"
ABOVE = 4
"""Folders above a trace, from its own one on, in which annotations are looked for."""
_COMMA = re.compile(rb",(\s*[}\]])")


@dataclass(frozen=True)
class Trace:
    """One run: its spans, and what people said of it, or why nothing is known of that."""

    spans: list[Span | Quarantined]
    annotation: JsonValue | Quarantined
    source: str
    line: int | None = None


def recognises(path: Path) -> bool:
    """A trace of OpenInference, or a table of traces with their labels; annotations alone are none."""
    return openinference.recognises(path) or (path.suffix == ".parquet" and _columns(path) >= COLUMNS)


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The runs of a file, with the scores that people gave them."""
    settings = options.model_copy(update={"condition": options.condition or path.absolute().parent.name})
    for trace in _traces(path):
        for item in conversations(path, trace.spans, settings, NAME):
            if isinstance(item, Quarantined):
                yield item.model_copy(update={"line": item.line or trace.line})
            else:
                yield item.trajectory.model_copy(update={"outcomes": tuple(_scores(trace.annotation))})


def labels(path: Path) -> Iterator[Label | Quarantined]:
    """The labels of a trace: each kind of error as present or absent, and the steps that have any."""
    for trace in _traces(path):
        items = conversations(path, trace.spans, ReadOptions(), NAME)
        first = next((item for item in items if isinstance(item, PlacedTrajectory)), None)
        if isinstance(trace.annotation, Quarantined):
            yield trace.annotation
        elif first is not None:
            try:
                yield from _labels(expect(trace.annotation, dict, "annotation"), first, trace.source)
            except ValueError as error:
                yield Quarantined(source=trace.source, line=trace.line, reason=str(error))


def _traces(path: Path) -> Iterator[Trace]:
    if path.suffix != ".parquet":
        file = annotation_of(path)
        reason = f"no annotation {path.name} in a folder of them beside it"
        none = Quarantined(source=str(path), reason=reason)
        annotation = none if file is None else _annotation(file.read_bytes(), str(file), None)
        yield Trace(list(openinference.spans_of_file(path)), annotation, str(file or path))
        return
    for number, row in inputs.records(path, Input(format="parquet")):
        if not isinstance(row, dict):
            continue
        spans, content = (str(row.get(name) or "").encode() for name in ("trace", "labels"))
        value = parse_json(spans, str(path), number)
        inside = list(openinference.spans_of(value, str(path), number))
        yield Trace(inside, _annotation(content, str(path), number), str(path), number)


def _annotation(content: bytes, source: str, line: int | None) -> JsonValue | Quarantined:
    """What people said; some of it has a comma too many."""
    value = parse_json(content, source, line)
    return parse_json(_COMMA.sub(rb"\1", content), source, line) if isinstance(value, Quarantined) else value


def _columns(path: Path) -> set[str]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return set(parquet.read_schema(path).names)
    except (pa.ArrowException, OSError, ValueError):
        return set()


def _scores(annotation: JsonValue | Quarantined) -> Iterator[Outcome]:
    """The scores of a run, from 1 to 5, each with why it was given."""
    scores = annotation.get("scores") if isinstance(annotation, dict) else None
    for record in scores if isinstance(scores, list) else ():
        if not isinstance(record, dict):
            continue
        for key, value in record.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                name = key.removesuffix("_score")
                why = record.get(f"{name}_reasoning")
                yield Outcome(name=name, value=value, data=None if why is None else {"reasoning": why})


def annotation_of(path: Path) -> Path | None:
    """The file with a trace's annotation; None where there is none."""
    for folder in list(path.absolute().parents)[:ABOVE]:
        beside = (
            one for one in sorted(folder.iterdir()) if one.is_dir() and "annotation" in one.name.lower()
        )
        match = next((one / path.name for one in beside if (one / path.name).is_file()), None)
        if match is not None:
            return match
    return None


def _labels(
    annotation: dict[str, JsonValue], conversation: PlacedTrajectory, source: str
) -> Iterator[Label | Quarantined]:
    name = conversation.trajectory.id
    cites: dict[str, list[int]] = {}
    why: dict[str, str] = {}
    places = set[int]()
    has_kinds = has_places = True
    errors = expect(annotation.get("errors"), list, "errors")
    for number, item in enumerate(errors):
        error = expect(item, dict, f"errors[{number}]")
        place = conversation.places.get(str(error.get("location")))
        if place is None:
            has_places = False
            reason = f"errors[{number}].location: no span {str(error.get('location'))[:40]!r} in the trace"
            yield Quarantined(source=source, reason=reason)
        else:
            places.add(place)
        try:
            code = code_of(str(error.get("category")))
        except ValueError as wrong:
            has_kinds = False
            yield Quarantined(source=source, reason=f"errors[{number}].category: {wrong}")
            continue
        why.setdefault(code, str(error.get("description") or error.get("evidence") or ""))
        cites.setdefault(code, []).extend([] if place is None else [place])
    base: dict[str, JsonValue] = {"trajectory": name, "rater": "gold"}
    for code in (one.code for one in load(BOOK).codes):
        # An error of an unknown kind may be of any.
        if code in cites or has_kinds:
            there: dict[str, JsonValue] = {"label": "present" if code in cites else "absent"}
            there |= {"cites": [*sorted(set(cites.get(code, ())))], "rationale": why.get(code) or None}
            yield Label({**base, "codebook": BOOK, "code": code, **there})
    steps: dict[str, JsonValue] = {**base, "codebook": STEPS, "code": "error"}
    # An error without a place may be at any step.
    for place in sorted(places):
        yield Label({**steps, "event": place, "label": "yes"}, "no" if has_places else None)
    if not errors and (first := next(spans(conversation.trajectory, "step"), None)):
        yield Label({**steps, "event": first[0].seq, "label": "no"}, "no")


def code_of(category: str) -> str:
    """The code of a category, however it is spelt; ValueError for one that is none."""
    letters = _letters(category)
    for code in load(BOOK).codes:
        if letters in (_letters(code.code), _letters(code.name)):
            return code.code
    raise ValueError(f"{category[:60]!r} is none of the set's kinds of errors")


def _letters(text: str) -> str:
    """The letters of a category without plurals, dashes and words such as error, to compare spellings."""
    words = re.findall(r"[a-z]+", text.lower())
    return "".join(
        word.rstrip("s")
        for word in words
        if word not in ("error", "errors", "issue", "issues", "hallucination", "hallucinations")
    )
