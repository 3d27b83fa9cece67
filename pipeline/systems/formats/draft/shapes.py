"""Recognises the shape of logs (spans, messages, lists of events, marked texts, pairs, tables), and notes in
a guess where its parts are."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..fields.contents import USE, is_part
from ..fields.mapping import ROLES
from ..fields.paths import as_list, expression, getter
from ..fields.roles import Role, contrary_kinds, role_of, roles_of, several_users
from ..mapped.reading import PLACES
from ..messages import agent_events, copilot_events, dialects
from ..messages.turns import decode_value, is_texts
from . import acts, calls, span_fields
from .events import set_event_fields
from .names import (
    CHAT,
    LESSER,
    NAME_LENGTH,
    NAMES,
    PAIRS,
    PEOPLE,
    SESSION,
    SUBJECTS,
    fields_named,
    first_field,
    has_both_sides,
    is_label,
    is_one_word,
    is_sentence,
    is_speaker,
    is_time,
    is_tool_name,
    is_utterance,
    snake_case,
)
from .records import events_of, items_in, repeats, sessions_of, survey_with, value_at
from .result import Guess
from .rounds import rounds_in
from .sessions import (
    DIFFERENT,
    are_different,
    group_ids,
    is_spoken_with,
    latest,
    record_id,
    scattered_ids,
    session_ids,
    session_of_rounds,
    stands_with_several,
    talk_ids,
)
from .speakers import event_senders, names_and_roles
from .survey import JSON, PathSummary, Survey
from .text import FENCED, PATTERNS, SPEAKERS, fence_language, pattern_of, set_time, speakers
from .times import set_seq_field

MARKED = 0.8
"""Share of a list's texts that must begin with a speaker's mark, and of the records that must be events."""
CUSTOM_INSTRUCTIONS = "user_editable_context"
"""The type of a content that holds what a person set for all talks, in ChatGPT's exports."""
STEP = {"step_number", "model_output", "tool_calls"}
"""Keys of a step of an agent, whose records are read as steps and not as a table."""
HELPER = "agentId"
"""Field with the id of an agent that works for another one's session, in a file of its own (Claude Code)."""
DIALECT = 200
"""Messages that are looked at to recognise their dialect."""
UTTERED = {
    *("message", "msg", "text", "utterance", "turn", "query", "question", "input", "prompt", "request"),
    *("response", "answer", "reply", "output"),
}
"""Words for what is said, in names of fields that begin with a role: `user_message`."""
NAME = 20
"""Characters on average up to which the first of two texts may be who says the second."""
OF_RUNS = {"input", "output", "instruction", "request", "completion"}
"""Names of questions and answers that are those of any run's, too."""
RUN = ({"input", "output"}, {"inputs", "outputs"})
"""Keys of a record of what ran."""
OBSERVED = {"observation", "obs", "tool_output", "tool_response", "tool_result", "stdout"}
"""Names of what came back to an agent's step, and not to a person's question."""
ANSWERED = {"response", "answer", "reply", "output", "utterance", "turn"}
"""Words that make a `system` before them an agent that answers people: `system_response`."""


def set_span_shape(guess: Guess, survey: Survey) -> bool:
    """Shape the guess as one span per record; False where records are no spans."""
    guess.spans = span_fields.fields_of(survey, "")
    if not guess.spans:
        return False
    guess.shape, guess.each = "spans", True
    guess.native_id = span_fields.trace_paths(survey, guess.spans)
    return True


