"""Which sessions to look at first: the list of trajectories, found by words and sorted by what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from ..pipeline.report.answers import GOALS
from ..pipeline.store import Selection, Store, dictionaries, execute
from ..pipeline.systems import OF_ONE

Rows = list[dict[str, Any]]
WORDS = 3
"""Characters from which words are looked for in all events."""
ORDERS = {
    "most findings": ("found", "DESC"),
    "worst outcome": ("outcome", "ASC"),
    "judge and people differ": ("differ", "DESC"),
    "most tokens": ("tokens", "DESC"),
    "dearest to judge": ("cost", "DESC"),
    "first begun": ("began", "ASC"),
    "longest": ("events", "DESC"),
}
"""What a list can be sorted by -> what of a trajectory that is, and which comes first. Of what nobody rated,
nothing is known: 0 is said of what was rated."""
_REACHED = [OF_ONE.get(name, name) for name in GOALS]
"""What says whether a trajectory reached its goal: the first of these that it has, as on the overview."""
_OF = {
    "found": """
        SELECT trajectory_id, count(DISTINCT codebook || chr(31) || code) FILTER (label = positive) AS value
        FROM counted_ratings SEMI JOIN (
            SELECT name, code, unnest(labels) AS label FROM codebooks WHERE len(labels) = 2
        ) b ON b.name = codebook AND b.code = counted_ratings.code AND b.label = counted_ratings.label
        WHERE unit_kind = 'trajectory' GROUP BY ALL
    """,
    "outcome": f"""
        SELECT trajectory_id,
            coalesce({", ".join(f"max(value) FILTER (metric = '{name}')" for name in _REACHED)}) AS value
        FROM measures WHERE list_contains({_REACHED}, metric) AND participant IS NULL GROUP BY ALL
    """,
    "differ": """
        SELECT trajectory_id, count(*) FILTER (is_apart) AS value FROM (
            SELECT trajectory_id, NOT list_has_all(list(label) FILTER (rater_kind = 'human'),
                list(label) FILTER (rater_kind <> 'human')) AS is_apart
            FROM counted_ratings WHERE label IS NOT NULL GROUP BY trajectory_id, codebook, code, event
        ) WHERE is_apart IS NOT NULL GROUP BY ALL
    """,
    "tokens": """
        SELECT trajectory_id,
            sum(coalesce(prompt_tokens, 0) + coalesce(completion_tokens, 0))::BIGINT AS value
        FROM participants WHERE prompt_tokens IS NOT NULL OR completion_tokens IS NOT NULL GROUP BY ALL
    """,
    "cost": """
        SELECT trajectory_id, sum(cost_usd) AS value FROM ratings WHERE NOT retracted GROUP BY ALL
    """,
    "began": "SELECT id AS trajectory_id, started AS value FROM trajectories",
    "events": "SELECT id AS trajectory_id, n_events AS value FROM trajectories",
}
SHOWN = ("found", "outcome", "differ", "tokens", "cost")
_METRIC = """
    WITH of_metric AS (
        FROM measures
        WHERE metric = ? AND participant IS NULL AND coalesce(definition, 'released') = 'released'
    ), raters AS (
        SELECT rater FROM of_metric WHERE value IS NOT NULL
        GROUP BY rater ORDER BY rater = ? DESC NULLS LAST, count(*) DESC, rater = 'gold' DESC, rater LIMIT 1
    )
    SELECT trajectory_id, arg_min(value, coalesce(scoring, '')) AS value
    FROM of_metric JOIN raters ON of_metric.rater IS NOT DISTINCT FROM raters.rater
    GROUP BY ALL
"""
"""A measure by one rater, the wanted one if they rated: raters are never mixed."""


_PRESENT = """
    SELECT trajectory_id, codebook, code, rater, rater_kind, cites, rationale FROM findings WHERE present = 1
    UNION ALL
    SELECT trajectory_id, codebook, category, rater, rater_kind, cites, rationale
    FROM findings f SEMI JOIN (FROM category_findings WHERE present = 1) c ON c.code = f.category
        AND (c.trajectory_id, c.codebook, c.rater) = (f.trajectory_id, f.codebook, f.rater)
    WHERE present = 1
