"""The rows of spreadsheets."""

from __future__ import annotations

import polars

from coaudit.pipeline.systems.formats.files import excel


def test_a_column_called_sheet_does_not_hide_which_sheet_a_row_is_from() -> None:
    own = excel.Sheet(polars.DataFrame({"sheet": ["A"], "n": [1]}), polars.DataFrame())
    other = excel.Sheet(polars.DataFrame({"n": [2]}), polars.DataFrame())
    rows = list(excel.plain({"one": own, "two": other}, "log.xlsx"))
    assert rows == [{"sheet_name": "one", "sheet": "A", "n": 1}, {"sheet_name": "two", "n": 2}]
