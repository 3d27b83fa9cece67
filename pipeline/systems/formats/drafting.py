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
        shape = {
            "messages": f"messages of a chat{f' at {self.made.at}' if self.made.at else ''}",
            "spans": f"runs of models and tools, {f'at {self.made.at}' if self.made.at else 'one a record'}",
            "list": f"turns in the list {self.made.at}",
            "pairs": "a question and its answer a record",
            "text": f"turns in the text {self.made.at}",
            "table": "one event a record",
            "nothing": "nothing that reads like turns",
        }[self.made.shape]
        if self.made.rounds:
            shape = "a round of a session a record"
        n = len(self.made.roles)
        roles = f", {n} role{'s' * (n != 1)}, {len(self.unknown)} unknown" if n else ""
        others = _unread_files(self.seen)
        rest = f"; {len(others)} other files are passed over" if others else ""
        return f"{_survey_size(self.seen)}: {shape}{roles}{rest}"


def draft(root: Path) -> Draft:
    """The draft for a file or a folder."""
    logs = survey(root)
    reading = guess(logs)
    return Draft("\n".join(_lines(logs, reading)) + "\n", logs, reading)


def paths_listed(logs: Survey) -> Iterator[str]:
    """A line a path: its kinds, how often it is there, and some of its values."""
    fields = sorted(logs.paths.values(), key=lambda field: (field.path.count("[]"), field.path))
    for field in fields[:SHOWN]:
        kinds = ", ".join(kind for kind, _ in field.kinds.most_common())
        yield f"  {field.path}  {kinds}  {field.count}{_values(field)}"
    if len(fields) > SHOWN:
        yield f"  … and {len(fields) - SHOWN} more paths"


def covered(draft: Draft, trajectories: Sequence[Trajectory]) -> str:
    """How much of the first trajectories the draft says something of."""
    if not trajectories:
        return f"{draft.found()}; no trajectory comes of the draft as it is"
    people = {(person.name, person.kind) for trajectory in trajectories for person in trajectory.participants}
    kinds = Counter(kind for _, kind in people)
    participants = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items(), reverse=True))
    events = sum(len(trajectory.events) for trajectory in trajectories)
    acts = sum(event.kind == "action" for trajectory in trajectories for event in trajectory.events)
    unknown = f"; unknown: {', '.join(quoted(name) for name in draft.unknown[:12])}" if draft.unknown else ""
    n = len(draft.made.roles)
    total = f"{n} role{'s' * (n != 1)}, {len(draft.unknown)} unknown" if n else "no roles"
    if draft.made.spans:
        total = "who speaks follows from what the runs are ([spans.kinds])"
    return f"{len(trajectories)} shown: {events} events, {acts} actions; participants: {participants}; {total}{unknown}"


