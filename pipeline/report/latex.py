"""The report for a paper: tables and figures within their environments, to be put into one with \\input."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from ...schemas.text import shortened, visible
from .figures import Figure, named
from .tables import Cell, Table

if TYPE_CHECKING:
    from .document import Report

WIDTH = 8
"""Columns after the heads from which on a table is parted, each part with a label of its own."""
LONGEST = 200
"""Characters of a cell: LaTeX gives up on a line of some thousands."""
_UNWRITABLE = "%#{}~^\\&$\"' \t\n"
"""What no path of a figure can have in LaTeX."""
_NAMES = """
alpha beta gamma delta varepsilon theta kappa lambda mu mu pi rho sigma tau varphi chi omega Delta Sigma Omega
times pm le ge approx ne to leftarrow infty in
"""
_MATH = dict(zip("αβγδεθκλμµπρστφχωΔΣΩ×±≤≥≈≠→←∞∈", _NAMES.split(), strict=True))
"""What LaTeX has in formulas alone."""
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "·": r"\textperiodcentered{}",
    "²": "$^2$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **dict(zip("–—‘’“”…", ("--", "---", "`", "'", "``", "''", r"\dots{}"), strict=True)),
    **{sign: rf"$\{name}$" for sign, name in _MATH.items()},
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
_LETTERS = "ßæøåœÆØÅŒłŁı"
_ACCENTS = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
"""Letters, and accents above or below one, that every LaTeX has."""
_OTHER = r"\providecommand{\coauditother}[2]{\ifdefined\Umathchar #2\else U+#1\fi}"
"""Any other character: XeLaTeX and LuaLaTeX look for it in their font, pdfLaTeX would stop at it."""


def latex(report: Report, folder: str | None = None) -> str:
    """All figures and all tables that have rows, captioned and labelled `fig:NAME` and `tab:NAME`.

    Every word is escaped. `folder` is where the figures lie as PDF, as LaTeX will look for it; without it a
    comment says how to have them.
    """
    parts = [f"% coaudit report, made {escaped(report.created)}; needs the packages booktabs and graphicx"]
    parts.append(_OTHER)
    if not report.figures:
        parts.append("% No figures: nothing in this workspace has intervals or failure modes to draw yet.")
    elif folder is None:
        parts.append(f"% No figures: {len(report.figures)} can be drawn: `--figures FOLDER` sets them in.")
    else:
        parts += [_figure(one, folder, name) for name, one in named(report.figures)]
    for table in (table for table in report.tables if table.rows):
        for number, (name, part) in enumerate(table.parts(WIDTH), 1):
            parts.append(_table(table, part, name, f"{table.name}{f'-{number}' if name else ''}"))
    return "\n\n".join(parts) + "\n"


def _figure(figure: Figure, folder: str, name: str) -> str:
    path = f"{folder}/{name}.pdf" if folder not in ("", ".") else f"{name}.pdf"
    lines = [
        r"\begin{figure}",
        r"\centering",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\includegraphics{{{path}}}}}",
        rf"\caption{{{escaped(f'{figure.title}. {figure.caption}'.replace('`', ''))}}}",
        rf"\label{{fig:{figure.name}}}",
        r"\end{figure}",
    ]
    return "\n".join(lines)


def _table(table: Table, part: Table, name: str, label: str) -> str:
    title = escaped(f"{table.title}{f': {name}' if name else ''}.")
    said = escaped(table.caption.replace("`", ""))
    columns = "".join("l" if i in part.left else "r" for i in range(len(part.columns)))
    lines = [
        r"\begin{table}",
        rf"\caption{{{title} {said}}}",
        rf"\label{{tab:{label}}}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _line([_cell(column) for column in part.columns]),
        r"\midrule",
        *(_line([_cell(cell) for cell in row]) for row in part.rows),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _line(cells: list[str]) -> str:
    """A row; one that began with a bracket or a star would be an option of the line's end before it."""
    row = " & ".join(cells)
    return ("{}" if row[:1] in ("[", "*") else "") + row + r" \\"


def _cell(cell: Cell) -> str:
    """A value with its interval; why there is none stands in the report, not in a paper's table."""
    if isinstance(cell, str):
        return escaped(shortened(cell, LONGEST))
    return escaped(f"{cell.text} {cell.bounds}".strip())


def writable(folder: str) -> bool:
    """Whether a path means itself to LaTeX."""
    return not set(folder) & set(_UNWRITABLE)


def escaped(text: str) -> str:
    """Words that mean nothing to LaTeX but themselves; a sign that it may not have goes by its number."""
    return "".join(map(_sign, visible(" ".join(text.split()))))


def _sign(sign: str) -> str:
    if sign in _SPECIAL:
        return _SPECIAL[sign]
    parts = unicodedata.normalize("NFD", sign)
    latin = sign < "\u0180" and parts[0].isascii() and len(parts) < 3 and set(parts[1:]) <= set(_ACCENTS)
    if latin or sign in _LETTERS:
        return sign
    return rf"\coauditother{{{ord(sign):04X}}}{{{sign}}}"
