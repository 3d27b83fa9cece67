"""The report on paper: every column of every table is on a page."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.report import Number, Report, Table
from coaudit.pipeline.report.figures import intervals
from coaudit.pipeline.report.html import html, is_wide
from coaudit.pipeline.report.tables import Answer
from coaudit.pipeline.report.transcript.excerpts import Excerpt
from tests.conftest import needs

pytestmark = pytest.mark.slow
CHROMIUM = "/usr/bin/chromium"
BROKEN = """[...document.querySelectorAll("th, td")].flatMap(cell => {
    const text = cell.firstChild, range = document.createRange();
    return [...text.data.matchAll(/\\S+/g)].filter(word => {
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        return range.getClientRects().length > 1;
    }).map(String);
})"""
"""The words of tables that stand on two lines."""
PAPER = 688
"""Pixels of a page's width between its margins."""
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]


def test_a_printed_report_holds_every_column_of_every_table_within_its_pages(tmp_path: Path) -> None:
    needs("chromium", "it prints the report")
    many = _table("many", [f"simulated · condition_{i:02}" for i in range(30)])
    grouped = _table("grouped", ["Delivery rate", "Task perf.", "H_init"] * 4)
    groups = tuple((f"task_{i}", 3) for i in range(4))
    words = Table("words", "Words", "", tuple(f"word{i:02}" for i in range(10)), (("x" * 24,) * 10,), heads=9)
    by_group = Table("grouped", "Grouped", "", grouped.columns, grouped.rows, heads=3, groups=groups)
    report = Report("now", "here", (("Trajectories", "9"),), (many, by_group, words), ("None.",))
    pages = _printed(html(report), tmp_path)
    text = re.sub(r"\s", "", "".join(page for page, _ in pages))
    for table in (many, by_group, words):
        for column in table.columns:
            assert re.sub(r"\s", "", column) in text, column
    whole = set(re.findall(r"\b1\d\d\.00\b", "\n".join(page for page, _ in pages)))
    assert whole == {f"{101 + i}.00" for i in range(30)}, "no figure is broken over two lines"
    assert all(left >= 0 and right <= 1.001 for _, (left, right) in pages)


def test_only_wide_tables_are_printed_on_their_side_and_figures_and_excerpts_are_on_paper_too(
    tmp_path: Path,
) -> None:
    needs("chromium", "it prints the report")
    report = _everything()
    _printed(html(report), tmp_path)
    from pypdf import PdfReader

    sheets = PdfReader(tmp_path / "report.pdf").pages
    text = [sheet.extract_text() for sheet in sheets]
    lying = [float(sheet.mediabox.width) > float(sheet.mediabox.height) for sheet in sheets]
    assert [
        ("column 6" in page, lies) for page, lies in zip(text, lying, strict=True) if "column" in page
    ] == [(True, True)]
    assert not lying[0] and not lying[-1]
    whole = "\n".join(text)
    assert "Drawn share" in whole and "I **booked** it. <b>" in whole
    assert whole.index("Table 2") < whole.index("Figure 1") < whole.index("Excerpt 1") < whole.index("Prose.")
    assert whole.index("Prose.") < whole.index("Table A1. Looked up")


def test_a_table_of_few_numbers_whose_words_a_portrait_page_breaks_is_printed_on_its_side() -> None:
    """`human` stood as `hum` and `an` beside hashes, models and versions."""
    cells = (
        "collaborative_errors",
        "2eb73519a2bf",
        "judge-large-v2.1",
        "human",
        "2eb73519a2bf",
        "Qwen2.5-72B",
    )
    heads = ("Codebook", "Version", "Rater", "Kind", "Rater's version", "Model", "Prompts")
    row = (*cells, "0413908d4abd", Number(2493.0, plain=True))
    assert is_wide(Table("raters", "", "", (*heads, "Answers"), (row,), heads=7))
    assert not is_wide(Table("few", "", "", (*heads[:5], "Answers"), ((*cells[:5], row[-1]),), heads=5))