def document(draft: Draft, trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    """The draft as `map --json` prints it."""
    logs, reading = draft.seen, draft.made
    return {
        "draft": draft.text,
        "shape": reading.shape,
        "format": logs.format,
        "files": len(logs.files),
        "records": len(logs.records),
        "paths": [
            {"path": one.path, "kinds": dict(one.kinds), "count": one.count, "values": dict(one.values)}
            for one in logs.paths.values()
        ],
        "roles": [{"role": role.name, "kind": role.kind, "known": role.known} for role in reading.roles],
        "unknown": draft.unknown,
        "unclear": list(unclear(logs, reading)),
        "trajectories": len(trajectories),
    }


_LINES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quoted(text: str) -> str:
    """A TOML basic string: what would end it or a line is escaped, and so is what no text may hold."""
    ends = {'"': '\\"', "\\": "\\\\"}
    return '"' + "".join(ends.get(c) or _LINES.get(c) or _escape(c) for c in text) + '"'


def _escape(character: str) -> str:
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
    return "".join(_LINES.get(c) or _escape(c) for c in text)


def _values(field: PathSeen) -> str:
    if not field.values:
        return ""
    examples = ", ".join(quoted(value[:30]) for value, _ in field.values.most_common(6))
    n = len(field.values)
    return f"  {n}{'+' if field.more else ''} value{'s' * (n > 1)}: {examples}"


def _survey_size(logs: Survey) -> str:
    files = f"{len(logs.files)} {logs.format} file{'s' * (len(logs.files) != 1)}"
    n = len(logs.records)
    return f"{files}, {n} record{'s' * (n != 1)} looked at"


def _lines(logs: Survey, reading: Guess) -> Iterator[str]:
    yield f"# Drafted by `coaudit map`: {_survey_size(logs)}. Change what is wrong, then"
    yield "#     coaudit ingest LOGS --map THIS_FILE --dry-run     (and without --dry-run)"
    yield "# Paths: user.name, events[].text. All keys: docs/formats.md."
    doubts = list(unclear(logs, reading))
    if doubts:
        yield "# Not understood:"
        yield from (f"# * {_comment(one)}" for one in doubts)
    if reading.shape == "nothing":
        yield "# Nothing here reads like turns; these are the paths:"
        yield from (f"# {_comment(line)}" for line in paths_listed(logs))
        return
    yield from _input(logs, reading)
    yield from _constants(logs, reading)
    yield from _head(logs, reading)
    yield from _table("tags", reading.tags, "kept with each trajectory; --by takes them")
    yield from _table("outcomes", reading.outcomes, "a number, true or false, or a text")
    for name, path in reading.outcomes.items():
        yield from _table(f"values.{_key(name)}", verdicts(logs.paths[path]), "word -> number")
    yield from _events(logs, reading)
    yield from _roles(reading)
    yield from _actions(reading)
    yield from _unmapped_paths(logs, reading)


def _input(logs: Survey, reading: Guess) -> Iterator[str]:
    yield "\n[input]"
    yield f"format = {quoted(logs.format or 'jsonl')}"
    if logs.encoding:
        yield f"encoding = {quoted(logs.encoding)}    # for it is not UTF-8"
    if logs.root.is_dir():
        others = [path.name for path in _unread_files(logs)]
        examples = ", ".join(_comment(name) for name in sorted(set(others))[:5])
        summary = f"{len(others)} files{f' ({examples})' if examples else ''}"
        odd = sorted(set(logs.odd))
        names = [*patterns(logs.files), *(f"!{name}" for name in odd)]
        yield f"files = {_list(names) if len(names) > 1 else quoted(names[0])}    # passed over: {summary}"
    if logs.numbered:
        yield f"numbered = {quoted(logs.numbered)}    # turns under numbered names are a list of this name"
    if logs.sides:
        yield f"sides = {_list(logs.sides)}    # a record is as many sessions; `side` says which"
    if isinstance(logs.sessions, list):
        yield f"sessions = {_list(logs.sessions)}    # the records; `key` says of which of these one is"
    elif logs.sessions:
        yield f"sessions = {quoted(logs.sessions)}    # the records, within the file's object"
    if reading.rounds:
        rounds = ", ".join(f"{_key(role)} = {quoted(str(path))}" for role, path in reading.fields.items())
        yield f"rounds = {{ {rounds} }}    # a record has what each said, in this order: `said` is one of it"


def _unread_files(logs: Survey) -> list[Path]:
    """The files that the draft does not read."""
    names = patterns(logs.files)
    return [p for p in logs.others if p.name in logs.odd or not fits_name(p.name, names)]


def _constants(logs: Survey, reading: Guess) -> Iterator[str]:
    name = re.sub(r"[^a-z0-9]+", "_", logs.root.resolve().name.lower().partition(".")[0]).strip("_")
    yield "\n[constants]"
    yield f"system = {quoted(name or 'mapped')}"
    yield '# setting = "real"           # or simulated, where models play the humans'
    if reading.turns_about:
        yield 'role = ["user", "assistant"]    # no field says who speaks: in turn'
    if reading.constant_role:
        yield f"role = {quoted(reading.constant_role)}    # no field says who acts"
    if reading.shape in ("list", "table", "text") and _has_environment(reading) and _acts(reading):
        yield 'results = "next"    # what the environment says after an action is its result'
    if len(reading.time_formats) == 1:
        yield f"time_format = {quoted(reading.time_formats[0])}    # how times are written (strptime)"
    off = "" if reading.failing else "# "
    yield f'{off}status = "succeeded"       # of a result of which nothing says whether it failed'


def _acts(reading: Guess) -> bool:
    return (
        reading.fence is not None
        or reading.code is not None
        or "action" in reading.event
        or "command" in reading.event
    )


def _has_environment(reading: Guess) -> bool:
    return any(role.kind != "agent" for role in reading.roles)


def _head(logs: Survey, reading: Guess) -> Iterator[str]:
    yield "\n[trajectory]"
    if len(reading.native_id) == 1:
        yield f"native_id = {_path(logs, reading.native_id[0])}"
    elif reading.native_id:
        yield f"native_id = {_list(reading.native_id)}    # together they tell the records apart"
    elif not logs.per_file:
        items = "sessions" if of_rows(logs, reading) is None else "rows"
        explanation = (
            "the whole file is one session"
            if reading.shape == "table" or reading.each
            else "sessions are named by file and number"
        )
        yield f"# native_id = …    # no field tells {items} apart; {explanation}"
    for name, path in reading.head.items():
        yield f"{name} = {_path(logs, path)}"
    for path in reading.secrets:
        yield f"# hidden = {quoted(path)}    # kept from judges and annotators"


def _path(logs: Survey, path: str) -> str:
    field = logs.paths.get(path)
    if field is None or not field.values:
        return quoted(path)
    n = len(field.values)
    summary = f"{n}{'+' if field.more else ''} value{'s' * (n > 1)}, such as {quoted(next(iter(field.values))[:40])}"
    return f"{quoted(path)}    # {summary}"


def _list(items: Iterable[str]) -> str:
    return f"[{', '.join(quoted(item) for item in items)}]"


def _table(name: str, entries: Mapping[str, str | int], comment: str) -> Iterator[str]:
    if entries:
        yield f"\n[{name}]    # {comment}"
        for key, value in entries.items():
            yield f"{_key(key)} = {quoted(value) if isinstance(value, str) else value}"


def _events(logs: Survey, reading: Guess) -> Iterator[str]:
    if reading.shape == "messages":
        yield "\n[messages]    # as chat APIs have them, with tool calls and answers"
        if reading.at:
            yield f"at = {quoted(reading.at)}"
        if reading.each:
            yield "each = true    # a record is one message"
        if reading.reply:
            yield f"reply = {quoted(reading.reply)}    # what came back"
        if reading.growing:
            yield "growing = true    # records continue each other: the last one has the whole session"
        return
    if reading.shape == "spans":
        yield "\n[spans]    # runs of models, tools and agents: what went in and came out"
        if reading.at:
            yield f"at = {quoted(reading.at)}"
        yield from _fields(logs, reading.spans)
        words = logs.paths[str(reading.spans["kind"])].values
        yield "[spans.kinds]    # model, tool, agent or other"
        yield from (f"{_key(word)} = {quoted(kind_of(word))}" for word in words)
        return
    yield "\n[event]"
    yield from _fields(logs, reading.event)
    if reading.shape == "text":
        yield "\n[turns]"
        yield f"at = {quoted(reading.at or 'text')}"
        yield f"pattern = {_literal(reading.patterns[0])}"
        yield 'first = "environment"    # whose the text before the first turn is'
    if reading.shape == "pairs":
        yield '\n[turns]\nat = "turns"'
        yield "[turns.fields]    # role = what they said, in this order"
        for role, path in reading.fields.items():
            yield f"{_key(role)} = {quoted(path) if isinstance(path, str) else _list(path)}"
    if reading.statuses:
        yield from _table("statuses", reading.statuses, "how it ended: succeeded, failed or unknown")
        if "*" not in reading.statuses:
            yield '"*" = "unknown"    # whatever else it says; ingest names it'
    if reading.failing:
        yield "\n[[results]]    # what went wrong is said; all else succeeded ([constants])"
        yield f"where = {{ {quoted(str(reading.event['error']))} = '~\\S' }}\nstatus = \"failed\""
    if reading.speech:
        yield f"\n[[kinds]]\nwhere = {{ {quoted(str(reading.event['action']))} = {_list(reading.speech)} }}"
        yield 'kind = "message"'
    if reading.notes:
        path, values = reading.notes
        yield "\n[[kinds]]    # nobody says anything in these"
        yield f"where = {{ {quoted(path)} = {_list(values)} }}"
        yield 'kind = "note"'
    if reading.strip:
        yield "\n[names]\nstrip = '\\s*\\(.*\\)$'    # no part of a name"


def _fields(logs: Survey, fields: dict[str, str | list[str]]) -> Iterator[str]:
    for name, path in fields.items():
        if isinstance(path, str):
            yield f"{name} = {_path(logs, path)}"
        else:
            yield f"{name} = {_list(path)}    # the first that has a value"


def _roles(reading: Guess) -> Iterator[str]:
    if reading.bots:
        yield "\n[[roles]]    # who has this is a bot, whoever else is a person; add rules in front of these"
        mark = "true" if reading.bots_are else '"*"'
        yield f'where = {{ {quoted(reading.bots)} = {mark} }}\nkind = "agent"'
        names = several(reading.event["role"])
        for path in names if reading.bots_are else names[:-1]:
            yield f'[[roles]]\nwhere = {{ {quoted(path)} = "*" }}\nkind = "human"'
        return
    if reading.observed:
        prefix = quoted(f"~^{re.escape(reading.observed)}")
        yield "\n[[roles]]    # what a scaffold says for the user after each command"
        role_at, text_at = speech_paths(reading)
        people = [role for role in reading.roles if role.kind == "human"]
        for role in people:
            where = f"{quoted(role_at)} = {quoted(role.name)}, {quoted(text_at)} = {prefix}"
            yield f'where = {{ {where} }}\nkind = "environment"'
        for role in reading.roles:
            if not role.shipped:
                where = f"{quoted(role_at)} = {quoted(role.name)}"
                yield f'[[roles]]\nwhere = {{ {where} }}\nkind = "{role.kind}"'
        return
    if reading.came:
        yield "\n[[roles]]    # what came of an action is said by nobody, whoever's name it bears"
        yield f'where = {{ {quoted(reading.came)} = "*" }}\nkind = "environment"\nactor = "environment"'
        yield from _each_role(reading)
        return
    if reading.calling:
        yield "\n# a call of a tool is the agent's who made it"
        yield from _each_role(reading)
        return
    if reading.shape == "messages" and reading.renamed:
        yield "\n# names say otherwise than their roles"
        for name, kind in reading.renamed.items():
            yield f'[[roles]]\nwhere = {{ name = {quoted(name)} }}\nkind = "{kind}"'
        return
    roles = [role for role in reading.roles if reading.shape != "messages" or not role.shipped]
    if not roles or reading.turns_about:
        return
    unknown = sum(not role.known for role in roles)
    summary = f"{len(roles)} role{'s' * (len(roles) > 1)}, {unknown} unknown"
    yield f"\n[roles]    # {summary}: human, agent or environment"
    for role in roles:
        mark = "" if role.known else " ← nothing in the name says it"
        yield f"{_key(role.name)} = {quoted(role.kind)}    # {role.count} times{mark}"
    if len(reading.roles) > MANY:
        yield '"*" = "agent"    # whoever else there is'


def _each_role(reading: Guess) -> Iterator[str]:
    """A rule for each role; a call is made by the agent who says most."""
    agents = [one for one in reading.roles if one.kind == "agent" and one.name not in reading.calling]
    for role in reading.roles:
        where = f"{quoted(several(reading.event['role'])[0])} = {quoted(role.name)}"
        yield f'[[roles]]\nwhere = {{ {where} }}\nkind = "{role.kind}"'
        if agents and role.name in reading.calling:
            yield f"actor = {quoted(max(agents, key=lambda one: one.count).name)}"


def _actions(reading: Guess) -> Iterator[str]:
    if reading.calls:
        yield "\n[[actions]]    # calls that are all of what an agent says"
        yield f"pattern = '{CALLS}'"
    if reading.code:
        yield f"\n[[actions]]    # the fenced code is what was done\nname = {quoted(reading.code)}"
        yield "pattern = '\\A(?P<command>[\\s\\S]+)\\Z'"
    if reading.fence is None:
        return
    yield "\n[[actions]]    # fenced blocks in what the agent says"
    name = "bash" if reading.fence in SHELLS else reading.fence
    yield f"name = {quoted(name)}"
    yield f"pattern = '```{re.escape(reading.fence)}[ \\t]*\\n(?P<command>[\\s\\S]*?)\\n[ \\t]*```'"


def _unmapped_paths(logs: Survey, reading: Guess) -> Iterator[str]:
    """The paths that the draft leaves out."""
    mapped_paths = reading.used | {
        *reading.native_id,
        *reading.head.values(),
        *reading.tags.values(),
        *reading.outcomes.values(),
        *reading.secrets,
        reading.bots or "",
        reading.came or "",
    }
    inside = (
        (f"{reading.at or ''}." if reading.each else f"{reading.at}[].")
        if reading.shape == "messages"
        else "\0"
    )
    below = tuple(
        f"{path}{sign}"
        for field in ("input", "output")
        for path in several(reading.spans.get(field))
        for sign in (".", "[")
    )
    rest = [
        one
        for one in logs.paths.values()
        if one.path not in mapped_paths
        and not one.path.startswith((inside, *below))
        and not one.only("object", "list")
    ]
    if rest:
        yield "\n# Not mapped:"
        for one in rest[:SHOWN]:
            yield f"#   {_comment(one.path)}{_values(one)}"
