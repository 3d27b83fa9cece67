"""Drafts a mapping of logs from what was guessed of them: TOML with comments, to be used as it is and
corrected."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .....schemas import Trajectory
from .....schemas.text import INVISIBLE, count_of, is_utf8
from ..fields.mapping import ROLES
from ..fields.paths import as_list
from ..files.inputs import fits_name
from .acts import speech_paths
from .guess import guess_mapping, lists_within_lists
from .names import verdicts
from .result import Guess
from .span_fields import kind_at
from .survey import PathSummary, Survey, patterns, survey_logs
from .text import LAST_FENCE
from .unclear import open_questions, session_of_rows

SHOWN = 60
"""The most paths that are listed."""
SHOWN_SCORES = 6
"""The most names of scores that are listed."""
MANY = 4
"""Where there are more names of roles than that, others may come that were not seen."""
SHELLS = ("", "bash", "sh", "shell", "console", "zsh", "powershell", "mswea_bash_command")


@dataclass(frozen=True)
class Draft:
    """A mapping's text, with the survey and the guess that it was drafted from."""

    text: str
    survey: Survey
    guess: Guess

    @property
    def unknown_roles(self) -> list[str]:
        """Roles whose names do not say what they are."""
        return [role.name for role in self.guess.roles if not role.is_known]

    def summary(self) -> str:
        """What was recognised, in a sentence."""
        at = self.guess.at
        shape = {
            "messages": f"messages of a chat{f' at {at}' if at else ''}",
            "spans": f"runs of models and tools, {f'at {at}' if at else 'one a record'}",
            "list": f"turns in the list {at}",
            "pairs": "a question and its answer a record",
            "text": f"turns in the text {at}",
            "table": "one event a record",
            "nothing": "nothing that reads like turns",
        }[self.guess.shape]
        if self.guess.has_rounds:
            shape = "a round of a session a record"
        n = len(self.guess.roles)
        roles = f", {n} role{'s' * (n != 1)}, {len(self.unknown_roles)} unknown" if n else ""
        others = _unread_files(self.survey)
        rest = f"; {len(others)} other files are passed over" if others else ""
        return f"{_survey_size(self.survey)}: {shape}{roles}{rest}"


def draft(root: Path) -> Draft:
    """The draft for a file or a folder."""
    survey = survey_logs(root)
    guess = guess_mapping(survey)
    if guess.shape == "nothing" and (sessions := lists_within_lists(survey)):
        inner = survey_logs(root, sessions)
        other = guess_mapping(inner)
        survey, guess = (survey, guess) if other.shape == "nothing" else (inner, other)
    return Draft("\n".join(_lines(survey, guess)) + "\n", survey, guess)


def path_lines(survey: Survey) -> Iterator[str]:
    """A line a path: its kinds, how often it is there, and some of its values."""
    fields = sorted(survey.paths.values(), key=lambda field: (field.path.count("[]"), field.path))
    for field in fields[:SHOWN]:
        kinds = ", ".join(kind for kind, _ in field.kinds.most_common())
        yield f"  {field.path}  {kinds}  {field.count}{_values(field)}"
    if len(fields) > SHOWN:
        yield f"  … and {len(fields) - SHOWN} more paths"


def coverage(draft: Draft, trajectories: Sequence[Trajectory]) -> str:
    """What comes of the draft for the first trajectories: events, actions, participants and unknown roles."""
    if not trajectories:
        return f"{draft.summary()}; the draft as it is yields no trajectory"
    people = {(person.name, person.kind) for trajectory in trajectories for person in trajectory.participants}
    kinds = Counter(kind for _, kind in people)
    participants = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items(), reverse=True))
    events = sum(len(trajectory.events) for trajectory in trajectories)
    acts = sum(event.kind == "action" for trajectory in trajectories for event in trajectory.events)
    unknown = (
        f"; unknown: {', '.join(toml_string(name) for name in draft.unknown_roles[:12])}"
        if draft.unknown_roles
        else ""
    )
    n = len(draft.guess.roles)
    total = f"{n} role{'s' * (n != 1)}, {len(draft.unknown_roles)} unknown" if n else "no roles"
    if draft.guess.spans:
        total = "who speaks follows from what the runs are ([spans.kinds])"
    counts = (
        f"{len(trajectories)} shown: {count_of(events, 'event', 'events')}, "
        f"{count_of(acts, 'action', 'actions')}"
    )
    return f"{counts}; participants: {participants}; {total}{unknown}"


