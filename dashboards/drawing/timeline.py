"""The timeline of a trajectory as HTML: each event, beside it the ratings that cite it. All is escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from html import escape
from typing import Any
from urllib.parse import urlsplit

from ...pipeline.report.methods import PROCESS
from ..replay import LONGEST, Replay
from .markup import link

Row = dict[str, Any]


TALK, OUTPUT = 1200, 300
"""Characters of what people and agents say, and of what else is logged, that are shown unfolded."""


def drawn(
    shown: Replay,
    ratings: list[Row],
    *,
    aim: int | None,
    code: str | None,
    target: Callable[[int], str],
    advised: list[Row] | None = None,
    words: str = "",
) -> str:
    """All events of the window; `aim` is the event asked for, `code` the one whose citations are marked.

    `advised` is what an advisor said before each step; it stands beside the step, before all ratings. `words`
    are marked where they stand.
    """
    advice = {row["event"]: row for row in advised or []}
    pinned = _pinned(ratings)
    began = next((row["time"] for row in shown.events if row["time"]), None)
    items = []
    for row in shown.events:
        pins = [] if row["sub"] else pinned.get(row["seq"], [])
        marked = any(_positive(pin) and code in (pin["code"], pin["code"].partition(".")[0]) for pin in pins)
        aimed = row["seq"] == aim and not row["sub"]
        classes = ["event", row["party"] if row["party"] in ("human", "agent") else ""]
        classes += ["failed"] * (row["status"] == "failed") + ["cited"] * bool(code and marked)
        classes += ["found"] * any(map(_finding, pins)) + ["aim"] * aimed
        side = "" if row["sub"] or row["seq"] not in advice else _advice(advice[row["seq"]])
        named = "" if row["sub"] else f' id="e{row["seq"]}"'
        items.append(
            f'<div class="{" ".join(filter(None, classes))}" tabindex="-1"{named} data-seq="{row["seq"]}">'
            f"{_who(row, target, began)}{_said(row, shown.changes.get(row['seq'], {}), words)}</div>"
            f'<div class="side">{side}{_pins(pins)}</div>'
        )
    return f'<div class="ca ca-timeline">{"".join(items)}</div>'


def _pinned(ratings: Sequence[Row]) -> dict[int, list[Row]]:
    """Event -> the ratings that cite it, or whose unit it is."""
    pinned: dict[int, list[Row]] = {}
    for row in ratings:
        for seq in dict.fromkeys(row["cites"] or ([] if row["event"] is None else [row["event"]])):
            pinned.setdefault(seq, []).append(row)
    return pinned


def _positive(row: Row) -> bool:
    return row["label"] is not None and row["label"] == row["positive"]


def _finding(row: Row) -> bool:
    """Whether something went wrong there; who takes the initiative or confirms does nothing wrong."""
    return _positive(row) and row["codebook"] not in PROCESS


def outline(shown: Replay, ratings: Sequence[Row], words: str = "") -> str:
    """The events at which something was found or the words stand, each a link to its place on the page."""
    differ = {_unit(row) for row in differing(list(ratings))}
    lines = []
    for seq, rows in sorted(_pinned(ratings).items()):
        codes: dict[tuple[Any, ...], list[Row]] = {}
        for row in filter(_finding, rows):
            codes.setdefault(_unit(row), []).append(row)
        for unit, own in codes.items():
            who = ", ".join(row["rater"] for row in own) + " · raters differ" * (unit in differ)
            what = f"<b>{escape(own[0]['code'])}</b> {escape(own[0]['code_name'] or '')}"
            lines.append((seq, f"{what} <small>{escape(who)}</small>"))
    there = {row["seq"] for row in shown.events}
    if words:
        lines += [(row["seq"], "the words") for row in shown.events if _has(row, words)]
    items = "".join(
        f'<li><a href="#e{seq}">event {seq}</a> {said}</li>' for seq, said in sorted(lines) if seq in there
    )
    if not items:
        return ""
    head = f"<summary>{items.count('<li>'):,} findings, and where they are</summary>"
    return f'<div class="ca"><details class="outline" open>{head}<ol>{items}</ol></details></div>'


def _unit(row: Row) -> tuple[Any, ...]:
    return row["codebook"], row["code"], row["event"]


def _has(row: Row, words: str) -> bool:
    return words.lower() in f"{row['text'] or ''}\n{row['arguments'] or ''}".lower()


def present(ratings: Sequence[Row]) -> list[Row]:
    """All that is said of the units and codes of which somebody says that they are there, or how much."""
    there = {_unit(row) for row in ratings if row["positive"] is None or _positive(row)}
    return [row for row in ratings if _unit(row) in there]


def _who(row: Row, target: Callable[[int], str], began: str | None) -> str:
    what = row["kind"].replace("_", " ") + (" · known from live traffic only" if row["live_only"] else "")
    said = " · ".join(map(escape, filter(None, (row["actor"], what))))
    at = f'<span class="at">{escape(_elapsed(began, row["time"]))}</span>' if row["time"] else ""
    return f'<div class="who">{at}{link(target(row["seq"]), str(row["seq"]))} · {said}</div>'


def _elapsed(began: str | None, time: str) -> str:
    """Since the first event that is shown, as minutes and seconds; the time itself where it can't be told."""
    try:
        seconds = int((datetime.fromisoformat(time) - datetime.fromisoformat(began or time)).total_seconds())
    except (ValueError, TypeError):
        return time[11:19]
    return f"+{seconds // 60}:{seconds % 60:02}" if seconds >= 0 else time[11:19]


