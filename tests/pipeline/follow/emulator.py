"""A Co-Gym environment as its protocol describes it: it publishes on channels and writes event_log.jsonl.

Written from the description of collaborative-gym at 1e3b02e (records, snapshots, notifications), not from
coaudit's code. The texts are invented.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_REQUEST = r"REQUEST_TEAMMATE_CONFIRM\(request_id=(.*), pending_action=(.*)\)"
Publish = Callable[[str, str], None]
AGENT, USER = "basic_collaborative_agent", "user"
IDLE = "Idle for a long time. The agent should take an action. The user can also send a message."
TYPES = {"travel_plan_editor": "TextEditor", "search_output": "TravelSearchInterface"}
ACTIONS = ("EDITOR_UPDATE", "FINISH", "FLIGHT_SEARCH", "SEND_TEAMMATE_MESSAGE", "WAIT_TEAMMATE_CONTINUE")


@dataclass
class Env:
    """One session: `step` and `tick` do what Co-Gym's environment does with them."""

    name: str
    publish: Publish
    results: Path | None = None
    query: str | None = "Help me plan a trip to Burbank."
    clock: float = 1_795_242_337.0
    max_steps: int = 30
    hidden: Any = field(default_factory=lambda: {"Preferences": ["Budget of $3,400"]})
    chat: list[dict[str, str]] = field(default_factory=list)
    editor: str = ""
    search: dict[str, Any] = field(default_factory=lambda: {AGENT: {}, USER: {}})
    pending: dict[str, Any] = field(default_factory=dict)
    asleep: bool = False
    over: bool = False
    busy: bool = False
    """Steps are published but wait to be handled."""
    backlog: list[tuple[str, str]] = field(default_factory=list)
    steps: dict[str, int] = field(default_factory=dict)

    @property
    def folder(self) -> Path | None:
        return self.results / self.name if self.results else None

    @property
    def now(self) -> str:
        return datetime.fromtimestamp(self.clock, UTC).strftime("%Y-%m-%d %H:%M:%S")

    def start(self) -> None:
        """The first record, the start message, and the first observation of each member."""
        if self.folder:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "event_log.jsonl").write_text("")
            (self.folder / "task_performance.json").unlink(missing_ok=True)
        task = "Plan a trip (with, commas).\nHere is the query."
        query = f", query={self.query}" if self.query else ""
        if self.query:
            self._say(USER, self.query)
        self._log("environment", f"START(task_description={task}{query})", "succeeded", "environment")
        names = [{"machine_readable_identifier": name} for name in ACTIONS]
        start = {"task_description": task, "action_space": names, "team_members": [AGENT, USER]}
        self._send("start", {**start, "example_trajectory": [], "additional_task_info": self.hidden})
        self._notify([AGENT, USER], {})

    def step(self, role: str, action: str) -> None:
        """A member's step: published by the member, handled by the environment."""
        self._send("step", {"action": action, "role": role})
        self.backlog.append((role, action))
        if not self.busy:
            self.handle()

    def handle(self) -> None:
        """Handle the steps that came while the environment was busy, in their order."""
        while self.backlog and not self.over:
            self._handle(*self.backlog.pop(0))

    def tick(self, *, idle: bool) -> None:
        """The clock node's heartbeat; after a long silence the environment reminds everybody."""
        self._send("tick", {})
        if idle and not self.over:
            self._say("environment", IDLE)
            self._notify([AGENT, USER], {})

    def answer(self, role: str) -> None:
        """What the environment says when it is asked for its state."""
        shown = self._shown(role, 0, {})
        task = "Plan a trip (with, commas).\nHere is the query."
        self._send(f"{role}/answer_state", {**shown, "task_description": task, "action_space": []})

    def end(self) -> None:
        """The result, then the end message."""
        self.over = True
        if self.folder:
            done = {
                "outcome": self.editor,
                "task_completion": int(bool(self.editor)),
                "performance_rating": 0.5,
            }
            (self.folder / "task_performance.json").write_text(json.dumps(done))
        self._send("end", {"result_dir": f"/runs/{self.results.name if self.results else 'x'}/{self.name}"})

    def _handle(self, role: str, action: str) -> None:
        if message := re.fullmatch(r"SEND_TEAMMATE_MESSAGE\(message=(.*)\)", action, re.DOTALL):
            self._log(role, action, "succeeded", "collaborative")
            self._say(role, message[1])
            self._after([m for m in (AGENT, USER) if m != role], {})
        elif action == "WAIT_TEAMMATE_CONTINUE()":
            return
        elif ask := re.fullmatch(_REQUEST, action, re.DOTALL):
            self._log(role, action, "succeeded", "collaborative")
            self.pending[ask[1]] = {"requester": role, "timestamp": self.now, "pending_action": ask[2]}
            self._after([m for m in (AGENT, USER) if m != role], {})
        elif given := re.fullmatch(r"(ACCEPT|REJECT)_CONFIRMATION\(request_id=(.*)\)", action):
            self._log(role, action, "succeeded", "collaborative")
            if given[2] not in self.pending:
                return
            asked = self.pending.pop(given[2])
            info: dict[str, Any] = {}
            if given[1] == "ACCEPT":
                _, info = self._do(asked["requester"], asked["pending_action"])
                self._log(asked["requester"], asked["pending_action"], "succeeded", "environment")
            self._after([AGENT, USER], info)
        elif action in ("PUT_AGENT_ASLEEP()", "WAKE_AGENT_UP()"):
            if self.asleep != (action == "PUT_AGENT_ASLEEP()"):
                self.asleep = not self.asleep
                self._log(role, action, "succeeded", "collaborative")
                self._after([AGENT, USER], {})
        else:
            self._environment(role, action)

    def _environment(self, role: str, action: str) -> None:
        error, info = self._do(role, action)
        if error:
            self._say("environment", f"[{role}] takes an action but fails: {error}")
        status = f"failed (action_error: {error})" if error else "succeeded"
        self._log(role, action, status, "environment")
        private = error or action.startswith("FLIGHT_SEARCH")
        self._after([role] if private else [AGENT, USER], info, private=bool(private))
        if action == "FINISH()" and not self.over:
            self.end()

    def _do(self, role: str, action: str) -> tuple[str | None, dict[str, Any]]:
        began = self.clock
        if update := re.fullmatch(r"EDITOR_UPDATE\(text=(.*)\)", action, re.DOTALL):
            self.editor = update[1]
        elif search := re.fullmatch(r"FLIGHT_SEARCH\(origin=(.*), destination=(.*), date=(.*)\)", action):
            self.search[role] = {"query": search[1], "output": f"F{hash(action) % 1000}"}
        elif action != "FINISH()":
            error = f"'{action}' invalid. Please strictly follow the action space specifications."
            return error, {"action_error": error}
        name = action.partition("(")[0]
        times = {"action_start_time": began + random.random() / 1e3, "action_end_time": began + 0.002}
        return None, {"action": name, "action_error": None, **times}

    def _after(self, members: list[str], info: dict[str, Any], *, private: bool = False) -> None:
        """Notify, unless this was the last step of a limit or FINISH: then nobody is shown anything."""
        if max([0, *self.steps.values()]) >= self.max_steps:
            self.end()
        elif info.get("action") != "FINISH":
            self._notify(members, info, private=private)

    def _notify(self, members: list[str], info: dict[str, Any], *, private: bool = False) -> None:
        for member in members:
            if self.asleep and "agent" in member and not private:
                continue
            reward = -1 if info.get("action_error") else 0
            self._send(f"{member}/observation", self._shown(member, reward, info))

    def _shown(self, member: str, reward: int, info: dict[str, Any]) -> dict[str, Any]:
        return {
            "observation": {"travel_plan_editor": self.editor, "search_output": self.search[member]},
            "observation_type": TYPES,
            "reward": reward,
            "info": info,
            "chat_history": self.chat,
            "pending_confirmations": self.pending,
            "agent_asleep": self.asleep,
        }

    def _say(self, role: str, message: str) -> None:
        self.chat.append({"role": role, "timestamp": self.now, "message": message})

    def _log(self, role: str, action: str, status: str, kind: str) -> None:
        if role != "environment":
            self.steps[role] = self.steps.get(role, 0) + 1
        if self.folder is None:
            return
        private = {member: {"search_output": self.search[member]} for member in (AGENT, USER)}
        record = {
            "role": role,
            "timestamp": self.now,
            "action": action,
            "action_status": status,
            "action_type": kind,
            "current_chat_history": self.chat,
            "current_observation": {"public": {"travel_plan_editor": self.editor}, "private": private},
        }
        with (self.folder / "event_log.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")

    def _send(self, channel: str, content: dict[str, Any]) -> None:
        body = {"data": {"data_type": "json_obj", "object": content}}
        self.publish(f"{self.name}/{channel}", json.dumps(body, ensure_ascii=False, separators=(",", ":")))


