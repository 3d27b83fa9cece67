"""Co-Gym's tables 2 to 6."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ....annotation.statistics.intervals import wilson
from ....schemas import Agreement
from ... import codebooks
from ...analyze import agreement
from ...analyze.failures import FAILURES, raters
from ...store import Selection, dictionaries
from .cells import Estimate, LeftOut, Paper, Replicated, beyond, by_reason, replicated
from .records import Record, Records, named

SYSTEM = "cogym"
TASKS = {
    "travel_planning": "Travel Planning",
    "related_work": "Related Work",
    "tabular_analysis": "Tabular Analysis",
}
SETTINGS = ("real", "simulated")
AUTONOMOUS = "Fully Autonomous Agent"
TABLE_2 = {
    "delivery_rate": None,
    "task_performance": None,
    "collab_score": "automatic",
    "initiative_entropy": None,
    "effective_confirmations": None,
    "halting_messages": None,
}
"""Metric -> its scoring; the last four are those of teams."""
TABLE_3 = (
    ("collab_score", "automatic"),
    ("collab_score", "human"),
    ("win_rate", None),
    ("initiative_entropy", None),
    ("effective_confirmations", None),
    ("halting_messages", None),
    ("satisfaction", None),
)
JUDGED = ("initiative", "confirmation", "halting")
KAPPAS = {"Average Cohen's κ": "mean_judge_human_kappa", "Fleiss' κ": "fleiss_kappa"}
PER_CENT = 100


def tables(records: Records, paper: Paper) -> Iterator[Replicated]:
    """Every table of the paper, with real and simulated users side by side where it has one of them."""
    definitions = _definitions(records)
    yield replicated(paper.table("Table 2"), dict(_simulated(records, paper)), definitions)
    yield replicated(paper.table("Table 3"), _named_real(dict(_both_settings(records))), definitions)
    yield replicated(paper.table("Table 4"), dict(_failures(records)), _failure_words(records))
    yield beyond("Table 4, error source", _SOURCES, dict(_sources(records)), _failure_words(records))
    yield replicated(paper.table("Table 5"), dict(_agreement(records)), _KAPPA_WORDS)
    yield replicated(paper.table("Table 6"), dict(_satisfaction(records)), _SCORE_WORDS)


def left_out(records: Records, paper: Paper) -> tuple[LeftOut, ...]:
    """Records of tasks that the paper does not have."""
    return by_reason(
        (record.native_id, f"the paper has no task {record.task!r}")
        for record in records.all
        if record.task not in TASKS
    )


_SOURCES = (
    "Share of sessions, per cent, with a failure of that source: as its finder said, else the usual one of "
    "its mode in the codebook"
)
_KAPPA_WORDS = {
    "Average Cohen's κ": "mean over people of Cohen's κ with the judge",
    "Fleiss' κ": "the judge and all people together",
}
_SCORE_WORDS = dict.fromkeys(SETTINGS, "per cent of the sessions with a score (1-5)")


def _definitions(records: Records) -> dict[str, str]:
    entropy = {
        "released": "released: Eq. 2, 0 where nobody takes the initiative",
        "paper": "paper: Eq. 2, without sessions in which nobody takes the initiative",
    }[records.definition]
    rater_text = f"rated by {records.rater}" if records.rater else "nobody rated"
    return {
        "delivery_rate": "delivered, of all",
        "task_performance": "mean of the delivered",
        "collab_score": "0 where nothing was delivered",
        "initiative_entropy": f"{entropy}; {rater_text}",
        "effective_confirmations": f"per session; {rater_text}",
        "halting_messages": f"per session; {rater_text}",
        "collab_score automatic": "task performance, 0 where nothing was delivered",
        "collab_score human": "the user's rating / 5, 0 where nothing was delivered",
        "win_rate": "preferred to the autonomous agent's result, per cent",
        "satisfaction": "mean, 1-5",
    }


def arm_of(record: Record, paper: Paper) -> str:
    """The paper's arm, by team, scaffolding and condition; else the condition's own name."""
    if not record.people:
        return AUTONOMOUS
    teams = {arm: pattern for arm, pattern in paper.names["arms"].items() if arm != AUTONOMOUS}
    return named(teams, (record.agent, record.condition)) or f"condition {record.condition}"


def _simulated(records: Records, paper: Paper) -> Iterator[tuple[tuple[str, str], Estimate]]:
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records.all:
        if record.setting != "real" and record.task in TASKS:
            model = named(paper.names["models"], (record.model,)) or f"model {record.model or 'not logged'}"
            row = f"{arm_of(record, paper)} · {model}"
            groups.setdefault((row, TASKS[record.task]), []).append(record)
    for (row, task), runs in groups.items():
        alone = row.startswith(AUTONOMOUS)
        for metric, scoring in list(TABLE_2.items())[: 2 if alone else None]:
            yield (row, f"{task} · {metric}"), records.measured(runs, metric, scoring=scoring)


def _both_settings(records: Records) -> Iterator[tuple[tuple[str, str], Estimate]]:
    for setting in SETTINGS:
        for task, column in TASKS.items():
            runs = [r for r in _teams(records, setting) if r.task == task]
            for metric, scoring in TABLE_3 if runs else ():
                factor = PER_CENT if metric == "win_rate" else 1
                row = f"{metric} {scoring}" if scoring else metric
                result = records.measured(runs, metric, scoring=scoring).times(factor)
                yield (row, f"{column} · {setting}"), result


def _named_real(estimate: Mapping[tuple[str, str], Estimate]) -> dict[tuple[str, str], Estimate]:
    """The printed columns are those of real users."""
    return {(row, column.removesuffix(" · real")): here for (row, column), here in estimate.items()}


def _teams(records: Records, setting: str) -> list[Record]:
    return [
        record
        for record in records.all
        if record.people and record.task in TASKS and (record.setting == "real") == (setting == "real")
    ]


def _finder(records: Records) -> str | None:
    names = [row["rater"] for row in raters(records.store, only=Selection(system=(SYSTEM,)))]
    return records.asked if records.asked in names else next(iter(names), None)


def _failure_words(records: Records) -> dict[str, str]:
    return dict.fromkeys(SETTINGS, f"per cent of sessions, found by {_finder(records) or 'nobody'}")


def _finder_rows(records: Records) -> list[dict[str, object]]:
    """What the finder said: trajectory, code or category, present (or None), error_source."""
    query = """
        SELECT trajectory_id, code, present, error_source FROM findings WHERE codebook = ? AND rater = ?
        UNION ALL
        SELECT trajectory_id, code, present, NULL FROM category_findings WHERE codebook = ? AND rater = ?
    """
    who = _finder(records)
    with records.store.reading() as connection:
        return dictionaries(connection, query, [FAILURES, who, FAILURES, who])


def _failures(records: Records) -> Iterator[tuple[tuple[str, str], Estimate]]:
    book = codebooks.load(FAILURES, records.store.workspace.codebooks)
    present = {(row["trajectory_id"], row["code"]): row["present"] for row in _finder_rows(records)}
    codes = [*(c.category for c in book.categories), *(code.code for code in book.codes)]
    for setting in SETTINGS:
        teams = _teams(records, setting)
        for code in codes if teams else ():
            yield (code, setting), _share(teams, {r.id: present.get((r.id, code), "unrated") for r in teams})


def _share(records: Iterable[Record], present: Mapping[str, object]) -> Estimate:
    """The per cent of records where it is present (1), of those where it is 1 or 0."""
    reasons = {"unrated": "not rated", None: "unclear, failed or answered in part"}
    missing = [(r.native_id, reasons[present[r.id]]) for r in records if present[r.id] not in (0, 1)]  # type: ignore[index]
    values = [value for value in present.values() if value in (0, 1)]
    if not values:
        return Estimate(None, reason="nobody rated it", left_out=by_reason(missing))
    low, high, *_ = wilson(values.count(1), len(values))
    share = Estimate(values.count(1) / len(values), len(values), low, high, left_out=by_reason(missing))
    return share.times(PER_CENT)


def _sources(records: Records) -> Iterator[tuple[tuple[str, str], Estimate]]:
    book = codebooks.load(FAILURES, records.store.workspace.codebooks)
    usual = {code.code: code.error_source for code in book.codes}
    ids: set[object] = set()
    behind: dict[object, set[object]] = {}
    for row in _finder_rows(records):
        ids |= {row["trajectory_id"]} if row["present"] is not None else set()
        if row["present"] == 1 and row["code"] in usual:
            source = row["error_source"] or usual[str(row["code"])]
            behind.setdefault(row["trajectory_id"], set()).add(source)
    for setting in SETTINGS:
        teams = _teams(records, setting)
        for source in ("model", "scaffolding", "both") if teams else ():
            present = {r.id: int(source in behind.get(r.id, ())) if r.id in ids else "unrated" for r in teams}
            yield (source, setting), _share(teams, present)


def _agreement(records: Records) -> Iterator[tuple[tuple[str, str], Estimate]]:
    with records.store.reading() as connection:
        books = {r[0] for r in connection.execute("SELECT DISTINCT codebook FROM counted_ratings").fetchall()}
    for book in JUDGED:
        rows = agreement.of_workspace(records.store, [book]) if book in books else []
        for name, coefficient in KAPPAS.items():
            yield (name, book), _kappa([row for row in rows if row.coefficient == coefficient], rows)


def _kappa(rows: Iterable[Agreement], everything: Iterable[Agreement]) -> Estimate:
    """Of the first judge whom people checked."""
    judges = [r.raters[0] for r in everything if r.coefficient == "mean_judge_human_kappa"]
    if not judges:
        return Estimate(None, reason="no unit was rated by a judge and by people")
    row = next((row for row in rows if row.raters[0] == judges[0]), None)
    if row is None:
        return Estimate(None, reason="not defined for these raters")
    note = f"{' with '.join((row.raters[0], ', '.join(row.raters[1:])))}; n counts units"
    return Estimate(row.value, row.n_units, row.low, row.high, row.reason, note)


def _satisfaction(records: Records) -> Iterator[tuple[tuple[str, str], Estimate]]:
    query = "SELECT trajectory_id, value FROM measures WHERE metric = 'satisfaction' AND value IS NOT NULL"
    with records.store.reading() as connection:
        scores = dict(connection.execute(query).fetchall())
    for setting in SETTINGS:
        teams = _teams(records, setting)
        for score in range(1, 6) if teams else ():
            present = {r.id: int(scores[r.id] == score) if r.id in scores else "unrated" for r in teams}
            yield (str(score), setting), _share(teams, present)
