"""The report for a paper: tables and figures within their environments, to be put into one with \\input."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...schemas.text import shortened, visible
from .figures import Figure, with_file_names
from .tables import Cell, Number, Table, figure

if TYPE_CHECKING:
    from .document import Report

WIDTH = 8
"""A table with more columns after the heads is split; each part has a label of its own."""
LONGEST = 200
"""Most characters of a cell."""
ROW = 1600
"""Most characters of a row and of a caption: LaTeX fails on lines of some three thousand."""
ROWS = 40
"""Most rows of a table, which fill a page; the rest goes into another table."""
FLOATS = 12
"""Floats after which pages are cleared: LaTeX keeps no more than 18 that wait for a page."""
KEY = "In brackets: 95 % intervals; in parentheses: n."
_UNWRITABLE = "%#{}~^\\&$\"' \t\n"
"""Characters that a figure's path cannot have in LaTeX."""
_NAMES = """
alpha beta gamma delta varepsilon theta kappa lambda mu mu pi rho sigma tau varphi chi omega Delta Sigma Omega
times pm le ge approx ne to leftarrow infty in
"""
_MATH = dict(zip("αβγδεθκλμµπρστφχωΔΣΩ×±≤≥≈≠→←∞∈", _NAMES.split(), strict=True))
"""Characters that LaTeX has in formulas alone."""
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

    Every word is escaped. `folder` has the figures as PDF, by the path that LaTeX sees; without it a comment
    says how to get them.
    """
    parts = [f"% coaudit report, made {escaped(report.created)}; needs the packages booktabs and graphicx"]
    parts.append(_OTHER)
    if not report.figures:
        parts.append("% No figures: nothing in this workspace has intervals or failure modes to draw yet.")
    elif folder is None:
        parts.append(f"% No figures: {len(report.figures)} can be drawn: `--figures FOLDER` includes them.")
    else:
        parts += [_figure(one, folder, name) for name, one in with_file_names(report.figures)]
    for table in (table for table in report.tables if table.rows):
        for number, (name, part) in enumerate(table.parts(WIDTH), 1):
            parts += _tables(table, part, name, f"{table.name}{f'-{number}' if name else ''}")
    for place in range(len(parts) - FLOATS, 2, -FLOATS):
        parts.insert(place, r"\clearpage")
    return "\n\n".join(parts) + "\n"


def _figure(figure: Figure, folder: str, name: str) -> str:
    path = f"{folder}/{name}.pdf" if folder not in ("", ".") else f"{name}.pdf"
    lines = [
        r"\begin{figure}",
        r"\centering",
        r"\resizebox{!}{\ifdim\height>.8\textheight.8\textheight\else\height\fi}{%",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\includegraphics{{{path}}}}}}}",
        rf"\caption{{{_caption(figure.title, figure.caption)}}}",
        rf"\label{{fig:{figure.name}}}",
        r"\end{figure}",
    ]
    return "\n".join(lines)


def _tables(table: Table, part: Table, name: str, label: str) -> Iterator[str]:
    """A table, in as many as its rows need; the first has the label."""
    title = f"{table.title}: {name}" if name else table.title
    columns = "".join("l" if i in part.left_aligned else "r" for i in range(len(part.columns)))
    longest = min(LONGEST, ROW // len(part.columns))
    sizes = any(_has_size(cell) for row in part.rows for cell in row)
    caption = f"{table.caption} {KEY}".strip() if sizes else table.caption
    head = [rf"\caption{{{_caption(title, caption)}}}", rf"\label{{tab:{label}}}"]
    for first in range(0, len(part.rows), ROWS):
        yield "\n".join(
            [
                r"\begin{table}",
                *(head if not first else [rf"\noindent {_caption(title, 'Continued.')}\par\smallskip"]),
                r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
                rf"\begin{{tabular}}{{{columns}}}",
                r"\toprule",
                _line([_cell(column, longest) for column in part.columns]),
                r"\midrule",
                *(_line([_cell(cell, longest) for cell in row]) for row in part.rows[first : first + ROWS]),
                r"\bottomrule",
                r"\end{tabular}}",
                r"\end{table}",
            ]
        )


def _caption(title: str, text: str) -> str:
    end = "" if title[-1:] in tuple(".?!") else "."
    return escaped(_fit_width(f"{title}{end} {text}".replace("`", ""), ROW))


def _line(cells: list[str]) -> str:
    """A row; a bracket or star at its beginning would be read as an option of the `\\\\` before it."""
    row = " & ".join(cells)
    return ("{}" if row[:1] in ("[", "*") else "") + row + r" \\"


def _cell(cell: Cell, longest: int) -> str:
    """A value with its interval and n; reasons for missing values are in the report, not in a paper's
    table."""
    if isinstance(cell, str):
        return escaped(_fit_width(cell, longest))
    size = f"({figure(cell.n, whole=True)})" if _has_size(cell) else ""
    return escaped(" ".join(filter(None, (cell.text, cell.bounds, size))))


def _has_size(cell: Cell) -> bool:
    return isinstance(cell, Number) and cell.value is not None and cell.n is not None


def _fit_width(text: str, most: int) -> str:
    """A text shortened to `most` characters as printed: one that is written as its number takes several."""
    widths = itertools.accumulate(len(f"U+{ord(sign):04X}") if _is_other(sign) else 1 for sign in text)
    return shortened(text, max(1, sum(1 for _ in itertools.takewhile(lambda width: width <= most, widths))))


def writable(folder: str) -> bool:
    """Whether a path means itself to LaTeX."""
    return not set(folder) & set(_UNWRITABLE)


def escaped(text: str) -> str:
    """A text that LaTeX prints as it is; a character that it may lack is written as its number."""
    return "".join(map(_sign, visible(" ".join(text.split()))))


def _sign(sign: str) -> str:
    if sign in _SPECIAL:
        return _SPECIAL[sign]
    return rf"\coauditother{{{ord(sign):04X}}}{{{sign}}}" if _is_other(sign) else sign


def _is_other(sign: str) -> bool:
    """Whether pdfLaTeX may lack a character."""
    if sign in _SPECIAL or sign in _LETTERS:
        return False
    parts = unicodedata.normalize("NFD", sign)
    latin = sign < "\u0180" and parts[0].isascii() and len(parts) < 3 and set(parts[1:]) <= set(_ACCENTS)
    return not latin
