"""How actions ended, and the actions that stand in what agents say: fenced blocks and calls."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import comb, prod
from operator import itemgetter, ne
from typing import Any

from ..fields import marks
from ..fields.paths import Getter, as_list, getter
from . import outcome_words
from .names import SPEECH, TOOLS, fields_named, is_label, snake_case
from .outcome_words import CODES, ENDINGS, FLAWS, HTTP_CODES
from .records import events_of, sessions_of
from .result import Guess
from .survey import PathSummary, Survey
from .text import CALLS, FENCE, LAST_FENCE, TAGGED

READERS: tuple[tuple[tuple[str, ...], Callable[[PathSummary], dict[str, str]]], ...] = (
    (ENDINGS, outcome_words.words),
    (ENDINGS, outcome_words.flags),
    (FLAWS, outcome_words.flaws),
    (CODES, outcome_words.codes),
    (HTTP_CODES, outcome_words.http_codes),
)
"""Names of fields that may say how an action ended, with what their values mean, in the order in which they
are tried."""
ERROR_MEANINGS = {"succeeded": "succeeded", "failed": "failed"}
"""Meanings of what `_error_status` says of actions."""
NAMED = (*ENDINGS, *FLAWS, *CODES, *HTTP_CODES)
FEW = 30
"""The most different values of a field that may say how actions ended."""
EPISODES = {"done", "terminated", "truncated", "is_terminal"}
"""Fields of the steps of an episode, such as a game, whose `success` is that of the episode so far."""
BACK = 0.2
"""In more than this share of the sessions with different values, one must come back after another, as the
values of actions do; else the field is what the session has come to."""
DIFFERING = 0.05
"""Least share of the sessions whose actions end differently; else the field is how the session ended."""
CHANCE = 0.05
"""Probability below which values that turn only one way do not do so by chance: they are what the session has
come to."""
SEVERAL = 1.5
"""A field with more values than that, on average of the sessions that have it, is its actions'."""
NEARLY = 0.8
"""So is one that a larger share of all actions has."""


def set_statuses(guess: Guess, survey: Survey, inside: str) -> None:
    """Set the field that says how actions ended: one that only actions or their results have, with words,
    flags, codes or errors whose meanings are all known.

    Its values return in sessions (`_comes_back`), or it has no words and nothing speaks against it
    (`_may_be_of_actions`). What passes only this second test, and fields of actions that pass neither, are
    noted in `uncertain_statuses`.
    """
    action = _action_path(guess)
    if not action:
        return
    for names, reader in READERS:
        for field in _fields_beside(names, action, guess, survey, inside):
            meanings = reader(field)
            if not {"succeeded", "failed"} <= set(meanings.values()):
                continue
            word_lists = _words_by_session(field, guess, survey, inside)
            sure = _comes_back(word_lists)
            flags = reader is outcome_words.flags
            if sure or (
                reader is not outcome_words.words
                and _may_be_of_actions(word_lists, meanings, guess, survey, inside, flags=flags)
            ):
                guess.event = {name: path for name, path in guess.event.items() if path != field.path}
                guess.event["status"], guess.statuses = field.path, meanings
                guess.uncertain_statuses = [] if sure else [field.path]
                return
    for field in _fields_beside(FLAWS[:1], action, guess, survey, inside):
        word_lists = (
            _words_by_session(field, guess, survey, inside, _error_status)
            if outcome_words.is_error(field)
            else []
        )
        if _comes_back(word_lists) or _may_be_of_actions(word_lists, ERROR_MEANINGS, guess, survey, inside):
            guess.event["error"], guess.error_is_failure = field.path, True
            return
    for field in _fields_beside(NAMED, action, guess, survey, inside):
        few = (
            is_label(field)
            and len(field.values) <= FEW
            and not (field.kinds["text"] and "error" in field.key.lower())
        )
        if few and any(_words_by_session(field, guess, survey, inside)):
            guess.uncertain_statuses.append(field.path)