def set_list_shape(guess: Guess, survey: Survey, path: str) -> None:
    """Shape the guess by the list at `path` of each record: of spans, marked texts, messages or events."""
    inside = f"{path}[]."
    roles = survey.paths.get(f"{inside}role") or survey.paths.get(f"{inside}type")
    has_content = f"{inside}content" in survey.paths or f"{inside}tool_calls" in survey.paths
    chat = roles is not None and has_content
    chat_count = sum(count for value, count in roles.values.items() if value in CHAT) if roles else 0
    guess.at = path
    guess.spans = span_fields.fields_of(survey, inside)
    if guess.spans:
        guess.shape = "spans"
        return
    if (pattern := _speaker_marks(survey, path)) is not None:
        _set_marks(guess, path, *pattern)
        return
    dialect_roles = dialect_counts(survey, path)
    if dialect_roles:
        guess.shape, guess.roles = "messages", roles_of(dialect_roles.items())
    elif (
        chat
        and roles
        and chat_count > 0.95 * sum(roles.values.values())
        and not _names_tell_more(survey, inside, roles)
        and not _names_contradict_roles(survey, inside, roles)
        and not _has_action_field(survey, inside)
        and not _has_party_field(survey, inside, roles)
    ):
        guess.shape = "messages"
        guess.roles = roles_of(roles.values.items())
    else:
        guess.shape = "list"
        set_event_fields(guess, survey, inside)
        acts.set_statuses(guess, survey, inside)
        players = [_with_kind_beside(role, survey) for role in guess.roles]
        guess.roles = players if all(role.is_known for role in players) else guess.roles
    if guess.shape == "messages":
        senders = list(_message_senders(survey, path))
        guess.kinds_from_names = contrary_kinds(senders)
        guess.strangers = _strangers(survey, path)
        guess.kinds_from_roles = {
            who: "human" for who in several_users(senders) if who not in guess.kinds_from_names
        }
        guess.preset = _preset(survey, inside)
        calls.set_reply(guess, survey)
        if guess.reply and roles is not None:
            guess.roles = roles_of([*roles.values.items(), ("assistant", 0)])
    guess.fence = acts.fence(guess, survey, inside)
    guess.observation_prefix = acts.observation_prefix(guess, survey) if guess.fence else None
    guess.call_patterns = acts.call_patterns(guess, survey, inside) if guess.fence is None else []


def _preset(survey: Survey, inside: str) -> str | None:
    """How a user's turn begins that holds a person's instructions for all talks, in ChatGPT's exports."""
    content = survey.paths.get(f"{inside}message.content.content_type")
    has_any = content is not None and CUSTOM_INSTRUCTIONS in content.values
    return f'{{"content_type":"{CUSTOM_INSTRUCTIONS}"' if has_any else None


def _with_kind_beside(role: Role, survey: Survey) -> Role:
    """A role whose name says nothing with the kind that an object of the records has under that name, such as
    `{"agents": {"0": "human"}}`, where it is the same in all."""
    words = [one for path, one in survey.paths.items() if path.endswith(f".{role.name}") and "[]" not in path]
    roles = [role_of(word) for one in words if one.has_only("text") for word in one.values]
    kinds = {one.kind for one in roles}
    if role.is_known or len(kinds) != 1 or not all(one.is_known for one in roles):
        return role
    return replace(role, kind=kinds.pop(), is_known=True)


def _speaker_marks(survey: Survey, path: str) -> tuple[str, Counter[str]] | None:
    """(pattern, speaker -> texts) of the mark with which nearly all texts of the lists at `path` begin; None
    where these are no lists of texts, or no mark has a known role in it."""
    lists: list[Any] = [value for record in survey.records if (value := value_at(record, path))]
    if not lists or not all(map(is_texts, lists)):
        return None
    texts: list[str] = list(itertools.chain(*lists))
    for pattern in PATTERNS:
        matches = [match for text in texts if (match := expression(pattern).match(text))]
        names = Counter(match["speaker"] for match in matches if match["speaker"])
        has_known_role = any(role_of(name).is_known for name in names)
        if has_known_role and 2 <= len(names) <= SPEAKERS and len(matches) >= MARKED * len(texts):
            return pattern, names
    return None


def _set_marks(guess: Guess, path: str, pattern: str, names: Counter[str]) -> None:
    guess.shape, guess.at, guess.patterns = "text", path, [pattern]
    guess.event = {"role": f"{path}[].speaker", "text": f"{path}[].text"}
    guess.roles = roles_of(names.items())


