"""Building the report of a workspace: its tables, figures and answers, and the report as one JSON document.

`build` reads the store once; the formats (HTML, Markdown, LaTeX, text) only draw. Each has every table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import Any

from ...annotation.statistics import Comparison
from ...schemas import GOLD, Metric
from ...schemas.text import shortened
from ..analyze import compare, metrics, rates
from ..analyze import failures as findings
from ..store import Selection, Store
from ..store.ledgers import ledger
from ..store.queries.selection import name_of
from . import answers, methods, modes, trust
from . import figures as drawing
from .document import Report
from .names import metric_name
from .tables import Answer, Number, Table, column_names, of_metric, plain
from .transcript import excerpts

TABLE_2 = {
    "delivery_rate": "Delivery rate",
    "task_performance": "Task perf.",
    "collab_score": "Collab score",
    "initiative_entropy": "H_init",
    "effective_confirmations": "CA+",
    "halting_messages": "CA−",
}
TABLE_3 = {
    "collab_score automatic": "Collab score (automatic rating)",
    "collab_score human": "Collab score (human rating)",
    "win_rate": "Win rate against the autonomous agent",
    "initiative_entropy": "Initiative entropy (H_init)",
    "effective_confirmations": "Effective confirmations (CA+)",
    "halting_messages": "Halting messages (CA−)",
    "satisfaction": "Overall satisfaction (1–5)",
    "delivery_rate": "Delivery rate",
}
MANY = 8
"""With more tasks and conditions than this they are rows, not columns."""
AUTONOMOUS = "autonomous"
"""The condition of Co-Gym's agents that work alone."""
WHOLE = "Of the whole workspace."
AUDIT = ("system", "setting", "condition", "task", "agent_model")


def build(
    store: Store, *, only: Selection | None = None, rater: str | None = None, penalty: float = 0.08
) -> Report:
    """Everything that a report shows, at `penalty` as ReHAC's λ; a table without data says what to run."""
    with store.hold_state():
        audit, raters = collaboration(store, only, rater, penalty)
        table_4, corrected = modes.failures(store, only), rates.rates(store, only=only)
        books = trust.agreements(store, only)
        questions = answers.of_rows(store, [row for _, rows in books for row in rows], corrected, only)
        of_some = partial(_of_some, only=only)
        verdicts = [replace(one, table=one.table and of_some(one.table)) for one in questions]
        tables = (methods.contents(store, only), *audit, table_4, *trust.tables(store, books, corrected))
        tables_of_all = (methods.raters_table(store), methods.prompts(store))
        return Report(
            created=ledger.now(),
            workspace=str(store.workspace.remote or store.workspace.path.resolve().name),
            facts=methods.facts_of_report(store, only),
            tables=(*map(of_some, tables), *(_of_all(table, only) for table in tables_of_all)),
            methods=methods.paragraphs(
                store, raters, corrected, only, agreement=any(rows for _, rows in books)
            ),
            answers=tuple(verdicts),
            figures=drawing.figures(verdicts, of_some(table_4)),
            excerpts=_excerpts(store, questions[1], only),
        )


def _of_some(table: Table, only: Selection | None) -> Table:
    """A table of a selection, which says so wherever it is printed, and where it has no rows does not speak
    of the workspace."""
    if not only:
        return table
    words = shortened(only.words(), 300).replace("`", "'")  # what stands between ticks is a command
    which = f"Only trajectories with {words}."
    return replace(table, caption=f"{table.caption} {which}", empty="Nothing of it is in these trajectories.")


def _of_all(table: Table, only: Selection | None) -> Table:
    """A table of the whole workspace, which says so in the report of a selection."""
    return replace(table, caption=f"{table.caption} {WHOLE}") if only else table


def _excerpts(store: Store, answer: Answer, only: Selection | None) -> tuple[excerpts.Excerpt, ...]:
    """Excerpts of the modes in an answer's table, as found by the rater that its numbers are of."""
    who = findings.raters(store, only=only)
    codes = [str(row[0]) for row in answer.table.rows] if answer.table else []
    return excerpts.excerpts(store, codes, who[0]["rater"], only) if who and codes else ()


