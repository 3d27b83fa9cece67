"""Who, and when: whether a rater marks the one participant, or the one step, that people marked.

Source: Who&When (Zhang et al. 2025), agent-level and step-level accuracy: the share of failed runs in which
the marked agent, or step, is the annotated one. A run in which a judge marks none or several is not right,
and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...annotation.statistics.intervals import wilson
from ...schemas.text import count_of
from .matrix import Rated, group_name

KINDS = ("participant", "step")
NAMES = {"participant": "agent_accuracy", "step": "step_accuracy"}


UNJUDGED = -1
"""In place of the number of marks, of a run that the judge was not asked about."""


def accuracy_rows(
    code: Rated, judge: str, groups: Mapping[str, Mapping[str, str | None]]
) -> Iterator[dict[str, Any]]:
    """The accuracy over all runs in which people marked one unit, and in each group of them."""
    if code.book.unit not in KINDS or not code.book.binary:
        return
    runs = list(_runs(code, judge))
    yield _accuracy(code, runs, None)
    names = sorted({group_name(groups.get(trajectory, {})) for trajectory, _ in runs})
    for name in names if len(names) > 1 else ():
        yield _accuracy(code, [run for run in runs if group_name(groups.get(run[0], {})) == name], name)


def _runs(code: Rated, judge: str) -> Iterator[tuple[str, tuple[bool, int]]]:
    """Trajectory, and whether the judge marked just what people marked, and how many it marked."""
    people, answers = code.consensus(), code.of(judge)
    for number in np.unique(code.trajectory):
        units = np.flatnonzero(code.trajectory == number)
        people_marks, judge_marks = units[people[units] == 0], units[answers[units] == 0]
        if len(people_marks) == 1:
            trajectory = code.ids[number]
            right = len(judge_marks) == 1 and judge_marks[0] == people_marks[0]
            yield trajectory, (bool(right), len(judge_marks) if (answers[units] >= 0).any() else UNJUDGED)


def _accuracy(code: Rated, runs: list[tuple[str, tuple[bool, int]]], group: str | None) -> dict[str, Any]:
    judge_runs = [run for run in runs if run[1][1] != UNJUDGED]
    n = len(judge_runs)
    hits = sum(right for _, (right, _) in judge_runs)
    interval = wilson(hits, n)
    return {
        "codebook": code.book.name,
        "code": code.code,
        "measure": NAMES[code.book.unit],
        "group": group,
        "value": hits / n if n else None,
        "low": interval.low,
        "high": interval.high,
        "n": n,
        "runs": len(runs),
        "none": sum(count == 0 for _, (_, count) in judge_runs),
        "several": sum(count > 1 for _, (_, count) in judge_runs),
        "reason": None if n else f"no run in which people marked one {code.book.unit} and it was judged",
    }


def lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The rows as text."""
    for row in rows:
        value = "–" if row["value"] is None else f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
        where = f" ({row['group']})" if row["group"] else ""
        why = f"; {row['reason']}" if row["reason"] else ""
        marks = f"; {row['none']} without a mark, {row['several']} with several" if row["n"] else ""
        yield (
            f"  {row['measure']}{where}: {value}, {row['n']} of "
            f"{count_of(row['runs'], 'run', 'runs')}{marks}{why}"
        )
