"""Trajectory: the list of them, and the replay of one with ratings pinned to the events they cite."""

from __future__ import annotations

from typing import Any

import streamlit as st

from ...pipeline.errors import UsageError
from ...pipeline.report import Number, Table
from ...pipeline.report.names import metric_name
from ...pipeline.report.tables import count
from ...pipeline.report.transcript import draw, focus, pins, read
from ...pipeline.report.transcript.read import Replay
from ...pipeline.store import Selection
from ...schemas.text import count_of, shortened, visible
from .. import triage
from ..cache import ask, place, store
from ..drawing import choices, lists, markup, scripts
from ..sidebar import address

PAGE = 50


def show(only: Selection) -> None:
    """Draw the list, or the trajectory that the address names."""
    name = st.query_params.get("trajectory", "")
    if name:
        _one(name)
    else:
        _list(only)


def _list(only: Selection) -> None:
    st.title("Trajectories")
    present, rater = triage.Present.of(st.query_params), st.query_params.get("found_by")
    left, right = st.columns([2, 1])
    words = left.text_input("Search ids, and words said or done", key="search", bind="query-params").strip()
    orders = [*triage.ORDERS, *ask(triage.metrics)]
    order = choices.one(right, "Sorted by", orders, key="sort", title_of=_order_title)
    first = _number("first") or 0
    query = {"present": present, "rater": rater, "words": words, "order": order}
    rows, total = ask(triage.listed, only, first=first, **query)
    if total and not rows:
        first = (total - 1) // PAGE * PAGE
        rows, total = ask(triage.listed, only, first=first, **query)
    if present:
        st.text(visible(f"with {present}: {total:,}"))
    elif order not in triage.ORDERS and rater:
        st.text(visible(f"{_order_title(order)}, rated by {rater}"))
    if not rows:
        st.info(
            "None of the trajectories that the filters and the search leave has it."
            if present
            else "No trajectory matches. Change the filters, or run `coaudit ingest PATH`."
        )
        return
    st.html(
        lists.listed(
            rows,
            lambda row: address(
                "trajectory",
                trajectory=row["id"],
                event=row["cited"],
                code=present.code if present else None,
                found_by=rater,
                words=words or None,
            ),
        )
    )
    parameters = {name: st.query_params.get(name) for name in triage.PLACE}
    places = [
        markup.link(
            address("trajectory", **{**parameters, "first": start, "search": words or None, "sort": order}),
            way,
        )
        for start, way, exists in (
            (max(0, first - PAGE), "← earlier", first > 0),
            (first + PAGE, "later →", first + PAGE < total),
        )
        if exists
    ]
    last = min(total, first + PAGE)
    st.html(f'<div class="ca">{first + 1:,}–{last:,} of {total:,} {" · ".join(places)}</div>')
    st.html(
        markup.sentence(
            "Found: codes that any rater found, – if nobody looked. Outcome: 1 is success. Differ: judges' "
            "answers that no person gave, – if no unit has both. Tokens: used by the team's own models. US$: "
            "cost of judging. Keys: j and k for the next and previous session, Enter to open it."
        )
    )
    st.html(scripts.ROWS, unsafe_allow_javascript=True)


def _order_title(order: str) -> str:
    return order if order in triage.ORDERS else visible(metric_name(order))


def _number(name: str) -> int | None:
    """A number in the address; what is no number is reported, and treated as if it were not there."""
    text = st.query_params.get(name, "")
    if text.isdecimal() and text.isascii() and len(text) < 10:
        return int(text)
    if text:
        st.text(f"{name}={visible(shortened(text, 40))} in the address is not a valid number here.")
    return None


def _one(name: str) -> None:
    aim = _number("event")
    try:
        first = _number("first") or 0
        if aim is not None and "first" not in st.query_params:
            first = ask(read.place, name, aim) // read.WINDOW * read.WINDOW
        replay = ask(read.replay, name, first)
        if first and not replay.events:
            replay = ask(read.replay, name)
    except UsageError as error:
        st.title("Trajectory")
        st.text(visible(str(error)))
        st.html(markup.link(address("trajectory"), "All trajectories"))
        return
    _head(replay)
    advised = _advice_rows(name)
    ratings = _filter_ratings(replay.ratings)
    if aim is not None:
        _event(name, aim)
    st.header("What happened")
    _pages(replay)
    code = st.query_params.get("code")
    left, right = st.columns([2, 1])
    words = left.text_input("Search in this session", key="words", bind="query-params").strip()
    part, left_out = _part(replay, ratings, code, right)
    st.html(pins.outline(replay, ratings, words) or markup.sentence("Nothing was found here."))
    st.html(
        markup.sentence(
            "Keys: j and k for the next and previous event, n and p for the next and previous finding."
        )
    )

    def target(seq: int) -> str:
        return address("trajectory", trajectory=replay.head["id"], event=seq)

    st.html(
        draw.timeline(
            part, ratings, aim=aim, code=code, target=target, advised=advised, words=words, left_out=left_out
        )
    )
    st.html(scripts.KEYS, unsafe_allow_javascript=True)
    if aim is not None:
        st.html(scripts.SCROLL, unsafe_allow_javascript=True)
    _whole(replay, ratings)