def dialect_counts(survey: Survey, path: str) -> Counter[str]:
    """Role -> messages of the list at `path`, where some are written otherwise than a chat API's; else empty,
    and so where people's contents are data with words in it, and where items are no messages, unless at least
    MARKED are events of an agent's log."""
    items = list(itertools.islice(events_of(survey, path, f"{path}[]."), DIALECT))
    message_lists = [dialects.messages(item) for item in items]
    events = [dialects.of_framework(item) for item in items]
    other = any(
        event is not None or not dialects.is_plain(item) for event, item in zip(events, items, strict=True)
    )
    messages = [one for many in message_lists for one in many or []]
    alone = len(messages) <= len(items) and not any(events)
    are_events = _are_events(events, items)
    if not other or (None in message_lists and not are_events) or (alone and _has_only_texts(survey, path)):
        return Counter()
    if alone and _are_data_of_names(messages, items) and _has_words_within(survey, f"{path}[].content."):
        return Counter()
    if alone and _are_words_of_strangers(messages):
        return Counter()
    return Counter(one["role"] for one in messages)


def _are_words_of_strangers(messages: Sequence[dict[str, Any]]) -> bool:
    """Whether all is words under names of their own, some of which do not say whether people or agents bear
    them: as messages, strangers would all be agents."""
    blocks = [block for one in messages for block in one["content"] if isinstance(one["content"], list)]
    return (
        all(one.get("name") for one in messages)
        and all(block.get("type") == "text" for block in blocks)
        and not all(role_of(one["name"]).is_known for one in messages)
    )


def _are_data_of_names(messages: Sequence[dict[str, Any]], items: Sequence[dict[str, Any]]) -> bool:
    """Whether who speaks is called by a name of their own, and what they say is data, or was taken back."""
    contents = [item.get("content") for item in items]
    data = [content for content in contents if content]
    return all(one.get("name") for one in messages) and any(data) and all(map(dialects.is_data, data))


def _strangers(survey: Survey, path: str) -> list[str]:
    """The names that messages of agents have in place of a role, or of a type that says it, and that do not
    say whether people or agents bear them."""
    items = (item for item in events_of(survey, path, f"{path}[].") if not _says_role(item))
    own = (one for item in items for one in dialects.messages(item) or ())
    names = (one.get("name") for one in own if one["role"] == "assistant")
    return [name for name in dict.fromkeys(names) if isinstance(name, str) and not role_of(name).is_known]


def _says_role(item: dict[str, Any]) -> bool:
    return "role" in item or str(item.get("type")).lower() in ROLES


def _has_words_within(survey: Survey, inside: str) -> bool:
    return any(map(is_utterance, fields_named(survey.paths, NAMES["text"], inside, depth=0)))


def _are_events(events: Sequence[object], items: Sequence[dict[str, Any]]) -> bool:
    """Whether at least MARKED of the items are events of an agent's log, of a kind that is known or not:
    `events` has the messages of each, None for one that is not known."""
    strange = sum(
        event is None and not (agent_events.is_event(item) or copilot_events.is_event(item))
        for event, item in zip(events, items, strict=True)
    )
    return any(events) and strange <= (1 - MARKED) * len(events)


def _has_only_texts(survey: Survey, path: str) -> bool:
    """Whether a list's items have no calls, and each has a plain text under a usual name."""
    inside = f"{path}[]."
    texts = [
        one
        for one in fields_named(survey.paths, NAMES["text"], inside)
        if is_utterance(one) and one.has_only("text")
    ]
    has_calls = any(f"{inside}{at}{key}" in survey.paths for at in ("", "data.") for key in dialects.CALLED)
    return not has_calls and any(one.count >= items_in(survey, path) for one in texts)


