"""How large a spreadsheet is before it is read: its reader takes all of it into memory, and makes room for
every cell from the first to the last one, empty ones included.

A file of one kilobyte with a cell in the last corner would take 400 GB, for which the whole process is ended.
"""

from __future__ import annotations

import lzma
import re
import zipfile
import zlib
from pathlib import Path
from typing import IO
from xml.parsers import expat

MAX_BYTES = 512 * 1024 * 1024
"""Bytes of a spreadsheet, unpacked."""
MAX_CELLS = 2**26
"""Cells of a sheet; the reader takes about 32 bytes for each."""
_BLOCK = 1 << 20
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError)
"""What unpacking raises."""
_PLACE = re.compile(r"([A-Za-z]{1,6})0*([0-9]{1,9})")
_NUMBER = re.compile(r"\+?0*([0-9]{1,9})")
_VALUES = ("value-type", "value", "date-value", "time-value", "boolean-value", "string-value", "formula")
"""Attributes that a cell of an OpenDocument sheet has where it is not empty."""
_TEXTS = ("string-value", "date-value", "time-value")
"""Those of them that may be the cell's text."""
_SHEET = re.compile(rb"sheetData|table-row")
_SHARED = re.compile(rb"[<:]sst[\s/>]")
"""What begins the texts that cells share in Office Open XML."""
_LONGEST = 16
"""Bytes that a match of `_SHEET` or `_SHARED` may have in the block before."""
_ZIP = b"PK\x03\x04"
"""How a packed file begins; an old one may have an archive behind it."""


def measure(path: Path) -> int | None:
    """The most bytes that the texts in a packed spreadsheet's cells may take; None for one that is not
    packed, or whose shared texts are no XML that can be measured. ValueError for one that is too large
    unpacked, or whose cells span too much.

    What an archive says of its sizes may be a lie, so all of it is unpacked once, a block at a time.
    """
    with path.open("rb") as whole:
        if whole.read(len(_ZIP)) != _ZIP or not zipfile.is_zipfile(path):
            return None
    left, longest, texts, is_clear = MAX_BYTES, 0, 0, True
    try:
        with zipfile.ZipFile(path) as packed:
            for member in packed.infolist():
                with packed.open(member) as file:
                    left, extent = _check_part(file, left)
                longest, texts = max(longest, extent.longest), texts + extent.texts
                is_clear = is_clear and extent.is_clear
    except _DAMAGE as error:
        raise ValueError(str(error)) from error
    return longest * texts if is_clear else None


def _check_part(file: IO[bytes], left: int) -> tuple[int, _Extent]:
    """Unpack one part of a spreadsheet; how many bytes may still come, and what its cells span."""
    extent, is_xml, is_sheet, is_shared, before = _Extent(), True, False, False, b""
    while block := file.read(_BLOCK):
        left -= len(block)
        if left < 0:
            raise ValueError(f"more than {MAX_BYTES >> 20} MiB unpacked; save it as CSV")
        is_xml = is_xml and extent.feed(block)
        is_sheet = is_sheet or bool(_SHEET.search(before + block))
        is_shared = is_shared or bool(_SHARED.search(before + block))
        if is_sheet and not is_xml:  # its reader takes such XML, and pictures and macros are none
            raise ValueError(extent.wrong)
        before = block[-_LONGEST:]
    extent.is_clear = is_xml or not is_shared
    return left, extent


class _UnclearError(ValueError):
    """What is wrong with a part where it is a sheet; other parts may be as they like."""


class _TooLargeError(ValueError):
    """What the cells of a part span."""


class _Extent:
    """How many cells the sheets of a part span, as it is parsed."""

    wrong = "a sheet that is not well-formed XML"
    """Why a part is no XML as sheets have it."""
    is_clear = True
    """Whether all texts that cells share were measured."""

    def __init__(self) -> None:
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.EntityDeclHandler = _refuse_entity
        self._row = self._column = self._widest = self._repeats = self._text = 0
        self.longest = self.texts = 0
        """Bytes of the longest text, and how many cells have one; several cells may share it."""

    def feed(self, block: bytes) -> bool:
        """Go on; whether it is XML as sheets have it so far. ValueError where its cells span too much."""
        try:
            self._parser.Parse(block)
        except _TooLargeError:
            raise
        except _UnclearError as error:
            self.wrong = str(error)
            return False
        except (expat.ExpatError, LookupError, ValueError):  # also unknown encodings
            return False
        return True

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        kind = name.rpartition(":")[2]
        if kind == "row":  # Office Open XML: rows and cells name their places, or follow each other
            number = attributes.get("r", "")
            self._row, self._column = _number(number, self._row + 1), 0
        elif kind == "c":
            self._column, self._row = _place(attributes.get("r"), self._column + 1, self._row)
            self.texts += attributes.get("t") == "s"
        elif kind == "si":
            self._begin_text()
        elif kind in ("v", "is", "f"):  # a cell without any is but formatted, and takes no room
            self._check(self._row)
        elif kind == "table":  # OpenDocument: rows and cells say how often they repeat
            self._row = self._widest = 0
        elif kind == "table-row":
            self._repeats, self._column = _number(_plain(attributes).get("number-rows-repeated", ""), 1), 0
        elif kind in ("table-cell", "covered-table-cell"):
            plain = _plain(attributes)
            columns = _number(plain.get("number-columns-repeated", ""), 1)
            self._column += columns
            self._begin_text()
            self.longest = max(self.longest, *(_size(plain.get(one, "")) for one in _TEXTS))
            if any(one in plain for one in _VALUES):
                self.texts += columns * self._repeats
                self._check(self._row + self._repeats)

    def _end(self, name: str) -> None:
        kind = name.rpartition(":")[2]
        if kind == "table-row":
            self._row += self._repeats
        elif kind in ("si", "table-cell", "covered-table-cell"):
            self._parser.CharacterDataHandler = None
            self.longest = max(self.longest, self._text)

    def _begin_text(self) -> None:
        self._text = 0
        self._parser.CharacterDataHandler = self._add_text

    def _add_text(self, text: str) -> None:
        self._text += _size(text)

    def _check(self, row: int) -> None:
        self._widest = max(self._widest, self._column)
        if row * self._widest > MAX_CELLS:
            raise _TooLargeError(f"a sheet of {row:,} rows and {self._widest:,} columns; save it as CSV")


def _refuse_entity(*_: object) -> None:
    raise _UnclearError("a sheet declares no entities")


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _plain(attributes: dict[str, str]) -> dict[str, str]:
    return {name.rpartition(":")[2]: value for name, value in attributes.items()}


def _place(text: str | None, column: int, row: int) -> tuple[int, int]:
    """Column and row of a cell; those given where it does not name its place."""
    if text is None:
        return column, row
    place = _PLACE.fullmatch(text)
    if place is None:
        raise _UnclearError(f"a cell at {text[:20]!r}")
    return _column(place[1]), int(place[2])


def _number(text: str, otherwise: int) -> int:
    if not text:
        return otherwise
    number = _NUMBER.fullmatch(text)
    if number is None:
        raise _UnclearError(f"{text[:20]!r} in place of a row or a number of repetitions")
    return int(number[1])


def _column(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number
