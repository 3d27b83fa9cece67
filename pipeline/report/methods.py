"""What a reader needs to repeat a report: what was audited, who judged with what, what was left out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...annotation.statistics.crowds import CROWD
from ...annotation.statistics.estimate import LEAST, LEAST_SHARE, WIDEST
from ...schemas import GOLD, UNCLEAR, Rate
from ...schemas.text import count_of
from ..analyze.validate import BIAS, SHOWN
from ..ingest.forgetting import Exclusions, read_exclusions
from ..store import Selection, Store, day_of, dictionaries, execute
from ..store.queries.copies import PARAMETERS_LEFT_OUT
from . import progress
from .tables import Number, Table, count
from .trust import AGREEMENT_METHOD, RATES_METHOD


def facts(store: Store, only: Selection | None = None) -> tuple[tuple[str, str], ...]:
    """(Label, value) of what the workspace holds: trajectories, events, counted ratings, dates, sources.

    For a selection only what its trajectories have: sources and quarantined lines are of the whole workspace.
    """
    where, values = (only or Selection()).where()
    first, last = day_of("coalesce(started, ended)"), day_of("coalesce(ended, started)")
    query = f"""
        SELECT count(*) AS trajectories, coalesce(sum(n_events), 0)::BIGINT AS events,
            min({first}) AS first, max({last}) AS last, count({first}) AS dated
        FROM trajectories t WHERE {where}
    """
    rating_query = f"""
        SELECT count(*) FROM counted_ratings c JOIN trajectories t ON t.id = c.trajectory_id WHERE {where}
    """
    with store.reading() as connection:
        rows = dictionaries(connection, query, values)[0]
        ratings = execute(connection, rating_query, values).fetchall()[0][0]
        sources = connection.execute("SELECT count(*), max(ingested) FROM sources").fetchall()[0]
        bad = connection.execute("SELECT count(*) FROM quarantine").fetchall()[0][0]
    pairs = (
        ("Trajectories", f"{rows['trajectories']:,}"),
        ("Events", f"{rows['events']:,}"),
        ("Ratings", f"{ratings:,}"),
        ("First session", rows["first"] or "–"),
        ("Last session", rows["last"] or "–"),
        *(
            (("Sessions with a date", f"{rows['dated']:,}"),)
            if 0 < rows["dated"] < rows["trajectories"]
            else ()
        ),
    )
    if only:
        return pairs
    return (
        *pairs,
        ("Sources", f"{sources[0]:,}"),
        ("Last ingested", (sources[1] or "–")[:16].replace("T", " ")),
        ("Quarantined lines", f"{bad:,}"),
    )


def facts_of_report(store: Store, only: Selection | None = None) -> tuple[tuple[str, str], ...]:
    """The same, and for a selection what it is: a report shows no filters. Where the tables could not be
    brought up to the ledgers, that: who reads a report has not seen what the command said."""
    is_late = not store.may_write and store.is_behind()
    late = (("Without", "what the ledgers hold beyond the tables, to which nothing could be written"),)
    selected = (("Only", only.words()),) if only else ()
    return (*selected, *facts(store, only), *(late if is_late else ()))


def contents(store: Store, only: Selection | None = None) -> Table:
    """What is in the workspace, by system, setting, condition and task."""
    where, values = (only or Selection()).where()
    query = f"""
        SELECT coalesce(system, '–') AS system, coalesce(setting, '–') AS setting,
            coalesce(condition, '–') AS condition, coalesce(task, '–') AS task,
            count(*) AS trajectories, sum(n_events)::BIGINT AS events
        FROM trajectories t WHERE {where} GROUP BY ALL ORDER BY ALL
    """
    with store.reading() as connection:
        rows = dictionaries(connection, query, values)
    return Table(
        name="contents",
        title="What was audited",
        caption="Trajectories and logged events, without events known only from live traffic.",
        columns=("System", "Setting", "Condition", "Task", "Trajectories", "Events"),
        rows=tuple(
            (*list(row.values())[:4], count(row["trajectories"]), count(row["events"])) for row in rows
        ),
        heads=4,
        empty="The workspace is empty: `coaudit ingest PATH`.",
    )


def raters_table(store: Store) -> Table:
    """Who rated what, with which version, model and prompts."""
    with store.reading() as connection:
        rows = dictionaries(connection, "SELECT * FROM rater_provenance ORDER BY codebook, rater")
    return Table(
        name="raters",
        title="Who judged, with what",
        caption="Versions are content hashes: equal versions mean equal texts. An error is never a “no”.",
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
    present = [value for value in values or [] if value is not None]
    if not present:
        return "–"
    if len(present) <= 2:
        return ", ".join(present)
    return f"{present[0]} and {len(present) - 1:,} more {noun}".strip()


PROMPTS = 200
"""Most rows of the table of prompts: those with the most answers."""


def prompts(store: Store) -> Table:
    """The prompts that judges were asked with, by their hash, with the sampling parameters."""
    query = f"""
        WITH prompts AS (
            SELECT codebook, code, rater, coalesce(model, '–') AS model, prompt_hash,
                coalesce(nullif(parameters, '{{}}'), '–') AS parameters,
                count(label) FILTER (WHERE repeat = 0) AS answers
            FROM held_ratings WHERE prompt_hash IS NOT NULL GROUP BY ALL
        ), shown AS (
            SELECT *, count(*) OVER () AS total FROM prompts ORDER BY answers DESC, COLUMNS(*) LIMIT {PROMPTS}
        )
        FROM shown ORDER BY ALL
    """
    with store.reading() as connection:
        rows = dictionaries(connection, query)
    total = rows[0]["total"] if rows else 0
    more = f" The {PROMPTS} of {total:,} with the most answers; `coaudit ratings export` has each rating's."
    return Table(
        name="prompts",
        title="Prompts",
        caption="Hashes of the prompts that were sent; equal hashes mean equal texts."
        f"{more if total > PROMPTS else ''}",
        columns=("Codebook", "Code", "Judge", "Model", "Prompt", "Parameters", "Answers"),
        rows=tuple((*list(row.values())[:6], count(row["answers"])) for row in rows),
        heads=6,
        appendix=True,
        empty="No prompt was sent from this workspace.",
    )


def paragraphs(
    store: Store,
    raters: Sequence[str],
    corrected: Sequence[Rate] = (),
    only: Selection | None = None,
    *,
    agreement: bool = True,
) -> tuple[str, ...]:
    """The methods section: a paragraph for each thing that the workspace has used.

    `agreement`: whether agreement between any raters is reported.
    """
    with store.reading() as connection:
        left_out = dictionaries(connection, _LEFT_OUT)
        designs = dictionaries(connection, _DESIGNS)
        bad = dictionaries(connection, _NOT_READ)
        judges = dictionaries(connection, _RATERS)
    people = [row for row in judges if row["kind"] == "human"]
    who = ", ".join(sorted(set(raters)))
    basis = f"use ratings by {who}; raters are never mixed within a number" if who else "have no ratings yet"
    return (
        _data(store, only),
        *([ONLY.format(only.words())] if only else []),
        *(_judge(row) for row in judges if row["kind"] != "human"),
        *([_people(people)] if people else []),
        *_pace(progress.pace(store)),
        *(_design(row) for row in designs),
        f"Process metrics {basis}. “Unclear” answers and errors count as unrated.",
        "A group's value is the mean over its trajectories, or the pooled ratio. Intervals are 95 %: Agresti "
        "and Coull's for shares, the same with the effective size for other bounded values, and Student's t "
        "for values without bounds, for counts and times on the log scale. Variances are by the "
        "delete-one-cluster jackknife; runs of one instance are a cluster. An interval needs "
        f"{LEAST} clusters, that of a share without runs of one instance {LEAST_SHARE}; one that leaves "
        f"everything possible, or reaches beyond {WIDEST:g} times a count, is left out. Where units lack "
        "ratings, the rated ones represent them.",
        "Tests are studentised permutation tests, paired by the instances that both groups ran. For values "
        "with a bound, p is at least that of Welch's t on the log or logit scale, and that of Fisher's table "
        "for values at a bound.",
        "Initiative entropy is H = −Σ pᵢ log_N pᵢ over the N members of the team (the environment is not "
        "one); it is 0 if a member takes no initiative, or nobody does.",
        *([AGREEMENT_METHOD] if agreement else []),
        *((RATES_METHOD, *_estimators(corrected)) if people else ()),
        *_excluded(read_exclusions(store.workspace)),
        *(f"Left out: {_of(row['n'], 'rating')}, because {row['reason']}." for row in left_out),
        *_not_read(bad),
    )


ONLY = (
    "All of this is of trajectories with {}; samples and their designs, and the counts of answers, of "
    "ratings left out and of lines not read, are of the whole workspace."
)
DRAWN = {
    "simple": "simple random",
    "stratified": "stratified in proportion",
    "neyman": "stratified by Neyman's allocation",
}
"""Method of a sample, in words."""
_LEFT_OUT = "SELECT reason, count(*) AS n FROM uncounted_ratings GROUP BY reason ORDER BY n DESC"
_NOT_READ = "SELECT reason, count(*) AS n FROM quarantine GROUP BY reason ORDER BY n DESC, reason"
REASONS = 5
"""Reasons for which lines or files could not be read, of which each has a sentence."""
_DESIGNS = """
    SELECT sample, design, seed, codebook, count(*) AS units, count(*) FILTER (overlap > 1) AS shared,
        min(probability) AS low, max(probability) AS high
    FROM samples GROUP BY ALL ORDER BY ALL
