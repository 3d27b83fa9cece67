"""Groups of trajectories on a page: by what, which of them where there are many, and in which colour."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, pairwise, takewhile
from typing import Any

import altair as alt
import streamlit as st

from ...pipeline.report.tables import free_name
from ...pipeline.store import Selection, Store
from ...pipeline.store.queries.selection import NONE
from ...schemas.text import chartable, shortened
from .. import queries
from ..cache import ask
from .palette import COLOURS, REST, room

Row = dict[str, Any]
FIELDS = ("condition", "task", "setting", "agent_model", "system")
TOP = 20
"""Groups that are shown unless all are asked for: the largest."""
OTHERS = "all others"
PIXELS = 220
"""Room for a group's name beside a chart."""
LETTER = 6.5
"""Pixels of a letter there."""
SIZES = (12, 18, 27)
"""Letters of a name on narrower pages, at which long names are told apart as well."""


def fields(store: Store) -> list[str]:
    """What trajectories can be grouped by: columns and the keys of tags, of which none has a group for each
    of thousands of trajectories."""
    return list(dict.fromkeys((*queries.columns(store, FIELDS), *queries.keys(store))))


def picked(names: Sequence[str]) -> list[str]:
    """Draw a search box and, of many groups, a switch; the groups to show, in their order."""
    names = list(dict.fromkeys(names))
    if len(names) <= 1:
        return names
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    words = left.text_input("Search groups", key="groups", bind="query-params").strip().lower()
    fitting = [name for name in names if words in name.lower()]
    if len(fitting) <= TOP or right.toggle(f"All {len(fitting):,} groups", key="every", bind="query-params"):
        return fitting
    st.text(f"The {TOP} largest of {len(fitting):,} groups.")
    return fitting[:TOP]


def titles(arms: Sequence[Row]) -> dict[tuple[str, str], str]:
    """(System, group) -> its name in a chart: with the system in front where another has a group of that
    name."""
    systems = Counter(row["group"] for row in arms)
    return {
        (row["system"], row["group"]): f"{row['system']} · {row['group']}"
        if systems[row["group"]] > 1
        else row["group"]
        for row in arms
    }


def titled(rows: Sequence[Row], names: Mapping[tuple[str, str], str]) -> list[Row]:
    """The same rows, each group by its name in a chart."""
    return [{**row, "group": names.get((row["system"], row["group"]), row["group"])} for row in rows]


def gathered(
    rows: Sequence[Row], names: Sequence[str], keys: Sequence[str], counts: Sequence[str]
) -> list[Row]:
    """Rows of the groups that are shown, and of all others one for each set of `keys`, `counts` added up.

    Trajectories without a group are a row of their own, and so is a group that is itself named OTHERS.
    """
    visible = {*names, NONE}
    others = free_name(OTHERS, {row["group"] for row in rows})
    selection = [row for row in rows if row["group"] in visible]
    rest: dict[tuple[Any, ...], Row] = {}
    for row in (row for row in rows if row["group"] not in visible):
        one = rest.setdefault(
            tuple(row[key] for key in keys), {**row, "group": others, **dict.fromkeys(counts, 0)}
        )
        for count in counts:
            one[count] += row[count]
    return [*selection, *rest.values()]


def order(names: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """Groups of gathered rows from top to bottom of a chart: those that are shown, then what is none."""
    every = dict.fromkeys((*names, NONE, *(row["group"] for row in rows)))
    return [chartable(name) for name in every]


def axis(names: Sequence[str], pixels: int = PIXELS) -> alt.Axis:
    """An axis of groups, of which long names that begin alike are told apart by what follows; of others the
    beginning and the end are kept, and of those alike in both also where they differ."""
    most = int(pixels / LETTER)
    every = {chartable(name) for name in names}
    long = {name for name in every if len(name) > most}
    common = _common(long)
    start = max(0, common - 4) if len(long) > 1 else 0
    rest = f"'…' + slice(datum.label, {start})" if start else "datum.label"
    whole = f"length(datum.label) > {most} ? {rest} : datum.label" if start else rest
    limit = room(pixels)
    letters = f"floor(({limit.expr}) / {LETTER})"
    label = cut = f"truncate({whole}, {letters}, 'center')"
    texts = {name: f"…{name[start:]}" if start and name in long else name for name in every}
    for size in (*(size for size in SIZES if size < most), most):
        apart = _apart(texts, size)
        # A name alone might be that of something that every object has, such as `constructor`.
        keys = json.dumps({f"={name}": text for name, text in apart.items()})
        own = f"{keys}['=' + datum.label] || {cut}" if apart else cut
        label = f"{letters} >= {size} ? ({own}) : {label}" if apart or label != cut else cut
    return alt.Axis(labelLimit=limit, labelOverlap=False, labelExpr=label)


def _common(names: Collection[str]) -> int:
    """Letters with which all names begin."""
    return sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False)))


def _apart(texts: Mapping[str, str], size: int) -> dict[str, str]:
    """Name -> a label of at most `size` letters that has those at which it begins to differ from another; of
    names whose texts are alike in so many letters from both ends."""
    long = sorted((name for name, text in texts.items() if len(text) > size), key=texts.__getitem__)
    tail = (size - 1) // 2
    ends = {name: (texts[name][: size - 1 - tail], texts[name][-tail:]) for name in long}
    alike = Counter(ends.values())
    # In their order a name has most in common with its neighbours, and with others what all between have.
    shared = [_common((texts[one], texts[other])) for one, other in pairwise(long)]
    return {
        name: _excerpts(
            texts[name], sorted({*accumulate(shared[i:], min), *accumulate(shared[:i][::-1], min)}), size
        )
        for i, name in enumerate(long)
        if alike[ends[name]] > 1
    }


def _excerpts(text: str, points: Sequence[int], size: int) -> str:
    """As much of a text from before each of these points on as fits into `size` letters together."""
    for pieces in range(1, 1 + min(len(points), size // 3)):
        length = (size - pieces - 1) // pieces
        starts: list[int] = []
        for point in points:
            if not starts or point >= starts[-1] + length:
                starts.append(max(0, point - 1))
        if len(starts) <= pieces:
            break
    label = "…".join(text[start : start + length] for start in starts)
    before, after = "…" * (starts[0] > 0), "…" * (starts[-1] + length < len(text))
    return shortened(f"{before}{label}{after}", size)


def colours(by: str = "condition") -> dict[str, str]:
    """Group -> its colour, on every page and under every filter; the largest have one of their own."""
    names = list(dict.fromkeys(row["group"] for row in ask(queries.arms, Selection(), by)))
    fixed = dict(zip(names, COLOURS, strict=False))
    return {name: fixed.get(name, REST) for name in names} | {NONE: REST}


def greys(rows: Sequence[Row], by: str = "condition") -> str:
    """What grey means in a chart of rows where several groups have it: a sentence, or nothing."""
    fixed = colours(by)
    grey = {row[by] for row in rows if fixed.get(row[by], REST) == REST}
    more = (
        f" Grey: {len(grey)} groups beyond the {len(COLOURS)} largest of the workspace; point at a mark for "
    )
    return f"{more}its name." if len(grey) > 1 else ""
