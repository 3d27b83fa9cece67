"""Metrics: measures of trajectories, over all of them or by group, with 95 % intervals.

Points, intervals and reasons are those of `annotation/statistics/estimate.py`, the clusters and bounds those
of `totals`; where ratings lack for some units, process metrics are estimated by design (`process`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from ...annotation.statistics.estimate import Estimate, estimate
from ...schemas import Metric
from ..errors import UsageError
from ..store import AMONG, Selection, Store, dictionaries, execute, insert, texts
from ..store.queries.aside import rows_aside
from ..store.queries.groupings import keys_of
from ..store.queries.trajectories import reference_rows
from ..store.tables import rows
from ..systems import LIMIT, OF_ONE, TimeLimit
from . import process
from .choice import choose, crowds
from .counts import CODEBOOKS as RATED
from .counts import Process, places
from .designs import Designs
from .matrix import group_name
from .totals import (
    COUNTED,
    HEADS,
    OUTCOME,
    RATES,
    SILENT,
    Group,
    Named,
    cluster_of,
    groups,
    named_in,
    sizes_of,
    stated_in,
)

_FIELDS = HEADS[1:]


class Basis(TypedDict, total=False):
    """What metrics stand on: whose ratings, which definition where a paper and its code differ, ReHAC's λ,
    Collab-Overcooked's time limit, and which trajectories.

    `every`: all raters, also of what gold has rated wholly; else gold stands there alone.
    """

    rater: str | None
    every: bool
    definition: str
    penalty: float
    limit: TimeLimit
    only: Selection | None


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


def checked_steps(optimal: Mapping[str, str]) -> dict[str, int]:
    """Order -> optimal steps; UsageError where they are no whole number from 1 on."""
    for order, steps in optimal.items():
        if not steps.isdecimal() or not int(steps):
            raise UsageError(f"--optimal must be order=steps, of 1 or more, got {order}={steps}")
    return {order: int(steps) for order, steps in optimal.items()}


def metrics(
    store: Store,
    *,
    by: Sequence[str] = (),
    names: Sequence[str] | None = None,
    **basis: Unpack[Basis],
) -> list[Metric]:
    """Every metric (of `names`) that the store's trajectories have, in a stable order."""
    with store.reading() as connection:
        keys = keys_of(connection, by)
        raters = _choose(store, connection, **basis)
        if names is not None:
            raters = {metric: who for metric, who in raters.items() if metric in names}
        of_one = None if names is None else [OF_ONE.get(name, name) for name in names]
        rows = [*_group_rows(connection, keys, of_one), *_missing_ratings(connection, keys, raters)]
    return sorted(rows, key=_order)


def trajectory_metrics(store: Store, **basis: Unpack[Basis]) -> Iterator[Metric]:
    """Every metric of each trajectory, in the order in which they began: as `metrics`, but a row for each of
    them, which nothing holds in memory together."""
    with store.reading() as connection:
        _choose(store, connection, **basis)
        query = """
            SELECT m.metric, m.trajectory_id AS trajectory, t.native_id, m.participant, m.rater, m.scoring,
                m.definition, m.value, m.reason, CASE WHEN m.value IS NOT NULL THEN m.reason END AS note
            FROM chosen m JOIN selected t ON t.id = m.trajectory_id
            ORDER BY t.started, t.native_id, t.id, m.metric, m.participant, m.rater, m.scoring
        """
        designs = Designs(connection)
        ranges = {
            pair: process.ranges(designs, *pair) for pair in sorted(process.incomplete_metrics(connection))
        }
        rows = rows_aside(connection, query)
    return (_with_range(row, ranges.get((row.metric, row.rater or ""), {})) for row in map(_single, rows))


