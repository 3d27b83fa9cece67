"""A mapping drafted from what was seen of logs, as TOML with comments, to be used as it is and mended."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....schemas import Trajectory
from .guess import guess
from .guess_acts import speech_paths
from .guess_made import Guess
from .guess_names import verdicts
from .guess_text import CALLS
from .inputs import fits_name
from .mapped_spans import kind_of
from .paths import several
from .survey import PathSeen, Survey, patterns, survey
from .unclear import of_rows, unclear

SHOWN = 60
"""So many paths are listed."""
MANY = 4
"""Where more names than that were seen, others may come that were not."""
SHELLS = ("bash", "sh", "shell", "console", "zsh", "powershell", "mswea_bash_command")


@dataclass(frozen=True)
class Draft:
    """A mapping's text with what it rests on."""

    text: str
    seen: Survey
    made: Guess

    @property
    def unknown(self) -> list[str]:
        """Roles whose names do not say what they are."""
        return [role.name for role in self.made.roles if not role.known]

    def found(self) -> str:
        """What was recognised, in a sentence."""
        what = {
            "messages": f"messages of a chat{f' at {self.made.at}' if self.made.at else ''}",
            "spans": f"runs of models and tools, {f'at {self.made.at}' if self.made.at else 'one a record'}",
            "list": f"turns in the list {self.made.at}",
            "pairs": "a question and its answer a record",
            "text": f"turns in the text {self.made.at}",
            "table": "one event a record",
            "nothing": "nothing that reads like turns",
        }[self.made.shape]
        if self.made.rounds:
            what = "a round of a session a record"
        n = len(self.made.roles)
        roles = f", {n} role{'s' * (n != 1)}, {len(self.unknown)} unknown" if n else ""
        others = _passed(self.seen)
        passed = f"; {len(others)} other files are passed over" if others else ""
        return f"{_sized(self.seen)}: {what}{roles}{passed}"


def draft(root: Path) -> Draft:
    """The draft for a file or a folder."""
    seen = survey(root)
    made = guess(seen)
    return Draft("\n".join(_lines(seen, made)) + "\n", seen, made)


def paths_listed(seen: Survey) -> Iterator[str]:
    """A line a path: its kinds, how often it is there, and some of its values."""
    shown = sorted(seen.paths.values(), key=lambda one: (one.path.count("[]"), one.path))
    for one in shown[:SHOWN]:
        kinds = ", ".join(kind for kind, _ in one.kinds.most_common())
        yield f"  {one.path}  {kinds}  {one.count}{_values(one)}"
    if len(shown) > SHOWN:
        yield f"  … and {len(shown) - SHOWN} more paths"


def covered(draft: Draft, shown: Sequence[Trajectory]) -> str:
    """How much of the first trajectories the draft says something of."""
    if not shown:
        return f"{draft.found()}; no trajectory comes of the draft as it is"
    people = {(person.name, person.kind) for trajectory in shown for person in trajectory.participants}
    kinds = Counter(kind for _, kind in people)
    named = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items(), reverse=True))
    events = sum(len(trajectory.events) for trajectory in shown)
    acts = sum(event.kind == "action" for trajectory in shown for event in trajectory.events)
    unknown = f"; unknown: {', '.join(quoted(name) for name in draft.unknown[:12])}" if draft.unknown else ""
    n = len(draft.made.roles)
    total = f"{n} role{'s' * (n != 1)}, {len(draft.unknown)} unknown" if n else "no roles"
    if draft.made.spans:
        total = "who speaks follows from what the runs are ([spans.kinds])"
    return f"{len(shown)} shown: {events} events, {acts} actions; participants: {named}; {total}{unknown}"


def document(draft: Draft, shown: Sequence[Trajectory]) -> dict[str, Any]:
    """The draft as `map --json` prints it."""
    seen, made = draft.seen, draft.made
    return {
        "draft": draft.text,
        "shape": made.shape,
        "format": seen.format,
        "files": len(seen.files),
        "records": len(seen.records),
        "paths": [
            {"path": one.path, "kinds": dict(one.kinds), "count": one.count, "values": dict(one.values)}
            for one in seen.paths.values()
        ],
        "roles": [{"role": role.name, "kind": role.kind, "known": role.known} for role in made.roles],
        "unknown": draft.unknown,
        "unclear": list(unclear(seen, made)),
        "trajectories": len(shown),
    }


_LINES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quoted(text: str) -> str:
    """A TOML basic string: what would end it or a line is escaped, and so is what no text may hold."""
    ends = {'"': '\\"', "\\": "\\\\"}
    return '"' + "".join(ends.get(c) or _LINES.get(c) or _escaped(c) for c in text) + '"'


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        return "�"
    hidden = (
        code < 0x20 or 0x7F <= code < 0xA0 or code in (0x2028, 0x2029, 0xFEFF) or 0x202A <= code <= 0x202E
    )
    return f"\\u{code:04X}" if hidden else character


