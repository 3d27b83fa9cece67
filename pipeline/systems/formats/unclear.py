"""What a draft does not know of logs, in sentences that say which line of it to change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from ....schemas.trajectory import ParticipantKind
from ..base import walk
from . import turns
from .guess_made import Guess
from .guess_meanings import is_answer
from .guess_names import (
    ASIDE,
    GROUPS,
    HEAD,
    NAMES,
    SAID,
    SESSION,
    SPEAKERS,
    first_one,
    is_label,
    is_sentence,
    is_sides,
    named,
    parent_of,
    spelled,
)
from .guess_records import in_blocks, repeats, value_at
from .guess_roles import role_of
from .guess_sessions import OWN
from .guess_text import UNTIMED, pattern_of
from .mapped_values import is_name
from .paths import several
from .survey import PathSeen, Survey

NAMED = 8
PARENTS = ("parent_id", "parent_message_id", "parent_uuid")
"""What names the message before, in records of one message each."""
NEARLY = 0.8
LONG = 40
"""Characters on average from which on a text may be what somebody said, if it is none of many sentences."""


def unclear(seen: Survey, made: Guess) -> Iterator[str]:
    """One sentence for each thing that the logs do not tell."""
    if seen.encoding:
        yield f"no UTF-8, and read as {seen.encoding}: are letters with accents right? ([input] encoding)"
    if made.shape == "nothing":
        yield from _nothing(seen)
        return
    if made.nameless:
        yield (
            "no column's name says what it is: who speaks changes most from row to row, what is said is "
            "longest, a session comes in a block; change [event] and native_id where that is wrong"
        )
    yield from _who(made)
    yield from _unheard(seen, made)
    if (made.each or made.shape == "table") and not made.native_id:
        yield _whole(seen, made)
    if (made.shape == "table" or made.each) and 1 < len(seen.files) == len(seen.records):
        yield (
            "each file holds one event and is read as a session of its own: join the files of a session into "
            "one, with an event a line"
        )
    if seen.aside:
        yield (
            f"left out are records of other fields than these, at {', '.join(seen.aside[:NAMED])}: if they "
            "are sessions, too, a mapping of their own reads them ([input] sessions)"
        )
    if made.native_id and (group := made.by_values.get("native_id")) == made.native_id[0]:
        yield f"{group} is taken for the session, for its values come in blocks ([trajectory] native_id)"
    if "action" in made.event and (done := made.by_values.get("action")) == made.event["action"]:
        yield f"{done} is taken for what was done, for nothing else says it ([event] action)"
    if "time" in made.event and (when := made.by_values.get("time")) == made.event["time"]:
        yield f"{when} is taken for the time, for it holds times in their order ([event] time)"
    if (session := of_rows(seen, made)) is not None:
        yield (
            f"{session.path} repeats, while each row is read as a session of its own, without a time: rows "
            "with a question and its answer are joined where they stand in their order and a question comes "
            "once; sort the rows of a session, and leave out all but one to a question, to have one of them"
        )
    if made.rounds and (left := _of_rounds(seen, made)):
        yield (
            "rows of a session are read as one, without what is said of each row: "
            f"{', '.join(left[:NAMED])}{' ...' if len(left) > NAMED else ''}"
        )
    if made.shape in ("list", "table") and "time" not in made.event and not made.timed:
        yield (
            "no field holds times that can be read: give [event] time (ISO 8601, or seconds since 1970; else "
            "[constants] time_format)"
        )
    if set(UNTIMED) & set(made.patterns):
        yield "what turns begin with is no day with a time that can be read, so they have none"
    if len(made.time_formats) > 1:
        first, second = made.time_formats[:2]
        yield (
            f"{made.timed} may be written as {first} or as {second}: map it as [event] time, with the right "
            "one as [constants] time_format"
        )
    if made.spans and "start" not in made.spans:
        yield "no field says when a run began, so they stand in the log's order: give [spans] start"
    if any(turns.has_rivals(value_at(record, made.at or "")) for record in seen.records):
        yield (
            f"{made.at} has rival answers: the way to which most was said is read, the first where it was as "
            "much, and the others are left out"
        )
    if others := _others(seen, made):
        hold = "holds a conversation" if len(others) == 1 else "hold conversations"
        table = "[messages]" if made.shape == "messages" else "[turns]"
        yield (
            f"{', '.join(others[:NAMED])} {hold}, too, beside {made.at}, and "
            f"{'is' if len(others) == 1 else 'are'} left out: a mapping of its own reads one ({table} at)"
        )
    yield from _rival_records(seen, made)
    yield from _aside(seen, made)
    missing = _without(seen, made)
    if missing:
        yield (
            f"{missing} of {len(seen.records)} records have nothing at {made.at} and are quarantined: other "
            "records than sessions, or sessions of another shape"
        )


def of_rows(seen: Survey, made: Guess) -> PathSeen | None:
    """What says of which session a row is that has a question and its answer, where several are of one."""
    if made.shape != "pairs":
        return None
    some = [one for one in named(seen.paths, SESSION, depth=0) if spelled(one.key) in SESSION]
    some = [one for one in some if spelled(one.key) not in (*OWN, *HEAD["instance"], "sample_id")]
    return first_one([one for one in some if repeats(one, seen)])


def _of_rounds(seen: Survey, made: Guess) -> list[str]:
    """What differs between the rows of a session, but for numbers of rows, and is not read."""
    numbers = [one.path for one in named(seen.paths, NAMES["seq"], depth=0)]
    used = {*made.used, *made.native_id, *made.head.values(), *made.outcomes.values(), *numbers}
    told: dict[str, list[dict[str, Any]]] = {}
    for record in seen.records:
        told.setdefault(str(value_at(record, made.native_id[0])), []).append(record)
    return [
        path
        for path, one in seen.paths.items()
        if not (path in used or "[]" in path or one.only("object", "list"))
        and any(len({str(value_at(record, path)) for record in many}) > 1 for many in told.values())
    ]


def unread(path: Path, seen: Survey) -> str:
    """Why there is nothing to draft a mapping from."""
    if not path.exists():
        return "no such file or folder"
    if seen.wrong:
        return seen.wrong[0].reason
    files = [one for one in walk(path) if one.is_file()] if path.is_dir() else [path]
    if not any(file.stat().st_size for file in files):
        what = "folder" if path.is_dir() else "file"
        return f"the {what} is empty" if files else "no file in it"
    return "no file that could be read as records; JSON, CSV, Parquet, spreadsheets and texts can"


def _who(made: Guess) -> Iterator[str]:
    """Doubts on who speaks, and on how what was done ended."""
    if made.turns_about:
        yield "no field says who speaks: user and assistant are taken to do so in turn ([constants] role)"
    elif made.constant_role:
        yield f"no field says who acts: all is put down to {made.constant_role} ([constants] role)"
    if made.told:
        yield (
            f"only roles say who these are: {_by_kind(made.told)}; where agents are called user, or people "
            "agent, change [roles]"
        )
    if made.renamed:
        yield (
            f"roles say otherwise of these, or the same of several, so their names say who they are: "
            f"{_by_kind(made.renamed)}; change [roles]"
        )
    if made.failing:
        yield "what has an error is taken to have failed, all else to have succeeded ([[results]])"
    yield from _ended(made)
    unknown = [role for role in made.roles if not role.known]
    if unknown and not made.bots:
        names = ", ".join(f"{role.name} ({role.kind})" for role in unknown[:NAMED])
        more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
        yield f"nothing says what these are, so it is a guess: {names}{more}; change them in [roles]"


def _by_kind(told: dict[str, ParticipantKind]) -> str:
    """Some names of each kind."""
    groups = ((kind, [who for who, own in told.items() if own == kind]) for kind in get_args(ParticipantKind))
    return "; ".join(f"{', '.join(many[:NAMED])} ({kind})" for kind, many in groups if many)


def _ended(made: Guess) -> Iterator[str]:
    """Doubts on what says how actions ended."""
    status = made.event.get("status")
    if "*" in made.statuses:
        yield f"of {status} 0 is taken for success, any other for a failure ([statuses])"
    elif any(map(is_answer, made.statuses)):
        yield f"of {status} 200 to 399 are taken for success, 400 and above for failures ([statuses])"
    elif made.statuses.get("true") == "failed":
        yield f"{status} is taken for a failure of the action that it stands with ([statuses])"
    elif status in made.acted:
        yield (
            f"{status} stands with actions alone, so it is taken for how each of them ended ([statuses]); if "
            "it is the session's, make it one of [outcomes]"
        )
    for path in made.acted:
        if path in made.outcomes.values():
            yield (
                f"{path} stands with one action of a session, so it is taken for what the session came to; "
                f'if it says how that action ended: [event] status = "{path}", with its words in [statuses]'
            )
        elif path != status:
            yield (
                f"{path} stands with actions alone, so it is no outcome of a session; if it says how each "
                f'of them ended, which is open: [event] status = "{path}", with its words in [statuses]'
            )


def _whole(seen: Survey, made: Guess) -> str:
    """That a file is taken for a session, and which field may tell of several."""
    least = "no field tells sessions apart, so a file is one: give [trajectory] native_id if one does"
    used = {*made.used, *made.head.values(), *made.outcomes.values(), *made.secrets}
    some = [one for path, one in seen.paths.items() if "[]" not in path and path not in used]
    groups = [
        one
        for one in some
        if (is_label(one) or spelled(one.key) in GROUPS)
        and one.only("text", "number")
        and repeats(one, seen)
        and (in_blocks(one, seen) or (spelled(one.key) in GROUPS and len(one.values) > 1))
    ]
    best = max(groups, key=lambda one: (spelled(one.key) in GROUPS, len(one.values)), default=None)
    return least if best is None else f"{least}; {best.path} may ({len(best.values)}{'+' * best.more} values)"


def _unheard(seen: Survey, made: Guess) -> Iterator[str]:
    """People whose words stand elsewhere than the events, as the first message of a tree does."""
    used = {one for path in made.event.values() for one in several(path)}
    alone = made.shape in ("list", "table") and {role.kind for role in made.roles} == {"agent"}
    for path, one in seen.paths.items() if alone else ():
        people = [name for name in one.values if role_of(name).known and role_of(name).kind == "human"]
        if one.key == "role" and people and path not in used:
            yield (
                f"only agents speak in what is read, and {path} says {people[0]}: what stands beside it is "
                "left out; records of one message each can be read whole"
            )
            return
    opening = _opening(seen, made) if made.shape in ("list", "messages") else None
    if opening is not None:
        text, who = opening
        how = f': [trajectory] request = "{text}" has it as what the user says first'
        yield (
            f"{text} is said by a person ({who}) beside {made.at}, and left out"
            f"{how if made.shape == 'list' else ''}"
        )


def _opening(seen: Survey, made: Guess) -> tuple[str, str] | None:
    """A text beside the list of events, and what says that a person wrote it."""
    heads = {path: one for path, one in seen.paths.items() if "[]" not in path}
    used = {*made.used, *made.head.values()}
    for path, one in heads.items():
        signs = one.key.lower() in SPEAKERS or parent_of(one) in SPEAKERS
        roles = [role_of(name) for name in one.values if name]
        if not signs or not roles or not all(role.known and role.kind == "human" for role in roles):
            continue
        above = path.rpartition(".")[0]
        above = above.rpartition(".")[0] if parent_of(one) in SPEAKERS else above
        inside = f"{above}." if above else ""
        said = [text for text in named(heads, NAMES["text"], inside, depth=0) if text.path not in used]
        said = [text for text in said if text.only("text") and text.key.lower() in SAID]
        if said:
            return said[0].path, path
    return None


def _others(seen: Survey, made: Guess) -> list[str]:
    """Where conversations stand beside the one that is read, such as the answer that was liked less."""
    beside = {path: one for path, one in seen.paths.items() if "[]" not in path and path != made.at}
    if seen.sides or made.at is None:
        return []
    if made.shape == "messages" and not made.each and f"{made.at}[].role" in seen.paths:
        reply = made.reply or ""
        fields = ("role", "content")
        chats = [path for path in beside if all(f"{path}[].{name}" in seen.paths for name in fields)]
        return [path for path in chats if not reply.startswith(path)]
    if made.shape == "text" and made.at in seen.paths and seen.format != "text":
        return [path for path, one in beside.items() if one.texts and pattern_of(one.texts)]
    return []


def _rival_records(seen: Survey, made: Guess) -> Iterator[str]:
    """That records of one message each are a tree, with several answers to one."""
    is_message = made.shape == "table" or (made.each and made.shape != "spans")
    parents = named(seen.paths, PARENTS, depth=0) if is_message else []
    for one in parents:
        after = Counter(str(value) for record in seen.records if (value := value_at(record, one.path)))
        ids = {str(value) for record in seen.records for value in record.values() if is_name(value)}
        if len(after.keys() & ids) > NEARLY * len(after) and max(after.values(), default=0) > 1:
            yield (
                f"{one.path} says which message each follows, and several follow one: rival answers stand "
                "one behind the other; [filter] leaves out all but one, by a field such as a rank"
            )
            return


def _aside(seen: Survey, made: Guess) -> Iterator[str]:
    """Flags of events that may be no part of the talk, such as those of another agent's."""
    inside = f"{made.at}[]." if made.at and not made.each else ""
    for one in named(seen.paths, ASIDE, inside, depth=0):
        if one.only("true or false") and (count := one.values.get("True", 0)):
            yield (
                f"{one.path} is true of {count}: if they are no part of the talk, leave them out with "
                f'[filter] skip = [{{ "{one.path}" = true }}]'
            )


