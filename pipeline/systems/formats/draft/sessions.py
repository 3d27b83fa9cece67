"""Guesses which field says of which session a record is, be it an event, a round, a turn, or a talk as far as
it went."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..fields.paths import as_list
from ..messages.growing import is_instruction, news_of
from ..messages.turns import decode_value
from .names import (
    GROUPS,
    HEAD,
    NAMES,
    PEOPLE,
    PLACES,
    SESSION,
    SUBJECTS,
    fields_named,
    first_field,
    is_time,
    parent_of,
    snake_case,
)
from .records import in_blocks, repeats, sessions_of, value_at
from .result import Guess
from .survey import PathSummary, Survey
from .times import seconds

TALKS = SESSION[: SESSION.index("trajectory_id")]
"""Names of the ids of sessions in which several talk in turn."""
PROJECTS = (
    "project_id",
    "project_name",
    "project",
    "session_id",
    "session_name",
    "workspace_id",
    "tenant_id",
)
"""Names of what traces are kept in; of LangSmith's runs a session is one."""
ID_ENDS = tuple(f"_{name}" for name in TALKS if name.endswith("_id"))
KINDS = ("name", "type", "run_name", "span_name", "operation", "operation_name")
"""Fields that say which call it was, such as the answer or the title that another one makes for it."""
DEEP = 3
"""The most objects in which the id of a talk stands."""
DIFFERENT = 0.5
"""Share of records with a question that is new in its session, above which they are rounds of sessions."""
NEARLY = 0.8
"""Share of records with one question each, above which they may be turns of sessions."""
AGAIN = 0.1
"""Share of records that repeat or extend the question before, below which they are."""
RETURN = 0.3
"""Share of the ids among the first records that return later, from which on they are those of sessions."""
OWN = {*NAMES["id"], "key", "hash", "name"}
"""Names of the ids of anything: of what, says the object that they lie in."""
RECORD = (*NAMES["id"], "trace_id", "run_id", "request_id", "log_id", "record_id")
"""Names of the ids of records."""
WHOSE = {*PEOPLE, *SUBJECTS, "rater", "rater_id", "annotator", "annotator_id", "coder", "judge", "model_id"}
"""Names of who speaks or rates, also where these are numbers."""


def session_ids(survey: Survey, role: str | list[str] | None) -> list[PathSummary]:
    """Fields of a table that say which session a record is of, the likeliest first; no id of a speaker's."""
    candidates = [one for one in fields_named(survey.paths, SESSION) if repeats(one, survey)]
    candidates = [
        one for one in candidates if not any(_is_speaker_id(one, path, survey) for path in as_list(role)[:1])
    ]
    return sorted(
        candidates, key=lambda one: snake_case(one.key) in OWN and snake_case(parent_of(one)) not in SESSION
    )


def scattered_ids(survey: Survey, role: str | list[str] | None) -> list[PathSummary]:
    """At most one field of a long table that is called as the ids of sessions are, and hardly repeats among
    the records that were looked at but does behind them, as where rows are in the order of a hash."""
    if not isinstance(role, str) or len(survey.paths[role].values) < 2:
        return []
    candidates = [
        one
        for one in fields_named(survey.paths, TALKS)
        if snake_case(one.key) in TALKS
        and one.has_only("text", "number")
        and one.count >= NEARLY * len(survey.records)
    ]
    return [one for one in candidates[:1] if _returns(one, survey)]


def _returns(field: PathSummary, survey: Survey) -> bool:
    """Whether many of the values stand behind the records that were looked at, too."""
    values = {str(value_at(record, field.path)) for record in survey.records}
    again = set[str]()
    for record in survey.more_records():
        if (value := str(value_at(record, field.path))) in values:
            again.add(value)
            if len(again) >= RETURN * len(values):
                return True
    return False


def with_project(path: str, survey: Survey) -> list[str]:
    """[path of the id of a session], and behind it that of the project, where sessions of several ones share
    an id."""
    many = [one for one in sessions_of(survey, [path]) if len(one) > 1]
    for one in fields_named(survey.paths, PROJECTS):
        is_named = snake_case(one.key) in PROJECTS and one.path != path and one.count == len(survey.records)
        if is_named and any(len({str(value_at(record, one.path)) for record in own}) > 1 for own in many):
            return [path, one.path]
    return [path]


