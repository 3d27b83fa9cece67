"""What a drafted mapping leaves open, in sentences that say which line of it to change."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from .....schemas.text import count_of
from .....schemas.trajectory import ParticipantKind
from ...base import walk
from ..fields.paths import Getter, as_list, getter
from ..fields.roles import role_of
from ..fields.values import is_name
from ..mapped.reading import PLACES
from ..messages import turns
from .names import (
    ASIDE,
    CHOSEN,
    DELETED,
    GROUPS,
    HEAD,
    NAMES,
    SAID,
    SESSION,
    SPEAKERS,
    fields_named,
    first_field,
    has_both_sides,
    is_label,
    is_sentence,
    parent_of,
    snake_case,
)
from .outcome_words import is_http_code
from .records import events_of, in_blocks, repeats, value_at
from .repeats import repeat_doubts
from .result import Guess
from .sessions import OWN
from .shapes import list_pairs
from .survey import PathSummary, Survey
from .text import UNTIMED, lines_of_turns, pattern_of
from .unread import unread_doubts

NAMED = 8
PARENTS = ("parent_id", "parent_message_id", "parent_message_uuid", "parent_uuid")
"""Names of the field that holds the id of the message before."""
DAY = re.compile(r"\d{4}-\d\d-\d\d")
"""The name of a file with what was said on a day."""
NEARLY = 0.8
LONG = 40
"""Characters on average from which on a text may be what somebody said, also where it is none of many
sentences."""


def open_questions(survey: Survey, guess: Guess) -> Iterator[str]:
    """One sentence for each thing that the logs leave open."""
    if survey.encoding:
        yield f"no UTF-8, and read as {survey.encoding}: are letters with accents right? ([input] encoding)"
    if guess.shape == "nothing":
        yield from _hints(survey)
        return
    yield from _name_doubts(guess)
    yield from _speaker_doubts(guess)
    yield from _missing_people_doubts(survey, guess)
    yield from _session_doubts(survey, guess)
    yield from _value_doubts(guess)
    yield from _score_doubts(survey, guess)
    yield from _row_doubts(survey, guess)
    yield from _text_doubts(survey, guess)
    yield from _line_doubts(survey, guess)
    yield from _time_doubts(guess)
    yield from _conversation_doubts(survey, guess)
    yield from _rival_doubts(survey, guess)
    yield from _flag_doubts(survey, guess)
    yield from _record_doubts(survey, guess)
    yield from repeat_doubts(survey, guess)
    yield from unread_doubts(survey, guess)


def _name_doubts(guess: Guess) -> Iterator[str]:
    if guess.has_opaque_names:
        yield (
            "no column's name says what it is: who speaks changes most from row to row, what is said is "
            "longest, a session comes in a block; change [event] and native_id where that is wrong"
        )


def _session_doubts(survey: Survey, guess: Guess) -> Iterator[str]:
    if (guess.each or guess.shape == "table") and not guess.native_id:
        yield _session_doubt(survey, guess)
    if (guess.shape == "table" or guess.each) and 1 < len(survey.files) == len(survey.records):
        yield (
            "each file holds one event and is read as a session of its own: join the files of a session into "
            "one, with an event a line"
        )
    stems = [DAY.fullmatch(file.stem) for file in survey.files]
    if guess.shape == "table" and {*guess.native_id} <= {*PLACES} and len(stems) > 1 and all(stems):
        yield (
            "files are called by days, and each is read as a session of its own, as an export of a channel "
            "has them: join the files of a channel into one to have its talk in one session, or give "
            "[trajectory] native_id the field of a thread"
        )
    if isinstance(survey.sessions, str) and "[]" in survey.sessions:
        yield f"each item of {survey.sessions} is taken for a session ([input] sessions)"
    if survey.aside:
        yield (
            f"left out are records of other fields than these, at {', '.join(survey.aside[:NAMED])}: if they "
            "are sessions, too, a mapping of their own reads them ([input] sessions)"
        )


def _value_doubts(guess: Guess) -> Iterator[str]:
    if guess.is_scattered:
        order = "" if {"time", "seq"} & guess.event.keys() else "; what comes first in one is not known"
        path = guess.native_id[0]
        yield f"{path} hardly repeats in the first records but does later: it is taken for the session{order}"
    if guess.native_id and (group := guess.by_values.get("native_id")) == guess.native_id[0]:
        yield f"{group} is taken for the session, for its values come in blocks ([trajectory] native_id)"
    if "action" in guess.event and (action := guess.by_values.get("action")) == guess.event["action"]:
        yield f"{action} is taken for what was done, for nothing else says it ([event] action)"
    if "time" in guess.event and (when := guess.by_values.get("time")) == guess.event["time"]:
        yield f"{when} is taken for the time, for it holds times in their order ([event] time)"


def _score_doubts(survey: Survey, guess: Guess) -> Iterator[str]:
    if (scores := guess.scores) is None:
        return
    lists = (value_at(record, scores.at) for record in survey.records)
    counts = [
        Counter(value_at(one, scores.name) for one in many if not value_at(one, scores.of_part or ""))
        for many in lists
        if isinstance(many, list)
    ]
    if names := sorted({str(name) for one in counts for name, count in one.items() if name and count > 1}):
        yield (
            f"{scores.at} has several scores of a session under {', '.join(names[:NAMED])}, and the last "
            "counts: leave out all but one, such as other raters', with [scores] skip"
        )


def _row_doubts(survey: Survey, guess: Guess) -> Iterator[str]:
    if (session := session_of_rows(survey, guess)) is not None:
        yield (
            f"{session.path} repeats, while each row is read as a session of its own, without a time: rows "
            "with a question and its answer are joined where they stand in their order and a question comes "
            "once; sort the rows of a session, and leave out all but one to a question, to have one of them"
        )
    if guess.has_rounds and (columns := _unread_in_rounds(survey, guess)):
        yield (
            "rows of a session are read as one, without what is said of each row: "
            f"{', '.join(columns[:NAMED])}{' ...' if len(columns) > NAMED else ''}"
        )


def _text_doubts(survey: Survey, guess: Guess) -> Iterator[str]:
    if guess.shape in ("list", "table") and guess.event and "text" not in guess.event:
        inside = f"{guess.at}[]." if guess.shape == "list" else ""
        fields = [one for one in survey.paths.values() if one.path.startswith(inside) and is_sentence(one)]
        fields = [one for one in fields if one.path not in guess.event.values()]
        names = ", ".join(one.path for one in sorted(fields, key=lambda one: -one.mean_length)[:NAMED])
        maybe = f"; it may be {names}" if names else ""
        yield f"no field is known to hold what was said{maybe} ([event] text)"


def _line_doubts(survey: Survey, guess: Guess) -> Iterator[str]:
    if survey.format != "text" or guess.shape != "text" or not guess.patterns:
        return
    texts = (str(record.get("text", "")) for record in survey.records)
    if count := lines_of_turns("\n".join(texts), guess.patterns[0]):
        yield (
            f"{count} lines hold several turns each, and a file is read as one session: if a line is a "
            'session, make it a record of its own ({"text": "..."}, one a line, in a file called .jsonl)'
        )


def _time_doubts(guess: Guess) -> Iterator[str]:
    if guess.shape in ("list", "table") and "time" not in guess.event and not guess.time_path:
        yield (
            "no field holds times that can be read: give [event] time (ISO 8601, or seconds since 1970; else "
            "[constants] time_format)"
        )
    if set(UNTIMED) & set(guess.patterns):
        yield "turns do not begin with a date and time that can be read, so they have no times"
    if len(guess.time_formats) > 1:
        first, second = guess.time_formats[:2]
        yield (
            f"{guess.time_path} may be written as {first} or as {second}: map it as [event] time, with the "
            "right one as [constants] time_format"
        )
    if guess.spans and "start" not in guess.spans:
        yield "no field says when a run began, so they are in the log's order: give [spans] start"
    if guess.shape == "messages" and guess.joined and not guess.turn_time:
        yield "no field says when a turn was, so they are in the log's order: give [messages] time"


def _conversation_doubts(survey: Survey, guess: Guess) -> Iterator[str]:
    if any(turns.has_rivals(value_at(record, guess.at or "")) for record in survey.records):
        yield (
            f"{guess.at} has rival answers: the way to which most was said is read, the first where it was "
            "as much, and the others are left out"
        )
    if others := _other_conversations(survey, guess):
        hold = "holds a conversation" if len(others) == 1 else "hold conversations"
        table = "[messages]" if guess.shape == "messages" else "[turns]"
        yield (
            f"{', '.join(others[:NAMED])} {hold}, too, beside {guess.at}, and "
            f"{'is' if len(others) == 1 else 'are'} left out: a mapping of its own reads one ({table} at)"
        )


def _record_doubts(survey: Survey, guess: Guess) -> Iterator[str]:
    if files := _silent_files(survey, guess):
        names = ", ".join(list(dict.fromkeys(file.name for file in files))[:NAMED])
        rule = json.dumps(f"!{files[0].name}", ensure_ascii=False)
        yield (
            f"no record of {names} that was looked at says who speaks; these are quarantined, and what they "
            f"say of sessions is lost: where nobody speaks in a file, leave it out ({rule} in "
            "[input] files); "
            "`coaudit outcomes import` reads outcomes of sessions"
        )
    missing = _count_without_list(survey, guess)
    if missing:
        yield (
            f"{missing} of {count_of(len(survey.records), 'record', 'records')} "
            f"{'has' if missing == 1 else 'have'} nothing at {guess.at} and "
            f"{'is' if missing == 1 else 'are'} quarantined: "
            "other records than sessions, or sessions of another shape"
        )


def _silent_files(survey: Survey, guess: Guess) -> list[Path]:
    """Files of a table of events in which nobody speaks, such as one with a row for each session."""
    paths = as_list(guess.event.get("role")) if guess.shape == "table" and not guess.has_rounds else []
    if not paths or len(survey.files) < 2:
        return []
    pairs = list(zip(survey.records, survey.origins, strict=True))
    audible = {file for record, file in pairs if any(value_at(record, path) for path in paths)}
    return [survey.files[file] for file in dict.fromkeys(file for _, file in pairs) if file not in audible]


def session_of_rows(survey: Survey, guess: Guess) -> PathSummary | None:
    """The field of the session, where records are rows of a question and its answer and several have the
    same; else None."""
    if guess.shape != "pairs":
        return None
    candidates = [
        one for one in fields_named(survey.paths, SESSION, depth=0) if snake_case(one.key) in SESSION
    ]
    candidates = [
        one for one in candidates if snake_case(one.key) not in (*OWN, *HEAD["instance"], "sample_id")
    ]
    return first_field([one for one in candidates if repeats(one, survey)])


def _unread_in_rounds(survey: Survey, guess: Guess) -> list[str]:
    """Paths, other than row numbers, that differ between the rows of a session and are not read."""
    numbers = [one.path for one in fields_named(survey.paths, NAMES["seq"], depth=0)]
    mapped_paths = {
        *guess.mapped_paths,
        *guess.native_id,
        *guess.head.values(),
        *guess.outcomes.values(),
        *numbers,
    }
    by_session: dict[str, list[dict[str, Any]]] = {}
    for record in survey.records:
        by_session.setdefault(str(value_at(record, guess.native_id[0])), []).append(record)
    return [
        path
        for path, one in survey.paths.items()
        if not (path in mapped_paths or "[]" in path or one.has_only("object", "list"))
        and any(len({str(value_at(record, path)) for record in many}) > 1 for many in by_session.values())
    ]


def reason_unreadable(path: Path, survey: Survey) -> str:
    """Why there is nothing to draft a mapping from."""
    if not path.exists():
        return "no such file or folder"
    if survey.reason:
        return survey.reason
    files = [one for one in walk(path) if one.is_file()] if path.is_dir() else [path]
    if not any(file.stat().st_size for file in files):
        what = "folder" if path.is_dir() else "file"
        return f"the {what} is empty" if files else "no file in it"
    return "no file that could be read as records; JSON, CSV, Parquet, spreadsheets and texts can"


def _speaker_doubts(guess: Guess) -> Iterator[str]:
    """Doubts about who speaks, and about how actions ended."""
    if guess.is_alternating:
        yield "no field says who speaks: user and assistant are assumed to alternate ([constants] role)"
    elif guess.constant_role:
        yield f"no field says who acts: all is put down to {guess.constant_role} ([constants] role)"
    if guess.crowd and not guess.bot_path:
        own = [(f"names with the word {word}", kind) for word, kind in guess.crowd_words.items()]
        own += [(role.name, role.kind) for role in guess.roles if role.is_known]
        table = "[[roles]]" if guess.crowd_words else "[roles]"
        others = "".join(f", {name} ({kind})" for name, kind in own[:NAMED])
        others += f" and {len(own) - NAMED} more" if len(own) > NAMED else ""
        yield (
            f"{guess.crowd} names too many to list, so all are taken for "
            f"{'people' if guess.crowd_kind == 'human' else 'agents'}"
            f"{others and f', but for{others[1:]}'}: name those of another kind in {table}"
        )
    if guess.kinds_from_roles:
        yield (
            f"only roles say who these are: {_by_kind(guess.kinds_from_roles)}; where agents are called "
            "user, or people agent, change [roles]"
        )
    if guess.kinds_from_names:
        yield (
            f"roles say otherwise of these, or the same of several, so their names say who they are: "
            f"{_by_kind(guess.kinds_from_names)}; change [roles]"
        )
    if guess.strangers:
        names = ", ".join(guess.strangers[:NAMED])
        yield (
            f"nothing says what these are, so they are taken for agents: {names}; "
            f"[[roles]] where = {{ name = {json.dumps(guess.strangers[0], ensure_ascii=False)} }}, "
            'kind = "human" makes one a person'
        )
    if guess.error_is_failure:
        yield "actions with an error are assumed to have failed, all others to have succeeded ([[results]])"
    yield from _status_doubts(guess)
    unknown = [role for role in guess.roles if not role.is_known]
    if unknown and not guess.bot_path:
        names = ", ".join(f"{role.name} ({role.kind})" for role in unknown[:NAMED])
        more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
        yield f"nothing says what these are, so it is a guess: {names}{more}; change them in [roles]"


def _by_kind(kinds: dict[str, ParticipantKind]) -> str:
    """Some names of each kind."""
    groups = (
        (kind, [who for who, own in kinds.items() if own == kind]) for kind in get_args(ParticipantKind)
    )
    return "; ".join(f"{', '.join(many[:NAMED])} ({kind})" for kind, many in groups if many)


def _status_doubts(guess: Guess) -> Iterator[str]:
    """Doubts about the field that says how actions ended."""
    status = guess.event.get("status")
    if "*" in guess.statuses:
        yield f"of {status} 0 is taken for success, any other for a failure ([statuses])"
    elif any(map(is_http_code, guess.statuses)):
        yield f"of {status} 200 to 399 are taken for success, 400 and above for failures ([statuses])"
    elif guess.statuses.get("true") == "failed":
        yield f"{status} is taken for a failure of the action that it stands with ([statuses])"
    elif status in guess.uncertain_statuses:
        yield (
            f"{status} stands with actions alone, so it is taken for how each of them ended ([statuses]); if "
            "it is the session's, make it one of [outcomes]"
        )
    for path in guess.uncertain_statuses:
        if path in guess.outcomes.values():
            yield (
                f"{path} stands with one action of a session, so it is taken for what the session came to; "
                f'if it says how that action ended: [event] status = "{path}", with its words in [statuses]'
            )
        elif path != status:
            yield (
                f"{path} stands with actions alone, so it is no outcome of a session; if it says how each "
                f'of them ended, which is open: [event] status = "{path}", with its words in [statuses]'
            )


def _session_doubt(survey: Survey, guess: Guess) -> str:
    """The doubt that each file is a session, with the field that may tell several apart."""
    least = "no field tells sessions apart, so a file is one: give [trajectory] native_id if one does"
    mapped_paths = {*guess.mapped_paths, *guess.head.values(), *guess.outcomes.values(), *guess.secrets}
    some = [one for path, one in survey.paths.items() if "[]" not in path and path not in mapped_paths]
    groups = [
        one
        for one in some
        if (is_label(one) or snake_case(one.key) in GROUPS)
        and one.has_only("text", "number")
        and repeats(one, survey)
        and (in_blocks(one, survey) or (snake_case(one.key) in GROUPS and len(one.values) > 1))
    ]
    best = max(groups, key=lambda one: (snake_case(one.key) in GROUPS, len(one.values)), default=None)
    return (
        least
        if best is None
        else f"{least}; {best.path} may ({len(best.values)}{'+' * best.has_more_values} values)"
    )


def _missing_people_doubts(survey: Survey, guess: Guess) -> Iterator[str]:
    """Doubts where people's words stand elsewhere than the events, as the first message of a tree does."""
    mapped_paths = {one for path in guess.event.values() for one in as_list(path)}
    alone = guess.shape in ("list", "table") and {role.kind for role in guess.roles} == {"agent"}
    for path, one in survey.paths.items() if alone else ():
        people = [name for name in one.values if role_of(name).is_known and role_of(name).kind == "human"]
        if one.key == "role" and people and path not in mapped_paths:
            yield (
                f"only agents speak in what is read, and {path} says {people[0]}: what stands beside it is "
                "left out; records of one message each can be read whole"
            )
            return
    opening = _opening(survey, guess) if guess.shape in ("list", "messages") else None
    if opening is not None:
        text, who = opening
        how = f': [trajectory] request = "{text}" has it as what the user says first'
        yield (
            f"{text} is said by a person ({who}) beside {guess.at}, and left out"
            f"{how if guess.shape == 'list' else ''}"
        )


