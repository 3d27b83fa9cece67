"""What a file that cannot be read is, by its first bytes, and what to do with it."""

from __future__ import annotations

import re
from pathlib import Path

from ...base import ending

LOOK = 512
JSON = (".json", ".jsonl", ".ndjson", ".jsonlines")
PACKED = (".xlsx", ".xlsm", ".ods", ".zip", ".eval")
_PAGE = "it is a web page, perhaps one to sign in at; download the file again"
_PRINTED = "it is what Python prints, with single quotation marks; write it with json.dumps"
_BEGINNINGS: tuple[tuple[bytes, tuple[str, ...], str], ...] = (
    (b"version https://git-lfs", (), "it is a pointer of Git LFS; fetch the file itself with git lfs pull"),
    (b"<!doctype html", (), _PAGE),
    (b"<html", (), _PAGE),
    (b"%pdf", (), "it is a PDF; copy its text into a .txt file"),
    (b"sqlite format 3\0", (), "it is an SQLite database; export its tables as CSV"),
    (b"par1", (".parquet", ".pq"), "it looks like Parquet; name it .parquet"),
    (b"pk\3\4", PACKED, "it looks like a spreadsheet or an archive; name it .xlsx or .zip"),
    (b"\xd0\xcf\x11\xe0", (".xls",), "it looks like an old spreadsheet; name it .xls"),
    (b"{'", (), _PRINTED),
    (b"[{'", (), _PRINTED),
    (b"{", JSON, "it looks like JSON; name it .json, or .jsonl if each line is an object"),
    (b"[", JSON, "it looks like JSON; name it .json"),
)
"""(what a file begins with, in small letters; the endings under which it is read as that; what it is)."""
_LIST = re.compile(rb'\[\s*(?:[\[{"]|(?:-?\d[\d.e+-]*|true|false|null)?\s*(?:,|\]\s*\Z))')
"""How a list begins as JSON, and no line of a log such as `[10:00] A: hi`."""
_TABLES = (".xlsx", ".xlsm", ".xls", ".ods", ".parquet", ".pq")


def hint(path: Path) -> str:
    """What a file is instead of what its name says, after a semicolon; empty where its beginning does not
    tell."""
    try:
        with path.open("rb") as file:
            head = file.read(LOOK)
    except OSError:
        return ""
    content, end = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower(), ending(path).lower()
    for beginning, endings, what in _BEGINNINGS:
        if content.startswith(beginning) and (beginning != b"[" or _LIST.match(content)):
            return "" if end in endings else f"; {what}"
    is_text = bool(content) and all(byte > 31 or byte in b"\t\r\n" for byte in content)
    return (
        "; it looks like a text; name a table .csv, a transcript .txt" if is_text and end in _TABLES else ""
    )
