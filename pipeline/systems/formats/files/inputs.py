"""Files of any shape as records, as a mapping's `[input]` has them: JSON, tables, spreadsheets and text.

A record's number is that of its line or row, from 1; None where a file is one record.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from itertools import chain, count
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from .....schemas import JsonValue, Quarantined
from ...base import ending, numbered_lines, parse_json, plain_json
from ..fields.mapping import Input, Mapping
from ..fields.paths import as_list, getter
from . import excel, parquet, separated
from .decoding import encoding_reason, text_of
from .event_files import event_files
from .numbered import gather_turns
from .sides import split_sides
from .tables import MAX_TEXT, Row

LOG = ".log"
"""The suffix that says least: a text, or JSON Lines."""
FORMATS = {
    **dict.fromkeys((".jsonl", ".ndjson", ".jsonlines"), "jsonl"),
    **dict.fromkeys((".json",), "json"),
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".ods"), "excel"),
    **dict.fromkeys((".txt", LOG, ".md", ".vtt", ".srt"), "text"),
}
"""Suffix -> format."""
ALL = "*"
"""As `sessions`, in place of a path: the values of the JSON object are the records, each with its `key`."""
ITEMS = "items"
"""The key of the list, in the record that is made of a list."""
SAID = "said"
"""The key of what one of the speakers said, in the record of a round."""
LOOK = 64 * 1024
"""Bytes that tell the format of a file whose name does not."""
Record = Row


def format_of(path: Path) -> str | None:
    """The format by the file's name, else by its first bytes; None for a name without a format and content
    that is no JSON. A folder with a file for each event is JSON Lines."""
    if path.is_dir():
        return "jsonl" if event_files(path) else None
    end = ending(path).lower()
    form = FORMATS.get(end)
    if form is not None and end != LOG:
        return form
    with path.open("rb") as file:
        head = file.read(LOOK).lstrip(b"\xef\xbb\xbf \t\r\n")
    if form is not None:
        return "jsonl" if _begins_with_object(head) else form
    if head[:1] not in (b"{", b"["):
        return None
    try:
        from_json(head.partition(b"\n")[0])
    except ValueError:
        return "json" if b"\n" in head or len(head) < LOOK else "jsonl"
    return "jsonl" if head[:1] == b"{" else "json"


def is_mapped(path: Path, mapping: Mapping) -> bool:
    """Whether a mapping is for a file, by its name and format; for a text only where it cuts one into turns
    or names the format."""
    layout = mapping.input
    if layout.files is not None:
        names = [path.name, *{one.name for one in event_files(path)[:1]}]
        return any(fits_name(name, as_list(layout.files)) for name in names)
    form = format_of(path)
    if layout.format is None:
        return form != "text" or mapping.turns is not None
    return form in (layout.format, None) or path.suffix == ""


def _begins_with_object(head: bytes) -> bool:
    """Whether the first line is an object of JSON, as programs write into what they call `app.log`."""
    line, end, _ = head.partition(b"\n")
    try:
        return line[:1] == b"{" and isinstance(from_json(line, allow_partial=not end), dict)
    except ValueError:
        return False


def fits_name(name: str, patterns: list[str]) -> bool:
    """Whether a file's name fits one of the patterns, and none of those that begin with `!`."""
    wrong = [one[1:] for one in patterns if one.startswith("!")]
    right = [one for one in patterns if not one.startswith("!")] or ["*"]
    return any(fnmatchcase(name, one) for one in right) and not any(fnmatchcase(name, one) for one in wrong)


def records(
    path: Path, layout: Input, *, names: Collection[str] = (), as_written: bool = False
) -> Iterator[Record]:
    """(line or row, record or what is wrong with it) of a file; of rounds, last, which of their fields no
    record has.

    `names` are columns of a CSV that stay texts where 1.10 would become 1.1; `as_written` keeps the cells of
    all columns, for any may be a name: 1.10 is not 1.1, nor True true.
    """
    roles = set[str]()
    for place, (number, value) in enumerate(_file_records(path, layout, names, as_written), 1):
        if layout.keeps_records or not isinstance(value, dict):
            yield number, value
            continue
        whole = gather_turns(value, layout.numbered) if layout.numbered else value
        sides = list(split_sides(whole, layout.sides, number or place)) if layout.sides else [whole]
        if not sides:
            reason = (
                f"input.sides: no fields differ only in that they end in {' or '.join(layout.sides or ())}"
            )
            yield number, Quarantined(source=str(path), line=number, reason=reason)
        for side in sides:
            # What is numbered may also be a side's: `message_1_a`, `message_2_a`.
            side = gather_turns(side, layout.numbered) if layout.numbered and layout.sides else side
            if not layout.rounds:
                yield number, side
            for role, turn in _turns_of_round(side, layout.rounds, number or place):
                roles.add(role)
                yield number, {**side, SAID: turn}
    for role, silent in layout.rounds.items():
        if role not in roles:
            reason = f"input.rounds: no record has anything at {silent!r}"
            yield None, Quarantined(source=str(path), reason=reason)


def _turns_of_round(
    record: dict[str, Any], rounds: dict[str, str], number: int
) -> Iterator[tuple[str, JsonValue]]:
    """(role, turn) of each who said something in a round."""
    for role, path in rounds.items():
        if (text := getter(path)(record)) not in (None, ""):
            yield role, {"role": role, "text": text, "id": f"{number}-{role}"}