def _opening(survey: Survey, guess: Guess) -> tuple[str, str] | None:
    """(path of a text beside the list of events, path that says that a person wrote it); None without."""
    heads = {path: one for path, one in survey.paths.items() if "[]" not in path}
    mapped_paths = {*guess.mapped_paths, *guess.head.values()}
    for path, one in heads.items():
        signs = one.key.lower() in SPEAKERS or parent_of(one) in SPEAKERS
        roles = [role_of(name) for name in one.values if name]
        if not signs or not roles or not all(role.is_known and role.kind == "human" for role in roles):
            continue
        above = path.rpartition(".")[0]
        above = above.rpartition(".")[0] if parent_of(one) in SPEAKERS else above
        inside = f"{above}." if above else ""
        texts = [
            text
            for text in fields_named(heads, NAMES["text"], inside, depth=0)
            if text.path not in mapped_paths
        ]
        texts = [text for text in texts if text.has_only("text") and text.key.lower() in SAID]
        if texts:
            return texts[0].path, path
    return None


def _other_conversations(survey: Survey, guess: Guess) -> list[str]:
    """The paths of conversations beside the one that is read, such as the answer that was liked less."""
    beside = {path: one for path, one in survey.paths.items() if "[]" not in path and path != guess.at}
    if survey.sides or guess.at is None:
        return []
    if guess.shape == "messages" and not guess.each and f"{guess.at}[].role" in survey.paths:
        reply = guess.reply or ""
        fields = ("role", "content")
        chats = [path for path in beside if all(f"{path}[].{name}" in survey.paths for name in fields)]
        return [path for path in chats if not reply.startswith(path)]
    if guess.shape == "text" and guess.at in survey.paths and survey.format != "text":
        return [path for path, one in beside.items() if one.texts and pattern_of(one.texts)]
    return []


