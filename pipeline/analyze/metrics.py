"""Metrics: measures of trajectories, over all of them or by group, with 95 % intervals.

A group's value is the mean of its trajectories' values weighted by their weights (weight 1: the mean;
a ratio with its denominator as weight: the pooled ratio). Intervals: Wilson for rates of 0/1, otherwise
Student's t on the linearised variance of a ratio, trajectories being independent; none below n = 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from ...annotation.statistics.intervals import student, wilson
from ...schemas import Metric
from ..errors import UsageError
from ..store import Selection, Store, dictionaries, execute, insert, rows
from ..store.trajectories import reference_rows
from ..systems import LIMIT, TimeLimit
from ..systems.registry import measures, parsed_references
from .matrix import keys_of

RATES = {"delivered": "delivery_rate", "success": "success_rate", "won": "win_rate"}
"""The 0/1 of a trajectory -> the rate over many."""
RATED = {
    "initiative_entropy": "initiative",
    "effective_confirmations": "confirmation",
    "halting_messages": "halting",
}
"""Metrics that rest on ratings -> their codebook."""
BOUNDS = {
    **dict.fromkeys(("task_performance", "collab_score", "initiative_entropy"), (0.0, 1.0)),
    **dict.fromkeys(("outcome_rating", "satisfaction", "communication_rating"), (1.0, 5.0)),
    **dict.fromkeys(("events", "messages", "actions", "errors"), (0.0, math.inf)),
    **dict.fromkeys(("effective_confirmations", "halting_messages", "interventions"), (0.0, math.inf)),
    **dict.fromkeys(("steps", "timesteps", "invalid_actions", "extra_blocks"), (0.0, math.inf)),
    **dict.fromkeys(("human_intervention_rate", "error_rate", "repeated_action_rate"), (0.0, 1.0)),
    **dict.fromkeys(("message_share", "task_reward", "exact_match", "progress"), (0.0, 1.0)),
    **dict.fromkeys(("tes", "progress_completeness", "initiating_capability"), (0.0, 1.0)),
    **dict.fromkeys(
        ("responding_capability", "partial_structure", "collaboration", "initiation_errors"), (0.0, 1.0)
    ),
    "workload_balance": (0.0, 0.5),
    "time_to_first_human_message": (0.0, math.inf),
}
"""Values that a metric can take; an interval never leaves them."""
_FIELDS = ("participant", "rater", "scoring", "definition")
SILENT = "nobody took the initiative"
"""Of such sessions Eq. 2 says nothing: `released` counts them as 0, `paper` leaves them out."""


def checked_per(per: str | None) -> bool:
    """Whether rows are wanted per trajectory; UsageError for anything but `trajectory`."""
    if per not in (None, "trajectory"):
        raise UsageError(f"--per must be trajectory, got {per!r}")
    return per == "trajectory"


def checked_definition(definition: str) -> Literal["released", "paper"]:
    """`released` or `paper`, else UsageError."""
    if definition == "released" or definition == "paper":
        return definition  # type: ignore[return-value]
    raise UsageError(f"--definition must be released or paper, got {definition!r}")


def checked_steps(given: Mapping[str, str]) -> dict[str, int]:
    """Order -> optimal steps; UsageError where they are no whole number."""
    for order, steps in given.items():
        if not steps.isdecimal():
            raise UsageError(f"--optimal must be order=steps, got {order}={steps}")
    return {order: int(steps) for order, steps in given.items()}


def metrics(
    store: Store,
    *,
    by: Sequence[str] = (),
    per_trajectory: bool = False,
    rater: str | None = None,
    definition: str = "released",
    penalty: float = 0.08,
    limit: TimeLimit = LIMIT,
    only: Selection | None = None,
) -> list[Metric]:
    """Every metric that the store's trajectories (`only` some of them) have, in a stable order.

    `penalty` is ReHAC's λ; `limit` is Collab-Overcooked's.
    """
    with store.reading() as connection:
        keys = keys_of(connection, by)
        raters = _raters(connection, rater)
        wanted, values = (only or Selection()).where()
        selected = f"CREATE TEMP TABLE selected AS SELECT t.* FROM trajectories t WHERE {wanted}"
        execute(connection, selected, values)
        anew = limit != LIMIT
        kind = "TABLE" if anew else "VIEW"  # a view spares copying millions of rows
        connection.execute(f"CREATE TEMP {kind} chosen AS {_chosen(raters, definition, penalty)}")
        if anew:
            _limit_anew(store, connection, definition, limit)
        if per_trajectory:
            return _per_trajectory(connection)
        found = dictionaries(connection, _aggregate(keys))
        found += _unrated(connection, keys, raters)
    return sorted((_metric(row, [name for name, _ in keys]) for row in found), key=_order)


def _raters(connection: Any, wanted: str | None) -> dict[str, list[str]]:
    """Metric -> the raters to report: the one wanted, gold alone where it is complete, else every one."""
    found: dict[str, list[str]] = {metric: [] for metric in RATED}
    query = """
        SELECT DISTINCT codebook, rater FROM counted_ratings
        WHERE unit_kind IN ('utterance', 'question_reply', 'human_message') ORDER BY ALL
    """
    metric_of = {codebook: metric for metric, codebook in RATED.items()}
    everyone = set()
    for codebook, rater in connection.execute(query).fetchall():
        everyone.add(rater)
        if metric := metric_of.get(codebook):
            found[metric].append(rater)
    # Only gold must be complete; to count everybody's units takes seconds on a large store.
    complete = _complete(connection) if "gold" in everyone else set()
    if wanted is not None:
        if wanted not in everyone:
            choices = ", ".join(sorted(everyone)) or "none yet: run `coaudit judge`"
            raise UsageError(f"no ratings by rater {wanted!r}, expected one of {choices}")
        return {metric: [r for r in raters if r == wanted] for metric, raters in found.items()}
    return {
        metric: ["gold"] if "gold" in raters and RATED[metric] in complete else raters
        for metric, raters in found.items()
    }


def _complete(connection: Any) -> set[str]:
    """The codebooks of which gold has answered every unit."""
    query = """
        SELECT codebook FROM process_coverage WHERE rater = 'gold'
        GROUP BY codebook HAVING bool_and(answered = units)
    """
    return {row[0] for row in connection.execute(query).fetchall()}


def _chosen(raters: dict[str, list[str]], definition: str, penalty: float) -> str:
    """The measures to report, with ReHAC's reward T - λC at the wanted λ among them."""
    pairs = [(metric, rater) for metric, names in raters.items() for rater in names]
    wanted = ", ".join(f"({_quoted(metric)}, {_quoted(rater)})" for metric, rater in pairs) or "('', '')"
    return f"""
        SELECT m.* FROM measures m
        WHERE (m.rater IS NULL OR (m.metric, m.rater) IN (VALUES {wanted}))
            AND (m.definition IS NULL OR m.definition = {_quoted(definition)})
        UNION ALL
        SELECT 'reward', trajectory_id, t.value - {float(penalty)!r} * c.value, 1, t.reason,
            NULL, NULL, NULL, NULL
        FROM computed t JOIN computed c USING (trajectory_id)
        WHERE t.metric = 'task_reward' AND c.metric = 'interventions'
    """


