"""Ratios that count on shared machines: each beside the one that was committed, and marked where it fell.

A benchmark calls `hold(name, value)`; a value is better the larger it is. `--keep` of a benchmark writes the
values of its run into baseline.json.
"""

from __future__ import annotations

import json
from pathlib import Path

BASELINE = Path(__file__).with_name("baseline.json")
WORSE = 0.8
"""A ratio below so much of its baseline is told: noise between two runs stays above."""


def hold(values: dict[str, float], *, keep: bool = False) -> list[str]:
    """Print each ratio beside its baseline; the names of those that are a fifth worse."""
    known: dict[str, float] = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    fallen = [name for name, value in values.items() if name in known and value < WORSE * known[name]]
    for name, value in values.items():
        before = f"{known[name]:.3g}" if name in known else "–"
        mark = "  WORSE BY A FIFTH OR MORE" if name in fallen else ""
        print(f"{name:48}{value:>10.3g}   baseline {before}{mark}")
    if keep:
        rounded = {name: float(f"{value:.3g}") for name, value in values.items()}
        BASELINE.write_text(json.dumps(known | rounded, indent=2, sort_keys=True) + "\n")
    return fallen
