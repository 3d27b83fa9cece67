"""Excerpts of sessions that show a failure mode: the words that a rater cites, as in a paper's figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....annotation.statistics.crowds import called
from ...store import AMONG, Selection, Store, dictionaries, texts
from . import draw
from .prose import marked

Row = dict[str, Any]
EACH = 2
"""Excerpts of a code."""
CITED, BEFORE = 700, 280
"""Characters of a cited event and of the one before it that are shown."""
EVENTS = 2
"""Cited events that are shown of a finding."""


@dataclass(frozen=True)
class Excerpt:
    """One finding with the events it cites; the first event stands before them and is cited by nobody."""

    code: str
    name: str
    trajectory: str
    native_id: str
    condition: str | None
    raters: tuple[str, ...]
    """Who found it there: the one that was asked first."""
    quote: str | None
    rationale: str | None
    events: tuple[Row, ...]

    @property
    def cited(self) -> tuple[int, ...]:
        """The places of the cited events in their session."""
        return tuple(row["seq"] for row in self.events if row["cited"])


def excerpts(
    store: Store, codes: Sequence[str], rater: str, only: Selection | None = None
) -> tuple[Excerpt, ...]:
    """Findings of a rater, `EACH` of a code: those that people share first, then those with a quote."""
    where, values = (only or Selection()).where()
    query = _FOUND.replace("{where}", where).replace("{among}", AMONG)
    with store.reading() as connection:
        rows = dictionaries(connection, query, [rater, texts(codes), rater, *values, EACH])
        result = [_excerpt(connection, row) for row in rows]
    return tuple(sorted(result, key=lambda one: codes.index(one.code)))


_FOUND = """
    WITH also AS (
        SELECT trajectory_id, codebook, code, list_sort(list(rater)) AS raters,
            count(*) FILTER (rater_kind = 'human') AS people
        FROM findings WHERE present = 1 AND rater <> ? GROUP BY ALL
    )
    SELECT f.trajectory_id, t.native_id, t.condition, f.code, b.code_name AS name, f.rater, a.raters, f.quote,
        f.rationale, f.cites
    FROM findings f JOIN trajectories t ON t.id = f.trajectory_id
    JOIN codebooks b ON b.name = f.codebook AND b.code = f.code
    LEFT JOIN also a
        ON a.trajectory_id = f.trajectory_id AND a.codebook = f.codebook AND a.code = f.code
    WHERE f.present = 1 AND len(f.cites) > 0 AND f.code {among} AND f.rater = ?
        AND f.codebook = 'failures' AND {where}
    QUALIFY row_number() OVER (
        PARTITION BY f.code
        ORDER BY coalesce(a.people, 0) DESC, f.quote IS NULL, f.probability DESC NULLS LAST, f.trajectory_id
    ) <= ?
    ORDER BY f.code, f.trajectory_id
"""
_EVENTS = """
    SELECT e.seq, e.actor, p.kind AS party, e.kind, e.text, e.action, e.arguments, e.status, e.error,
        e.live_only, list_contains(?::INTEGER[], e.seq) AS cited
    FROM events e LEFT JOIN participants p ON p.trajectory_id = e.trajectory_id AND p.name = e.actor
    WHERE e.trajectory_id = ? AND e.sub = 0 AND (e.seq = ? OR list_contains(?::INTEGER[], e.seq))
    ORDER BY e.seq
"""


def _excerpt(connection: Any, row: Row) -> Excerpt:
    cites = sorted(set(row["cites"]))[:EVENTS]
    before = cites[0] - 1
    events = dictionaries(connection, _EVENTS, [cites, row["trajectory_id"], before, cites])
    extracts = [_extract(event, row["quote"] or "") for event in events]
    return Excerpt(
        code=row["code"],
        name=row["name"] or "",
        trajectory=row["trajectory_id"],
        native_id=row["native_id"],
        condition=row["condition"],
        raters=(row["rater"], *(row["raters"] or ())),
        quote=row["quote"],
        rationale=row["rationale"],
        events=tuple(event for event in extracts if event["cited"] or event["text"] or event["call"]),
    )


def _extract(event: Row, quote: str) -> Row:
    most = CITED if event["cited"] else BEFORE
    call = draw.call(event) if draw.acts(event) else None
    texts = {"text": event["text"], "call": call}
    return {**event, **{name: text and around(text, quote, most) for name, text in texts.items()}}


def around(text: str, quote: str, most: int) -> str:
    """At most so many characters of a text around the words that are cited, else its beginning."""
    if len(text) <= most:
        return text
    at = max(0, text.lower().find(quote.lower())) if quote else 0
    first = max(0, min(at - (most - min(len(quote), most)) // 2, len(text) - most))
    last = first + most
    return f"{'… ' if first else ''}{text[first:last]}{' …' if last < len(text) else ''}"


def drawn(excerpt: Excerpt) -> str:
    """The events as they stand in a transcript, cited words marked. Every word of a log is escaped."""
    events = "".join(_event(row, excerpt.quote or "") for row in excerpt.events)
    return f'<div class="ca-timeline">{events}</div>'


def _event(row: Row, quote: str) -> str:
    """An event byte for byte: an excerpt hides no sign of what was said."""
    classes = [
        "event",
        *draw.party(row),
        *["cited"] * row["cited"],
        *["failed"] * (row["status"] == "failed"),
    ]
    who = f'<div class="who">{row["seq"]} · {draw.actor(row)}</div>'
    text = f"<pre>{marked(row['text'], quote)}</pre>" if row["text"] else ""
    call = f'<pre class="code">{marked(row["call"], quote)}</pre>' if row["call"] else ""
    return f'<div class="{" ".join(classes)}">{who}{text}{call}{draw.failed(row)}</div>'


def caption(excerpt: Excerpt) -> str:
    """What is seen, where, who says so and why, as text."""
    seqs = ", ".join(map(str, excerpt.cited))
    where = f"{excerpt.native_id}{f' ({excerpt.condition})' if excerpt.condition else ''}, event {seqs}"
    rationale = f" {excerpt.rationale[:400]}" if excerpt.rationale else ""
    return f"{excerpt.code} {excerpt.name}. {where}; found by {called(excerpt.raters, ', ')}.{rationale}"
