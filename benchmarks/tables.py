"""What tables of coverage have in common: marks for what lies outside .93 to .97, and a place in a page."""

from __future__ import annotations

import argparse
import re
import subprocess
import time
from collections.abc import Callable, Iterable
from math import sqrt
from pathlib import Path

from coaudit import __version__

LOWEST, HIGHEST, NOMINAL = 0.93, 0.97, 0.95
LEGEND = (
    "▼ marks coverage below .93; ▽ the same within two standard errors of .95, which chance explains; "
    "▲ coverage above .97: the interval is wider than needed. What is behind ▼ stands at the end of its row."
)


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    given = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent, check=False)
    return given.stdout.strip() or "no commit"


STATE = f"coaudit {__version__} at {_commit()}, {time.strftime('%Y-%m-%d')}, seeds in the code"
"""What ran, as of the start of the run."""


def mark(held: float, samples: int) -> str:
    """▼, ▽ or ▲ where coverage `held` of so many samples lies outside .93 to .97; see LEGEND."""
    if held > HIGHEST:
        return "▲"
    if held >= LOWEST:
        return ""
    return "▽" if held >= NOMINAL - 2 * sqrt(NOMINAL * (1 - NOMINAL) / samples) else "▼"


def explained(cells: Iterable[str], why: str) -> str:
    """The last cell of a row: why it is too narrow, where one of its `cells` is."""
    return (why or "not explained") if any("▼" in cell for cell in cells) else ""


def put(page: Path, command: str, tables: str, say: str = "") -> None:
    """Replace what stands between the marks of a benchmark in a page.

    `command` is what was run, `say` what else is to be said above the tables.
    """
    name = command.split()[1]
    body = f"<!-- {name} -->\n`{command}` ({STATE}). {say}\n\n{tables.strip()}\n<!-- end -->"
    text = page.read_text(encoding="utf-8")
    marked = re.compile(f"<!-- {re.escape(name)} -->.*?<!-- end -->", re.DOTALL)
    if not marked.search(text):
        raise SystemExit(f"{page}: no <!-- {name} --> … <!-- end --> to put the tables into")
    page.write_text(marked.sub(lambda _: body, text), encoding="utf-8")


def tabulate(description: str, program: str, rows: Callable[[int], Iterable[str]]) -> None:
    """What a program of one table does: print each row as it comes, and put all into the page of `--out`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    table = []
    for row in rows(options.samples):
        table.append(row)
        print(row, flush=True)
    if options.out:
        put(options.out, f"python {program} --samples {options.samples}", "\n".join(table), LEGEND)
