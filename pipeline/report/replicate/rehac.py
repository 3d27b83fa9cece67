"""ReHAC's tables 1, 2, 3 and 5, its advantages under both definitions, and InterCode's IoU."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....schemas import Trajectory
from ....schemas.text import count_of
from ...advise import trees
from ...advise.scores import Bench, Score
from ...advise.states import rewarded_episodes
from ...advise.trees import Forest
from ...store import Selection
from ...systems import rehac
from ...systems.rehac import overlap
from ..interventions import interventions
from .cells import (
    Estimate,
    Omission,
    Paper,
    ReplicatedTable,
    by_reason,
    mean,
    replicate_table,
    unpublished_table,
)
from .records import Definition, Record, Records, group_by

SYSTEM = rehac.SYSTEM.name
PENALTY = 0.08
PER_CENT = 100
OURS = re.compile(r".*lambda_?0?\.08.*")
COLUMNS = ("hir", "task_reward", "reward")
ODDS = {"Agent-only": 0.0, "Human-only": 1.0, "Random": 0.5}
ORACLE = "Oracle"
MEASURES = {"hir": "human_intervention_rate", "task_reward": "task_reward", "reward": "reward"}
SAME = {
    "Table 1": {"Ours": "Llama2-7B"},
    "Table 2": {"Ours": "ReHAC (single-task)", "Agent-only": "Agent-only", "Human-only": "Human-only"},
}
"""Rows of other tables that table 5 has too, by its name for them."""
WORDS = {
    "hir": "human steps of all steps, pooled, per cent",
    "task_reward": "mean T, per cent",
    "reward": f"mean T - λC at λ = {PENALTY}, C of the whole run, per cent",
    "train questions": "questions of the training trajectories",
    "train trajectories": "training trajectories",
    "test questions": "questions of the trees and runs for testing",
    "logged": "mean T as logged, per cent",
    "IoU": "rows in both of those in either, last answer and that of a run with T = 1, per cent",
}


_NOT_WHOLE = (
    "no question has the task reward of each choice once: of its tree a part is missing, or another one is "
    "here, too"
)
_INTERCODE = "The paper takes IoU as InterCode's task reward"
_ADVANTAGES = (
    "Monte-Carlo advantages of a human step on the training trajectories, λ = 0.08: as released (C of the "
    "whole run, states of at most 5,041 characters) and as in the paper (C after the step, any state)"
)


@dataclass(frozen=True)
class Sets:
    """A data set's records: training runs, trees of test questions, and runs of the paper's policy."""

    train: list[Record]
    tree: list[Record]
    ours: list[Record]


def tables(records: Records, paper: Paper) -> Iterator[ReplicatedTable]:
    """Every table that the records allow."""
    by_name = dict(_methods(records, paper))
    five = paper.table("Table 5")
    for name, same in SAME.items():
        rows = {
            (f"{dataset} · {same[method]}", column): here
            for ((dataset, method), column), here in (
                ((_split_row(row), column), here) for (row, column), here in by_name.items()
            )
            if method in same and f"{dataset} · {same[method]}" in paper.table(name).rows
        }
        yield replicate_table(paper.table(name), rows, WORDS)
    yield replicate_table(paper.table("Table 3"), dict(_sizes(records, paper)), WORDS)
    yield replicate_table(five, by_name, WORDS)
    yield unpublished_table("Advantages", _ADVANTAGES, dict(_advantages(records, paper)), {})
    yield unpublished_table("InterCode", _INTERCODE, dict(_intercode(records)), WORDS)


def left_out(records: Records, paper: Paper) -> tuple[Omission, ...]:
    """Records that are neither training, tree of the test questions, nor the policy's runs at λ = 0.08."""
    ids = {r.id for one in _sets(records, paper).values() for r in (*one.train, *one.tree, *one.ours)}
    return by_reason((r.native_id, _why(r)) for r in records.all if r.id not in ids)


def _why(record: Record) -> str:
    if "train" in _file(record):
        return "a tree of training questions: the paper's training set is its sampled part"
    return f"{_file(record)} is no set of the paper by its name (train, test or dev tree, lambda0.08)"


def _file(record: Record) -> str:
    """The name of a record's file, which tells the set whatever the condition is called."""
    return record.native_id.partition("/")[0].lower()


def _split_row(row: str) -> tuple[str, str]:
    dataset, _, method = row.partition(" · ")
    return dataset, method


def _is_tree(record: Record) -> bool:
    """Whether a record is of a tree file: named by question and bits, and without a question text."""
    by_place = re.fullmatch(r".*/\d+/[01]+(#\d+)?", record.native_id)
    return by_place is not None and record.instance == record.tags.get("idx")


def _sets(records: Records, paper: Paper) -> dict[str, Sets]:
    by_name: dict[str, Sets] = {}
    for name, task in paper.names["datasets"].items():
        own = [record for record in records.all if record.task == task]
        train, tree, ours = [], [], []
        for record in own:
            file = _file(record)
            training = "train" in file or file == task
            if training and not _is_tree(record):
                train.append(record)
            elif not training and OURS.fullmatch(file):
                ours.append(record)
            elif not training and _is_tree(record) and re.search("test|dev|tree", file):
                tree.append(record)
        by_name[name] = Sets(train, tree, ours)
    return by_name


