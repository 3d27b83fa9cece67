"""Records of MAST: `mas_name`, `benchmark_name`, `trace_id` and `trace`, a text or an object around one.

A trace is what its framework printed: JSON with a list of messages (AG2), or a log in which each framework
marks turns in its own way. One in which no marks are known is a single message of the team.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ....schemas import Event, JsonValue, Participant, Quarantined, Trajectory, content_hash
from ....schemas.trajectory import ParticipantKind
from ..base import ReadOptions, expect, quarantine_failure
from ..formats.draft.text import pattern_of
from ..formats.fields import contents
from ..formats.fields.mapping import Input, Turns
from ..formats.fields.paths import decode_json
from ..formats.fields.roles import role_of
from ..formats.files import inputs
from ..formats.messages.turns import turns_of_text

NAME = "mast"
LOOK = 64 * 1024
MARKS = (
    r"^.*?_act:\d+ - \w+\((?P<speaker>[\w ]+)\): to do \w+.*$",  # MetaGPT's log
    r"NEW MESSAGES:\s*\n+\s*(?P<speaker>[A-Za-z_]\w*):",  # MetaGPT's messages
    r"^\[[^\]\n]{5,40}\] (?P<speaker>[A-Z][\w ]{1,40}): ",  # ChatDev
    r"^-{5,} ?(?P<speaker>[A-Za-z_]\w*) ?-{5,}$",  # Magentic-One
    r"^(?:.*INFO - )?(?P<speaker>[A-Z]\w*(?: [A-Z]\w*)?)(?:'s Response|->[A-Z][\w ]*):",  # HyperAgent
    r"^(?:Message to|Response from|Reply from|Entering) (?P<speaker>[A-Z]\w*(?: \w+)?) Agent",  # AppWorld
)
Turn = tuple[str, str]
"""Who, and what they said."""


def recognises(path: Path) -> bool:
    """A JSON file whose first record names a framework and a trace."""
    if path.suffix not in (".json", ".jsonl") or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(LOOK)
    return head.lstrip()[:1] in (b"[", b"{") and b'"mas_name"' in head and b'"trace_id"' in head


def records(path: Path) -> Iterator[tuple[int | None, JsonValue | Quarantined]]:
    """The records of a file, each with its number."""
    return inputs.records(path, Input())


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The traces of a file."""
    for number, record in records(path):
        if isinstance(record, Quarantined):
            yield record
        else:
            yield quarantine_failure(lambda r=record: trajectory(r, str(path), options), str(path), number)  # type: ignore[misc]


def trajectory(value: JsonValue, source: str, options: ReadOptions) -> Trajectory:
    """The run of a record; ValueError where it has none."""
    record = expect(value, dict, "record")
    turns = turns_of(record.get("trace"), str(record.get("mas_name") or "team"))
    if not turns:
        raise ValueError("trace: nothing in it")
    native = native_id(record)
    kinds: dict[str, ParticipantKind] = {who: role_of(who).kind for who, _ in turns}
    model = record.get("llm_name")
    setting = options.setting or "simulated"
    return Trajectory(
        id=content_hash(NAME, native, turns[0])[:16],
        native_id=native,
        source=source,
        system=NAME,
        setting=setting,
        condition=options.condition or _text(record.get("round")),
        task=_text(record.get("benchmark_name")),
        agent=options.agent or _text(record.get("mas_name")),
        agent_model=_text(model),
        tags=options.tags,
        participants=tuple(
            Participant(
                name=who,
                kind=kind,
                model=_text(model) if kind == "agent" else None,
                simulated=kind == "human" and setting == "simulated",
            )
            for who, kind in kinds.items()
        ),
        events=tuple(
            Event(seq=seq, actor=who, kind="note" if kinds[who] == "environment" else "message", text=text)
            for seq, (who, text) in enumerate(turns)
        ),
    )


def native_id(record: dict[str, JsonValue]) -> str:
    """What tells records apart: framework, benchmark, model, the scenario's key, and the number."""
    trace = record.get("trace")
    key = trace.get("key") if isinstance(trace, dict) else None
    parts = (record.get("mas_name"), record.get("benchmark_name"), record.get("llm_name"), key)
    return "/".join([*(str(part) for part in parts if part), str(record.get("trace_id"))])


def turns_of(trace: JsonValue, team: str) -> list[Turn]:
    """Who said what in a trace."""
    if isinstance(trace, str):
        inside = decode_json(trace)
        return _of_text(trace, team) if isinstance(inside, str) else turns_of(inside, team)
    if isinstance(trace, list):
        return [turn for item in trace if (turn := _message(item, team)) is not None]
    if isinstance(trace, dict):
        inner = next((trace[key] for key in ("trajectory", "messages", "content") if trace.get(key)), None)
        return turns_of(inner, team)
    return []


def _message(item: JsonValue, team: str) -> Turn | None:
    if not isinstance(item, dict):
        return (team, str(item)) if item else None
    name = next((item[key] for key in ("name", "role", "agent", "speaker") if item.get(key)), team)
    content = item.get("content", item.get("text"))
    lines = isinstance(content, list) and all(isinstance(line, str) for line in content)
    text = (
        "\n".join(map(str, content)) if lines and isinstance(content, list) else contents.plain_text(content)
    )
    return str(name), text


def _of_text(text: str, team: str) -> list[Turn]:
    speakers = {
        mark: Counter(turn["speaker"] for turn in turns_of_text(text, Turns(pattern=mark, first="")))
        for mark in MARKS
    }
    mark = next((m for m, names in speakers.items() if sum(n for who, n in names.items() if who) > 1), None)
    pattern = mark or pattern_of([text])
    if pattern is None:
        return [(team, text.strip())] if text.strip() else []
    turns = turns_of_text(text, Turns(pattern=pattern, first="environment"))
    return [(str(turn["speaker"]), str(turn["text"])) for turn in turns if turn["text"]]


def _text(value: JsonValue) -> str | None:
    return str(value) if isinstance(value, (str, int)) and value != "" else None