def _rival_doubts(survey: Survey, guess: Guess) -> Iterator[str]:
    """The doubt that messages are a tree, with several answers to one."""
    is_message = guess.shape == "table" or (guess.each and guess.shape != "spans")
    inside = f"{guess.at}[]." if guess.shape in ("list", "messages") and not guess.each else ""
    parents = fields_named(survey.paths, PARENTS, inside, depth=0) if is_message or inside else []
    talks = [replace(survey, records=[record]) for record in survey.records] if inside else [survey]
    role = guess.event.get("role")
    is_path = isinstance(role, str) and role in survey.paths
    speaker_of = getter(str(role).removeprefix(inside)) if is_path else lambda _: None
    for one in parents:
        many = [list(events_of(talk, guess.at or "", inside)) for talk in talks]
        parent_of = getter(one.path.removeprefix(inside))
        if any(_have_rivals(messages, parent_of, speaker_of) for messages in many):
            yield (
                f"{one.path} says which message each follows, and several follow one: rival answers stand "
                "one behind the other; [filter] leaves out all but one, by a field such as a rank"
            )
            return


def _have_rivals(messages: list[dict[str, Any]], parent_of: Getter, speaker_of: Getter) -> bool:
    """Whether several messages of one speaker follow one of them. What stands there of tools, and of others
    beside it, are the parts of a step."""
    pairs = [(str(value), str(speaker_of(one))) for one in messages if (value := parent_of(one))]
    parents = {parent for parent, _ in pairs}
    after = Counter(pair for pair in pairs if role_of(pair[1]).kind != "environment")
    ids = {str(value) for message in messages for value in message.values() if is_name(value)}
    return len(parents & ids) > NEARLY * len(parents) and max(after.values(), default=0) > 1


