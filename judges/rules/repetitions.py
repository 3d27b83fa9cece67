"""Detectors of what was done before: questions, look-ups and steps once more.

Each is a function from a log to findings, or None where the log lacks what it takes. The same look-up
whose result was at hand is SA.2, the same work step is PL.2; a failed action tried once more is neither.
"""

from __future__ import annotations

import heapq
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator

from ...schemas import Event
from .log import Finding, Log, after, alike, looks_up, named, words
from .wordings import plain

NEAR = 0.9
"""Similarity of the words of two actions from which they count as the same."""
SAME_QUESTION = 0.85
"""Share of the shorter question's words that the other one repeats."""
FEWEST_WORDS = 5
LONG = 12
"""Words from which on actions count as the same that are only alike."""
Bag = frozenset[str]
"""The words of a question or an action."""
_QUESTION = re.compile(r"(?<![^.!?:;\n])[^.!?:;\n]+\?")
"""It begins behind a mark alone: begun at each character, a long text without one takes its square."""
_AFTER = " \t\r\n\"'“”«»"
"""What may stand behind the question mark that a message ends with."""
MOST_COMPARED = 40
"""Earlier actions that one is compared with: near repeats come soon."""
_HARMLESS = re.compile(r"wait|noop|stay|sleep|scroll|screenshot|click|key|move", re.IGNORECASE)
"""Names of actions that are done over and over without a fault."""


def question_asked_again(log: Log) -> list[Finding] | None:
    """SA.2: a question in (nearly) the same words after a human had replied to it."""
    questions = [
        e for a in log.agents for e in log.of_agent(a) if e.kind == "message" and "?" in plain(e.text or "")
    ]
    if not questions or not log.humans:
        return None
    findings = []
    history = _Asked([(e, _asks(e)) for e in questions])
    for question, bags in history.questions:
        for earlier, reply in history.alike(bags):
            if reply.seq < question.seq:
                cites = (earlier.seq, reply.seq, question.seq)
                why = f"asked again after the reply at {reply.seq}"
                findings.append(Finding(cites, why, (question.text or "")[:200]))
                break
        answer = _reply(log, question)
        if answer:
            history.add(question, answer, bags)
    return findings


def search_repeated(log: Log) -> list[Finding] | None:
    """SA.2: a look-up with the same content as an earlier one that had succeeded."""
    searches = [e for a in log.agents for e in log.actions(a) if looks_up(e)]
    if not searches:
        return None
    return [
        Finding(
            (earlier.seq, again.seq), f"the look-up at {earlier.seq} had its result already", named(again)
        )
        for earlier, again in _repeats(log, searches)
        if earlier.status != "failed"
    ]


def step_repeated(log: Log) -> list[Finding] | None:
    """PL.2: a work step done again as it was; after a failure only from the second try again on."""
    mine = [e for a in log.agents for e in log.actions(a)]
    steps = [e for e in mine if not looks_up(e) and not _HARMLESS.search(named(e) or "")]
    if not steps:
        return None
    findings = []
    tries: dict[str, int] = {}
    for earlier, again in _repeats(log, steps):
        key = log.call(earlier)
        tries[key] = tries.get(key, 0) + 1
        if not _changed_between(log, earlier, again) and (earlier.status != "failed" or tries[key] > 1):
            why = f"the step at {earlier.seq} again, with nothing new between"
            findings.append(Finding((earlier.seq, again.seq), why, named(again)))
    return findings


def _asks(message: Event) -> list[Bag]:
    """The words of each question in a message."""
    return [words(result) for result in _QUESTION.findall(plain(message.text or ""))]


def _least_overlap(one: Bag, other: Bag) -> int:
    """How many words two questions must share to be (nearly) the same."""
    return math.ceil(SAME_QUESTION * max(FEWEST_WORDS, min(len(one), len(other))))


class _Asked:
    """Questions that were answered, found by the words of another one.

    Of two that share enough words, at least one of the few rarest of the shorter one is shared: only those
    that share it are compared, so that a log of thousands of questions takes no time for each pair.
    """

    def __init__(self, questions: list[tuple[Event, list[Bag]]]) -> None:
        self.questions = questions
        self._often = Counter(word for _, bags in questions for bag in bags for word in bag)
        self._known: list[tuple[Event, Event, list[Bag]]] = []
        self._of_rare: dict[str, list[int]] = {}
        self._of_any: dict[str, list[int]] = {}

    def add(self, question: Event, reply: Event, bags: list[Bag]) -> None:
        """One more, with the reply to it."""
        place = len(self._known)
        self._known.append((question, reply, bags))
        for word in {word for bag in bags for word in self._rare(bag)}:
            self._of_rare.setdefault(word, []).append(place)
        for word in {word for bag in bags for word in bag}:
            self._of_any.setdefault(word, []).append(place)

    def alike(self, bags: list[Bag]) -> Iterator[tuple[Event, Event]]:
        """Those of which a question is (nearly) in the words of one of these, the first one first."""
        longer = [self._of_rare.get(word, ()) for bag in bags for word in bag]
        shorter = [self._of_any.get(word, ()) for bag in bags for word in self._rare(bag)]
        for place, _ in itertools.groupby(heapq.merge(*longer, *shorter)):
            question, reply, before = self._known[place]
            if any(len(a & b) >= _least_overlap(a, b) for a in bags for b in before):
                yield question, reply

    def _rare(self, bag: Bag) -> list[str]:
        """The rarest words, of which another that is no shorter shares one if it shares enough."""
        rarest = sorted(bag, key=lambda word: (self._often[word], word))
        return rarest[: max(0, len(bag) - _least_overlap(bag, bag) + 1)]


def _repeats(log: Log, actions: list[Event]) -> Iterator[tuple[Event, Event]]:
    """Each action that (nearly) repeats an earlier one, with the latest such."""
    history: list[tuple[Event, str, frozenset[str]]] = []
    for event in actions:
        text = log.call(event)
        bag = words(text)
        for earlier, before, other in reversed(history[-MOST_COMPARED:]):
            same_name = earlier.action and event.action and earlier.action.name == event.action.name
            if same_name and (text == before or (len(bag) >= LONG and _near(bag, other))):
                yield earlier, event
                break
        history.append((event, text, bag))


def _near(one: Bag, other: Bag) -> bool:
    """Whether two bags are alike; such as differ too much in size are not looked into."""
    sizes = sorted((len(one), len(other)))
    return sizes[0] >= NEAR * sizes[1] - 1 and alike(one, other) >= NEAR


def _changed_between(log: Log, one: Event, other: Event) -> bool:
    """Whether something new came between: a human's message, or another change that succeeded."""
    between = itertools.takewhile(lambda e: e.seq < other.seq, after(log.events, one.seq))
    return any(
        (e.kind == "message" and e.actor in log.humans)
        or (e.kind == "action" and e.status != "failed" and not looks_up(e) and log.call(e) != log.call(one))
        for e in between
    )


def _reply(log: Log, question: Event) -> Event | None:
    """The human's message that directly follows, unless it asks back."""
    message = next(after(log.messages, question.seq), None)
    if message and message.actor in log.humans and not plain(message.text or "").rstrip(_AFTER).endswith("?"):
        return message
    return None
