"""Which path is the speaker, the text, the action ... of the events of a survey."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from . import dialects, guess_spans, turns
from .guess_names import (
    CHAT,
    NAMES,
    PAIRS,
    SESSION,
    SPEAKERS,
    SPEECH,
    TOOL_NAMES,
    TOOLS,
    first_one,
    is_label,
    is_number,
    is_said,
    is_seq,
    is_speaker,
    is_time,
    is_tool_name,
    named,
)
from .guess_roles import Role, roles_of
from .guess_text import CALLS, FENCE, pattern_of, speakers
from .paths import getter, several
from .survey import PathSeen, Survey

DIALECT = 200
"""So many messages are looked at to tell how they are written."""
Shape = Literal["messages", "spans", "list", "pairs", "text", "table", "nothing"]
Take = Callable[[str, list[PathSeen]], PathSeen | None]
"""Notes the first candidate that is not taken yet as a field of `[event]`."""


@dataclass
class Guess:
    """What the parts of the logs are taken for."""

    shape: Shape = "nothing"
    at: str | None = None
    event: dict[str, str | list[str]] = field(default_factory=dict)
    """Field of `[event]` -> its path, as the mapping has it."""
    spans: dict[str, str | list[str]] = field(default_factory=dict)
    """Field of `[spans]` -> its path."""
    native_id: list[str] = field(default_factory=list)
    head: dict[str, str] = field(default_factory=dict)
    hidden: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)
    roles: list[Role] = field(default_factory=list)
    patterns: list[str] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    strip: bool = False
    each: bool = False
    """Whether a record is one message, or one span."""
    turns_about: bool = False
    """Whether no field says who speaks, and two speak in turn."""
    speech: list[str] = field(default_factory=list)
    """Actions that only say something."""
    constant_role: str | None = None
    fence: str | None = None
    """What fenced blocks of the agent's texts are marked as, where they are its actions."""
    calls: bool = False
    """Whether texts are calls as Python writes them."""

    @property
    def used(self) -> set[str]:
        """The paths that are fields of the events."""
        fields = [*self.event.values(), *self.spans.values()]
        inside = {one for path in fields for one in several(path)}
        return inside | set(self.fields.values()) | {self.at or ""}


def of_spans(made: Guess, seen: Survey) -> bool:
    """One span a record."""
    made.spans = guess_spans.fields_of(seen, "")
    if not made.spans:
        return False
    made.shape, made.each = "spans", True
    made.native_id = guess_spans.traces(seen, made.spans)
    return True


def of_list(made: Guess, seen: Survey, path: str) -> None:
    inside = f"{path}[]."
    roles = seen.paths.get(f"{inside}role") or seen.paths.get(f"{inside}type")
    said = f"{inside}content" in seen.paths or f"{inside}tool_calls" in seen.paths
    chat = roles is not None and said
    known = sum(count for value, count in roles.values.items() if value in CHAT) if roles else 0
    made.at = path
    made.spans = guess_spans.fields_of(seen, inside)
    if made.spans:
        made.shape = "spans"
        return
    written = in_dialect(seen, path)
    if written:
        made.shape, made.roles = "messages", roles_of(written.items())
    elif chat and roles and known > 0.95 * sum(roles.values.values()) and not _telling_names(seen, inside):
        made.shape = "messages"
        made.roles = roles_of(roles.values.items())
    else:
        made.shape = "list"
        _of_events(made, seen, inside)
    made.fence = _fence(made, seen, inside)
    made.calls = made.fence is None and _calls(made, seen, inside)


def in_dialect(seen: Survey, path: str) -> Counter[str]:
    """Roles of a list's messages where they are written otherwise than a chat API's; else none."""
    items = list(itertools.islice(events_of(seen, path, f"{path}[]."), DIALECT))
    told = [dialects.messages(item) for item in items]
    other = sum(not dialects.is_plain(item) for item in items)
    spoken = [one for many in told for one in many or []]
    if not items or not all(told) or not other or _as_texts(seen, path):
        return Counter()
    return Counter(one["role"] for one in spoken)