def is_of_actions(field: PathSummary, guess: Guess, survey: Survey) -> bool:
    """Whether only actions, or their results, have a field, and several in a session, or nearly all where it
    is no flag of success: then it is no outcome of the session."""
    if not _action_path(guess):
        return False
    word_lists = _words_by_session(field, guess, survey, "")
    acts = sum(map(_action_test(guess, ""), survey.records))
    total = sum(map(len, word_lists))
    flag = snake_case(field.key) in outcome_words.FLAGS
    often = total > SEVERAL * sum(map(bool, word_lists)) or (total > NEARLY * acts and not flag)
    return bool(total) and often and _is_mixed(guess, survey, "")


def _fields_beside(
    names: tuple[str, ...], action: str, guess: Guess, survey: Survey, inside: str
) -> list[PathSummary]:
    """Unmapped fields of these names beside an action's name, which come first, or in its event."""
    parent = action.rpartition(".")[0]
    near = {parent, inside.removesuffix("."), *(f"{inside}{name}" for name in TOOLS)}
    candidates = [
        field for field in fields_named(survey.paths, names, inside) if field.path.rpartition(".")[0] in near
    ]
    return sorted(
        (field for field in candidates if field.path not in guess.mapped_paths - {guess.event.get("error")}),
        key=lambda field: field.path.rpartition(".")[0] != parent,
    )


def _word(value: object, is_action: bool) -> str | None:
    return None if value in (None, "") else str(value)


def _error_status(value: object, is_action: bool) -> str | None:
    """How an event ended by its error: failed with one; an action without one succeeded."""
    if value in (None, ""):
        return "succeeded" if is_action else None
    return "failed"


def _words_by_session(
    field: PathSummary,
    guess: Guess,
    survey: Survey,
    inside: str,
    reader: Callable[[object, bool], str | None] = _word,
) -> list[list[str]]:
    """What a field says of actions, a list for each session; no lists where other events than actions and
    their results have it, sessions have it as well, or it is an episode's (EPISODES)."""
    siblings = {snake_case(path.removeprefix(inside)) for path in survey.paths if path.startswith(inside)}
    if inside and (field.key in survey.paths or EPISODES & siblings):
        return []
    sessions = [[record] for record in survey.records] if inside else sessions_of(survey, guess.native_id)
    word_lists = list[list[str]]()
    for records in sessions:
        words = list(_words_of_actions(field, guess, replace(survey, records=records), inside, reader))
        word_lists.append([word for word in words if word is not None])
        if None in words:
            return []
    return word_lists


def _comes_back(word_lists: list[list[str]]) -> bool:
    """Whether values change more than once in more than BACK of the sessions in which they differ, as the
    state of a session hardly does, and they differ in at least DIFFERING of the sessions with several."""
    longer = [words for words in word_lists if len(words) > 1]
    differ = [words for words in longer if len(set(words)) > 1]
    returns = sum(_changes(words) > 1 for words in differ)
    return returns > BACK * len(differ) and len(differ) >= DIFFERING * len(longer)


def _changes(words: list[str]) -> int:
    return sum(map(ne, words, words[1:]))


