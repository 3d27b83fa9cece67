"""Tables of separated values (CSV, TSV and the like), in the memory of a few rows.

A file is read twice: first to learn what the cells of each column are, then to give its rows. What is added
between the two readings is left for the next one.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

from .....schemas import JsonValue, Quarantined
from .....schemas.base import repeated
from .....schemas.text import count_of
from .decoding import codec_of, encoding_reason, text_of
from .tables import MAX_TEXT, Row

HEAD = 64 * 1024
"""Characters that tell which character separates the cells."""
SEEN = 1000
"""Different texts of a column that are not looked at again."""
LONG = 100
"""Characters from which on a text is not kept for that."""
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
_Line = tuple[int, list[str]]
"""The number of a row's last line, and its cells."""
_Convert = Callable[[str], JsonValue]


def rows(path: Path, encoding: str | None, names: Collection[str], as_written: bool) -> Iterator[Row]:
    """Rows as objects, with the names of the first line; a column whose cells are all numbers has numbers.
    Two more lines of names, as Qualtrics writes them, are no rows, but keep the cells below them texts. What
    is wrong with the table as a whole comes last.

    `names` are columns that stay texts where 1.10 would become 1.1; `as_written` keeps the cells of all
    columns.
    """
    with path.open("rb") as binary:
        codec = codec_of(binary.read(4), encoding)
    # Both readings are of one open file: another may take its place in between.
    with path.open(encoding=codec, newline="") as file:
        table = _Table(path, file)
        try:
            yield from _rows(table, _outline(table, names, as_written))
        except UnicodeDecodeError as error:
            yield None, Quarantined(source=str(path), reason=_encoding_reason(path, encoding, error))
        except csv.Error as error:
            yield None, Quarantined(source=str(path), line=table.line, reason=f"not CSV: {error}")


def _rows(table: _Table, outline: _Outline) -> Iterator[Row]:
    source, columns = str(table.path), outline.names
    if outline.open_since is None and outline.count == outline.above:
        yield None, Quarantined(source=source, reason="no rows in it")
        return
    conversions = [column.conversion() for column in outline.columns]
    lines = table.rows()
    if next(lines, (0, []))[1] != columns:
        yield (
            None,
            Quarantined(source=source, reason="its columns have changed while it was read; read it again"),
        )
        return
    for line, row in islice(lines, outline.above, outline.count):
        if len(row) == len(columns):
            values = [convert(cell) for convert, cell in zip(conversions, row, strict=True)]
            yield line, dict(zip(columns, values, strict=True))
        else:
            reason = f"{count_of(len(row), 'cell', 'cells')} where the first line names {len(columns)}"
            yield line, Quarantined(source=source, line=line, reason=reason)
    for name, times in repeated(filter(str.strip, columns)).items():
        often = f"{times} times: only the last can be read"
        reason = f"the first line has the column {name[:80]!r} {often}"
        yield None, Quarantined(source=source, reason=reason)
    if outline.open_since is not None:
        reason = "a quotation mark opens a cell that nothing closes: all that follows it is one cell"
        yield outline.open_since, Quarantined(source=source, line=outline.open_since, reason=reason)