def collaboration(
    store: Store, only: Selection | None = None, rater: str | None = None, penalty: float = 0.08
) -> tuple[tuple[Table, Table, Table], list[str]]:
    """Tables 2 and 3 and that of all other systems, and the raters whose ratings they rest on."""
    basis: metrics.Basis = {"only": only, "rater": rater, "every": True, "penalty": penalty}
    rows = one_rater(metrics.metrics(store, by=AUDIT, **basis))
    pooled = one_rater(metrics.metrics(store, by=AUDIT[:-1], **basis))
    better = compare.improvements(store, "task_performance", AUTONOMOUS, only=only)
    raters = [row.rater for row in rows if row.rater]
    return (simulated_table(rows, better), real_table(pooled), other_systems_table(pooled)), raters


def one_rater(rows: Sequence[Metric]) -> list[Metric]:
    """The metrics, those that rest on ratings by one rater alone (`best_rater`): rows that mix raters compare
    nothing.

    A metric that this one has not rated is null and says so.
    """
    rater = best_rater(rows)
    own_rows = [row for row in rows if row.rater in (None, rater)]
    names = {row.metric for row in own_rows if row.rater}
    others = {(row.metric, str(row.group)): row for row in rows if row.rater and row.metric not in names}
    reason = f"not rated by {rater}"
    nothing = {"rater": None, "value": None, "low": None, "high": None, "reason": reason, "note": None}
    return own_rows + [
        row.model_copy(update={**nothing, "n": 0, "missing": row.n + row.missing}) for row in others.values()
    ]


def best_rater(rows: Sequence[Metric]) -> str | None:
    """Whose ratings tables show by default: who rated most metrics; among equals gold, then the largest n,
    of which half counts where half of the units are rated.

    None where nobody rated.
    """
    values: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.rater and row.n:
            counts = values.setdefault(row.rater, {})
            share = 1.0 if row.answered is None else row.answered
            counts[row.metric] = counts.get(row.metric, 0.0) + row.n * share
    first = sorted(values, key=lambda who: (-len(values[who]), who != GOLD, -sum(values[who].values()), who))
    return first[0] if first else next((row.rater for row in rows if row.rater), None)


def simulated_table(rows: Sequence[Metric], better: Mapping[tuple[str, str, str, str], Comparison]) -> Table:
    """Table 2 of the Co-Gym paper: a row for each arm and model, the tasks side by side.

    An arm has a row for each setting where only some of its logs say that the user was simulated.
    `better` has each arm against the autonomous one: (condition, setting, task, agent model) -> comparison.
    """
    own = [row for row in rows if _is_cogym(row, real=False) and row.metric in TABLE_2]
    result = {
        (_group(row, "condition", "agent_model", "setting"), _group(row, "task"), row.metric): of_metric(row)
        for row in own
        if row.scoring in (None, "automatic")
    }
    for (condition, setting, task, model), comparison in better.items():
        key = ((condition, model, setting), (task,), "task_performance")
        if key in result and comparison.better:
            result[key] = replace(result[key], mark="*")
    arms = sorted({key[0] for key in result})
    tasks = sorted({key[1] for key in result})
    rows_of = Counter(arm[:2] for arm in arms)
    return Table(
        name="simulated",
        title="Collaboration with simulated users (Co-Gym, table 2)",
        caption="Task performance is that of delivered results; the collab score is 0 if nothing was "
        "delivered. "
        "* significantly better than the autonomous agent of the same model (p < 0.05, not corrected for the "
        "number of tests; paired by the instances that both ran). H_init, "
        "CA+ and CA− describe the process: neither higher nor lower is better by itself. " + _rated_by(own),
        columns=("Condition", "Model", *(name for _ in tasks for name in TABLE_2.values())),
        rows=tuple(
            (
                f"{condition} · {setting}" if rows_of[condition, model] > 1 else condition,
                model,
                *(
                    result.get(((condition, model, setting), task, metric), "")
                    for task in tasks
                    for metric in TABLE_2
                ),
            )
            for condition, model, setting in arms
        ),
        heads=2,
        groups=tuple((task[0], len(TABLE_2)) for task in tasks),
        empty="No Co-Gym session without a real user: `coaudit ingest PATH`.",
    )