def _choose(
    store: Store,
    connection: Any,
    *,
    rater: str | None = None,
    every: bool = False,
    definition: str = "released",
    penalty: float = 0.08,
    limit: TimeLimit = LIMIT,
    only: Selection | None = None,
) -> dict[str, list[str]]:
    """As `choose`, and Collab-Overcooked's measures under this limit."""
    anew = limit != LIMIT
    raters = choose(
        connection,
        rater=rater,
        every=every,
        definition=definition,
        penalty=penalty,
        only=only,
        copy=anew,
    )
    if anew:
        _limit_anew(store, connection, definition, limit)
    return raters


def _limit_anew(store: Store, connection: Any, definition: str, limit: TimeLimit) -> None:
    """Measure Collab-Overcooked's runs again under another limit; UsageError where no run is of an order."""
    from ..systems.registry import measures, parsed_references  # every system, which no other metric needs

    result = connection.execute("SELECT id FROM selected WHERE system = 'overcooked'").fetchall()
    runs = store.load(connection, [row[0] for row in result], states=True)
    orders = {run.task or "" for run in runs}
    if unknown := sorted(limit.optimal.keys() - orders):
        choices = ", ".join(sorted(orders)) or "none"
        raise UsageError(f"--optimal: no run of order {unknown[0]!r}, expected one of {choices}")
    references = parsed_references(reference_rows(connection))
    own = [row for run in runs for row in measures(run, references, limit)]
    again = sorted({row.metric for row in own})
    query = f"DELETE FROM chosen WHERE trajectory_id {AMONG} AND metric {AMONG}"
    execute(connection, query, [texts(run.id for run in runs), texts(again)])
    insert(connection, "chosen", [rows.measure(r) for r in own if r.definition in (None, definition)])


def _with_range(row: Metric, ranges: Mapping[str, tuple[float, float | None, float | None]]) -> Metric:
    """The row with the range that the unrated units of its trajectory allow."""
    limits = ranges.get(row.trajectory or "")
    if limits is None:
        return row
    share, low, high = limits
    return row.model_copy(update={"answered": share, "bound_low": low, "bound_high": high})


def _single(row: dict[str, Any]) -> Metric:
    fields = {k: value for k, value in row.items() if k not in (*_FIELDS, "note") or value is not None}
    if row["value"] is not None:
        fields.pop("reason")
    defined = row["value"] is not None
    return Metric(**{**fields, "n": int(defined), "missing": int(not defined), "low": None, "high": None})


def _group_rows(
    connection: Any, keys: list[tuple[str, str]], metric_names: Sequence[str] | None
) -> Iterator[Metric]:
    names, expressions = [name for name, _ in keys], [expression for _, expression in keys]
    cluster, lacking = cluster_of(connection, names), process.incomplete_metrics(connection)
    sizes = sizes_of(connection, expressions)
    sessions, outcome_sessions = named_in(connection, sizes), stated_in(connection, sizes)
    raters: set[tuple[str, str, str | None]] = set()
    silent: dict[tuple[Any, ...], int] = {}
    there: dict[tuple[str | None, ...], set[tuple[str | None, ...]]] = {}
    for group in groups(connection, expressions, cluster=cluster, only=metric_names):
        head = dict(zip(HEADS, group.head, strict=True))
        metric, rater = head["metric"] or "", head["rater"] or ""
        if (metric, rater) in lacking:
            raters.add((metric, rater, head["definition"]))
            silent[metric, rater, head["definition"], group.keys] = group.silent
            continue
        result = estimate(group.totals)
        if size := outcome_sessions(_outcome(head), group.keys):
            there.setdefault(group.head, set()).add(group.keys)
        missing = max(group.missing, size - group.totals.n)
        row = _metric(head, dict(zip(names, group.keys, strict=True)), result, missing, group.reason)
        yield row.model_copy(update=_remarks(row, group.silent) or _absences(row, group, sessions))
    yield from _missing_outcomes(names, there, {tuple(keys) for _, *keys in sizes}, outcome_sessions)
    numbered = places(connection, expressions, cluster=cluster) if raters else []
    designs = Designs(connection)
    for metric, rater, definition in sorted(raters, key=str):
        rows = process.estimates(designs, metric, rater, numbered, definition=definition)
        for values, estimated in rows:
            head = {"metric": metric, "rater": rater, "definition": definition}
            row = _process_row(head, dict(zip(names, values, strict=True)), estimated)
            remarks = _remarks(row, silent.get((metric, rater, definition, values), 0))
            yield row.model_copy(update={**remarks, "answered": row.answered})


