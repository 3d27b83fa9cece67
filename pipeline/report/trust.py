"""How far the judges can be trusted, as tables: agreement (Co-Gym, table 5) and corrected rates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ...annotation.statistics.agreement import RESAMPLES as DRAWS_OF_AGREEMENT
from ...annotation.statistics.crowds import rater_names
from ...annotation.statistics.rates import RESAMPLES as DRAWS_OF_RATES
from ...schemas import GOLD, UNCLEAR, Agreement, Codebook, Need, Rate
from ...schemas.metric import suffix
from .. import codebooks
from ..analyze import agreement
from ..analyze.matrix import chosen_books
from ..store import Selection, Store
from .tables import Cell, Number, Table, count, figure

COEFFICIENTS = {
    "percent_agreement": "Agreement",
    "kappa": "Cohen's κ (mean)",
    "fleiss_kappa": "Fleiss' κ",
    "krippendorff_alpha": "Krippendorff's α",
    "gwet_ac1": "Gwet's AC1",
}
_COLUMN = {
    **dict.fromkeys((*agreement.KAPPAS, "macro_cohen_kappa", *agreement.ON_A_SCALE), "kappa"),
    "intra_rater_alpha": "krippendorff_alpha",
}
"""Coefficient -> its column; of several in one column the last counts: on a scale the quadratic one."""

SHORT = ("Cohen's κ (mean over pairs)", "Fleiss' κ, all raters", "κ of people with each other")
"""Columns of the table of codebooks; the paper has the first two."""

AGREEMENT_METHOD = (
    "Agreement is measured on the units that two raters rated, Cohen's κ on those that both of its raters "
    "did: observed agreement and margins come from the same units, weighted by 1/π where samples took some "
    "with a higher probability π, of several samples by those on which these raters met. Cohen (1960), "
    "Fleiss (1971) for any number of ratings, Krippendorff (2011), Gwet's AC1 (2008). Intervals are from the "
    "posterior of the rating patterns (Dirichlet), or, for units within trajectories and runs of one "
    "instance of a task, from a Bayesian bootstrap of trajectories or instances (Rubin 1981); "
    f"{DRAWS_OF_AGREEMENT:,} draws each."
)
RATES_METHOD = (
    "People's label of a unit is gold if there is one, else the mean of its annotators' labels: a rate is "
    "what one of these people says on average. Rates are post-stratified by the judge's label, or without a "
    "judge the mean of people's labels, with Jeffreys intervals for the finite corpus. Where inclusion is "
    "uneven or units lie within trajectories, they use the difference estimator (Särndal et al. 1992); "
    f"without a judge, Hájek's (1971). Intervals take {DRAWS_OF_RATES:,} draws. A unit that several "
    "samples could draw is weighted by the probability that any does. Labels outside the samples are left "
    "out of rates and reported separately elsewhere."
)
"""How rates are estimated, in sentences with their sources; above, how agreement is."""
RANGE = "Range with unclear"
UNCLEAR_APART = (
    "Units that people found unclear are left out, as if they were like the others; the last column has the "
    "corrected rate if none of them had the code, and if all had (on a scale, were its least or greatest "
    "label)."
)


Agreements = Sequence[tuple[Codebook, list[Agreement]]]
"""Codebooks, each with its coefficients."""


def agreements(store: Store, only: Selection | None = None) -> Agreements:
    """Every coefficient of every codebook that has ratings."""
    books = chosen_books(store, ())
    return [(book, agreement.of_workspace(store, [book.name], only=only)) for book in books]


def tables(store: Store, books: Agreements, corrected: Iterable[Rate]) -> tuple[Table, ...]:
    """Agreement by codebook, the corrected rates, and agreement by code for the appendix."""
    query = "SELECT DISTINCT rater FROM counted_ratings WHERE rater_kind = 'human'"
    with store.reading() as connection:
        people = frozenset(name for (name,) in connection.execute(query).fetchall())
    rows_of_books = tuple(_codebook(book, rows, people) for book, rows in books if rows)
    every = agreement_table([row for _, rows in books for row in rows])
    return codebook_table(rows_of_books), rate_table(corrected), replace(every, appendix=True)


def codebook_table(rows: tuple[tuple[Cell, ...], ...]) -> Table:
    """Table 5 of the Co-Gym paper: a row for each codebook."""
    return Table(
        name="agreement",
        title="Agreement (Co-Gym, table 5)",
        caption="The judge that shares most units with people (none of its earlier versions), and people "
        "with each other on the codes that it rated; without people, judges. With several codes, each mean "
        "is over the codes where that kappa is defined and has no interval, nor has one whose pairs share "
        "few units; Codes counts those where any is defined. On a scale, Cohen's κ has quadratic weights; "
        "Fleiss' κ ignores the order. Other judges, other coefficients and each code are in the appendix.",
        columns=("Codebook", "Codes", "Raters", *SHORT, "Units"),
        rows=rows,
        heads=3,
        empty="No unit was rated by two raters: `coaudit judge`, then labels by people.",
    )


def _codebook(book: Codebook, rows: list[Agreement], people: Collection[str]) -> tuple[Cell, ...]:
    """A codebook's row, for the raters whose joint kappa rests on most units, a judge with people first."""
    names = {code.code for code in book.codes}
    own = [
        row
        for row in rows
        if row.code in names and not agreement.is_outside_samples(row) and GOLD not in row.raters
    ]
    joint = [row for row in own if row.coefficient == "fleiss_kappa"]
    mixed = {row.raters for row in joint if row.raters[0] not in people and row.raters[1] in people}
    earlier = earlier_versions({name for row in joint for name in row.raters})
    sets = sorted(
        {row.raters for row in joint},
        key=lambda who: (who not in mixed, not earlier.isdisjoint(who), -_most(joint, who), who),
    )
    if not sets:
        return (book.name, str(len(names)), "–", *("" for _ in SHORT), "")
    who = sets[0]
    kappas = _kappas(own, who)
    every = [row for row in joint if row.raters == who]
    codes = {row.code for row in every}
    others = [row for row in _kappas(own, who[1:]) if row.code in codes] if who in mixed else []
    # A joint kappa can be defined where no pair's is: pairs share fewer units, perhaps all with one label.
    defined = len({row.code for row in (*kappas, *every) if row.value is not None})
    return (
        book.name,
        f"{defined} of {len(names)}" if len(names) > 1 else "1",
        rater_names(who, " · "),
        _mean(kappas),
        _mean(every),
        _mean(others),
        count(_most(joint, who)),
    )