def _may_be_of_actions(
    word_lists: list[list[str]],
    meanings: dict[str, str],
    guess: Guess,
    survey: Survey,
    inside: str,
    *,
    flags: bool = False,
) -> bool:
    """Whether nothing says that a flag, code or error is the session's.

    It may be the session's if every event is an action or the environment's, in a log of episodes (EPISODES),
    if it differs in fewer than DIFFERING of the sessions with several values, or if it turns only one way
    oftener than by chance. A flag of success that stands once a session is the session's.

    Of the sessions whose values turn once, the commoner way, n values each with k equal to the first, all do
    so by chance with a probability of 2 * prod(1 / C(n, k)): one order of C(n, k), and either way.
    """
    if (
        not any(word_lists)
        or not _is_mixed(guess, survey, inside)
        or EPISODES & {snake_case(one.key) for one in survey.paths.values()}
    ):
        return False
    statuses = [
        [meanings.get(word.lower(), meanings.get(word, meanings.get("*", ""))) for word in words]
        for words in word_lists
    ]
    longer = [words for words in statuses if len(words) > 1]
    differ = [words for words in longer if len(set(words)) > 1]
    ways = Counter(words[0] for words in differ if _changes(words) == 1)
    way, most = max(ways.items(), key=itemgetter(1), default=("", 0))
    one_way = [words for words in differ if _changes(words) == 1 and words[0] == way]
    chance = 2 * prod(1 / comb(len(words), words.count(way)) for words in one_way)
    sticks = most > (1 - BACK) * len(differ) and chance < CHANCE
    return not sticks and len(differ) >= DIFFERING * len(longer) and bool(differ or not (longer or flags))


def _is_mixed(guess: Guess, survey: Survey, inside: str) -> bool:
    """Whether some events are neither actions nor what the environment says."""
    acts, around = _action_test(guess, inside), _environment_test(guess, inside)
    return any(
        not acts(event) and not around(event)
        for event in events_of(survey, inside.removesuffix("[]."), inside)
    )


def _words_of_actions(
    field: PathSummary,
    guess: Guess,
    survey: Survey,
    inside: str,
    reader: Callable[[object, bool], str | None],
) -> Iterator[str | None]:
    """What a field says of actions, or else of results right behind an action; None where it stands with
    another event, or with both."""
    status_of, action_of = (getter(path.removeprefix(inside)) for path in (field.path, _action_path(guess)))
    is_environment = _environment_test(guess, inside)
    is_action = False
    kinds = set[bool]()
    for event in events_of(survey, inside.removesuffix("[]."), inside):
        was_action, is_action = is_action, bool(action_of(event))
        word = reader(status_of(event), is_action)
        if word is None or str(action_of(event)).lower() in SPEECH:
            continue
        kinds.add(is_action)
        yield word if (is_action or (was_action and is_environment(event))) and len(kinds) == 1 else None


def _action_test(guess: Guess, inside: str) -> Callable[[dict[str, Any]], bool]:
    """A test whether something is done in an event, more than something is said (SPEECH)."""
    action_of = getter(_action_path(guess).removeprefix(inside))
    return lambda event: bool(action_of(event)) and str(action_of(event)).lower() not in SPEECH


def _environment_test(guess: Guess, inside: str) -> Callable[[dict[str, Any]], bool]:
    """A test whether an event is the environment's, or has the label of a result."""
    names = {role.name for role in guess.roles if role.kind == "environment"}
    speaks = [getter(path.removeprefix(inside)) for path in as_list(guess.event.get("role"))]
    result_of = getter(guess.result_label.removeprefix(inside)) if guess.result_label else None
    return lambda event: (
        any(str(speaker(event)) in names for speaker in speaks)
        or bool(result_of and result_of(event) is not None)
    )


def _action_path(guess: Guess) -> str:
    """Where an event names what was done; "" where none does."""
    return as_list(guess.event.get("action", guess.event.get("command")) or [""])[0]


RETURNERS = {"tool", "function", "observation", "environment", "tool_response", "function_response"}
"""Roles of what came back from a call."""
TOOL_TAGS = re.compile(r"\s*<tool_response>|[\s\S]*<tools>")
"""A result of a call, and what tells an agent of its tools (Hermes, Qwen)."""
LAST = 0.25
"""The least share of texts that end with a fenced block, and of those that are outputs, where the blocks are
an agent's commands."""