def document(draft: Draft, trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    """The draft as `map --json` prints it."""
    survey, guess = draft.survey, draft.guess
    return {
        "draft": draft.text,
        "shape": guess.shape,
        "format": survey.format,
        "files": len(survey.files),
        "records": len(survey.records),
        "paths": [
            {"path": one.path, "kinds": dict(one.kinds), "count": one.count, "values": dict(one.values)}
            for one in survey.paths.values()
        ],
        "roles": [{"role": role.name, "kind": role.kind, "known": role.is_known} for role in guess.roles],
        "unknown": draft.unknown_roles,
        "unclear": list(open_questions(survey, guess)),
        "trajectories": len(trajectories),
    }


_HIDDEN = re.compile(f"[{INVISIBLE}\ufeff]")
_LINES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def toml_string(text: str) -> str:
    """A TOML basic string: quotes, backslashes, line breaks and invisible characters are escaped; a
    surrogate, which no text may hold, is replaced."""
    ends = {'"': '\\"', "\\": "\\\\"}
    return '"' + "".join(ends.get(c) or _LINES.get(c) or _escape(c) for c in text) + '"'


def _escape(character: str) -> str:
    if not is_utf8(character):
        return "�"
    if not _HIDDEN.fullmatch(character):
        return character
    code = ord(character)
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else toml_string(text)


def _literal(text: str) -> str:
    """A regular expression as a TOML literal string; a basic one where it has quotes or control
    characters."""
    return toml_string(text) if "'" in text or _comment(text) != text else f"'{text}'"


def _comment(text: str) -> str:
    """Text for one line of a comment: escaped like a string, but for quotes and backslashes."""
    return "".join(_LINES.get(c) or _escape(c) for c in text)


def _values(field: PathSummary) -> str:
    if not field.values:
        return ""
    examples = ", ".join(toml_string(value[:30]) for value, _ in field.values.most_common(6))
    n = len(field.values)
    return f"  {n}{'+' if field.has_more_values else ''} value{'s' * (n > 1)}: {examples}"


def _survey_size(survey: Survey) -> str:
    files = f"{len(survey.files)} {survey.format} file{'s' * (len(survey.files) != 1)}"
    n = len(survey.records)
    return f"{files}, {n} record{'s' * (n != 1)} looked at"


def _lines(survey: Survey, guess: Guess) -> Iterator[str]:
    yield f"# Drafted by `coaudit map`: {_survey_size(survey)}. Change what is wrong, then"
    yield "#     coaudit ingest LOGS --map THIS_FILE --dry-run     (and without --dry-run)"
    yield "# Paths: user.name, events[].text. All keys: docs/formats.md."
    doubts = list(open_questions(survey, guess))
    if doubts:
        yield "# Not understood:"
        yield from (f"# * {_comment(one)}" for one in doubts)
    if guess.shape == "nothing":
        yield "# Nothing here reads like turns; these are the paths:"
        yield from (f"# {_comment(line)}" for line in path_lines(survey))
        return
    yield from _input(survey, guess)
    yield from _constants(survey, guess)
    yield from _head(survey, guess)
    yield from _table("tags", guess.tags, "kept with each trajectory; --by takes them")
    yield from _table("outcomes", guess.outcomes, "a number, true or false, or a text")
    for name, path in guess.outcomes.items():
        yield from _table(f"values.{_key(name)}", verdicts(survey.paths[path]), "word -> number")
    yield from _scores(guess)
    yield from _events(survey, guess)
    yield from _roles(guess)
    yield from _actions(guess)
    yield from _unmapped_paths(survey, guess)


def _input(survey: Survey, guess: Guess) -> Iterator[str]:
    yield "\n[input]"
    yield f"format = {toml_string(survey.format or 'jsonl')}"
    if survey.encoding:
        yield f"encoding = {toml_string(survey.encoding)}    # for it is not UTF-8"
    if survey.root.is_dir():
        others = [path.name for path in _unread_files(survey)]
        examples = ", ".join(_comment(name) for name in sorted(set(others))[:5])
        summary = f"{count_of(len(others), 'file', 'files')}{f' ({examples})' if examples else ''}"
        odd = sorted(set(survey.odd))
        names = [*patterns(survey.files), *(f"!{name}" for name in odd)]
        files = _list(names) if len(names) > 1 else toml_string(names[0])
        yield f"files = {files}    # passed over: {summary}"
    if survey.numbered:
        numbered = toml_string(survey.numbered)
        yield f"numbered = {numbered}    # turns under numbered names are a list of this name"
    if survey.sides:
        yield f"sides = {_list(survey.sides)}    # a record is as many sessions; `side` says which"
    if isinstance(survey.sessions, list):
        yield f"sessions = {_list(survey.sessions)}    # the records; `key` says of which of these one is"
    elif survey.sessions:
        yield f"sessions = {toml_string(survey.sessions)}    # the records, within the file's object"
    if guess.has_rounds:
        rounds = ", ".join(f"{_key(role)} = {toml_string(str(path))}" for role, path in guess.fields.items())
        yield f"rounds = {{ {rounds} }}    # a record has what each said, in this order: `said` is one of it"
    if guess.record_id:
        yield f"id = {toml_string(guess.record_id)}    # of records with one id and question the last counts"


def _scores(guess: Guess) -> Iterator[str]:
    scores = guess.scores
    if scores is None:
        return
    yield f"\n[scores]    # each an outcome: {', '.join(map(_comment, scores.names[:SHOWN_SCORES]))}"
    yield f"at = {toml_string(scores.at)}"
    yield f"name = {toml_string(scores.name)}"
    yield f"value = {_list(scores.values)}"
    if scores.of_part:
        yield f'skip = {{ {_key(scores.of_part)} = "*" }}    # scores of a part of the session'


def _unread_files(survey: Survey) -> list[Path]:
    """The files that the draft does not read."""
    names = patterns(survey.files)
    return [p for p in survey.others if p.name in survey.odd or not fits_name(p.name, names)]


def _constants(survey: Survey, guess: Guess) -> Iterator[str]:
    name = re.sub(r"[^a-z0-9]+", "_", survey.root.resolve().name.lower().partition(".")[0]).strip("_")
    yield "\n[constants]"
    yield f"system = {toml_string(name or 'mapped')}"
    yield '# setting = "real"           # or simulated, where models play the humans'
    if guess.is_alternating:
        yield 'role = ["user", "assistant"]    # no field says who speaks: in turn'
    if guess.constant_role:
        yield f"role = {toml_string(guess.constant_role)}    # no field says who acts"
    if guess.shape in ("list", "table", "text") and _has_environment(guess) and _has_actions(guess):
        yield 'results = "next"    # what the environment says after an action is its result'
    if len(guess.time_formats) == 1:
        yield f"time_format = {toml_string(guess.time_formats[0])}    # how times are written (strptime)"
    off = "" if guess.error_is_failure else "# "
    yield f'{off}status = "succeeded"       # of a result of which nothing says whether it failed'


def _has_actions(guess: Guess) -> bool:
    return (
        guess.fence is not None
        or bool(guess.call_patterns)
        or guess.code is not None
        or "action" in guess.event
        or "command" in guess.event
    )


def _has_environment(guess: Guess) -> bool:
    return any(role.kind != "agent" for role in guess.roles)


def _head(survey: Survey, guess: Guess) -> Iterator[str]:
    yield "\n[trajectory]"
    if len(guess.native_id) == 1:
        yield f"native_id = {_path(survey, guess.native_id[0])}"
    elif guess.native_id:
        yield f"native_id = {_list(guess.native_id)}    # together they tell the records apart"
    elif not survey.per_file:
        items = "sessions" if session_of_rows(survey, guess) is None else "rows"
        explanation = (
            "the whole file is one session"
            if guess.shape == "table" or guess.each
            else "sessions are named by file and number"
        )
        yield f"# native_id = …    # no field tells {items} apart; {explanation}"
    for name, path in guess.head.items():
        yield f"{name} = {_path(survey, path)}"
    for path in guess.secrets:
        yield f"# hidden = {toml_string(path)}    # kept from judges and annotators"


def _path(survey: Survey, path: str) -> str:
    field = survey.paths.get(path)
    if field is None or not field.values:
        return toml_string(path)
    n = len(field.values)
    example = toml_string(next(iter(field.values))[:40])
    summary = f"{n}{'+' if field.has_more_values else ''} value{'s' * (n > 1)}, such as {example}"
    return f"{toml_string(path)}    # {summary}"


def _list(items: Iterable[str]) -> str:
    return f"[{', '.join(toml_string(item) for item in items)}]"


def _table(name: str, entries: Mapping[str, str | int], comment: str) -> Iterator[str]:
    if entries:
        yield f"\n[{name}]    # {comment}"
        for key, value in entries.items():
            yield f"{_key(key)} = {toml_string(value) if isinstance(value, str) else value}"


def _events(survey: Survey, guess: Guess) -> Iterator[str]:
    """The table that says what an event is."""
    if guess.shape == "messages":
        return _messages(survey, guess)
    return _spans(survey, guess) if guess.shape == "spans" else _event_fields(survey, guess)


def _messages(survey: Survey, guess: Guess) -> Iterator[str]:
    yield "\n[messages]    # as chat APIs have them, with tool calls and answers"
    if guess.at:
        yield f"at = {toml_string(guess.at)}"
    if guess.each:
        yield "each = true    # a record is one message"
    if back := [path for path in (guess.artifacts, guess.reply) if path]:
        yield f"reply = {toml_string(back[0]) if len(back) == 1 else _list(back)}    # what came back"
    if guess.briefing:
        yield f"told = {toml_string(guess.briefing)}    # what the agents were told: they alone see it"
    if guess.joined:
        yield "joined = true    # records of one native_id are turns of a session"
    if guess.turn_time:
        yield f"time = {_path(survey, guess.turn_time)}"
    if guess.growing:
        yield "growing = true    # records continue each other: the last one has the whole session"


def _spans(survey: Survey, guess: Guess) -> Iterator[str]:
    yield "\n[spans]    # runs of models, tools and agents, with input and output"
    if guess.at:
        yield f"at = {toml_string(guess.at)}"
    if guess.joined:
        yield "joined = true    # records of one native_id are a session"
    yield from _fields(survey, guess.spans)
    kind = str(guess.spans["kind"])
    yield "[spans.kinds]    # model, tool, agent or other"
    yield from (f"{_key(word)} = {toml_string(kind_at(kind, word))}" for word in survey.paths[kind].values)


def _event_fields(survey: Survey, guess: Guess) -> Iterator[str]:
    yield "\n[event]"
    yield from _fields(survey, guess.event)
    if guess.shape == "text":
        yield "\n[turns]"
        yield f"at = {toml_string(guess.at or 'text')}"
        yield f"pattern = {_literal(guess.patterns[0])}"
        yield 'first = "environment"    # whose the text before the first turn is'
    if guess.shape == "pairs":
        yield '\n[turns]\nat = "turns"'
        yield "[turns.fields]    # role = what they said, in this order"
        for role, path in guess.fields.items():
            yield f"{_key(role)} = {toml_string(path) if isinstance(path, str) else _list(path)}"
    if guess.statuses:
        yield from _table("statuses", guess.statuses, "how it ended: succeeded, failed or unknown")
        if "*" not in guess.statuses:
            yield '"*" = "unknown"    # whatever else it says; ingest names it'
    if guess.error_is_failure:
        yield "\n[[results]]    # failures are marked; everything else succeeded ([constants])"
        yield f"where = {{ {toml_string(str(guess.event['error']))} = '~\\S' }}\nstatus = \"failed\""
    if guess.speech:
        yield f"\n[[kinds]]\nwhere = {{ {toml_string(str(guess.event['action']))} = {_list(guess.speech)} }}"
        yield 'kind = "message"'
    if guess.notes:
        path, values = guess.notes
        yield "\n[[kinds]]    # nobody speaks in these"
        yield f"where = {{ {toml_string(path)} = {_list(values)} }}"
        yield 'kind = "note"'
    if guess.strip_names:
        yield "\n[names]\nstrip = '\\s*\\(.*\\)$'    # removed from names"


def _fields(survey: Survey, fields: dict[str, str | list[str]]) -> Iterator[str]:
    for name, path in fields.items():
        if isinstance(path, str):
            yield f"{name} = {_path(survey, path)}"
        else:
            yield f"{name} = {_list(path)}    # the first that has a value"


def _roles(guess: Guess) -> Iterator[str]:
    """Who speaks: by rules where a role alone does not say it, else a table of the roles."""
    if guess.bot_path:
        return _bot_rules(guess)
    if guess.kinds_from_paths:
        return _path_rules(guess.kinds_from_paths)
    if guess.observation_prefix:
        return _observation_rules(guess, guess.observation_prefix)
    if guess.result_label:
        return _result_rules(guess, guess.result_label)
    if guess.call_roles:
        return itertools.chain(["\n# a tool call belongs to the agent that made it"], _role_rules(guess))
    if guess.shape == "messages" and (guess.preset or guess.kinds_from_names):
        return _message_rules(guess)
    return _role_table(guess)


def _bot_rules(guess: Guess) -> Iterator[str]:
    yield "\n[[roles]]    # whoever has this is a bot, everybody else a person; add rules before these"
    mark = guess.bot_flag or '"*"'
    yield f'where = {{ {toml_string(str(guess.bot_path))} = {mark} }}\nkind = "agent"'
    names = as_list(guess.event["role"])
    around = [role for role in guess.roles if ROLES.get(role.name.lower()) == "environment"]
    for path, role in itertools.product(names, around if guess.bot_flag else ()):
        where = f"{toml_string(path)} = {toml_string(role.name)}"
        yield f'[[roles]]\nwhere = {{ {where} }}\nkind = "environment"'
    for path in names if guess.bot_flag else names[:-1]:
        yield f'[[roles]]\nwhere = {{ {toml_string(path)} = "*" }}\nkind = "human"'


def _path_rules(kinds: Mapping[str, str]) -> Iterator[str]:
    yield "\n# where the name stands says who it is"
    for path, kind in kinds.items():
        yield f'[[roles]]\nwhere = {{ {toml_string(path)} = "*" }}\nkind = "{kind}"'


def _observation_rules(guess: Guess, beginning: str) -> Iterator[str]:
    prefix = toml_string(f"~^{re.escape(beginning)}")
    yield "\n[[roles]]    # what a scaffold writes as the user after each command"
    role_at, text_at = speech_paths(guess)
    people = [role for role in guess.roles if role.kind == "human"]
    for role in people:
        where = f"{toml_string(role_at)} = {toml_string(role.name)}, {toml_string(text_at)} = {prefix}"
        yield f'where = {{ {where} }}\nkind = "environment"'
    for role in guess.roles:
        if not role.is_builtin:
            where = f"{toml_string(role_at)} = {toml_string(role.name)}"
            yield f'[[roles]]\nwhere = {{ {where} }}\nkind = "{role.kind}"'


def _result_rules(guess: Guess, label: str) -> Iterator[str]:
    yield "\n[[roles]]    # results of actions are said by nobody, whatever name they have"
    where = f'{toml_string(label)} = "*"'
    yield f'where = {{ {where} }}\nkind = "environment"\nactor = "environment"'
    yield from _role_rules(guess)


def _message_rules(guess: Guess) -> Iterator[str]:
    if guess.preset:
        yield "\n[[roles]]    # what a person set once for all talks, and did not say in this one"
        yield f'where = {{ role = "user", content = {_literal(f"~^{re.escape(guess.preset)}")} }}'
        yield 'kind = "environment"'
    if guess.kinds_from_names:
        yield "\n# these names contradict their roles"
        for name, kind in guess.kinds_from_names.items():
            yield f'[[roles]]\nwhere = {{ name = {toml_string(name)} }}\nkind = "{kind}"'
    if guess.preset:
        for role in guess.roles:
            if not role.is_builtin:
                yield f'[[roles]]\nwhere = {{ role = {toml_string(role.name)} }}\nkind = "{role.kind}"'


def _role_table(guess: Guess) -> Iterator[str]:
    roles = [role for role in guess.roles if guess.shape != "messages" or not role.is_builtin]
    if guess.crowd_words:
        yield from _crowd_rules(guess)
        return
    if guess.crowd:
        yield "\n[roles]    # human, agent or environment"
        yield from (f"{_key(role.name)} = {toml_string(role.kind)}" for role in roles)
        yield f'"*" = "{guess.crowd_kind}"    # whoever else there is'
        return
    if not roles or guess.is_alternating:
        return
    unknown = sum(not role.is_known for role in roles)
    summary = f"{len(roles)} role{'s' * (len(roles) > 1)}, {unknown} unknown"
    yield f"\n[roles]    # {summary}: human, agent or environment"
    for role in roles:
        mark = "" if role.is_known else " ← nothing in the name says it"
        yield (
            f"{_key(role.name)} = {toml_string(role.kind)}    # "
            f"{'once' if role.count == 1 else f'{role.count} times'}{mark}"
        )
    if len(guess.roles) > MANY:
        yield '"*" = "agent"    # whoever else there is'


def _crowd_rules(guess: Guess) -> Iterator[str]:
    """A rule for each name, and each word of names, of another kind than the crowd's, and one for it."""
    names = [(role.name, role.kind) for role in guess.roles]
    words = [(rf"~(?<![^\W\d_]){word}(?![^\W\d_])", kind) for word, kind in guess.crowd_words.items()]
    yield "\n# the first that fits decides"
    for text, kind in (*names, *words, ("*", guess.crowd_kind)):
        yield f'[[roles]]\nwhere = {{ {toml_string(str(guess.crowd))} = {_literal(text)} }}\nkind = "{kind}"'


def _role_rules(guess: Guess) -> Iterator[str]:
    """A rule for each role; calls are put down to the agent who speaks most."""
    agents = [one for one in guess.roles if one.kind == "agent" and one.name not in guess.call_roles]
    for role in guess.roles:
        where = f"{toml_string(as_list(guess.event['role'])[0])} = {toml_string(role.name)}"
        yield f'[[roles]]\nwhere = {{ {where} }}\nkind = "{role.kind}"'
        if agents and role.name in guess.call_roles:
            yield f"actor = {toml_string(max(agents, key=lambda one: one.count).name)}"


def _actions(guess: Guess) -> Iterator[str]:
    for pattern in guess.call_patterns:
        yield "\n[[actions]]    # calls in what the agent says"
        literal = toml_string(pattern) if "'" in pattern else f"'{pattern}'"
        yield f"pattern = {literal}"
    if guess.code:
        yield f"\n[[actions]]    # the fenced code is what was done\nname = {toml_string(guess.code)}"
        yield "pattern = '\\A(?P<command>[\\s\\S]+)\\Z'"
    if guess.fence is None:
        return
    yield "\n[[actions]]    # fenced blocks in what the agent says"
    name = "bash" if guess.fence in SHELLS else guess.fence
    yield f"name = {toml_string(name)}"
    if not guess.fence:
        yield f"pattern = {toml_string(LAST_FENCE)}"
        return
    yield f"pattern = '```{re.escape(guess.fence)}[ \\t]*\\n(?P<command>[\\s\\S]*?)\\n[ \\t]*```'"


def _unmapped_paths(survey: Survey, guess: Guess) -> Iterator[str]:
    """Comments with the paths that the draft leaves out."""
    mapped_paths = guess.mapped_paths | {
        *guess.native_id,
        *guess.head.values(),
        *guess.tags.values(),
        *guess.outcomes.values(),
        *guess.secrets,
        guess.bot_path or "",
        guess.result_label or "",
    }
    inside = (f"{guess.at or ''}." if guess.each else f"{guess.at}[].") if guess.shape == "messages" else "\0"
    below = tuple(
        f"{path}{sign}"
        for field in ("input", "output")
        for path in as_list(guess.spans.get(field))
        for sign in (".", "[")
    )
    scores = f"{guess.scores.at}[]." if guess.scores else inside
    rest = [
        one
        for one in survey.paths.values()
        if one.path not in mapped_paths
        and not one.path.startswith((inside, scores, *below))
        and not one.has_only("object", "list")
    ]
    if rest:
        yield "\n# Not mapped:"
        for one in rest[:SHOWN]:
            yield f"#   {_comment(one.path)}{_values(one)}"