def _key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else quoted(text)


def _literal(text: str) -> str:
    """A regular expression, in single quotes where it has none."""
    return quoted(text) if "'" in text or any(ord(c) < 0x20 for c in text) else f"'{text}'"


def _comment(text: str) -> str:
    """One line of a comment, in which quotes end nothing."""
    return "".join(_LINES.get(c) or _escaped(c) for c in text)


def _values(one: PathSeen) -> str:
    if not one.values:
        return ""
    some = ", ".join(quoted(value[:30]) for value, _ in one.values.most_common(6))
    n = len(one.values)
    return f"  {n}{'+' if one.more else ''} value{'s' * (n > 1)}: {some}"


def _sized(seen: Survey) -> str:
    files = f"{len(seen.files)} {seen.format} file{'s' * (len(seen.files) != 1)}"
    n = len(seen.records)
    return f"{files}, {n} record{'s' * (n != 1)} looked at"


def _lines(seen: Survey, made: Guess) -> Iterator[str]:
    yield f"# Drafted by `coaudit map`: {_sized(seen)}. Change what is wrong, then"
    yield "#     coaudit ingest LOGS --map THIS_FILE --dry-run     (and without --dry-run)"
    yield "# Paths: user.name, events[].text. All keys: docs/formats.md."
    doubts = list(unclear(seen, made))
    if doubts:
        yield "# Not understood:"
        yield from (f"# * {_comment(one)}" for one in doubts)
    if made.shape == "nothing":
        yield "# Nothing here reads like turns; these are the paths:"
        yield from (f"# {_comment(line)}" for line in paths_listed(seen))
        return
    yield from _input(seen, made)
    yield from _constants(seen, made)
    yield from _head(seen, made)
    yield from _table("tags", made.tags, "kept with each trajectory; --by takes them")
    yield from _table("outcomes", made.outcomes, "a number, true or false, or a text")
    for name, path in made.outcomes.items():
        yield from _table(f"values.{_key(name)}", verdicts(seen.paths[path]), "word -> number")
    yield from _events(seen, made)
    yield from _roles(made)
    yield from _actions(made)
    yield from _left(seen, made)


def _input(seen: Survey, made: Guess) -> Iterator[str]:
    yield "\n[input]"
    yield f"format = {quoted(seen.format or 'jsonl')}"
    if seen.encoding:
        yield f"encoding = {quoted(seen.encoding)}    # for it is not UTF-8"
    if seen.root.is_dir():
        others = [path.name for path in _passed(seen)]
        some = ", ".join(_comment(name) for name in sorted(set(others))[:5])
        what = f"{len(others)} files{f' ({some})' if some else ''}"
        odd = sorted(set(seen.odd))
        names = [*patterns(seen.files), *(f"!{name}" for name in odd)]
        yield f"files = {_list(names) if len(names) > 1 else quoted(names[0])}    # passed over: {what}"
    if seen.numbered:
        yield f"numbered = {quoted(seen.numbered)}    # turns under numbered names are a list of this name"
    if seen.sides:
        yield f"sides = {_list(seen.sides)}    # a record is as many sessions; `side` says which"
    if isinstance(seen.sessions, list):
        yield f"sessions = {_list(seen.sessions)}    # the records; `key` says of which of these one is"
    elif seen.sessions:
        yield f"sessions = {quoted(seen.sessions)}    # the records, within the file's object"
    if made.rounds:
        rounds = ", ".join(f"{_key(role)} = {quoted(str(path))}" for role, path in made.fields.items())
        yield f"rounds = {{ {rounds} }}    # a record has what each said, in this order: `said` is one of it"


def _passed(seen: Survey) -> list[Path]:
    """The files that the draft does not read."""
    names = patterns(seen.files)
    return [p for p in seen.others if p.name in seen.odd or not fits_name(p.name, names)]


def _constants(seen: Survey, made: Guess) -> Iterator[str]:
    name = re.sub(r"[^a-z0-9]+", "_", seen.root.resolve().name.lower().partition(".")[0]).strip("_")
    yield "\n[constants]"
    yield f"system = {quoted(name or 'mapped')}"
    yield '# setting = "real"           # or simulated, where models play the humans'
    if made.turns_about:
        yield 'role = ["user", "assistant"]    # no field says who speaks: in turn'
    if made.constant_role:
        yield f"role = {quoted(made.constant_role)}    # no field says who acts"
    if made.shape in ("list", "table", "text") and _has_environment(made) and _acts(made):
        yield 'results = "next"    # what the environment says after an action is its result'
    if len(made.time_formats) == 1:
        yield f"time_format = {quoted(made.time_formats[0])}    # how times are written (strptime)"
    off = "" if made.failing else "# "
    yield f'{off}status = "succeeded"       # of a result of which nothing says whether it failed'


