"""Compare: two groups on every mode and metric, the largest difference of its kind in front."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from ...pipeline import codebooks
from ...pipeline.analyze import compare, failures, rates
from ...pipeline.analyze.totals import OUTCOME
from ...pipeline.report import Number, Table
from ...pipeline.report.names import metric_name
from ...pipeline.report.tables import PERCENT, Cell, filter_of
from ...pipeline.store import Selection, Store
from ...pipeline.store.queries.selection import COLUMNS, NONE, name_of
from ...pipeline.systems import OF_ONE
from ...schemas.metric import MEAN, without_suffix
from .. import queries
from ..cache import ask
from ..drawing import choices, figures
from ..sidebar import address
from . import beside

Row = dict[str, Any]
Own = Mapping[tuple[str, str, str, str, str], tuple[float | None, int]]
"""(System, codebook, code, rater, group) -> that rater's own share of units with the code, of how many."""
PARTIES = (" of human", " of agent")
"""Ends the name of a metric that each kind of party has for itself."""
HOLDS = "Where p is below .05 although the interval contains 0, the interval also allows for unseen values."
MANY = 5_000
"""Trajectories from which on a comparison waits to be asked for."""


def show(only: Selection) -> None:
    """Draw the page."""
    st.title("Compare")
    fields = ask(comparable, only)
    if not fields:
        st.info("Nothing to compare: run `coaudit ingest PATH`; `--tag version=…` tells versions apart.")
        return
    one, two, three = st.columns(3)
    by = choices.one(one, "By", fields, key="by")
    arms = ask(queries.arms, only, by)
    first = choices.one(two, "A", _firsts(arms), key="a")
    second = choices.one(three, "B", _others(arms, first), key="b")
    if beside.wanted():
        beside.show(only, by, (first, second))
        return
    total = sum(row["trajectories"] for row in arms if row["group"] in (first, second))
    slow = f"Compare {total:,} trajectories (takes a while)"
    if total <= MANY or st.toggle(slow, key="go", bind="query-params"):
        _tables(only, by, (first, second))


def _tables(only: Selection, by: str, pair: tuple[str, str]) -> None:
    """All differences; each leads to the sessions of both groups beside each other."""

    def target(cell: Number) -> str | None:
        if not cell.of:
            return None
        if not cell.signed:
            return figures.sessions(cell)
        return address("compare", by=by, a=pair[0], b=pair[1], **dict(cell.of))

    rows = ask(compare.compare, by, pair=pair, cluster=_cluster(only), only=only)
    books = sorted({row["question"] for row in rows if row["question"] != compare.METRICS})
    own = ask(raw, by, only, books)
    metrics = [row for row in rows if row["question"] == compare.METRICS]
    codes = [row for row in rows if row["question"] != compare.METRICS]
    raters = sorted({row["rater"] or "people" for row in codes})
    who = choices.some(st, "Found by", raters, key="raters", placeholder="everybody")
    codes = [row for row in codes if not who or (row["rater"] or "people") in who]
    figures.table(coded(codes, by, own, ask(names)), pictures=True, target=target)
    figures.table(measured(metrics, by), pictures=True, target=target)


def _cluster(only: Selection) -> str | None:
    """What counts as one observation, asked where people took part in several sessions."""
    number, name = ask(compare.repeated_people, only=only)
    if not number:
        return None
    several = f"{number:,} took part in several, such as {name}"
    label = f"Count the sessions of one person as one observation ({several})"
    return compare.PERSON if st.toggle(label, key="person", bind="query-params") else None


def _pairs(rows: Sequence[Row]) -> str:
    is_person = any(row.get("cluster") == compare.PERSON for row in rows)
    return f"{'People who were in both' if is_person else 'Instances that both ran'} are paired."


def comparable(store: Store, only: Selection) -> list[str]:
    """The columns and tags by which some system has two groups, condition first."""
    columns = ("condition", *(name for name in COLUMNS if name != "condition"))
    fields = dict.fromkeys((*queries.columns(store, columns), *queries.keys(store)))
    return [by for by in fields if _firsts(queries.arms(store, only, by))]


def _firsts(arms: Sequence[Row]) -> list[str]:
    """The groups of systems that have several, large ones first."""
    groups = Counter(row["system"] for row in arms)
    return list(dict.fromkeys(row["group"] for row in arms if groups[row["system"]] > 1))