def test_long_names_leave_the_other_columns_their_width_and_letters_wider_than_drawn_are_not_cut(
    tmp_path: Path,
) -> None:
    needs("chromium", "it prints the report")
    from playwright.sync_api import sync_playwright

    named = _table("named", ["All", "a very long condition name that goes on " * 7, "real", "simulated"])
    heads = (
        "confirmation",
        "2b3e538dd5bc",
        "hosted_vllm/model-72",
        "judge",
        "c4c8e87a5222",
        "incident_response",
    )
    full = Table("full", "Full", "", (*(f"Head {i}" for i in range(6)), "Answers"), ((*heads, "1,024"),), 7)
    empty = replace(_table("empty", [f"column {i}" for i in range(7)]), rows=(), empty="Nothing yet.")
    whole = replace(_everything(), tables=(named, empty, full))
    page = html(whole)
    assert 'aria-labelledby="empty">' in page, "a table without rows is not laid on its side"
    (tmp_path / "report.html").write_text(page.replace("Liberation Sans", "DejaVu Sans"), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS[1:3])
        sheet = browser.new_page(viewport={"width": PAPER, "height": 900})
        sheet.goto((tmp_path / "report.html").as_uri())
        sheet.emulate_media(media="print")
        widths = sheet.evaluate(
            "[...document.querySelectorAll('[aria-labelledby=named] thead th')]"
            ".map(cell => cell.getBoundingClientRect().width)"
        )
        assert max(widths) < 0.4 * sum(widths)
        assert sheet.evaluate(BROKEN) == []
        cut = sheet.evaluate(
            "getComputedStyle(document.querySelector('figure svg')).overflow + ' ' +"
            "getComputedStyle(document.querySelector('figure > .scroll')).paddingLeft"
        )
        assert cut == "visible 48px", "a browser may have wider letters than those drawn"


@pytest.mark.parametrize("width, scheme", [(1440, "light"), (390, "dark")])
def test_the_page_breaks_no_rule_of_accessibility_and_is_never_wider_than_the_screen(
    tmp_path: Path, width: int, scheme: str
) -> None:
    needs("chromium", "it shows the report")
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    (tmp_path / "report.html").write_text(html(_everything()), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS[1:3])
        look: Any = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
        page = browser.new_page(**look)
        page.goto((tmp_path / "report.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        rows = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
        assert [(row["id"], row["nodes"][0]["html"][:200]) for row in rows] == []
        assert page.evaluate("document.fonts.size + document.images.length + document.scripts.length") == 0


def _everything() -> Report:
    """A report with answers, narrow and wide tables, a figure, an excerpt, and an appendix."""
    narrow = Table("narrow", "Narrow", "", ("Code", "Rate"), (("C.1", Number(0.5, 0.2, 0.8, percent=True)),))
    figure = intervals(replace(narrow, columns=("Code", "Drawn share")))
    event = {
        "seq": 3, "cited": True, "party": "agent", "kind": "message", "actor": "bot", "action": None,
        "text": "I **booked** it. <b>", "call": None, "status": None, "error": None, "live_only": False,
    }  # fmt: skip
    one = Excerpt("C.2", "Silent", "id", "run 1", None, ("m",), "**booked**", None, (event,))
    wide = _table("wide", [f"column {i}" for i in range(7)])
    tables = (narrow, wide, replace(narrow, name="behind", title="Looked up", appendix=True))
    assert figure
    report = Report("now", "here", (), tables, ("Prose.",), (), (figure,), (one,))
    answer = Answer("How did it go?", (f"Well in {'Donaudampfschifffahrt' * 20}.",), narrow, "coaudit report")
    return replace(report, answers=(answer,))


def _table(name: str, columns: list[str]) -> Table:
    """A row whose values are 101, 102 and so on, with an interval and n each."""
    cells = tuple(Number(101.0 + i, 1.0, 2.0, 40, 3) for i in range(len(columns)))
    heads = ("C.1", "Unannounced change of the shared work", "model, scaffolding")
    return Table(
        name, name, "", ("Code", "Mode", "Source", *columns), ((*heads, *cells),), heads=3, shaded=True
    )


def _printed(page: str, folder: Path) -> list[tuple[str, tuple[float, float]]]:
    """Text of each page, and its leftmost and rightmost place as shares of the page's width."""
    from pypdf import PdfReader

    (folder / "report.html").write_text(page, encoding="utf-8")
    target = folder / "report.pdf"
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", f"--print-to-pdf={target}"]
    subprocess.run([*command, str(folder / "report.html")], check=True, capture_output=True, timeout=60)
    result = []
    for sheet in PdfReader(target).pages:
        width = float(sheet.mediabox.width)
        places: list[float] = []

        def visit(
            text: str, cm: list[float], tm: list[float], *_: object, places: list[float] = places
        ) -> None:
            if text.strip():
                places.append(cm[0] * tm[4] + cm[4])

        text = sheet.extract_text(visitor_text=visit)
        result.append((text, (min(places, default=0.0) / width, max(places, default=0.0) / width)))
    return result


def test_a_name_from_right_to_left_moves_no_number_behind_it_in_captions_answers_and_methods() -> None:
    words = "by \u0646\u0648\u0631, 4 <b>"
    one = Table("t", "T", words, ("A", "B"), (("x", Number(1.0)),))
    answer = Answer("Q?", (words,), one, "")
    page = html(Report("now", "here", (), (one,), (words,), (answer,)))
    assert page.count("by <bdi>\u0646\u0648\u0631</bdi>, 4 &lt;b&gt;") == 4
