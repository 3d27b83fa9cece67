"""`coaudit train`: from the ratings that count to a trained judge, and back to the store's units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...judges import JudgeError
from ...judges.trained import Example, TrainedJudge
from ...judges.trained.features import Features, features
from ...judges.trained.file import load, save
from ...judges.trained.judge import name_of
from ...judges.trained.learning import Fit, learn, why_nothing
from ...judges.trained.model import Model
from ...schemas import GOLD, UNCLEAR, Codebook, Trajectory, Unit, content_hash
from .. import codebooks
from ..errors import CoauditError, UsageError, WriteError
from ..store import AMONG, Store, execute, texts
from ..store.queries.stream import stream
from ..units import TELLING
from .scope import HELD, Scope, batches

if TYPE_CHECKING:
    from ...annotation.statistics.agreement import Ratings

PREFIX = "trained:"
SUFFIX = ".skops"
Labels = dict[tuple[str, int | None, str], str]
"""(trajectory, event, code) -> label."""


@dataclass(frozen=True)
class LearningResult:
    """How well one code was learnt: Cohen's kappa (on a scale with quadratic weights) with the labels, on
    what was held out while the rest was learnt; None with a reason. The labels are not weighted."""

    code: str
    kappa: float | None
    low: float | None
    high: float | None
    n: int
    trajectories: int
    held_out: str | None
    """What was held out at a time: an instance, a trajectory or, of a single one, a unit."""
    labels: dict[str, int]
    reason: str | None = None
    learnt: bool = True


@dataclass(frozen=True)
class Training:
    """A judge that was trained, and how well."""

    codebook: str
    rater: str
    file: Path
    rows: list[LearningResult]


def models(store: Store) -> Path:
    """Where the workspace keeps its trained judges."""
    return store.workspace.path / "models"


def trained_names(store: Store) -> list[str]:
    """The trained judges of the workspace."""
    return sorted(path.stem for path in models(store).glob(f"*{SUFFIX}"))


def train(store: Store, book: Codebook, rater: str | None, out: Path | None) -> Training:
    """Learn from one rater's ratings; CoauditError where they teach nothing."""
    if out is None:
        store.admit_writes()
    teacher = _teacher(store, book, rater)
    labels = _labels(store, book, teacher)
    examples = _examples(store, book, labels)
    by_name: dict[str, Model] = {}
    rows: list[LearningResult] = []
    for code in book.codes:
        own = examples.get(code.code, [])
        fit = None if why_nothing(own) else learn(own)
        if fit is not None:
            by_name[code.code] = fit.model
        rows.append(_result(book, code.code, own, fit))
    if not by_name:
        reasons = "; ".join(f"{row.code}: {row.reason}" for row in rows[:5])
        raise CoauditError(f"rater {teacher!r} teaches nothing about codebook {book.name!r}: {reasons}")
    path = out or models(store) / f"{book.name}{SUFFIX}"
    try:
        save(path, book, by_name, teacher)
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error.strerror}") from error
    return Training(book.name, teacher, path, rows)


def _result(book: Codebook, code: str, examples: list[Example], fit: Fit | None) -> LearningResult:
    by_label = Counter(example.label for example in examples)
    counts = {label: by_label[label] for label in book.answers if label in by_label}
    n, trajectories = len(examples), len({example.trajectory for example in examples})
    if fit is None:
        reason = why_nothing(examples)
        return LearningResult(code, None, None, None, n, trajectories, None, counts, reason, learnt=False)
    from ...annotation.statistics.agreement import agreement

    coefficient = "cohen_kappa" if book.level == "nominal" else "cohen_kappa_quadratic"
    (kappa,) = agreement(_ratings(book, examples, fit), [coefficient])
    return LearningResult(
        code,
        kappa.value,
        kappa.low,
        kappa.high,
        n,
        trajectories,
        fit.held_out,
        counts,
        kappa.reason,
    )


def _ratings(book: Codebook, examples: list[Example], fit: Fit) -> Ratings:
    """What a judge said of examples that were held out, beside their labels."""
    import numpy as np

    from ...annotation.statistics.agreement import Ratings

    place = {label: number for number, label in enumerate(book.labels)}
    pairs = [
        (place[answer], place[one.label]) for (answer, _), one in zip(fit.answers, examples, strict=True)
    ]
    names = [one.instance if fit.held_out == "instance" else one.trajectory for one in examples]
    is_alone = book.unit == "trajectory" and len(set(names)) == len(names)
    return Ratings(
        matrix=np.array(pairs, dtype=np.int64),
        labels=book.labels,
        raters=("judge", "labels"),
        level=book.level,
        clusters=None if is_alone else np.unique(names, return_inverse=True)[1],
    )