"""
"""What is present: modes, and categories in the trajectories that their rates count, which have an answer to
each of their modes."""


PLACE = ("code", "codebook", "found_by", "kind")
"""Parameters of an address that make a `Present`."""


@dataclass(frozen=True)
class Present:
    """A code or category that is present in each trajectory of a list; None: of any codebook, by anybody."""

    code: str
    codebook: str | None = None
    found_by: str | None = None
    kind: str | None = None
    """The kind of rater that found it; `human`: people."""

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Present | None:
        """What an address asks for; None where it names no code."""
        fields = {name: parameters[name] for name in PLACE if name in parameters}
        return cls(**fields) if "code" in fields else None

    def __str__(self) -> str:
        who = self.found_by or ("people" if self.kind == "human" else self.kind)
        return f"{self.code} found{f' by {who}' if who else ''}"


def listed(
    store: Store,
    only: Selection,
    *,
    present: Present | None = None,
    rater: str | None = None,
    words: str = "",
    order: str = "first begun",
    first: int = 0,
    limit: int = 50,
) -> tuple[Rows, int]:
    """Trajectories of a selection (in which a code is present), and how many there are in all.

    `words` are looked for in ids and in what was said and done. `order` is one of ORDERS or a metric (by
    `rater`, if that one rated it), of which the greatest come first; what has no value comes last. Each row
    has the event that is cited or that has the words, where there is one.
    """
    body, parameters = _body(only, present, words)
    value, values, direction = _order(order, rater)
    query = f"""
        SELECT hits.id, hits.cited, hits.rationale, o.value FROM ({body}) hits
        LEFT JOIN ({value}) o ON o.trajectory_id = hits.id
        ORDER BY o.value {direction} NULLS LAST, hits.id LIMIT {int(limit)} OFFSET {int(first)}
    """
    with store.reading() as connection:
        total = execute(connection, f"SELECT count(*) FROM ({body})", parameters).fetchall()[0][0]
        hits = dictionaries(connection, query, [*parameters, *values])
        about = _about(connection, [row["id"] for row in hits])
    metric = {} if order in ORDERS else {"metric": order}
    return [{**about[row["id"]], **row, **metric} for row in hits], total


def metrics(store: Store) -> list[str]:
    """What a list can be sorted by besides: the metrics of whole trajectories that any has a value of."""
    query = "SELECT DISTINCT metric FROM measures WHERE participant IS NULL AND value IS NOT NULL ORDER BY 1"
    with store.reading() as connection:
        return [name for (name,) in connection.execute(query).fetchall()]


def _order(order: str, rater: str | None) -> tuple[str, list[str | None], str]:
    if order in ORDERS:
        name, direction = ORDERS[order]
        return _OF[name], [], direction
    return _METRIC, [order, rater], "DESC"


def _body(only: Selection, present: Present | None, words: str) -> tuple[str, list[Any]]:
    """A query of id, cited event and rationale of all that fit, with its parameters."""
    where, values = only.where()
    join, before = "", list[str | None]()
    event, rationale, terms = "NULL::INTEGER", "NULL", [where]
    if present:
        join = f"JOIN ({_PRESENT}) f ON f.trajectory_id = t.id"
        event, rationale = "min(f.cites[1])", "any_value(f.rationale)"
    if words:
        join += f" LEFT JOIN ({_SAID}) e ON e.trajectory_id = t.id"
        before += [words if len(words) >= WORDS else None] * 2
        terms.append("(starts_with(t.id, ?) OR contains(lower(t.native_id), lower(?)) OR e.seq IS NOT NULL)")
        values = [*values, words, words]
        event = f"coalesce({event}, min(e.seq))"
    if present:
        pairs = zip(("code", "codebook", "rater", "rater_kind"), astuple(present), strict=True)
        for column, value in pairs:
            if value is not None:
                terms.append(f"f.{column} = ?")
                values = [*values, value]
    body = f"SELECT t.id, {event} AS cited, {rationale} AS rationale FROM trajectories t {join}"
    return f"{body} WHERE {' AND '.join(terms)} GROUP BY t.id", [*before, *values]


_SAID = """
    SELECT trajectory_id, min(seq) AS seq FROM events
    WHERE contains(lower(text), lower(?::VARCHAR)) OR contains(lower(arguments), lower(?::VARCHAR))
    GROUP BY ALL
"""


def _about(connection: Any, ids: list[str]) -> dict[str, dict[str, Any]]:
    """What a list tells of each of some trajectories."""
    columns = (
        "t.id, t.native_id, t.system, t.setting, t.condition, t.task, t.instance, t.agent_model, t.started, "
        "t.n_events"
    )
    values = ", ".join(f"{name}.value AS {name}" for name in SHOWN)
    joins = " ".join(
        f"LEFT JOIN (FROM ({_OF[name]}) SEMI JOIN wanted USING (trajectory_id)) {name} "
        f"ON {name}.trajectory_id = t.id"
        for name in SHOWN
    )
    query = f"""
        WITH wanted AS (SELECT unnest(?::VARCHAR[]) AS trajectory_id)
        SELECT {columns}, {values} FROM trajectories t {joins}
        WHERE t.id IN (SELECT trajectory_id FROM wanted)
    """
    return {row["id"]: row for row in dictionaries(connection, query, [ids])}