def _others(arms: Sequence[Row], first: str) -> list[str]:
    """The groups of the same systems that one can be held against, large ones first."""
    systems = [row["system"] for row in arms if row["group"] == first]
    candidates = (row["group"] for system in systems for row in arms if row["system"] == system)
    return list(dict.fromkeys(name for name in candidates if name != first))


def raw(store: Store, by: str, only: Selection, books: Sequence[str]) -> Own:
    """(System, codebook, code, rater, group) -> that group's own rate and number of units. Groups of several
    systems may have one name."""
    keys = (by,) if by == "system" else ("system", by)
    own: dict[tuple[str, str, str, str, str], tuple[float | None, int]] = {}
    for book in books:
        shares = [row for row in failures.shares(store, by=keys, codebook=book, only=only) if row.n]
        for share in shares:
            if share.category is not None:
                system = NONE if by == "system" else share.group[0]
                own[system, book, share.code, share.rater, share.group[-1]] = share.rate, share.n
        for row in rates.rates(store, [book], by=keys, only=only) if not shares else ():  # or several labels
            names = [name_of(value) for value in (row.group or {}).values()]
            system = NONE if by == "system" else names[0]
            place = system, book, row.code + row.suffix, row.judge or "people", names[-1]
            own[place] = row.judge_rate, row.n_judged
    return own


def names(store: Store) -> dict[tuple[str, str], tuple[str, bool]]:
    """Codebook and code -> the code's name, and whether it is one of whole trajectories."""
    query = "SELECT name, code, code_name, unit = 'trajectory' FROM codebooks"
    with store.reading() as connection:
        rows = connection.execute(query).fetchall()
    return {(book, code): (name, is_whole) for book, code, name, is_whole in rows}


def _by_size(rows: Sequence[Row]) -> list[Row]:
    """The largest differences first, those with an interval before those of too few sessions for one, and
    those of shares before those of means, each of which has a scale of its own."""

    def order(row: Row) -> tuple[Any, ...]:
        effect, metric = row["effect"], row["metric"]
        return metric.endswith(MEAN), effect is None, row["low"] is None, -abs(effect or 0), metric

    return sorted(rows, key=order)


def coded(
    rows: Sequence[Row],
    by: str,
    own: Own,
    titles: Mapping[tuple[str, str], tuple[str, bool]],
) -> Table:
    """Modes and other codes; a judge's own share beside the corrected one."""
    ranked = _by_size(rows)
    codes = codebooks.titles((str(row["question"]), without_suffix(str(row["metric"]))) for row in rows)
    table = Table(
        name="compared_codes",
        title="Failure modes and other codes",
        caption="The difference is A minus B with its 95 % interval, for shares in percentage points; where "
        "people labelled a code, it is between corrected rates (on a scale, means), and its n counts their "
        "labels. p is adjusted by Holm's method, over one codebook. Click a share of sessions for these, a "
        "difference for those of both groups; shares of utterances and steps have none. " + HOLDS,
        columns=("Code", "Name", "Found by", *_heads(rows), "Adjusted p"),
        rows=tuple(_code_row(row, by, own, titles, codes) for row in ranked),
        heads=3,
        empty="No code is rated in both: run `coaudit judge --codebook failures`.",
    )
    return _with_systems(table, ranked)


def _with_systems(table: Table, rows: Sequence[Row]) -> Table:
    """The table of these rows, with a column of systems in front where they are of several."""
    systems = [name_of(row["system"]) for row in rows]
    if len(set(systems)) < 2:
        return table
    lines = tuple((system, *line) for system, line in zip(systems, table.rows, strict=True))
    return replace(table, columns=("System", *table.columns), rows=lines, heads=table.heads + 1)


def _of_system(row: Row) -> tuple[tuple[str, str], ...]:
    """The filter that leaves out sessions of other systems, whose groups may have the same name."""
    return (filter_of("system", row["system"]),) if row["system"] is not None else ()


