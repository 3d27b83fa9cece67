"""The timeline of a trajectory as HTML: each event, beside it the ratings that cite it. All is escaped."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from html import escape
from importlib import resources
from typing import Any

from ....schemas.text import BYTES_PER_TOKEN, count_of
from . import pins
from .prose import highlight, inert, prose
from .read import LONGEST, Replay

Row = dict[str, Any]
TALK, OUTPUT = 1200, 300
"""Characters of what people and agents say, and of what else is logged, that are shown unfolded."""


def style() -> str:
    """The style of transcripts, which every page that draws one needs."""
    return (resources.files(__package__ or "") / "transcript.css").read_text(encoding="utf-8")


def timeline(
    replay: Replay,
    ratings: list[Row],
    *,
    aim: int | None,
    code: str | None,
    target: Callable[[int], str],
    advised: list[Row] | None = None,
    words: str = "",
    left_out: dict[int, int] | None = None,
) -> str:
    """All events of the window, as `items` has them, below each other.

    `left_out` says before which events how many are not shown.
    """
    own = items(replay, ratings, aim=aim, code=code, target=target, advised=advised, words=words)
    rows = zip(replay.events, own, strict=True)
    own = [_gap((left_out or {}).get(row["seq"], 0)) + one for row, one in rows]
    return f'<div class="ca ca-transcript"><div class="ca-timeline">{"".join(own)}</div></div>'


def items(
    replay: Replay,
    ratings: list[Row],
    *,
    aim: int | None,
    code: str | None,
    target: Callable[[int], str],
    advised: list[Row] | None = None,
    words: str = "",
    side: str = "",
) -> list[str]:
    """Each event of the window with its notes beside it.

    `aim` is the event asked for, `code` the one whose citations are marked. `advised` is an advisor's advice
    before each step; it stands beside the step, above all ratings. `words` are highlighted.
    `side` tells two transcripts of one page apart.
    """
    advice = {row["event"]: row for row in advised or []}
    pinned = pins.by_event(ratings)
    began = next((row["time"] for row in replay.events if row["time"]), None)
    parts = []
    for row in replay.events:
        own = [] if row["sub"] else pinned.get(row["seq"], [])
        counsel = "" if row["sub"] or row["seq"] not in advice else pins.advice(advice[row["seq"]])
        anchor = "" if row["sub"] else f' id="{side}e{row["seq"]}"'
        classes = " ".join(_classes(row, own, aim, code))
        parts.append(
            f'<div class="{classes}" tabindex="-1"{anchor} data-seq="{row["seq"]}">'
            f"{_who(row, target, began)}{body(row, replay.changes.get(row['seq'], {}), words)}</div>"
            f'<div class="side">{counsel}{pins.notes(own)}</div>'
        )
    return parts


def _gap(count: int) -> str:
    return f'<div class="gap">… {count:,} event{"s" * (count != 1)} not shown</div>' if count else ""


def _classes(row: Row, own: list[Row], aim: int | None, code: str | None) -> list[str]:
    is_cited = any(
        pins.is_positive(pin) and code in (pin["code"], pin["code"].partition(".")[0]) for pin in own
    )
    marks = {
        "failed": row["status"] == "failed",
        "cited": bool(code and is_cited),
        "found": any(map(pins.is_finding, own)),
        "aim": row["seq"] == aim and not row["sub"],
    }
    return ["event", *party(row), *(name for name, is_set in marks.items() if is_set)]


def party(row: Row) -> list[str]:
    """The class that colours an event by who acted, if a party did."""
    return [row["party"]] if row["party"] in ("human", "agent") else []


def _who(row: Row, target: Callable[[int], str], began: str | None) -> str:
    place = f'<a href="{escape(target(row["seq"]))}" target="_self">{row["seq"]}</a>'
    at = escape(_elapsed_time(began, row["time"])) if row["time"] else ""
    gutter = f'<span class="at">{" · ".join(filter(None, (at, size(row))))}</span>'
    return f'<div class="who">{gutter}{place} · {actor(row)}</div>'


def actor(row: Row) -> str:
    """Who acted, and how."""
    what = row["kind"].replace("_", " ") + (" · known from live traffic only" if row["live_only"] else "")
    return " · ".join(map(inert, filter(None, (row["actor"], what))))


def size(row: Row) -> str:
    """An event's tokens, estimated from its bytes: logs count them for whole sessions only."""
    return f"≈ {tokens:,} tokens" if (tokens := round((row["bytes"] or 0) / BYTES_PER_TOKEN)) else ""


