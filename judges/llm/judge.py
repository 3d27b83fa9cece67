"""The language model judge: a codebook's prompt, answer form and parser as one object.

What it sees of a unit is the codebook's context (or the one asked for): `none` the unit alone, as the
paper's judge saw it, and of a whole trajectory what the team ended with, or where the log does not hold
that, every event; `preceding` also the events before it, never the future; `transcript` every event. Events
are shown with what came of them (schemas/results.py). It never sees what only a (simulated) human saw or
knew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...schemas import UNCLEAR, Codebook, Event, Unit, Verdict, content_hash
from ...schemas.codebook import ContextKind
from ...schemas.results import HEAD, TAIL, shorten, task_of, without_briefings
from ...schemas.text import count_of
from ..clients import Message, Question, Reply
from ..clients.protocol import ContextTooSmall, Form
from . import quoting
from .answers import Answer, answer_of
from .context import Context
from .prompts import rubric

REVISION = 7
"""Revision of what is written here and in the prompts around a codebook, and of how events are shown; it is
part of every judge's version."""
LEAST_ROOM = 200
"""Tokens for events, below which no window is worth a question."""
OVERLAP = 0.2
"""Share of a window's budget that the next window repeats."""
_TURNS = {"question_reply": ("message", "reply")}


@dataclass(frozen=True)
class Case:
    """A unit as a judge gets it: with its marker and, where a whole trajectory is rated, its result."""

    unit: Unit
    mark: str
    result: str | None = None
    """The final text of the team's work, where the log holds it."""
    background: str | None = None
    """What one must know of the task, and the log does not say; it comes with the transcript."""


@dataclass(frozen=True)
class Piece:
    """One question about a case, and the events that it shows."""

    question: Question
    events: tuple[Event, ...]