def _limit_anew(store: Store, connection: Any, definition: str, limit: TimeLimit) -> None:
    """Measure Collab-Overcooked's runs again under another time limit."""
    found = connection.execute("SELECT id FROM selected WHERE system = 'overcooked'").fetchall()
    runs = store.load(connection, [row[0] for row in found], states=True)
    references = parsed_references(reference_rows(connection))
    own = [row for run in runs for row in measures(run, references, limit)]
    again = sorted({row.metric for row in own})
    query = "DELETE FROM chosen WHERE trajectory_id IN (SELECT unnest(?)) AND metric IN (SELECT unnest(?))"
    execute(connection, query, [[run.id for run in runs], again])
    insert(connection, "chosen", [rows.measure(r) for r in own if r.definition in (None, definition)])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _per_trajectory(connection: Any) -> list[Metric]:
    query = """
        SELECT m.metric, m.trajectory_id AS trajectory, t.native_id, m.participant, m.rater, m.scoring,
            m.definition, m.value, m.reason, CASE WHEN m.value IS NOT NULL THEN m.reason END AS note
        FROM chosen m JOIN selected t ON t.id = m.trajectory_id
        ORDER BY t.started, t.native_id, t.id, m.metric, m.participant, m.rater, m.scoring
    """
    return [_single(row) for row in dictionaries(connection, query)]


def _single(row: dict[str, Any]) -> Metric:
    given = {k: value for k, value in row.items() if k not in (*_FIELDS, "note") or value is not None}
    if row["value"] is not None:
        given.pop("reason")
    defined = row["value"] is not None
    return Metric(**{**given, "n": int(defined), "missing": int(not defined), "low": None, "high": None})