def _elapsed_time(began: str | None, time: str) -> str:
    """Minutes and seconds since the first event shown; the time of day where that can't be computed."""
    try:
        seconds = int((datetime.fromisoformat(time) - datetime.fromisoformat(began or time)).total_seconds())
    except (ValueError, TypeError):
        return time[11:19]
    return f"+{seconds // 60}:{seconds % 60:02}" if seconds >= 0 else time[11:19]


def body(row: Row, changes: dict[str, list[str]], words: str = "") -> str:
    """An event's texts, action and state changes; long ones are folded."""
    talk = row["kind"] == "message" and row["party"] in ("human", "agent")
    parts = [_fold(notice["text"], OUTPUT, words) for notice in json.loads(row["notices"] or "[]")]
    if row["text"] is not None:
        is_cut = len(row["text"]) > LONGEST
        more = f"\n… {row['bytes']:,} bytes in all; open the event for the rest" if is_cut else ""
        parts.append(
            _fold(row["text"][:LONGEST] + more, TALK if talk else OUTPUT, words, "talk" if talk else "")
        )
    if acts(row):
        parts.append(_fold(call(row), OUTPUT, words, "code"))
    parts.append(failure_note(row))
    parts += [_state_change(view, changes.get(view)) for view in json.loads(row["states"] or "{}")]
    return "".join(parts)


def acts(row: Row) -> bool:
    """Whether an event has an action to be shown beside what it says."""
    is_talk = row["kind"] == "message" and row["text"]
    return row["action"] is not None and row["kind"] != "start" and not is_talk


def call(row: Row) -> str:
    """An action as a call with its arguments."""
    return f"{row['action']}({_arguments(row['arguments'])})"


def failure_note(row: Row) -> str:
    """A note that a step failed, and why; empty where it did not."""
    if row["status"] != "failed":
        return ""
    return f'<div class="bad">Failed: {escape((row["error"] or "no reason given")[:1000])}</div>'


def _fold(text: str, most: int, words: str, kind: str = "") -> str:
    """A text as it is, or as the Markdown that talk may be; a long one behind its beginning."""
    code = ' class="code"' * (kind == "code")
    body = prose(text, words) if kind == "talk" else f"<pre{code}>{highlight(text, words)}</pre>"
    if len(text) <= most and text.count("\n") <= most // 40:
        return body
    attribute = " open" * bool(words and words.lower() in text.lower())
    short = " ".join(text[:160].split())
    head = f"<summary>{escape(short)} … <small>{len(text):,} characters</small></summary>"
    return f"<details{attribute}>{head}{body}</details>"


def _state_change(view: str, lines: list[str] | None) -> str:
    """The diff of a state; empty without a change, and only the view's name where the diff is not loaded."""
    if lines is None:
        return f'<div class="who">changed: {inert(view)}</div>'
    if not lines:
        return ""
    plus, minus = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    marks = {"+": "plus", "-": "minus"}
    body = "\n".join(f'<span class="{marks.get(line[:1], "")}">{escape(line)}</span>' for line in lines)
    head = f"<summary>changed {inert(view)}: {count_of(plus, 'line', 'lines')} in, {minus} out</summary>"
    return f'<details>{head}<pre class="code">{body}</pre></details>'


def _arguments(text: str | None) -> str:
    if not text:
        return ""
    try:
        return ", ".join(f"{key}={value}" for key, value in json.loads(text).items())[:LONGEST]
    except (ValueError, AttributeError):  # arguments that were cut off at LONGEST are no JSON
        return text + " …"
