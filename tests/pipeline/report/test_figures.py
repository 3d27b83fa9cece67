"""Figures: the numbers of a table, drawn without a browser, and nothing of a log in them but text."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest
import vl_convert

from coaudit.pipeline.report import Number, Table
from coaudit.pipeline.report.figures import LEGIBLE, figures, heatmap, intervals, pdf, svg
from coaudit.pipeline.report.html import interval as line
from coaudit.pipeline.report.tables import Answer

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "<script>1</script>\"'&<image href='http://evil.example/'/>"


def rates(*cells: Number | str, name: str = "C.1") -> Table:
    return Table("rates", "Rates", "Shares.", ("Code", "Rate"), tuple((name, cell) for cell in cells))


def test_each_column_with_intervals_is_a_panel_and_a_value_without_one_still_has_its_point() -> None:
    columns = ("Code", "n", "Rate", "Kappa")
    rows = (
        ("A", Number(9, plain=True), Number(0.5, 0.2, 0.8, percent=True), Number(0.4, -0.1, 0.7)),
        ("B", Number(9, plain=True), Number(1.0, percent=True), Number(None, reason="one label only")),
    )
    figure = intervals(Table("rates", "Rates", "Shares.", columns, rows))
    assert figure is not None
    panels = figure.spec["hconcat"]
    assert [_axis(panel)["title"] for panel in panels] == ["Rate", "Kappa"], "a count is no picture"
    assert panels[0]["data"]["values"] == [
        {"row": "A", "value": 0.5, "low": 0.2, "high": 0.8},
        {"row": "B", "value": 1.0, "low": None, "high": None},
    ]
    assert [row["row"] for row in panels[1]["data"]["values"]] == ["A"]
    assert figure.caption == "Shares. Lines are 95 % intervals."


def test_the_mean_of_a_scale_is_not_drawn_on_an_axis_of_shares() -> None:
    """On a page its line was a dot at the end, in a figure it was beyond 100 %."""
    mean = Number(2.97, 2.8, 3.14)
    figure = intervals(rates(Number(0.5, 0.2, 0.8, percent=True), mean))
    assert figure is not None
    assert [row["value"] for row in figure.spec["hconcat"][0]["data"]["values"]] == [0.5]
    assert line(mean) == "" and line(Number(0.4, -0.1, 0.7)) != ""


def _axis(panel: dict[str, Any]) -> dict[str, Any]:
    axis: dict[str, Any] = panel["layer"][0]["encoding"]["x"]["axis"]
    return axis


def test_a_table_without_intervals_or_rows_has_no_figure() -> None:
    assert intervals(rates("word", Number(0.5))) is None
    assert intervals(rates()) is None and heatmap(rates()) is None
    assert figures([Answer("Why?", ("Nothing.",), None, "coaudit ingest PATH")], rates()) == ()


def test_rows_of_one_name_stay_apart() -> None:
    figure = heatmap(rates(Number(0.1), Number(0.2)))
    assert figure is not None
    assert [cell["row"] for cell in figure.spec["data"]["values"]] == ["C.1", "C.1 (2)"]


def test_a_name_that_is_made_for_a_second_row_is_no_other_row_s() -> None:
    names = ("C.1 (2)", "C.1", "C.1")
    rows = tuple((name, Number(0.1 * n)) for n, name in enumerate(names))
    figure = heatmap(Table("rates", "Rates", "Shares.", ("Code", "Rate"), rows))
    assert figure is not None
    assert [cell["row"] for cell in figure.spec["data"]["values"]] == ["C.1 (2)", "C.1", "C.1 (3)"]


@pytest.mark.long
@pytest.mark.parametrize("columns", [LEGIBLE, LEGIBLE + 1])
def test_a_heatmap_has_numbers_in_its_cells_as_long_as_they_can_be_read(columns: int) -> None:
    names = tuple(f"arm {i}" for i in range(columns))
    cells = tuple(Number(i / 100, percent=True) for i in range(columns))
    figure = heatmap(Table("failures", "F", "", ("Code", *names), (("C.1", *cells),)))
    assert figure is not None
    text = svg(figure)
    assert ("11 %" in text) == (columns == LEGIBLE)
    assert (">75%<" in text) == (columns > LEGIBLE), "without numbers, a legend says what a tint means"
    assert "Intervals are in the table" in figure.caption
    assert all(name in text for name in names)


@pytest.mark.long
def test_a_figure_is_one_svg_without_script_or_address_and_one_page_of_pdf() -> None:
    figure = intervals(rates(Number(0.5, 0.2, 0.8, percent=True), name=EVIL))
    assert figure is not None
    text = svg(figure)
    root = ElementTree.fromstring(text)
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags <= {"svg", "g", "path", "line", "text", "rect"}
    assert "http://evil" in "".join(root.itertext()) and not re.search(r'href="', text)
    assert "currentColor" in text and 'fill="white"' not in text, "as readable on dark as on light"
    assert svg(figure) == text, "the same figure is the same file"
    assert pdf(figure).startswith(b"%PDF-")


@pytest.mark.long
def test_an_svg_has_room_for_letters_of_a_font_that_is_wider_than_the_converter_s() -> None:
    """`SA.5 Critical` began with its last letter: DejaVu Sans is a sixth wider than Liberation Sans."""
    rows = (("SA.5", "Critical action without confirmation", Number(0.5, 0.4, 0.6, 9, percent=True)),)
    columns = ("Code", "Name", "a long head")
    figure = heatmap(Table("modes", "Modes", "", columns, rows, heads=2, shaded=True))
    assert figure is not None
    text = svg(figure)
    x, y, width, height = map(float, re.findall(r'viewBox="([^"]+)"', text)[0].split())
    left, top = map(float, re.findall(r"translate\(([\d.]+),([\d.]+)\)", text)[0])
    assert -x >= left / 6 > 20 and -y >= top / 6 > 5
    assert f'width="{width:.0f}" height="{height:.0f}"' in text, "at the scale that it had"


def test_a_name_with_what_xml_has_no_letter_for_is_drawn() -> None:
    name = "a\x1b[31m\x00\ufffe\ud800z"
    for figure in (
        intervals(rates(Number(0.5, 0.2, 0.8), name=name)),
        heatmap(rates(Number(0.5), name=name)),
    ):
        assert figure is not None
        text = "".join(ElementTree.fromstring(svg(figure)).itertext())
        assert "a\\x1b[31m\\x00\ufffd\ufffdz" in text
        assert pdf(figure).startswith(b"%PDF-")


@pytest.mark.parametrize("name", ["x" + "🚀" * 60, "🚀" * 60, "R𝐀 " * 30], ids=["odd", "even", "letters"])
def test_a_long_name_with_characters_that_utf_16_has_in_two_halves_is_drawn(name: str) -> None:
    """The converter shortens it, and failed where that cut a character in two: there was no report. Whether
    it shortens it, and where it cuts, depends on a machine's fonts."""
    for figure in (
        intervals(rates(Number(0.5, 0.2, 0.8), name=name)),
        heatmap(rates(Number(0.5), name=name)),
    ):
        assert figure is not None
        text = "".join(ElementTree.fromstring(svg(figure)).itertext())
        assert "\ufffd" in text or name[:2] in text
        assert pdf(figure).startswith(b"%PDF-")


def test_rows_that_are_told_apart_by_an_emoji_alone_stay_apart_where_it_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    convert = vl_convert.vegalite_to_svg

    def failing(document: str, **options: Any) -> str:
        if "🚀" in document:
            raise ValueError("a name was cut within a character")
        return str(convert(document, **options))

    monkeypatch.setattr(vl_convert, "vegalite_to_svg", failing)
    names = ("🚀 run", "🛰 run", "\ufffd run")
    rows = tuple((name, Number(0.1 * n, percent=True)) for n, name in enumerate(names))
    figure = heatmap(Table("rates", "Rates", "Shares.", ("Code", "Rate"), rows))
    assert figure is not None
    words = ["".join(text.itertext()) for text in ElementTree.fromstring(svg(figure)).iter(f"{SVG}text")]
    assert [word.replace("\u200b", "") for word in words].count("\ufffd run") == 3


def test_a_short_name_keeps_its_emoji() -> None:
    figure = intervals(rates(Number(0.5, 0.2, 0.8), name="🚀 run"))
    assert figure is not None and "🚀 run" in svg(figure)
