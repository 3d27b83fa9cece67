"""The report's tables for a paper: booktabs within `table` environments, to be put into one with \\input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...schemas.text import visible
from .tables import Cell, Table

if TYPE_CHECKING:
    from .document import Report

WIDTH = 8
"""Columns after the heads from which on a table is parted, each part with a label of its own."""
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "–": "--",
    "·": r"\textperiodcentered{}",
    "κ": r"$\kappa$",
    "α": r"$\alpha$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def latex(report: Report) -> str:
    """All tables that have rows, captioned and labelled `tab:NAME`; every word is escaped."""
    parts = [f"% coaudit report, made {escaped(report.created)}; needs the packages booktabs and graphicx"]
    for table in (table for table in report.tables if table.rows):
        for number, (name, part) in enumerate(table.parts(WIDTH), 1):
            parts.append(_table(table, part, name, f"{table.name}{f'-{number}' if name else ''}"))
    return "\n\n".join(parts) + "\n"


def _table(table: Table, part: Table, name: str, label: str) -> str:
    title = escaped(f"{table.title}{f': {name}' if name else ''}.")
    said = escaped(table.caption.replace("`", ""))
    columns = "l" * part.heads + "r" * (len(part.columns) - part.heads)
    lines = [
        r"\begin{table}",
        rf"\caption{{{title} {said}}}",
        rf"\label{{tab:{label}}}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _line([escaped(column) for column in part.columns]),
        r"\midrule",
        *(_line([_cell(cell) for cell in row]) for row in part.rows),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(cell: Cell) -> str:
    """A value with its interval; why there is none stands in the report, not in a paper's table."""
    if isinstance(cell, str):
        return escaped(cell)
    return escaped(f"{cell.text} {cell.bounds}".strip())


def escaped(text: str) -> str:
    """Words that mean nothing to LaTeX but themselves."""
    return "".join(_SPECIAL.get(sign, sign) for sign in visible(" ".join(text.split())))
