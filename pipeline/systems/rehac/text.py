"""The text of a ReHAC trajectory: a preamble, then steps that each begin with `<solver>`.

A step's regular form is thoughts, one action, one observation. Nothing is ever lost of an irregular
one (no thought, garbage lines, no action): `Step.logged` keeps it byte for byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ....schemas import Action, canonical_json
from ....schemas.trajectory import number_in

SOLVER = "<solver>"
ACTORS = ("agent", "human")
FINISHED = "Episode finished"
_MARK = re.compile(r"^(Thought|Action|Observation) \d+:[ ]?", re.MULTILINE)
_REWARD = re.compile(r"(?:\A|\n)reward = (\S+)\s*\Z")
_FINAL_REWARD = re.compile(rf"{FINISHED}, reward = (\S+)")
_CALL = re.compile(r"(\w+) ?\[(.*)\]\Z", re.DOTALL)
_CUT_CALL = re.compile(r"(\w+) ?\[(.*)\Z", re.DOTALL)
_SQL = re.compile(
    r"(select[*(]|(select|show|describe|desc|with|insert|update|delete|create|drop|alter|use|explain)\s)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step as it was logged; `logged` is everything after its `<solver>`."""

    actor: str
    thought: str | None
    """Several thoughts are joined by newlines."""
    action: str | None
    observation: str | None
    reward: str | None
    """The last step of an InterCode episode names its reward on a line of its own."""
    logged: str


def split(text: str) -> tuple[str, list[Step]]:
    """The preamble and the steps of one trajectory.

    Raises ValueError where there is no step, or a step's solver is neither agent nor human.
    """
    preamble, *segments = text.split(SOLVER)
    if not segments:
        raise ValueError(f"no {SOLVER} in the trajectory")
    return preamble, [_step(segment, number) for number, segment in enumerate(segments, start=1)]


def _step(text: str, number: int) -> Step:
    actor, _, body = text.lstrip(" ").partition("\n")
    solver = actor.strip()
    if solver.lower() not in ACTORS:
        raise ValueError(f"step {number}: solver must be agent or human, got {solver[:40]!r}")
    return step(solver.lower(), body, text)


def step(actor: str, body: str, text: str) -> Step:
    """The step that `body` (thoughts, action, observation) says."""
    thoughts: list[str] = []
    action = observation = None
    marks = list(_MARK.finditer(body))
    ends = [mark.start() for mark in marks[1:]] + [len(body)]
    for mark, end in zip(marks, ends, strict=False):
        if mark[1] == "Thought" and action is None:
            thoughts.append(body[mark.end() : end].rstrip("\r\n"))
        elif mark[1] == "Action" and action is None:
            action = body[mark.end() : end].rstrip("\r\n")
        elif mark[1] == "Observation":
            # All that follows is what the environment said, even where it looks like another mark.
            observation = body[mark.end() :].rstrip("\r\n")
            break
    reward = _REWARD.search(observation) if observation else None
    if observation is not None and reward is not None:
        observation = observation[: reward.start()]
    thought = "\n".join(thoughts) if thoughts else None
    return Step(actor, thought, action, observation, reward and reward[1], text)


def exact_match(last: Step) -> float | None:
    """EM as the last step of an episode says it: 0 of one without an end, None where the end names none."""
    match = _FINAL_REWARD.match(last.observation or "")
    reward = match[1] if match else last.reward
    if reward is not None:
        return number_in(reward)
    return None if (last.observation or "").startswith(FINISHED) else 0.0


def regular(actor: str, number: int, thought: str | None, action: str, observation: str) -> str:
    """A regular step as it is logged after its `<solver>`."""
    thought_line = "" if thought is None else f"Thought {number}: {thought}\n"
    end = "\n\n" if observation.startswith((FINISHED, "No more results.")) else "\n"
    return f" {actor}\n{thought_line}Action {number}: {action}\nObservation {number}: {observation}{end}"


def parse_action(text: str) -> Action:
    """`Search[x]` as name and argument, SQL under the name `SQL`, anything else as `other`.

    What name and argument do not say (a cut-off end, a stray space) stays in `raw`.
    """
    if _SQL.match(text.lstrip(" (")):
        return Action(name="SQL", arguments={"query": text})
    first = text.partition("\n")[0]
    if call := _CALL.match(text) or _CALL.match(first) or _CUT_CALL.match(text):
        name, argument = call.groups()
        raw = None if f"{name}[{argument}]" == text else text
        return Action(name=name, arguments={"argument": argument}, raw=raw)
    if text.isalpha():
        return Action(name=text)
    return Action(name="other", raw=text)


def action_text(action: Action) -> str:
    """The action as it was logged."""
    if action.raw is not None:
        return action.raw
    if "query" in action.arguments:
        return str(action.arguments["query"])
    argument = action.arguments.get("argument", canonical_json(action.arguments))
    return f"{action.name}[{argument}]" if action.arguments else action.name
