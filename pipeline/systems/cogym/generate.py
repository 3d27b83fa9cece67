"""Made-up Co-Gym sessions with planted truth, for trying things out at any size.

A session is a chain of small scenes whose labels are known because they were written that way; some
sessions also get scenes that show a failure mode. The same seed gives the same bytes.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any

from ... import codebooks
from ...errors import CoauditError
from .records import ChatItem, session_id

TASKS = ("travel_planning", "related_work", "tabular_analysis")
CONDITIONS = {"baseline": 0.35, "planning": 0.15}
"""Condition -> chance that a session has each of the failure scenes drawn for it."""
MODELS = ("model-small", "model-large")
RATER = {"rater": "planted", "rater_kind": "rule", "rater_version": "1"}
AGENT, HUMAN = "planning_agent", "user"
_FIRST = datetime(2026, 1, 5, 8)


@dataclass
class _Team:
    """A session that is being written: its log, and what is true of it."""

    task: str
    number: int
    phrases: dict[str, Any]
    draw: random.Random
    clock: datetime
    editor: str = ""
    chat: list[dict[str, str]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    labels: list[dict[str, Any]] = field(default_factory=list)
    failures: dict[str, tuple[list[int], str | None]] = field(default_factory=dict)

    @property
    def description(self) -> str:
        """What the environment tells the team to do."""
        return f"Work with your teammate on this task ({self.task})."

    def fill(self, phrase: str) -> str:
        """A phrase with its blanks filled."""
        pick = self.draw.choice
        return phrase.format(
            place=pick(self.phrases["places"]),
            item=pick(self.phrases["items"]),
            name=pick(self.phrases["names"]),
            n=self.draw.randint(2, 60),
        )

    def any(self, key: str) -> str:
        """One of the phrases of a kind."""
        return self.fill(self.draw.choice(self.phrases[key]))

    def act(self, role: str, action: str, error: str | None = None) -> int:
        """Log an action and return its seq."""
        self.clock += timedelta(seconds=self.draw.randint(1, 25))
        if error:
            self._say("environment", f"[{role}] takes an action but fails: {error}")
        status = f"failed (action_error: {error})" if error else "succeeded"
        kind = "collaborative" if action.startswith("SEND_TEAMMATE_MESSAGE") else "environment"
        self._record(role, action, status, kind)
        return len(self.records)

    def say(self, role: str, text: str, *, initiative: bool, halting: bool = False) -> int:
        """Log a message with its planted labels and return its seq."""
        seq = self.act(role, f"SEND_TEAMMATE_MESSAGE(message={text})")
        self._say(role, text)
        self.label(seq, "initiative", initiative)
        if role == HUMAN:
            self.label(seq, "halting", halting)
        return seq

    def write(self, role: str, text: str) -> int:
        """Replace the text in the editor."""
        self.editor = text
        return self.act(role, f"EDITOR_UPDATE(text={text})")

    def search(self) -> int:
        """Look something up."""
        return self.act(AGENT, self.fill(self.phrases["searches"][self.task]))

    def label(self, seq: int, code: str, holds: bool) -> None:
        """Note what is true of a unit."""
        self.labels.append({"event": seq, "codebook": code, "code": code, "label": "yes" if holds else "no"})

    def open(self, query: str) -> None:
        """The START record and the query in the chat."""
        self._say(HUMAN, query)
        start = f"START(task_description={self.description}, query={query})"
        self._record("environment", start, "succeeded", "environment")

    def _say(self, role: str, text: str) -> None:
        self.chat.append({"role": role, "timestamp": _stamp(self.clock), "message": text})

    def _record(self, role: str, action: str, status: str, kind: str) -> None:
        public: dict[str, Any] = {self.phrases["editors"][self.task]: self.editor}
        if self.task == "related_work":
            public["library"] = [{"title": "A made-up survey", "link": "https://example.org/1", "notes": ""}]
        record = {
            "role": role,
            "timestamp": _stamp(self.clock),
            "action": action,
            "action_status": status,
            "action_type": kind,
            "current_chat_history": list(self.chat),
            "current_observation": {"public": public, "private": {AGENT: {}, HUMAN: {}}},
        }
        self.records.append(record)


def generate(
    folder: Path, sessions: int, seed: int, progress: Callable[[str, int, int], None] | None = None
) -> dict[str, int]:
    """Write `sessions` result folders and truth.jsonl; returns how many sessions, utterances, labels.

    Conditions share their task instances, so that runs can be paired, and differ in how often they fail.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CoauditError(f"{folder}: must be an empty or new folder")
    folder.mkdir(parents=True, exist_ok=True)
    phrases = tomllib.loads((resources.files("coaudit.data") / "phrases.toml").read_text(encoding="utf-8"))
    modes = [code.code for code in codebooks.load("failures").codes]
    counts = {"sessions": sessions, "utterances": 0, "labels": 0}
    with (folder / "truth.jsonl").open("w", encoding="utf-8", newline="\n") as truth:
        for number in range(sessions):
            team, name, condition = _session(number, seed, phrases)
            _write(folder / condition / name, team)
            lines = _truth(team, name, modes)
            truth.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            counts["labels"] += len(lines)
            counts["utterances"] += sum(label["codebook"] == "initiative" for label in team.labels)
            if progress:
                progress(name, number + 1, sessions)
    return counts