def _part(
    replay: Replay, ratings: list[dict[str, Any]], code: str | None, column: Any
) -> tuple[Replay, dict[int, int]]:
    """The events to be shown: all, or those that a question is about; of a participant's code theirs."""
    names = focus.choices(replay, ratings)
    about = focus.subject_of(replay, code)
    keys = list(names)
    what = column.selectbox(
        "Show",
        keys,
        index=keys.index(about) if about in names else 0,
        key="part",
        bind="query-params",
        format_func=names.__getitem__,
    )
    return focus.select_events(replay, ratings, what)


def _head(replay: Replay) -> None:
    head = replay.head
    st.title("Trajectory")
    st.text(visible(head["native_id"]))
    team = " · ".join(
        f"{p['name']} ({p['kind']}{', ' + p['model'] if p['model'] else ''})"
        for p in replay.participants
        if p["kind"] != "environment"
    )
    facts = {
        "System": head["system"],
        "Setting": head["setting"],
        "Condition": head["condition"],
        "Task": head["task"],
        "Began": (head["started"] or "")[:16].replace("T", " "),
        "Events": f"{head['n_events']:,}",
        "Team": team,
    }
    results = [(o["name"].replace("_", " "), _result(o)) for o in replay.outcomes]
    st.html(markup.facts(tuple((k, v) for k, v in (*facts.items(), *results) if v)))
    st.html(markup.link(address("trajectory"), "← All trajectories"))


def _advice_rows(name: str) -> list[dict[str, Any]]:
    """The advisor's rows for a trajectory; draws its advice on the next step, or why its file is unusable."""
    try:
        rows = ask(read.advice_rows, name, read.advisor_stamp(store(place())))
    except UsageError as error:
        st.text(visible(str(error)))
        return []
    if words := pins.next_step(rows):
        st.info(words)
    return rows


def _result(outcome: dict[str, Any]) -> str:
    if outcome["value"] is not None:
        value = float(outcome["value"])
        return (count(value) if value.is_integer() else Number(value)).text
    text = outcome["text"] or outcome["reason"] or "–"
    return text if len(text) <= 60 else f"{text[:60]} …"


def _filter_ratings(ratings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ratings that the controls leave: of some codebooks, some raters, only where raters differ."""
    if not ratings:
        st.info("Nothing is rated here: run `coaudit judge`.")
        return []
    left, middle, right, last = st.columns([2, 2, 1.4, 1.2], vertical_alignment="bottom")
    books = sorted({row["codebook"] for row in ratings})
    book = choices.some(left, "Codebooks", books, key="codebook")
    raters = sorted({row["rater"] for row in ratings})
    who = choices.some(middle, "Raters", raters, key="raters")
    only = right.toggle("Only disagreements", key="differ", bind="query-params")
    selection = [
        row for row in ratings if (not book or row["codebook"] in book) and (not who or row["rater"] in who)
    ]
    if only:
        return pins.disagreements(selection)
    every = last.toggle(
        "All answers", key="all", bind="query-params", help="Otherwise only what somebody found."
    )
    return selection if every else pins.present_ratings(selection)


def _event(name: str, aim: int) -> None:
    result = ask(read.full_event, name, aim)
    if not result:
        st.info(f"This session has no event {aim}.")
        return
    with st.expander(f"Event {aim} in full, with what it changed", expanded=False):
        if result["text"]:
            st.code(result["text"][:200_000], language=None, wrap_lines=True, height=320)
            st.download_button(
                "The text as a file", result["text"], f"event-{aim}.txt", "text/plain", on_click="ignore"
            )
        if result["action"]:
            st.text(result["action"])
            st.code((result["raw"] or result["arguments"] or "")[:200_000], language=None, wrap_lines=True)
        for view, lines in result["changes"].items():
            st.text(f"State, {view}: {'no change' if not lines else 'what changed'}")
            if lines:
                st.code("\n".join(lines), language="diff", wrap_lines=True)


def _pages(replay: Replay) -> None:
    total = replay.head["n_events"]
    if total <= read.WINDOW:
        return
    links = [
        f"<b>{start + 1:,}–{min(total, start + read.WINDOW):,}</b>"
        if start == replay.first
        else markup.link(
            address("trajectory", trajectory=replay.head["id"], first=start),
            f"{start + 1:,}–{min(total, start + read.WINDOW):,}",
        )
        for start in range(0, total, read.WINDOW)
    ]
    st.html(f'<div class="ca">Events {" · ".join(links)}</div>')


def _whole(replay: Replay, ratings: list[dict[str, Any]]) -> None:
    """Judges and people side by side, a row a code and unit: the whole trajectory, and the events shown."""
    raters = sorted({row["rater"] for row in ratings})
    seqs = {None, *(event["seq"] for event in replay.events)}
    units: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in (row for row in ratings if row["event"] in seqs):
        units.setdefault((row["codebook"], row["code"], row["event"]), {})[row["rater"]] = row
    lines = tuple(
        (
            f"{code} {next(iter(by_rater.values()))['code_name']}",
            "whole" if event is None else str(event),
            *(pins.label(by_rater.get(rater)) for rater in raters),
        )
        for (_, code, event), by_rater in sorted(
            units.items(), key=lambda item: (item[0][:2], item[0][2] or 0)
        )
    )
    with st.expander(f"Raters side by side ({count_of(f'{len(lines):,}', 'row', 'rows')})"):
        if lines:
            table = Table("raters", "", "", ("Code", "Event", *raters), lines, heads=2 + len(raters))
            st.html(markup.drawn(table, lambda cell: None))
        else:
            st.html(markup.sentence("No rating matches the controls above."))