@dataclass(frozen=True)
class LLMJudge:
    """Asks about units and reads the answers."""

    codebook: Codebook
    context: ContextKind

    @cached_property
    def answer(self) -> Answer:
        """The form of the answer."""
        return answer_of(self.codebook)

    @cached_property
    def version(self) -> str:
        """Version of the instructions: the same for the same codebook, context, views and revision."""
        views = () if self.codebook.views == "team" else (self.codebook.views,)
        return content_hash("llm", REVISION, self._system.content, self.context, *views)[:12]

    @cached_property
    def start(self) -> hashlib.blake2b:
        """Hash of the instructions, with which the hash of every question begins."""
        system = f"{self._system.role}\0{self._system.content}"
        return hashlib.blake2b(system.encode("utf-8", "surrogatepass"), digest_size=12)

    def whole(self, case: Case) -> Piece:
        """The one question about a case, as long as it may be."""
        return self._piece(case, self._context_events(case))

    def pieces(self, case: Case, context: Context) -> Iterator[Piece]:
        """The questions about a case that fit a model's context: one, or overlapping windows.

        Where the longest answer leaves the log less than it takes itself, room is kept for the usual one: one
        that is cut off cannot be asked for again with more.
        Raises ContextTooSmall where not even the instructions fit.
        """
        whole = self.whole(case)
        if context.fits(whole.question):
            yield whole
            return
        empty = self._piece(case, ())
        before = context.count("\n\n".join(background(case))) if case.background else 0
        if context.room(empty.question) - before < empty.question.form.max_tokens:
            whole, empty = _briefly_answered(whole), _briefly_answered(empty)
            if context.fits(whole.question):
                yield whole
                return
        most = empty.question.form.max_tokens
        for piece in self._windows(case, context, empty, before):
            yield replace(piece, question=piece.question.within(most))

    def _windows(self, case: Case, context: Context, empty: Piece, before: int) -> Iterator[Piece]:
        """The questions about parts of a case that is too long for one; `empty` shows no event, and `before`
        tokens stand before the events."""
        room = context.room(empty.question) - before
        if room < LEAST_ROOM:
            raise ContextTooSmall(
                f"the model's context of {context.limit} tokens is too small for codebook "
                f"{self.codebook.name!r}, which needs about "
                f"{context.needed(context.tokens(empty.question) + before + LEAST_ROOM)} and more for the log"
            )
        events = self._context_events(case)
        if not events:
            raise ContextTooSmall(f"the unit is longer than the model's context of {context.limit} tokens")
        if self.codebook.unit != "trajectory":
            nearest = _last(events, case, context, room)
            yield self._piece(case, nearest, len(events) - len(nearest))
            return
        for window in windows(events, case, context, room):
            yield self._piece(case, window, len(events) - len(window))

    def parse(self, reply: Reply, piece: Piece) -> list[Verdict]:
        """The verdicts of one answer; BadAnswer or Refused where it holds none."""
        return self.answer.parse(reply, piece.events)

    def unite(self, verdicts: Sequence[list[Verdict]]) -> list[Verdict]:
        """The windows' verdicts as one: present in one window is present; an error elsewhere stays one."""
        if len(verdicts) == 1:
            return verdicts[0]
        by_code = zip(*verdicts, strict=True)
        return [united_verdict(list(one), self.codebook.finding) for one in by_code]

    @cached_property
    def _system(self) -> Message:
        return Message("system", rubric(self.codebook, self.answer))

    @cached_property
    def _form(self) -> Form:
        return self.answer.form()

    def shows_before(self, unit: Unit) -> bool:
        """Whether of the transcript only what comes before the unit is shown."""
        return self.context == "preceding" and unit.kind not in ("participant", "trajectory")

    def _context_events(self, case: Case) -> tuple[Event, ...]:
        unit, is_whole = case.unit, self.codebook.unit == "trajectory"
        if self.context == "none" and (case.result is not None or not is_whole):
            return ()
        if is_whole:
            return unit.events
        events = unit.preceding() if self.shows_before(unit) else unit.transcript
        return tuple(event for event in events if not event.live_only)

    def _piece(self, case: Case, events: tuple[Event, ...], left_out: int = 0) -> Piece:
        parts: list[str] = []
        if events:
            parts = [*background(case), quoting.transcript(events, case.unit.participants, case.mark)]
            if left_out:
                rest = count_of(left_out, "other event of the log is", "other events of the log are")
                parts.append(f"{rest} left out for want of room. Rate what is shown.")
        parts += self.question_parts(case, alone=not events)
        question = Question((self._system, Message("user", "\n\n".join(parts))), self._form)
        return Piece(question, events or case.unit.events)

    def question_parts(self, case: Case, *, alone: bool) -> list[str]:
        """What follows the transcript, or stands `alone`: the unit or the result, and the question."""
        parts: list[str] = []
        if self.codebook.unit != "trajectory":
            parts += self._unit(case)
        elif alone:
            parts += _result(case)
        return [*parts, f"{self.codebook.question} {self.answer.instruction.splitlines()[0]}"]

    def _unit(self, case: Case) -> list[str]:
        if case.unit.kind == "participant":
            return self._participant(case.unit, case.mark)
        titles = _TURNS.get(case.unit.kind, (case.unit.kind.replace("_", " "),))
        names = quoting.display_names(case.unit.participants)
        parts = self._before(case)
        parts.append("To be rated:" if self.context == "none" else f"To be rated is event {case.unit.event}:")
        for title, event in zip(titles, case.unit.events, strict=False):
            if event.kind == "message":
                parts.append(quoting.block(title, event.text or "", case.mark))
            else:
                content = quoting.event_lines(without_briefings(event), names.get(event.actor, "unknown"))
                parts.append(f"<<{title} {case.mark}>>\n{content}\n<<end of {title} {case.mark}>>")
        return parts

    def _before(self, case: Case) -> list[str]:
        """What was said and told just before a unit, where the transcript ends before that."""
        if not self.shows_before(case.unit):
            return []
        words = [line for event in case.unit.events for line in quoting.before(_untold(event))]
        if not words:
            return []
        return ["\n".join([f"<<before it {case.mark}>>", *words, f"<<end of before it {case.mark}>>"])]

    def _participant(self, unit: Unit, mark: str) -> list[str]:
        """Who is to be rated: by name, with what they did where the transcript is not shown."""
        name = quoting.display_names(unit.participants).get(unit.events[0].actor, "unknown")
        numbers = ", ".join(str(event.seq) for event in unit.events)
        parts = [f"To be rated is {name}, whose events are {numbers}."]
        if self.context == "none":
            parts.append(quoting.transcript(unit.events, unit.participants, mark))
        return parts


