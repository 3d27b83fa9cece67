"""Markdown of people and agents: drawn, and never more than text."""

from __future__ import annotations

import re
import time

import pytest

from coaudit.pipeline.report.transcript.prose import prose

HOSTILE = (
    "**bold** <script>1</script> <img src=x onerror=1> [link](javascript:1) ![pic](http://evil.example/p) "
    "<http://evil.example/> [ref]\n\n[ref]: http://evil.example/\n\n"
    '```js" onload="1\n<b>code</b>\n```\n\n|a|\n|-|\n|<i>|\n\n<div onclick=1>\n\n# <u>head</u>'
)


def test_emphasis_lists_tables_and_code_are_drawn() -> None:
    text = prose("# Plan\n\n1. *one*\n2. `two`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx = 1\n```")
    assert "<em>one</em>" in text and "<li><code>two</code></li>" in text.replace("\n", "")
    assert "<th>a</th>" in text and '<pre class="code">x = 1\n</pre>' in text
    assert "<h1" not in text and "<strong>Plan</strong>" in text, "a message has no heading of the page"


def test_nothing_of_a_text_becomes_a_tag_a_link_or_a_picture() -> None:
    tags = set(re.findall(r"<(\w+)", prose(HOSTILE)))
    assert tags == {"div", "p", "strong", "pre", "table", "thead", "tbody", "tr", "th", "td"}
    assert not re.search(r"<[^>]*\s(?!class=)\w+=", prose(HOSTILE)), "no attribute but our own classes"
    assert "[link](javascript:1)" in prose(HOSTILE), "a link stays the text that it is"


def test_lines_stay_lines_and_a_plain_text_stays_as_it_is() -> None:
    assert prose("first\n  second") == "<pre>first\n  second</pre>"
    assert prose("*first*\nsecond") == '<div class="prose"><p><em>first</em>\nsecond</p>\n</div>'


def test_words_are_marked_in_markdown_and_where_it_hides_them_the_text_is_shown_as_it_is() -> None:
    assert "<em><mark>on</mark>e</em>" in prose("*one*", "ON")
    assert prose("*one*", "*o") == "<pre><mark>*o</mark>ne*</pre>"


@pytest.mark.parametrize("piece", ["[", "*a ", "_a*", "`", ">", "|a", "- ", "![](", "**_", "\\"])
def test_a_text_made_to_be_slow_is_not(piece: str) -> None:
    text = piece * (4000 // len(piece))
    began = time.process_time()
    prose(f"{text}*")
    assert time.process_time() - began < 1
