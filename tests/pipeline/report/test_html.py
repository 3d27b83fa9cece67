"""The report on paper: every column of every table is on a page."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from coaudit.pipeline.report import Number, Report, Table
from coaudit.pipeline.report.html import html
from tests.conftest import needs

pytestmark = pytest.mark.slow
CHROMIUM = "/usr/bin/chromium"
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
