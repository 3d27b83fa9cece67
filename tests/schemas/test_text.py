"""Text of others: nothing is obeyed by a terminal, computed by a spreadsheet, or lost in JSON."""

from __future__ import annotations

import json

import pytest

from coaudit.schemas.text import chartable, inert_cell, visible, visible_json

OBEYED = ("\x1b]0;title\x07", "\x9b31m", "\x85", "\u202e", "\u2066", "\u2028", "\U000e0041", "\r")


@pytest.mark.parametrize("text", OBEYED)
def test_what_a_terminal_obeys_is_shown_and_nothing_is_lost(text: str) -> None:
    obeyed = {letter for letter in text if not letter.isprintable()}
    shown = visible(f"before {text} after\n\tnext")
    assert obeyed and not obeyed & set(shown)
    assert shown.startswith("before ") and shown.endswith(" after\n\tnext")
    printed = visible_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(printed) == text and not obeyed & set(printed)


@pytest.mark.parametrize(
    "cell",
    [
        "=1+1",
        "\n=1",
        " =1",
        "\u3000=1",
        "＝1+1",
        "\t=1",
        "+1",
        "+1+1",
        "-1+cmd",
        f"-{100_000 * '1'}x",
        "-1\n",
        "--1",
        "@SUM(A1)",
        "\ufeff=1",
    ],
)
def test_a_cell_that_a_spreadsheet_would_compute_gets_an_apostrophe(cell: str) -> None:
    assert inert_cell(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["", "plain", "a=b", "naïve", "1+1", "-1", "-2.5e-3", "-.5"])
def test_other_cells_stay_as_they_are(cell: str) -> None:
    assert inert_cell(cell) == cell


def test_a_cell_that_a_terminal_shows_obeys_nothing_and_its_json_and_line_ends_are_the_same() -> None:
    assert inert_cell("\x1b[2J\r\nx\ry\tz\U000e0041") == "\\u001b[2J\r\nx\\u000dy\tz\\udb40\\udc41"
    assert inert_cell("\r=1") == r"\u000d=1"
    tags = {"note": "\u202egnp.exe"}
    assert json.loads(inert_cell(json.dumps(tags, ensure_ascii=False))) == tags


def test_a_name_in_a_chart_turns_nothing_around() -> None:
    assert chartable("\u202egnorw") == r"\u202egnorw" and chartable("Ulm, שלום") == "Ulm, שלום"
