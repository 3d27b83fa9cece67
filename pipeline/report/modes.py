"""Table 4 of the Co-Gym paper: how often each failure mode was found, and what people make of it. The same of
other codebooks of trajectories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...annotation.statistics.crowds import rater_names
from ...schemas import Codebook
from .. import codebooks
from ..analyze import failures as findings
from ..analyze import rates
from ..store import Selection, Store
from ..store.queries.selection import name_of
from .names import group_name
from .tables import Number, Table, filter_of, free_name

ALL = ("All", "All together")
"""Names for the column of all groups together, in front where there are several; the first that is no
group's name is used, else `All together (2)`."""
ANY = " (any)"
"""How the name of a category's row ends."""
Place = tuple[str, bool, tuple[str, ...]]
"""A code or category, whether it is a category (one may have a code's name), and the group."""
_NAMES = ("Code", "Name")
_UNION = "A category is the union of its modes, not their sum, over trajectories with an answer to each. "
_UNEVEN = (
    " The sample took some trajectories likelier than others: these are the shares of those that it took; "
    "`coaudit rates` has the corpus'."
)


def failures(
    store: Store,
    only: Selection | None = None,
    *,
    codebook: str = findings.FAILURES,
    rater: str | None = None,
    by: Sequence[str] = ("setting", "condition"),
    correct: bool = True,
) -> Table:
    """Table 4: the share of trajectories in which a rater (the first one) found each mode, by group.

    Groups of several systems that have one name stand apart, each with its system in front. With `correct`,
    a judge's rates also carry what people's labels, where there are any, make of them.
    """
    book = codebooks.load(codebook, store.workspace.codebooks)
    who = findings.raters(store, codebook, only)
    rater = rater or (who[0]["rater"] if who else None)
    by, shares = _within_systems(store, codebook, by, only)
    shares = [s for s in shares if s.rater == rater]
    by_place = {_place(s): s for s in shares}
    corrected = _corrected_rates(store, book, who, rater, by, only) if correct else {}
    groups = sorted({s.group for s in shares})
    names = {group: group_name(group, groups) for group in groups}
    heads_in_use = set(names.values())
    total = ALL[0] if ALL[0] not in heads_in_use else free_name(ALL[-1], heads_in_use)
    if len(groups) > 1:
        shares = [s for s in findings.shares(store, codebook=codebook, only=only) if s.rater == rater]
        by_place |= {_place(s): s for s in shares}
        corrected |= _corrected_rates(store, book, who, rater, (), only) if correct else {}
        groups = [(), *groups]
    cells = {
        place: _share(share, codebook, by if share.group else (), corrected.get(place))
        for place, share in by_place.items()
    }
    heads = ("Code", "Failure mode", "Usual source") if any(c.error_source for c in book.codes) else _NAMES
    rows = [
        (*head[: len(heads)], *(cells.get((head[0], is_category, group), "") for group in groups))
        for is_category, head in _heads(book)
    ]
    others = [w["rater"] for w in who if w["rater"] != rater]
    elsewhere = ": what they make of it stands under “Corrected rates”" if corrected else ""
    caveat = _UNEVEN if rater and findings.is_uneven(store, rater, codebook) else ""
    beside = f" Also rated by {rater_names(others, ', ')}, not shown here." if others else ""
    return Table(
        name="failures",
        title="Failure modes (Co-Gym, table 4)" if codebook == findings.FAILURES else book.title,
        caption=f"Share of trajectories in which {rater or 'a rater'} found the mode, with its 95 % "
        f"interval. {_UNION if book.categories else ''}Not corrected by people's labels{elsewhere}.{caveat}"
        f"{beside}",
        columns=(*heads, *(names.get(group) or total for group in groups)),
        rows=tuple(rows) if shares else (),
        heads=len(heads),
        shaded=True,
        empty=f"Nothing is rated with the codebook {codebook}: `coaudit judge --codebook {codebook}`.",
    )


def _within_systems(
    store: Store, codebook: str, by: Sequence[str], only: Selection | None
) -> tuple[Sequence[str], list[findings.Share]]:
    """The shares by group, and what defines the groups: the system as well, where several have one of the
    same name."""
    if not by or "system" in by:
        return by, findings.shares(store, by=by, codebook=codebook, only=only)
    within = findings.shares(store, by=("system", *by), codebook=codebook, only=only)
    groups = {share.group for share in within}
    if len({group[1:] for group in groups}) < len(groups):
        return ("system", *by), within
    return by, [replace(share, group=share.group[1:]) for share in within]


def _heads(book: Codebook) -> Iterator[tuple[bool, tuple[str, str, str]]]:
    """Code, name and usual source of each category (True), and of its modes below it; then those of none."""
    for category in (*book.categories, None):
        if category is not None:
            yield True, (category.category, category.name + ANY, "")
        for code in book.codes:
            if code.category == (category and category.category):
                yield False, (code.code, code.name, code.error_source or "")


def _place(share: findings.Share) -> Place:
    return share.code, share.category is None, share.group


def _corrected_rates(
    store: Store,
    book: Codebook,
    who: list[dict[str, Any]],
    rater: str | None,
    by: Sequence[str],
    only: Selection | None,
) -> dict[Place, Number]:
    """The corrected rates of a judge, where people labelled; those of categories stand behind all codes'."""
    kinds = {row["rater"]: row["kind"] for row in who}
    if rater is None or kinds[rater] == "human" or "human" not in kinds.values():
        return {}
    codes, rows = {code.code for code in book.codes}, dict[Place, Number | None]()
    for row in rates.rates(store, [book.name], by=by, judge=rater, only=only):
        group = tuple(map(name_of, (row.group or {}).values()))
        is_category = row.code not in codes or (row.code, False, group) in rows
        number = Number(row.rate, row.low, row.high, row.n_human, reason=row.reason, percent=True)
        rows[row.code, is_category, group] = number if row.n_human else None
    return {place: number for place, number in rows.items() if number is not None}


def _undefined_reason(share: findings.Share) -> str:
    if share.category is None:
        return "no trajectory has an answer to all of its modes"
    return "unclear or failed in every trajectory"


def _share(
    share: findings.Share, codebook: str, by: Sequence[str], corrected: Number | None = None
) -> Number:
    reason = None if share.n else _undefined_reason(share)
    of = [filter_of(name, value) for name, value in zip(by, share.group, strict=True)]
    of += [("code", share.code), ("codebook", codebook), ("found_by", share.rater)]
    return Number(
        share.rate,
        *share.interval,
        share.n,
        share.missing,
        reason,
        percent=True,
        corrected=corrected,
        of=tuple(of),
    )
