"""Detectors of what was not said: silent starts, long silences, unanswered humans, missing or bare reports.

Each is a function from a log to findings, or None where the log lacks what it takes. Silence from the
first action on is C.1, later silence C.3; a report that says nothing is C.5.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from ...schemas import Event
from .log import SAYS, Finding, Log, after
from .wordings import plain

STRETCH = 3
"""Task actions without a message that make a stretch of work (the codebook's word)."""
LONG = 6
"""Task actions without a message while the human waits."""
_ONLY_DONE = re.compile(
    r"\W*(?:ok(?:ay)?|done|all done|finished|complete[d]?|ready|it(?:'s| is) (?:done|ready|finished)|"
    r"(?:the |my )?(?:task|work|analysis|plan|draft|report|edit|update|job)? ?(?:is |has been )?"
    r"(?:now )?(?:finished|done|complete|completed|ready))\W*",
    re.IGNORECASE,
)


def silent_start(log: Log) -> list[Finding] | None:
    """C.1: a stretch of work of an agent that has not said a word yet."""
    if not log.channel or not log.human_messages:
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
    findings: dict[str, list[Finding]] = {agent: [] for agent in log.agents}
    for agent, run in _wordless_runs(log):
        if len(run) >= LONG:
            findings[agent].append(Finding(tuple(run), f"{len(run)} actions in a row without a word"))
    return list(itertools.chain(*findings.values()))


def unanswered_human(log: Log) -> list[Finding] | None:
    """C.3: a human asks, and no agent says anything until the human writes again or the log ends.

    Another message counts where agents only waited until then.
    """
    questions = [
        e
        for e in log.human_messages
        if _not_opening(e) and ("?" in plain(e.text or "") or _only_waits(log, e))
    ]
    if not questions or not log.agents:
        return None
    findings = []
    for question in questions:
        first = next(after(log.events, question.seq), None)
        reply = next((e for e in after(log.events, question.seq) if e.kind in SAYS), None)
        has_answer = reply is not None and reply.actor in log.agents
        ended_by_human = first is not None and first.kind == "finish" and first.actor in log.humans
        if first and not has_answer and not ended_by_human:
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
        if all(_ONLY_DONE.fullmatch(plain(e.text or "")) for e in reports):
            why = "the report after the last work only says that it is done"
            cites = (mine[worked].seq, *(e.seq for e in reports))
            findings.append(Finding(cites, why, reports[0].text or None))
    return findings if spoke_after_work else None


def _wordless_runs(log: Log) -> Iterator[tuple[str, list[int]]]:
    """(agent, events) of each run of actions of an agent that had spoken before, between its words, those of
    humans, and ends."""
    agents, speakers = set(log.agents), set[str]()
    runs: dict[str, list[int]] = {}
    for event in log.events:
        if event.kind == "action" and event.actor in agents:
            runs.setdefault(event.actor, []).append(event.seq)
            continue
        speaks = event.kind in SAYS
        if event.kind == "finish" or (speaks and event.actor in log.humans):
            closed, runs = runs, {}
        elif speaks and event.actor in agents:
            closed = {event.actor: runs.pop(event.actor, [])}
        else:
            continue
        yield from ((agent, run) for agent, run in closed.items() if agent in speakers)
        if speaks and event.actor in agents:
            speakers.add(event.actor)
    yield from ((agent, run) for agent, run in runs.items() if agent in speakers)


def _not_opening(event: Event) -> bool:
    return event.status is not None or event.seq > 1


def _only_waits(log: Log, message: Event) -> bool:
    """Whether all that agents did until the human's next message (or the end) was to wait."""
    kinds = set()
    for event in after(log.events, message.seq):
        if event.kind == "message" and event.actor in log.humans:
            break
        if event.actor in log.agents:
            kinds.add(event.kind)
    return kinds == {"wait"}
