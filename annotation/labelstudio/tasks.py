"""A unit as a Label Studio task: the transcript as lines of a dialogue, the unit marked, our own key.

Annotators see who is human and who is agent, not which model or condition, and nothing that a judge said;
names where the log itself uses them, or they tell several of a kind apart.
Text from logs goes into a task's data only, as JSON; characters that would hide or turn text around are
shown as escapes. A task's `meta` repeats the key and where the lines come from, so that Label Studio can list
a project without its transcripts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...schemas import Action, Codebook, Event, JsonValue, Participant, Trajectory, content_hash
from ...schemas.changes import LOGGED, RESULT, leaves
from ...schemas.codebook import Views
from ...schemas.results import AGAIN, GONE, NEWS, PATH, FullEvent, beside, shorten, task_of, with_results
from ...schemas.text import INVISIBLE
from .config import EARLIER, FINAL, LATER, TRANSCRIPT, UNIT, WHOLE, is_folded, is_parted

KEY = "coaudit_key"
DISPUTED = "disputed"
"""Of a task that settles a dispute: the codes that it is about."""
NOTICE, INSTRUCTIONS = "(notice) ", "Instructions"
"""Begins what an environment said before the event whose seq its line has; the author of what agents were
told before it."""
NO_EVENT = -1
"""The seq of a line that shows none: what is marked there cites nothing."""
SEQS = range(NO_EVENT, 2**31)
"""What the seq of a line may be."""
AROUND = 4
"""Lines of the log before and after a unit that are shown at once; the rest on a click."""
BESIDE = 1
"""Lines before and after each of a participant's that are shown with it."""
CONTEXTS = ("transcript", "preceding", "unit")
"""What an annotator sees beside the unit; `preceding` never shows what came after it."""
_HASHED = re.compile(r"[0-9a-f]{16,32}(-[0-9a-f]{6})?")
_ROLES = {"user", "human", "agent", "assistant", "environment", "system"}
"""Names that say no more than what somebody is."""
SHORTEST = 4
"""Letters of a name that is looked for in those of models: a shorter one may be part of any."""
_FAMILY = re.compile(
    r"(chat)?gpt\d|claude|gemini\d|gemma|(meta)?llama|qwen|mi[sx]tral|deepseek|grok|o[134](mini|pro|preview)?$"
)
"""How the names of well-known models begin."""
_ESCAPE = re.compile(r"\\.")
"""An escape in JSON: a backslash of the text itself has two."""
_HIDDEN = re.compile(f"[{INVISIBLE}\ud800-\udfff]")


@dataclass(frozen=True)
class Subject:
    """Which unit of which sample a task asks about."""

    sample: str
    """Identity of the sample: two samples of one name are two."""
    trajectory: str
    event: int | None
    unit_hash: str
    codebook: str
    version: str

    @property
    def key(self) -> str:
        """The same for the same unit of the same sample under the same codebook, on every server."""
        return content_hash(
            self.sample, self.trajectory, self.event, self.unit_hash, self.codebook, self.version
        )


@dataclass(frozen=True)
class Line:
    """A line of the transcript: who, what, and the seq of the event that it shows or `NO_EVENT`."""

    author: str
    text: str
    seq: int
    is_event: bool = False
    """Whether it says what the event was, and is no notice before it or change of state after it."""