def _names_tell_more(survey: Survey, inside: str, role: PathSummary) -> bool:
    """Whether names tell more parties apart than roles do, as in a framework's messages: most have a name,
    and no role is a tool's."""
    names, roles = names_and_roles(survey, inside, f"{inside}name", role.path)
    return len(names) > len(roles) and "tool" not in roles and sum(names.values()) > 0.6 * role.count


def _names_contradict_roles(survey: Survey, inside: str, role: PathSummary) -> bool:
    """Whether names contradict the roles beside them. Only of messages without tools and calls, which lose
    nothing when they are read as events."""
    contrary_names = contrary_kinds(event_senders(survey, inside, f"{inside}name", role.path))
    return bool(contrary_names) and "tool" not in role.values and f"{inside}tool_calls" not in survey.paths


def _has_party_field(survey: Survey, inside: str, role: PathSummary) -> bool:
    """Whether all messages have the same role and a field beside it tells people from agents. Only of
    messages without calls, which lose nothing when they are read as events."""
    beside = [
        one for one in fields_named(survey.paths, NAMES["role"], inside, depth=0) if has_both_sides(one)
    ]
    plain = f"{inside}tool_calls" not in survey.paths
    return plain and len(role.values) == 1 and any(one.count >= role.count for one in beside)


def _message_senders(survey: Survey, path: str) -> Iterator[tuple[int, str, str]]:
    """(number of the record, name or "", role) of each message of a list."""
    for number, record in enumerate(survey.records):
        for item in events_of(replace(survey, records=[record]), path, f"{path}[]."):
            messages = dialects.messages(item)
            for one in [item] if messages is None else messages:
                yield number, str(one.get("name") or ""), str(one.get("role"))


def _has_action_field(survey: Survey, inside: str) -> bool:
    """Whether agents' messages name what was done in a field of their own, which chat APIs do not have."""
    if f"{inside}tool_calls" in survey.paths:
        return False
    names = [
        one for one in fields_named(survey.paths, NAMES["action"], inside, depth=0) if one.has_only("text")
    ]
    getters = [getter(one.path.removeprefix(inside)) for one in names if is_tool_name(one)]
    return any(
        role_of(str(event.get("role"))).kind == "agent" and any(at(event) for at in getters)
        for event in (events_of(survey, inside.removesuffix("[]."), inside) if getters else ())
    )


def set_text_shape(guess: Guess, survey: Survey) -> bool:
    """Shape the guess as texts whose turns begin with marks, such as `User: ...`, or as pages of code; False
    where there are none."""
    best: tuple[tuple[bool, float], PathSummary, str] | None = None
    for one in survey.paths.values():
        if "[]" in one.path or not one.texts or (one.mean_length < 40 and survey.format != "text"):
            continue
        pattern = pattern_of(one.texts)
        rank = (one.key not in LESSER, one.characters)
        if pattern and (best is None or rank > best[0]):
            best = (rank, one, pattern)
    if best is None:
        return _set_code_pages(guess, survey)
    _, one, pattern = best
    _set_marks(guess, one.path, pattern, speakers(one.texts, pattern))
    set_time(guess, one.texts, pattern)
    return True


def _set_code_pages(guess: Guess, survey: Survey) -> bool:
    """Shape the guess as pages of code that was run, each block before one with its output; False where there
    are none."""
    one = next((one for one in survey.paths.values() if one.texts and fence_language(one.texts)), None)
    if one is None:
        return False
    guess.shape, guess.at, guess.patterns = "text", one.path, [FENCED]
    guess.code = fence_language(one.texts)
    guess.event = {"role": f"{one.path}[].speaker", "text": f"{one.path}[].text"}
    guess.roles = [
        Role(str(guess.code), "agent", True, len(one.texts)),
        Role("environment", "environment", True),
    ]
    return True


