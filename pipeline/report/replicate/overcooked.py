"""Collab-Overcooked's tables 2 and 3, and the numbers of its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...store.queries.trajectories import reference_rows
from ...systems import overcooked
from ...systems.overcooked import metrics
from ...systems.overcooked.references import Reference
from ...systems.registry import parsed_references
from .cells import Estimate, Omission, Paper, ReplicatedTable, by_reason, replicate_table, unpublished_table
from .records import Definition, Record, Records, group_by, paper_name

SYSTEM = overcooked.SYSTEM.name
PER_CENT = 100
LEVELS = range(1, 7)
CAPABILITIES = ("initiating_capability", "responding_capability")
MEAN = "mean over the level's tasks"
WORDS = {
    "success_rate": f"served within 1.5 times the optimal steps, per cent; {MEAN}",
    "progress_completeness": f"mean of both agents' best TES, per cent; {MEAN}",
    "collaborative actions": "actions of the assistant in the shortest reference of an order",
    "initiating_capability, released": f"right requests, of the dialogues that the chef opened; {MEAN}",
    "responding_capability, released": f"right answers, of the dialogues that the chef opened; {MEAN}",
    "initiating_capability, paper": f"right requests, of the required hand-overs; {MEAN}",
    "responding_capability, paper": f"right answers, of the required hand-overs; {MEAN}",
}


def tables(records: Records, paper: Paper) -> Iterator[ReplicatedTable]:
    """Both printed tables, then figures 3 and 4, the confusion of figure 5 and the errors of figure 9."""
    references = _references(records)
    yield replicate_table(paper.table("Table 2"), dict(_success(records, paper, references)), WORDS)
    yield replicate_table(paper.table("Table 3"), dict(_actions(references)), WORDS)
    about = "Initiating and responding capability, per cent"
    yield unpublished_table("Figures 3 and 4", about, dict(_capabilities(records, paper, references)), WORDS)
    cells, classes = dict(_confusion(records, paper, references)), dict(_errors(records, paper, references))
    yield unpublished_table("Figure 5", _CONFUSION, cells, _shares(records, "dialogues"))
    yield unpublished_table("Figure 9", _ERRORS, classes, _shares(records, "requests"))
    yield unpublished_table("Refused plans", _REFUSED, dict(_refusals(records)), {})


def left_out(records: Records, paper: Paper) -> tuple[Omission, ...]:
    """Runs whose order has no reference, and so no level."""
    references = _references(records)
    return by_reason(
        (record.native_id, f"no reference for {record.task!r} (--reference DIR), which says its level")
        for record in records.all
        if record.task not in references
    )


_CONFUSION = (
    "Initiating × responding: requests and answers that further the task, and whether the answer was worse "
    "than asked, as good or better (the sign of c2)"
)
_REFUSED = "How often the validator sent a plan back, by class"
_ERRORS = "Wrong requests by class, per cent of the requests that name an action"


def _shares(records: Records, noun: str) -> dict[str, str]:
    definition = f"{records.definition}: share of {noun}, per cent"
    cells = (*metrics.CELLS.values(), *metrics.ERRORS)
    return dict.fromkeys(cells, definition) | dict.fromkeys(_SIGNS, f"{records.definition}: number of {noun}")


def _references(records: Records) -> dict[str, Reference]:
    with records.store.reading() as connection:
        references = parsed_references(reference_rows(connection)).get(SYSTEM, {})
    return {task: one for task, one in references.items() if isinstance(one, Reference)}


def row_of(record: Record, paper: Paper) -> str:
    """The model as the paper calls it, else as the log's folder does."""
    name = record.model or record.condition
    return paper_name(paper.names["models"], (name,)) or f"{name or 'no model'} (not in the paper)"


def _groups(
    records: Records, paper: Paper, references: dict[str, Reference]
) -> Iterator[tuple[str, str, list[Record]]]:
    """(Row, level, records)."""
    for row, runs in group_by(records.all, lambda record: row_of(record, paper)).items():
        for level in LEVELS:
            of_level = [r for r in runs if r.task in references and references[r.task].level == level]
            if of_level:
                yield row, f"Level {level}", of_level


def _success(
    records: Records, paper: Paper, references: dict[str, Reference]
) -> Iterator[tuple[tuple[str, str], Estimate]]:
    for row, level, runs in _groups(records, paper, references):
        for metric in ("success_rate", "progress_completeness"):
            yield (row, f"{level} · {metric}"), records.over_tasks(runs, metric).times(PER_CENT)


def _actions(references: dict[str, Reference]) -> Iterator[tuple[tuple[str, str], Estimate]]:
    for level in LEVELS:
        orders = [one for one in references.values() if one.level == level and one.trajectories]
        lengths = [min(len(actions) for actions in one.of(1)) for one in orders]
        if lengths:
            differ = f", which need {sorted(set(lengths))}" if len(set(lengths)) > 1 else ""
            note = f"n counts orders{differ}"
            yield (f"Level {level}", "collaborative actions"), Estimate(min(lengths), len(lengths), note=note)


def _capabilities(
    records: Records, paper: Paper, references: dict[str, Reference]
) -> Iterator[tuple[tuple[str, str], Estimate]]:
    both: tuple[Definition, ...] = ("released", "paper")
    for row, level, runs in _groups(records, paper, references):
        for metric in CAPABILITIES:
            for definition in both:
                # The released code has 0 where it judged no request.
                none = (metrics.NO_DIALOGUE, metrics.UNANSWERABLE) if definition == "released" else ()
                result = records.over_tasks(runs, metric, definition=definition, without=none)
                yield (row, f"{level} · {metric}, {definition}"), result.times(PER_CENT)


_SIGNS = ("answer worse", "as good", "answer better")


def _confusion(
    records: Records, paper: Paper, references: dict[str, Reference]
) -> Iterator[tuple[tuple[str, str], Estimate]]:
    for row, runs in group_by(records.all, lambda record: row_of(record, paper)).items():
        counts: Counter[tuple[str, bool, bool]] = Counter()
        for run in records.load(r for r in runs if r.task in references):
            reference = references[run.task or ""]
            game = metrics.run(run, metrics.time_limit(reference))
            counts += metrics.confusion(metrics.run_collaborations(game, reference, records.definition))
        total = counts.total()
        for cell, name in metrics.CELLS.items():
            part = sum(n for (_, *rest), n in counts.items() if tuple(rest) == cell)
            if total:
                yield (row, name), Estimate(PER_CENT * part / total, total, note=f"{part} of {total}")
        for sign, name in zip((">0", "=0", "<0"), _SIGNS, strict=True):
            if total:
                yield (row, name), Estimate(sum(n for key, n in counts.items() if key[0] == sign), total)


def _errors(
    records: Records, paper: Paper, references: dict[str, Reference]
) -> Iterator[tuple[tuple[str, str], Estimate]]:
    for row, runs in group_by(records.all, lambda record: row_of(record, paper)).items():
        with_reference = [r for r in runs if r.task in references]
        for code in metrics.ERRORS if with_reference else ():
            yield (
                (row, code),
                records.measure(with_reference, "initiation_errors", scoring=code).times(PER_CENT),
            )


def _refusals(records: Records) -> Iterator[tuple[tuple[str, str], Estimate]]:
    runs = records.load(records.all)
    for (agent, kind), count in sorted(metrics.invalid_actions(runs).items()):
        yield (kind, agent), Estimate(count, len(runs))