def fence(guess: Guess, survey: Survey, inside: str) -> str | None:
    """The language of the fenced blocks in texts, where no field has actions and at least two, and a fifth,
    of the texts have a block; "" where as many as LAST end with one that names no language, and as many are
    what a scaffold says of commands; else None."""
    path = guess.event.get("text", f"{inside}content")
    field = survey.paths.get(as_list(path)[0])
    languages = [match[1] for text in (field.texts if field else []) if (match := FENCE.search(text))]
    has_tools = f"{inside}tool_calls" in survey.paths or "action" in guess.event or "command" in guess.event
    if has_tools or field is None:
        return None
    if len(languages) >= max(2, 0.2 * len(field.texts)):
        return max(set(languages), key=languages.count)
    ends = sum(bool(re.search(LAST_FENCE, text)) for text in field.texts)
    outputs = sum(map(marks.is_observation, field.texts))
    return "" if min(ends, outputs) >= max(2, LAST * len(field.texts)) else None


def observation_prefix(guess: Guess, survey: Survey) -> str | None:
    """What all user turns but a session's first begin with, up to the end of a line, where agents act in
    fenced blocks; None where marks.py knows them, or there are fewer than three."""
    if guess.each or guess.shape not in ("messages", "list"):
        return None
    role, text = _speech(guess)
    first: list[str] = []
    later: list[str] = []
    for record in survey.records:
        events = events_of(replace(survey, records=[record]), guess.at or "", "[]")
        texts = [str(text(one)) for one in events if role(one) in ("user", "human")]
        first += texts[:1]
        later += texts[1:]
    if len(later) < 3 or all(marks.is_observation(one) for one in later):
        return None
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(min(later), max(later), strict=False))
    first_lines = "".join(sign for sign, _ in alike).splitlines()[:1]
    mark = first_lines[0].strip() if first_lines else ""
    return mark if len(mark) > 3 and not any(one.startswith(mark) for one in first) else None


def speech_paths(guess: Guess) -> tuple[str, str]:
    """Where who speaks and what they say stand in an event of a list."""
    role, text = (as_list(guess.event.get(name, name))[0] for name in ("role", "text"))
    return (role, text) if guess.shape == "list" else ("role", "content")


def _speech(guess: Guess) -> tuple[Getter, Getter]:
    role, text = (path.removeprefix(f"{guess.at}[].") for path in speech_paths(guess))
    return getter(role), getter(text)


def call_patterns(guess: Guess, survey: Survey, inside: str) -> list[str]:
    """The patterns of calls in tags where something came back, or of calls as Python writes them, where
    nothing else is in a text: those that at least two, and a tenth, of the texts have; none where a field has
    calls."""
    path = guess.event.get("text", f"{inside}content")
    field = survey.paths.get(as_list(path)[0])
    calls = survey.paths.get(f"{inside}tool_calls")
    if field is None or (calls and not calls.has_only()) or {"action", "command"} & set(guess.event):
        return []
    least = max(2, 0.1 * len(field.texts))
    roles = survey.paths.get(f"{inside}role")
    names = {*(role.name for role in guess.roles), *(roles.values if roles else ())}
    has_results = not RETURNERS.isdisjoint(names) or any(map(_is_result, field.texts))
    in_tags = [one for one in TAGGED if has_results and _closing(one, field.texts) >= least]
    whole = re.compile(rf"\A(?:{CALLS})+\]?\s*\Z".replace("?P<action>", "").replace("?P<arguments>", ""))
    return in_tags or [CALLS] * (sum(bool(whole.match(text)) for text in field.texts) >= least)


def _is_result(text: str) -> bool:
    return marks.is_observation(text) or TOOL_TAGS.match(text) is not None


def _closing(pattern: str, texts: Sequence[str]) -> int:
    """How many texts end with a call, as models stop behind it; 0 where more calls are only spoken of."""
    calls = [text for text in texts if re.search(pattern, text)]
    last = sum(bool(re.search(rf"{pattern}\s*(?:<\|\w+\|>)?\s*\Z", text)) for text in calls)
    return last if 2 * last >= len(calls) else 0
