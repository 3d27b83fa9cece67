"""The encodings of text files: what the byte order mark says, else what a mapping says, else UTF-8."""

from __future__ import annotations

import codecs
import sys


def codec_of(content: bytes, encoding: str | None = None) -> str:
    """The name of the codec of a file with this content, of which its first bytes are enough."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if encoding is None or content.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    name = codecs.lookup(encoding).name
    # Read piece by piece, these two must have a mark; without one the order of bytes is the machine's.
    return f"{name}-{sys.byteorder[0]}e" if name in ("utf-16", "utf-32") else encoding


def text_of(content: bytes, encoding: str | None = None) -> str:
    """The text of a file; UnicodeDecodeError where it is in another encoding."""
    return content.decode(codec_of(content, encoding))


def encoding_reason(error: UnicodeDecodeError) -> str:
    """Why a file cannot be read: it is in another encoding, with the byte that says so."""
    there = f"byte {error.object[error.start]:#x} at {error.start}"
    name = error.encoding.upper()
    return f"not {name} ({there}): export it as UTF-8, or a mapping's [input] encoding says what it is"
