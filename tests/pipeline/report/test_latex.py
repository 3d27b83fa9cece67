"""Tables for a paper: each captioned and labelled, every word harmless."""

from __future__ import annotations

import re

from coaudit.pipeline.report import Number, Report, Table
from coaudit.pipeline.report.latex import escaped, latex


def test_a_table_is_captioned_and_labelled_and_has_a_column_for_each_of_its_own() -> None:
    rows = (("C.1", Number(0.345, 0.2, 0.5, 40, percent=True)), ("C.2", Number(None, reason="not rated")))
    table = Table("rates", "Rates", "Run `coaudit judge`.", ("Code", "a_b"), rows)
    empty = Table("none", "None", "", ("Code",), ())
    text = latex(Report("now", "here", (), (table, empty), ()))
    assert r"\caption{Rates. Run coaudit judge.}" in text and r"\label{tab:rates}" in text
    assert r"\begin{tabular}{lr}" in text and r"Code & a\_b \\" in text
    assert r"C.1 & 34 \% [20--50] \\" in text and r"C.2 & -- \\" in text
    assert "None" not in text


def test_a_wide_table_is_parted_and_no_column_is_lost() -> None:
    columns = tuple(f"c{i}" for i in range(20))
    table = Table("wide", "Wide", "", ("Code", *columns), (("x", *(Number(float(i)) for i in range(20))),))
    text = latex(Report("now", "here", (), (table,), ()))
    assert re.findall(r"\\label\{tab:([^}]*)\}", text) == ["wide-1", "wide-2", "wide-3"]
    assert re.findall(r"\bc\d+\b", text) == list(columns)


def test_words_of_a_log_are_no_commands() -> None:
    evil = "\\input{/etc/passwd} 100% $x$ a_b ~^ #1 {"
    text = escaped(evil)
    assert text.startswith(r"\textbackslash{}input\{/etc/passwd\} 100\% \$x\$ a\_b")
    assert not re.search(r"(?<!\\)[%$#_]", text)
