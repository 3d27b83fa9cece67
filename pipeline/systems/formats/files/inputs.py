"""Files of any shape as records, as a mapping's `[input]` has them: JSON, tables, spreadsheets and text.

A record's number is that of its line or row, from 1; None where a file is one record.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from itertools import chain, count
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from .....schemas import JsonValue, Quarantined
from .....schemas.base import repeated
from .....schemas.text import count_of
from ...base import ending, numbered_lines, parse_json, plain_json
from ..fields.mapping import Input, Mapping
from ..fields.paths import as_list, getter
from . import excel, parquet
from .event_files import event_files
from .numbered import gather_turns
from .sides import split_sides
from .tables import Row

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
MAX_TEXT = 64 * 1024 * 1024
"""Bytes of a text file; a longer one is quarantined."""
ALL = "*"
"""As `sessions`, in place of a path: the values of the JSON object are the records, each with its `key`."""
ITEMS = "items"
"""The key of the list, in the record that is made of a list."""
SAID = "said"
"""The key of what one of the speakers said, in the record of a round."""
LOOK = 64 * 1024
"""Bytes that tell the format of a file whose name does not."""
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d+)?(?:[eE][-+]?\d{1,2})?")
"""A number as JSON writes it; `007` is a name."""
_WHOLE = re.compile(r"-?\d+(?:\.0+)?")
"""A whole number, maybe with a fraction of zeros."""
_SEPARATOR = re.compile(r"sep=([^\w\"\r\n])\r?\n")
"""The line above the header with which Excel says which character separates the cells."""
_QUOTED = re.compile(r'(?<![^,;|\t\n])"(?:[^"]|"")*"')
"""A quoted cell. A quotation mark that does not begin a cell is a character like any other, such as that of
inches."""
_IMPORT_ID = re.compile(r"""\{['"]ImportId['"]\s*:""")
"""How the cells of the third line begin that Qualtrics writes; the second has the wording of questions."""
_END = "end_of_the_table"
"""A row added behind the last one, of one cell whatever the separator is: a quoted cell that nothing closes
takes it in."""
_NOTHING = {"nan", "NaN", "NA", "null", "NULL", "None"}
_TRUTH: dict[str, JsonValue] = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
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
        yield from _rows_of_csv(path, layout.encoding, names, as_written)
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


def text_of(content: bytes, encoding: str | None = None) -> str:
    """The text of a file: in the encoding of its byte order mark, else in `encoding`, else in UTF-8.

    UnicodeDecodeError where it is in another one.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16")
    has_mark = content.startswith(codecs.BOM_UTF8)
    return content.decode("utf-8-sig" if has_mark or encoding is None else encoding)


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
        yield None, Quarantined(source=str(path), reason=_encoding_reason(error))
        return
    for number, text in enumerate(whole.split("\n"), start=1):
        if text.strip():
            yield number, record(f"{text}\n".encode(), str(path), number)


def _decoded_value(line: bytes | None, source: str, number: int | None, encoding: str | None) -> Any:
    """The value of a line, or of a file, in whatever encoding."""
    try:
        return record(text_of(line, encoding).encode() if line and encoding else line, source, number)
    except UnicodeDecodeError as error:
        return Quarantined(source=source, line=number, reason=_encoding_reason(error))


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
    return _encoding_reason(error)


def _encoding_reason(error: UnicodeDecodeError) -> str:
    there = f"byte {error.object[error.start]:#x} at {error.start}"
    name = error.encoding.upper()
    return f"not {name} ({there}): export it as UTF-8, or a mapping's [input] encoding says what it is"


def _rows_of_csv(
    path: Path, encoding: str | None, names: Collection[str], as_written: bool
) -> Iterator[Record]:
    """Rows as objects, with the names of the first line; a column whose cells are all numbers has numbers.
    Two more lines of names, as Qualtrics writes them, are no rows, but keep the cells below them texts. What
    is wrong with the table as a whole comes last."""
    try:
        text = text_of(path.read_bytes(), encoding)
    except UnicodeDecodeError as error:
        yield None, Quarantined(source=str(path), reason=_encoding_reason(error))
        return
    separator = _SEPARATOR.match(text)
    reader = csv.reader(chain(io.StringIO(text, newline=""), [_END]), _dialect(path, text, separator))
    csv.field_size_limit(MAX_TEXT)
    try:
        lines = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        yield None, Quarantined(source=str(path), line=reader.line_num, reason=f"not CSV: {error}")
        return
    _, last = lines.pop()
    open_since = None if last == [_END] else (lines[-1][0] if lines else 0) + 1
    (_, columns), *rows = [line for line in lines[1 if separator else 0 :] if line[1]] or [(0, [])]
    has_names = len(rows) > 1 and any(rows[1][1]) and all(map(_IMPORT_ID.match, filter(None, rows[1][1])))
    above = 2 if has_names else 0
    if open_since is None and len(rows) == above:
        yield None, Quarantined(source=str(path), reason="no rows in it")
        return
    places = [
        iter(_column_values([row[place] for _, row in rows if place < len(row)], name in names, as_written))
        for place, name in enumerate(columns)
    ]
    for number, (line, row) in enumerate(rows):
        values = [next(place) if n < len(row) else None for n, place in enumerate(places)]
        if number < above:
            continue
        if len(row) == len(columns):
            yield line, dict(zip(columns, values, strict=True))
        else:
            reason = f"{count_of(len(row), 'cell', 'cells')} where the first line names {len(columns)}"
            yield line, Quarantined(source=str(path), line=line, reason=reason)
    for name, times in repeated(filter(str.strip, columns)).items():
        often = f"{times} times: only the last can be read"
        reason = f"the first line has the column {name[:80]!r} {often}"
        yield None, Quarantined(source=str(path), reason=reason)
    if open_since is not None:
        reason = "a quotation mark opens a cell that nothing closes: all that follows it is one cell"
        yield open_since, Quarantined(source=str(path), line=open_since, reason=reason)


def _dialect(path: Path, text: str, separator: re.Match[str] | None) -> type[csv.Dialect]:
    """The dialect whose separator is the one that the file names, a tab in a .tsv, else whichever of comma,
    semicolon, tab and bar is commonest in the first line."""
    line = _QUOTED.sub("", text[:LOOK]).partition("\n")[0]
    commonest = "\t" if path.suffix.lower() == ".tsv" else max(",;\t|", key=line.count)

    class Dialect(csv.excel):
        delimiter = separator[1] if separator else commonest

    return Dialect


def _column_values(cells: list[str], are_names: bool, as_written: bool) -> list[JsonValue]:
    """The cells of a column: numbers, or true and false, where all are; else texts. An empty one is null.

    `as_written` keeps all as texts; but where a column of whole numbers has an empty cell, which makes
    programs write 2 as 2.0, they are without the `.0`.
    """
    texts = {cell.strip() for cell in cells} - {""}
    if texts and texts <= set(_TRUTH) and not as_written:
        return [_TRUTH.get(cell.strip()) for cell in cells]
    numbers = texts - _NOTHING
    are_numbers = bool(numbers) and all(map(_NUMBER.fullmatch, numbers))
    if are_numbers and are_names and _are_versions(numbers):
        return [None if (name := cell.strip()) in _NOTHING else name or None for cell in cells]
    if are_numbers:
        whole = all(cell.lstrip("-").isdigit() for cell in numbers)
        values: dict[str, JsonValue] = {cell: int(cell) if whole else float(cell) for cell in numbers}
        if as_written:
            gaps = len(numbers) < len(texts) or not all(map(str.strip, cells))
            whole = gaps and all(map(_WHOLE.fullmatch, numbers))
            values = {cell: cell.partition(".")[0] if whole else cell for cell in numbers}
        return [values.get(cell.strip()) for cell in cells]
    return [cell or None for cell in cells]


def _are_versions(numbers: set[str]) -> bool:
    """Whether texts are names that would change as numbers, such as 1.10 or 12e4; whole ones, such as 2.0
    beside 2, are not."""
    has_fraction = any("e" in cell.lower() or float(cell) % 1 for cell in numbers)
    return has_fraction and any(str(float(cell)) != cell for cell in numbers)
