"""`coaudit train`: from the ratings that count to a trained judge, and back to the store's units."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...judges import JudgeError
from ...judges.trained import Example, LearningResult, TrainedJudge
from ...judges.trained.features import Features, features
from ...judges.trained.judge import learn, load, name_of, save
from ...schemas import GOLD, UNCLEAR, Codebook
from .. import codebooks
from ..errors import CoauditError, UsageError
from ..store import AMONG, Store, execute, texts
from ..store.stream import stream
from .scope import HELD, Scope, batches

PREFIX = "trained:"
SUFFIX = ".skops"
Labels = dict[tuple[str, int | None, str], str]
"""(trajectory, event, code) -> label."""


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
    results = [learn(book, code.code, examples.get(code.code, [])) for code in book.codes]
    by_name = {about.code: model for model, about in results if model is not None}
    if not by_name:
        reasons = "; ".join(f"{about.code}: {about.reason}" for _, about in results[:5])
        raise CoauditError(f"rater {teacher!r} teaches nothing about codebook {book.name!r}: {reasons}")
    path = out or models(store) / f"{book.name}{SUFFIX}"
    save(path, book, by_name, [about for _, about in results])
    return Training(book.name, teacher, path, [about for _, about in results])


def load_trained(store: Store, name: str) -> TrainedJudge:
    """The trained judge of that name or file; UsageError names the ones there are."""
    model = name.removeprefix(PREFIX)
    path = Path(model) if model.endswith(SUFFIX) else models(store) / f"{model}{SUFFIX}"
    if not path.is_file():
        names = ", ".join(trained_names(store)) or "none yet: run `coaudit train`"
        raise UsageError(f"no trained judge {model!r}, expected a {SUFFIX} file or one of {names}")
    try:
        about, _, _ = load(path)
        book = codebooks.load(about, store.workspace.codebooks)
        _, result, version = load(path, book)
    except (JudgeError, codebooks.CodebookError) as error:
        raise UsageError(str(error)) from error
    return TrainedJudge(book, path.stem, version, result)


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
    for unit_features, trajectory, event, name in _feature_rows(store, book, places):
        for code in book.codes:
            label = labels.get((trajectory, event, code.code))
            if label is not None:
                by_name.setdefault(code.code, []).append(Example(unit_features, label, trajectory, name))
    return by_name


def _feature_rows(
    store: Store, book: Codebook, places: set[tuple[str, int | None]]
) -> list[tuple[Features, str, int | None, str]]:
    scope = Scope((book,), context="transcript", include_query=True)
    with store.reading(synced=True) as connection:
        query = f"SELECT id, n_events FROM trajectories WHERE id {AMONG} ORDER BY started, native_id, id"
        sizes = execute(connection, query, [texts({key for key, _ in places})]).fetchall()
    return [
        (features(unit), trajectory.id, unit.event, name_of(unit))
        for batch in batches(store, book, stream(store, sizes, HELD))
        for trajectory, unit, _ in batch.units(scope)
        if (trajectory.id, unit.event) in places
    ]
