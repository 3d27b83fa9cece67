"""The encodings of text files: what the byte order mark says, else what a mapping says, else UTF-8."""

from __future__ import annotations

import codecs


def codec_of(content: bytes, encoding: str | None = None) -> str:
    """The name of the codec of a file with this content, of which its first bytes are enough."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    has_mark = content.startswith(codecs.BOM_UTF8)
    return "utf-8-sig" if has_mark or encoding is None else encoding


def text_of(content: bytes, encoding: str | None = None) -> str:
    """The text of a file; UnicodeDecodeError where it is in another encoding."""
    return content.decode(codec_of(content, encoding))


def encoding_reason(error: UnicodeDecodeError) -> str:
    """Why a file cannot be read: it is in another encoding, with the byte that says so."""
    there = f"byte {error.object[error.start]:#x} at {error.start}"
    name = error.encoding.upper()
    return f"not {name} ({there}): export it as UTF-8, or a mapping's [input] encoding says what it is"