def _acts(made: Guess) -> bool:
    return (
        made.fence is not None or made.code is not None or "action" in made.event or "command" in made.event
    )


def _has_environment(made: Guess) -> bool:
    return any(role.kind != "agent" for role in made.roles)


def _head(seen: Survey, made: Guess) -> Iterator[str]:
    yield "\n[trajectory]"
    if len(made.native_id) == 1:
        yield f"native_id = {_path(seen, made.native_id[0])}"
    elif made.native_id:
        yield f"native_id = {_list(made.native_id)}    # together they tell the records apart"
    elif not seen.per_file:
        what = "sessions" if of_rows(seen, made) is None else "rows"
        how = (
            "the whole file is one session"
            if made.shape == "table" or made.each
            else "sessions are named by file and number"
        )
        yield f"# native_id = …    # no field tells {what} apart; {how}"
    for name, path in made.head.items():
        yield f"{name} = {_path(seen, path)}"
    for path in made.secrets:
        yield f"# hidden = {quoted(path)}    # kept from judges and annotators"


def _path(seen: Survey, path: str) -> str:
    one = seen.paths.get(path)
    if one is None or not one.values:
        return quoted(path)
    n = len(one.values)
    shown = (
        f"{n}{'+' if one.more else ''} value{'s' * (n > 1)}, such as {quoted(next(iter(one.values))[:40])}"
    )
    return f"{quoted(path)}    # {shown}"


def _list(items: Iterable[str]) -> str:
    return f"[{', '.join(quoted(item) for item in items)}]"


def _table(name: str, entries: Mapping[str, str | int], why: str) -> Iterator[str]:
    if entries:
        yield f"\n[{name}]    # {why}"
        for key, value in entries.items():
            yield f"{_key(key)} = {quoted(value) if isinstance(value, str) else value}"


def _events(seen: Survey, made: Guess) -> Iterator[str]:
    if made.shape == "messages":
        yield "\n[messages]    # as chat APIs have them, with tool calls and answers"
        if made.at:
            yield f"at = {quoted(made.at)}"
        if made.each:
            yield "each = true    # a record is one message"
        if made.reply:
            yield f"reply = {quoted(made.reply)}    # what came back"
        if made.briefing:
            yield f"told = {quoted(made.briefing)}    # what the agents were told: they alone see it"
        if made.growing:
            yield "growing = true    # records continue each other: the last one has the whole session"
        return
    if made.shape == "spans":
        yield "\n[spans]    # runs of models, tools and agents: what went in and came out"
        if made.at:
            yield f"at = {quoted(made.at)}"
        yield from _fields(seen, made.spans)
        words = seen.paths[str(made.spans["kind"])].values
        yield "[spans.kinds]    # model, tool, agent or other"
        yield from (f"{_key(word)} = {quoted(kind_of(word))}" for word in words)
        return
    yield "\n[event]"
    yield from _fields(seen, made.event)
    if made.shape == "text":
        yield "\n[turns]"
        yield f"at = {quoted(made.at or 'text')}"
        yield f"pattern = {_literal(made.patterns[0])}"
        yield 'first = "environment"    # whose the text before the first turn is'
    if made.shape == "pairs":
        yield '\n[turns]\nat = "turns"'
        yield "[turns.fields]    # role = what they said, in this order"
        for role, path in made.fields.items():
            yield f"{_key(role)} = {quoted(path) if isinstance(path, str) else _list(path)}"
    if made.statuses:
        yield from _table("statuses", made.statuses, "how it ended: succeeded, failed or unknown")
        if "*" not in made.statuses:
            yield '"*" = "unknown"    # whatever else it says; ingest names it'
    if made.failing:
        yield "\n[[results]]    # what went wrong is said; all else succeeded ([constants])"
        yield f"where = {{ {quoted(str(made.event['error']))} = '~\\S' }}\nstatus = \"failed\""
    if made.speech:
        yield f"\n[[kinds]]\nwhere = {{ {quoted(str(made.event['action']))} = {_list(made.speech)} }}"
        yield 'kind = "message"'
    if made.notes:
        path, values = made.notes
        yield "\n[[kinds]]    # nobody says anything in these"
        yield f"where = {{ {quoted(path)} = {_list(values)} }}"
        yield 'kind = "note"'
    if made.strip:
        yield "\n[names]\nstrip = '\\s*\\(.*\\)$'    # no part of a name"


def _fields(seen: Survey, fields: dict[str, str | list[str]]) -> Iterator[str]:
    for name, path in fields.items():
        if isinstance(path, str):
            yield f"{name} = {_path(seen, path)}"
        else:
            yield f"{name} = {_list(path)}    # the first that has a value"


