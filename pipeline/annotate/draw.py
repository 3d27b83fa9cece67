"""Drawing a sample from the store: the design's probabilities come from `annotation.sampling`.

One sample may serve several codebooks and, within one, several codes: a unit's inclusion probability is the
largest that any code wants, with a floor. `--unit trajectory` draws whole trajectories.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, mode
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from ...annotation.statistics import sampling
from ...schemas import GOLD, Codebook, content_hash
from .. import codebooks
from ..analyze.matrices import rated_codes
from ..errors import UsageError
from ..store import AMONG, Store, dictionaries, execute, texts
from ..store.ledgers import samples
from ..store.ledgers.ledger import now
from ..store.locks import FolderLocks
from ..store.queries.groupings import selection_of

METHODS = ("simple", "stratified", "neyman", samples.ADJUDICATION)
BY = ("judge", "task", "condition", "setting", "system", "agent", "agent_model")
UNITS = ("unit", "trajectory")
OVERLAP = 0.5
"""Share of units that two people label, where there are two."""
FLOOR = 0.2
"""Part of an equal share that every unit's inclusion probability keeps, whatever its stratum."""
NONE = "none"

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Wish:
    """What to draw, as the command line asks for it."""

    codebooks: tuple[str, ...]
    name: str
    size: int = 100
    method: str = "simple"
    by: tuple[str, ...] = ()
    judge: str | None = None
    pilot: str | None = None
    overlap: float = OVERLAP
    annotators: int = 2
    unit: str = "unit"
    where: tuple[tuple[str, str], ...] = ()
    """Fields, tags or outcomes of a trajectory with the values of which they must have one."""
    seed: int = 0

    @property
    def draw_seed(self) -> int:
        """The seed of the draw, from name and seed, so that samples of different names are independent."""
        return int(content_hash(self.name, self.seed)[:12], 16)

    def __post_init__(self) -> None:
        _one_of("--method", self.method, METHODS)
        _one_of("--unit", self.unit, UNITS)
        for name in self.by:
            _one_of("--by", name, BY)
        if self.size < 1 or self.annotators < 1 or not 0 <= self.overlap <= 1:
            raise UsageError("--size and --annotators must be at least 1, --overlap a share from 0 to 1")
        if self.method == "neyman" and self.pilot is None:
            raise UsageError("--method neyman needs --pilot SAMPLE, one that people have labelled")
        if self.pilot is not None and self.method != "neyman":
            raise UsageError(f"--pilot {self.pilot} is for --method neyman, got --method {self.method}")
        if self.judge is not None and "judge" not in _strata_names(self):
            raise UsageError(
                f"--judge {self.judge} says whose labels stratify: give --method stratified, or --by judge"
            )


def draw(store: Store, wish: Wish) -> samples.Sample:
    """Draw the sample and write it to the workspace; one that was drawn by the same wish stays as it is.

    Where two processes draw one name at once, the later one gets what the first has drawn.
    """
    books = [codebooks.load(name, store.workspace.codebooks) for name in dict.fromkeys(wish.codebooks)]
    path = samples.path(store.workspace, wish.name)
    if not path.exists():
        store.admit_writes()
        locks = FolderLocks(store.workspace.path / "locks")
        with locks.exclusive(f"sample {wish.name}", lambda holder: None):
            if not path.exists():
                samples.save(store.workspace, _new_sample(store, wish, books))
    sample = samples.read(path)
    if not _fits(sample.design, wish):
        raise UsageError(f"sample {wish.name!r} exists; choose another --name")
    store.sync()
    return sample


def _new_sample(store: Store, wish: Wish, books: Sequence[Codebook]) -> samples.Sample:
    corpus: dict[str, int] = {}
    sample_units: list[samples.SampledUnit] = []
    frames: list[samples.Frame] = []
    if wish.pilot is not None:
        samples.load(store.workspace, wish.pilot)
    with store.reading() as connection:
        judge = _judge(connection, wish)
        for book in books:
            frame = _frame(connection, book, wish)
            if not frame:
                raise UsageError(codebooks.without_units(book, wish.where))
            if wish.method == samples.ADJUDICATION:
                frame = _disputed_rows(connection, book, frame)
            corpus[book.name] = len(frame)
            units, inclusion = _draw_units(connection, book, frame, wish, judge)
            sample_units += units
            frames += _frames(book.name, frame, inclusion)
    if wish.method == samples.ADJUDICATION and not sample_units:
        names = ", ".join(book.name for book in books)
        raise UsageError(f"the sample is empty: no disagreement on {names} is left to settle")
    design = samples.Design(
        name=wish.name,
        codebooks={book.name: book.version for book in books},
        method=wish.method,
        unit=wish.unit,
        size=wish.size,
        seed=wish.seed,
        strata=_strata_names(wish),
        judge=judge,
        pilot=wish.pilot,
        overlap=wish.overlap,
        annotators=wish.annotators,
        where=wish.where,
        corpus=corpus,
        created=now(),
        coaudit=samples.this_version(),
    )
    return samples.Sample(design=design, units=tuple(sample_units), frames=tuple(frames))


