"""What is to be rated, and by whom: between the store, the ledger and the judges.

The database is open only while trajectories are fetched, some thousand events at a time, never while a
rater works. The ledger is the memory of what was rated: a unit that a rater has rated in the same way before
is not rated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ...schemas import Codebook, Rating, Trajectory, Unit, canonical_json
from ...schemas.codebook import ContextKind
from .. import codebooks
from ..store import Selection, Store, constants, dictionaries, first_row
from ..store.ledgers import samples
from ..store.queries.copies import PARAMETERS_LEFT_OUT
from ..store.queries.groupings import selection_of
from ..units import cut

REST = ("code", "cites", "quote", "error_source", "rationale", "probability", "model", "seed", "error")
"""The fields of a rating in `PriorRating.rest`."""
BATCH = 100
"""Trajectories that are in memory at a time."""
HELD = 5_000
"""Events that are in memory at a time, unless a single trajectory has more."""
Say = Callable[[str], None]


def has_units(store: Store, book: Codebook) -> bool:
    """Whether the store holds anything that a codebook is asked of."""
    query = "SELECT count(*) FROM (SELECT 1 FROM codebook_units WHERE codebook = ? LIMIT 1)"
    with store.reading() as connection:
        return first_row(connection, query, [book.name]) == (1,)


@dataclass(frozen=True)
class Scope:
    """Which units are rated."""

    books: tuple[Codebook, ...]
    context: ContextKind | None = None
    """In place of each codebook's own."""
    include_query: bool = False
    limit: int | None = None
    """At most so many units in this run."""
    retry_errors: bool = False
    repeats: int = 1
    """How often each question is asked; the first answer counts."""
    sample: str | None = None
    """Only units of this sample."""
    sample_units: Mapping[str, frozenset[tuple[str, int | None]]] = field(default_factory=dict)
    """Its units (trajectory, event), by codebook."""
    only: Selection = field(default_factory=Selection)
    """Only units of these trajectories."""

    def of_sample(self, store: Store, name: str | None) -> Scope:
        """The scope within a sample; UsageError where there is none of that name."""
        if name is None:
            return self
        units: dict[str, set[tuple[str, int | None]]] = {}
        for unit in samples.load(store.workspace, name).units:
            units.setdefault(unit.codebook, set()).add((unit.trajectory, unit.event))
        by_book = {book: frozenset(places) for book, places in units.items()}
        return replace(self, sample=name, sample_units=by_book)

    def of_sessions(self, store: Store, conditions: Sequence[tuple[str, str]]) -> Scope:
        """The scope within the trajectories that have these values of fields, tags or outcomes, any of one
        name's; UsageError where there are none."""
        if not conditions:
            return self
        with store.reading(synced=True) as connection:
            return replace(self, only=selection_of(connection, conditions))

    def on(self, books: tuple[Codebook, ...]) -> Scope:
        """The same for these codebooks."""
        return replace(self, books=books)

    def less(self, units: int) -> Scope:
        """The scope that is left after some units."""
        return self if self.limit is None else replace(self, limit=self.limit - units)


@dataclass
class Summary:
    """What a run did; the document of `judge --json`."""

    rated: int = 0
    already: int = 0
    errors: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    reasons: dict[str, int] = field(default_factory=dict)
    """Why ratings failed -> how many."""
    copies: dict[str, int] = field(default_factory=dict)
    """Another rater -> units that have its answer: a model of the same name was asked the same for it."""

    def plus(self, more: Summary) -> Summary:
        """Two runs of a local rater as one."""
        return Summary(
            rated=self.rated + more.rated,
            already=self.already + more.already,
            errors=self.errors + more.errors,
            seconds=round(self.seconds + more.seconds, 3),
        )

    def document(self) -> dict[str, Any]:
        """As `judge --json` prints it: these fields and no others, for programs rely on them."""
        document = asdict(self)
        del document["reasons"], document["copies"]
        return document

    @property
    def reason(self) -> str | None:
        """Why most of what failed did."""
        return max(self.reasons, key=lambda reason: self.reasons[reason], default=None)

    def count(self, ratings: Sequence[Rating]) -> None:
        """One unit's ratings: `rated` with a usable answer, `errors` with a failed one (both may hold)."""
        self.rated += any(r.error is None for r in ratings)
        self.errors += any(r.error is not None for r in ratings)
        for reason in dict.fromkeys(r.error for r in ratings if r.error is not None):
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
        for rating in ratings:
            self.prompt_tokens += rating.prompt_tokens or 0
            self.cached_tokens += rating.cached_tokens or 0
            self.completion_tokens += rating.completion_tokens or 0