def _outcome(head: Mapping[str, str | None]) -> str:
    """METRIC/SCORING, as `stated_in` knows outcomes."""
    return f"{head['metric'] or ''}/{head['scoring'] or ''}"


def _missing_outcomes(
    names: Sequence[str],
    there: Mapping[tuple[str | None, ...], set[tuple[str | None, ...]]],
    every: set[tuple[str | None, ...]],
    outcome_sessions: Named,
) -> Iterator[Metric]:
    """A null row of each outcome for each group in which no session has it, though others of its system do.

    `there` are the groups that have one, by HEADS; `every` are all groups.
    """
    nothing = Estimate(None, None, None, 0, 0)
    for values, some in there.items():
        head = dict(zip(HEADS, values, strict=True))
        for keys in every - some:
            if missing := outcome_sessions(_outcome(head), keys):
                group = dict(zip(names, keys, strict=True))
                reason = f"no {(head['metric'] or '').removeprefix(OUTCOME)} was given"
                yield _metric(head, group, nothing, missing, reason)


def _remarks(row: Metric, silent: int) -> dict[str, Any]:
    """Note and share answered of a metric that rests on ratings."""
    if row.metric not in RATED or not row.n:
        return {}
    if not silent:
        return {"answered": 1.0}
    treated = "counted as 0" if row.definition == "released" else "left out"
    note = f"{SILENT} in {silent} of {row.n + row.missing}: {treated}"
    return {"answered": 1.0, "note": "; ".join(text for text in (row.note, note) if text)}


def _absences(
    row: Metric, group: Group, sessions: Callable[[str, tuple[str | None, ...]], int]
) -> dict[str, Any]:
    """Note on a participant whom not every session names."""
    if row.participant is None or row.metric not in COUNTED:
        return {}
    present, total = row.n + row.missing, sessions(row.participant, group.keys)
    note = f"in {present} of {total} sessions: {row.participant} is not named in the others"
    return {} if present >= total else {"note": "; ".join(text for text in (row.note, note) if text)}


def _process_row(head: Mapping[str, str | None], group: dict[str, Any], row: Process) -> Metric:
    """A process metric of a group where some units lack ratings."""
    result = _metric(head, group, row.estimate, row.missing, None)
    more = {name: getattr(row, name) for name in ("answered", "bound_low", "bound_high", "design")}
    return result.model_copy(update=more)


def _missing_ratings(
    connection: Any, keys: list[tuple[str, str]], raters: dict[str, list[str]]
) -> Iterator[Metric]:
    """A null row, with what to run, for each metric that needs ratings and has none."""
    names = ", ".join(f"{expression} AS key_{i}" for i, (_, expression) in enumerate(keys))
    query = f"""
        SELECT {names + "," if names else ""} count(*) AS missing,
            list_distinct(flatten(list(kinds))) AS kinds
        FROM selected t JOIN (
            SELECT trajectory_id, list(DISTINCT kind) FILTER (NOT opening) AS kinds
            FROM units GROUP BY trajectory_id HAVING bool_or(kind = 'utterance')
        ) u ON u.trajectory_id = t.id
        GROUP BY ALL
    """
    rows = [row for row in dictionaries(connection, query) if row["missing"]]
    unit_kinds = dict(connection.execute("SELECT DISTINCT name, unit FROM codebooks").fetchall())
    crowd_sizes = crowds(connection)
    for metric in (metric for metric, names_ in raters.items() if not names_):
        nothing = Estimate(None, None, None, 0, 0)
        for row in rows:
            has_units = unit_kinds.get(RATED[metric]) in row["kinds"]
            todo = f"no ratings: run `coaudit judge --codebook {RATED[metric]}`"
            if n := crowd_sizes.get(RATED[metric]):
                todo = f"{n} people rated a few units each: `--rater NAME` has the metrics of one of them"
            reason = (
                todo if has_units else f"nothing that codebook {RATED[metric]} rates is in these sessions"
            )
            group = {name: row[f"key_{i}"] for i, (name, _) in enumerate(keys)}
            yield _metric({"metric": metric}, group, nothing, row["missing"], reason)


