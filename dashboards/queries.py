"""What the dashboard's panels show, as rows: one query a panel, over the trajectories of a selection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..pipeline.analyze import load
from ..pipeline.analyze.choice import choose
from ..pipeline.analyze.metrics import metrics
from ..pipeline.analyze.totals import bounds_of
from ..pipeline.store import Selection, Store, day_of, dictionaries
from ..pipeline.store.queries.groupings import keys_of
from ..pipeline.store.queries.selection import COLUMNS, name_of
from ..schemas import FIELDS

Rows = list[dict[str, Any]]
PARTS = 10
"""A session's course is shown in so many parts of equal length, counted in events."""
CHOICES = 500
"""So many values of a filter are offered; an address may name any."""
GROUPS = 1000
"""Up to so many groups a page has a row or a column each: of 20,000 one took minutes."""
_TAGS = f"""
    WITH used AS (SELECT DISTINCT tags FROM trajectories WHERE tags <> '{{}}'),
    keys AS (SELECT tags, unnest(json_keys(tags)) AS key FROM used),
    named AS (
        SELECT DISTINCT key,
            json_extract_string(tags, '/' || replace(replace(key, '~', '~0'), '/', '~1')) AS value
        FROM keys WHERE NOT contains(key, '=') AND key NOT IN ({", ".join(f"'{name}'" for name in FIELDS)})
    )
"""
"""Each key of a tag with its values. One that holds `=` can't be named as `key=value`, nor one that has a
field's name, which means the field."""


def choices(store: Store) -> dict[str, list[str]]:
    """The values of each column that a selection can name, and of `tags` (as key=value).

    Of many tags each key has some: one that differs from session to session, such as an id or a time, leaves
    room for the others.
    """
    with store.reading() as connection:
        rows = {
            column: [
                row[0]
                for row in connection.execute(
                    f"SELECT DISTINCT {column} FROM trajectories WHERE {column} IS NOT NULL "
                    f"ORDER BY 1 LIMIT {CHOICES}"
                ).fetchall()
            ]
            for column in COLUMNS
        }
        tags = connection.execute(
            f"{_TAGS} SELECT key, value FROM named "
            f"ORDER BY row_number() OVER (PARTITION BY key ORDER BY value), key LIMIT {CHOICES}"
        ).fetchall()
    return rows | {"tags": [f"{key}={value}" for key, value in sorted(tags)]}


def keys(store: Store) -> list[str]:
    """The keys of tags that trajectories can be grouped by: no ids, times or others of many values."""
    query = f"{_TAGS} SELECT key FROM named GROUP BY key HAVING count(*) <= {GROUPS} ORDER BY key"
    with store.reading() as connection:
        return [key for (key,) in connection.execute(query).fetchall()]


def columns(store: Store, names: Sequence[str]) -> list[str]:
    """Those of these columns that trajectories can be grouped by: at most GROUPS values, as in `keys`."""
    counts = ", ".join(f"count(DISTINCT {name})" for name in names)
    with store.reading() as connection:
        row = connection.execute(f"SELECT {counts} FROM trajectories").fetchall()[0]
    return [name for name, values in zip(names, row, strict=True) if values <= GROUPS]


def arms(store: Store, only: Selection, by: str) -> Rows:
    """The groups of a column or tag, system by system, the largest in front."""
    query = """
        SELECT {system} AS system, ({group})::VARCHAR AS "group", count(*) AS trajectories
        FROM trajectories t WHERE {where} AND ({group}) IS NOT NULL
        GROUP BY ALL ORDER BY trajectories DESC, 1, 2
    """
    where, values = only.where()
    with store.reading() as connection:
        (_, group), *_ = keys_of(connection, [by])
        text = query.replace("{system}", _system(by)).replace("{group}", group).replace("{where}", where)
        return dictionaries(connection, text, values)


def _system(by: str) -> str:
    """SQL: the system within which groups are told apart; systems themselves are in none."""
    return "'–'" if by == "system" else "t.system"


def initiative(store: Store, only: Selection, by: str) -> Rows:
    """Who takes the initiative: utterances that do and all rated ones, by rater, system, group and kind of
    party."""
    query = """
        SELECT CASE WHEN {group} = '–' THEN '–' ELSE {system} END AS system, {group} AS "group", c.rater,
            p.kind AS party,
            count(*) FILTER (c.label = c.positive) AS initiatives,
            count(c.label) AS utterances, count(DISTINCT c.trajectory_id) AS trajectories
        FROM counted_ratings c JOIN trajectories t ON t.id = c.trajectory_id
        JOIN participants p ON p.trajectory_id = c.trajectory_id AND p.name = c.actor
        WHERE c.codebook = 'initiative' AND NOT c.opening AND {where}
        GROUP BY ALL ORDER BY ALL
    """
    return _rows(store, query, only, by=by)


