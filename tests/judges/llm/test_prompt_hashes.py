"""Hashes of prompts: those of whole prompts, whatever a judge is shown, in time with the length of a log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from coaudit.judges.llm import Case, LLMJudge, quoting
from coaudit.judges.llm.prompt_hashes import PromptHashes
from coaudit.pipeline import codebooks
from coaudit.pipeline.units import cut
from coaudit.schemas import Codebook, Event, Participant, Trajectory
from coaudit.schemas.codebook import ContextKind
from tests.judges.teams import TEAM, team
from tests.steps import steps

CONTEXTS: tuple[ContextKind, ...] = ("none", "preceding", "transcript")
BOOKS = ("initiative", "confirmation", "halting", "trail_step", "responsible_agent", "failures")


def whole(judge: LLMJudge, case: Case) -> str:
    """The hash of a prompt that was written out."""
    system, *asked = judge.whole(case).question.messages
    text = f"{system.role}\0{system.content}" + "".join(f"\0{m.role}\0{m.content}" for m in asked)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def cases(
    book: Codebook, context: ContextKind, *logs: Trajectory, background: str | None = None
) -> Iterator[Case]:
    """Every unit of these logs."""
    seen = book.model_copy(update={"context": context})
    for log in logs:
        for unit in cut(log, seen, include_query=True):
            yield Case(unit, quoting.nonce(b"secret", log.id), "the end", background)


def named(log: Trajectory) -> Trajectory:
    """A log in which some have a name of their own, come in late, or are no participants."""
    names = {"human": "Ada", "agent": "agent"}
    people = tuple(p.model_copy(update={"name": names.get(p.name, p.name)}) for p in TEAM)
    late = (Participant(name="Bo\nb", kind="human"), Participant(name="helper", kind="agent"))
    events = [e.model_copy(update={"actor": names.get(e.actor, e.actor)}) for e in log.events]
    more = [
        Event(seq=len(events), actor="Bo\nb", kind="message", text="Who is this?", status="succeeded"),
        Event(seq=len(events), sub=1, live_only=True, actor="helper", kind="wait"),
        Event(seq=len(events) + 1, actor="stranger", kind="note", text="\ud800"),
        Event(seq=len(events) + 2, actor="helper", kind="message", text="Shall I go?", status="succeeded"),
        Event(seq=len(events) + 3, actor="Ada", kind="message", text="Yes.", status="succeeded"),
    ]
    return log.model_copy(update={"participants": (*people, *late), "events": (*events, *more)})


LOGS = (
    team(("human", "Book it."), ("agent", "May I?"), ("agent", "SEARCH(a lake)"), ("human", "Yes.")),
    named(team(("human", "Book it."), ("agent", "Which one?"), ("human", "Yes."), key="t2")),
    team(key="t3"),
)


@pytest.mark.parametrize("background", [None, "Recipe:\nCut the leek."])
@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("name", BOOKS)
def test_a_question_is_known_by_the_hash_of_its_whole_prompt(
    name: str, context: ContextKind, background: str | None
) -> None:
    book = codebooks.load(name)
    judge = LLMJudge(book, context)
    many = list(cases(book, context, *LOGS, background=background))
    hashes = PromptHashes(judge)
    assert [hashes.of(case) for case in many] == [whole(judge, case) for case in many]
    # In another order as well.
    assert [hashes.of(case) for case in reversed(many)] == [whole(judge, case) for case in reversed(many)]


@pytest.mark.parametrize("context", CONTEXTS)
def test_hashes_of_a_long_log_take_work_in_step_with_its_length(context: ContextKind) -> None:
    book = codebooks.load("trail_step")
    judge = LLMJudge(book, context)

    def work(length: int) -> int:
        log = team(*[(("human", "agent")[i % 2], f"Please check item {i}?") for i in range(length)])
        many = list(cases(book, context, log))
        hashes = PromptHashes(judge)
        return steps(lambda: [hashes.of(case) for case in many])

    # Eight times the events: 64 times the steps where each prompt is written out.
    assert work(1200) < 12 * work(150)
