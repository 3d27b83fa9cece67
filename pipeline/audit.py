"""The Python interface: a workspace as polars frames, and what commands do as methods.

Each method calls the function that its command calls, so that both say the same. Frames have the same
columns and types whatever is in them; a workspace that is not there yet has empty ones.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..schemas import Model
from ..schemas.metric import Agreement, Metric, Need, Rate
from ..schemas.text import visible
from ..schemas.trajectory import Setting
from .errors import SourceError, UsageError
from .ingest.ready import ready
from .ingest.result import IngestResult, Progress
from .store import Selection, Store, Workspace, constant
from .store.connection import frame
from .store.queries.aside import parts
from .store.queries.groupings import selection_of
from .store.queries.selection import NONE

if TYPE_CHECKING:
    from .ingest.imports import ImportResult
    from .ingest.sets import SetImport
    from .judge import Summary

AT_ONCE = 10_000
"""Rows that become a part of a frame at a time."""
Frame = pl.DataFrame
Value = str | float | None
Where = Mapping[str, Value | Iterable[Value]]
"""Field, tag, `day` or outcome -> the value that sessions have (None: no value), or several of which any will
do."""
Schema = Mapping[str, pl.DataType | type[pl.DataType]]
TEXT, WHOLE, NUMBER = pl.String, pl.Int64, pl.Float64
TRAJECTORIES: Schema = {
    **dict.fromkeys(
        ("id", "native_id", "source", "system", "setting", "condition", "task", "instance"), TEXT
    ),
    **dict.fromkeys(("agent", "agent_model", "tags", "started", "ended"), TEXT),
    "events": WHOLE,
}
COMPARISONS: Schema = {
    **dict.fromkeys(("metric", "by"), TEXT),
    "groups": pl.List(TEXT),
    **dict.fromkeys(("rater", "system", "question", "basis", "definition", "cluster"), TEXT),
    **dict.fromkeys(("first", "second", "effect", "low", "high"), NUMBER),
    "n": WHOLE,
    **dict.fromkeys(("sizes", "left_out", "alone"), pl.List(WHOLE)),
    "pairs": WHOLE,
    "test": TEXT,
    **dict.fromkeys(("p_value", "p_adjusted"), NUMBER),
    "family": WHOLE,
    **dict.fromkeys(("correction", "reason", "subject", "statement"), TEXT),
}
EVENTS: Schema = {
    "trajectory": TEXT,
    "native_id": TEXT,
    **dict.fromkeys(("seq", "sub"), WHOLE),
    **dict.fromkeys(
        ("time", "actor", "actor_kind", "kind", "text", "action", "arguments", "status", "error"), TEXT
    ),
}
OUTCOMES: Schema = {
    **dict.fromkeys(("trajectory", "native_id", "name"), TEXT),
    "value": NUMBER,
    **dict.fromkeys(("text", "baseline", "reason"), TEXT),
    "imported": pl.Boolean,
}
RATINGS: Schema = {
    **dict.fromkeys(("trajectory", "native_id"), TEXT),
    "event": WHOLE,
    **dict.fromkeys(("actor", "codebook", "unit", "code", "rater", "rater_kind", "rater_version"), TEXT),
    **dict.fromkeys(("label", "error", "rationale"), TEXT),
    "probability": NUMBER,
    "cites": pl.List(WHOLE),
    **dict.fromkeys(("model", "created"), TEXT),
}
_TYPES: dict[object, Any] = {str: TEXT, int: WHOLE, float: NUMBER, bool: pl.Boolean}


class Audit:
    """A workspace, opened by `coaudit.open("DIR")`; nothing is created before something is ingested."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._notes = set[str]()

    def __repr__(self) -> str:
        return f"coaudit.open({str(self.workspace.remote or self.workspace.path)!r})"

    @property
    def store(self) -> Store:
        """The store, with all that its ledgers hold; a database that was deleted is made again. For SQL of
        one's own."""
        return ready(self.workspace, self._note, _quiet)

    def _note(self, message: str) -> None:
        """Say it, but once: every call of a script begins by looking at the same workspace."""
        if message not in self._notes:
            self._notes.add(message)
            _say(message)

    def ingest(
        self,
        *paths: str | Path,
        system: str = "auto",
        map: str | Path | None = None,
        setting: Setting | None = None,
        condition: str | None = None,
        agent: str | None = None,
        tags: Mapping[str, str] | None = None,
        copy: bool = False,
    ) -> IngestResult:
        """Read logs; `map` is a mapping's file, its text, or a shipped one's name. As `coaudit ingest`."""
        from .ingest import run
        from .systems import ReadOptions
        from .systems.formats.fields import mapping

        source = None if map is None else str(map)
        text = source if source is None or "\n" in source else mapping.text_of(source)[0]
        if text is not None and not mapping.parse(text).has_only_rules and system == "auto":
            system = "mapped"
        options = ReadOptions(
            setting=setting, condition=condition, agent=agent, tags=dict(tags or {}), map=text
        )
        workspace = ready(self.workspace, self._note, _quiet, for_ingest=True)
        return run.ingest(workspace, [Path(path) for path in paths], options, system=system, copy=copy)

    def draft(self, path: str | Path) -> str:
        """The text of a mapping drafted for logs, as `coaudit map` writes it; `ingest(map=…)` takes it.

        SourceError where there is nothing that holds records.
        """
        from .systems.formats.draft import drafting, unclear

        mapping = drafting.draft(Path(path))
        if not mapping.survey.records:
            raise SourceError(f"{path}: {unclear.reason_unreadable(Path(path), mapping.survey)}")
        return mapping.text

    def bring(self, name: str, folder: str | Path) -> SetImport:
        """A public set with its labels: mast, whowhen or trail. As `coaudit import`."""
        from .ingest import sets
        from .systems import ReadOptions

        workspace = ready(self.workspace, self._note, _quiet, for_ingest=True)
        return sets.bring(workspace, name, Path(folder), ReadOptions())

    def judge(self, *codebooks: str, rater: str = "rules") -> Summary:
        """Rate with rules, detectors or a trained judge; models are asked by `coaudit judge --model`."""
        from .judge import Scope, embedded

        return embedded.judge(self.store, rater, list(codebooks), Scope(()), _say)

    def rate(self, ratings: pl.DataFrame) -> ImportResult:
        """Bring ratings in, a row each: trajectory, event (or participant), codebook, code, rater, label …

        What does not fit is in `quarantined` of the result, `line` its row from 1. As `ratings import`.
        """
        from .ingest.imports import ImportResult, RatingLine, import_lines

        if not isinstance(ratings, pl.DataFrame):
            raise UsageError(
                f"ratings must be a polars DataFrame, got {type(ratings).__qualname__}: "
                "polars.DataFrame(rows) or polars.from_pandas(frame) makes one"
            )
        rows = (
            {key: value for key, value in row.items() if value is not None}
            for row in ratings.iter_rows(named=True)
        )
        lines = (RatingLine("frame", number, row) for number, row in enumerate(rows, start=1))
        return import_lines(self.store, lines, ImportResult())

    def trajectories(self) -> pl.DataFrame:
        """A row a trajectory, in the order they began; `tags` is JSON."""
        from .store.queries.trajectories import heads

        if not self.workspace.exists():
            return _frame([], TRAJECTORIES)
        return _frame([{**row, "tags": json.dumps(row["tags"])} for row in heads(self.store)], TRAJECTORIES)

    def events(self, trajectory: str | None = None) -> pl.DataFrame:
        """A row an event, of all trajectories or of one (its id, the beginning of it, or a native_id)."""
        return self._rows(_EVENTS, EVENTS, trajectory)

    def outcomes(self, trajectory: str | None = None) -> pl.DataFrame:
        """A row an outcome: what the logs say, and what was imported."""
        return self._rows(_OUTCOMES, OUTCOMES, trajectory)

    def ratings(self, codebook: str | None = None) -> pl.DataFrame:
        """A row a rating that counts; `event` is null for a whole trajectory.

        UsageError where no codebook has that name.
        """
        from .analyze.matrix import chosen_books

        frame = self._rows(_RATINGS, RATINGS, None)
        if codebook is None or not self.workspace.exists():
            return frame
        (book,) = chosen_books(self.store, [codebook])
        return frame.filter(pl.col("codebook") == book.name)

    def metrics(
        self,
        by: Sequence[str] = (),
        *,
        per_trajectory: bool = False,
        rater: str | None = None,
        where: Where | None = None,
    ) -> pl.DataFrame:
        """A row a metric (and group, participant, rater) with value, n, interval and reason. As `metrics`.

        `where` names the sessions that count, as `--where` does. UsageError where `by` is no list of names,
        or goes with `per_trajectory`, which has no groups.
        """
        from .analyze.metrics import metrics, trajectory_metrics

        by = _group_names(by)
        if per_trajectory and by:
            raise UsageError(
                f"per_trajectory has a row for each trajectory, and by none for groups of them, got by={by}"
            )
        if not self.workspace.exists():
            return _models([], Metric, by)
        only = self._selection(where)
        if not per_trajectory:
            return _models(metrics(self.store, by=by, rater=rater, only=only), Metric, by)
        rows = trajectory_metrics(self.store, rater=rater, only=only)
        return pl.concat([_models(some, Metric) for some in parts(rows, AT_ONCE)] or [_models([], Metric)])

    def agreement(self, *codebooks: str, where: Where | None = None) -> pl.DataFrame:
        """A row a coefficient and code: people, judges with people, judges. As `coaudit agreement`."""
        from .analyze.agreement import of_workspace

        if not self.workspace.exists():
            return _models([], Agreement)
        return _models(of_workspace(self.store, codebooks, only=self._selection(where)), Agreement)

    def rates(
        self,
        *codebooks: str,
        by: Sequence[str] = (),
        judge: str | None = None,
        where: Where | None = None,
    ) -> pl.DataFrame:
        """A row a code (and group, judge): the judge's rate beside the corrected one. As `coaudit rates`."""
        from .analyze.rates import rates

        by = _group_names(by)
        if not self.workspace.exists():
            return _models([], Rate, by)
        only = self._selection(where)
        return _models(rates(self.store, codebooks, by=by, judge=judge, only=only), Rate, by)

    def compare(
        self,
        by: str,
        *,
        metrics: Sequence[str] = (),
        groups: tuple[str, str] | None = None,
        rater: str | None = None,
        cluster: str | None = None,
        where: Where | None = None,
    ) -> pl.DataFrame:
        """A row a metric or code and pair of groups: difference, interval, p-value. As `coaudit compare`."""
        from .analyze.compare import compare

        if not self.workspace.exists():
            return _frame([], COMPARISONS)
        only = self._selection(where)
        rows = compare(self.store, by, metrics=metrics, pair=groups, rater=rater, cluster=cluster, only=only)
        return _frame(rows, COMPARISONS)

    def plan(
        self,
        *codebooks: str,
        half_width: float = 0.1,
        judge: str | None = None,
        where: Where | None = None,
    ) -> pl.DataFrame:
        """A row a figure (rate, mean, kappa): how many units people must label for ± `half_width`, from the
        labels there are. As `coaudit plan --codebook`."""
        from .analyze.planning import needs

        if not self.workspace.exists():
            return _models([], Need)
        only = self._selection(where)
        return _models(needs(self.store, codebooks, half_width, judge=judge, only=only), Need)

    def validate(
        self, judge: str | None = None, *codebooks: str, where: Where | None = None
    ) -> dict[str, Any]:
        """The page on a judge, or on people's labels, as the document of `coaudit validate --json`."""
        from .analyze import people, validate

        if judge is None:
            return people.people(self.store, codebooks, only=self._selection(where))
        return validate.validate(self.store, judge, codebooks, only=self._selection(where))

    def _selection(self, where: Where | None) -> Selection | None:
        """The sessions with these values of a field, tag or outcome; UsageError where there are none."""
        pairs = _wishes({} if where is None else where)
        if not pairs:
            return None
        with self.store.reading(synced=True) as connection:
            return selection_of(connection, pairs)

    def _rows(self, query: str, schema: Schema, trajectory: str | None) -> pl.DataFrame:
        from .store.queries.trajectories import resolve

        if not self.workspace.exists():
            return _frame([], schema)
        with self.store.reading() as connection:
            condition = (
                "true" if trajectory is None else f"t.id = {constant(resolve(connection, trajectory))}"
            )
            rows = frame(connection, query.format(which=condition))
        return rows.select(pl.col(name).cast(kind) for name, kind in schema.items())