def speaker_fields(survey: Survey) -> list[PathSummary]:
    """The fields of records that may say who speaks. A name or type beside an input and an output that is the
    same in all of a talk is that of what ran, as tools for watching agents keep it, unless it is a role."""
    fields = [one for one in fields_named(survey.paths, NAMES["role"]) if is_speaker(one)]
    if not any(keys <= survey.paths.keys() for keys in RUN):
        return fields
    return [one for one in fields if one.key not in ("name", "type") or not _is_of_run(one, survey)]


def _is_of_run(field: PathSummary, survey: Survey) -> bool:
    if any(role_of(word).is_known for word in field.values):
        return False
    talks = sessions_of(survey, [one.path for one in talk_ids(survey)[:1]])
    return all(len({str(value_at(record, field.path)) for record in talk}) == 1 for talk in talks)


def set_pair_shape(guess: Guess, survey: Survey) -> bool:
    """Shape the guess as records of a question and its answer, or of numbered rounds of them; False where
    they are none."""
    table = speaker_fields(survey)
    whose = [one for one in table if snake_case(one.key) in {*PEOPLE, *SUBJECTS} and not has_both_sides(one)]
    guess.fields = {**rounds_in(survey.records)}
    rounds = bool(guess.fields)
    for names, role in () if rounds else PAIRS:
        text_field = first_field(
            [one for one in fields_named(survey.paths, names) if one.kinds["text"] > 0 and is_utterance(one)]
        )
        if text_field is not None:
            guess.fields[role] = text_field.path
    if not rounds and not {"user", "assistant"} <= set(guess.fields):
        system, pair = guess.fields.get("system"), _pair_fields(survey)
        guess.fields = {**({"system": system} if system and system not in pair.values() else {}), **pair}
    is_pair = {"user", "assistant"} <= set(guess.fields)
    if whose == table and is_pair and are_different(survey, str(guess.fields["user"])):
        table = []  # who asked, and no questionnaire that all of them answered
    if not rounds and (table or not is_pair):
        guess.fields = {}
        return False
    guess.roles = roles_of((role, len(survey.records)) for role in guess.fields)
    if rounds or not _set_rounds(guess, survey):
        guess.shape, guess.at = "pairs", "turns"
        guess.event = {"role": "turns[].role", "text": "turns[].text"}
    return True


def _set_rounds(guess: Guess, survey: Survey) -> bool:
    """Set that records, each with a question and its answer, are rounds of sessions; whether they are."""
    question = str(guess.fields["user"])
    when = first_field([one for one in fields_named(survey.paths, NAMES["time"], depth=0) if is_time(one)])
    questions = [value_at(record, question) for record in survey.records]
    own_id = record_id(survey, questions, when.path if when else None)
    session = session_of_rounds(latest(survey, own_id), question)
    if session is None:
        return False
    guess.shape, guess.has_rounds, guess.native_id = "table", True, [session.path]
    guess.event = {"role": "said.role", "text": "said.text", "id": "said.id"}
    guess.record_id = own_id if own_id != session.path else None
    if when is not None:
        guess.event["time"] = when.path
    guess.tags = _constant_columns(survey, guess.native_id, guess.mapped_paths)
    return True


def list_pairs(survey: Survey) -> dict[str, str]:
    """Role -> path of a list of questions (`user`) and of the list of their answers (`assistant`); empty
    where these are no texts, or not of one length, in a record."""
    fields: dict[str, str] = {}
    for names, role in PAIRS[1:]:
        lists = [
            one for one in fields_named(survey.paths, names, depth=0) if f"{one.path}[].turn" in survey.paths
        ]
        fields |= {role: lists[0].path} if lists else {}
    getters = [getter(path) for path in fields.values()]
    rounds = [[decode_value(at(record)) for at in getters] for record in survey.records]
    return fields if len(fields) == 2 and all(map(_are_rounds, rounds)) else {}


def _are_rounds(lists: list[Any]) -> bool:
    """Whether these are lists of texts, some maybe null, of one length."""
    are_texts = (
        isinstance(one, list) and is_texts([text for text in one if text is not None]) for one in lists
    )
    return all(are_texts) and len({len(one) for one in lists}) == 1