def load_trained(store: Store, name: str) -> TrainedJudge:
    """The trained judge of that name or file; UsageError names the ones there are."""
    model = name.removeprefix(PREFIX)
    path = Path(model) if model.endswith(SUFFIX) else models(store) / f"{model}{SUFFIX}"
    if not path.is_file():
        names = ", ".join(trained_names(store)) or "none yet: run `coaudit train`"
        raise UsageError(f"no trained judge {model!r}, expected a {SUFFIX} file or one of {names}")
    try:
        book = codebooks.load(load(path).codebook, store.workspace.codebooks)
        content = load(path, book)
    except (JudgeError, codebooks.CodebookError) as error:
        raise UsageError(str(error)) from error
    groups = set().union(*(model.fold_of for model in content.models.values()))
    instances = {key: name for key, name in _instances(store).items() if name in groups}
    return TrainedJudge(book, path.stem, content.version, content.models, instances, content.teacher)


def _instances(store: Store) -> dict[str, str]:
    """Trajectory -> the name of the instance of which it is a run: the one that its log names, else what was
    asked in the opening query, unless more than half of those of its system ask the same. None of those that
    have neither."""
    with store.reading(synced=True) as connection:
        rows = execute(connection, _QUERIES, [TELLING]).fetchall()
    return {
        key: content_hash("query", query) if instance is None else content_hash(system, task, instance)
        for key, system, task, instance, query in rows
    }


_QUERIES = r"""
    WITH queries AS (
        SELECT u.trajectory_id AS id, lower(trim(regexp_replace(e.text, '\s+', ' ', 'g'))) AS text
        FROM units u JOIN events e ON e.trajectory_id = u.trajectory_id AND e.seq = u.event AND e.sub = 0
        WHERE u.opening AND u.kind = 'utterance'
    ),
    runs AS (
        SELECT t.id, t.system, t.task, t.instance, q.text,
            count(*) OVER (PARTITION BY t.system, t.instance IS NULL, q.text) AS alike,
            count(q.text) OVER (PARTITION BY t.system, t.instance IS NULL) AS every
        FROM trajectories t LEFT JOIN queries q ON q.id = t.id AND length(q.text) >= ?
    )
    SELECT id, system, task, instance, md5(text) FROM runs
    WHERE instance IS NOT NULL OR text IS NOT NULL AND 2 * alike <= every
"""


def _teacher(store: Store, book: Codebook, rater: str | None) -> str:
    query = """
        SELECT rater, count(*), any_value(rater_kind) = 'human' FROM counted_ratings
        WHERE codebook = ? AND label IS NOT NULL GROUP BY rater ORDER BY rater
    """
    with store.reading() as connection:
        rows = execute(connection, query, [book.name]).fetchall()
    labels = {name: n for name, n, _ in rows}
    if not labels:
        raise CoauditError(f"no ratings on codebook {book.name!r} to learn from")
    most = max((n for _, n, is_person in rows if is_person), default=0)
    if rater is None and labels.get(GOLD) == most:
        return GOLD
    if rater is None and len(labels) == 1:
        return str(next(iter(labels)))
    if rater is None or rater not in labels:
        few = f" (gold settled {labels[GOLD]:,} labels, others gave {most:,})" if GOLD in labels else ""
        raise UsageError(f"whose ratings are to be learnt?{few} Give --rater, one of {', '.join(labels)}")
    return rater


def _labels(store: Store, book: Codebook, rater: str) -> Labels:
    query = """
        SELECT trajectory_id, event, code, label FROM counted_ratings
        WHERE codebook = ? AND rater = ? AND label IS NOT NULL
    """
    with store.reading(synced=True) as connection:
        rows = execute(connection, query, [book.name, rater]).fetchall()
    return {(t, e, code): label for t, e, code, label in rows if label in book.labels or label != UNCLEAR}


def _examples(store: Store, book: Codebook, labels: Labels) -> dict[str, list[Example]]:
    places = {(trajectory, event) for trajectory, event, _ in labels}
    by_name: dict[str, list[Example]] = {}
    instances = _instances(store)
    for trajectory, unit, unit_features in _feature_rows(store, book, places):
        instance = instances.get(trajectory.id, trajectory.id)
        for code in book.codes:
            label = labels.get((trajectory.id, unit.event, code.code))
            if label is not None:
                example = Example(unit_features, label, name_of(unit), trajectory.id, instance)
                by_name.setdefault(code.code, []).append(example)
    return by_name


def _feature_rows(
    store: Store, book: Codebook, places: set[tuple[str, int | None]]
) -> Iterator[tuple[Trajectory, Unit, Features]]:
    scope = Scope((book,), context="transcript", include_query=True)
    with store.reading(synced=True) as connection:
        query = f"SELECT id, n_events FROM trajectories WHERE id {AMONG} ORDER BY started, native_id, id"
        sizes = execute(connection, query, [texts({key for key, _ in places})]).fetchall()
    for batch in batches(store, book, stream(store, sizes, HELD)):
        for trajectory, unit, _ in batch.units(scope):
            if (trajectory.id, unit.event) in places:
                yield trajectory, unit, features(unit)