def _as_texts(seen: Survey, path: str) -> bool:
    """Whether all that is said in a list is a plain text under a name that is read as one."""
    inside = f"{path}[]."
    texts = [one for one in named(seen.paths, NAMES["text"], inside) if is_said(one) and one.only("text")]
    return any(one.count >= _items(seen, path) for one in texts) and f"{inside}tool_calls" not in seen.paths


def _items(seen: Survey, path: str) -> int:
    return sum(seen.paths[path].lengths) if path in seen.paths else 0


def _telling_names(seen: Survey, inside: str) -> bool:
    """Whether messages have names that tell more than their roles, which are then a framework's matter."""
    names, roles = _names_and_roles(seen, inside, f"{inside}name", f"{inside}role")
    return (
        len(names) > len(roles) and "tool" not in roles and sum(names.values()) > 0.6 * _count(seen, inside)
    )


def _count(seen: Survey, inside: str) -> int:
    one = seen.paths.get(f"{inside}role")
    return one.count if one else 0


def _names_and_roles(seen: Survey, inside: str, name: str, role: str) -> tuple[Counter[str], set[str]]:
    """Names of the events that have one, and the roles of those events."""
    names: Counter[str] = Counter()
    roles: set[str] = set()
    at_name, at_role = (getter(path.removeprefix(inside)) for path in (name, role))
    for event in events_of(seen, inside.removesuffix("[]."), inside):
        said = at_name(event)
        if isinstance(said, (str, int)) and said != "":
            names[str(said)] += 1
            roles.add(str(at_role(event)))
    return names, roles


def events_of(seen: Survey, at: str, inside: str) -> Iterator[dict[str, Any]]:
    """The events of the records that were looked at."""
    for record in seen.records:
        many = turns.events_in(record, at, None) if inside else [record]
        yield from (event for event in many or [] if isinstance(event, dict))


def _of_events(made: Guess, seen: Survey, inside: str) -> None:
    """The fields of `[event]`."""
    paths, taken = seen.paths, set[str]()

    def take(name: str, candidates: list[PathSeen]) -> PathSeen | None:
        one = first_one([c for c in candidates if c.path not in taken])
        if one is not None:
            made.event[name] = one.path
            taken.add(one.path)
        return one

    actions = [one for one in named(paths, NAMES["action"], inside) if one.only("text")]
    actions += [one for one in named(paths, TOOL_NAMES, inside) if _parent(one) in TOOLS and one.only("text")]
    names = [one for one in actions if is_tool_name(one)]
    lines = [one for one in actions if one not in names]
    who = [
        one for one in named(paths, NAMES["role"], inside) if is_speaker(one) and _parent(one) not in TOOLS
    ]
    speakers_ = [one for one in who if one not in names or one.key.lower() in SPEAKERS]
    role = take("role", [one for one in speakers_ if not is_number(one)])
    text = [one for one in named(paths, NAMES["text"], inside) if is_said(one) and one not in lines]
    text = [one for one in text if _parent(one) not in {*TOOLS, *NAMES["result"]}] or (
        [] if actions else text
    )
    if role is None:
        made.constant_role = "agent"
        _of_steps(made, seen, inside, names, lines, take)
        first = take("text", [one for one in text if one.path not in taken])
        if first and not {"action", "command", "result"} & set(made.event) and inside:
            made.constant_role = None
            made.turns_about = True
            made.roles = roles_of((side, 0) for side in ("user", "assistant"))
    else:
        _named_roles(made, seen, inside, role)
        take("action", names)
        first = take("text", text)
        if first and "action" in made.event:
            rest = [one for one in text if one.path not in taken]
            made.event["text"] = [first.path, *(one.path for one in rest[:1])] if rest else first.path
        if "action" in made.event:
            done = seen.paths[str(made.event["action"])].values
            made.speech = [name for name in done if name.lower() in SPEECH]
            take("arguments", named(paths, NAMES["arguments"], inside))
    take("time", [one for one in named(paths, NAMES["time"], inside) if is_time(one)])
    if not inside:
        take("seq", [one for one in named(paths, NAMES["seq"], inside) if is_seq(one)])