class Log:
    """A trajectory as annotators see it: what all tasks on it have in common is made once."""

    def __init__(self, trajectory: Trajectory, background: str | None = None, views: Views = "team") -> None:
        self.trajectory = trajectory
        self.background = background
        self.views = views

    @cached_property
    def lines(self) -> Sequence[Line]:
        """All of it."""
        return tuple(lines(self.trajectory, self.views))

    @cached_property
    def background_lines(self) -> Sequence[Line]:
        """Who is who, and what one must know of the task and the log does not say; whom it names, as the
        lines call them."""
        text = self.background or ""
        for name, title in _names(self.trajectory).items():
            text = re.sub(rf"\b{re.escape(name)}\b", rf"\g<0> ({title})", text, count=1)
        parts = {"Who is who": "\n".join(_calls(self.trajectory)), "Background": text}
        return tuple(Line(title, clean(part), NO_EVENT) for title, part in parts.items() if part)

    @cached_property
    def final_text(self) -> str:
        """What the team ended with: the text of their work, else what they shared."""
        text = self.trajectory.result
        return final_state(self.trajectory) if text is None else clean(text)

    @cached_property
    def task(self) -> str:
        """What the team was asked to do."""
        return clean(task_of(self.trajectory.events, self.trajectory.task))


def task(
    subject: Subject, log: Log, events: Sequence[Event], book: Codebook, context: str
) -> dict[str, JsonValue]:
    """The task as Label Studio imports it."""
    is_whole = subject.event is None
    is_participant = book.unit == "participant"
    marks = (
        {} if is_whole else {event.seq: 0 if is_participant else place for place, event in enumerate(events)}
    )
    whole_log = [_mark_line(line, marks) for line in log.lines if _visible(line.seq, marks, context)]
    earlier, excerpt, later = split_around(whole_log, set(marks)) if is_folded(book) else ((), whole_log, ())
    if is_parted(book):
        excerpt = lines_near(whole_log, set(marks))
    if not marks or context != "unit":
        excerpt = [*log.background_lines, *excerpt]
    seqs: list[JsonValue] = [line.seq for line in excerpt]
    data: dict[str, JsonValue] = {
        KEY: subject.key,
        "codebook": subject.codebook,
        "codebook_version": subject.version,
        "trajectory": _anonymous_id(subject.trajectory),
        "event": subject.event,
        "seqs": seqs,
        TRANSCRIPT: _dialogue(excerpt),
    }
    if is_folded(book):
        nothing = [Line("Log", "(nothing more to show)", NO_EVENT)]
        data |= {EARLIER: _dialogue(earlier or nothing), LATER: _dialogue(later or nothing)}
    if is_parted(book):
        data[WHOLE] = _dialogue(whole_log)
    if is_whole:
        is_of_result = book.context == "none"
        data[FINAL] = f"{log.final_text}\n\n(The task was:)\n{log.task}" if is_of_result else log.final_text
    else:
        unit_lines = [_mark_line(line, marks) for line in log.lines if line.is_event and line.seq in marks]
        data[UNIT] = _dialogue(unit_lines)
    meta: dict[str, JsonValue] = {KEY: subject.key, "seqs": seqs}
    return {"data": data, "meta": meta}


def lines(trajectory: Trajectory, views: Views = "team") -> Iterator[Line]:
    """Every event as lines: what was done and when, how it failed, and what it changed in these views."""
    names = _names(trajectory)
    for event in with_results(trajectory, views, names).events:
        if event.live_only:
            continue
        full = event if isinstance(event, FullEvent) else FullEvent.model_construct(**vars(event))
        for author, text in _before(full):
            yield Line(author, f"[{event.seq}] {clean(text)}", event.seq)
        place = f"{event.seq}, {full.after}" if full.after else f"{event.seq}"
        yield Line(names[event.actor], f"[{place}] {clean(describe(event))}", event.seq, is_event=True)
        for author, text in _behind(full, names[event.actor]):
            yield Line(author, f"[{event.seq}] {clean(text)}", event.seq)


def _before(event: FullEvent) -> Iterator[tuple[str, str]]:
    """Who said what before an event, and it is no part of it."""
    for notice in event.notices:
        yield "Environment", f"{NOTICE}{notice.text}"
    for one in event.briefings:
        whom = "agents" if one.view == "public" else one.view
        if one.path == AGAIN:
            yield INSTRUCTIONS, f"(told to {whom} again, as from event {one.text} on)"
        else:
            yield INSTRUCTIONS, f"({_HEADINGS.get(one.path, 'told to {}').format(whom)})\n{one.text}"