def _methods(records: Records, paper: Paper) -> Iterator[tuple[tuple[str, str], Estimate]]:
    for dataset, sets in _sets(records, paper).items():
        if sets.tree:
            for (name, column), here in _of_tree(records, sets.tree):
                yield (f"{dataset} · {name}", column), here
        for column in COLUMNS if sets.ours else ():
            result = records.measure(sets.ours, MEASURES[column]).times(PER_CENT)
            yield (f"{dataset} · Ours", column), result


def _of_tree(records: Records, tree: list[Record]) -> Iterator[tuple[tuple[str, str], Estimate]]:
    """What policies without a model earn, on the questions of which each choice was played out once."""
    paths, others = trees.complete_paths(rewarded_episodes(records.load(tree), "task_reward"))
    if not paths:
        left_out = by_reason((record.native_id, _NOT_WHOLE) for record in tree)
        none = Estimate(None, reason=_NOT_WHOLE, left_out=left_out)
        yield from (((name, column), none) for name in (*ODDS, ORACLE) for column in COLUMNS)
        return
    note = (
        f"; {count_of(others, 'question', 'questions')} left out, not all choices played out"
        if others
        else ""
    )
    for name, score in _policies(trees.forest(paths)):
        exact = "; exact expectation over the tree" if name == "Random" else ""
        for column, value in zip(COLUMNS, (score.rate, score.task, score.mean(PENALTY)), strict=True):
            here = Estimate(value, len(score.weight), note=f"n counts questions{exact}{note}")
            yield (name, column), here.times(PER_CENT)


def _policies(woods: Forest) -> Iterator[tuple[str, Score]]:
    """The paper's baselines, and the best policy in hindsight."""
    on = Bench(woods)
    for name, odds in ODDS.items():
        yield name, on.score(np.full(len(woods.states), odds))
    yield ORACLE, on.score(woods.oracle(PENALTY))


def _sizes(records: Records, paper: Paper) -> Iterator[tuple[tuple[str, str], Estimate]]:
    for dataset, sets in _sets(records, paper).items():
        for setting, train in _by_setting(sets.train):
            row = f"{dataset} ({setting})"
            if train:
                questions = _questions(train)
                yield (row, "train questions"), Estimate(questions, len(train), note="n counts trajectories")
                yield (row, "train trajectories"), Estimate(len(train), len(train))
        test_runs = sets.tree or sets.ours
        if test_runs:
            test_questions = Estimate(_questions(test_runs), len(test_runs), note="n counts trajectories")
            yield (f"{dataset} (sim)", "test questions"), test_questions


def _questions(records: Sequence[Record]) -> int:
    """Different questions: by the index in the gold split where the log has it, since one text has a typo."""
    return len({record.tags.get("idx") or record.instance for record in records})


def _advantages(records: Records, paper: Paper) -> Iterator[tuple[tuple[str, str], Estimate]]:
    both: tuple[Definition, ...] = ("released", "paper")
    for dataset, sets in _sets(records, paper).items():
        for setting, train in _by_setting(sets.train):
            for definition in both if train else ():
                only = Selection(ids=tuple(record.id for record in train))
                result = interventions(records.store, PENALTY, 1, definition=definition, only=only)
                for document in result:
                    row = f"{dataset} ({setting}) · {definition}"
                    yield from (((row, column), here) for column, here in _of_states(document))


def _of_states(document: dict[str, Any]) -> Iterator[tuple[str, Estimate]]:
    note = ", ".join(f"{n} {why}" for why, n in document["undefined"].items()) or None
    for column in ("states", "with_both", "human_better", "ties"):
        yield column, Estimate(document[column], document["states"], note=note)
    value = document["mean_advantage"]
    reason = None if value is not None else "no state saw both"
    yield "mean A(human)", Estimate(value, document["with_both"], reason=reason)


def _by_setting(train: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    """The records with people, then those with a model in their place."""
    return [
        ("real", [record for record in train if record.setting == "real"]),
        ("sim", [record for record in train if record.setting != "real"]),
    ]


def _intercode(records: Records) -> Iterator[tuple[tuple[str, str], Estimate]]:
    runs = {t.id: t for t in records.load(r for r in records.all if r.task == "intercode")}
    gold = overlap.gold_rows(runs.values())
    for condition, many in group_by(records.all, lambda r: r.condition if r.id in runs else None).items():
        yield (condition, "logged"), records.measure(many, "task_reward").times(PER_CENT)
        yield (condition, "IoU"), _overlap([(r.native_id, runs[r.id]) for r in many], gold).times(PER_CENT)


def _overlap(runs: Sequence[tuple[str, Trajectory]], gold: dict[str, overlap.Rows]) -> Estimate:
    values, missing = [], []
    for name, run in runs:
        value, reason = overlap.overlap(run, gold)
        if value is None:
            missing.append((name, reason or ""))
        else:
            values.append(value)
    reason = None if values else "no run's gold answer is known"
    return Estimate(mean(values), len(values), reason=reason, left_out=by_reason(missing))