def _file_records(path: Path, layout: Input, names: Collection[str], as_written: bool) -> Iterator[Record]:
    """The records of a file before `layout` makes others of them."""
    form = layout.format or format_of(path) or "jsonl"
    if path.is_dir():
        for number, file in enumerate(event_files(path), start=1):
            yield number, _decoded_value(file.read_bytes(), str(file), None, layout.encoding)
    elif form == "csv":
        yield from separated.rows(path, layout.encoding, names, as_written)
    elif form == "parquet":
        yield from parquet.rows(path)
    elif form == "excel":
        yield from excel.rows(path)
    elif form == "text":
        yield None, _text(path, layout.encoding)
    elif form == "json":
        yield from _json_records(path, layout)
    else:
        yield from _line_records(path, layout.encoding)


def record(line: bytes | None, source: str, number: int | None) -> JsonValue | Quarantined:
    """The value of a line, or of a file (`number` None), with null for NaN, or what is wrong with it."""
    try:
        # Hardly a line has NaN in it, and looking for that takes a quarter as long as parsing.
        return plain_json(line or b"")
    except ValueError:
        value = parse_json(line, source, number)
    return value if isinstance(value, Quarantined) or not line or b"NaN" not in line else _without_nan(value)


def _without_nan(value: JsonValue) -> JsonValue:
    """The value with null in place of NaN: JSON has no NaN, and programs write one for an empty cell."""
    if isinstance(value, dict):
        return {key: _without_nan(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_nan(one) for one in value]
    return None if value != value else value


def _line_records(path: Path, encoding: str | None) -> Iterator[Record]:
    if encoding is None or not codecs.lookup(encoding).name.startswith(("utf-16", "utf-32")):
        for number, line in numbered_lines(path):
            yield number, _decoded_value(line, str(path), number, encoding)
        return
    try:
        whole = text_of(path.read_bytes(), encoding)
    except UnicodeDecodeError as error:
        yield None, Quarantined(source=str(path), reason=encoding_reason(error))
        return
    for number, text in enumerate(whole.split("\n"), start=1):
        if text.strip():
            yield number, record(f"{text}\n".encode(), str(path), number)


def _decoded_value(line: bytes | None, source: str, number: int | None, encoding: str | None) -> Any:
    """The value of a line, or of a file, in whatever encoding."""
    try:
        return record(text_of(line, encoding).encode() if line and encoding else line, source, number)
    except UnicodeDecodeError as error:
        return Quarantined(source=source, line=number, reason=encoding_reason(error))


def _json_records(path: Path, layout: Input) -> Iterator[Record]:
    """The items of a list or of the lists at `sessions`, or the one object; the lines where the file is JSON
    Lines."""
    value = _decoded_value(path.read_bytes(), str(path), None, layout.encoding)
    if isinstance(value, Quarantined):
        lines = list(_line_records(path, layout.encoding))
        several_lines = len(lines) > 1 and not isinstance(lines[0][1], Quarantined)
        yield from lines if several_lines else [(None, value)]
    elif layout.sessions is not None and isinstance(value, dict):
        yield from _records_within(value, as_list(layout.sessions), str(path))
    else:
        yield from enumerate(value, start=1) if isinstance(value, list) else [(None, value)]


def _records_within(value: dict[str, Any], places: list[str], source: str) -> Iterator[Record]:
    """The records at each of the `places` in an object; of several, a record's `key` says at which."""
    numbers = count(1)
    for place in places:
        inside = value if place == ALL else _items_at(value, place)
        if isinstance(inside, dict) and all(isinstance(one, list) for one in inside.values()):
            inside = {key: {ITEMS: one} for key, one in inside.items()}
        if isinstance(inside, dict) and all(isinstance(one, dict) for one in inside.values()):
            inside = [{"key": key, **one} for key, one in inside.items() if isinstance(one, dict)]
        if not isinstance(inside, list):
            yield None, Quarantined(source=source, reason=f"input.sessions: no list at {place!r}")
            continue
        for one in inside:
            item = {"key": place, **one} if len(places) > 1 and isinstance(one, dict) else one
            yield next(numbers), item


def _items_at(value: dict[str, Any], place: str) -> Any:
    """What stands at a place; with `[]`, the items of the lists in all items there, one behind the other."""
    outer, more, inner = place.partition("[].")
    items = getter(outer)(value)
    if not more or not isinstance(items, list):
        return None if more else items
    lists = [_items_at(one, inner) for one in items if isinstance(one, dict)]
    return list(chain(*filter(lambda one: isinstance(one, list), lists))) if lists else None


def _text(path: Path, encoding: str | None) -> JsonValue | Quarantined:
    """A text file as the record `{"file", "text"}`."""
    if path.stat().st_size > MAX_TEXT:
        return Quarantined(source=str(path), reason=f"longer than {MAX_TEXT // 2**20} MiB")
    try:
        text = text_of(path.read_bytes(), encoding).replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        return Quarantined(source=str(path), reason=_reason_no_text(path, error))
    if not text.strip():
        return Quarantined(source=str(path), reason="the file is empty")
    return {"file": path.stem, "text": text}


def _reason_no_text(path: Path, error: UnicodeDecodeError) -> str:
    """Why a file cannot be read as text: it is binary, or in another encoding."""
    with path.open("rb") as file:
        head = file.read(LOOK)
    if b"\0" in head:
        return "a binary file, and not of a format that is read"
    return encoding_reason(error)