def _session(number: int, seed: int, phrases: dict[str, Any]) -> tuple[_Team, str, str]:
    task = TASKS[number % 3]
    condition = list(CONDITIONS)[number // 3 % 2]
    draw = random.Random(f"{seed}:{number}")
    team = _Team(task, number, phrases, draw, _FIRST + timedelta(hours=number))
    team.open(team.fill(phrases["queries"][task]))
    scenes = draw.choices(_SCENES, k=draw.randint(3, 6))
    scenes += [scene for scene in draw.sample(_FAILURES, 4) if draw.random() < CONDITIONS[condition]]
    draw.shuffle(scenes)
    for scene in (_start, *scenes):
        scene(team)
    _end(team)
    return team, f"env_{task}_{number // 6}", condition


def _start(team: _Team) -> None:
    team.say(AGENT, team.any("announce"), initiative=False)
    team.search()
    team.say(AGENT, team.any("agent_yes"), initiative=True)


def _ask(team: _Team) -> None:
    pair = team.draw.choice(team.phrases["asks"])
    question = team.say(AGENT, team.fill(pair["question"]), initiative=True)
    team.say(HUMAN, team.fill(pair["reply"]), initiative=False)
    team.label(question, "confirmation", False)


def _permit(team: _Team) -> None:
    pair = team.draw.choice(team.phrases["permits"])
    is_accepted = team.draw.random() < 0.7
    question = team.say(AGENT, team.fill(pair["question"]), initiative=True)
    reply = team.draw.choice(pair["accepted" if is_accepted else "passed_over"])
    team.say(HUMAN, team.fill(reply), initiative=False)
    team.label(question, "confirmation", is_accepted)


def _request(team: _Team) -> None:
    team.say(HUMAN, team.any("human_yes"), initiative=True)
    team.say(AGENT, team.any("status"), initiative=False)
    team.search()
    team.say(AGENT, team.any("agent_yes"), initiative=True)


def _halt(team: _Team) -> None:
    team.say(HUMAN, team.any("halt"), initiative=True, halting=True)
    team.say(AGENT, team.any("agent_no"), initiative=False)


def _thanks(team: _Team) -> None:
    team.say(HUMAN, team.any("human_no"), initiative=False)


def _draft(team: _Team) -> None:
    team.say(AGENT, team.any("announce"), initiative=False)
    team.write(AGENT, f"{team.editor}\n{team.any('summary')}".strip())
    team.say(AGENT, team.any("summary"), initiative=True)


def _end(team: _Team) -> None:
    if not team.editor:
        _draft(team)
    if "C.3" not in team.failures:
        team.say(AGENT, team.any("summary"), initiative=True)
    team.act(AGENT, "FINISH()")


def _silent_start(team: _Team) -> None:
    team.say(HUMAN, team.any("human_yes"), initiative=True)
    cites = [team.search() for _ in range(3)]
    team.say(AGENT, team.any("agent_yes"), initiative=True)
    team.failures["C.1"] = (cites, None)


def _no_notice(team: _Team) -> None:
    team.say(AGENT, team.any("announce"), initiative=False)
    cite = team.write(AGENT, team.any("summary"))
    team.failures["C.3"] = ([cite], None)


def _asked_again(team: _Team) -> None:
    pair = team.draw.choice(team.phrases["asks"])
    question, reply = team.fill(pair["question"]), team.fill(pair["reply"])
    cites = []
    for _ in range(2):
        cites.append(team.say(AGENT, question, initiative=True))
        team.say(HUMAN, reply, initiative=False)
        team.label(cites[-1], "confirmation", False)
    team.failures["SA.2"] = (cites, question)


def _overwritten(team: _Team) -> None:
    team.write(HUMAN, team.any("summary"))
    team.failures["SA.5"] = ([team.write(AGENT, team.any("summary"))], None)
    team.say(AGENT, team.any("summary"), initiative=True)


def _unable(team: _Team) -> None:
    action = team.fill("CALL_BY_PHONE(name={name})")
    promise = team.say(AGENT, "I can phone them for you and ask.", initiative=True)
    error = f"'{action}' invalid. Please strictly follow the action space specifications."
    team.failures["EA.2"] = ([promise, team.act(AGENT, action, error)], None)


def _redone(team: _Team) -> None:
    text = team.any("summary")
    team.say(AGENT, team.any("announce"), initiative=False)
    team.failures["PL.2"] = ([team.write(AGENT, text) for _ in range(2)], None)
    team.say(AGENT, team.any("summary"), initiative=True)


_SCENES = (_ask, _permit, _permit, _request, _halt, _thanks, _draft)
_FAILURES = (_silent_start, _no_notice, _asked_again, _overwritten, _unable, _redone)


def _write(folder: Path, team: _Team) -> None:
    for inside in (AGENT, "simulated_user"):
        (folder / inside).mkdir(parents=True)
    lines = (json.dumps(record) + "\n" for record in team.records)
    (folder / "event_log.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")
    rating = round(max(0.0, min(1.0, team.draw.gauss(0.8, 0.1) - 0.08 * len(team.failures))), 4)
    performance = {"outcome": team.editor, "task_completion": 1, "performance_rating": rating}
    if team.task == "related_work":
        performance["pure_text"] = team.editor
    model = MODELS[team.number // 6 % 2]
    usage = {"prompt_tokens": 900 * len(team.records), "completion_tokens": 40 * len(team.records)}
    user = {"planning_lm": "model-user", "executing_lm": "model-user", "token_usage": {"planning_lm": usage}}
    for name, content in {
        "task_performance.json": performance,
        f"{AGENT}/info.json": {"lm": model, "token_usage": usage},
        "simulated_user/info.json": user,
    }.items():
        (folder / name).write_text(json.dumps(content, indent=4) + "\n", encoding="utf-8", newline="\n")


def _truth(team: _Team, name: str, modes: list[str]) -> list[dict[str, Any]]:
    first = team.records[0]
    opening = ChatItem.model_validate(first["current_chat_history"][0])
    key = session_id(name, [AGENT, HUMAN], team.description, opening, first["timestamp"])
    lines = [{"trajectory": key, **label, **RATER} for label in team.labels]
    for mode in modes:
        cites, quote = team.failures.get(mode, ([], None))
        finding = {"cites": cites, **({"quote": quote} if quote else {})} if cites else {}
        label = "present" if cites else "absent"
        lines.append(
            {"trajectory": key, "codebook": "failures", "code": mode, "label": label, **finding, **RATER}
        )
    return lines


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")
