"""Ratings of a session as HTML: notes beside events, and an outline that links to them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from ...codebooks import PROCESS
from .prose import inert
from .read import Replay

Row = dict[str, Any]


def by_event(ratings: Sequence[Row]) -> dict[int, list[Row]]:
    """Event -> the ratings that cite it, or without citations those whose unit begins there."""
    events: dict[int, list[Row]] = {}
    for row in ratings:
        for seq in dict.fromkeys(row["cites"] or ([] if row["event"] is None else [row["event"]])):
            events.setdefault(seq, []).append(row)
    return events


def is_positive(row: Row) -> bool:
    """Whether a rating says that its code is present."""
    return row["label"] is not None and row["label"] == row["positive"]


def is_finding(row: Row) -> bool:
    """Whether a rating says that something went wrong; taking the initiative or confirming is no fault."""
    return is_positive(row) and row["codebook"] not in PROCESS


def outline(replay: Replay, ratings: Sequence[Row], words: str = "", side: str = "") -> str:
    """Links to the events at which something was found, or that contain the words.

    `side` tells two transcripts of one page apart.
    """
    differ = {_unit(row) for row in disagreements(list(ratings))}
    lines = []
    for seq, rows in sorted(by_event(ratings).items()):
        codes: dict[tuple[Any, ...], list[Row]] = {}
        for row in filter(is_finding, rows):
            codes.setdefault(_unit(row), []).append(row)
        for unit, own in codes.items():
            who = ", ".join(row["rater"] for row in own) + " · raters differ" * (unit in differ)
            what = f"<b>{escape(own[0]['code'])}</b> {escape(own[0]['code_name'] or '')}"
            lines.append((seq, f"{what} <small>{inert(who)}</small>"))
    seqs = {row["seq"] for row in replay.events}
    if words:
        lines += [(row["seq"], "the words") for row in replay.events if contains(row, words)]
    items = "".join(
        f'<li><a href="#{side}e{seq}">event {seq}</a> {text}</li>'
        for seq, text in sorted(lines)
        if seq in seqs
    )
    if not items:
        return ""
    count = items.count("<li>")
    noun = "place" if count == 1 else "places"
    head = f"<summary>{count:,} {noun} to look at</summary>"
    return f'<div class="ca"><details class="outline" open>{head}<ol>{items}</ol></details></div>'


def contains(row: Row, words: str) -> bool:
    """Whether an event's text or arguments contain the words, in any case."""
    return words.lower() in f"{row['text'] or ''}\n{row['arguments'] or ''}".lower()


def _unit(row: Row) -> tuple[Any, ...]:
    return row["codebook"], row["code"], row["event"]


def present_ratings(ratings: Sequence[Row]) -> list[Row]:
    """All ratings of units and codes that some rater finds present, or whose labels have no positive one."""
    units = {_unit(row) for row in ratings if row["positive"] is None or is_positive(row)}
    return [row for row in ratings if _unit(row) in units]


def advice(row: Row) -> str:
    """The advice before a step, the gain that was expected of a person, and whether it was followed."""
    recommendation = "call a person" if row["call"] else "the agent goes on"
    outcome = " · followed" if row["call"] == row["human"] else " · not followed"
    return f'<div class="pin"><b>Advice</b> {recommendation}, gain {row["gain"]:+.3f}{outcome}</div>'


def next_step(advised: list[Row]) -> str:
    """The advice for the step that comes next, in words; empty where there is none."""
    row = next((row for row in advised if row["event"] is None), None)
    if row is None:
        return ""
    recommendation = "Call a person for the next step" if row["call"] else "The agent can go on"
    return f"{recommendation}: a person's step should gain {row['gain']:+.3f}, its price included."


def notes(rows: list[Row]) -> str:
    """One note for each code with all its raters; their reasons are folded away."""
    codes: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        codes.setdefault((row["codebook"], row["code"]), []).append(row)
    return "".join(map(_pin, codes.values()))


def _pin(rows: list[Row]) -> str:
    items = "".join(f"<li>{_verdict(row)}</li>" for row in rows)
    if rows[0]["codebook"] in PROCESS:
        name, kind = escape(rows[0]["code_name"] or rows[0]["code"]), "pin"
        who = f"{sum(map(is_positive, rows))} of {len(rows)}"
    else:
        name = f"<b>{escape(rows[0]['code'])}</b> {escape(rows[0]['code_name'] or '')}"
        kind, who = "pin yes" if any(map(is_finding, rows)) else "pin", _labels(rows)
    head = f"<summary>{name} <small>{who}</small></summary>"
    return f'<details class="{kind}">{head}<ul>{items}</ul>{"".join(map(_why, rows))}</details>'


def _labels(rows: list[Row]) -> str:
    """Each label with those who gave it."""
    labels: dict[str, list[str]] = {}
    for row in rows:
        labels.setdefault(label(row), []).append(row["rater"])
    return " · ".join(f"{inert(answer)}: {inert(', '.join(who))}" for answer, who in labels.items())


def _verdict(row: Row) -> str:
    answer = row["label"] if row["error"] is None else f"error: {row['error'][:200]}"
    odds = f", p = {row['probability']:.2f}" if row["probability"] is not None else ""
    return (
        f"<b>{inert(answer or '')}</b>{odds} · {inert(row['rater'])} ({escape(_kind(row))}){_task_link(row)}"
    )


def _why(row: Row) -> str:
    parts = [f"<q>{escape(row['quote'][:400])}</q>"] if row["quote"] else []
    parts += [escape(row["rationale"][:600])] if row["rationale"] else []
    parts += [f"source: {escape(row['error_source'])}"] if row["error_source"] else []
    return f"<p>{inert(row['rater'])}: {'; '.join(parts)}</p>" if parts else ""


def _kind(row: Row) -> str:
    kind = {"human": "person", "llm": "language model", "rule": "rule", "model": "trained judge"}
    return kind.get(row["rater_kind"], str(row["rater_kind"]))


def _task_link(row: Row) -> str:
    """A link to the task in Label Studio that a rating was pulled from, or to the URL that came with it."""
    external = json.loads(row["external"] or "{}")
    match external.get("labelstudio"):
        case {"server": str(server), "project": int(project), "task": int(task)}:
            place = f"{server}/projects/{project}/data?task={task}"
        case _:
            place = external.get("url")
    if not isinstance(place, str) or not place.lower().startswith(("http://", "https://")):
        return ""
    return f' <a href="{escape(place)}" target="_blank" rel="noopener noreferrer">task ↗</a>'


def label(row: Row | None) -> str:
    """A rating's label for a cell: 'error' for a failed one, empty without a rating."""
    if row is None:
        return ""
    return "error" if row["error"] is not None else str(row["label"])


def disagreements(ratings: list[Row]) -> list[Row]:
    """The ratings of units and codes on which labels differ; errors are no labels."""
    labels: dict[tuple[Any, ...], set[str]] = {}
    for row in ratings:
        if row["label"] is not None:
            labels.setdefault((row["codebook"], row["code"], row["event"]), set()).add(row["label"])
    return [r for r in ratings if len(labels.get((r["codebook"], r["code"], r["event"]), ())) > 1]