def _aggregate(keys: list[tuple[str, str]]) -> str:
    names = "".join(f", {expression} AS key_{i}" for i, (_, expression) in enumerate(keys))
    # spread is the sum of weight^2 * (value - mean)^2, written out so that one pass will do.
    return f"""
        WITH sums AS (
            SELECT metric, participant, rater, scoring, definition{names},
                fsum(value * weight) / nullif(fsum(weight) FILTER (value IS NOT NULL), 0) AS value,
                count(value) AS n, count(*) - count(value) AS missing,
                fsum(weight) FILTER (value IS NOT NULL) AS total, mode(reason) AS reason,
                count(*) FILTER (reason = {_quoted(SILENT)}) AS silent,
                fsum(weight * weight * value * value) AS squares, fsum(weight * weight * value) AS products,
                fsum(weight * weight) FILTER (value IS NOT NULL) AS weights
            FROM chosen m JOIN selected t ON t.id = m.trajectory_id
            GROUP BY ALL
        )
        SELECT *, greatest(0, squares - 2 * value * products + value ** 2 * weights) AS spread FROM sums
    """


def _unrated(
    connection: Any, keys: list[tuple[str, str]], raters: dict[str, list[str]]
) -> list[dict[str, Any]]:
    """A null row, with what to run, for each metric that needs ratings and has none."""
    names = ", ".join(f"{expression} AS key_{i}" for i, (_, expression) in enumerate(keys))
    query = f"""
        SELECT {names + "," if names else ""} count(*) AS missing FROM selected t
        WHERE EXISTS (SELECT 1 FROM units u WHERE u.trajectory_id = t.id AND u.kind = 'utterance')
        GROUP BY ALL
    """
    groups = dictionaries(connection, query)
    return [
        {
            **group,
            **dict.fromkeys(_FIELDS),
            "metric": metric,
            "value": None,
            "n": 0,
            "reason": f"no ratings: run `coaudit judge --codebook {RATED[metric]}`",
        }
        for metric, names_ in raters.items()
        if not names_
        for group in groups
        if group["missing"]
    ]


def _metric(row: dict[str, Any], keys: list[str]) -> Metric:
    metric = row["metric"]
    low, high = _interval(row) if row["n"] else (None, None)
    given = {name: row[name] for name in _FIELDS if row[name] is not None}
    if row["value"] is None:
        given["reason"] = row["reason"] or "no trajectory has a value"
    elif row["silent"]:
        treated = "counted as 0" if row["definition"] == "released" else "left out"
        given["note"] = f"{SILENT} in {row['silent']} of {row['n'] + row['missing']}: {treated}"
    return Metric(
        metric=RATES.get(metric, metric),
        group={name: row[f"key_{i}"] for i, name in enumerate(keys)},
        value=row["value"],
        n=row["n"],
        missing=row["missing"],
        low=low,
        high=high,
        **given,
    )


def _interval(row: dict[str, Any]) -> tuple[float | None, float | None]:
    n, value = row["n"], row["value"]
    if value is None:
        return None, None
    if row["metric"] in RATES:
        low, high, *_ = wilson(value * n, n)
        return low, high
    if n < 2:
        return None, None
    error = math.sqrt(row["spread"] / row["total"] ** 2 * n / (n - 1))
    reach = student(n - 1) * error
    lowest, highest = BOUNDS.get(row["metric"], (-math.inf, math.inf))
    return max(lowest, value - reach), min(highest, value + reach)


def _order(metric: Metric) -> tuple[Any, ...]:
    group = tuple(str(value) for value in (metric.group or {}).values())
    return (group, metric.metric, metric.scoring or "", metric.rater or "", metric.participant or "")


def cells(metric: Metric, number: Callable[[float | None], str]) -> list[str]:
    """A metric as the cells of a table: metric, of, rater, value, interval, n, missing, remark."""
    group = " · ".join(str(v) for v in (metric.group or {}).values())
    parts = (metric.native_id or group, metric.participant, metric.scoring, metric.definition)
    of = " · ".join(part for part in parts if part)
    interval = "" if metric.low is None else f"{number(metric.low)} – {number(metric.high)}"
    counts = [str(metric.n), str(metric.missing)]
    return [
        metric.metric,
        of,
        metric.rater or "",
        number(metric.value),
        interval,
        *counts,
        metric.reason or metric.note or "",
    ]
