"""ReHAC: trajectory files (data sets and results) and tree files of HotpotQA, StrategyQA and InterCode.

Events: seq 0 is the start with the question block byte for byte; then one event a step, by `agent` or
`human`: `text` is the thought, `action` what was done, and the public state after it holds the
`observation` (and, where a step is irregular, the step as `logged`), so that `text(trajectory)`
rebuilds the log byte for byte. A tree file holds no questions, so its trajectories start with none.

Identity: of the content, with the file's own name and the trajectory's place in the tree of choices,
since one file is one experiment and two policies may well produce the same text. The condition is the
file's name for the same reason. A training run names its files by epoch alone: its folder is the experiment.
The λ and the epoch that the names tell are tags.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ....schemas import Action, Event, JsonValue, Outcome, Participant, Quarantined, Trajectory, content_hash
from ....schemas.trajectory import Setting, is_finite, number_in
from ..base import ReadOptions, folder_of, json_file, json_lines, only_object, quarantine_failure
from . import text as rehac_text
from . import tree as rehac_tree
from .text import Step

SYSTEM = "rehac"
LOOK = 256 * 1024
"""Bytes that are enough to recognise a file."""
SAMPLE = 200
"""Records that are enough to tell the task."""
_RECORD = re.compile(r'"trajectory"\s*:\s*"')
_MAPPING = re.compile(r'\s*\{\s*"\d{1,20}"\s*:\s*"((?:[^"\\]|\\.)*)')
"""Trajectories by question, as the scripts that collect them write them."""
_EPOCH = re.compile(r"epoch(?P<epoch>[\d.]*)")
_PENALTY = re.compile(r"(?:lambda|delta|ppo)_?(\d+(?:\.\d+)?)(?![\d.])")
"""The λ that a policy was trained with, as ReHAC's scripts write it into names."""
EXACT = ("strategyqa", "intercode")
"""Tasks whose reward is the exact match itself; HotpotQA's is a token F1, of which an exact match has 1."""
_ANSWERS = {"true", "false", "yes", "no", "unknown", "answer"}


def recognises(path: Path) -> bool:
    """Whether a file's beginning holds a trajectory record, trajectories by question or a node of a tree."""
    if not path.is_file():
        return False
    head = _head(path)
    if rehac_tree.looks_like_one(head):
        return True
    return rehac_text.SOLVER in head and (_RECORD.search(head) is not None or _is_mapped(head))