"""
_RATERS = f"""
    SELECT rater, any_value(rater_kind) AS kind, list_sort(list_distinct(list(codebook))) AS books,
        list_sort(list_distinct(list(rater_version))) AS versions,
        list_sort(list_distinct(list(model))) AS models,
        list_sort(list_distinct(list(prompt_hash))) AS prompts,
        list_sort(list_distinct(list(nullif(parameters, '{{}}')))) AS parameters,
        list_sort(list_distinct(list(seed)))::VARCHAR[] AS seeds,
        count(label) FILTER (WHERE repeat = 0) AS answers, count(error) FILTER (WHERE repeat = 0) AS errors,
        list_distinct(list({PARAMETERS_LEFT_OUT})) AS left_out,
        max(repeat) AS repeats, count(label) FILTER (WHERE repeat = 0 AND {SHOWN}) AS shown,
        count(label) FILTER (
            WHERE repeat = 0 AND coalesce(NOT list_contains(labels, label), label = '{UNCLEAR}')
        ) AS unclear,
        count(DISTINCT (trajectory_id, event, codebook, code, rater_version)) FILTER (repeat > 0) AS repeated
    FROM held_ratings
    LEFT JOIN (SELECT name AS codebook, version AS codebook_version, code, labels FROM codebooks)
        USING (codebook, codebook_version, code)
    GROUP BY rater ORDER BY kind, rater