def _nothing(seen: Survey) -> Iterator[str]:
    """What was looked for, and what comes next to it."""
    yield "no list of turns, no column of speakers, no runs of models, no marks of turns in a text"
    if seen.format == "text":
        yield (
            "if each turn of the text begins in the same way, write that as a regular expression: [turns] "
            'at = "text", pattern = \'^(?P<who>Ada|Bot): \', with [event] role = "text[].who", '
            'text = "text[].text"'
        )
        return
    texts = sorted((one for one in seen.paths.values() if _is_text(one)), key=lambda one: -one.characters)
    for one in texts[:3]:
        at = one.path.rpartition("[].")[0]
        known = [
            who.path for who in seen.paths.values() if who.path.rpartition("[].")[0] == at and is_sides(who)
        ]
        if "[]" in at:
            yield _within_lists(one, at, seen)
        else:
            who = known[0] if known else f"{at}[].…" if at else "…"
            yield f'if {one.path} is what somebody said: [event] text = "{one.path}", role = "{who}"'
    if not texts:
        yield "no path holds texts: are these labels or measures of sessions that lie elsewhere?"


def _within_lists(one: PathSeen, at: str, seen: Survey) -> str:
    """How to read texts in lists within lists, of which a path goes through one."""
    first = f"{at.replace('[]', '[0]')}{one.path.removeprefix(at)}"
    around = [seen.paths[at[: found.start()]] for found in re.finditer(r"\[\]", at)]
    is_only = all(length <= 1 for outer in around for length in outer.lengths)
    depth = "two" if len(around) == 1 else len(around) + 1
    return (
        f"{one.path} holds texts {depth} lists deep, and a path goes through one: [event] "
        f'text = "{first}" reads the first item of {" and of ".join(outer.path for outer in around)}, '
        f"{'which is its only one' if is_only else 'and leaves out all others'}; who speaks is [event] role, "
        'or [constants] role = "agent"'
    )


def _is_text(one: PathSeen) -> bool:
    return one.kinds["text"] > 0 and (one.mean_length >= LONG or (one.count > 1 and is_sentence(one)))


def _without(seen: Survey, made: Guess) -> int:
    """Records without the list that the others have."""
    if made.each or made.shape not in ("messages", "list", "spans") or not several(made.at):
        return 0
    lists = (turns.events_in(record, made.at or "", None) for record in seen.records)
    return sum(not isinstance(many, list) for many in lists)