def _flag_doubts(survey: Survey, guess: Guess) -> Iterator[str]:
    """Doubts about flagged events that may be no part of the talk, such as another agent's."""
    inside = f"{guess.at}[]." if guess.at and not guess.each else ""
    for one in fields_named(survey.paths, ASIDE, inside, depth=0):
        if one.has_only("true or false") and (count := one.values.get("True", 0)):
            yield (
                f"{one.path} is true of {count}: if they are no part of the talk, leave them out with "
                f'[filter] skip = [{{ "{one.path}" = true }}]'
            )
    for one in fields_named(survey.paths, DELETED, inside, depth=0):
        zeros = one.values["0"]
        if snake_case(one.key) in DELETED and (count := one.kinds["text"] + one.kinds["number"] - zeros):
            zero = "0" if one.kinds["number"] else '"0"'
            rule = f'keep = [{{ "{one.path}" = {zero} }}]' if zeros else f'skip = [{{ "{one.path}" = "*" }}]'
            yield (
                f"{one.path} says of {count} that they were deleted; if nothing is left of their text, "
                f"they say nothing: [filter] {rule} leaves them out"
            )
    for one in fields_named(survey.paths, CHOSEN, inside, depth=0):
        if snake_case(one.key) in CHOSEN and (count := one.values.get("False", 0)):
            yield (
                f"{one.path} is false of {count}: rival answers stand one behind the other; [filter] skip = "
                f'[{{ "{one.path}" = false }}] leaves out those that were not chosen'
            )