class _Table:
    """The rows of a file that are not empty, the names of the columns first."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self.path, self._file = path, file
        self.line = 0
        """The number of the line that was read last."""
        self.open_since: int | None = None
        """Where a cell is opened that nothing closes, once all rows have been read."""

    def rows(self) -> Iterator[_Line]:
        """The rows; UnicodeDecodeError or csv.Error where the file has none."""
        csv.field_size_limit(MAX_TEXT)
        self._file.seek(0)
        head = self._file.read(HEAD)
        separator = _SEPARATOR.match(head)
        self._file.seek(0)
        reader = csv.reader(chain(self._file, [_END]), self._dialect(head, separator))
        before: _Line | None = None
        last = 0
        try:
            for place, row in enumerate(reader):
                if before is not None:
                    last = before[0]
                    if before[1] and (place > 1 or separator is None):
                        yield before
                before = reader.line_num, row
        finally:
            self.line = reader.line_num
        self.open_since = None if before is None or before[1] == [_END] else last + 1

    def _dialect(self, head: str, separator: re.Match[str] | None) -> type[csv.Dialect]:
        """The dialect whose separator is the one that the file names, a tab in a .tsv, else whichever of
        comma, semicolon, tab and bar is commonest in the first line."""
        line = _QUOTED.sub("", head).partition("\n")[0]
        commonest = "\t" if self.path.suffix.lower() == ".tsv" else max(",;\t|", key=line.count)

        class Dialect(csv.excel):
            delimiter = separator[1] if separator else commonest

        return Dialect


@dataclass(slots=True)
class _Column:
    """What the cells of a column are, as far as it was read. An empty cell is null.

    It has truths or numbers where all its cells are that, else texts. With `as_written` numbers are texts,
    too; but where a column of whole numbers has an empty cell, which makes programs write 2 as 2.0, they are
    without the `.0`.
    """

    is_name: bool
    as_written: bool
    all_truths: bool = True
    all_numbers: bool = True
    any_text: bool = False
    any_number: bool = False
    any_gap: bool = False
    """Whether a cell is empty, or says that there is nothing."""
    all_digits: bool = True
    all_whole: bool = True
    any_fraction: bool = False
    any_changed: bool = False
    """Whether a number would be written otherwise, such as 1.10."""
    seen: set[str] = field(default_factory=set)

    @property
    def is_text(self) -> bool:
        """Whether it has texts, whatever follows."""
        return not self.all_numbers and (not self.all_truths or self.as_written)

    def add(self, cell: str) -> None:
        """Look at a cell."""
        text = cell.strip()
        if text in self.seen:
            return
        if len(self.seen) < SEEN and len(text) < LONG:
            self.seen.add(text)
        if not text:
            self.any_gap = True
            return
        self.any_text = True
        self.all_truths &= text in _TRUTH
        if text in _NOTHING:
            self.any_gap = True
        elif _NUMBER.fullmatch(text) is None:
            self.all_numbers = False
        else:
            self.any_number = True
            self.all_digits &= text.lstrip("-").isdigit()
            self.all_whole &= _WHOLE.fullmatch(text) is not None
            self.any_fraction |= "e" in text.lower() or bool(float(text) % 1)
            self.any_changed |= str(float(text)) != text

    def conversion(self) -> _Convert:
        """What makes a value of a cell."""
        if self.any_text and self.all_truths and not self.as_written:
            return lambda cell: _TRUTH.get(text := cell.strip(), cell if text else None)
        if not self.all_numbers or not self.any_number:
            return lambda cell: cell or None
        number: _Convert = int if self.all_digits else float
        # Whole numbers, such as 2.0 beside 2, are no names that would change.
        if self.is_name and self.any_fraction and self.any_changed:
            number = str
        elif self.as_written:
            number = _without_fraction if self.any_gap and self.all_whole else str

        def convert(cell: str) -> JsonValue:
            text = cell.strip()
            if not text or text in _NOTHING:
                return None
            try:
                return number(text)
            except ValueError:  # a line has changed since it was looked at
                return cell

        return convert


def _without_fraction(number: str) -> str:
    return number.partition(".")[0]


@dataclass
class _Outline:
    """What the first reading says of a table."""

    names: list[str] = field(default_factory=list)
    columns: list[_Column] = field(default_factory=list)
    count: int = 0
    """Rows below the first line."""
    above: int = 0
    """How many of them are more lines of names."""
    open_since: int | None = None


def _outline(table: _Table, names: Collection[str], as_written: bool) -> _Outline:
    outline = _Outline()
    lines = table.rows()
    _, outline.names = next(lines, (0, []))
    outline.columns = [_Column(name in names, as_written) for name in outline.names]
    open_columns = list(enumerate(outline.columns))
    for outline.count, (_, row) in enumerate(lines, start=1):
        if outline.count == 2 and any(row) and all(map(_IMPORT_ID.match, filter(None, row))):
            outline.above = 2
        for place, column in open_columns:
            if place < len(row):
                column.add(row[place])
        if outline.count % SEEN == 1:
            open_columns = [(place, column) for place, column in open_columns if not column.is_text]
    outline.open_since = table.open_since
    return outline


def _encoding_reason(path: Path, encoding: str | None, error: UnicodeDecodeError) -> str:
    """Why it is no text, by the whole file: an error knows its place in the part that was being read."""
    try:
        text_of(path.read_bytes(), encoding)
    except UnicodeDecodeError as error_in_whole:
        return encoding_reason(error_in_whole)
    return encoding_reason(error)
