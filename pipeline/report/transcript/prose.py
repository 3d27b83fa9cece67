"""What people and agents say, as HTML: Markdown drawn where it is used, and nothing of a log ever markup.

Emphasis, lists, tables and code are drawn. Links, pictures and HTML stay the text that they are: nothing that
a log holds is fetched or followed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from ....schemas.text import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

SIGNS = re.compile(r"[*_`|~]|^\s{0,3}(?:#{1,6}\s|[-+>]\s|\d{1,9}[.)]\s)", re.MULTILINE)
"""A text without any of these reads the same as it stands."""
DRAWN = (
    "emphasis",
    "backticks",
    "escape",
    "newline",
    "fence",
    "heading",
    "list",
    "blockquote",
    "hr",
    "table",
    "strikethrough",
)
"""Rules of markdown-it beside the plainest ones; what is not listed, is text."""


def prose(text: str, words: str = "") -> str:
    """A text that was said, as HTML; `words` are marked where they stand, in whatever case.

    Where the words stand in what Markdown hides, the text is shown as it is.
    """
    raw = f"<pre>{marked(text, words)}</pre>"
    if not SIGNS.search(text):
        return raw
    html: str = _reader().render(text, {"words": words})
    if words and words.lower() in text.lower() and "<mark>" not in html:
        return raw
    return f'<div class="prose">{html}</div>'


def inert(text: str) -> str:
    """A name escaped, with what would turn around or hide what stands behind it written out."""
    return escape(visible(text))


def marked(text: str, words: str) -> str:
    """A text escaped, the words in it marked, in whatever case they stand."""
    if not words:
        return escape(text)
    pieces = re.split(f"({re.escape(words)})", text, flags=re.IGNORECASE)
    return "".join(f"<mark>{escape(p)}</mark>" if i % 2 else escape(p) for i, p in enumerate(pieces))


@cache
def _reader() -> MarkdownIt:
    """A Markdown reader that can write no link, picture or tag of a text's own."""
    from markdown_it import MarkdownIt

    reader = MarkdownIt("zero", {"html": False, "linkify": False}).enable(list(DRAWN))
    rules: dict[str, Any] = {
        "text": _text,
        "code_inline": _code,
        "fence": _fence,
        "softbreak": _line,
        "hardbreak": _line,
        "heading_open": _head,
        "heading_close": _foot,
    }
    reader.renderer.rules.update(rules)  # type: ignore[attr-defined]  # the protocol does not name them
    return reader


def _text(tokens: Sequence[Any], at: int, options: Any, env: dict[str, str]) -> str:
    return marked(tokens[at].content, env["words"])


def _code(tokens: Sequence[Any], at: int, options: Any, env: dict[str, str]) -> str:
    return f"<code>{marked(tokens[at].content, env['words'])}</code>"


def _fence(tokens: Sequence[Any], at: int, options: Any, env: dict[str, str]) -> str:
    """A block of code; the language that a log names for it is no class here."""
    return f'<pre class="code">{marked(tokens[at].content, env["words"])}</pre>\n'


def _line(tokens: Sequence[Any], at: int, options: Any, env: dict[str, str]) -> str:
    return "\n"


def _head(tokens: Sequence[Any], at: int, options: Any, env: dict[str, str]) -> str:
    """A heading of a message is none of the page."""
    return "<p><strong>"


def _foot(tokens: Sequence[Any], at: int, options: Any, env: dict[str, str]) -> str:
    return "</strong></p>\n"