def _behind(event: FullEvent, name: str) -> Iterator[tuple[str, str]]:
    """What an event's words do not say: what was done beside them, what came back and what it changed."""
    if call := _beside(event):
        yield name, f"▸ {call}"
    for one in event.result or ():
        what = "what came back" if one.path == RESULT else f"after it, in the state · {one.path}"
        yield "State", f"{what}:\n{one.text}"
    if event.result == ():
        yield "State", "after it, the state is as it was"


def _mark_line(line: Line, marks: dict[int, int]) -> Line:
    """A line; that of an event that is to be rated (`marks`: 0), or of a reply to one, with a mark that says
    so."""
    if not line.is_event or line.seq not in marks:
        return line
    what = "RATE THIS" if marks[line.seq] == 0 else "WITH ITS REPLY"
    return replace(line, author=f"▶ {what} · {line.author}")


def split_around(
    whole: Sequence[Line], marks: set[int]
) -> tuple[Sequence[Line], Sequence[Line], Sequence[Line]]:
    """The log cut in three: what is around the events of `marks`, and what lies before and after that."""
    places = [place for place, line in enumerate(whole) if line.seq in marks]
    first = max(0, min(places, default=0) - AROUND)
    last = max(places, default=0) + AROUND + 1
    return whole[:first], whole[first:last], whole[last:]


def lines_near(whole: Sequence[Line], marks: set[int]) -> list[Line]:
    """The lines of the events of `marks`, each with the one before and after; a line says how many lie
    between."""
    centres = [place for place, line in enumerate(whole) if line.seq in marks]
    near_own = {place for at in centres for place in range(at - BESIDE, at + BESIDE + 1)}
    places = sorted(near_own & {*range(len(whole))})
    excerpt: list[Line] = []
    after = 0
    for place in [*places, len(whole)]:
        if gap := place - after:
            between = f"… {gap} line{'s' * (gap > 1)} of others, in the whole log below"
            excerpt.append(Line("Log", between, NO_EVENT))
        excerpt += whole[place : place + 1]
        after = place + 1
    return excerpt


def describe(event: Event) -> str:
    """What happened, as text: a message byte for byte, anything else as a call with its arguments."""
    if _is_said(event):
        text = event.text or ""
    else:
        call = event.action and _call(event.action, event.action.arguments)
        text = " ".join(part for part in (_KINDS.get(event.kind), call, event.text) if part)
    if event.status == "failed":
        text += f"\n✗ FAILED: {event.error or 'no reason logged'}"
    elif event.error:
        text += f"\nerror: {event.error}"
    return text


def final_state(trajectory: Trajectory) -> str:
    """What the team shared at the end, in full; an explanation where the log holds no such state."""
    last: dict[str, str] = {}
    for event in trajectory.events:
        last.update(event.states)
    digest = last.get("public")
    parts = leaves(trajectory.states.get(digest or ""), None)
    lasting = [(path, text) for path, text in parts if path.partition(".")[0] not in (RESULT, LOGGED)]
    if not lasting:
        return "(the log holds no state of the shared work: the log itself tells)"
    return clean("\n\n".join(f"{path}:\n{text}" for path, text in lasting))


def clean(text: str) -> str:
    """Text with control and direction characters shown as escapes, for readers and for JSON."""
    return _HIDDEN.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


_HEADINGS = {NEWS: "told to {} from here on", GONE: "no longer told to {}"}
_KINDS = {
    "start": "■ start",
    "wait": "… waits",
    "confirm_request": "? asks to confirm",
    "confirm_accept": "✓ accepts",
    "confirm_reject": "✗ rejects",
    "control": "■",
    "finish": "■ finishes",
    "note": "(note)",
    "action": "▸",
}


def _visible(seq: int, marks: dict[int, int], context: str) -> bool:
    if not marks or context == "transcript":
        return True
    return seq <= max(marks) if context == "preceding" else seq in marks


