"""How far the judges can be trusted, as tables: agreement (Co-Gym, table 5) and corrected rates."""

from __future__ import annotations

from collections.abc import Iterable

from ...schemas import Agreement, Rate
from ..analyze import agreement, rates
from ..store import Store
from .tables import Cell, Number, Table, count

COEFFICIENTS = {
    "percent_agreement": "Agreement",
    "kappa": "Cohen's κ (mean)",
    "fleiss_kappa": "Fleiss' κ",
    "krippendorff_alpha": "Krippendorff's α",
    "gwet_ac1": "Gwet's AC1",
}
_COLUMN = {
    "cohen_kappa": "kappa",
    "mean_cohen_kappa": "kappa",
    "mean_judge_human_kappa": "kappa",
    "macro_cohen_kappa": "kappa",
    "intra_rater_alpha": "krippendorff_alpha",
}

METHODS = (
    "Agreement is measured on the units that two raters rated: observed agreement and margins come from "
    "the same ones. Cohen (1960), Fleiss (1971) for any number of ratings, Krippendorff (2011), Gwet's "
    "AC1 (2008). Intervals are those of the posterior of the rating patterns (Dirichlet), or of a "
    "Bayesian bootstrap of trajectories (Rubin 1981) where units are smaller.",
    "A unit's label by people is gold's where there is one, else the mean of its annotators' labels: a "
    "rate is what one of these people says on average. Rates are post-stratified by the judge's label "
    "with Jeffreys intervals for the finite corpus; where inclusion is uneven or units lie within "
    "trajectories by the difference estimator (Särndal et al. 1992), without a judge by Hájek's (1971). A "
    "unit that several samples could take is weighed by the probability that any does; labels outside the "
    "samples are left out of rates and stand apart elsewhere.",
)
"""How agreement and rates are estimated, in sentences with their sources."""


def tables(store: Store) -> tuple[Table, ...]:
    """Agreement and rates of every codebook that has ratings."""
    return agreement_table(agreement.of_workspace(store)), rate_table(rates.rates(store))


def agreement_table(rows: Iterable[Agreement]) -> Table:
    """A row for each code and set of raters, a column for each coefficient."""
    by_name: dict[tuple[str, tuple[str, ...], str], dict[str, Agreement]] = {}
    for row in rows:
        name = _COLUMN.get(row.coefficient, row.coefficient)
        if name in COEFFICIENTS:
            by_name.setdefault((row.code, row.raters, row.population or "all"), {})[name] = row
    whole = {key: row for key, row in by_name.items() if len(row) > 1 or "kappa" not in row}
    lines = [
        (code, " · ".join(raters), *(_coefficient(row.get(n)) for n in COEFFICIENTS), _units(row), population)
        for (code, raters, population), row in whole.items()
    ]
    return Table(
        name="agreement",
        title="Agreement (Co-Gym, table 5)",
        caption="People with people, each judge with people, judges with judges, a judge asked again with "
        "itself. Cohen's κ is the mean over the judge–person pairs where a judge takes part. Intervals: "
        "bootstrap over trajectories. Undefined where only one label was used. People meet on fewer units "
        "than a judge meets them on where not every unit is labelled twice: the last column says which.",
        columns=("Code", "Raters", *COEFFICIENTS.values(), "Units", "Which units"),
        rows=tuple(lines),
        heads=2,
        empty="No unit was rated by two raters: `coaudit judge`, then labels by people.",
    )


def _coefficient(row: Agreement | None) -> Cell:
    if row is None:
        return ""
    percent = row.coefficient == "percent_agreement"
    return Number(row.value, row.low, row.high, None, 0, row.reason, percent=percent)


def _units(row: dict[str, Agreement]) -> Number:
    return count(max(one.n_units for one in row.values()))


def rate_table(rows: Iterable[Rate]) -> Table:
    """The judge's own rate beside the one that people's labels correct; only where people labelled."""
    labelled = tuple(_rate(row) for row in rows if row.n_human)
    return Table(
        name="rates",
        title="Corrected rates",
        caption="How common each code is: what the judge says of all units, and what that becomes when "
        "people's labels of some of them correct it. Categories are unions of their codes.",
        columns=("Code", "Judge", "Judge's rate", "Corrected rate", "Estimator", "Labelled", "Judged"),
        rows=labelled,
        heads=2,
        empty="Nobody has labelled yet, so how far a judge's own rates are off is unknown: `coaudit sample`.",
    )


def _rate(row: Rate) -> tuple[Cell, ...]:
    return (
        row.code,
        row.judge or "people alone",
        Number(row.judge_rate, n=row.n_judged, percent=True, reason="no judge"),
        Number(row.rate, row.low, row.high, reason=row.reason, percent=True),
        row.estimator or "–",
        count(row.n_human),
        count(row.n_judged),
    )