def group_ids(guess: Guess, survey: Survey) -> list[PathSummary]:
    """At most one field of GROUPS as the session, noted in `by_values`: its values come in blocks, and
    several speakers stand beside most."""
    role = guess.event.get("role")
    candidates = [
        one
        for one in fields_named(survey.paths, GROUPS, depth=0)
        if snake_case(one.key) in {*GROUPS} - {*PLACES}
    ]
    candidates = [
        one
        for one in candidates
        if one.path not in guess.mapped_paths and repeats(one, survey) and in_blocks(one, survey)
    ]
    candidates = [
        one for one in candidates if not isinstance(role, str) or stands_with_several(one, role, survey)
    ]
    if candidates:
        guess.by_values["native_id"] = candidates[0].path
    return candidates[:1]


def is_spoken_with(field: PathSummary, role: str, survey: Survey) -> bool:
    """Whether a column of a table names people that others speak with: several speakers stand beside most of
    them."""
    return field in fields_named(survey.paths, SUBJECTS, depth=0) and stands_with_several(field, role, survey)


def stands_with_several(field: PathSummary, role: str, survey: Survey, most: float = 0.6) -> bool:
    """Whether several speakers stand beside most values of a column of a table."""
    beside: dict[str, set[str]] = {}
    for record in survey.records:
        if (value := value_at(record, field.path)) and (speaker := value_at(record, role)):
            beside.setdefault(str(value), set()).add(str(speaker))
    return sum(len(speakers) > 1 for speakers in beside.values()) > most * len(beside)


def _is_speaker_id(field: PathSummary, role: str, survey: Survey) -> bool:
    """Whether an id is that of who speaks: it lies in the object that says who does, or one speaker alone
    stands beside each of its values."""
    if snake_case(field.key) not in OWN:
        return False
    parent = role.rpartition(".")[0]
    alone = len(survey.paths[role].values) > 1 and not stands_with_several(field, role, survey, most=0)
    return (parent != "" and field.path.rpartition(".")[0] == parent) or alone


def talk_ids(survey: Survey) -> list[PathSummary]:
    """The fields with the id of a talk, that of most first, such as a conversation's before that of the
    session it is in; where records are runs with a type, as LangSmith has them, no id of their project's."""
    fields = [
        one
        for path, one in survey.paths.items()
        if "[]" not in path
        and path.count(".") <= DEEP
        and one.has_only("text", "number")
        and _is_talk_id(one.key)
    ]
    if "run_type" in survey.paths:
        fields = [one for one in fields if snake_case(one.key) not in PROJECTS]
    return sorted(fields, key=lambda one: (not one.has_more_values, -len(one.values), one.path.count(".")))


def _is_talk_id(key: str) -> bool:
    """Whether a key is a name of TALKS, or ends in one of an id, as `Helicone-Session-Id` does."""
    name = snake_case(key)
    is_another = name.startswith(("parent_", "previous_", "prev_", "next_", "root_"))
    return name in TALKS or (name.endswith(ID_ENDS) and not is_another)


def session_of_rounds(survey: Survey, question: str) -> PathSummary | None:
    """The field with the session of a record, which has a question (at that path) and its answer; None where
    records are no rounds of sessions.

    Without the id of a talk, rounds with a time are a talk of whoever asked.

    In a session numbers do not fall, and there are several questions, most of them different. Hardly any
    repeats the one before it under the same number, as rival answers or several ratings of an answer do, or
    begins with it, as a history of all questions does.
    """
    candidates = talk_ids(survey)
    has_time = any(is_time(one) for one in fields_named(survey.paths, NAMES["time"], depth=0))
    if has_time and not candidates:
        people = {*SUBJECTS, *PEOPLE}
        candidates += [one for one in survey.paths.values() if snake_case(one.path) in people]
    session = first_field([one for one in candidates if repeats(one, survey)])
    if session is None:
        return None
    numbers = [
        one.path for one in fields_named(survey.paths, NAMES["seq"], depth=0) if one.has_only("number")
    ]
    sessions: dict[str, list[dict[str, Any]]] = {}
    for record in survey.records:
        sessions.setdefault(str(value_at(record, session.path)), []).append(record)
    questions = sum(
        len({str(value_at(record, question)) for record in records}) for records in sessions.values()
    )
    pairs = [pair for records in sessions.values() for pair in pairwise(records)]
    repetitions = sum(
        all(value_at(a, path) == value_at(b, path) for path in (question, *numbers))
        or _extends(value_at(a, question), value_at(b, question))
        for a, b in pairs
    )
    is_dialogue = questions > DIFFERENT * len(survey.records) and repetitions < AGAIN * len(survey.records)
    return session if is_dialogue and _rise_in_each(sessions.values(), numbers) else None