def _anonymous_id(key: str) -> str:
    """An id that is a hash; one that a log gave may tell the condition, as names may."""
    return key if _HASHED.fullmatch(key) else content_hash(key)[:16]


def _names(trajectory: Trajectory) -> dict[str, str]:
    """What lines call participants: their kind, numbered where there are several, since names may tell the
    condition."""
    names: dict[str, str] = {}
    for kind in ("human", "agent", "environment"):
        having = [p.name for p in trajectory.participants if p.kind == kind]
        for number, name in enumerate(having, start=1):
            names[name] = kind.capitalize() if len(having) == 1 else f"{kind.capitalize()} {number}"
    return names


def _is_said(event: Event) -> bool:
    return event.kind in ("message", "start") and bool(event.text)


def _calls(trajectory: Trajectory) -> Iterator[str]:
    """The names, a line each, that the log's words have, and those that tell several of one kind apart; of
    those that tell a model or the condition, nothing."""
    kinds = Counter(one.kind for one in trajectory.participants)
    titles = _names(trajectory)
    arms = (trajectory.condition, trajectory.agent)
    for one in trajectory.participants:
        is_open = kinds[one.kind] > 1 and not any(_tells(one.name, arm) for arm in arms if arm)
        if not _tells_model(one, trajectory) and (is_open or _is_called(one.name, trajectory)):
            yield f"{titles[one.name]} goes by the name {shorten(' '.join(one.name.split()), *PATH)}"


def _tells_model(one: Participant, trajectory: Trajectory) -> bool:
    """Whether a name is that of a model, with or without its maker or version; where the log does not say an
    agent's model, a name that begins as well-known models' do."""
    name = _letters(one.name)
    models = [trajectory.agent_model, *(other.model for other in trajectory.participants)]
    texts = [_letters(model) for model in models if model]
    if name in texts or (one.kind == "agent" and _FAMILY.match(name)):
        return True
    texts = [text for text in texts if min(len(text), len(name)) >= SHORTEST]
    return any(text.startswith(name) or text in name for text in texts)


def _letters(text: str) -> str:
    """A name for comparison: its letters and digits, behind the maker's name."""
    return re.sub(r"[\W_]+", "", text.rpartition("/")[2].casefold())


def _tells(name: str, secret: str) -> bool:
    """Whether one of the two has all words of the other: `helper treated` of the arm `treated`."""
    words, others = (re.findall(r"[^\W_]+", text.casefold()) for text in (name, secret))
    short, long = sorted((f" {' '.join(each)} " for each in (words, others)), key=len)
    return bool(short.strip()) and short in long


def _is_called(name: str, trajectory: Trajectory) -> bool:
    """Whether a name that is no role stands in a log's words."""
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return name.lower() not in _ROLES and any(word.search(event.text or "") for event in trajectory.events)


def _beside(event: Event) -> str:
    """What the action of who says something has beside the words, such as a cook's plan."""
    if event.action is None or not _is_said(event):
        return ""
    arguments = beside(event)
    is_unread = event.action.raw and not event.action.arguments
    return _call(event.action, arguments) if arguments or is_unread else ""


def _call(action: Action, arguments: Mapping[str, JsonValue]) -> str:
    """An action with some of its arguments, or as it was logged where it has none."""
    if action.raw and not action.arguments:
        return f"{action.name} {action.raw}".strip()
    return f"{action.name}({', '.join(f'{key}={_readable(value)}' for key, value in arguments.items())})"


def _readable(value: JsonValue) -> str:
    """A text as it is, anything else as JSON with its breaks of lines as such."""
    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return _ESCAPE.sub(lambda match: "\n" if match[0] == r"\n" else match[0], text)


def _dialogue(items: Sequence[Line]) -> JsonValue:
    return [{"author": line.author, "text": line.text} for line in items]
