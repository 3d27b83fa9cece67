"""Overview: the three questions of an audit answered, and what is left to do."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from ...pipeline.report import answers, methods, progress
from ...pipeline.report.tables import Answer
from ...pipeline.store import Selection
from ..cache import ask
from ..drawing import figures, groups, markup
from ..sidebar import address

PAGES = ("process", "failures", "agreement")
"""The page on which each answer goes on."""

GROUPED = ("process", "failures")
TAGS = 4
"""Tags, such as versions, of which each answer has a link to its groups."""


def show(only: Selection) -> None:
    """Draw the page."""
    st.title("Overview")
    st.html(markup.facts(ask(methods.facts, only)))
    for answer, page in zip(ask(answers.answers, only), PAGES, strict=True):
        _answer(answer, page)
    todo = progress.to_do(ask(progress.coverage, only), only)
    figures.table(replace(todo, rows=tuple(row for row in todo.rows if row[-1])), links=False)


def _answer(answer: Answer, page: str) -> None:
    st.header(answer.question)
    paragraphs = "".join(f'<p class="said">{markup.safe(sentence)}</p>' for sentence in answer.sentences)
    st.html(f'<div class="ca">{paragraphs}</div>')
    if answer.table:
        st.html(markup.drawn(answer.table, figures.sessions, pictures=True))
        st.html(markup.sentence(answer.table.caption))
        links = [markup.link(address(page), "More of this")]
        if page in GROUPED:
            tags = [name for name in ask(groups.fields) if name not in groups.FIELDS][:TAGS]
            links += [markup.link(address(page, by=name), f"By {name}") for name in tags]
        st.html(f'<div class="ca">{" · ".join(links)}</div>')
    elif answer.further:
        st.info(f"Run {markup.code(answer.further)}.")