def is_of_one_side(survey: Survey, path: str) -> bool:
    """Whether a list of texts is, by its name, all that one side says, such as several answers."""
    names = {name for many, _ in PAIRS[1:] for name in many}
    return f"{path}[].turn" in survey.paths and snake_case(survey.paths[path].key) in names


def is_questionnaire(survey: Survey, pairs: dict[str, str]) -> bool:
    """Whether all records have the same questions: then it is people who answer, as a rule."""
    ask = getter(pairs["user"])
    first, *others = map(ask, survey.records)
    return bool(others) and all(one == first for one in others)


def set_list_pairs(guess: Guess, survey: Survey, pairs: dict[str, str]) -> None:
    """Shape the guess as a list of questions beside the list of their answers."""
    guess.fields = {role: f"{path}[]" for role, path in pairs.items()}
    guess.roles = roles_of((role, len(survey.records)) for role in pairs)
    guess.shape, guess.at = "pairs", "turns"
    guess.event = {"role": "turns[].role", "text": "turns[].text"}


def item_pairs(survey: Survey, path: str) -> dict[str, str]:
    """Role -> path of what a person (`user`) and an agent (`assistant`) say in each item of a list: two texts
    by their place, or under the names of a question and its answer; empty where items say who speaks or what
    was done."""
    inside = f"{path}[]."
    for end in ("", ".text"):
        two = [survey.paths.get(f"{inside}{place}{end}") for place in "01"]
        longer = f"{inside}2{end}" in survey.paths
        if not longer and all(one and _are_sentences(one) for one in two):
            sides = ("user", "assistant")
            order = reversed(sides) if _begins_with_agent(survey, inside) else sides
            return {role: f"{inside}{place}{end}" for place, role in enumerate(order)}
    fields: dict[str, str] = {}
    for names, role in PAIRS[1:]:
        own = [name for name in names if name not in OF_RUNS]
        texts = fields_named(survey.paths, tuple(own), inside, depth=0)
        texts = [one for one in texts if snake_case(one.key) in own and one.kinds["text"]]
        if one := next(filter(is_utterance, texts), None):
            fields[role] = one.path
    others = [one for one in fields_named(survey.paths, NAMES["role"], inside) if is_speaker(one)]
    has_acts = any(fields_named(survey.paths, (*NAMES["action"], *dialects.CALLED), inside, depth=0))
    has_acts |= any(f"{inside}{name}" in survey.paths for name in OBSERVED)
    is_pair = len(fields) == 2 and not has_acts and not others
    is_pair = is_pair and min(survey.paths[one].count for one in fields.values()) > 1
    return fields if is_pair and not _ask_the_same(survey, path, fields) else {}


def _are_sentences(field: PathSummary) -> bool:
    """Whether texts are what somebody said, and no names, times or ids of what stands beside them."""
    is_long = field.mean_length > NAME_LENGTH and not is_one_word(field)
    return is_utterance(field) and field.mean_length > NAME and (is_long or is_sentence(field))


def _begins_with_agent(survey: Survey, inside: str) -> bool:
    """Whether the first of two messages in each item is an agent's, and the second a person's."""
    sides = [
        {role.kind for one in fields for role in map(role_of, one.values) if role.is_known}
        for place in "01"
        for fields in [fields_named(survey.paths, ("id", *NAMES["role"]), f"{inside}{place}.", depth=0)]
    ]
    return sides == [{"agent"}, {"human"}]


def _ask_the_same(survey: Survey, path: str, fields: dict[str, str]) -> bool:
    """Whether most questions in the lists of several records have several answers: they are a
    questionnaire's."""
    inside = f"{path}[]."
    places = [getter(one.removeprefix(inside)) for one in fields.values()]
    rounds = {tuple(str(at(item)) for at in places) for item in events_of(survey, path, inside)}
    questions = {question for question, _ in rounds}
    return len(survey.records) > 1 and len(questions) <= DIFFERENT * len(rounds)


