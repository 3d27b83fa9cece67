"""What the trajectories of each group add up to, metric by metric.

`metrics` estimates and `compare` contrasts the same rows with the same bounds and clusters, so that they
can't say different things of one group. A group's value is the mean of its trajectories' values weighted by
their weights (weight 1: the mean; a ratio with its denominator as weight: the pooled ratio). Runs of one
instance of a task are one cluster, unless the groups are instances themselves; otherwise each trajectory is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...annotation.statistics.estimate import ANY, UNIT, Bounds, Totals
from ...schemas.metric import BOUNDS
from ..store import AMONG, execute, first_row, rows_with_arrays, texts
from ..systems import OF_ONE

RATES = {measure: rate for rate, measure in OF_ONE.items()}
"""The 0/1 of a trajectory -> the rate over many."""
COLLAB_SCORE = "collab_score"
UNSCORED = "no delivered result was rated"
OUTCOME = "outcome:"
"""What stands before the name of an outcome that is no metric."""
STATED = (
    *("delivered", "success", "task_performance", "collab_score"),
    *("outcome_rating", "satisfaction", "communication_rating", "won"),
)
"""Outcomes that are metrics of their own."""
COUNTED = ("events", "messages", "actions", "errors", "message_share")
"""Measured for each participant of any team."""
SILENT = "nobody took the initiative"
"""Of such sessions Eq. 2 says nothing: `released` counts them as 0, `paper` leaves them out."""
HEADS = ("metric", "participant", "rater", "scoring", "definition")
CLUSTER = """CASE WHEN t.instance IS NOT NULL THEN hash('i', t.system, t.task, t.instance)
    ELSE hash('t', t.id) END"""
"""The cluster of a trajectory `t`."""


@dataclass(frozen=True, eq=False)
class Group:
    """One metric of one group: its heads (HEADS), the values of its keys, what its trajectories add up to.

    `missing` trajectories had no value, most often for this `reason`; in `silent` ones nobody took the
    initiative, whether that counts as 0 or as missing.
    """

    head: tuple[str | None, ...]
    keys: tuple[str | None, ...]
    totals: Totals
    missing: int
    reason: str | None = None
    silent: int = 0


def bounds_of(metric: str) -> Bounds:
    """Values that a metric can take."""
    return BOUNDS.get(metric, ANY)


def cluster_of(connection: Any, by: Sequence[str], key: str | None = None) -> str | None:
    """The cluster of a trajectory `t` (SQL) where any two of those `selected` share one, else None.

    Clusters are the runs of an instance, unless instances are the groups, or what has the same `key` (SQL).
    """
    if key is None and "instance" in by:
        return None
    cluster = CLUSTER
    if key is not None:
        cluster = f"CASE WHEN ({key}) IS NULL THEN hash('t', t.id) ELSE hash('c', t.system, {key}) END"
    row = first_row(connection, f"SELECT count(*) > count(DISTINCT {cluster}) FROM selected t")
    return cluster if row and row[0] else None


def groups(
    connection: Any,
    keys: Sequence[str],
    *,
    table: str = "chosen",
    participant: str = "m.participant",
    cluster: str | None = CLUSTER,
    only: Sequence[str] | None = None,
    bounds: Callable[[str], Bounds] = bounds_of,
) -> Iterator[Group]:
    """Every metric of every group, from the measures in `table` of the trajectories in `selected`.

    `keys` are SQL expressions over `trajectories t`; `participant` tells apart those of a trajectory
    (expression over the measure m and its participant p); `cluster` (SQL) is that of a trajectory, None
    for its own. `bounds` are those of a metric's values.
    """
    names = "".join(f", {expression} AS key_{i}" for i, expression in enumerate(keys))
    shares, unscored = _shares(connection, table), _unscored(connection, table, names)
    cluster = cluster or "hash('t', t.id)"
    heads = f"m.metric, {participant} AS participant, m.rater, m.scoring, m.definition{names}"
    party = "LEFT JOIN participants p ON p.trajectory_id = m.trajectory_id AND p.name = m.participant"
    measures = f"""
        {table} m JOIN selected t ON t.id = m.trajectory_id {party if "p." in participant else ""}
        WHERE {"true" if only is None else f"m.metric {AMONG}"}
    """
    parameters = [] if only is None else [texts(only)]
    reasons = _reasons(connection, heads, measures, parameters)
    query = f"""
        WITH per_cluster AS (
            SELECT {heads}, {cluster} AS cluster, fsum(m.value * m.weight) AS y,
                fsum(m.weight) FILTER (m.value IS NOT NULL) AS x, count(m.value) AS n,
                count(*) - count(m.value) AS missing,
                count(*) FILTER (m.reason = '{SILENT}') AS silent,
                bool_and(m.value IN (0, 1) AND m.weight = 1) FILTER (m.value IS NOT NULL) AS yes_no
            FROM {measures} GROUP BY ALL
        )
        SELECT * EXCLUDE (cluster, y, x, n, missing, silent, yes_no), sum(n)::BIGINT AS n,
            sum(silent)::BIGINT AS silent, sum(missing)::BIGINT AS missing, bool_and(yes_no) AS yes_no,
            coalesce(list(y ORDER BY cluster) FILTER (x > 0), []) AS y,
            coalesce(list(x ORDER BY cluster) FILTER (x > 0), []) AS x,
            coalesce(list(cluster ORDER BY cluster) FILTER (x > 0), []) AS cluster
        FROM per_cluster GROUP BY ALL ORDER BY ALL
    """
    for row in rows_with_arrays(connection, query, parameters):
        place = tuple(row[f"key_{i}"] for i in range(len(keys)))
        head = tuple(row[name] for name in HEADS)
        reason = reasons.get((*head, *place))
        if row["metric"] == COLLAB_SCORE and (row["scoring"], *place) in unscored:
            row |= {"y": [], "x": [], "cluster": [], "n": 0, "missing": row["missing"] + row["n"]}
            reason = reason or UNSCORED
        yield Group(
            head,
            place,
            _totals(row, UNIT if row["metric"] in shares else bounds(row["metric"])),
            row["missing"],
            reason,
            row["silent"],
        )


def _reasons(
    connection: Any, heads: str, measures: str, parameters: list[str]
) -> dict[tuple[str | None, ...], str]:
    """Heads and keys -> why most of the trajectories without a value have none; of several the first."""
    query = f"""
        SELECT {heads}, m.reason, count(*) AS n FROM {measures} AND m.value IS NULL AND m.reason IS NOT NULL
        GROUP BY ALL ORDER BY n, m.reason DESC
    """
    return {tuple(place): reason for *place, reason, _ in execute(connection, query, parameters).fetchall()}


Sizes = Mapping[tuple[str | None, ...], int]
"""System and group -> how many sessions."""
Named = Callable[[str, tuple[str | None, ...]], int]
"""(Name, group) -> how many sessions the group has of the systems in which that name occurs."""


def sizes_of(connection: Any, keys: Sequence[str]) -> Sizes:
    """How many sessions there are of each system in each group."""
    query = f"SELECT {', '.join(['t.system', *keys])}, count(*) FROM selected t GROUP BY ALL"
    return {tuple(place): count for *place, count in connection.execute(query).fetchall()}


def named_in(connection: Any, sizes: Sizes) -> Named:
    """For participants: a log that lists nobody names those who act, so that whoever did nothing in a session
    is missing from it."""
    return _sessions(
        connection,
        sizes,
        "SELECT DISTINCT p.name, t.system FROM participants p JOIN selected t ON t.id = p.trajectory_id "
        "WHERE p.kind <> 'environment'",
    )


def stated_in(connection: Any, sizes: Sizes) -> Named:
    """For outcomes, METRIC/SCORING: a log does not mention one that it lacks, so that there is no measure of
    it."""
    names = ", ".join(f"'{name}'" for name in STATED)
    return _sessions(
        connection,
        sizes,
        "SELECT DISTINCT m.metric || '/' || coalesce(m.scoring, ''), t.system "
        "FROM chosen m JOIN selected t ON t.id = m.trajectory_id "
        f"WHERE m.metric IN ({names}) OR starts_with(m.metric, '{OUTCOME}')",
    )


def _sessions(connection: Any, sizes: Sizes, pairs: str) -> Named:
    """The count for the names that a query pairs with systems; 0 for any other."""
    systems: defaultdict[str, set[str]] = defaultdict(set)
    for name, system in connection.execute(pairs).fetchall():
        systems[name].add(system)
    return lambda name, group: sum(sizes.get((system, *group), 0) for system in systems[name])


def _shares(connection: Any, table: str) -> set[str]:
    """The outcomes under other names whose values are all 0 or 1: their mean is a share."""
    query = f"""
        SELECT m.metric FROM {table} m JOIN selected t ON t.id = m.trajectory_id
        WHERE starts_with(m.metric, '{OUTCOME}') GROUP BY m.metric HAVING bool_and(m.value IN (0, 1))
    """
    return {row[0] for row in connection.execute(query).fetchall()}


def _unscored(connection: Any, table: str, names: str) -> set[tuple[str | None, ...]]:
    """Scoring and keys of groups that delivered results of which none has a score: real users' have no
    automatic one, others' no row of it. What is left, the sessions that delivered nothing, would make the
    mean 0."""
    query = f"""
        WITH scores AS (FROM {table} WHERE metric = '{COLLAB_SCORE}')
        SELECT s.scoring{names} FROM (SELECT DISTINCT scoring FROM scores) s CROSS JOIN {table} d
        JOIN selected t ON t.id = d.trajectory_id
        LEFT JOIN scores m ON m.trajectory_id = t.id AND m.scoring IS NOT DISTINCT FROM s.scoring
        WHERE d.metric = 'delivered' AND d.value = 1 GROUP BY ALL HAVING count(m.value) = 0
    """
    return set(connection.execute(query).fetchall())


def _totals(row: dict[str, Any], bounds: Bounds) -> Totals:
    names = np.array(row["cluster"], dtype=np.uint64)
    return Totals(
        numerator=np.array(row["y"], dtype=np.float64),
        denominator=np.array(row["x"], dtype=np.float64),
        n=row["n"],
        names=names,
        strata=np.zeros(len(names), dtype=np.int64),
        fraction=np.zeros(len(names)),
        size=float(row["n"]),
        yes_no=bool(row["yes_no"]) and bounds == UNIT,
        bounds=bounds,
    )