def _metric(
    head: Mapping[str, str | None],
    group: dict[str, Any],
    estimate: Estimate,
    missing: int,
    reason: str | None,
) -> Metric:
    """`reason` is why trajectories have no value; it is shown where none has one."""
    fields: dict[str, Any] = {name: head[name] for name in _FIELDS if head.get(name) is not None}
    why = estimate.reason if estimate.value is not None else reason or estimate.reason
    if why is not None:
        fields["reason"] = why
    if estimate.note is not None:
        fields["note"] = estimate.note
    metric = head["metric"] or ""
    return Metric(
        metric=RATES.get(metric, metric),
        group=group,
        value=estimate.value,
        n=estimate.n,
        missing=missing,
        low=estimate.low,
        high=estimate.high,
        clusters=estimate.clusters,
        **fields,
    )


def _order(metric: Metric) -> tuple[Any, ...]:
    # A group may be called None: what is in no group stands behind it.
    group = tuple((str(value), value is None) for value in (metric.group or {}).values())
    return (group, metric.metric, metric.scoring or "", metric.rater or "", metric.participant or "")


def cells(metric: Metric, number: Callable[[float | None], str]) -> list[str]:
    """A metric as the cells of a table: metric, of, rater, value, interval, n, missing, remark."""
    whose = metric.native_id or group_name(metric.group or {})
    parts = (whose, metric.participant, metric.scoring, metric.definition)
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
        remark(metric, number),
    ]


def remark(metric: Metric, number: Callable[[float | None], str]) -> str:
    """Why something is missing, and how a number that rests on some of the units was made."""
    parts = [words for words in (metric.reason, metric.note) if words]
    if metric.answered is not None and metric.answered < 1:
        parts.append(f"{100 * metric.answered:.0f} % of units rated")
        if metric.bound_low is not None:
            parts.append(
                f"between {number(metric.bound_low)} and {number(metric.bound_high)} whatever the rest is"
            )
        if metric.design and metric.value is not None:
            parts.append(metric.design)
    return "; ".join(parts)


def several_systems(store: Store, by: Sequence[str], only: Selection | None = None) -> dict[str, list[str]]:
    """Group -> the systems that its numbers are of, where these are several.

    Days are of all systems, and so are trajectories that are in no group.
    """
    if not by or "system" in by or "day" in by:
        return {}
    with store.reading() as connection:
        keys = keys_of(connection, by)
        where, values = (only or Selection()).where()
        names = ", ".join(f"({expression})::VARCHAR AS key_{i}" for i, (_, expression) in enumerate(keys))
        in_a_group = " AND ".join(f"key_{i} IS NOT NULL" for i in range(len(keys)))
        query = f"""
            SELECT {names}, list_sort(list(DISTINCT system)) AS systems FROM trajectories t WHERE {where}
            GROUP BY ALL
            HAVING count(DISTINCT system) > 1 AND {in_a_group}
            ORDER BY ALL
        """
        groups_of_several = dictionaries(connection, query, values)
    return {
        group_name({name: row[f"key_{i}"] for i, name in enumerate(by)}): row["systems"]
        for row in groups_of_several
    }