def distribution(
    store: Store, only: Selection, by: str, metric: str, width: float, rater: str | None = None
) -> Rows:
    """How the trajectories of each system's groups spread over a measure, in bins of a width, as `metrics`
    has them.

    A trajectory counts once: by its system's own reading of the measure, else by the first named one. The
    greatest value that the measure can take lies in the last bin.
    """
    query = """
        SELECT coalesce(({group})::VARCHAR, '–') AS "group",
            CASE WHEN "group" = '–' THEN '–' ELSE {system} END AS system, coalesce(m.rater, '–') AS rater,
            round(floor(least(m.value, ? - ? / 2) / ? + 1e-9) * ?, 9) AS low, round(low + ?, 9) AS high,
            count(*) AS trajectories
        FROM (
            FROM chosen WHERE metric = ? AND participant IS NULL
            QUALIFY row_number() OVER (PARTITION BY trajectory_id, rater ORDER BY scoring NULLS FIRST) = 1
        ) m JOIN selected t ON t.id = m.trajectory_id
        WHERE m.value IS NOT NULL
        GROUP BY ALL ORDER BY ALL
    """
    top = min(bounds_of(metric)[1], 1e9)
    with store.reading() as connection:
        choose(connection, only=only, rater=rater)
        query = query.replace("{group}", keys_of(connection, [by])[0][1]).replace("{system}", _system(by))
        return dictionaries(connection, query, [top, *[width] * 4, metric])


def course(store: Store, only: Selection) -> Rows:
    """Who acts when: events in each tenth of a session, by kind of party and of event."""
    query = f"""
        SELECT least({PARTS - 1}, e.seq * {PARTS} // greatest(1, t.n_events)) + 1 AS part, p.kind AS party,
            CASE WHEN e.kind IN ('message', 'note', 'wait') THEN e.kind ELSE 'action' END AS what,
            count(*) AS events
        FROM events e JOIN trajectories t ON t.id = e.trajectory_id
        JOIN participants p ON p.trajectory_id = e.trajectory_id AND p.name = e.actor
        WHERE p.kind <> 'environment' AND NOT e.live_only AND e.kind <> 'start' AND {{where}}
        GROUP BY ALL ORDER BY ALL
    """
    return _rows(store, query, only)


def moments(store: Store, only: Selection) -> Rows:
    """When confirmations and halts happen: how many in each tenth of a session, by rater.

    `trajectories` are those that `metrics` counts them in, and `rated` is the share of their units that have
    an answer. Of none that was found, one part says so.
    """
    query = f"""
        WITH sessions AS (
            SELECT p.codebook, p.rater, p.trajectory_id, sum(p.units) AS units, sum(p.answered) AS answered
            FROM processed p JOIN trajectories t ON t.id = p.trajectory_id
            WHERE p.codebook IN ('confirmation', 'halting') AND p.spoken AND {{where}}
            GROUP BY ALL HAVING bool_or(p.party = 'human')
        ), sizes AS (
            SELECT codebook, rater, count(*) AS trajectories,
                CASE WHEN sum(units) = 0 THEN 1.0 ELSE sum(answered) / sum(units) END AS rated
            FROM sessions GROUP BY ALL
        ), events_by_part AS (
            SELECT c.codebook, c.rater,
                least({PARTS - 1}, c.event * {PARTS} // greatest(1, t.n_events)) + 1 AS part,
                count(*) AS events
            FROM counted_ratings c JOIN trajectories t ON t.id = c.trajectory_id
            SEMI JOIN sessions USING (codebook, rater, trajectory_id)
            WHERE c.label = c.positive AND NOT c.opening
            GROUP BY ALL
        )
        SELECT s.codebook, s.rater, coalesce(f.part, 1) AS part, coalesce(f.events, 0) AS events,
            s.trajectories, s.rated
        FROM sizes s LEFT JOIN events_by_part f USING (codebook, rater)
        WHERE s.rated > 0 ORDER BY ALL
    """
    return _rows(store, query, only)


def over_time(store: Store, only: Selection, rater: str, codebook: str) -> Rows:
    """The share of trajectories with any failure of each category, by the week in which they began; of each
    code that has no category."""
    day = day_of("t.started")
    query = f"""
        SELECT date_trunc('week', ({day})::DATE)::DATE::VARCHAR AS week, f.code AS category,
            sum(f.present)::BIGINT AS present, count(f.present) AS trajectories
        FROM (
            SELECT trajectory_id, codebook, code, rater, present FROM category_findings
            UNION ALL
            SELECT trajectory_id, codebook, code, rater, present FROM findings WHERE category IS NULL
        ) f JOIN trajectories t ON t.id = f.trajectory_id
        WHERE f.rater = ? AND f.codebook = ? AND {day} IS NOT NULL AND {{where}}
        GROUP BY ALL HAVING count(f.present) > 0 ORDER BY ALL
    """
    return _rows(store, query, only, before=[rater, codebook])


def over_days(store: Store, only: Selection, names: Sequence[str]) -> Rows:
    """What `metrics` says by day and condition, and by participant where they are measured apart."""
    rows = metrics(store, by=("day", "condition"), only=only, names=names)
    return [
        {
            "day": row.group["day"],
            "metric": row.metric,
            "condition": name_of(row.group["condition"]),
            "participant": row.participant or "team",
            "value": row.value,
            "low": row.low,
            "high": row.high,
            "trajectories": row.n,
        }
        for row in rows
        if row.group and row.group["day"] is not None and row.value is not None
    ]


