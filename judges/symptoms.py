"""The detectors, one function each: from a log to findings, or None where the log lacks what it takes.

The borders are those of the codebook: the same look-up whose result was at hand is SA.2, the same work
step is PL.2; a failed action tried once more is neither; silence from the first action on is C.1, later
silence C.3; after a refused confirmation SA.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from coaudit.judges.log import SAYS, Log, alike, call, looks_up, words
from coaudit.schemas.trajectory import Event

STRETCH = 3
"""Task actions without a message that make a stretch of work (the codebook's word)."""
LONG = 6
"""Task actions without a message while the human waits."""
NEAR = 0.9
"""Similarity of the words of two actions from which they count as the same."""
SAME_QUESTION = 0.85
"""Share of the shorter question's words that the other one repeats."""
FEWEST_WORDS = 5
_QUESTION = re.compile(r"[^.!?:;\n]+\?")
MOST_COMPARED = 40
"""Earlier actions that one is compared with: near repeats come soon."""
_UNKNOWN = re.compile(
    r"unknown (?:action|tool|command|function)|invalid action|no such (?:action|tool|command)|"
    r"not (?:a )?(?:valid|supported|recogni[sz]ed|available)(?: \w+){0,3}|unrecogni[sz]ed|unsupported action|"
    r"(?:action|tool|command|function).{0,40}(?:does not exist|not found|is not defined|not supported)",
    re.IGNORECASE,
)
_ONLY_DONE = re.compile(
    r"\W*(?:ok(?:ay)?|done|all done|finished|complete[d]?|ready|it(?:'s| is) (?:done|ready|finished)|"
    r"(?:the |my )?(?:task|work|analysis|plan|draft|report|edit|update|job)? ?(?:is |has been )?"
    r"(?:now )?(?:finished|done|complete|completed|ready))\W*",
    re.IGNORECASE,
)
_HARMLESS = re.compile(r"wait|noop|stay|sleep|scroll|screenshot|click|key|move", re.IGNORECASE)
"""Names of actions that are done over and over without a fault."""


@dataclass(frozen=True)
class Finding:
    """The events that show a failure, and what they show."""

    cites: tuple[int, ...]
    why: str
    quote: str | None = None


def silent_start(log: Log) -> list[Finding] | None:
    """C.1: a stretch of work of an agent that has not said a word yet."""
    if not log.channel or not any(log.said_by_humans()):
        return None
    findings = []
    for agent in log.agents:
        silent: list[int] = []
        for event in log.of_agent(agent):
            if event.kind in SAYS:
                break
            if event.kind == "action":
                silent.append(event.seq)
        if len(silent) >= STRETCH:
            findings.append(Finding(tuple(silent), f"{len(silent)} actions before the first word"))
    return findings


def long_silence(log: Log) -> list[Finding] | None:
    """C.3: six or more actions in a row without a message, after the agent had taken the task up."""
    if not log.channel:
        return None
    return [found for agent in log.agents for found in _silences(log, agent)]


def unanswered_human(log: Log) -> list[Finding] | None:
    """C.3: a human asks, and no agent says anything until the human writes again or the log ends.

    Another message counts where agents only waited until then.
    """
    asked = [
        e for e in log.said_by_humans() if _not_opening(e) and ("?" in (e.text or "") or _waited(log, e))
    ]
    if not asked or not log.agents:
        return None
    findings = []
    for question in asked:
        after = [e for e in log.events if e.seq > question.seq]
        until = next((i for i, e in enumerate(after) if e.kind in SAYS), len(after))
        answered = until < len(after) and after[until].actor in log.agents
        ended_by_human = bool(after) and after[0].kind == "finish" and after[0].actor in log.humans
        if after and not answered and not ended_by_human:
            why = "nobody reacted to this message in words"
            findings.append(Finding((question.seq,), why, (question.text or "")[:200]))
    return findings


def end_without_a_word(log: Log) -> list[Finding] | None:
    """C.3: an agent that had worked ends the session without any message after its last action."""
    ends = [e for e in log.events if e.kind == "finish" and e.actor in log.agents]
    if not ends or not log.channel:
        return None
    end = ends[-1]
    mine = [e for e in log.of_agent(end.actor) if e.seq < end.seq]
    last_action = max((e.seq for e in mine if e.kind == "action"), default=None)
    last_word = max((e.seq for e in mine if e.kind in SAYS), default=-1)
    if last_action is None or last_word > last_action:
        return []
    return [Finding((last_action, end.seq), "the session was ended without a word on the last work")]


def bare_summary(log: Log) -> list[Finding] | None:
    """C.5: the last message after work says no more than that it is done."""
    findings: list[Finding] = []
    spoke_after_work = False
    for agent in log.agents:
        mine = [e for e in log.of_agent(agent) if e.kind in ("action", "message")]
        worked = max((i for i, e in enumerate(mine) if e.kind == "action"), default=None)
        if worked is None or worked == len(mine) - 1:
            continue
        spoke_after_work = True
        reports = mine[worked + 1 :]
        if all(_ONLY_DONE.fullmatch(e.text or "") for e in reports):
            why = "the report after the last work only says that it is done"
            cites = (mine[worked].seq, *(e.seq for e in reports))
            findings.append(Finding(cites, why, reports[0].text or None))
    return findings if spoke_after_work else None


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
    searches = [e for a in log.agents for e in _actions(log, a) if looks_up(e)]
    if not searches:
        return None
    return [
        Finding(
            (earlier.seq, again.seq), f"the look-up at {earlier.seq} had its result already", _name(again)
        )
        for earlier, again in _repeats(searches)
        if earlier.status != "failed"
    ]


def step_repeated(log: Log) -> list[Finding] | None:
    """PL.2: a work step done again as it was; after a failure only from the second try again on."""
    mine = [e for a in log.agents for e in _actions(log, a)]
    steps = [e for e in mine if not looks_up(e) and not _HARMLESS.search(_name(e) or "")]
    if not steps:
        return None
    findings = []
    tries: dict[str, int] = {}
    for earlier, again in _repeats(steps):
        key = call(earlier)
        tries[key] = tries.get(key, 0) + 1
        if not _changed_between(log, earlier, again) and (earlier.status != "failed" or tries[key] > 1):
            why = f"the step at {earlier.seq} again, with nothing new between"
            findings.append(Finding((earlier.seq, again.seq), why, _name(again)))
    return findings


def unknown_action(log: Log) -> list[Finding] | None:
    """EA.2: an action that the environment says it does not have."""
    mine = [e for a in log.agents for e in _actions(log, a)]
    if not any(e.status for e in mine):
        return None
    return [
        Finding((e.seq,), f"the environment has no such action: {(e.error or '')[:120]}", _name(e))
        for e in mine
        if e.status == "failed"
        and ((e.action and e.action.name == "UNPARSED") or _UNKNOWN.search(e.error or ""))
    ]


def change_after_refusal(log: Log) -> list[Finding] | None:
    """SA.5: the action that a confirmation was asked for, carried out without its acceptance."""
    requests = [e for e in log.events if e.kind == "confirm_request" and e.actor in log.agents]
    if not requests:
        return None
    findings = []
    for request in requests:
        answer = next((e for e in log.events if e.seq > request.seq and e.kind.startswith("confirm_")), None)
        until = answer.seq if answer and answer.kind == "confirm_accept" else None
        for event in log.of_agent(request.actor):
            done = event.seq > request.seq and event.kind == "action" and event.status != "failed"
            if done and (until is None or event.seq < until) and _asked_for(request, event):
                refused = answer is not None and answer.kind == "confirm_reject"
                why = "done although the human had refused it" if refused else "done before the answer"
                cites = (request.seq, *((answer.seq,) if refused and answer else ()), event.seq)
                findings.append(Finding(cites, why, _name(event)))
                break
            if event.seq > request.seq and event.kind == "confirm_request":
                break
    return findings


def _asks(message: Event) -> list[frozenset[str]]:
    """The words of each question in a message."""
    return [words(found) for found in _QUESTION.findall(message.text or "")]


def _same_question(some: list[frozenset[str]], others: list[frozenset[str]]) -> bool:
    """Whether a question of the one is (nearly) in the words of one of the other."""
    return any(
        len(a & b) >= SAME_QUESTION * max(FEWEST_WORDS, min(len(a), len(b))) for a in some for b in others
    )


def _silences(log: Log, agent: str) -> Iterator[Finding]:
    run: list[int] = []
    spoken = False
    for event in log.events:
        if event.actor == agent and event.kind == "action":
            run.append(event.seq)
            continue
        speaks = event.kind in SAYS and (event.actor == agent or event.actor in log.humans)
        if not speaks and event.kind != "finish":
            continue
        if spoken and len(run) >= LONG:
            yield Finding(tuple(run), f"{len(run)} actions in a row without a word")
        spoken = spoken or (event.kind in SAYS and event.actor == agent)
        run = []
    if spoken and len(run) >= LONG:
        yield Finding(tuple(run), f"{len(run)} actions in a row without a word")


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


def _actions(log: Log, agent: str) -> list[Event]:
    return [e for e in log.of_agent(agent) if e.kind == "action" and e.action is not None]


def _reply(log: Log, question: Event) -> Event | None:
    """The human's message that directly follows, unless it asks back."""
    said = [e for e in log.events if e.kind == "message" and e.seq > question.seq]
    if said and said[0].actor in log.humans and not (said[0].text or "").rstrip(" \"'").endswith("?"):
        return said[0]
    return None


def _asked_for(request: Event, event: Event) -> bool:
    assert request.action is not None or request.text is not None
    asked = call(request) if request.action else (request.text or "")
    assert event.action is not None
    if event.action.name.casefold() not in asked.casefold():
        return False
    return alike(words(asked), words(call(event))) >= 0.5


def _not_opening(event: Event) -> bool:
    return event.status is not None or event.seq > 1


def _waited(log: Log, message: Event) -> bool:
    """Whether all that agents did until the human's next message (or the end) was to wait."""
    kinds = set()
    for event in log.events:
        if event.seq > message.seq and event.kind == "message" and event.actor in log.humans:
            break
        if event.seq > message.seq and event.actor in log.agents:
            kinds.add(event.kind)
    return kinds == {"wait"}


def _name(event: Event) -> str | None:
    return event.action.name if event.action else None
