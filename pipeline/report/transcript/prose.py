"""What people and agents say, as HTML: their Markdown is rendered, but nothing of a log becomes markup.

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
"""Signs of Markdown; a text without any is shown as it is."""
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
"""Rules of markdown-it that are enabled beside the basic ones; other Markdown stays text."""


def prose(text: str, words: str = "") -> str:
    """A message as HTML, with `words` marked in any case.

    Where only a part that Markdown hides has the words, the text is shown as it is.
    """
    raw = f"<pre>{highlight(text, words)}</pre>"
    if not SIGNS.search(text):
        return raw
    html: str = _reader().render(text, {"words": words})
    if words and words.lower() in text.lower() and "<mark>" not in html:
        return raw
    return f'<div class="prose">{html}</div>'


def inert(text: str) -> str:
    """A name escaped, with invisible and direction-changing characters written out."""
    return escape(visible(text))


def highlight(text: str, words: str) -> str:
    """A text escaped, with the words in it marked, in any case."""
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
    return highlight(tokens[at].content, env["words"])


def _code(tokens: Sequence[Any], at: int, options: Any, env: dict[str, str]) -> str:
    return f"<code>{highlight(tokens[at].content, env['words'])}</code>"


def _fence(tokens: Sequence[Any], at: int, options: Any, env: dict[str, str]) -> str:
    """A block of code; the language that a log names for it does not become a class."""
    return f'<pre class="code">{highlight(tokens[at].content, env["words"])}</pre>\n'


def _line(tokens: Sequence[Any], at: int, options: Any, env: dict[str, str]) -> str:
    return "\n"


def _head(tokens: Sequence[Any], at: int, options: Any, env: dict[str, str]) -> str:
    """A heading, as bold text: it must not be one of the page's."""
    return "<p><strong>"


def _foot(tokens: Sequence[Any], at: int, options: Any, env: dict[str, str]) -> str:
    return "</strong></p>\n"
