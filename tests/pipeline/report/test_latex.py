"""Tables for a paper: each captioned and labelled, every word harmless."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from coaudit.pipeline.report import Number, Report, Table
from coaudit.pipeline.report.figures import Figure, heatmap, pdf
from coaudit.pipeline.report.latex import escaped, latex
from tests.conftest import ROOT, Coaudit, needs


def test_a_table_is_captioned_and_labelled_and_has_a_column_for_each_of_its_own() -> None:
    rows = (("C.1", Number(0.345, 0.2, 0.5, 40, percent=True)), ("C.2", Number(None, reason="not rated")))
    table = Table("rates", "Rates", "Run `coaudit judge`.", ("Code", "a_b"), rows)
    empty = Table("none", "None", "", ("Code",), ())
    text = latex(Report("now", "here", (), (table, empty), ()))
    assert (
        r"\caption{Rates. Run coaudit judge. In brackets: 95 \% intervals; in parentheses: n.}" in text
        and r"\label{tab:rates}" in text
    )
    assert r"\begin{tabular}{lr}" in text and r"Code & a\_b \\" in text
    assert r"C.1 & 34 \% [20--50] (40) \\" in text and r"C.2 & -- \\" in text
    assert "None" not in text


def test_a_wide_table_is_parted_and_no_column_is_lost() -> None:
    columns = tuple(f"c{i}" for i in range(20))
    table = Table("wide", "Wide", "", ("Code", *columns), (("x", *(Number(float(i)) for i in range(20))),))
    text = latex(Report("now", "here", (), (table,), ()))
    assert re.findall(r"\\label\{tab:([^}]*)\}", text) == ["wide-1", "wide-2", "wide-3"]
    assert re.findall(r"\bc\d+\b", text) == list(columns)


def test_one_long_name_does_not_make_a_table_small() -> None:
    """Tables are scaled to the page: names of 90 letters left letters a millimetre high."""
    long = "an agent that plans, asks for confirmation and hands over [v2] to people whenever it is unsure"
    rows = ((long, Number(0.5, 0.2, 0.7, 40)), ("word" * 12, Number(0.5)), ("\u6761" * 12, Number(0.5)))
    text = latex(
        Report("now", "here", (), (Table("t", "T", "", ("Arm", "Rate of the whole team"), rows),), ())
    )
    cells = re.findall(r"\\begin\{tabular\}\[[tb]\]\{@\{\}[lr]@\{\}\}(.*?)\\end", text, re.DOTALL)
    lines = [re.sub(r"\\coauditother\{\w+\}\{.\}", "U+6761", cell).split("\\\\\n") for cell in cells]
    assert lines == [
        ["Rate of the whole", "team"],
        [
            "an agent that plans, asks for",
            "confirmation and hands over [v2]",
            "to people whenever it is unsure",
        ],
        ["word" * 8, "word" * 4],
        ["U+6761" * 5, "U+6761" * 5, "U+6761" * 2],
    ]
    short = Table("t", "T", "", ("Arm", "B"), (("a " * 12 + " [b]", "x"),) * 2)
    text = latex(Report("now", "here", (), (short,), ()))
    assert "begin{tabular}[" not in text
    text = latex(Report("now", "here", (), (Table("t", "T", "", ("Arm",), (("a " * 16 + "[b]",),)),), ()))
    assert "{}[b]" in text, "a bracket there would be a distance"


def test_intervals_of_many_columns_stand_below_their_numbers() -> None:
    cells = (
        Number(0.5, 0.2, 0.7, 40),
        Number(0.25),
        Number(None, 0.3, 0.4, reason="no label"),
        *[Number(0.1, 0.0, 0.2, 9)] * 4,
    )
    table = Table("t", "T", "", ("Arm", *"abcdefg"), (("x", *cells),))
    text = latex(Report("now", "here", (), (table,), ()))
    assert r"x & \begin{tabular}[t]{@{}r@{}}0.500 (40)\\" + "\n{}[0.200--0.700]" in text
    assert r"& 0.250 & -- &" in text, (
        "what has no value has no interval, of which the key says nothing either"
    )


def test_a_number_below_0_has_a_minus_and_no_hyphen() -> None:
    table = Table("t", "T", "", ("Arm", "κ"), (("pre-test", Number(-0.042, -0.233, 0.1)),))
    text = latex(Report("now", "here", (), (table,), ()))
    assert "pre-test & $-$0.042 [$-$0.233--0.100]" in text


def test_a_key_is_of_what_a_table_has() -> None:
    def key(cell: Number) -> str:
        text = latex(Report("now", "here", (), (Table("t", "T", "", ("Arm", "a"), (("x", cell),)),), ()))
        (caption,) = re.findall(r"\\caption\{T\.(.*)\}", text)
        return str(caption).strip()

    assert key(Number(0.5, 0.2, 0.7, 4)) == r"In brackets: 95 \% intervals; in parentheses: n."
    assert key(Number(0.5, n=4)) == "In parentheses: n."
    assert key(Number(0.5, 0.2, 0.7)) == r"In brackets: 95 \% intervals."
    assert key(Number(0.5)) == key(Number(None, 0.1, 0.2, 4, reason="none")) == ""


def test_words_of_a_log_are_no_commands() -> None:
    evil = "\\input{/etc/passwd} 100% $x$ a_b ~^ #1 {"
    text = escaped(evil)
    assert text.startswith(r"\textbackslash{}input\{/etc/passwd\} 100\% \$x\$ a\_b")
    assert not re.search(r"(?<!\\)[%$#_]", text)


def test_a_long_table_goes_on_in_others_and_no_row_is_lost() -> None:
    rows = tuple((f"row {n}.",) for n in range(95))
    text = latex(Report("now", "here", (), (Table("long", "Did it work?", "So.", ("Row",), rows),), ()))
    assert re.findall(r"row \d+\.", text) == [row for (row,) in rows]
    assert text.count(r"\begin{table}") == text.count(r"\toprule") == 3
    assert text.count(r"\caption{Did it work? So.}") == text.count(r"\label{tab:long}") == 1
    assert text.count("Did it work? Continued.") == 2
    rows = tuple((f"row {n}. " + "and so on " * 8,) for n in range(20))
    text = latex(Report("now", "here", (), (Table("long", "Long", "", ("Row",), rows),), ()))
    assert re.findall(r"row \d+\.", text) == [f"row {n}." for n in range(20)]
    assert text.count(r"\begin{table}") == 2, "of rows of three lines a page holds fewer"


@pytest.mark.slow
def test_whatever_a_log_says_can_be_set(tmp_path: Path) -> None:
    needs("pdflatex", "a paper cannot be set")
    own = "λ κ α ≥ × – — “so” …"
    words = ["[3cm] a", "* b", "<a> | \"c\" 'd' ?`", "\\end{document}", own, "%", "\x07", "long " * 3000]
    words += ["漢字 🙂 ↯ и́ क्षि \ufb01 a\u0301\u0323", "".join(map(chr, range(0xA0, 0x168)))]
    words += ["".join(map(chr, range(0x168, 0x230))), "".join(map(chr, range(0x370, 0x400)))]
    rows = tuple((word, Number(0.5, 0.2, 0.7, 40)) for word in words)
    table = Table("words", "Of λ ¿ 漢", " ".join(words[:7]), ("Code", "≥ λ"), rows)
    condition = "Условие эксперимента: без подсказок и с подтверждением действий агента " * 3
    wide = Table("wide", "漢" * 5000, "漢" * 5000, ("漢🙂" * 100, *[condition] * 8), (("漢" * 300,) * 9,) * 3)
    long = Table("long", "Long?", "Many rows.", ("Task", "n"), tuple((f"t{n}", str(n)) for n in range(1500)))
    many = tuple(Table(f"t{n}", "Many", "Tables.", ("a",), (("b",),)) for n in range(120))
    report = Report("now", "here", (), (table, wide, long, *many), ())
    (tmp_path / "report.tex").write_text(latex(report), encoding="utf-8")
    paper = (
        r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}\listoftables\input{report}"
    )
    (tmp_path / "paper.tex").write_text(paper + r"\end{document}", encoding="utf-8")
    for _ in range(2):  # the list of tables is of the run before
        done = subprocess.run(
            ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "paper.tex"],
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout.decode("utf-8", "replace")[-2000:]
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")


FIGURE = Figure("process", "How_the team", "Lines are 95 % intervals.", {})


def test_figures_are_set_in_from_their_folder_captioned_and_labelled() -> None:
    text = latex(Report("now", "here", (), (), (), figures=(FIGURE,)), "fig/ures")
    assert r"\includegraphics{fig/ures/figure-1-process.pdf}" in text and r"\label{fig:process}" in text
    assert r"\caption{How\_the team. Lines are 95 \% intervals.}" in text
    assert text.count(r"\begin{figure}") == text.count(r"\end{figure}") == 1


@pytest.mark.slow
def test_a_figure_higher_than_a_page_is_scaled_to_it(tmp_path: Path) -> None:
    """LaTeX put it over the page's edge: it is scaled to the width of a line alone."""
    needs("pdflatex", "a paper cannot be set")
    rows = tuple((f"C.{n}", Number(n / 100, percent=True)) for n in range(60))
    figure = heatmap(Table("modes", "Modes", "", ("Code", "All"), rows, shaded=True))
    assert figure is not None
    (tmp_path / "figure-1-modes.pdf").write_bytes(pdf(figure))
    text = latex(Report("now", "here", (), (), (), figures=(figure,)), ".")
    (tmp_path / "report.tex").write_text(text, encoding="utf-8")
    paper = (
        r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}\input{report}\end{document}"
    )
    (tmp_path / "paper.tex").write_text(paper, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "paper.tex"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    log = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0 and "figure-1-modes.pdf" in log, log[-2000:]
    assert "Float too large" not in log and "Overfull" not in log


def test_a_file_without_its_figures_says_so_and_how_to_have_them() -> None:
    without = latex(Report("now", "here", (), (), (), figures=(FIGURE,)))
    assert "includegraphics" not in without and "% No figures: 1 can be drawn: `--figures FOLDER`" in without
    assert "% No figures: nothing in this workspace" in latex(Report("now", "here", (), (), ()), "figures")


@pytest.mark.long
def test_the_file_finds_the_figures_that_are_written_beside_it(tmp_path: Path, coaudit: Coaudit) -> None:
    coaudit("ingest", ROOT / "data" / "cogym")
    coaudit("judge", "--codebook", "initiative", "--rater", "rules")
    out, folder = tmp_path / "paper" / "report.tex", tmp_path / "paper" / "figures"
    out.parent.mkdir()
    coaudit("report", "--out", out, "--figures", folder)
    wanted = re.findall(r"\\includegraphics{([^}]*)}", out.read_text(encoding="utf-8"))
    assert wanted and all((out.parent / name).read_bytes().startswith(b"%PDF") for name in wanted)
    refused = coaudit("report", "--out", out, "--figures", tmp_path / "my #1", status=2)
    assert "LaTeX cannot take" in refused.err
    plain = coaudit("report", "--format", "tex")
    assert "without its" in plain.err and "--figures FOLDER" in plain.out