def record_id(survey: Survey, words: Sequence[Any], when: str | None) -> str | None:
    """The path of the id of a record, in which `words` are said, at the time at `when`; None without one.

    Most ids come once. Records of one id are exports of one: they differ in numbers, later times and lists
    alone, and not in what is said, as rivals do, nor in who rates it.
    """
    whose = [
        one.path
        for path, one in survey.paths.items()
        if "[]" not in path and (_is_word(one) or snake_case(one.key) in WHOSE)
    ]
    keys = [
        repr((content, [value_at(record, path) for path in [when, *whose] if path]))
        for content, record in zip(words, survey.records, strict=True)
    ]
    for one in fields_named(survey.paths, RECORD, depth=0):
        if not one.has_only("text", "number") or one.count < len(survey.records):
            continue
        ids = [str(value_at(record, one.path)) for record in survey.records]
        count = len(set(ids))
        if count > DIFFERENT * len(ids) and len(set(zip(ids, keys, strict=True))) == count:
            return one.path
    return None


def _is_word(field: PathSummary) -> bool:
    return field.kinds["text"] > 0 and not is_time(field)


def latest(survey: Survey, path: str | None) -> Survey:
    """The survey with the last record of each id at a path in a file; itself where each comes once."""
    if path is None:
        return survey
    pairs = zip(survey.records, survey.origins, strict=True)
    last = {(file, str(value_at(record, path))): (record, file) for record, file in pairs}
    if len(last) == len(survey.records):
        return survey
    records, origins = map(list, zip(*last.values(), strict=True))
    return replace(survey, records=records, origins=origins)


def session_of_turns(
    survey: Survey, calls: Sequence[tuple[Any, Any]], when: str | None, formats: list[str]
) -> list[str]:
    """[path of the id of a talk] whose turns are the records, in the order of the time at `when` (written in
    the first of `formats`, if any), each with one new message of a user's among those of its call (messages
    and reply); empty where they are none.

    Several records have the id, of one person where they name any, and hardly any asks what the record before
    it does, as rival answers and ratings of an answer do. One id that may be a project's (PROJECTS) is not in
    all, and no id of a conversation in one record each. Records are no runs of the same tasks and none of
    several kinds (KINDS), and their numbers do not fall in a talk.
    """
    names = NAMES["seq"] if when else (*NAMES["seq"], *NAMES["id"])
    numbers = [one.path for one in fields_named(survey.paths, names, depth=0) if one.has_only("number")]
    places = {id(record): place for place, record in enumerate(survey.records)}
    for one in talk_ids(survey):
        talks = [own for own in sessions_of(survey, [one.path]) if value_at(own[0], one.path) is not None]
        if len(talks) == len(survey.records) and "session" not in snake_case(one.key):
            return []  # each is a conversation of its own, whatever session it is in
        if max(map(len, talks), default=0) < 2 or (len(talks) == 1 and snake_case(one.key) in PROJECTS):
            continue
        if when:
            talks = [_in_order(own, when, formats) for own in talks]
        if _hold_other_things(talks, survey) or not _rise_in_each(talks, numbers):
            continue
        if _are_turns([[calls[places[id(record)]] for record in own] for own in talks]):
            return [one.path]
    return []


def _hold_other_things(talks: Sequence[Sequence[dict[str, Any]]], survey: Survey) -> bool:
    """Whether what shares an id is no talk: any has several people, most have calls of several kinds, or they
    are runs of the same tasks."""
    people = [path for path in survey.paths if snake_case(path) in {*SUBJECTS, *PEOPLE}]
    kinds = [one.path for one in fields_named(survey.paths, KINDS, depth=0) if repeats(one, survey)]
    tasks = [one.path for one in fields_named(survey.paths, HEAD["instance"], depth=0)]
    return (
        any(_several(talks, path) for path in people)
        or any(_several(talks, path) > DIFFERENT * len(talks) for path in kinds)
        or any(_are_runs(talks, path) for path in tasks)
    )


def _rise_in_each(talks: Iterable[Sequence[dict[str, Any]]], numbers: Sequence[str]) -> bool:
    """Whether the numbers at these paths do not fall in any talk."""
    return all(_rises([value_at(record, path) for record in own]) for own in talks for path in numbers)


def _several(talks: Sequence[Sequence[dict[str, Any]]], path: str) -> int:
    """How many talks have several values at a path."""
    return sum(len({str(value_at(record, path)) for record in own}) > 1 for own in talks)