def _code_row(
    row: Row,
    by: str,
    own: Own,
    titles: Mapping[tuple[str, str], tuple[str, bool]],
    codes: Mapping[tuple[str | None, str], str],
) -> tuple[Cell, ...]:
    book, metric, rater = str(row["question"]), str(row["metric"]), row["rater"] or "people"
    name, is_whole = titles.get((book, metric), ("", False))
    share = not metric.endswith(MEAN)
    # Only a code of sessions that is present or absent has some of its own: labels and means are of all.
    finding = _of_system(row)
    if is_whole:
        by_whom = ("found_by", str(row["rater"])) if row["rater"] else ("kind", "human")
        finding += (("code", metric), ("codebook", book), by_whom)
    cells, sizes = [], row["sizes"] or (None, None)
    for group, value, size in zip(row["groups"], (row["first"], row["second"]), sizes, strict=True):
        rate, n = own.get((name_of(row["system"]), book, metric, rater, group), (None, 0))
        of = (filter_of(by, group), *finding)
        if not row["basis"].startswith("corrected"):
            cells.append(_side(value, row["reason"], n=size, percent=share, of=of))
            continue
        number = Number(value, percent=share)
        cells.append(_side(rate, "not rated", n=n, percent=share, of=of, mark=" → " + number.text))
    code = without_suffix(metric)
    title, _ = titles.get((book, code), ("", False))
    is_told = row["basis"].startswith(compare.JUDGE_ONLY) or row["basis"].endswith(compare.WEIGHTED)
    who = f"{rater}, {row['basis']}" if is_told else rater
    return (
        codes[book, code] + metric.removeprefix(code),
        name or title,
        who,
        *cells,
        _difference(row, finding, percent=share),
        _p(row),
    )


def _read(metric: str) -> tuple[str, str, str]:
    """A compared metric's name, its scoring and whose it is; an outcome's name may hold anything."""
    if metric.startswith(OUTCOME):
        return metric, "", ""
    party = next((party for party in PARTIES if metric.endswith(party)), "")
    name, _, scoring = metric.removesuffix(party).partition("/")
    return name, scoring, party.removeprefix(" of ")


def measured(rows: Sequence[Row], by: str) -> Table:
    """Process and outcome metrics."""
    ranked, lines = _by_size(rows), list[tuple[Cell, ...]]()
    for row in ranked:
        name, scoring, party = _read(row["metric"])
        # Of each party a session has a value of its own; a reward depends on λ, and lists know none.
        order = () if party or row["definition"] else _order(name, row["rater"])
        share, order = name in PERCENT, _of_system(row) + order
        values = zip(row["groups"], (row["first"], row["second"]), row["sizes"], strict=True)
        cells = (
            _side(v, row["reason"], n=n, percent=share, of=(filter_of(by, group), *order))
            for group, v, n in values
        )
        title = metric_name(name, scoring or row["definition"], party or None)
        lines.append((title, _rated_by(row), *cells, _difference(row, order, percent=share), _p(row)))
    table = Table(
        name="compared_metrics",
        title="Process and outcome",
        caption="The difference is A minus B with its 95 % interval, for shares in percentage points. "
        f"{_pairs(rows)} p is adjusted by Holm's method, over all metrics. " + HOLDS,
        columns=("Metric", "Rated by", *_heads(rows), "Adjusted p"),
        rows=tuple(lines),
        heads=2,
        empty="Nothing is measured in both.",
    )
    return _with_systems(table, ranked)


def _rated_by(row: Row) -> str:
    """Whose ratings a metric rests on; of who answered some units alone, that it is estimated from those."""
    estimated = "" if row["basis"] == compare.MEASURED else str(row["basis"])
    return ", ".join(filter(None, (row["rater"], estimated)))


def _order(metric: str, rater: str | None) -> tuple[tuple[str, str], ...]:
    """Parameters of an address that list sessions by a metric; not by one of a kind of party, which a
    session may have twice."""
    return (("sort", OF_ONE.get(metric, metric)), *((("found_by", rater),) if rater else ()))


def _heads(rows: Sequence[Row]) -> tuple[str, ...]:
    first, second = rows[0]["groups"] if rows else ("A", "B")
    return (f"A: {first}", f"B: {second}", "Difference")


def _side(value: float | None, reason: str | None, **more: Any) -> Number:
    """One group's value as a cell; without a value the row's reason, which may be why there is no test."""
    return Number(value, reason=reason if value is None else None, **more)


def _difference(row: Row, of: tuple[tuple[str, str], ...], *, percent: bool) -> Number:
    """A minus B, with its interval; `of` says which sessions show it."""
    own = Number(row["effect"], row["low"], row["high"], row["n"], reason=row["reason"])
    mean = row["metric"].endswith(MEAN)
    return replace(own, percent=percent, mean=mean, signed=True, of=of)


def _p(row: Row) -> str:
    p = row["p_value"] if row["p_adjusted"] is None else row["p_adjusted"]
    if p is None:
        return "no test: too few" if "too few" in (row["reason"] or "") else "–"
    return "< .001" if p < 0.001 else f"{p:.3f}"