def spending(store: Store, only: Selection) -> Rows:
    """What judging took, by rater and day: ratings, errors, tokens, money, seconds."""
    query = """
        SELECT left(r.created, 10) AS day, r.rater, count(r.label) AS answers, count(r.error) AS errors,
            sum(r.prompt_tokens)::BIGINT AS prompt_tokens, sum(r.cached_tokens)::BIGINT AS cached_tokens,
            sum(r.completion_tokens)::BIGINT AS completion_tokens, sum(r.cost_usd) AS cost_usd,
            sum(r.seconds) AS seconds
        FROM ratings r JOIN trajectories t ON t.id = r.trajectory_id
        WHERE NOT r.retracted AND r.rater_kind <> 'human' AND {where}
        GROUP BY ALL ORDER BY ALL
    """
    return _rows(store, query, only)


def unfinished(store: Store, only: Selection) -> Rows:
    """Sessions without an end, the one heard from last in front; `total` is how many there are."""
    query = """
        SELECT t.id, t.native_id, t.system, t.setting, t.condition, t.task, t.agent_model, t.started,
            t.n_events, count(*) OVER () AS total
        FROM trajectories t
        WHERE {where} AND NOT EXISTS (
            SELECT 1 FROM outcomes o
            WHERE o.trajectory_id = t.id AND o.name = 'delivered' AND o.value IS NOT NULL
        ) AND t.system = 'cogym'
        ORDER BY t.ended DESC NULLS LAST LIMIT 50
    """
    return _rows(store, query, only)


def alarms(store: Store, only: Selection) -> Rows:
    """Halting messages that judges found, and what detectors did, in the sessions that began last; the latest
    in front, a row a message with who said so; `total` is how many there are. What people label is no
    detection.
    """
    query = """
        WITH findings AS (
            SELECT r.trajectory_id, r.event, r.code, list(r.rater) AS raters,
                coalesce(min_by(r.rationale, r.rater) FILTER (r.rationale IS NOT NULL), min(r.label)) AS why
            FROM counted_ratings r JOIN trajectories t ON t.id = r.trajectory_id
            WHERE {where} AND r.label = r.positive AND r.rater_kind <> 'human'
                AND (r.codebook = 'halting' OR r.rater = 'detectors')
            GROUP BY ALL
        ),
        messages AS (
            -- What is said of a whole trajectory has a row a code.
            SELECT trajectory_id, event, string_agg(code || ': ' || why, '; ' ORDER BY code) AS rationale,
                array_to_string(list_sort(list_distinct(flatten(list(raters)))), ', ') AS said_by
            FROM findings GROUP BY trajectory_id, event, CASE WHEN event IS NULL THEN code END
        )
        SELECT t.id, t.native_id, t.system, t.setting, t.condition, t.task, t.agent_model,
            t.started, t.n_events, m.rationale, m.said_by, m.event, count(*) OVER () AS total
        FROM messages m JOIN trajectories t ON t.id = m.trajectory_id
        ORDER BY t.started DESC NULLS LAST, t.id, m.event, m.rationale LIMIT 30
    """
    return _rows(store, query, only)


def serving(store: Store, only: Selection) -> Rows:
    """The model server over time: requests running and waiting, KV cache in use. Filters do not apply."""
    with store.reading() as connection:
        return dictionaries(
            connection,
            "SELECT utc::VARCHAR AS utc, what, value FROM "
            "(UNPIVOT serving_total ON running, queue, kv_cache_use INTO NAME what VALUE value) ORDER BY utc",
        )


def under_load(store: Store, only: Selection) -> Rows:
    """What people and agents did while the model server was idle, busy, or had a queue."""
    return load.measures(store)


def tokens(store: Store, only: Selection) -> Rows:
    """Tokens that the teams themselves used, by condition and model."""
    query = """
        SELECT coalesce(t.condition, '–') AS condition, p.kind AS party, coalesce(p.model, '–') AS model,
            sum(p.prompt_tokens)::BIGINT AS prompt_tokens,
            sum(p.completion_tokens)::BIGINT AS completion_tokens,
            count(DISTINCT t.id) AS trajectories
        FROM participants p JOIN trajectories t ON t.id = p.trajectory_id
        WHERE p.prompt_tokens IS NOT NULL AND {where}
        GROUP BY ALL ORDER BY ALL
    """
    return _rows(store, query, only)


def _rows(
    store: Store, query: str, only: Selection, *, before: Sequence[Any] = (), by: str | None = None
) -> Rows:
    """Run a query whose {where} stands after its own parameters; {group} is the column or tag `by`,
    {system} what its groups are in."""
    where, values = only.where()
    with store.reading() as connection:
        group = keys_of(connection, [by])[0][1] if by else "NULL"
        text = query.replace("{group}", f"coalesce(({group})::VARCHAR, '–')").replace("{where}", where)
        text = text.replace("{system}", _system(by or ""))
        return dictionaries(connection, text, [*before, *values * query.count("{where}")])