def _untold(event: Event) -> Event:
    """An event without the notices before it where these are shown with it."""
    return event if event.kind == "message" else event.model_copy(update={"notices": ()})


def _briefly_answered(piece: Piece) -> Piece:
    """The same with room for the usual answer."""
    return replace(piece, question=piece.question.within(piece.question.form.usual_tokens))


def background(case: Case) -> list[str]:
    """What comes before a case's transcript, if anything; of a long text both ends."""
    if not case.background:
        return []
    text = shorten(case.background, HEAD, TAIL)
    return [f"Background, not to be rated:\n{quoting.block('background', text, case.mark)}"]


def windows(events: Sequence[Event], case: Case, context: Context, room: int) -> Iterator[tuple[Event, ...]]:
    """Runs of events that fit the room, each beginning with the end of the one before.

    A short first event, which says the task, stands before all of them.
    """
    sizes = [context.count(quoting.transcript([e], case.unit.participants, "")) for e in events]
    opening = tuple(events[:1]) if sizes[0] <= room * OVERLAP else ()
    start = 0
    while start < len(events):
        end, size = start, 0
        while end < len(events) and (size + sizes[end] <= room or end == start):
            size += sizes[end]
            end += 1
        run = tuple(events[start:end]) if size <= room else (context.trim(events[start], room),)
        yield (*opening, *run) if start else run
        if end == len(events):
            return
        if opening and not start:
            room -= sizes[0]
        back, overlap = end, 0
        while back - 1 > start and overlap + sizes[back - 1] <= room * OVERLAP:
            back -= 1
            overlap += sizes[back]
        start = back


def united_verdict(verdicts: Sequence[Verdict], positive: str | None) -> Verdict:
    """One code over the windows: present wins with all that it cites, then an error, then unclear.

    Without a label that says that something is there (`positive` None: a scale, more than two names), a whole
    has the label on which all its windows agree, `unclear` where one is; labels that differ make none, which
    is an error. The probability of a window's label is not that of the whole's.
    """
    present = [v for v in verdicts if v.label == positive] if positive is not None else []
    if present:
        cites = tuple(dict.fromkeys(seq for v in present for seq in v.cites))
        first = present[0]
        return Verdict(first.code, positive, None, cites, first.quote, first.error_source)
    errors = [v for v in verdicts if v.error is not None]
    unclear = [v for v in verdicts if v.label == UNCLEAR]
    labels = dict.fromkeys(v.label for v in verdicts if v.label != UNCLEAR)
    if positive is None and not errors and len(labels) > 1:
        parts = (
            f"its {len(verdicts)} windows were given {', '.join(map(str, labels))}, which make no one label"
        )
        return Verdict(verdicts[0].code, error=f"too long for one question: {parts}")
    return replace((errors or unclear or list(verdicts))[0], probability=None)


def _last(events: Sequence[Event], case: Case, context: Context, room: int) -> tuple[Event, ...]:
    """As many of the events as fit, from the end; the unit's own neighbourhood matters most."""
    window: list[Event] = []
    centre = case.unit.events[-1].seq
    nearest = sorted(events, key=lambda e: abs(e.seq - centre))
    for event in nearest:
        size = context.count(quoting.transcript([event], case.unit.participants, ""))
        if size > room:
            break
        room -= size
        window.append(event)
    if not window:
        return (context.trim(nearest[0], room),)
    return tuple(sorted(window, key=lambda e: (e.seq, e.sub)))


def _result(case: Case) -> list[str]:
    task = quoting.block("task", task_of(case.unit.events, case.unit.task), case.mark)
    if case.result is None:
        return [task, "The log does not hold the final text."]
    return [task, quoting.block("final text", case.result, case.mark)]
