"""Which trajectories and which of their measures a figure stands on: the same for metrics and for pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...annotation.statistics.crowds import CROWD
from ...schemas import GOLD
from ..errors import UsageError
from ..store import Selection, constant, execute
from .counts import CODEBOOKS as RATED


def choose(
    connection: Any,
    *,
    rater: str | None = None,
    every: bool = False,
    definition: str = "released",
    penalty: float = 0.08,
    only: Selection | None = None,
    copy: bool = False,
) -> dict[str, list[str]]:
    """Make `selected`, the trajectories, and `chosen`, their measures; metric -> the raters of those.

    `chosen` is a table of its own only where a `copy` is to be changed: a view spares copying millions of
    rows. `every`: all raters, also of what gold has rated wholly. UsageError for a rater who rated nothing.
    """
    raters = _raters(connection, rater, every=every)
    where, values = (only or Selection()).where()
    query = f"CREATE TEMP TABLE selected AS SELECT t.* FROM trajectories t WHERE {where}"
    execute(connection, query, values)
    kind = "TABLE" if copy else "VIEW"
    connection.execute(f"CREATE TEMP {kind} chosen AS {_measures_query(raters, definition, penalty)}")
    return raters


def check_rater(rater: str, everyone: Iterable[str]) -> None:
    """UsageError for a rater who is none of those with ratings."""
    if rater not in (names := sorted(everyone)):
        choices = ", ".join(names) or "none yet: run `coaudit judge`"
        raise UsageError(f"no ratings by rater {rater!r}, expected one of {choices}")


def crowds(connection: Any) -> dict[str, int]:
    """Codebook -> number of people who rated by it, where they are too many to look at one by one."""
    query = """
        SELECT codebook, count(DISTINCT rater) AS people FROM counted_ratings
        WHERE rater_kind = 'human' AND rater <> ? GROUP BY codebook HAVING people > ?
    """
    return dict(execute(connection, query, [GOLD, CROWD]).fetchall())


def only_settled(connection: Any) -> set[str]:
    """The codebooks by which gold has not all units, and each that it has people labelled differently by some
    code: such units are unlike the others, so that they do not stand for them."""
    query = """
        WITH gold AS (
            SELECT DISTINCT codebook, trajectory_id, event FROM counted_ratings WHERE rater = ?
        ), codes AS (
            SELECT codebook, trajectory_id, event, count(DISTINCT label) > 1 AS differ FROM counted_ratings
            WHERE rater_kind = 'human' AND rater <> ? GROUP BY codebook, code, trajectory_id, event
        ), disputes AS (SELECT DISTINCT codebook, trajectory_id, event FROM codes WHERE differ)
        SELECT g.codebook, count(*) FROM gold g LEFT JOIN disputes d
            ON (d.codebook, d.trajectory_id) = (g.codebook, g.trajectory_id)
            AND d.event IS NOT DISTINCT FROM g.event
        GROUP BY g.codebook HAVING count(d.codebook) = count(*)
    """
    return {
        codebook
        for codebook, n_gold in execute(connection, query, [GOLD, GOLD]).fetchall()
        if n_gold < _n_units(connection, codebook)
    }


def _n_units(connection: Any, codebook: str) -> int:
    query = "SELECT count(*) FROM codebook_units WHERE codebook = ? AND NOT opening"
    return int(execute(connection, query, [codebook]).fetchall()[0][0])


def _raters(connection: Any, choice: str | None, *, every: bool) -> dict[str, list[str]]:
    """Metric -> the raters to report: the one of `choice`, gold alone where it is complete (unless `every`
    rater is wanted), else every one, but for the people of a crowd, each of whom rated few units of few
    sessions, and for gold that only settled disputes."""
    by_name: dict[str, list[str]] = {metric: [] for metric in RATED}
    query = """
        SELECT DISTINCT codebook, rater, rater_kind FROM counted_ratings
        WHERE unit_kind IN ('utterance', 'question_reply', 'human_message') ORDER BY ALL
    """
    metric_of = {codebook: metric for metric, codebook in RATED.items()}
    rows = connection.execute(query).fetchall()
    everyone = {rater for _, rater, _ in rows}
    crowd_sizes = crowds(connection)
    disputes = only_settled(connection) if GOLD in everyone and choice is None else set()
    for codebook, rater, kind in rows:
        is_aside = codebook in (disputes if rater == GOLD else crowd_sizes if kind == "human" else ())
        if (metric := metric_of.get(codebook)) and not (is_aside and choice is None):
            by_name[metric].append(rater)
    # Only gold must be complete; to count everybody's units takes seconds on a large store.
    complete = _complete(connection) if GOLD in everyone and not every else set()
    if choice is not None:
        check_rater(choice, everyone)
        return {metric: [r for r in raters if r == choice] for metric, raters in by_name.items()}
    return {
        metric: [GOLD] if GOLD in raters and RATED[metric] in complete else raters
        for metric, raters in by_name.items()
    }


def _complete(connection: Any) -> set[str]:
    """The codebooks of which gold has answered every unit."""
    query = """
        SELECT codebook FROM processed WHERE rater = 'gold'
        GROUP BY codebook HAVING bool_and(answered = units)
    """
    return {row[0] for row in connection.execute(query).fetchall()}


def _measures_query(raters: dict[str, list[str]], definition: str, penalty: float) -> str:
    """The measures to report, with ReHAC's reward T - λC at the wanted λ among them."""
    pairs = [(metric, rater) for metric, names in raters.items() for rater in names]
    values = ", ".join(f"({constant(metric)}, {constant(rater)})" for metric, rater in pairs) or "('', '')"
    return f"""
        SELECT m.* FROM measures m
        WHERE (m.rater IS NULL OR (m.metric, m.rater) IN (VALUES {values}))
            AND (m.definition IS NULL OR m.definition = {constant(definition)})
        UNION ALL {reward_query(penalty)}
    """


def reward_query(penalty: float) -> str:
    """ReHAC's reward T - λC as measures, with λ as their definition."""
    return f"""
        SELECT 'reward', trajectory_id, t.value - {float(penalty)!r} * c.value, 1, t.reason,
            NULL, NULL, NULL, 'λ = {float(penalty):g}'
        FROM computed t JOIN computed c USING (trajectory_id)
        WHERE t.metric = 'task_reward' AND c.metric = 'interventions'
    """