def _frame(rows: Sequence[Mapping[str, Any]], schema: Schema) -> pl.DataFrame:
    return pl.DataFrame([{name: row[name] for name in schema} for row in rows], schema=schema, strict=False)


def _wishes(where: Where) -> list[tuple[str, str]]:
    """(name, value) of all that is asked for; UsageError where a name has no value, which is no session and
    not all of them."""
    if not isinstance(where, Mapping):
        raise UsageError(f"where must be a dictionary such as {{'system': 'cogym'}}, got {where!r}")
    pairs = [
        (name, [some] if isinstance(some, str) or not isinstance(some, Iterable) else list(some))
        for name, some in where.items()
    ]
    if empty := [name for name, values in pairs if not values]:
        raise UsageError(f"where must have a value for each name, got none for {', '.join(empty)}")
    return [(name, _text(value)) for name, values in pairs for value in values]


def _text(value: object) -> str:
    """A value as logs have it; None is a session's without one, True and False are an outcome's 1 and 0."""
    if value is None:
        return NONE
    return str(int(value)) if isinstance(value, bool) else str(value)


def _group_names(by: Iterable[str]) -> list[str]:
    """The names of groups as a list, since they are read more than once; UsageError for a text, which is its
    letters."""
    if isinstance(by, str):
        raise UsageError(f"by must be a list of names, got {by!r}: by={by.split(',')!r}")
    return list(by)