def earlier_versions(raters: Collection[str]) -> frozenset[str]:
    """Those that are called NAME (VERSION) beside one called NAME."""
    return frozenset(name for name in raters if name.endswith(")") and name.rpartition(" (")[0] in raters)


def _kappas(rows: list[Agreement], raters: tuple[str, ...]) -> list[Agreement]:
    """Cohen's kappa of these raters, one a code; on a scale the quadratic one."""
    own = (row for row in rows if row.raters == raters and _COLUMN.get(row.coefficient) == "kappa")
    return list({row.code: row for row in own}.values())


def _most(rows: list[Agreement], raters: tuple[str, ...]) -> int:
    return max((row.n_units for row in rows if row.raters == raters), default=0)


def _mean(rows: list[Agreement]) -> Cell:
    """One code's coefficient with its interval, or the mean of several codes' defined ones without."""
    if len(rows) == 1:
        return _coefficient(rows[0])
    values = [row.value for row in rows if row.value is not None]
    if not values:
        return Number(None, reason="undefined on every code") if rows else ""
    return Number(sum(values) / len(values))


def agreement_table(rows: Iterable[Agreement]) -> Table:
    """A row for each code and set of raters, a column for each coefficient."""
    every = list(rows)
    titles = codebooks.titles((row.codebook, row.code) for row in every)
    by_name: dict[tuple[str, tuple[str, ...], str], dict[str, Agreement]] = {}
    for row in every:
        name = _COLUMN.get(row.coefficient, row.coefficient)
        if name in COEFFICIENTS:
            key = titles[row.codebook, row.code], row.raters, row.population or "all"
            by_name.setdefault(key, {})[name] = row
    sets = {key: row for key, row in by_name.items() if len(row) > 1 or "kappa" not in row}
    lines = [
        (
            code,
            rater_names(raters, " · "),
            *(_coefficient(row.get(n)) for n in COEFFICIENTS),
            _units(row),
            with_left_out(population, max(one.n_left_out for one in row.values())),
        )
        for (code, raters, population), row in sets.items()
    ]
    return Table(
        name="agreement_codes",
        title="Agreement, code by code",
        caption="People with people, each judge with people, judges with judges, and a judge asked again "
        "with itself. With a judge, Cohen's κ is the mean over the judge–person pairs. On a scale it has "
        "quadratic weights; α uses the order, the other coefficients do not. A mean of kappas has no "
        "interval where pairs share few units. Intervals are from the posterior of the "
        "rating patterns, or, for units within trajectories and runs of one instance, from a bootstrap of "
        "these. κ and α are undefined if only one label was used. If not every unit is labelled twice, "
        "people share fewer units with each other than with a judge: the last column says which.",
        columns=("Code", "Raters", *COEFFICIENTS.values(), "Units", "Which units"),
        rows=tuple(lines),
        heads=2,
        empty="No unit was rated by two raters: `coaudit judge`, then labels by people.",
    )