def set_item_pairs(guess: Guess, survey: Survey, path: str, fields: dict[str, str]) -> None:
    """Shape the guess as a list whose items are a question and its answer, with the item's time."""
    set_list_pairs(guess, survey, {role: one.removesuffix("[]") for role, one in fields.items()})
    guess.fields = {**fields}
    inside = f"{path}[]."
    when = first_field(
        [one for one in fields_named(survey.paths, NAMES["time"], inside, depth=0) if is_time(one)]
    )
    if when is not None:
        guess.event["time"] = f"turns[].{when.path.removeprefix(inside)}"


def _pair_fields(survey: Survey) -> dict[str, str]:
    """The only field of a person's words (`user`) and the only one of an agent's (`assistant`), by names such
    as `user_message` and `bot_response`, or `Customer` and `Agent` over sentences; empty unless there is one
    of each."""
    candidates = list[tuple[str, str]]()
    for path, one in survey.paths.items():
        who, _, what = snake_case(path).partition("_")
        role = role_of(who)
        says = what in UTTERED or (not what and is_sentence(one))
        if says and role.is_known and one.kinds["text"] and is_utterance(one):
            answers = who == "system" and what in ANSWERED
            candidates.append(("agent" if answers else role.kind, path))
    kinds = sorted(kind for kind, _ in candidates)
    paths = dict(candidates)
    return {"user": paths["human"], "assistant": paths["agent"]} if kinds == ["agent", "human"] else {}


def set_event_shape(guess: Guess, survey: Survey) -> bool:
    """Shape the guess as one event of an agent's log per record; False where less than MARKED of the records
    are such events."""
    events = [dialects.of_framework(record) for record in survey.records]
    if any(record.keys() >= STEP for record in survey.records):
        events = [dialects.messages(record) for record in survey.records]
    if not _are_events(events, survey.records):
        return False
    guess.shape, guess.each = "messages", True
    guess.native_id = _sessions_of_messages(survey)
    guess.roles = roles_of(Counter(str(one["role"]) for many in events for one in many or []).items())
    return True


def set_message_shape(guess: Guess, survey: Survey) -> bool:
    """Shape the guess as one message of a chat API per record, maybe within an object of it; False where
    records are none."""
    for inside in ("", *(f"{path}." for path in survey.paths if "[]" not in path and path.count(".") < 2)):
        role = survey.paths.get(f"{inside}role")
        content = survey.paths.get(f"{inside}content") or survey.paths.get(f"{inside}parts")
        if role is None or content is None or not set(role.values) <= CHAT or not role.values:
            continue
        if _is_numbered(role, survey) or (not inside and _has_action_field(survey, inside)):
            continue
        has_parts = content.kinds["list"] or (
            content.kinds[JSON] and f"{content.path}[].type" in survey.paths
        )
        if has_parts or f"{inside}tool_calls" in survey.paths or "tool" in role.values:
            guess.shape, guess.at, guess.each = "messages", inside.removesuffix(".") or None, True
            guess.roles = roles_of(role.values.items())
            guess.native_id = _sessions_of_messages(survey_with(role.path, survey))
            return True
    if _has_calls_in_parts(survey):
        guess.shape, guess.each = "messages", True
        guess.native_id = _sessions_of_messages(survey)
        return True
    return False


def _sessions_of_messages(survey: Survey) -> list[str]:
    """The field that names the session of records of one message each; the file's name, where that is the
    session's, if files of agents at work for a session name that session, too."""
    paths = [one.path for one in fields_named(survey.paths, SESSION, depth=0) if repeats(one, survey)][:1]
    return [PLACES[0]] if paths and _has_files_of_helpers(survey, paths[0]) else paths


