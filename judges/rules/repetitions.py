"""Detectors of what was done before: questions, look-ups and steps once more.

Each is a function from a log to findings, or None where the log lacks what it takes. The same look-up
whose result was at hand is SA.2, the same work step is PL.2; a failed action tried once more is neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...schemas import Event
from .log import Finding, Log, alike, call, looks_up, named, words

NEAR = 0.9
"""Similarity of the words of two actions from which they count as the same."""
SAME_QUESTION = 0.85
"""Share of the shorter question's words that the other one repeats."""
FEWEST_WORDS = 5
_QUESTION = re.compile(r"[^.!?:;\n]+\?")
MOST_COMPARED = 40
"""Earlier actions that one is compared with: near repeats come soon."""
_HARMLESS = re.compile(r"wait|noop|stay|sleep|scroll|screenshot|click|key|move", re.IGNORECASE)
"""Names of actions that are done over and over without a fault."""


def question_asked_again(log: Log) -> list[Finding] | None:
    """SA.2: a question in (nearly) the same words after a human had replied to it."""
    questions = [
        e for a in log.agents for e in log.of_agent(a) if e.kind == "message" and "?" in (e.text or "")
    ]
    if not questions or not log.humans:
        return None
    findings = []
    asked: list[tuple[Event, Event | None, list[frozenset[str]]]] = []
    for question in questions:
        said = _asks(question)
        for earlier, reply, before in asked:
            if reply and reply.seq < question.seq and _same_question(said, before):
                cites = (earlier.seq, reply.seq, question.seq)
                why = f"asked again after the reply at {reply.seq}"
                findings.append(Finding(cites, why, (question.text or "")[:200]))
                break
        asked.append((question, _reply(log, question), said))
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
        for earlier, again in _repeats(searches)
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
    for earlier, again in _repeats(steps):
        key = call(earlier)
        tries[key] = tries.get(key, 0) + 1
        if not _changed_between(log, earlier, again) and (earlier.status != "failed" or tries[key] > 1):
            why = f"the step at {earlier.seq} again, with nothing new between"
            findings.append(Finding((earlier.seq, again.seq), why, named(again)))
    return findings


def _asks(message: Event) -> list[frozenset[str]]:
    """The words of each question in a message."""
    return [words(result) for result in _QUESTION.findall(message.text or "")]


def _same_question(some: list[frozenset[str]], others: list[frozenset[str]]) -> bool:
    """Whether a question of the one is (nearly) in the words of one of the other."""
    return any(
        len(a & b) >= SAME_QUESTION * max(FEWEST_WORDS, min(len(a), len(b))) for a in some for b in others
    )


def _repeats(actions: list[Event]) -> Iterator[tuple[Event, Event]]:
    """Each action that (nearly) repeats an earlier one, with the latest such."""
    seen: list[tuple[Event, str, frozenset[str]]] = []
    for event in actions:
        text = call(event)
        bag = words(text)
        for earlier, before, other in reversed(seen[-MOST_COMPARED:]):
            same_name = earlier.action and event.action and earlier.action.name == event.action.name
            if same_name and (text == before or (len(bag) > 8 and alike(bag, other) >= NEAR and _long(bag))):
                yield earlier, event
                break
        seen.append((event, text, bag))


def _long(bag: frozenset[str]) -> bool:
    return len(bag) >= 12


def _changed_between(log: Log, one: Event, other: Event) -> bool:
    """Whether something new came between: a human's message, or another change that succeeded."""
    between = [e for e in log.events if one.seq < e.seq < other.seq]
    return any(
        (e.kind == "message" and e.actor in log.humans)
        or (e.kind == "action" and e.status != "failed" and not looks_up(e) and call(e) != call(one))
        for e in between
    )


def _reply(log: Log, question: Event) -> Event | None:
    """The human's message that directly follows, unless it asks back."""
    said = [e for e in log.events if e.kind == "message" and e.seq > question.seq]
    if said and said[0].actor in log.humans and not (said[0].text or "").rstrip(" \"'").endswith("?"):
        return said[0]
    return None
