"""Two groups' sessions with a code or by a metric, and two of them beside each other."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from ...pipeline.errors import UsageError
from ...pipeline.report.names import metric_name
from ...pipeline.report.transcript import beside as lined
from ...pipeline.report.transcript import draw, pins, read
from ...pipeline.report.transcript.read import Replay
from ...pipeline.store import Selection
from ...pipeline.store.queries.selection import COLUMNS
from ...schemas.text import visible
from .. import triage
from ..cache import ask
from ..drawing import lists, markup, scripts
from ..sidebar import address

Row = dict[str, Any]
SIDES = ("left", "right")
KEPT = ("by", "a", "b", *triage.PLACE, "sort", "by_time", *SIDES)
"""What the address of this view holds: it is the permalink of two sessions."""
LISTED = 8
SHOWN = ("id", "native_id", "task", "found", "outcome", "n_events", "metric", "value")


def wanted() -> bool:
    """Whether the address asks for sessions rather than for all differences."""
    return any(name in st.query_params for name in ("code", "sort", "by_time", *SIDES))


def show(only: Selection, by: str, groups: tuple[str, str]) -> None:
    """Draw the sessions of both groups, and one of each beside the other."""
    st.html(
        markup.link(
            _place(**dict.fromkeys((*triage.PLACE, "sort", *SIDES))),
            "← All differences",
        )
    )
    code, metric = st.query_params.get("code"), st.query_params.get("sort")
    both = [_group_rows(only, by, group) for group in groups]
    st.header("Sessions of both groups")
    if code or metric:
        st.html(markup.sentence(f"With {code}." if code else f"By {metric_name(str(metric))}."))
    first, second = _pair(both[0][0], both[1][0])
    names = [_session_name(side, row) for side, row in zip(SIDES, (first, second), strict=True)]
    for column, side, group, (rows, note) in zip(
        st.columns(2, gap="large"), SIDES, groups, both, strict=True
    ):
        with column:
            st.html(markup.sentence(f"{group}: {note}"))
            if rows:
                st.html(lists.listed([_short(row) for row in rows], partial(_with, side, names)))
    st.header("Beside each other")
    words = st.text_input("Search in both", key="words", bind="query-params").strip()
    sessions = [_session(side, name) for side, name in zip(SIDES, names, strict=True)]
    timelines = [
        _side(side, replay, column, code, words) if replay else None
        for side, replay, column in zip(SIDES, sessions, st.columns(2, gap="large"), strict=True)
    ]
    _together(sessions, timelines)
    st.html(
        markup.sentence(
            "Keys: j and k for the next and previous event, n and p for the next and previous finding."
        )
    )
    st.html(markup.link(_place(**dict(zip(SIDES, names, strict=True))), "Link to these two"))
    st.html(scripts.KEYS, unsafe_allow_javascript=True)
    st.html(scripts.WITHIN, unsafe_allow_javascript=True)


def _group_rows(only: Selection, by: str, group: str) -> tuple[list[Row], str]:
    """The first sessions of a group that show what is asked for, else any; and how many there are."""
    tag = (*only.tags, f"{by}={group}")
    selection = replace(only, **({by: (group,)} if by in COLUMNS else {"tags": tag}))
    present, rater = triage.Present.of(st.query_params), st.query_params.get("found_by")
    order = st.query_params.get("sort") or "first begun"
    rows, total = ask(triage.listed, selection, present=present, rater=rater, order=order, limit=LISTED)
    if rows or not present:
        return rows, f"{len(rows):,} of {total:,} shown"
    rows, total = ask(triage.listed, selection, order=order, limit=LISTED)
    return rows, f"no session has {present}; {len(rows):,} of all {total:,} shown"


def _short(row: Row) -> Row:
    """The columns of a row for which half a page has room."""
    return {name: row.get(name) for name in SHOWN}


def _pair(left: list[Row], right: list[Row]) -> tuple[Row | None, Row | None]:
    """One session of each: of the same instance where there are two, else the first ones."""
    pairs = (
        (one, two)
        for one in left
        for two in right
        if one["instance"] is not None and _instance(one) == _instance(two)
    )
    return next(pairs, (left[0] if left else None, right[0] if right else None))


def _instance(row: Row) -> tuple[Any, ...]:
    return row["system"], row["task"], row["instance"]


def _session_name(side: str, row: Row | None) -> str:
    """The session that the address names for a side, else the one that was picked."""
    return st.query_params.get(side) or ("" if row is None else str(row["id"]))


def _with(side: str, names: list[str], row: Row) -> str:
    """The address at which a side shows another session."""
    sides = dict(zip(SIDES, names, strict=True))
    return _place(**{**sides, side: row["id"]})


def _place(**parameters: str | None) -> str:
    current = {name: st.query_params.get(name) for name in KEPT}
    return address("compare", **{**current, **parameters})


def _session(side: str, name: str) -> Replay | None:
    """The session of a side; None, said on the page, where there is none."""
    if not name:
        st.info(f"No session of the {side} group matches the filters.")
        return None
    try:
        return ask(read.replay, name)
    except UsageError as error:
        st.text(visible(str(error)))
        return None


def _side(side: str, replay: Replay, column: Any, code: str | None, words: str) -> list[str]:
    """One session: its facts and outline drawn, its events to be drawn beside the other's."""
    head = replay.head
    ratings = [row for row in pins.present_ratings(replay.ratings) if code is None or _of(row, code)]
    aim = next((seq for row in ratings if pins.is_positive(row) for seq in row["cites"] or ()), None)
    facts = {"Condition": head["condition"], "Task": head["task"], "Events": f"{head['n_events']:,}"}
    column.html(
        markup.link(address("trajectory", trajectory=head["id"], event=aim, code=code), head["native_id"])
        + markup.facts(tuple((k, v) for k, v in facts.items() if v))
        + pins.outline(replay, ratings, words, side=f"{side}-")
    )

    def target(seq: int) -> str:
        return address("trajectory", trajectory=head["id"], event=seq)

    return draw.items(replay, ratings, aim=aim, code=code, target=target, words=words, side=f"{side}-")


def _together(sessions: list[Replay | None], timelines: list[list[str] | None]) -> None:
    """Both sessions' events in rows, by step unless time is asked for and known."""
    events = [replay.events if replay else [] for replay in sessions]
    timed = all(events) and all(lined.elapsed(own) for own in events)
    order: lined.Order = "step"
    if timed and st.toggle("Line up by time, not by step", key="by_time", bind="query-params"):
        order = "time"
    caption = {
        "step": "Lined up by step: the n-th event of one beside the n-th of the other.",
        "time": "Lined up by time since each session's first event; events within a second share a row.",
    }[order]
    st.html(markup.sentence(caption if timed else f"{caption} Not both have times."))
    rows = lined.pairs(events[0], events[1], order)
    body = lined.side_by_side(timelines[0] or [], timelines[1] or [], rows)
    st.html(f'<div class="ca-beside" tabindex="0" role="group" aria-label="Both sessions">{body}</div>')


def _of(row: Row, code: str) -> bool:
    return code in (row["code"], row["code"].partition(".")[0])
