"""The workspace's records of one system, and metrics over groups of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ....annotation.statistics.estimate import Totals, estimate
from ....schemas import Metric, Trajectory
from ...analyze import metrics
from ...analyze.choice import choose
from ...analyze.counts import CODEBOOKS as RATED
from ...analyze.totals import cluster_of, groups
from ...store import Selection, Store, dictionaries
from ...systems import OF_ONE
from ..build import best_rater
from .cells import NO_RECORD, Estimate, Omission, by_reason

Definition = Literal["released", "paper"]


@dataclass(frozen=True)
class Record:
    """The head of one trajectory."""

    id: str
    native_id: str
    source: str
    setting: str | None
    condition: str | None
    task: str | None
    instance: str | None
    agent: str | None
    model: str | None
    tags: Mapping[str, str]
    people: int


class Records:
    """All records of a system; metrics that rest on ratings are by one rater, the one asked for if any."""

    def __init__(self, store: Store, system: str, definition: Definition, rater: str | None) -> None:
        self.store = store
        self.system = system
        self.definition = definition
        self.wanted_rater = rater
        self._rows: dict[tuple[tuple[str, ...], Definition], list[Metric]] = {}
        self._single: dict[Definition, dict[str, list[Metric]]] = {}

    @cached_property
    def all(self) -> list[Record]:
        """Every record, in the order in which they began."""
        query = """
            SELECT t.id, t.native_id, t.source, t.setting, t.condition, t.task, t.instance, t.agent,
                t.agent_model AS model, t.tags,
                (
                    SELECT count(*) FROM participants p WHERE p.trajectory_id = t.id AND p.kind = 'human'
                ) AS people
            FROM trajectories t WHERE t.system = ? ORDER BY t.started, t.native_id, t.id
        """
        with self.store.reading() as connection:
            rows = dictionaries(connection, query, [self.system])
        return [Record(**{**row, "tags": _tags(row["tags"])}) for row in rows]

    @cached_property
    def rater(self) -> str | None:
        """Whose ratings stand in the tables; None where nobody rated."""
        if self.wanted_rater is not None:
            return self.wanted_rater
        own = Selection(system=(self.system,))
        rows = metrics.metrics(self.store, only=own, definition=self.definition, every=True)
        return best_rater([row for row in rows if row.metric in RATED])

    def load(self, records: Iterable[Record]) -> list[Trajectory]:
        """The trajectories with their states."""
        with self.store.reading() as connection:
            return self.store.load(connection, [record.id for record in records], states=True)

    def measure(
        self,
        records: Collection[Record],
        metric: str,
        *,
        scoring: str | None = None,
        definition: Definition | None = None,
    ) -> Estimate:
        """A metric over these records, with the records that it leaves out and why."""
        if not records:
            return NO_RECORD
        variant = definition or self.definition
        ids = tuple(sorted(record.id for record in records))
        if (ids, variant) not in self._rows:
            self._rows[ids, variant] = metrics.metrics(
                self.store, only=Selection(ids=ids), definition=variant, rater=self.rater
            )
        rows = [row for row in self._rows[ids, variant] if self._fits(row, metric, scoring)]
        left_out = self._left_out(records, metric, scoring, variant)
        if not rows:
            reason = "not measured of these records"
            return Estimate(None, reason=reason, left_out=by_reason((r.native_id, reason) for r in records))
        row = rows[0]
        return Estimate(row.value, row.n, row.low, row.high, row.reason, row.note, left_out)

    def over_tasks(
        self,
        records: Collection[Record],
        metric: str,
        *,
        definition: Definition | None = None,
        without: Collection[str] = (),
    ) -> Estimate:
        """The mean over the tasks of each task's own value, in which runs count by their weights.

        A task of which no run has a value is left out, or counts 0 where the reason is one of `without`.
        """
        variant = definition or self.definition
        raw, ids = OF_ONE.get(metric, metric), tuple(sorted(record.id for record in records))
        with self.store.reading() as connection:
            choose(connection, definition=variant, only=Selection(ids=ids))
            cluster = cluster_of(connection, ())
            tasks = list(groups(connection, ["t.task"], only=[raw], cluster=cluster))
        left_out = self._left_out(records, metric, None, variant)
        with_value = [task.totals for task in tasks if task.totals.value is not None]
        empty = [task.reason for task in tasks if task.totals.value is None and task.reason in without]
        if not with_value and not empty:
            reason = left_out[0].reason if left_out else "not measured of these records"
            return Estimate(None, reason=reason, left_out=left_out)
        mean = estimate(_mean_of(with_value)) if with_value else None
        result = (
            Estimate(mean.value, mean.n, mean.low, mean.high, mean.reason, mean.note, left_out)
            if mean
            else Estimate(0.0, left_out=left_out)
        )
        if not empty:
            return result
        total = len(with_value) + len(empty)
        note = f"{len(empty)} of {total} tasks count 0: {', or '.join(sorted({*filter(None, empty)}))}"
        return replace(result.times(len(with_value) / total), note=note)

    def _fits(self, row: Metric, metric: str, scoring: str | None) -> bool:
        return row.metric == metric and row.scoring == scoring and row.participant is None

    def _left_out(
        self, records: Iterable[Record], metric: str, scoring: str | None, definition: Definition
    ) -> tuple[Omission, ...]:
        raw = OF_ONE.get(metric, metric)
        each = self._each(definition)
        pairs = []
        for record in records:
            rows = [row for row in each.get(record.id, ()) if self._fits(row, raw, scoring)]
            if not rows and metric in RATED:
                pairs.append((record.native_id, f"no ratings ({RATED[metric]})"))
            pairs += [(record.native_id, row.reason or "no value") for row in rows if row.value is None]
        return by_reason(pairs)

    def _each(self, definition: Definition) -> dict[str, list[Metric]]:
        if definition not in self._single:
            rows = metrics.trajectory_metrics(
                self.store,
                only=Selection(system=(self.system,)),
                definition=definition,
                rater=self.rater,
            )
            by_name: dict[str, list[Metric]] = {}
            for row in rows:
                by_name.setdefault(row.trajectory or "", []).append(row)
            self._single[definition] = by_name
        return self._single[definition]


def _mean_of(tasks: Sequence[Totals]) -> Totals:
    """Totals whose value is the mean of the tasks' values; tasks are fixed, so that each is a stratum."""
    n = sum(task.n for task in tasks)
    # Scaled to a mean weight of 1, as if every task had the same number of runs.
    scales = [n / len(tasks) / float(task.denominator.sum()) for task in tasks]
    return Totals(
        numerator=np.concatenate([scale * task.numerator for scale, task in zip(scales, tasks, strict=True)]),
        denominator=np.concatenate(
            [scale * task.denominator for scale, task in zip(scales, tasks, strict=True)]
        ),
        n=n,
        names=np.concatenate([task.names for task in tasks]),
        strata=np.repeat(np.arange(len(tasks)), [len(task.names) for task in tasks]),
        fraction=np.zeros(sum(len(task.names) for task in tasks)),
        size=len(tasks) ** 2 / sum(1 / task.size for task in tasks),
        yes_no=all(task.yes_no for task in tasks),
        bounds=tasks[0].bounds,
    )


def _tags(value: Any) -> Mapping[str, str]:
    return json.loads(value) if isinstance(value, str) else value or {}


def paper_name(names: Mapping[str, str], texts: Iterable[str | None]) -> str | None:
    """The paper's name whose pattern one of these texts from a log matches; None where none does."""
    words = [word for word in texts if word]
    for name, pattern in names.items():
        if any(re.fullmatch(pattern, word, re.IGNORECASE) for word in words):
            return name
    return None


def group_by(records: Iterable[Record], key: Callable[[Record], str | None]) -> dict[str, list[Record]]:
    """Records by a key; those without one are left out."""
    by_name: dict[str, list[Record]] = {}
    for record in records:
        if (name := key(record)) is not None:
            by_name.setdefault(name, []).append(record)
    return by_name
