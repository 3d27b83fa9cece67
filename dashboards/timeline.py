"""The timeline of a trajectory as HTML: each event, and beside it the ratings that cite it. All is escaped."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from typing import Any
from urllib.parse import urlsplit

from coaudit.dashboards.markup import STYLE, link
from coaudit.pipeline.replay import LONGEST, Replay

Row = dict[str, Any]
TIMELINE = """
<style>
.ca-timeline { display: grid; grid-template-columns: minmax(0, 1fr) minmax(14rem, 30%); gap: 0 1.25rem; font-size: .9rem; }
.ca-timeline .event { grid-column: 1; border-left: 4px solid var(--party, #999999); padding: .4rem .75rem; margin: .2rem 0;
  background: color-mix(in srgb, currentColor 4%, transparent); overflow-wrap: anywhere; }
.ca-timeline .human { --party: #E69F00; } .ca-timeline .agent { --party: #0072B2; }
.ca-timeline .aim { outline: 3px solid #E69F00; outline-offset: 1px; }
.ca-timeline .cited { background: color-mix(in srgb, #E69F00 16%, transparent); }
.ca-timeline .who { font-size: .78rem; opacity: .85; }
.ca-timeline pre { white-space: pre-wrap; margin: .25rem 0 0; font: inherit; unicode-bidi: plaintext; text-align: start;
  background: none; padding: 0; color: inherit; border: 0; }
.ca-timeline pre.code { font-family: ui-monospace, SFMono-Regular, Menlo, monospace; font-size: .8rem; }
.ca-timeline .failed { border-left-style: double; }
.ca-timeline .bad { font-weight: 600; }
.ca-timeline aside { grid-column: 2; font-size: .8rem; align-self: start; margin: .2rem 0; }
.ca-timeline .pin { border: 1px solid color-mix(in srgb, currentColor 25%, transparent); border-radius: 4px; padding: .3rem .5rem;
  margin-bottom: .25rem; unicode-bidi: isolate; overflow-wrap: anywhere; }
.ca-timeline .pin.yes { border-color: #D55E00; }
.ca-timeline .pin b { font-weight: 600; }
.ca-timeline q { font-style: italic; }
@media (max-width: 60rem) { .ca-timeline { display: block; } }
</style>
"""
PEOPLE = ("human",)


def drawn(
    shown: Replay, ratings: list[Row], *, aim: int | None, code: str | None, target: Callable[[int], str]
) -> str:
    """All events of the window; `aim` is the event asked for, `code` the one whose citations are marked."""
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
        _event(row, pinned.get(row["seq"], []) if not row["sub"] else [], aim, marked, target)
        for row in shown.events
    )
    return f'{STYLE}{TIMELINE}<div class="ca ca-timeline">{items}</div>'


def _event(row: Row, pins: list[Row], aim: int | None, marked: set[int], target: Callable[[int], str]) -> str:
    classes = ["event", row["party"] if row["party"] in ("human", "agent") else ""]
    classes += ["failed"] * (row["status"] == "failed") + ["cited"] * (row["seq"] in marked)
    aimed = row["seq"] == aim and not row["sub"]
    classes += ["aim"] * aimed
    time = (row["time"] or "")[11:19]
    what = row["kind"].replace("_", " ") + (" · known from live traffic only" if row["live_only"] else "")
    who = f"{link(target(row['seq']), str(row['seq']))} · {escape(row['actor'])} · {escape(what)} · {escape(time)}"
    side = f"<aside>{''.join(map(_pin, pins))}</aside>" if pins else "<aside></aside>"
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
            if row["bytes"] > 4 * LONGEST or len(row["text"]) >= LONGEST
            else ""
        )
        parts.append(f"<pre>{escape(row['text'])}{more}</pre>")
    if row["action"] is not None:
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


def _pin(row: Row) -> str:
    there = row["label"] == row["positive"]
    said = row["label"] if row["error"] is None else f"error: {row['error'][:200]}"
    odds = f" p = {row['probability']:.2f}" if row["probability"] is not None else ""
    parts = [
        f"<b>{escape(row['code'])}</b> {escape(row['code_name'] or '')}: <b>{escape(said or '')}</b>{odds}",
        f"<div>{escape(row['rater'])} ({escape(_kind(row))})</div>",
    ]
    if row["quote"]:
        parts.append(f"<div><q>{escape(row['quote'][:400])}</q></div>")
    if row["rationale"]:
        parts.append(f"<div>{escape(row['rationale'][:600])}</div>")
    if row["error_source"]:
        parts.append(f"<div>source: {escape(row['error_source'])}</div>")
    parts.append(_outside(row))
    return f'<div class="pin{" yes" if there else ""}">{"".join(parts)}</div>'


def _kind(row: Row) -> str:
    kind = {"human": "person", "llm": "language model", "rule": "rule", "model": "trained judge"}
    return kind.get(row["rater_kind"], row["rater_kind"])


def _outside(row: Row) -> str:
    """A link to the task in Label Studio, where the rating says which."""
    place = json.loads(row["external"] or "{}").get("url")
    if not isinstance(place, str) or urlsplit(place).scheme not in ("http", "https"):
        return ""
    return f'<div><a href="{escape(place)}" target="_blank" rel="noopener noreferrer">Label Studio task</a></div>'


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


def listed(rows: list[Row], target: Callable[[Row], str]) -> str:
    """Trajectories as a table, each a link; with what was found in it, where that is asked."""
    names = ("native_id", "setting", "condition", "task", "agent_model", "started", "n_events")
    heads = ("Trajectory", "Setting", "Condition", "Task", "Agent model", "Began", "Events")
    finding = any(row["rationale"] for row in rows)
    shown = "".join(f'<th scope="col" class="head">{name}</th>' for name in heads + ("Why",) * finding)
    lines = "".join(
        f'<tr><td class="head">{link(target(row), row["native_id"] or row["id"])}</td>'
        + "".join(f'<td class="head">{escape(_cell(row[name]))}</td>' for name in names[1:])
        + (f'<td class="head">{escape((row["rationale"] or "")[:200])}</td>' if finding else "")
        + "</tr>"
        for row in rows
    )
    return (
        f'{STYLE}<div class="ca"><table><thead><tr>{shown}</tr></thead><tbody>{lines}</tbody></table></div>'
    )


def _cell(value: Any) -> str:
    return (
        "–"
        if value is None
        else str(value)[:80].replace("T", " ")
        if str(value)[4:5] == "-"
        else str(value)[:80]
    )
