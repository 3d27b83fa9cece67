"""Text of others, measured, or made harmless for where it goes: a terminal, a prompt, JSON, a spreadsheet."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

INVISIBLE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
"""Control characters but tab and line feed, direction marks, tag characters: what a terminal would obey."""
BYTES_PER_TOKEN = 3.6
"""English runs at 4 to 4.5 and other languages at 2 to 4: an estimate for cost."""
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
FORMULA = (
    "^[\\s\u00a0\u00ad\u1680\u180e\u2000-\u200f\u202f\u205f-\u2064\u3000\ufeff]*[=+\\-@\uff1d\uff0b\uff0d\uff20]"
    "|^[\\t\\r]"
)
"""How a cell begins that a spreadsheet may compute (OWASP, CSV injection), full-width signs included. Spaces
and what is not seen are listed, since DuckDB's \\s is that of ASCII."""
NUMBER = r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""A cell that is a number, which a spreadsheet does not compute."""
_FORMULA = re.compile(FORMULA)
_PROPERTY = re.compile(
    "constructor|hasOwnProperty|isPrototypeOf|propertyIsEnumerable|toLocaleString|toString|valueOf|__proto__"
    "|__(?:define|lookup)[GS]etter__"
)
"""Names that every object of JavaScript has."""
_NUMBER = re.compile(NUMBER)


def nfc(text: str) -> str:
    """A text with each accented letter as one character; macOS, for one, writes two."""
    return unicodedata.normalize("NFC", text)


def bare(text: str) -> str:
    """A text for comparison: case, surrounding space and how an accented letter is encoded aside."""
    return nfc(text.strip().casefold())


def visible(text: str) -> str:
    r"""Text with what a terminal would obey shown as escapes such as \x1b; tab and line feed stay."""
    return _INVISIBLE.sub(_escape, text)


def visible_json(text: str) -> str:
    r"""JSON with the same characters as \uXXXX, which means the same to a parser."""
    return _INVISIBLE.sub(_json_escape, text)


def is_utf8(text: str) -> bool:
    """Whether UTF-8 has all of a text: Python holds other bytes of a name as surrogates."""
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


def as_utf8(text: str) -> str:
    """The text with what UTF-8 lacks escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def shortened(text: str, length: int) -> str:
    """Text of at most so many characters, with … where it was cut."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def one_line(text: str) -> str:
    r"""Text on one line, line feeds as \n: a file's name may have one in it."""
    return text.replace("\n", "\\n")


def count_of(number: int | str, singular: str, plural: str) -> str:
    """A number with its noun: `1 trajectory`, `2 trajectories`; the number may be written already."""
    return f"{number} {singular if number in (1, '1') else plural}"


def rule_of(error: Mapping[str, Any]) -> str:
    """The rule that one of pydantic's errors names, without the kind of exception before it."""
    return str(error["msg"]).removeprefix("Value error, ")


def inert_cell(text: str) -> str:
    r"""A cell of a CSV file: an apostrophe in front where a spreadsheet would compute it, and what a terminal
    would obey as \uXXXX, so that JSON in a cell means the same; line ends stay, \r\n too."""
    text = "\r\n".join(map(visible_json, text.split("\r\n")))
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def chartable(name: str) -> str:
    """A name for a chart, visible. Vega looks groups up in plain objects, each of which has a `constructor`,
    and draws nothing of one that is called so; an appended zero-width space makes it another name."""
    return f"{name}\u200b" if _PROPERTY.fullmatch(name) else visible(name)


def _escape(match: re.Match[str]) -> str:
    number = ord(match[0])
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def json_escapes(text: str) -> str:
    r"""Every character of a text as \uXXXX, beyond U+FFFF as two of them."""
    return "".join(f"\\u{unit:04x}" for sign in text for unit in _utf16(ord(sign)))


def _json_escape(match: re.Match[str]) -> str:
    return json_escapes(match[0])


def _utf16(number: int) -> list[int]:
    if number < 0x10000:
        return [number]
    return [0xD800 + ((number - 0x10000) >> 10), 0xDC00 + ((number - 0x10000) & 0x3FF)]