def _models(rows: Sequence[Model], kind: type[Model], by: Sequence[str] = ()) -> pl.DataFrame:
    """A frame of a type's fields; a group becomes a column for each of its names, raters a list.

    A name that is a field's own (a tag called `value`) becomes `group.value`, as in JSON.
    """
    own = {name: _type(field.annotation) for name, field in kind.model_fields.items() if name != "group"}
    columns = {name: f"group.{name}" if name in own else name for name in by}
    schema: dict[str, Any] = dict.fromkeys(columns.values(), TEXT) | own
    return _frame([_group(row, columns) | row.model_dump() for row in rows], schema)


def _group(row: Model, columns: Mapping[str, str]) -> dict[str, Any]:
    """The group of a row, by the columns of the frame."""
    group = getattr(row, "group", None) or {}
    return {column: group.get(name) for name, column in columns.items()}


def _type(annotation: Any) -> Any:
    kinds = [kind for kind in getattr(annotation, "__args__", (annotation,)) if kind not in (type(None), ...)]
    inner = _TYPES.get(kinds[0], TEXT)
    return pl.List(inner) if getattr(annotation, "__origin__", None) is tuple else inner


def _say(message: str) -> None:
    print(visible(message), file=sys.stderr)


@contextmanager
def _quiet(title: str) -> Iterator[Progress]:
    yield lambda name, count, total: None