def _said(row: Row, changes: dict[str, list[str]], words: str) -> str:
    talk = row["kind"] == "message" and row["party"] in ("human", "agent")
    parts = [_folded(notice["text"], OUTPUT, words) for notice in json.loads(row["notices"] or "[]")]
    if row["text"] is not None:
        cut = len(row["text"]) >= LONGEST
        more = f"\n… {row['bytes']:,} bytes in all; open the event for the rest" if cut else ""
        parts.append(_folded(row["text"] + more, TALK if talk else OUTPUT, words))
    if row["action"] is not None and row["kind"] != "start":
        call = f"{row['action']}({_arguments(row['arguments'])})"
        parts.append(_folded(call, OUTPUT, words, code=True))
    if row["status"] == "failed":
        parts.append(f'<div class="bad">Failed: {escape((row["error"] or "no reason given")[:1000])}</div>')
    parts += [_changed(view, changes.get(view)) for view in json.loads(row["states"] or "{}")]
    return "".join(parts)


def _folded(text: str, most: int, words: str, *, code: bool = False) -> str:
    """A text as it is; a long one behind its beginning."""
    kind = ' class="code"' if code else ""
    whole = f"<pre{kind}>{marked(text, words)}</pre>"
    if len(text) <= most and text.count("\n") <= most // 40:
        return whole
    held = " open" * bool(words and words.lower() in text.lower())
    short = " ".join(text[:160].split())
    head = f"<summary>{escape(short)} … <small>{len(text):,} characters</small></summary>"
    return f"<details{held}>{head}{whole}</details>"


def _changed(view: str, lines: list[str] | None) -> str:
    """What a step did to a state, in place; nothing where it did nothing."""
    if lines is None:
        return f'<div class="who">changed: {escape(view)}</div>'
    if not lines:
        return ""
    plus, minus = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    marks = {"+": "plus", "-": "minus"}
    shown = "\n".join(f'<span class="{marks.get(line[:1], "")}">{escape(line)}</span>' for line in lines)
    head = f"<summary>changed {escape(view)}: {plus} lines in, {minus} out</summary>"
    return f'<details>{head}<pre class="code">{shown}</pre></details>'


def marked(text: str, words: str) -> str:
    """A text escaped, the words in it marked, in whatever case they stand."""
    if not words:
        return escape(text)
    pieces = re.split(f"({re.escape(words)})", text, flags=re.IGNORECASE)
    return "".join(f"<mark>{escape(p)}</mark>" if i % 2 else escape(p) for i, p in enumerate(pieces))


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
    there = any(map(_finding, rows))
    said = "".join(f"<li>{_verdict(row)}</li>" for row in rows)
    if rows[0]["codebook"] in PROCESS:
        counted = f"{sum(map(_positive, rows))} of {len(rows)}"
        name = escape(rows[0]["code_name"] or rows[0]["code"])
        return f'<details class="pin"><summary>{name}: {counted}</summary><ul>{said}</ul></details>'
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