"""


def _excluded(outside: Exclusions) -> tuple[str, ...]:
    """What somebody took out after it was read."""
    numbers = (
        (len(outside.trajectories), "trajectory", "trajectories"),
        (len(outside.sources), "source", "sources"),
    )
    parts = [count_of(*number) for number in numbers if number[0]]
    return (f"Left out on request (`coaudit forget`): {' and '.join(parts)}.",) if parts else ()


def _not_read(rows: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """What could not be read, by reason, the commonest in front; how much there is of further reasons."""
    lines = [
        f"Not read: {_of(row['n'], 'line or file', 'lines or files')} ({row['reason'][:160]})."
        for row in rows[:REASONS]
    ]
    if rest := rows[REASONS:]:
        number = _of(sum(row["n"] for row in rest), "line or file", "lines or files")
        lines.append(f"Not read for {_of(len(rest), 'other reason')}: {number} (`coaudit quarantine list`).")
    return tuple(lines)


def _data(store: Store, only: Selection | None) -> str:
    """What was audited, in a sentence."""
    rows = contents(store, only).rows
    systems: dict[str, int] = {}
    for row in rows:
        trajectories = row[4].value if isinstance(row[4], Number) else None
        systems[str(row[0])] = systems.get(str(row[0]), 0) + int(trajectories or 0)
    listing = ", ".join(f"{n:,} of {system}" for system, n in systems.items()) or "none yet"
    by_label = dict(facts(store, only))
    first, last = by_label["First session"], by_label["Last session"]
    dated = by_label.get("Sessions with a date")
    which = "sessions" if dated is None else f"{dated} of the trajectories, whose logs have a date,"
    days = "" if first == last == "–" else f"; {which} took place {_days(first, last)}"
    runs = count_of(by_label["Trajectories"], "trajectory", "trajectories")
    events = count_of(by_label["Events"], "event", "events")
    return f"The audit covers {runs} ({listing}) with {events}{days}."


def _days(first: str, last: str) -> str:
    return f"on {first}" if first == last else f"from {first} to {last}"


def _judge(row: dict[str, Any]) -> str:
    """A judge with its model, its version, its prompts and its settings."""
    kind = {"llm": "a language model", "rule": "rules", "model": "a trained model"}.get(
        row["kind"], row["kind"]
    )
    if any("members" in json.loads(text) for text in row["parameters"] or ()):
        kind = "a jury"
    parts = [
        _listing("model", row["models"]),
        _listing("version", row["versions"]),
        _listing("prompt", row["prompts"]),
        _listing("seed", row["seeds"]),
        f"parameters {'; '.join(row['parameters'][:2])}" if row["parameters"] else "",
        _parameters_left_out(row["left_out"]),
        f"{_of(row['repeated'], 'question')} asked up to {row['repeats'] + 1} times"
        if row["repeats"]
        else "",
    ]
    details = "; ".join(part for part in parts if part)
    unclear = f" ({row['unclear']:,} unclear)" if row["unclear"] else ""
    return (
        f"{row['rater']} ({kind}{f'; {details}' if details else ''}) rated {', '.join(row['books'])}: "
        f"{_of(row['answers'], 'answer')}{unclear} and {_of(row['errors'], 'error')}."
    )


def _people(rows: Sequence[dict[str, Any]]) -> str:
    """Who labelled how much; a crowd is only counted, and gold is not a person."""
    people = [row for row in rows if row["rater"] != GOLD]
    crowd = people if len(people) > CROWD else []
    clauses = [
        f"{row['rater']} gave {row['answers']:,} on {', '.join(row['books'])}"
        for row in rows
        if row not in crowd
    ]
    if crowd:
        answers = [row["answers"] for row in crowd]
        books = ", ".join(sorted({name for row in crowd for name in row["books"]}))
        each = _span(f"{min(answers):,}", f"{max(answers):,}")
        clauses.insert(0, f"{len(crowd):,} people gave {sum(answers):,} on {books}, {each} each")
    n_shown = sum(row["shown"] for row in rows)
    note = f" {n_shown:,} of them began from a judge's label that was shown: {BIAS}." if n_shown else ""
    return f"Labels by people: {'; '.join(clauses)}.{note}"


def _pace(rows: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """How long people took for a unit, where Label Studio measured it; for a crowd the range."""
    by_book: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_book.setdefault(row["codebook"], []).append(row)
    paces = "; ".join(_paces(book, own) for book, own in by_book.items())
    return (f"Labelling time, as measured in the browser: {paces}.",) if paces else ()


def _paces(book: str, rows: Sequence[dict[str, Any]]) -> str:
    if len(rows) > CROWD:
        medians = [row["seconds"] for row in rows]
        each = _span(f"{min(medians):.0f}", f"{max(medians):.0f}")
        units = sum(row["units"] for row in rows)
        return (
            f"{len(rows):,} people took {each} s per unit of {book} (their medians; {units:,} units in all)"
        )
    return "; ".join(
        f"{row['rater']} took {row['seconds']:.0f} s per unit of {book} (median of {row['units']:,})"
        for row in rows
    )


def _of(number: int, singular: str, plural: str | None = None) -> str:
    return count_of(f"{number:,}", singular, plural or f"{singular}s")


def _span(low: str, high: str) -> str:
    return low if low == high else f"from {low} to {high}"


def _parameters_left_out(lists: Sequence[Sequence[str | None]] | None) -> str:
    """The parameters that a judge's endpoint did not take, from lists of them."""
    names = sorted({name for one in lists or () for name in one or () if name})
    return f"asked without {' and '.join(names)}, which its endpoint does not take" if names else ""