_EVENTS = """
    SELECT e.trajectory_id AS trajectory, t.native_id, e.seq, e.sub, e.time, e.actor,
        p.kind AS actor_kind, e.kind, e.text, e.action, e.arguments, e.status, e.error
    FROM events e
    JOIN trajectories t ON t.id = e.trajectory_id
    LEFT JOIN participants p ON p.trajectory_id = e.trajectory_id AND p.name = e.actor
    WHERE {which}
    ORDER BY t.started, t.native_id, t.id, e.seq, e.sub
"""
_OUTCOMES = """
    SELECT o.trajectory_id AS trajectory, t.native_id, o.name, o.value, o.text, o.baseline, o.reason,
        o.imported
    FROM outcomes o JOIN trajectories t ON t.id = o.trajectory_id
    WHERE {which}
    ORDER BY t.started, t.native_id, t.id, o.name
"""
_RATINGS = """
    SELECT r.trajectory_id AS trajectory, t.native_id, r.event, r.actor, r.codebook,
        r.unit_kind AS unit, r.code, r.rater, r.rater_kind, r.rater_version, r.label, r.error, r.rationale,
        r.probability, r.cites, r.model, r.created
    FROM counted_ratings r JOIN trajectories t ON t.id = r.trajectory_id
    WHERE {which}
    ORDER BY r.codebook, r.code, r.rater, t.started, t.native_id, t.id, r.event
"""