@dataclass(frozen=True)
class PriorRating:
    """A rating that the ledger has of one unit and code: what decides whether to ask again, and what a copy
    needs."""

    rater: str
    rater_version: str | None
    unit_hash: str | None
    prompt_hash: str | None
    parameters: str
    failed: bool
    current: bool
    """Whether it is its rater's last word."""
    repeat: int
    label: str | None
    rest: dict[str, Any] = field(compare=False)
    left_out: tuple[str, ...] = ()
    """Parameters that the endpoint did not take."""


PriorRatings = dict[int | None, list[PriorRating]]
"""seq of the unit's first event -> its ratings in the ledger."""


@dataclass(frozen=True)
class Batch:
    """Some trajectories with their earlier ratings under one codebook."""

    book: Codebook
    trajectories: list[Trajectory]
    history: dict[str, PriorRatings]

    def units(self, scope: Scope) -> Iterator[tuple[Trajectory, Unit, list[PriorRating]]]:
        """Each unit in scope, with its earlier ratings as long as its content has not changed."""
        context = scope.context or self.book.context
        book_in_context = self.book.model_copy(update={"context": context})
        for trajectory in self.trajectories:
            history = self.history.get(trajectory.id, {})
            for unit in cut(trajectory, book_in_context, include_query=scope.include_query):
                place = (trajectory.id, unit.event)
                if scope.sample and place not in scope.sample_units.get(self.book.name, ()):
                    continue
                ratings = history.get(unit.event, [])
                yield trajectory, unit, [k for k in ratings if k.unit_hash == unit.hash] if ratings else []


def load_codebooks(
    store: Store, names: Sequence[str], default: Sequence[str] = codebooks.PROCESS
) -> tuple[Codebook, ...]:
    """The codebooks of these names (a name may be a comma-separated list); UsageError names the choices."""
    selection = [name.strip() for text in names for name in text.split(",") if name.strip()]
    return tuple(codebooks.load(n, store.workspace.codebooks) for n in dict.fromkeys(selection or default))


def batches(store: Store, book: Codebook, lists: Iterable[list[Trajectory]]) -> Iterator[Batch]:
    """Trajectories of the store, list by list, with their earlier ratings."""
    for trajectories in lists:
        with store.reading(synced=True) as connection:
            history = prior_ratings(connection, book, [one.id for one in trajectories])
        yield Batch(book, trajectories, history)


def wait_notice(rater: str, say: Say) -> Callable[[str], None]:
    """A callback for the rater's lock: tells which other run holds it."""
    return lambda holder: say(
        f"another run ({holder}) is judging as rater {rater!r} in this workspace; waiting for it to end, "
        "so that nothing is rated twice"
    )


def prior_ratings(connection: Any, book: Codebook, ids: Sequence[str]) -> dict[str, PriorRatings]:
    """Trajectory -> the ratings of its units under this version of a codebook, retracted ones left out."""
    names = constants(ids)
    query = f"""
        SELECT r.trajectory_id, r.event, r.rater, r.rater_version, r.unit_hash, r.prompt_hash, r.parameters,
            r.error, r.label, r.code, r.cites, r.quote, r.error_source, r.rationale, r.probability, r.model,
            r.seed, r.repeat, {PARAMETERS_LEFT_OUT} AS left_out, c.line IS NOT NULL AS current
        FROM ratings r
        LEFT JOIN (
            SELECT ledger, line FROM current_ratings WHERE codebook = ? AND trajectory_id IN ({names})
        ) c ON c.ledger = r.ledger AND c.line = r.line
        WHERE r.codebook = ? AND r.codebook_version = ? AND NOT r.retracted
            AND r.trajectory_id IN ({names})
    """
    by_name: dict[str, PriorRatings] = {}
    for row in dictionaries(connection, query, [book.name, book.name, book.version]):
        rating = PriorRating(
            rater=row["rater"],
            rater_version=row["rater_version"],
            unit_hash=row["unit_hash"],
            prompt_hash=row["prompt_hash"],
            parameters=row["parameters"] or canonical_json({}),
            failed=row["error"] is not None,
            current=row["current"],
            repeat=row["repeat"],
            label=row["label"],
            rest={key: row[key] for key in REST},
            left_out=tuple(name for name in row["left_out"] or () if name),
        )
        by_name.setdefault(row["trajectory_id"], {}).setdefault(row["event"], []).append(rating)
    return by_name
