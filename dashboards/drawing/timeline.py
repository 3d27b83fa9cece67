"""The timeline of a trajectory as HTML: each event, beside it the ratings that cite it. All is escaped."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from typing import Any
from urllib.parse import urlsplit

from ...pipeline.report.names import named
from ..replay import LONGEST, Replay
from .markup import link

Row = dict[str, Any]


def drawn(
    shown: Replay,
    ratings: list[Row],
    *,
    aim: int | None,
    code: str | None,
    target: Callable[[int], str],
    advised: list[Row] | None = None,
) -> str:
    """All events of the window; `aim` is the event asked for, `code` the one whose citations are marked.

    `advised` is what an advisor said before each step; it stands beside the step, before all ratings.
    """
    advice = {row["event"]: row for row in advised or []}
    pinned: dict[int, list[Row]] = {}
    for row in ratings:
        for seq in dict.fromkeys(row["cites"] or ([] if row["event"] is None else [row["event"]])):
            pinned.setdefault(seq, []).append(row)
    marked = {
        seq
        for seq, rows in pinned.items()
        for row in rows
        if code and code in (row["code"], row["code"].partition(".")[0]) and row["label"] == row["positive"]
    }
    items = "".join(
        _event(row, [] if row["sub"] else pinned.get(row["seq"], []), aim, marked, target, advice)
        for row in shown.events
    )
    return f'<div class="ca ca-timeline">{items}</div>'


def _event(
    row: Row,
    pins: list[Row],
    aim: int | None,
    marked: set[int],
    target: Callable[[int], str],
    advice: dict[int | None, Row],
) -> str:
    classes = ["event", row["party"] if row["party"] in ("human", "agent") else ""]
    classes += ["failed"] * (row["status"] == "failed") + ["cited"] * (row["seq"] in marked)
    aimed = row["seq"] == aim and not row["sub"]
    classes += ["aim"] * aimed
    time = (row["time"] or "")[11:19]
    what = row["kind"].replace("_", " ") + (" · known from live traffic only" if row["live_only"] else "")
    words = " · ".join(map(escape, filter(None, (row["actor"], what, time))))
    who = f"{link(target(row['seq']), str(row['seq']))} · {words}"
    advised = "" if row["sub"] or row["seq"] not in advice else _advice(advice[row["seq"]])
    side = f"<aside>{advised}{_pins(pins)}</aside>"
    focus = ' tabindex="-1"' if aimed else ""
    return (
        f'<div class="{" ".join(filter(None, classes))}"{focus} data-seq="{row["seq"]}">'
        f'<div class="who">{who}</div>{_said(row)}</div>{side}'
    )


def _said(row: Row) -> str:
    parts = [f"<pre>{escape(notice['text'])}</pre>" for notice in json.loads(row["notices"] or "[]")]
    if row["text"] is not None:
        more = (
            f"\n… {row['bytes']:,} bytes in all; open the event for the rest"
            if len(row["text"]) >= LONGEST
            else ""
        )
        parts.append(f"<pre>{escape(row['text'])}{more}</pre>")
    if row["action"] is not None and row["kind"] != "start":
        parts.append(
            f'<pre class="code">{escape(row["action"])}({escape(_arguments(row["arguments"]))})</pre>'
        )
    if row["status"] == "failed":
        parts.append(f'<div class="bad">Failed: {escape((row["error"] or "no reason given")[:1000])}</div>')
    if row["states"]:
        parts.append(f'<div class="who">changed: {escape(", ".join(json.loads(row["states"])))}</div>')
    return "".join(parts)


def _arguments(text: str | None) -> str:
    if not text:
        return ""
    try:
        return ", ".join(f"{key}={value}" for key, value in json.loads(text).items())[:LONGEST]
    except (ValueError, AttributeError):  # cut off at LONGEST
        return text + " …"


def _advice(row: Row) -> str:
    """What was advised before a step, and what a person was expected to gain in it."""
    wanted = "call a person" if row["call"] else "the agent goes on"
    taken = " · followed" if row["call"] == row["human"] else " · not followed"
    return f'<div class="pin"><b>Advice</b> {wanted}, gain {row["gain"]:+.3f}{taken}</div>'


def next_step(advised: list[Row]) -> str:
    """The advice for the step that comes next, in words; empty where there is none."""
    row = next((row for row in advised if row["event"] is None), None)
    if row is None:
        return ""
    wanted = "Call a person for the next step" if row["call"] else "The agent can go on"
    return f"{wanted}: a person's step should gain {row['gain']:+.3f}, its price included."


def _pins(rows: list[Row]) -> str:
    """One note a code, in which raters stand side by side; what they say for it is folded away."""
    codes: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        codes.setdefault((row["codebook"], row["code"]), []).append(row)
    return "".join(map(_pin, codes.values()))


def _pin(rows: list[Row]) -> str:
    there = any(row["label"] == row["positive"] for row in rows)
    said = "".join(f"<li>{_verdict(row)}</li>" for row in rows)
    why = "".join(map(_why, rows))
    more = f"<details><summary>Why</summary>{why}</details>" if why else ""
    name = f"<b>{escape(rows[0]['code'])}</b> {escape(rows[0]['code_name'] or '')}"
    return f'<div class="pin{" yes" if there else ""}">{name}<ul>{said}</ul>{more}</div>'


def _verdict(row: Row) -> str:
    said = row["label"] if row["error"] is None else f"error: {row['error'][:200]}"
    odds = f", p = {row['probability']:.2f}" if row["probability"] is not None else ""
    return f"<b>{escape(said or '')}</b>{odds} · {escape(row['rater'])} ({escape(_kind(row))}){_outside(row)}"


def _why(row: Row) -> str:
    parts = [f"<q>{escape(row['quote'][:400])}</q>"] if row["quote"] else []
    parts += [escape(row["rationale"][:600])] if row["rationale"] else []
    parts += [f"source: {escape(row['error_source'])}"] if row["error_source"] else []
    return f"<p>{escape(row['rater'])}: {'; '.join(parts)}</p>" if parts else ""


def _kind(row: Row) -> str:
    kind = {"human": "person", "llm": "language model", "rule": "rule", "model": "trained judge"}
    return kind.get(row["rater_kind"], str(row["rater_kind"]))


def _outside(row: Row) -> str:
    """A link to the task in Label Studio, where the rating says which."""
    place = json.loads(row["external"] or "{}").get("url")
    if not isinstance(place, str) or urlsplit(place).scheme not in ("http", "https"):
        return ""
    return f' <a href="{escape(place)}" target="_blank" rel="noopener noreferrer">task ↗</a>'


def label(row: Row | None) -> str:
    """What a rater said, in a cell."""
    if row is None:
        return ""
    return "error" if row["error"] is not None else str(row["label"])


def differing(ratings: list[Row]) -> list[Row]:
    """The ratings of units and codes on which labels differ; errors are no labels."""
    labels: dict[tuple[Any, ...], set[str]] = {}
    for row in ratings:
        if row["label"] is not None:
            labels.setdefault((row["codebook"], row["code"], row["event"]), set()).add(row["label"])
    return [r for r in ratings if len(labels.get((r["codebook"], r["code"], r["event"]), ())) > 1]


HEADS = {
    "native_id": "Trajectory",
    "system": "System",
    "setting": "Setting",
    "condition": "Condition",
    "task": "Task",
    "agent_model": "Agent model",
    "started": "Began",
    "n_events": "Events",
    "found": "Found",
    "outcome": "Outcome",
    "differ": "Differ",
    "tokens": "Tokens",
    "cost": "US$",
}
"""Column of a list of trajectories -> its head; those that no row has are left out."""


def listed(rows: list[Row], target: Callable[[Row], str]) -> str:
    """Trajectories as a table, each a link; with what was found in it, where that is asked."""
    names = [name for name in HEADS if any(row.get(name) is not None for row in rows)]
    heads = [HEADS[name] for name in names]
    if metric := rows[0].get("metric"):
        names, heads = [*names, "value"], [*heads, named(metric)]
    if any(row.get("rationale") for row in rows):
        names, heads = [*names, "rationale"], [*heads, "Why"]
    shown = "".join(f'<th scope="col" class="head">{escape(name)}</th>' for name in heads)
    lines = "".join(
        f'<tr><td class="head">{link(target(row), row["native_id"] or row["id"])}</td>'
        + "".join(f'<td class="head">{escape(_cell(name, row[name]))}</td>' for name in names[1:])
        + "</tr>"
        for row in rows
    )
    return f'<div class="ca"><table><thead><tr>{shown}</tr></thead><tbody>{lines}</tbody></table></div>'


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if name == "started":
        return str(value)[:16].replace("T", " ")
    if isinstance(value, float):
        return f"{value:.2g}"
    return f"{value:,}" if isinstance(value, int) else str(value)[:200]
