"""The report: every table in every format, readable without a network, and nothing of a log runs."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from coaudit.pipeline import report
from coaudit.pipeline.report_text import _escaped
from coaudit.pipeline.store import Store
from coaudit.pipeline.tables import Number, Table, figure
from coaudit.pipeline.workspace import Workspace
from tests.conftest import ROOT, Coaudit


@pytest.fixture
def audited(workspace: Path, coaudit: Coaudit) -> Store:
    coaudit("ingest", ROOT / "data" / "cogym")
    coaudit("outcomes", "import", ROOT / "data" / "cogym" / "real" / "outcomes.jsonl")
    coaudit("judge")
    coaudit("ratings", "import", ROOT / "data" / "labels" / "cogym_pass_1.jsonl")
    return Store(Workspace(workspace))


def test_every_table_stands_in_every_format(audited: Store) -> None:
    made = report.build(audited)
    page, text, words = report.to_html(made), report.to_markdown(made), report.to_terminal(made)
    document = report.document(made)
    assert {"contents", "simulated", "real", "failures", "agreement", "rates", "raters"} <= set(
        document["tables"]
    )
    for table in made.tables:
        assert f'id="{table.name}"' in page
        assert f"## {_escaped(table.title)}" in text
        assert table.title in words


def test_the_page_opens_offline_and_has_no_script(audited: Store) -> None:
    page = report.to_html(report.build(audited))
    assert "<script" not in page and "javascript:" not in page
    assert not re.findall(r"""(?:src|href)=["'](?!#)""", page)
    assert "default-src 'none'" in page
    _Balanced().feed(page)


def test_table_3_has_the_ratings_of_real_users(audited: Store) -> None:
    table = report.build(audited).table("real")
    rows = {row[0]: row for row in table.rows}
    column = table.columns.index("tabular_analysis · situational_planning")
    satisfaction = rows["Overall satisfaction (1–5)"][column]
    assert isinstance(satisfaction, Number)
    assert satisfaction.value == 3.5 and satisfaction.n == 2  # 2 and 5, by hand from outcomes.jsonl


def test_the_report_of_an_empty_workspace_says_what_to_run(workspace: Path, coaudit: Coaudit) -> None:
    workspace.mkdir()
    (workspace / "sources.jsonl").touch()
    text = coaudit("report").out
    assert "coaudit ingest PATH" in text


def test_formats_follow_the_option_or_the_ending(audited: Store, coaudit: Coaudit, tmp_path: Path) -> None:
    assert json.loads(coaudit("report", "--format", "json").out)["tables"]
    coaudit("report", "--out", tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    assert "must be one of" in coaudit("report", "--format", "pdf", status=2).err


def test_words_of_a_log_are_escaped_in_html_and_markdown() -> None:
    evil = "<script>1</script>|**x**\u202e"
    table = Table("t", evil, evil, (evil, "n"), ((evil, Number(1.0, n=1)),))
    made = report.Report("now", evil, ((evil, evil),), (table,), (evil,))
    assert "<script" not in report.to_html(made)
    assert "<script" not in report.to_markdown(made) and "|**" not in report.to_markdown(made)
    assert "\u202e" not in report.to_terminal(made)


def test_numbers_are_written_for_reading() -> None:
    assert [
        figure(None),
        figure(0.5),
        figure(2.5),
        figure(0.345, percent=True),
        figure(1200, whole=True),
    ] == [
        "–",
        "0.500",
        "2.50",
        "34 %",
        "1,200",
    ]


class _Balanced(HTMLParser):
    """Fails on a tag that is closed out of order."""

    VOID = ("meta", "br", "img", "input", "link", "hr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