def real_table(rows: Sequence[Metric]) -> Table:
    """Table 3 of the Co-Gym paper: a row a metric, a column a task (and condition, if several).

    Many tasks and conditions are rows instead, and metrics columns.
    """
    own = [row for row in rows if _is_cogym(row, real=True) and _metric_name(row) in TABLE_3]
    by_name = {(_metric_name(row), _group(row, "task", "condition")): of_metric(row) for row in own}
    arms = sorted({arm for _, arm in by_name})
    alone = len({condition for _, condition in arms}) == 1
    title = "Collaboration with real users (Co-Gym, table 3)"
    caption = "The human rating is the user's rating of the outcome (1 to 5), divided by 5. " + _rated_by(own)
    if len(arms) > MANY:
        lines = tuple((*arm, *(by_name.get((name, arm), "") for name in TABLE_3)) for arm in arms)
        return Table("real", title, caption, ("Task", "Condition", *TABLE_3.values()), lines, heads=2)
    return Table(
        name="real",
        title=title,
        caption=caption,
        columns=("Metric", *(task if alone else f"{task} · {condition}" for task, condition in arms)),
        rows=tuple(
            (label, *(by_name.get((name, arm), "") for arm in arms))
            for name, label in TABLE_3.items()
            if arms
        ),
        empty="No Co-Gym session with a real user: `coaudit ingest PATH --setting real`.",
    )


def other_systems_table(rows: Sequence[Metric]) -> Table:
    """The metrics of all other systems: a row each, a column for each condition (with task and setting, where
    there are several)."""
    cells: dict[tuple[str, str, tuple[str, ...]], Number] = {}
    arms: dict[str, set[tuple[str, ...]]] = {}
    for row in rows:
        if row.group and row.group["system"] != "cogym" and row.participant is None:
            (system,), arm = _group(row, "system"), _group(row, "condition", "task", "setting")
            arms.setdefault(system, set()).add(arm)
            cells[metric_name(row.metric, row.scoring), system, arm] = of_metric(row)
    systems = sorted(arms)
    prices = sorted({row.definition for row in rows if row.metric == "reward" and row.definition})
    columns = [(system, arm) for system in systems for arm in sorted(arms[system])]
    return Table(
        name="other_systems",
        title="Other systems",
        caption="Shares, scores and counts as the papers define them (ReHAC, Collab-Overcooked, CoBlock)."
        + "".join(f" {metric_name('reward')} at {price}." for price in prices),
        columns=("Metric", *(_arm(arm, arms[system]) for system, arm in columns)),
        rows=tuple(
            (name, *(cells.get((name, system, arm), "") for system, arm in columns))
            for name in sorted({name for name, _, _ in cells})
        ),
        groups=tuple((system, len(arms[system])) for system in systems),
        empty="No sessions of systems other than Co-Gym: `coaudit ingest PATH`.",
    )


def _arm(arm: tuple[str, ...], arms: set[tuple[str, ...]]) -> str:
    """A condition, with its task and its setting where the system has several."""
    several = (len(set(own)) > 1 for own in list(zip(*arms, strict=True))[1:])
    return " · ".join([arm[0], *compress(arm[1:], several)])


def _is_cogym(row: Metric, *, real: bool) -> bool:
    group = row.group or {}
    return group["system"] == "cogym" and (group["setting"] == "real") == real


def _metric_name(row: Metric) -> str:
    """A metric with its scoring, as TABLE_3 names it."""
    return f"{row.metric} {row.scoring}" if row.scoring else row.metric


def _group(row: Metric, *names: str) -> tuple[str, ...]:
    group = row.group or {}
    return tuple(name_of(group[name]) for name in names)


def _rated_by(rows: Sequence[Metric]) -> str:
    raters = sorted({f"{metric_name(row.metric)} by {row.rater}" for row in rows if row.rater})
    if not raters:
        return "No ratings yet: `coaudit judge`."
    partly = any(row.rater and row.answered is not None and row.answered < 1 for row in rows)
    estimated = " Where not every unit is rated, the rated ones represent the others." if partly else ""
    return f"Ratings: {', '.join(raters)}.{estimated}"


def document(report: Report) -> dict[str, Any]:
    """The report as one JSON document."""
    return {
        "created": report.created,
        "workspace": report.workspace,
        "facts": dict(report.facts),
        "tables": {
            table.name: {
                "title": table.title,
                "caption": table.caption,
                "columns": column_names(table),
                "rows": [dict(zip(column_names(table), map(plain, row), strict=True)) for row in table.rows],
                **({"empty": table.empty} if not table.rows else {}),
            }
            for table in report.tables
        },
        "methods": list(report.methods),
        "answers": {answer.question: list(answer.sentences) for answer in report.answers},
        "excerpts": [
            {
                "code": one.code,
                "trajectory": one.trajectory,
                "events": list(one.cited_events),
                "raters": list(one.raters),
                "quote": one.quote,
                "rationale": one.rationale,
            }
            for one in report.excerpts
        ],
    }