def moves(chance: random.Random, steps: int) -> Iterator[tuple[str, str]]:
    """What a team might do: (member, action), tick for the environment's clock."""
    say = [
        "Shall I book it?",
        "Yes, please.",
        'He said "no)"',
        "Stop, wait!",
        "",
        "Été à Zürich, ~3 d\nand 2 n",
    ]
    for number in range(steps):
        role = chance.choice((AGENT, USER))
        action = chance.choice(
            [
                *(f"SEND_TEAMMATE_MESSAGE(message={chance.choice(say)})" for _ in range(3)),
                *("WAIT_TEAMMATE_CONTINUE()" for _ in range(2)),
                f"FLIGHT_SEARCH(origin=A, destination=B, date={number})",
                f"EDITOR_UPDATE(text=Day {number})",
                "BOOK_HOTEL(name=Quiet Room)",
                "tick",
                f"REQUEST_TEAMMATE_CONFIRM(request_id=r, pending_action=EDITOR_UPDATE(text=Plan {number}))",
                chance.choice(["ACCEPT_CONFIRMATION(request_id=r)", "REJECT_CONFIRMATION(request_id=r)"]),
                chance.choice(["PUT_AGENT_ASLEEP()", "WAKE_AGENT_UP()"]),
            ]
        )
        yield ("environment" if action == "tick" else role), action


def play(env: Env, seed: int, steps: int, *, finish: bool = True, slow: bool = False) -> Iterator[None]:
    """Play a session step by step; yields after each so that sessions can be interleaved.

    `slow`: the environment is often busy, so that steps are published before those before are handled.
    """
    chance = random.Random(seed)
    env.start()
    yield
    for role, action in moves(chance, steps):
        env.clock += chance.choice((0.1, 0.4, 2.0))
        if env.over:
            return
        env.busy = slow and chance.random() < 0.5
        if action == "tick":
            env.handle()
            env.tick(idle=True)
        else:
            env.step(role, action)
        yield
    env.busy = False
    env.handle()
    if finish and not env.over:
        env.step(USER, "FINISH()")
        yield