def _are_runs(talks: Sequence[Sequence[dict[str, Any]]], task: str) -> bool:
    """Whether talks are runs of the same tasks: none has one twice, and others have most of them, too."""
    tasks = [[str(value_at(record, task)) for record in own] for own in talks]
    is_once = all(len(set(own)) == len(own) for own in tasks)
    return is_once and len({one for own in tasks for one in own}) <= DIFFERENT * sum(map(len, tasks))


def _in_order(records: Sequence[dict[str, Any]], when: str, formats: list[str]) -> list[dict[str, Any]]:
    """Records by their time at `when`, those without one first."""
    return sorted(records, key=lambda record: seconds(value_at(record, when), formats) or 0.0)


def _are_turns(talks: Sequence[Sequence[tuple[Any, Any]]]) -> bool:
    """Whether most calls have one new message of a user's and most questions are new in their talk, hardly
    any the one before it. Of talks whose calls repeat what was before, hardly any begins again, as those of
    several agents or rivals do."""
    total = sum(map(len, talks))
    ones = same = different = restarts = 0
    for calls in talks:
        news = news_of(calls)
        turns = [
            [*(many[place] for place in new), *back] for (many, back), new in zip(calls, news, strict=True)
        ]
        ones += sum(len(_user_messages(turn)) == 1 for turn in turns)
        last = [_user_messages(messages)[-1:] for messages, _ in calls]
        same += sum(a == b for a, b in pairwise(last))
        different += len(set(map(repr, last)))
        restarts += _begins_again([many for many, _ in calls], news)
    is_dialogue = different > DIFFERENT * total and same < AGAIN * total
    return ones > NEARLY * total and is_dialogue and restarts <= AGAIN * len(talks)


def _begins_again(calls: Sequence[list[Any]], news: Sequence[list[int]]) -> bool:
    """Whether most calls of a talk repeat messages with an agent's answer, and one behind them repeats none
    though it begins as one before it does."""
    starts, repeats_any, begins = set[str](), list[bool](), False
    for many, new in zip(calls, map(set, news), strict=True):
        repeats_any.append(any(_is_answer(one) for place, one in enumerate(many) if place not in new))
        start = repr(next((one for one in many if not is_instruction(one)), None))
        begins = begins or (start in starts and not repeats_any[-1])
        starts.add(start)
    return begins and sum(repeats_any) > DIFFERENT * (len(calls) - 1)


def _is_answer(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in ("assistant", "ai", "model")


def _user_messages(messages: Iterable[Any]) -> list[Any]:
    """What users say in messages, and not what tools give back in their name, as Anthropic has it."""
    objects = (one for one in messages if isinstance(one, dict) and one.get("role") in ("user", "human"))
    return [one.get("content") for one in objects if not _is_result(one.get("content"))]


def _is_result(content: Any) -> bool:
    types = (
        {part.get("type") for part in content if isinstance(part, dict)} if isinstance(content, list) else ()
    )
    return "tool_result" in types and "text" not in types


def growing_session(survey: Survey, at: str) -> list[str]:
    """[path of the id of a talk] that several records tell, each as far as it went, with the turns at `at`:
    they are one session then, which counts once, as the last one has it; else empty."""
    for one in fields_named(survey.paths, TALKS, depth=2):
        if snake_case(one.key) not in TALKS or not repeats(one, survey):
            continue
        talks: dict[str, list[list[Any]]] = {}
        for record in survey.records:
            turns = decode_value(value_at(record, at))
            talks.setdefault(str(value_at(record, one.path)), []).append(
                turns if isinstance(turns, list) else []
            )
        pairs = [pair for versions in talks.values() for pair in pairwise(versions)]
        is_growing = any(len(a) < len(b) for a, b in pairs)  # else each may be another rating of the talk
        if is_growing and all(a == b[: len(a)] for a, b in pairs):
            return [one.path]
    return []


def are_different(survey: Survey, question: str) -> bool:
    """Whether most questions of all records are asked once."""
    questions = {str(value_at(record, question)) for record in survey.records}
    return len(questions) > DIFFERENT * len(survey.records)


def _extends(before: Any, after: Any) -> bool:
    """Whether a question begins with the one before it, and has more."""
    texts = isinstance(before, str) and isinstance(after, str) and bool(before.strip())
    return texts and len(after) > len(before) and after.startswith(before.strip())


def _rises(values: list[Any]) -> bool:
    numbers = [value for value in values if isinstance(value, (int, float))]
    return all(a <= b for a, b in pairwise(numbers))