def _hints(survey: Survey) -> Iterator[str]:
    """What was looked for in vain, and how to map the longest texts."""
    yield "no list of turns, no column of speakers, no runs of models, no marks of turns in a text"
    if survey.format == "text":
        yield (
            "if each turn of the text begins in the same way, write that as a regular expression: [turns] "
            'at = "text", pattern = \'^(?P<who>Ada|Bot): \', with [event] role = "text[].who", '
            'text = "text[].text"'
        )
        return
    if pairs := list_pairs(survey):
        ask, answer = pairs.values()
        yield (
            f"all records have the same questions at {ask}: if they are what people asked agents, [turns] "
            f'at = "turns", fields = {{ user = "{ask}[]", assistant = "{answer}[]" }}, with [event] role = '
            '"turns[].role", text = "turns[].text"; a questionnaire is no talk'
        )
        return
    texts = sorted((one for one in survey.paths.values() if _is_text(one)), key=lambda one: -one.characters)
    for one in texts[:3]:
        at = one.path.rpartition("[].")[0]
        speakers = [
            who.path
            for who in survey.paths.values()
            if who.path.rpartition("[].")[0] == at and has_both_sides(who)
        ]
        if "[]" in at:
            yield _within_lists(one, at, survey)
        else:
            who = speakers[0] if speakers else f"{at}[].…" if at else "…"
            yield f'if {one.path} is what somebody said: [event] text = "{one.path}", role = "{who}"'
    if not texts:
        yield "no path has texts: are these labels or measures of sessions stored elsewhere?"