def _parent(one: PathSeen) -> str:
    """The key of the object that a path is in."""
    return one.path.rpartition(".")[0].rpartition(".")[2].removesuffix("[]").lower()


def _of_steps(
    made: Guess, seen: Survey, inside: str, names: list[PathSeen], lines: list[PathSeen], take: Take
) -> None:
    """Steps that are all the agent's: what was done, and what came back."""
    if names:
        done = take("action", names)
        if not take("arguments", named(seen.paths, NAMES["arguments"], inside)) and done:
            _beside(made, seen, done)
    elif lines:
        take("command", lines)
    take("result", named(seen.paths, NAMES["result"], inside))
    take("error", [one for one in named(seen.paths, NAMES["error"], inside) if one.only("text")])


def _beside(made: Guess, seen: Survey, action: PathSeen) -> None:
    """What stands beside an action's name in the action's own object are its arguments."""
    within = action.path.rpartition(".")[0]
    if _parent(action) in TOOLS:
        beside = [path for path in seen.paths if path.rpartition(".")[0] == within and path != action.path]
        if beside:
            made.event["arguments"] = sorted(beside)


def _named_roles(made: Guess, seen: Survey, inside: str, role: PathSeen) -> None:
    """Who speaks: by their role or, where it tells more, by their name."""
    candidates = named(seen.paths, NAMES["actor"], inside)
    name = first_one([one for one in candidates if one is not role and is_speaker(one)])
    values: Counter[str] = Counter(dict(role.values))
    if name is not None:
        names, roles = _names_and_roles(seen, inside, name.path, role.path)
        if len(names) > len(roles):
            made.event["role"] = [name.path, role.path]
            values = names + _unnamed(seen, inside, name.path, role.path)
        elif len(names) > 1:
            made.event["actor"] = [name.path, role.path]
    plain: Counter[str] = Counter()
    for value, count in values.items():
        plain[_stripped(value)] += count
    made.strip = len(plain) < len(values)
    made.roles = roles_of((plain if made.strip else values).items())


def _unnamed(seen: Survey, inside: str, name: str, role: str) -> Counter[str]:
    """Roles of the events that have no name."""
    at_name, at_role = (getter(path.removeprefix(inside)) for path in (name, role))
    events = events_of(seen, inside.removesuffix("[]."), inside)
    return Counter(str(at_role(event)) for event in events if at_name(event) in (None, "") and at_role(event))


def _stripped(name: str) -> str:
    return re.sub(r"\s*\(.*\)$", "", name) or name


def _fence(made: Guess, seen: Survey, inside: str) -> str | None:
    path = made.event.get("text", f"{inside}content")
    one = seen.paths.get(several(path)[0])
    found = [match[1] for text in (one.texts if one else []) if (match := FENCE.search(text))]
    has_tools = f"{inside}tool_calls" in seen.paths or "action" in made.event or "command" in made.event
    if has_tools or one is None or len(found) < max(2, 0.2 * len(one.texts)):
        return None
    return max(set(found), key=found.count)


def _calls(made: Guess, seen: Survey, inside: str) -> bool:
    """Whether some of the texts are nothing but calls, and no field has them."""
    path = made.event.get("text", f"{inside}content")
    one = seen.paths.get(several(path)[0])
    if one is None or f"{inside}tool_calls" in seen.paths or {"action", "command"} & set(made.event):
        return False
    whole = re.compile(rf"\A(?:{CALLS})+\]?\s*\Z".replace("?P<action>", "").replace("?P<arguments>", ""))
    return sum(bool(whole.match(text)) for text in one.texts) >= max(2, 0.1 * len(one.texts))