def _fits(design: samples.Design, wish: Wish) -> bool:
    """Whether a sample was drawn by the same wish, for instance by a run that was killed afterwards."""
    return (
        set(design.codebooks) == set(wish.codebooks)
        and (design.method, design.unit, design.size) == (wish.method, wish.unit, wish.size)
        and (design.seed, design.pilot, design.strata) == (wish.seed, wish.pilot, _strata_names(wish))
        and (design.overlap, design.annotators) == (wish.overlap, wish.annotators)
        and design.where == wish.where
        and wish.judge in (None, design.judge)
    )


def _draw_units(
    connection: duckdb.DuckDBPyConnection,
    book: Codebook,
    frame: list[dict[str, Any]],
    wish: Wish,
    judge: str | None,
) -> tuple[list[samples.SampledUnit], Floats]:
    """The units drawn, and the inclusion probability (N,) of each unit of the frame."""
    if not frame:
        return [], np.empty(0)
    if wish.method == samples.ADJUDICATION:
        subset = sampling.simple_random(len(frame), min(wish.size, len(frame)), wish.draw_seed)
        return [_adjudication_unit(book, frame[unit]) for unit in sorted(subset.units)], np.zeros(len(frame))
    names = np.unique([row["trajectory_id"] for row in frame], return_inverse=True)[1].astype(np.int64)
    clusters = names if wish.unit == "trajectory" and book.unit != "trajectory" else None
    strata = _strata(connection, book, frame, wish, judge)
    size = _size(len(frame), wish, clusters)
    if wish.method == "neyman":
        inclusion = _neyman(connection, book, frame, strata, wish, size)
        if clusters is not None:
            inclusion = _trajectory_inclusion(inclusion, clusters, wish)
        selection = sampling.draw(inclusion, wish.draw_seed, clusters=clusters)
    elif wish.method == "stratified":
        texts = np.array([" | ".join(column) for column in zip(*strata.values(), strict=True)])
        _, cells = np.unique(texts, return_inverse=True)
        each, total = (cells, size) if clusters is None else _trajectory_strata(cells, clusters, wish)
        totals = np.bincount(each)
        zeros = np.zeros(len(totals), np.int64)
        sizes = sampling.neyman(totals, zeros, zeros, total)
        quotas = {place: int(n) for place, n in enumerate(sizes)}
        selection = sampling.stratified(cells.astype(np.int64), quotas, wish.draw_seed, clusters=clusters)
    elif clusters is not None:
        selection = sampling.draw(
            _trajectory_inclusion(np.ones(len(frame)), clusters, wish), wish.draw_seed, clusters=clusters
        )
    else:
        selection = sampling.simple_random(len(frame), size, wish.draw_seed)
    overlaps = _overlaps(len(selection.units), wish, None if clusters is None else clusters[selection.units])
    stratum_names = [" | ".join(column) for column in zip(*strata.values(), strict=True)] if strata else []
    units = [
        samples.SampledUnit(
            codebook=book.name,
            trajectory=frame[unit]["trajectory_id"],
            event=frame[unit]["event"],
            unit_hash=frame[unit]["hash"],
            probability=min(1.0, float(selection.inclusion[unit])),
            stratum=stratum_names[unit] if stratum_names else None,
            overlap=int(overlap),
        )
        for unit, overlap in zip(selection.units.tolist(), overlaps, strict=True)
    ]
    return units, np.minimum(selection.inclusion, 1.0)


def _frames(book: str, frame: list[dict[str, Any]], inclusion: Floats) -> Iterator[samples.Frame]:
    for probability in np.unique(inclusion[inclusion > 0]):
        units: dict[str, list[int | None]] = {}
        for place in np.flatnonzero(inclusion == probability):
            units.setdefault(frame[place]["trajectory_id"], []).append(frame[place]["event"])
        by_trajectory = {trajectory: tuple(events) for trajectory, events in units.items()}
        yield samples.Frame(frame=book, probability=float(probability), units=by_trajectory)


def _adjudication_unit(book: Codebook, row: dict[str, Any]) -> samples.SampledUnit:
    """A unit that was chosen because people disagree: it estimates no rate."""
    return samples.SampledUnit(
        codebook=book.name,
        trajectory=row["trajectory_id"],
        event=row["event"],
        unit_hash=row["hash"],
        probability=None,
        overlap=1,
    )


