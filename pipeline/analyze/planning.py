"""How many units people must label for intervals of the target width, from the labels there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...annotation.statistics.planning import units_as_before
from ...schemas import Agreement, Codebook, Need, Rate
from ...schemas.metric import Figure
from ..store import Selection, Store
from .agreement import of_codes, people_kappa, with_people
from .matrices import rated_codes
from .matrix import Rated, chosen_books
from .quantities import quantities
from .rates import rates

NO_INTERVAL = "it has no interval yet"


def needs(
    store: Store,
    names: Sequence[str],
    half_width: float,
    *,
    judge: str | None = None,
    only: Selection | None = None,
) -> list[Need]:
    """A row for each rate, mean and kappa of each code that people have labelled; UsageError for an unknown
    codebook or judge.

    Units are those that there must be in all if they are drawn and rated as those before. `half_width` is
    from 0 to 1, of a mean as a share of the range of its labels.
    """
    rows: list[Need] = []
    for book in chosen_books(store, names):
        estimates = [row for row in rates(store, [book.name], judge=judge, only=only) if row.n_human]
        with store.reading() as connection:
            codes = {code.code: code for code in rated_codes(connection, book, only)}
        reach = quantities(book)[0].reach
        for name in dict.fromkeys(row.code for row in estimates):
            own = [row for row in estimates if row.code == name]
            rows += [_of_rate(row, half_width * (reach if row.is_mean else 1)) for row in own]
            if name in codes:  # and no category
                rows += _of_kappas(book, codes[name], own, half_width)
    return rows


def _of_rate(row: Rate, target: float) -> Need:
    units = _units(row.n_human, row, target, row.n_units, row.between_people)
    return Need(
        codebook=row.codebook,
        code=row.code,
        label=row.label,
        figure="mean" if row.is_mean else "rate",
        judge=row.judge,
        value=row.rate,
        low=row.low,
        high=row.high,
        target=target,
        n=row.n_human,
        units=units,
        n_units=row.n_units,
        reason=_reason(row, units, row.n_units - row.n_unclear - row.n_skipped),
    )


def _of_kappas(book: Codebook, code: Rated, estimates: Sequence[Rate], target: float) -> Iterator[Need]:
    """What the kappas of a code need: of each judge of its rates, and of people with each other."""
    coefficients = list(of_codes(code))
    n_units = max(row.n_units for row in estimates)
    for judge in dict.fromkeys(row.judge for row in estimates if row.judge):
        if (row := with_people(coefficients, judge)) is not None:
            yield _of_kappa(book, row, "kappa of the judge and people", target, n_units, judge)
    if (row := people_kappa(coefficients, code.humans)) is not None:
        yield _of_kappa(book, row, "kappa of people", target, n_units)


def _of_kappa(
    book: Codebook, row: Agreement, figure: Figure, target: float, n_units: int, judge: str | None = None
) -> Need:
    units = _units(row.n_units, row, target)
    return Need(
        codebook=book.name,
        code=row.code,
        figure=figure,
        judge=judge,
        value=row.value,
        low=row.low,
        high=row.high,
        target=target,
        n=row.n_units,
        units=units,
        n_units=n_units,
        reason=_reason(row, units, n_units),
    )


def _reason(row: Rate | Agreement, units: int | None, most: int) -> str | None:
    """Why a figure has no number of `units`, or one that is out of reach: `most` can have a label."""
    if units is None:
        return row.reason or NO_INTERVAL
    return f"more than the {most:,} units that can have a label" if units > most else None


def _units(
    n: int, row: Rate | Agreement, target: float, corpus: int | None = None, between_people: float = 0.0
) -> int | None:
    """Units for ± `target`; None without an interval."""
    if row.low is None or row.high is None:
        return None
    return units_as_before(n, (row.high - row.low) / 2, target, corpus, between_people)