def of_text(made: Guess, seen: Survey) -> bool:
    """Texts in which turns are marked, such as `User: ...`."""
    best: tuple[float, PathSeen, str] | None = None
    for one in seen.paths.values():
        if "[]" in one.path or not one.texts or (one.mean_length < 40 and seen.format != "text"):
            continue
        pattern = pattern_of(one.texts)
        if pattern and (best is None or one.characters > best[0]):
            best = (one.characters, one, pattern)
    if best is None:
        return False
    _, one, pattern = best
    made.shape, made.at, made.patterns = "text", one.path, [pattern]
    made.event = {"role": f"{one.path}[].speaker", "text": f"{one.path}[].text"}
    made.roles = roles_of(speakers(one.texts, pattern).items())
    return True


def of_pairs(made: Guess, seen: Survey) -> bool:
    """A record that is a question with its answer."""
    table = [one for one in named(seen.paths, NAMES["role"]) if is_speaker(one)]
    for names, role in PAIRS:
        said = first_one([one for one in named(seen.paths, names) if one.kinds["text"] > 0 and is_said(one)])
        if said is not None:
            made.fields[role] = said.path
    if table or not {"user", "assistant"} <= set(made.fields):
        made.fields = {}
        return False
    made.shape, made.at = "pairs", "turns"
    made.event = {"role": "turns[].role", "text": "turns[].text"}
    made.roles = roles_of((role, len(seen.records)) for role in made.fields)
    return True


def of_messages(made: Guess, seen: Survey) -> bool:
    """One message of a chat API a record, maybe within an object of it."""
    for inside in ("", *(f"{path}." for path in seen.paths if "[]" not in path and path.count(".") < 2)):
        role = seen.paths.get(f"{inside}role")
        content = seen.paths.get(f"{inside}content")
        if role is None or content is None or not set(role.values) <= CHAT or not role.values:
            continue
        if content.kinds["list"] or f"{inside}tool_calls" in seen.paths or "tool" in role.values:
            made.shape, made.at, made.each = "messages", inside.removesuffix(".") or None, True
            made.roles = roles_of(role.values.items())
            sessions = [one for one in named(seen.paths, SESSION, depth=0) if repeats(one, seen)]
            made.native_id = [sessions[0].path] if sessions else []
            return True
    return False


def of_table(made: Guess, seen: Survey) -> bool:
    """One event a record."""
    _of_events(made, seen, "")
    if not made.event.get("text") and not made.event.get("action") and not made.event.get("command"):
        made.event, made.constant_role = {}, None
        return False
    made.shape = "table"
    role = made.event.get("role")
    used = {one for path in made.event.values() for one in several(path)}
    sessions = [one for one in named(seen.paths, SESSION) if one.path not in used and repeats(one, seen)]
    made.native_id = [sessions[0].path] if sessions else []
    made.at = None
    made.tags = _constant(seen, made.native_id, used)
    return role is not None or made.constant_role is not None


def _constant(seen: Survey, session: list[str], used: set[str]) -> dict[str, str]:
    """Columns that say the same in all records of a session, and not in all sessions."""
    if not session:
        return {}
    kept = {}
    for path, one in seen.paths.items():
        if path in used or path in session or "[]" in path or not is_label(one) or len(one.values) < 2:
            continue
        said: dict[str, set[str]] = {}
        for record in seen.records:
            said.setdefault(str(value_at(record, session[0])), set()).add(str(value_at(record, path)))
        if all(len(values) == 1 for values in said.values()) and len(said) > len(one.values):
            kept[one.key] = path
    return kept


def repeats(one: PathSeen, seen: Survey) -> bool:
    """Whether several records are of one session, and there are several, or all are of one."""
    return (one.count >= 0.9 * len(seen.records) and not one.more and len(one.values) < 0.7 * one.count) or (
        one.more and rows_per(one, seen) > 1.3
    )


def rows_per(one: PathSeen, seen: Survey) -> float:
    values = [value_at(record, one.path) for record in seen.records]
    return len(values) / max(1, len(set(map(str, values))))


def value_at(record: object, path: str) -> object:
    for key in re.split(r"(?<!\\)\.", path):
        plain = key.replace("\\", "")
        record = record.get(plain) if isinstance(record, dict) else None
    return record