def _listing(noun: str, values: Sequence[str] | None) -> str:
    """A noun with up to three values, and how many more there are, which the appendix lists."""
    own = [value for value in values or () if value is not None]
    if not own:
        return ""
    more = f" and {len(own) - 3:,} more" if len(own) > 3 else ""
    return f"{noun}{'s' if len(own) > 1 else ''} {', '.join(own[:3])}{more}"


def _estimators(corrected: Sequence[Rate]) -> tuple[str, ...]:
    """Which estimators stand behind the corrected rates of this report, and on what designs."""
    counts = Counter(
        (row.estimator, (row.design or "").partition(";")[0])
        for row in corrected
        if row.n_human and row.estimator
    )
    if not counts:
        return ()
    clauses = (
        f"{estimator.replace('_', ' ')}{f' ({design})' if design else ''} {n:,}"
        for (estimator, design), n in counts.most_common()
        if estimator
    )
    return (
        "Corrected rates in this report (one for each code or category and judge, and for each of more than "
        "two labels), by estimator: "
        f"{', '.join(clauses)}.",
    )


def _design(row: dict[str, Any]) -> str:
    if row["low"] is None:
        what = f"{_of(row['units'], 'unit')} of {row['codebook']}"
        return f"Settled by people: {what}, chosen because people disagreed, so not used to estimate a rate."
    design = json.loads(row["design"])
    corpus = design.get("corpus", {}).get(row["codebook"])
    number = _of(row["units"], "unit") if corpus is None else f"{row['units']:,} of {_of(corpus, 'unit')}"
    spread = _span(f"{row['low']:.4g}", f"{row['high']:.4g}")
    return (
        f"Sample for people ({row['sample']}): {number} of {row['codebook'] or 'all codebooks'}, "
        f"{_method(design)}, seed {row['seed']}, inclusion probability {spread}; {row['shared']:,} to be "
        "labelled by several people."
    )


def _method(design: dict[str, Any]) -> str:
    """How a sample was drawn, in words."""
    of_judge = f"the labels of {design['judge']}" if design.get("judge") else "a judge's labels"
    strata = ", ".join(of_judge if name == "judge" else name for name in design.get("strata", ()))
    parts = [
        DRAWN.get(design["method"], design["method"]),
        f"by {strata}" if strata else "",
        f"with pilot {design['pilot']}" if design.get("pilot") else "",
        "of whole trajectories" if design["unit"] == "trajectory" else "",
    ]
    values: dict[str, list[str]] = {}
    for name, value in design.get("where", ()):
        values.setdefault(name, []).append(value)
    limits = "".join(f", only {name} = {' or '.join(some)}" for name, some in values.items())
    return " ".join(filter(None, parts)) + limits
