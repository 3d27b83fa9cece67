"""Differences between groups of trajectories, metric by metric and code by code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

import duckdb
import numpy as np

from ...annotation.statistics import Comparison, comparisons
from ..errors import UsageError
from ..store import Selection, Store, dictionaries
from .matrix import keys_of

CORRECTIONS = ("holm", "benjamini_hochberg")
Group = list[tuple[str, str | None, float]]
"""(trajectory, what it can be paired on, value) of each trajectory that has one."""
Values = dict[str, Group]


def compare(
    store: Store,
    by: str,
    *,
    metrics: Sequence[str] = (),
    rater: str | None = None,
    correction: str = "holm",
) -> list[dict[str, Any]]:
    """Every pair of groups on every metric and code, the p-values corrected over all that were tested.

    Trajectories are paired where both groups ran the same instance of the same task; UsageError for an
    unknown group, metric or correction.
    """
    if correction not in CORRECTIONS:
        raise UsageError(f"--correction must be one of {', '.join(CORRECTIONS)}, got {correction!r}")
    with store.reading() as connection:
        (key,) = keys_of(connection, [by])
        found = list(_values(connection, key[1], rater))
    names = sorted({name for name, _, _ in found})
    if unknown := [name for name in metrics if name not in names]:
        raise UsageError(f"no metric or code {unknown[0]!r}, expected one of {', '.join(names)}")
    wanted = [row for row in found if not metrics or row[0] in metrics]
    rows: list[tuple[dict[str, Any], Comparison]] = []
    for name, who, values in wanted:
        for first, second in combinations(sorted(values), 2):
            head = {"metric": name, "by": by, "groups": [first, second], "rater": who}
            rows.append((head, _compared(values[first], values[second])))
    adjusted = comparisons.adjust([row for _, row in rows], correction)  # type: ignore[arg-type]
    return [_row(head, row, correction) for (head, _), row in zip(rows, adjusted, strict=True)]


def improved(
    store: Store, metric: str, baseline: str, *, only: Selection | None = None
) -> dict[tuple[str, str, str], Comparison]:
    """(Condition, task, agent model) -> its trajectories against those of the `baseline` condition.

    Same task, same model; cogym only; where the model ran the baseline too (Co-Gym, table 2: McNemar for
    yes/no, else paired t over instances).
    """
    wanted, values = (only or Selection()).where()
    query = f"""
        SELECT t.task, t.agent_model, t.condition, t.id, m.value,
            concat_ws('/', t.task, t.instance) AS instance, t.instance IS NOT NULL AS pairable
        FROM measures m JOIN trajectories t ON t.id = m.trajectory_id
        WHERE m.metric = ? AND m.value IS NOT NULL AND t.system = 'cogym'
            AND t.setting IS DISTINCT FROM 'real' AND t.condition IS NOT NULL AND {wanted}
        ORDER BY t.id
    """
    with store.reading() as connection:
        found = dictionaries(connection, query, [metric, *values])
    arms: dict[tuple[str, str], Values] = {}
    for row in found:
        arm = arms.setdefault((row["task"] or "–", row["agent_model"] or "–"), {})
        instance = row["instance"] if row["pairable"] else None
        arm.setdefault(row["condition"], []).append((row["id"], instance, row["value"]))
    return {
        (condition, task, model): _compared(group, arm[baseline])
        for (task, model), arm in arms.items()
        if baseline in arm
        for condition, group in arm.items()
        if condition != baseline
    }


def _row(head: dict[str, Any], row: Comparison, correction: str) -> dict[str, Any]:
    what = head["metric"] + (f" ({head['rater']})" if head["rater"] else "")
    statement = row.statement(what, *head["groups"])
    return {**head, **asdict(row), "correction": correction, "statement": statement}


def _compared(first: Group, second: Group) -> Comparison:
    pairable = all(instance is not None for _, instance, _ in (*first, *second))
    instances = ([str(i) for _, i, _ in first], [str(i) for _, i, _ in second]) if pairable else None
    values = [np.array([value for _, _, value in group]) for group in (first, second)]
    return comparisons.compare(values[0], values[1], instances=instances)


def _values(
    connection: duckdb.DuckDBPyConnection, expression: str, rater: str | None
) -> Iterator[tuple[str, str | None, Values]]:
    """(metric or code, rater, values) of everything that trajectories have a number for."""
    rows = dictionaries(connection, _QUERY.format(group=expression))
    grouped: dict[tuple[str, str | None], Values] = {}
    for row in rows:
        if row["rater"] is not None and rater not in (None, row["rater"]):
            continue
        values = grouped.setdefault((row["name"], row["rater"]), {})
        values.setdefault(str(row["grp"]), []).append((row["id"], row["instance"], row["value"]))
    for (name, who), values in sorted(grouped.items(), key=lambda item: (item[0][0], item[0][1] or "")):
        yield name, who, values


_QUERY = """
    WITH numbers AS (
        SELECT metric || coalesce('/' || scoring, '') || coalesce(' of ' || p.kind, '') AS name,
            m.trajectory_id, rater, avg(value) AS value
        FROM measures m
        LEFT JOIN participants p ON p.trajectory_id = m.trajectory_id AND p.name = m.participant
        WHERE value IS NOT NULL AND coalesce(definition, 'released') = 'released'
        GROUP BY ALL
        UNION ALL
        SELECT code, trajectory_id, rater, avg((label = positive)::INTEGER)
        FROM counted_ratings
        WHERE unit_kind = 'trajectory' AND label IS NOT NULL AND label <> 'unclear'
        GROUP BY ALL
    )
    SELECT n.name, n.rater, t.id, {group} AS grp, n.value,
        CASE WHEN t.instance IS NOT NULL THEN concat_ws('/', t.system, t.task, t.instance) END AS instance
    FROM numbers n JOIN trajectories t ON t.id = n.trajectory_id
    WHERE {group} IS NOT NULL
    ORDER BY t.id
"""