def _has_files_of_helpers(survey: Survey, session: str) -> bool:
    """Whether some files have one HELPER in all records and the session of another file, and all others have
    none and are called like the only session in them."""
    helpers_by_file: dict[int, set[object]] = {}
    sessions_by_file: dict[int, set[object]] = {}
    for record, file in zip(survey.records, survey.origins, strict=True):
        if (name := value_at(record, session)) is not None:
            sessions_by_file.setdefault(file, set()).add(name)
            helpers_by_file.setdefault(file, set()).add(value_at(record, HELPER))
    own = {file for file, helpers in helpers_by_file.items() if len(helpers) == 1 and None not in helpers}
    names = {name for file in own for name in sessions_by_file[file]}
    others = helpers_by_file.keys() - own
    are_alone = all(
        helpers_by_file[file] == {None} and sessions_by_file[file] == {survey.files[file].stem}
        for file in others
    )
    return are_alone and any(names & sessions_by_file[file] for file in others)


def _has_calls_in_parts(survey: Survey) -> bool:
    """Whether the records are messages in a framework's own fields, some with calls among their parts."""
    some = [dialects.messages(record) for record in survey.records[:DIALECT]]
    parts = [part for many in some for one in many or [] for part in dialects.parts(one.get("content"))]
    return None not in some and any(is_part(part, USE) for part in parts)


def _is_numbered(one: PathSummary, survey: Survey) -> bool:
    """Whether a path leads through one of several numbered objects of a record, as `message_1.text` does."""
    match = re.match(r"(.*?)\d+(\.[^\d]*)$", one.path)
    if match is None:
        return False
    alike = re.compile(re.escape(match[1]) + r"\d+" + re.escape(match[2]))
    return sum(alike.fullmatch(path) is not None for path in survey.paths) > 1


def set_table_shape(guess: Guess, survey: Survey) -> bool:
    """Shape the guess as one event per record; False where records have no text or action, or nothing says
    who acts."""
    set_event_fields(guess, survey, "")
    content_paths = [
        path for name in ("text", "action", "command") for path in as_list(guess.event.get(name))
    ]
    if not content_paths or _is_numbered(survey.paths[content_paths[0]], survey):
        guess.event, guess.constant_role = {}, None
        return False
    guess.shape = "table"
    role = guess.event.get("role")
    event_paths = {one for path in guess.event.values() for one in as_list(path)}
    rows = survey_with(role, survey) if isinstance(role, str) else survey  # without other sheets
    sessions = [one for one in session_ids(rows, role) if one.path not in event_paths]
    if isinstance(role, str):  # else who speaks is called so
        sessions = [one for one in sessions if one.key != "name" or stands_with_several(one, role, survey)]
    if not sessions and isinstance(role, str):
        whose = [one for one in fields_named(survey.paths, SUBJECTS, depth=0) if one.path not in event_paths]
        sessions = [one for one in whose if repeats(one, survey) and is_spoken_with(one, role, survey)]
    sessions = sessions or group_ids(guess, survey)
    if not sessions:
        sessions = [one for one in scattered_ids(rows, role) if one.path not in event_paths]
        guess.is_scattered = bool(sessions)
    guess.native_id = [sessions[0].path] if sessions else []
    guess.at = None
    set_seq_field(guess, survey)
    acts.set_statuses(guess, survey, "")
    guess.tags = _constant_columns(survey, guess.native_id, event_paths)
    return role is not None or guess.constant_role is not None


def _constant_columns(survey: Survey, session: list[str], event_paths: set[str]) -> dict[str, str]:
    """Name -> path of the columns that are constant within each session and not the same in all."""
    if not session:
        return {}
    tags = {}
    for path, one in survey.paths.items():
        if path in event_paths or path in session or "[]" in path or not is_label(one) or len(one.values) < 2:
            continue
        values_by_session: dict[str, set[str]] = {}
        for record in survey.records:
            values_by_session.setdefault(str(value_at(record, session[0])), set()).add(
                str(value_at(record, path))
            )
        if all(len(values) == 1 for values in values_by_session.values()) and len(values_by_session) > len(
            one.values
        ):
            tags[one.key] = path
    return tags
