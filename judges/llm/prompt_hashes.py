"""What a question is known by: the hash of its prompt, as it would be in a context of any length.

The prompts of a trajectory's units repeat its transcript, which is hashed as it grows and never whole for
each unit: a session of thousands of events takes time in step with its length.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from dataclasses import dataclass, field

from ...schemas import Event
from . import quoting
from .judge import Case, LLMJudge, background


@dataclass
class PromptHashes:
    """The hashes of a judge's prompts; fast where the units of a trajectory come together, in order."""

    judge: LLMJudge
    _last: _Transcript | None = field(default=None, init=False)

    def of(self, case: Case) -> str:
        """24 hexadecimal digits of the whole prompt."""
        unit = case.unit
        if self.judge.context == "none" or unit.kind == "trajectory":
            digest = self.judge.start.copy()
            for message in self.judge.whole(case).question.messages[1:]:
                _update(digest, f"\0{message.role}\0{message.content}")
            return digest.hexdigest()
        if self._last is None or not self._last.is_of(case):
            self._last = _Transcript(self.judge, case)
        count = self._last.place(unit.event if self.judge.shows_before(unit) else None)
        digest = self._last.digest(count)
        rest = "\n\n".join(self.judge.question_parts(case, alone=not count))
        _update(digest, f"\n<<end of transcript {case.mark}>>\n\n{rest}" if count else rest)
        return digest.hexdigest()


class _Transcript:
    """The transcript of one trajectory, hashed up to some event."""

    def __init__(self, judge: LLMJudge, case: Case) -> None:
        self._case = case
        self._all = case.unit.transcript
        self._start = judge.start.copy()
        _update(self._start, "\0user\0")
        self._names = quoting.display_names(case.unit.participants)
        self._events = [event for event in self._all if not event.live_only]
        self._actors: set[str] = set()
        """Actors in the legend before the events."""
        self._n_hashed = 0
        self._hash = self._hash_opening([])

    def is_of(self, case: Case) -> bool:
        """Whether a case shows this very transcript."""
        return case.unit.transcript is self._all and case.mark == self._case.mark

    def place(self, before: int | None) -> int:
        """How many events lie before a seq; None: all."""
        return len(self._events) if before is None else bisect_left(self._events, before, key=_seq)

    def digest(self, count: int) -> hashlib.blake2b:
        """The hash of a prompt that shows so many events, up to the end of the last one."""
        if not count:
            return self._start.copy()
        more = {event.actor for event in self._events[self._n_hashed : count]} - self._actors
        if count < self._n_hashed or quoting.who_is_who(more, self._names):
            actors = list(dict.fromkeys(event.actor for event in self._events[:count]))
            self._actors, self._n_hashed, self._hash = set(actors), 0, self._hash_opening(actors)
        for event in self._events[self._n_hashed : count]:
            _update(self._hash, f"\n{quoting.event_lines(event, self._names.get(event.actor, 'unknown'))}")
        self._n_hashed = count
        return self._hash.copy()

    def _hash_opening(self, actors: list[str]) -> hashlib.blake2b:
        """The hash of all that comes before the events, where these are the actors."""
        digest = self._start.copy()
        legend = quoting.who_is_who(actors, self._names)
        transcript = "\n".join([f"<<transcript {self._case.mark}>>", *legend])
        _update(digest, "\n\n".join([*background(self._case), transcript]))
        return digest


def _seq(event: Event) -> int:
    return event.seq


def _update(digest: hashlib.blake2b, text: str) -> None:
    digest.update(text.encode("utf-8", "surrogatepass"))