def with_left_out(population: str, number: int) -> str:
    """Which units a coefficient is of, and how many more the raters were asked about."""
    return f"{population}; {number:,} more left out: unclear, or no answer" if number else population


def _coefficient(row: Agreement | None) -> Cell:
    if row is None:
        return ""
    percent = row.coefficient == "percent_agreement"
    return Number(row.value, row.low, row.high, None, 0, row.reason, percent=percent)


def _units(row: dict[str, Agreement]) -> Number:
    return count(max(one.n_units for one in row.values()))


def rate_table(rows: Iterable[Rate]) -> Table:
    """The judge's own rate beside the one that people's labels correct; only where people labelled."""
    every = [row for row in rows if row.n_human]
    titles = codebooks.titles((row.codebook, row.code) for row in every)
    open_ = open_answers(every)
    labelled = tuple(_rate(row, titles[row.codebook, row.code], open_) for row in every)
    return Table(
        name="rates",
        title="Corrected rates",
        caption="How common each code is: by the judge's labels, and corrected by people's labels of some "
        "units. Of more than two labels each has a row, and of a scale the mean. Units are all that the "
        "corrected rate is of: those that the judge was asked about and that the samples could take. Of "
        "these, Judged have a usable answer of the judge, and Labelled one of people. Categories are unions "
        "of their codes." + (" " + UNCLEAR_APART if UNCLEAR in open_ else ""),
        columns=(
            *("Code", "Judge", "Judge's rate", "Corrected rate", "Estimator", "Units", "Judged", "Labelled"),
            *(name.capitalize() for name in open_),
            *([RANGE] if UNCLEAR in open_ else []),
        ),
        rows=labelled,
        heads=2,
        empty="Nobody has labelled yet, so the error of a judge's own rates is unknown: `coaudit sample`.",
    )


def needs_table(rows: Sequence[Need]) -> Table:
    """How many units people must label for each figure of some codes."""
    titles = codebooks.titles((row.codebook, row.code) for row in rows)
    return Table(
        name="needs",
        title="How many more labels",
        caption="By each figure's own interval, so judge, strata and clusters are in it: if more units are "
        "drawn and rated as those before. For kappa of people, two label each unit.",
        columns=("Code", "Figure", "Judge", "Value", "Target", "Labelled", "Needed", "More", "Note"),
        rows=tuple(_need(row, titles[row.codebook, row.code]) for row in rows),
        heads=3,
        empty="Nobody has labelled a unit of a sample yet: `coaudit sample`.",
    )


def _need(row: Need, code: str) -> tuple[Cell, ...]:
    is_mean, is_share = row.figure == "mean", row.figure == "rate"
    return (
        code + suffix(row.label, is_mean=False),
        row.figure,
        row.judge or "–",
        Number(row.value, row.low, row.high, percent=is_share, mean=is_mean),
        f"± {figure(row.target, percent=is_share)}",
        count(row.n),
        Number(row.units, plain=True),
        count(row.more),
        row.reason or "",
    )


def open_answers(rows: Iterable[Rate]) -> dict[str, Callable[[Rate], int]]:
    """How people left units open (`unclear`, `skipped`) -> the number of such units of a rate. Ways that
    occur in no rate are left out."""
    every = list(rows)
    ways: dict[str, Callable[[Rate], int]] = {
        UNCLEAR: lambda row: row.n_unclear,
        "skipped": lambda row: row.n_skipped,
    }
    return {word: units for word, units in ways.items() if any(map(units, every))}


def no_rate(row: Rate) -> str | None:
    """Why a judge has no rate of its own; None where it has one."""
    if row.judge_rate is not None:
        return None
    if row.judge is None:
        return "no judge"
    return "asked about units of samples alone" if row.n_judged else "no usable answer"


def _rate(row: Rate, code: str, open_: Mapping[str, Callable[[Rate], int]]) -> tuple[Cell, ...]:
    percent = not row.is_mean
    return (
        code + row.suffix,
        row.judge or "people alone",
        Number(row.judge_rate, n=row.n_judged, percent=percent, reason=no_rate(row)),
        Number(row.rate, row.low, row.high, reason=row.reason, percent=percent, mean=row.is_mean),
        (row.estimator or "–").replace("_", " "),
        count(row.n_units),
        count(row.n_judged),
        count(row.n_human),
        *(count(units(row)) for units in open_.values()),
        *([_range(row)] if UNCLEAR in open_ else []),
    )


def _range(row: Rate) -> str:
    """The rates that unclear units could make of it, as an interval."""
    ends = Number(row.rate, row.rate_if_unclear_absent, row.rate_if_unclear_present, percent=not row.is_mean)
    return ends.interval if row.n_unclear else ""
