"""What a reader needs to repeat a report: what was audited, who judged with what, what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..store import Selection, Store, dictionaries
from .tables import Table, count
from .trust import METHODS

PROCESS = ("initiative", "confirmation", "halting")


def facts(store: Store, only: Selection | None = None) -> tuple[tuple[str, str], ...]:
    """Label and value of what is in the workspace, its span of time and its age."""
    wanted, values = (only or Selection()).where()
    query = f"""
        SELECT count(*) AS trajectories, coalesce(sum(n_events), 0)::BIGINT AS events, min(started) AS first,
            max(ended) AS last
        FROM trajectories t WHERE {wanted}
    """
    with store.reading() as connection:
        rows = dictionaries(connection, query, values)[0]
        ratings = connection.execute(
            "SELECT count(*) FROM ratings WHERE NOT retracted AND repeat = 0"
        ).fetchall()[0][0]
        sources = connection.execute("SELECT count(*), max(ingested) FROM sources").fetchall()[0]
        bad = connection.execute("SELECT count(*) FROM quarantine").fetchall()[0][0]
    return (
        ("Trajectories", f"{rows['trajectories']:,}"),
        ("Events", f"{rows['events']:,}"),
        ("Ratings", f"{ratings:,}"),
        ("Sessions from", _day(rows["first"])),
        ("to", _day(rows["last"])),
        ("Sources", f"{sources[0]:,}"),
        ("Last ingested", (sources[1] or "–")[:16].replace("T", " ")),
        ("Quarantined lines", f"{bad:,}"),
    )


def _day(time: str | None) -> str:
    return (time or "–")[:10]


def contents(store: Store, only: Selection | None = None) -> Table:
    """What is in the workspace, by system, setting, condition and task."""
    wanted, values = (only or Selection()).where()
    query = f"""
        SELECT coalesce(system, '–') AS system, coalesce(setting, '–') AS setting,
            coalesce(condition, '–') AS condition, coalesce(task, '–') AS task,
            count(*) AS trajectories, sum(n_events)::BIGINT AS events
        FROM trajectories t WHERE {wanted} GROUP BY ALL ORDER BY ALL
    """
    with store.reading() as connection:
        rows = dictionaries(connection, query, values)
    return Table(
        name="contents",
        title="What was audited",
        caption="Trajectories and logged events; events known only from live traffic are not counted.",
        columns=("System", "Setting", "Condition", "Task", "Trajectories", "Events"),
        rows=tuple(
            (*list(row.values())[:4], count(row["trajectories"]), count(row["events"])) for row in rows
        ),
        heads=4,
        empty="The workspace is empty: `coaudit ingest PATH`.",
    )


def judged(store: Store) -> Table:
    """Who rated what, with which version, model and prompts."""
    with store.reading() as connection:
        rows = dictionaries(connection, "SELECT * FROM rater_provenance ORDER BY codebook, rater")
    return Table(
        name="raters",
        title="Who judged, with what",
        caption="Versions are content hashes: equal ones mean equal texts. An error is never a “no”.",
        columns=(
            "Codebook",
            "Version",
            "Rater",
            "Kind",
            "Rater's version",
            "Model",
            "Prompts",
            "Answers",
            "Errors",
            "Cost (US$)",
        ),
        rows=tuple(_provenance(row) for row in rows),
        heads=7,
        empty="Nothing is rated yet: `coaudit judge`, or `coaudit ratings import FILE`.",
    )


def _provenance(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        row["codebook"],
        row["codebook_version"] or "–",
        row["rater"],
        row["rater_kind"],
        _several(row["versions"]),
        _several(row["models"]),
        _several(row["prompts"], "prompts"),
        count(row["answers"]),
        count(row["errors"]),
        count(row["cost_usd"]),
    )


def _several(values: list[str], noun: str = "") -> str:
    """The values, or the first one and how many more, for a cell."""
    given = [value for value in values or [] if value is not None]
    if not given:
        return "–"
    if len(given) <= 2:
        return ", ".join(given)
    return f"{given[0]} and {len(given) - 1:,} more {noun}".strip()


def words(store: Store, raters: Sequence[str]) -> tuple[str, ...]:
    """The methods in sentences."""
    query = "SELECT reason, count(*) AS n FROM uncounted_ratings GROUP BY reason ORDER BY n DESC"
    with store.reading() as connection:
        left_out = dictionaries(connection, query)
        designs = dictionaries(
            connection,
            "SELECT design, seed, codebook, count(*) AS units, min(probability) AS low, "
            "max(probability) AS high FROM samples GROUP BY ALL ORDER BY ALL",
        )
        bad = dictionaries(
            connection, "SELECT reason, count(*) AS n FROM quarantine GROUP BY reason ORDER BY n DESC LIMIT 5"
        )
        people = connection.execute(
            "SELECT 1 FROM counted_ratings WHERE rater_kind = 'human' LIMIT 1"
        ).fetchall()
    who = ", ".join(sorted(set(raters))) or "nobody yet"
    return (
        f"Process metrics rest on ratings by {who}; raters are never mixed within a number. `unclear` and "
        "errors count as unrated.",
        "A group's value is the mean over its trajectories, or the pooled ratio. Intervals cover 95 %: "
        "Agresti and Coull's for shares, with the effective size for what else is bounded, Student's t on "
        "the log scale for counts and times, the delete-one-cluster jackknife for the variance; runs of one "
        "instance are a cluster. Where units lack ratings, the rated ones stand for them.",
        "Tests are studentised permutations, paired in the instances that both groups ran.",
        "Initiative entropy is H = −Σ pᵢ log_N pᵢ over the N members of the team, the environment never "
        "being one; it is 0 where a party is silent and undefined where nobody takes the initiative.",
        *(METHODS if people else ()),
        *(_design(row) for row in designs),
        *(f"Left out: {row['n']:,} ratings, because {row['reason']}." for row in left_out),
        *(f"Not read: {row['n']:,} lines or files ({row['reason'][:160]})." for row in bad),
    )


def _design(row: dict[str, Any]) -> str:
    if row["low"] is None:
        what = f"{row['units']:,} units of {row['codebook']}"
        return f"Adjudicated by people: {what}, chosen because people disagreed; they estimate no rate."
    spread = (
        f"{row['low']:.4g}" if row["low"] == row["high"] else f"from {row['low']:.4g} to {row['high']:.4g}"
    )
    return (
        f"Sample for people: {row['units']:,} units of {row['codebook'] or 'all codebooks'}, design "
        f"{row['design']}, seed {row['seed']}, inclusion probability {spread}."
    )
