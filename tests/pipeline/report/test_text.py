"""Words of a log in the Markdown report: shown as they are, and as little escaped as that takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from coaudit.pipeline.report.document import Report
from coaudit.pipeline.report.tables import Number, Table
from coaudit.pipeline.report.text import escaped, markdown

ENGINE = MarkdownIt("commonmark").enable(["table", "strikethrough"])
BLOCKS = {"inline", "paragraph", "heading", "bullet_list", "list_item"}
BLOCKS |= {"table", "thead", "tbody", "tr", "th", "td"}
WORDS = st.text("a1 _*-+=.)(#![]{}<>&|~$\\'\":/é", min_size=1, max_size=12).filter(lambda text: text.strip())


def plain(source: str) -> list[str]:
    """The texts that a renderer shows; fails where it finds more than paragraphs, headings and tables."""
    texts = []
    for token in ENGINE.parse(source):
        for child in token.children or []:
            assert child.type in {"text", "text_special", "entity"}, child
        if token.children:
            texts.append("".join(child.content for child in token.children))
        assert token.type.removesuffix("_open").removesuffix("_close") in BLOCKS, token
    return texts


@given(WORDS, WORDS)
def test_words_of_a_log_are_shown_as_they_are(word: str, other: str) -> None:
    table = Table("t", word, other, (word, "n"), ((other, Number(1.0, n=1)),))
    report = Report("now", "", ((word, other),), (table,), (word,))
    shown = [text.strip() for text in plain(markdown(report))]
    facts = f"{word}: {other}".strip()
    assert shown[2] == facts
    assert shown[3:5] == [word.strip(), other.strip()]
    assert word.strip() in shown[5:6] and other.strip() in shown[7:8]
    assert shown[-1] == word.strip()


@pytest.mark.parametrize(
    "text", ["hosted_vllm/m", "18 % (0 % – 67 %, n = 6)", "CA+", "-0.5", "1.5", "Who judged, with what?"]
)
def test_what_means_nothing_to_markdown_is_not_escaped(text: str) -> None:
    assert escaped(text) == text