def _within_lists(one: PathSummary, at: str, survey: Survey) -> str:
    """How to read texts in lists within lists: a path goes through one, here the longer of the inner two."""
    keys = f"{at}[]".split("[]")[:-1]
    lists = [survey.paths["[]".join(keys[: place + 1])] for place in range(len(keys))]
    longest = max(lists[:-3:-1], key=lambda many: sum(many.lengths) / max(1, len(many.lengths)))
    path = "".join(
        f"{key}[]" if many is longest else f"{key}[0]" for key, many in zip(keys, lists, strict=True)
    )
    others = [many for many in lists if many is not longest]
    is_only = all(length <= 1 for many in others for length in many.lengths)
    depth = "two" if len(lists) == 2 else len(lists)
    return (
        f"{one.path} holds texts {depth} lists deep, and a path goes through one: [event] "
        f'text = "{path}{one.path.removeprefix(at)[2:]}" reads the first item of '
        f"{' and of '.join(many.path for many in others)}, "
        f"{'which is its only one' if is_only else 'and leaves out all others'}; who speaks is [event] role, "
        'or [constants] role = "agent"'
    )


def _is_text(one: PathSummary) -> bool:
    return one.kinds["text"] > 0 and (one.mean_length >= LONG or (one.count > 1 and is_sentence(one)))


def _count_without_list(survey: Survey, guess: Guess) -> int:
    """How many records lack the list that the others have."""
    if guess.each or guess.shape not in ("messages", "list", "spans") or not as_list(guess.at):
        return 0
    lists = (turns.events_in(record, guess.at or "", None) for record in survey.records)
    return sum(not isinstance(many, list) for many in lists)
