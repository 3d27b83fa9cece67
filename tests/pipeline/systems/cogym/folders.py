"""Co-Gym sessions for tests, logged the way the environment logs them (formats/cogym.md, section 1)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.cogym import reader
from coaudit.schemas import Outcome, Quarantined, Trajectory

AGENT, USER = "planning_agent", "user"
QUERY = "Help me plan a trip."
DESCRIPTION = "Plan a trip (with care), for a person."
IDLE = "Idle for a long time. The agent should take an action. The user can also send a message."
BEGAN = datetime(2026, 11, 21, 6, 30, 0)


@dataclass
class Log:
    """A session in the making. Every record takes a second, so that `seconds` is the number of records."""

    team: tuple[str, ...] = (AGENT, USER)
    query: str | None = QUERY
    description: str = DESCRIPTION
    public: dict[str, Any] = field(default_factory=lambda: {"travel_plan_editor": ""})
    private: dict[str, dict[str, Any]] = field(default_factory=dict)
    began: datetime = BEGAN
    start: bool = True
    """False for logs older than the START record."""
    records: list[dict[str, Any]] = field(default_factory=list)
    chat: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        asks = next((name for name in self.team if "user" in name), None)
        if self.query is not None and asks:
            self.hear(asks, self.query)
        query = "" if self.query is None else f", query={self.query}"
        if self.start:
            self._record("environment", f"START(task_description={self.description}{query})", "environment")

    @property
    def now(self) -> str:
        return (self.began + timedelta(seconds=len(self.records))).strftime("%Y-%m-%d %H:%M:%S")

    def say(self, role: str, text: str) -> Log:
        """A message, which is missing from its own record's chat."""
        self.collaborate(role, f"SEND_TEAMMATE_MESSAGE(message={text})")
        self.hear(role, text)
        return self

    def collaborate(self, role: str, action: str) -> Log:
        """Any other collaborative act, such as a confirmation."""
        self._record(role, action, "collaborative")
        return self

    def act(self, role: str, action: str, error: str | None = None, **public: Any) -> Log:
        """An action on the environment; `public` is what it changes there."""
        self.public |= public
        if error is not None:
            self.hear("environment", f"[{role}] takes an action but fails: {error}")
        self._record(role, action, "environment", error)
        return self

    def write(self, role: str, text: str) -> Log:
        """Put a text into the editor."""
        return self.act(role, f"EDITOR_UPDATE(text={text})", travel_plan_editor=text)

    def finish(self, role: str = AGENT) -> Log:
        return self.act(role, "FINISH()")

    def hear(self, role: str, message: str) -> Log:
        """A line in the chat without a record, such as an idle reminder."""
        self.chat.append({"role": role, "timestamp": self.now, "message": message})
        return self

    def lines(self) -> list[str]:
        return [json.dumps(record) + "\n" for record in self.records]

    def folder(self, path: Path, files: Mapping[str, Any] | None = None, *, cut: str = "") -> Path:
        """The session as a result folder with these files beside the log; `cut` is half a last line."""
        path.mkdir(parents=True, exist_ok=True)
        (path / "event_log.jsonl").write_text("".join(self.lines()) + cut, encoding="utf-8")
        for name, content in (files or {}).items():
            target = path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    def released(self, path: Path, **fields: Any) -> Path:
        """The session as a released real-user file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**fields, "event_log": self.records}), encoding="utf-8")
        return path

    def _record(self, role: str, action: str, kind: str, error: str | None = None) -> None:
        private = {name: self.private.get(name, {}) for name in self.team}
        record = {
            "role": role,
            "timestamp": self.now,
            "action": action,
            "action_status": "succeeded" if error is None else f"failed (action_error: {error})",
            "action_type": kind,
            "current_chat_history": self.chat,
            "current_observation": {"public": self.public, "private": private},
        }
        self.records.append(deepcopy(record))


def performance(outcome: str = "", **fields: Any) -> dict[str, Any]:
    """task_performance.json of a delivered result, or of none."""
    done = {"outcome": outcome, "task_completion": int(bool(outcome)), "performance_rating": 0}
    return {"task_performance.json": done | fields}


def simulated(hidden: Any = None) -> dict[str, Any]:
    """The folder of a simulated user; `hidden` is what only they were told."""
    usage = {"prompt_tokens": 70, "completion_tokens": 7}
    told = f"Additional information that you know:\n{json.dumps(hidden)}\nChoose."
    return {
        "simulated_user/info.json": {
            "planning_lm": "user-model",
            "executing_lm": "user-model",
            "token_usage": {"planning_lm": usage, "executing_lm": usage},
        },
        "simulated_user/llm_call_history.jsonl": json.dumps({"prompt": told, "response": {}}) + "\n",
    }


def age(path: Path, seconds: float) -> None:
    """Make a file look that much older than it is."""
    status = path.stat()
    os.utime(path, (status.st_atime, status.st_mtime - seconds))


def pieces(path: Path, **options: Any) -> tuple[list[Trajectory], list[Quarantined]]:
    """What the reader makes of a source: trajectories, and what it could not read."""
    found = list(reader.read(path, ReadOptions.model_validate(options)))
    return (
        [one for one in found if isinstance(one, Trajectory)],
        [one for one in found if isinstance(one, Quarantined)],
    )


def read(path: Path, **options: Any) -> Trajectory:
    """The one trajectory of a source with nothing wrong in it."""
    (trajectory,), wrong = pieces(path, **options)
    assert not wrong
    return trajectory


def outcome(trajectory: Trajectory, name: str) -> Outcome:
    """The trajectory's outcome of that name."""
    (found,) = [one for one in trajectory.outcomes if one.name == name]
    return found
