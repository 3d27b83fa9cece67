"""The report for a paper: tables and figures within their environments, to be put into one with \\input."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterator, Sequence
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
"""Most lines of a table's rows, which fill a page; the rest goes into another table."""
LINE, HEAD = 32, 20
"""Most characters of a line in a cell, and at the head of numbers: a table is scaled to the page, so that one
long name would make all of it small."""
STACKED = 4
"""A table with more columns of intervals has them below their numbers."""
FLOATS = 12
"""Floats after which pages are cleared: LaTeX keeps no more than 18 that wait for a page."""
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
    aligned = ["l" if i in part.left_aligned else "r" for i in range(len(part.columns))]
    longest = min(LONGEST, ROW // len(part.columns))
    caption = f"{table.caption} {_key(part)}".strip()
    head = [rf"\caption{{{_caption(title, caption)}}}", rf"\label{{tab:{label}}}"]
    is_stacked = sum(any(_has_interval(row[i]) for row in part.rows) for i in range(len(aligned))) > STACKED
    rows = [[_cell(cell, longest, stacked=is_stacked) for cell in row] for row in part.rows]
    heads = zip(part.columns, aligned, strict=True)
    names = [_words(name, longest, LINE if side == "l" else HEAD) for name, side in heads]
    for page, lines in enumerate(_pages(rows)):
        yield "\n".join(
            [
                r"\begin{table}",
                *(head if not page else [rf"\noindent {_caption(title, 'Continued.')}\par\smallskip"]),
                r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
                rf"\begin{{tabular}}{{{''.join(aligned)}}}",
                r"\toprule",
                _line(names, aligned, "b"),
                r"\midrule",
                *(_line(row, aligned, "t") for row in lines),
                r"\bottomrule",
                r"\end{tabular}}",
                r"\end{table}",
            ]
        )


def _key(part: Table) -> str:
    """What brackets and parentheses of a table hold, if it has any."""
    cells = [cell for row in part.rows for cell in row]
    intervals = "in brackets: 95 % intervals" if any(map(_has_interval, cells)) else ""
    sizes = "in parentheses: n" if any(map(_has_size, cells)) else ""
    key = "; ".join(filter(None, (intervals, sizes)))
    return f"{key[0].upper()}{key[1:]}." if key else ""


def _pages(rows: list[list[list[str]]]) -> Iterator[list[list[list[str]]]]:
    """Rows of at most ROWS lines each, and at least a row."""
    page: list[list[list[str]]] = []
    height = 0
    for row in rows:
        own = max(map(len, row))
        if page and height + own > ROWS:
            yield page
            page, height = [], 0
        page.append(row)
        height += own
    yield page


def _caption(title: str, text: str) -> str:
    end = "" if title[-1:] in tuple(".?!") else "."
    return escaped(_fit_width(f"{title}{end} {text}".replace("`", ""), ROW))


def _line(row: list[list[str]], aligned: Sequence[str], place: str) -> str:
    """A row of cells, each of one or more lines: level are those at the top (`t`) or at the bottom (`b`)."""
    cells = (_lines(lines, side, place) for lines, side in zip(row, aligned, strict=True))
    return _guarded(" & ".join(cells)) + r" \\"


def _lines(lines: list[str], side: str, place: str) -> str:
    if len(lines) == 1:
        return lines[0]
    body = "\\\\\n".join(map(_guarded, lines))
    return rf"\begin{{tabular}}[{place}]{{@{{}}{side}@{{}}}}{body}\end{{tabular}}"


def _guarded(line: str) -> str:
    """A line; a bracket or star at its beginning would be read as an option of the `\\\\` before it."""
    return ("{}" if line[:1] in ("[", "*") else "") + line


def _cell(cell: Cell, longest: int, *, stacked: bool) -> list[str]:
    """A value with n, and its interval behind it or, `stacked`, below it; reasons for missing values are in
    the report, not in a paper's table."""
    if isinstance(cell, str):
        return _words(cell, longest)
    size = f"({figure(cell.n, whole=True)})" if _has_size(cell) else ""
    bounds = cell.bounds if _has_interval(cell) else ""
    parts = ((cell.text, size), (bounds,)) if stacked and bounds else ((cell.text, bounds, size),)
    return [escaped(" ".join(filter(None, part)).replace("-", "−")) for part in parts]


def _words(text: str, longest: int, width: int = LINE) -> list[str]:
    """The lines of a text of words, of at most `width` characters as printed."""
    lines, room = [""], width
    for word in _fit_width(text, longest).split():
        space = " " if lines[-1] else ""
        own = sum(map(_width, space + word))
        if own <= room:
            lines[-1] += space + word
            room -= own
            continue
        if lines[-1]:
            lines.append("")
        room = width
        for sign in word:
            if _width(sign) > room:
                lines.append("")
                room = width
            lines[-1] += sign
            room -= _width(sign)
    return list(map(escaped, lines))


def _has_interval(cell: Cell) -> bool:
    return isinstance(cell, Number) and bool(cell.value is not None and cell.bounds)


def _has_size(cell: Cell) -> bool:
    return isinstance(cell, Number) and cell.value is not None and cell.n is not None


def _fit_width(text: str, most: int) -> str:
    """A text shortened to `most` characters as printed: one that is written as its number takes several."""
    widths = itertools.accumulate(map(_width, text))
    return shortened(text, max(1, sum(1 for _ in itertools.takewhile(lambda width: width <= most, widths))))


def _width(sign: str) -> int:
    """Characters that one takes as printed."""
    return len(f"U+{ord(sign):04X}") if _is_other(sign) else 1


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