def _head(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(LOOK).decode("utf-8-sig", "replace")


def _is_mapped(head: str) -> bool:
    """Whether a file begins as one object whose first value is the text of a trajectory."""
    first = None if _RECORD.search(head) else _MAPPING.match(head)
    return first is not None and rehac_text.SOLVER in first[1]


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The trajectories of one file, and what could not be read of it."""
    tree = rehac_tree.looks_like_one(_head(path))
    records = _tree if tree else _rows
    sample = [r for r in itertools.islice(records(path), SAMPLE) if isinstance(r, _Record)]
    build = _Builder(path, options, infer_task(sample, path), tree)
    for record in records(path):
        if isinstance(record, Quarantined):
            yield record
        else:
            yield quarantine_failure(partial(build.trajectory, record), str(path))


def text(trajectory: Trajectory, preamble: str | None = None) -> str:
    """The trajectory's text as logged; `preamble` is for trees, whose files hold no questions."""
    start, *steps = trajectory.events
    parts = [start.text or "" if preamble is None else preamble]
    for number, event in enumerate(steps, start=1):
        parts += [rehac_text.SOLVER, logged_text(trajectory.states, event, number)]
    return "".join(parts)


def logged_text(states: Mapping[str, JsonValue], event: Event, number: int) -> str:
    """What the log holds of step `number` (from 1) after its `<solver>`."""
    value = states.get(event.states.get("public", ""))
    state = value if isinstance(value, dict) else {}
    if "logged" in state:
        return str(state["logged"])
    # Steps in coaudit's own lines may have no action and no state.
    action = "" if event.action is None else rehac_text.action_text(event.action)
    return rehac_text.regular_text(
        event.actor, number, event.text, action, str(state.get("observation") or "")
    )


@dataclass(frozen=True, slots=True)
class _Record:
    """One trajectory as its file has it, whichever the kind of file."""

    row: int
    idx: int | str | None
    preamble: str | None
    steps: list[Step]
    em: float | None
    f1: float | None


def _values(path: Path) -> Iterator[tuple[int, JsonValue | Quarantined]]:
    """The records with their numbers: from JSON Lines, a list, or an object of question -> text."""
    head = _head(path).lstrip()
    if not head.startswith("[") and not _is_mapped(head):
        yield from json_lines(path)
        return
    value = json_file(path)
    if isinstance(value, dict):
        value = [{"idx": key, "trajectory": words} for key, words in value.items()]
    yield from enumerate(value if isinstance(value, list) else [value], start=1)


def _rows(path: Path) -> Iterator[_Record | Quarantined]:
    for number, value in _values(path):
        record = only_object(value, str(path), number)
        if isinstance(record, Quarantined):
            yield record
            continue
        try:
            yield _record(record, number)
        except ValueError as error:
            yield Quarantined(source=str(path), line=number, reason=str(error))


def _record(value: dict[str, JsonValue], row: int) -> _Record:
    words = value.get("trajectory")
    if not isinstance(words, str):
        raise ValueError(f'"trajectory" must be a text, got {_kind(value, "trajectory")}')
    preamble, steps = rehac_text.split(words)
    em, f1 = _number(value, "em"), _number(value, "f1")
    if value.get("em") is None and value.get("f1") is None:  # collected without scores: only the text tells
        em = rehac_text.exact_match(steps[-1])
    return _Record(row, _idx(value.get("idx")), preamble, steps, em, f1)


def _idx(value: JsonValue) -> int | str | None:
    """The question's number or name; tables write whole numbers as 3.0 and a missing one as NaN."""
    if isinstance(value, float):
        value = None if math.isnan(value) else int(value) if value.is_integer() else value
    if value is not None and (not isinstance(value, (int, str)) or isinstance(value, bool)):
        raise ValueError(f'"idx" must be a whole number or a text, got {value!r:.60}')
    return value


def _number(value: Mapping[str, JsonValue], key: str) -> float | None:
    """A score, also where it is written as a text; None where it is missing, as NaN and a blank say too."""
    score = value.get(key)
    number = number_in(score) if isinstance(score, str) else score
    blank = score is None or (isinstance(score, str) and not score.strip())
    if blank or (isinstance(number, float) and math.isnan(number)):
        return None
    if not isinstance(number, (int, float)) or not is_finite(number):
        raise ValueError(f'"{key}" must be a finite number, got {score!r:.60}')
    return float(number)


def _kind(value: Mapping[str, JsonValue], key: str) -> str:
    return type(value[key]).__name__ if key in value else "none"


def _tree(path: Path) -> Iterator[_Record | Quarantined]:
    value = only_object(json_file(path), str(path), None)
    if isinstance(value, Quarantined):
        yield value
        return
    for row, leaf in enumerate(rehac_tree.leaves(value), start=1):
        if isinstance(leaf, str):
            yield Quarantined(source=str(path), reason=leaf)
        else:
            yield _Record(row, leaf.idx, None, leaf.steps, leaf.em, leaf.f1)


def infer_task(records: Iterable[_Record], path: Path) -> str | None:
    """The data set of the records. SQL statements tell InterCode; then the file's name counts, then the
    answers, of which a few may be yes and no in any set. Without answers the file's name tells, then its
    path, else None."""
    names: Counter[str] = Counter()
    answers: Counter[bool] = Counter()
    for step in (step for record in records for step in record.steps if step.action is not None):
        action = rehac_text.parse_action(step.action or "")
        names[action.name] += 1
        if action.name == "Finish" and "argument" in action.arguments:
            answers[str(action.arguments["argument"]).strip().lower() in _ANSWERS] += 1
    if names["SQL"] > names["Search"]:
        return "intercode"
    by_name = _task_named_in(path.name)
    if answers:
        by_answers = "strategyqa" if answers[True] >= 4 * answers[False] else "hotpotqa"
        return by_answers if by_name in (None, "intercode") else by_name
    return by_name or _task_named_in(str(path))


def _task_named_in(words: str) -> str | None:
    """The data set that a name or path names; None where it names none or several."""
    tasks = [task for task in ("hotpotqa", "strategyqa", "intercode") if task in words.lower()]
    return tasks[0] if len(tasks) == 1 else None


@dataclass
class _Builder:
    """Makes the trajectories of one file."""

    path: Path
    options: ReadOptions
    task: str | None
    tree: bool

    def __post_init__(self) -> None:
        self.setting = self.options.setting or _setting(self.path, self.task, self.tree)
        self.experiment = _experiment(self.path)
        self.tags = _training_tags(self.path) | self.options.tags
        self.seen: Counter[str] = Counter()

    def trajectory(self, record: _Record) -> Trajectory:
        events, states = _events(record)
        native = self._native_id(record)
        words = [record.preamble, *(step.logged for step in record.steps)]
        return Trajectory(
            id=content_hash(SYSTEM, native, words),
            native_id=native,
            source=str(self.path),
            system=SYSTEM,
            setting=self.setting,
            condition=self.options.condition or self.experiment,
            task=self.task,
            instance=_instance(record),
            agent=self.options.agent,
            tags=self.tags | ({} if record.idx is None else {"idx": str(record.idx)}),
            participants=_participants(self.setting),
            events=events,
            outcomes=tuple(_outcomes(record, self.task)),
            states=states,
        )

    def _native_id(self, record: _Record) -> str:
        bits = "".join("01"[step.actor == "human"] for step in record.steps)
        place = f"row {record.row}" if record.idx is None else f"{record.idx}"
        name = f"{self.experiment}/{place}/{bits}"
        self.seen[name] += 1
        return name if self.seen[name] == 1 else f"{name}#{self.seen[name]}"


def _experiment(path: Path) -> str:
    """The file's name, with its folder's where it says no more than the epoch."""
    return f"{folder_of(path.resolve()).name}/{path.stem}" if _EPOCH.fullmatch(path.stem) else path.stem


def _training_tags(path: Path) -> dict[str, str]:
    """What a name says of a policy's training: `lambda`, and `epoch` where that is all the file's name is."""
    epoch = _EPOCH.fullmatch(path.stem)
    penalty = _PENALTY.search(folder_of(path.resolve()).name if epoch else path.stem)
    tags = {"lambda": penalty and penalty[1], "epoch": epoch and epoch["epoch"]}
    return {name: value for name, value in tags.items() if value}


def _setting(path: Path, task: str | None, tree: bool) -> Setting | None:
    """As released: people wrote only what lies in a folder `human`; trees and the other tasks are GPT-4's."""
    folder = folder_of(path.resolve()).name
    if folder == "human":
        return "real"
    return "simulated" if tree or folder == "gpt4" or task in ("strategyqa", "intercode") else None


def _instance(record: _Record) -> str:
    return str(record.idx) if record.preamble is None else content_hash(record.preamble.strip())[:16]


def _participants(setting: Setting | None) -> tuple[Participant, ...]:
    return (
        Participant(name="agent", kind="agent"),
        Participant(name="human", kind="human", simulated=setting == "simulated"),
        Participant(name="environment", kind="environment"),
    )


def _events(record: _Record) -> tuple[tuple[Event, ...], dict[str, JsonValue]]:
    events = [Event(seq=0, actor="environment", kind="start", text=record.preamble)]
    states: dict[str, JsonValue] = {}
    for seq, step in enumerate(record.steps, start=1):
        action = None if step.action is None else rehac_text.parse_action(step.action)
        state = _state(step, seq)
        key = content_hash(state)
        states[key] = state
        events.append(_event(step, seq, action, key))
    return tuple(events), states


def _state(step: Step, number: int) -> dict[str, JsonValue]:
    state: dict[str, JsonValue] = {"observation": step.observation}
    if step.action is None or step.observation is None:
        return state | {"logged": step.logged}
    regular_text = rehac_text.regular_text(step.actor, number, step.thought, step.action, step.observation)
    return state if regular_text == step.logged else state | {"logged": step.logged}


def _event(step: Step, seq: int, action: Action | None, state: str) -> Event:
    observation = step.observation or ""
    is_failure = action is None or observation.startswith(("Invalid action", "Error"))
    is_end = action is not None and action.name == "Finish" and observation.startswith(rehac_text.FINISHED)
    reason = "the step has no action" if action is None else observation.partition("\n")[0][:500]
    return Event(
        seq=seq,
        actor=step.actor,
        kind="finish" if is_end else "action",
        text=step.thought,
        action=action,
        status="failed" if is_failure else "succeeded",
        error=reason if is_failure else None,
        states={"public": state},
    )


def _outcomes(record: _Record, task: str | None) -> Iterator[Outcome]:
    last = record.steps[-1]
    is_finished = (last.observation or "").startswith(rehac_text.FINISHED) or last.reward in ("1", "1.0")
    reward = record.em if record.em == 1 or task in EXACT else None
    em, f1 = _range_error("em", record.em), _range_error("f1", record.f1)
    for name, value, wrong in (
        ("em", record.em, em),
        ("f1", record.f1, f1),
        ("task_reward", record.f1 if record.f1 is not None else reward if is_finished else 0.0, f1),
        ("success", None if record.em is None else float(record.em == 1), em),
    ):
        if wrong is not None or value is None:
            yield Outcome(name=name, reason=wrong or "not logged")
        else:
            yield Outcome(name=name, value=value)
    yield Outcome(name="finished", value=float(is_finished))


def _range_error(key: str, score: float | None) -> str | None:
    """Why a score is invalid, or None: per cent would be cut to 1, the most that a share can be, in every
    mean."""
    return None if score is None or 0 <= score <= 1 else f'"{key}" must be from 0 to 1, got {score:g}'