def _disputed_rows(
    connection: duckdb.DuckDBPyConnection, book: Codebook, frame: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The units of a frame on which people disagree and gold has not decided."""
    open_units: set[tuple[str, int | None]] = set()
    for code in rated_codes(connection, book):
        labels = [code.of(rater) for rater in code.humans]
        if len(labels) < 2:
            continue
        answers = np.where(np.stack(labels) < 0, -1, np.stack(labels))
        highest = answers.max(0)
        differ = ((answers >= 0) & (answers != highest)).any(0)
        has_gold = code.of(GOLD) >= 0 if GOLD in code.raters else np.zeros(len(differ), dtype=bool)
        open_units.update(code.unit(place) for place in np.flatnonzero(differ & ~has_gold))
    return [row for row in frame if (row["trajectory_id"], row["event"]) in open_units]


def _size(units: int, wish: Wish, clusters: Ints | None) -> int:
    """How many units to draw; of whole trajectories, `wish.size` times the mean number of units in one."""
    if clusters is None:
        return min(wish.size, units)
    trajectories = int(clusters.max()) + 1
    return min(units, round(wish.size * units / trajectories))


def _trajectory_inclusion(wishes: Floats, clusters: Ints, wish: Wish) -> Floats:
    """Inclusion probability (N,) of units whose trajectories are drawn whole, from each unit's wish (N,).

    A trajectory's is proportional to the largest wish of its units, scaled so that over trajectories they sum
    to the number asked for.
    """
    largest = np.zeros(int(clusters.max()) + 1)
    np.maximum.at(largest, clusters, wishes)
    size = min(wish.size, len(largest))
    return sampling.for_codes(largest[:, None], size, floor=FLOOR * size / len(largest))[clusters]


def _trajectory_strata(cells: Ints, clusters: Ints, wish: Wish) -> tuple[Ints, int]:
    """The stratum of each trajectory (T,), and how many to draw whole; UsageError where one has several."""
    _, first = np.unique(clusters, return_index=True)
    if (cells[first][clusters] != cells).any():
        raise UsageError(
            f"--by {','.join(_strata_names(wish))} puts units of one trajectory into several strata: none "
            "can be drawn whole from one; leave out --unit trajectory, or stratify by what trajectories have"
        )
    return cells[first], min(wish.size, len(first))


def _overlaps(units: int, wish: Wish, clusters: Ints | None) -> Sequence[int]:
    people = [str(number) for number in range(wish.annotators)]
    each = min(2, wish.annotators)
    table = sampling.overlap(units, people, wish.overlap, wish.draw_seed, each=each, clusters=clusters)
    return [int(n) for n in table.sum(1)]


def _frame(connection: duckdb.DuckDBPyConnection, book: Codebook, wish: Wish) -> list[dict[str, Any]]:
    """The sampling frame: every unit of a codebook in the trajectories that `wish.where` admits, but opening
    queries, in a fixed order.

    Rows have the columns of the strata and no more: there may be millions.
    """
    where, values = selection_of(connection, wish.where).where()
    strata = "".join(f", t.{name}" for name in _strata_names(wish) if name != "judge")
    query = f"""
        SELECT u.trajectory_id, u.event, u.hash{strata}
        FROM codebook_units u JOIN trajectories t ON t.id = u.trajectory_id
        WHERE u.codebook = ? AND NOT u.opening AND {where} ORDER BY u.trajectory_id, u.event
    """
    return dictionaries(connection, query, [book.name, *values])


def _strata_names(wish: Wish) -> tuple[str, ...]:
    unstratified = wish.method in ("simple", samples.ADJUDICATION)
    return wish.by or (() if unstratified else ("judge",))


def _strata(
    connection: duckdb.DuckDBPyConnection,
    book: Codebook,
    frame: list[dict[str, Any]],
    wish: Wish,
    judge: str | None,
) -> dict[str, list[str]]:
    """Name of each stratifier -> the stratum of each unit (N,)."""
    if wish.method == "simple":
        return {}
    judgments = _labels(connection, book, judge) if judge else {}
    columns: dict[str, list[str]] = {}
    for name in _strata_names(wish):
        if name == "judge":
            columns[name] = [f"judge={_overall_label(book, judgments, row)}" for row in frame]
        else:
            columns[name] = [f"{name}={row[name]}" for row in frame]
    return columns


def _overall_label(
    book: Codebook, judgments: dict[tuple[str, str, int | None], str], row: dict[str, Any]
) -> str:
    """The judge's label of a unit; with several codes, whether it found any of them, on a scale about which
    label it gave, and of other labels which one most often."""
    labels = [judgments.get((code.code, row["trajectory_id"], row["event"]), NONE) for code in book.codes]
    if len(labels) == 1:
        return labels[0]
    if book.binary:
        how_many = "any" if book.positive in labels else "no"
        return NONE if set(labels) == {NONE} else f"{how_many} {book.positive}"
    places = [book.labels.index(label) for label in labels if label in book.labels]
    if not places:
        return NONE
    if book.level == "nominal":
        return f"mostly {book.labels[mode(sorted(places))]}"
    return f"about {book.labels[round(mean(places))]}"


def _neyman(
    connection: duckdb.DuckDBPyConnection,
    book: Codebook,
    frame: list[dict[str, Any]],
    strata: dict[str, list[str]],
    wish: Wish,
    size: int,
) -> Floats:
    """Inclusion probability (N,) for all codes at once, from each code's Neyman allocation over its own judge
    strata in the pilot.

    With more than two labels, and on a scale, each label has an allocation of its own.
    """
    judge = _judge(connection, wish)
    judgments = _labels(connection, book, judge) if judge else {}
    people = _pilot(connection, book, str(wish.pilot))
    if not people:
        raise UsageError(f"--pilot {wish.pilot!r}: nobody has labelled units of {book.name!r} in it")
    labels = np.array([book.positive] if book.binary else book.labels)
    wishes = []
    for code in book.codes:
        own = [judgments.get((code.code, row["trajectory_id"], row["event"]), NONE) for row in frame]
        rest = [column for name, column in strata.items() if name != "judge"]
        texts = np.array([" | ".join(parts) for parts in zip(own, *rest, strict=True)])
        names, cells = np.unique(texts, return_inverse=True)
        present, labelled = np.zeros((len(labels), len(names))), np.zeros(len(names))
        for row, cell in zip(frame, cells, strict=True):
            shares = people.get((code.code, row["trajectory_id"], row["event"]))
            if shares is not None:
                labelled[cell] += 1
                present[:, cell] += [shares.get(label, 0.0) for label in labels]
        wishes += [sampling.neyman_wishes(cells.astype(np.int64), one, labelled, size) for one in present]
    return sampling.for_codes(np.array(wishes).T, size, floor=FLOOR * size / len(frame))


def _labels(
    connection: duckdb.DuckDBPyConnection, book: Codebook, rater: str
) -> dict[tuple[str, str, int | None], str]:
    query = """
        SELECT code, trajectory_id, event, coalesce(label, 'error')
        FROM counted_ratings WHERE codebook = ? AND rater = ?
    """
    rows = execute(connection, query, [book.name, rater]).fetchall()
    return {(code, trajectory, event): label for code, trajectory, event, label in rows}


def _pilot(
    connection: duckdb.DuckDBPyConnection, book: Codebook, sample: str
) -> dict[tuple[str, str, int | None], dict[str, float]]:
    """(code, trajectory, event) -> label -> share of the people who gave it in the pilot; of gold alone where
    there is one."""
    query = f"""
        WITH labels AS (
            SELECT r.code, r.trajectory_id, r.event, label, rater = '{GOLD}' AS settles,
                bool_or(settles) OVER (PARTITION BY r.code, r.trajectory_id, r.event) AS settled
            FROM counted_ratings r JOIN samples s
                ON s.sample = ? AND s.codebook = r.codebook AND s.trajectory_id = r.trajectory_id
                AND s.event IS NOT DISTINCT FROM r.event
            WHERE r.codebook = ? AND r.rater_kind = 'human' AND r.label {AMONG}
        )
        SELECT code, trajectory_id, event, label, count(*) FROM labels WHERE settles OR NOT settled
        GROUP BY code, trajectory_id, event, label
    """
    counts: dict[tuple[str, str, int | None], dict[str, int]] = {}
    parameters = [sample, book.name, texts(book.labels)]
    for code, trajectory, event, label, n in execute(connection, query, parameters).fetchall():
        counts.setdefault((code, trajectory, event), {})[label] = n
    return {
        unit: {label: n / sum(labels.values()) for label, n in labels.items()}
        for unit, labels in counts.items()
    }


def _judge(connection: duckdb.DuckDBPyConnection, wish: Wish) -> str | None:
    """The rater whose labels stratify: the one named, or the only judge there is."""
    return only_judge(connection, wish.codebooks, wish.judge) if "judge" in _strata_names(wish) else None


def only_judge(connection: duckdb.DuckDBPyConnection, books: Sequence[str], name: str | None) -> str:
    """The judge that is named, or the only one that rated these codebooks; else UsageError."""
    query = f"""
        SELECT DISTINCT rater FROM counted_ratings
        WHERE rater_kind <> 'human' AND codebook {AMONG}
    """
    judges = sorted(row[0] for row in execute(connection, query, [texts(books)]).fetchall())
    judge = judges[0] if name is None and len(judges) == 1 else name
    if judge not in judges:
        have = ", ".join(judges) or "(no judge has rated these codebooks: coaudit judge)"
        actual = "and none was given" if name is None else f"got {name!r}"
        raise UsageError(f"--judge must be one of {have}, {actual}")
    return str(judge)


def _one_of(option: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise UsageError(f"{option} must be one of {', '.join(choices)}, got {value!r}")