def _roles(made: Guess) -> Iterator[str]:
    if made.bots:
        yield "\n[[roles]]    # who has this is a bot, whoever else is a person; add rules in front of these"
        mark = "true" if made.bots_are else '"*"'
        yield f'where = {{ {quoted(made.bots)} = {mark} }}\nkind = "agent"'
        names = several(made.event["role"])
        for path in names if made.bots_are else names[:-1]:
            yield f'[[roles]]\nwhere = {{ {quoted(path)} = "*" }}\nkind = "human"'
        return
    if made.observed:
        begin = quoted(f"~^{re.escape(made.observed)}")
        yield "\n[[roles]]    # what a scaffold says for the user after each command"
        role_at, text_at = speech_paths(made)
        people = [role for role in made.roles if role.kind == "human"]
        for role in people:
            where = f"{quoted(role_at)} = {quoted(role.name)}, {quoted(text_at)} = {begin}"
            yield f'where = {{ {where} }}\nkind = "environment"'
        for role in made.roles:
            if not role.shipped:
                where = f"{quoted(role_at)} = {quoted(role.name)}"
                yield f'[[roles]]\nwhere = {{ {where} }}\nkind = "{role.kind}"'
        return
    if made.came:
        yield "\n[[roles]]    # what came of an action is said by nobody, whoever's name it bears"
        yield f'where = {{ {quoted(made.came)} = "*" }}\nkind = "environment"\nactor = "environment"'
        yield from _each_role(made)
        return
    if made.calling:
        yield "\n# a call of a tool is the agent's who made it"
        yield from _each_role(made)
        return
    if made.shape == "messages" and made.renamed:
        yield "\n# names say otherwise than their roles"
        for who, kind in made.renamed.items():
            yield f'[[roles]]\nwhere = {{ name = {quoted(who)} }}\nkind = "{kind}"'
        return
    told = [role for role in made.roles if made.shape != "messages" or not role.shipped]
    if not told or made.turns_about:
        return
    unknown = sum(not role.known for role in told)
    many = f"{len(told)} role{'s' * (len(told) > 1)}, {unknown} unknown"
    yield f"\n[roles]    # {many}: human, agent or environment"
    for role in told:
        mark = "" if role.known else " ← nothing in the name says it"
        yield f"{_key(role.name)} = {quoted(role.kind)}    # {role.count} times{mark}"
    if len(made.roles) > MANY:
        yield '"*" = "agent"    # whoever else there is'


def _each_role(made: Guess) -> Iterator[str]:
    """A rule for each role; a call is made by the agent who says most."""
    agents = [one for one in made.roles if one.kind == "agent" and one.name not in made.calling]
    for role in made.roles:
        where = f"{quoted(several(made.event['role'])[0])} = {quoted(role.name)}"
        yield f'[[roles]]\nwhere = {{ {where} }}\nkind = "{role.kind}"'
        if agents and role.name in made.calling:
            yield f"actor = {quoted(max(agents, key=lambda one: one.count).name)}"


def _actions(made: Guess) -> Iterator[str]:
    if made.calls:
        yield "\n[[actions]]    # calls that are all of what an agent says"
        yield f"pattern = '{CALLS}'"
    if made.code:
        yield f"\n[[actions]]    # the fenced code is what was done\nname = {quoted(made.code)}"
        yield "pattern = '\\A(?P<command>[\\s\\S]+)\\Z'"
    if made.fence is None:
        return
    yield "\n[[actions]]    # fenced blocks in what the agent says"
    name = "bash" if made.fence in SHELLS else made.fence
    yield f"name = {quoted(name)}"
    yield f"pattern = '```{re.escape(made.fence)}[ \\t]*\\n(?P<command>[\\s\\S]*?)\\n[ \\t]*```'"


def _left(seen: Survey, made: Guess) -> Iterator[str]:
    """The paths that the draft leaves out."""
    used = made.used | {
        *made.native_id,
        *made.head.values(),
        *made.tags.values(),
        *made.outcomes.values(),
        *made.secrets,
        made.bots or "",
        made.came or "",
    }
    inside = (f"{made.at or ''}." if made.each else f"{made.at}[].") if made.shape == "messages" else "\0"
    below = tuple(
        f"{path}{sign}"
        for field in ("input", "output")
        for path in several(made.spans.get(field))
        for sign in (".", "[")
    )
    left = [
        one
        for one in seen.paths.values()
        if one.path not in used
        and not one.path.startswith((inside, *below))
        and not one.only("object", "list")
    ]
    if left:
        yield "\n# Not mapped:"
        for one in left[:SHOWN]:
            yield f"#   {_comment(one.path)}{_values(one)}"
