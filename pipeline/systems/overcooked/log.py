"""A Collab-Overcooked experiment log as typed values, with what could not be read of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field

from ....schemas import JsonValue
from ....schemas.trajectory import is_finite
from ..base import expect, field, objects

Json = dict[str, JsonValue]
INVALID_ACTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("format", ("please check your plan", "There is no action")),
    ("argument", ("Wrong ",)),
    ("wait", ("Too long wait time", "Wait time is not valid")),
    ("utensil_state", ("is cooking, and you should wait", "is ready, and you should", "is busy")),
    ("dish", ("need a dish", "does not need dish", "There is no dish in hand", "can not put dish into")),
    ("hand", ("There is object .*hand", "There is no object .*hand", "Your hand is empty")),
    ("access", ("can not reach", "can not directly access dispenser", "There is no .* on counter")),
    ("delivery", ("Item in your hand is not finished food",)),
    ("fill", ("is not ready or cooking for filled",)),
    ("recipe", ("can not check recipe", "You have get the recipe")),
    ("utensil_move", ("can not move utensil",)),
    ("counter_full", ("no empty counter",)),
    ("ingredient", ("There is no .* in ", "not enough to begin")),
)
"""Classes of refused plans by patterns in the validator's message; the first that fits."""
HUMAN = "human"
"""What stands for a model where a person plays."""
LONGEST = 10_000
FIELDS = ("agent", "analysis", "say", "plan")
"""Of a contribution to a dialogue, as the released system logs it."""


def invalid_class(message: str) -> str:
    """The class of a validator's message; `other` where no pattern matches its first LONGEST characters."""
    message = message[:LONGEST]
    for name, patterns in INVALID_ACTIONS:
        if any(re.search(pattern, message, re.IGNORECASE) for pattern in patterns):
            return name
    return "other"


@dataclass(frozen=True, slots=True)
class Entry:
    """One contribution to a dialogue: what an agent thought, said and planned, and which agent opened the
    dialogue."""

    opener: int
    speaker: int
    analysis: str
    say: str
    plan: str | None
    """None where the log has no plans, as versions of the system that word them otherwise."""
    more: Json
    """What else the log says of it, as it says it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reply that the validator (or, as class `format`, the parser) sent back."""

    agent: int
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Completion:
    """An action that the environment finished, at the timestep where the log noticed it."""

    timestep: int
    agent: int
    action: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One timestep."""

    timestep: int
    map: JsonValue
    score: float | None
    orders: tuple[str, ...]
    calls: tuple[int, int]
    """How often each agent opened a dialogue."""
    entries: tuple[Entry, ...]
    refusals: tuple[Refusal, ...]
    prompts: tuple[str | None, str | None]
    """What each agent was prompted with; None where it was not asked."""


@dataclass(frozen=True, slots=True)
class Log:
    """One run."""

    turns: tuple[Turn, ...]
    completions: tuple[Completion, ...]
    finished_orders: tuple[str, ...]
    score: float | None
    last_timestep: int | None
    """The last timestep, also where its turn could not be read."""
    models: tuple[str | None, str | None] = (None, None)
    """What the log says of the models that played, as versions of the system do; HUMAN for a person."""
    scaffolding: str | None = None
    """What it says of the agents' kind."""
    bad: list[str] = dataclass_field(default_factory=list)

    @property
    def finished_at(self) -> int | None:
        """The timestep at which the first order was served, as the turns' scores tell it; None where none
        was."""
        return min((turn.timestep for turn in self.turns if turn.score), default=None)


def parse(log: Json) -> Log:
    """The run in a log; ValueError where the log as a whole cannot be read.

    A turn or action that cannot be read is left out and named in `bad`.
    """
    bad: list[str] = []
    content = field(log, "content", list)
    if (size := _team_size(content)) > 2:
        raise ValueError(f"content: the team has {size} agents, only teams of two can be read")
    turns = tuple(_turns(content, bad))
    completions = tuple(_completions(field(log, "total_action_list", list), bad))
    orders = tuple(str(order) for order in field(log, "total_order_finished", list))
    steps = [turn.timestep for turn in turns] + _steps(log.get("total_timestamp"))
    players = _players(content)
    models = [HUMAN if _is_human(player) else _text(player.get("model")) for player in players]
    agents = [player for player in players if not _is_human(player)]
    kinds = dict.fromkeys(kind for agent in agents if (kind := _text(agent.get("agent_type"))))
    return Log(
        turns, completions, orders, _score(log.get("total_score")), max(steps, default=None),
        models=(models[0], models[1]), scaffolding=", ".join(kinds) or None, bad=bad,
    )  # fmt: skip


def _players(content: Iterable[JsonValue]) -> tuple[Json, Json]:
    """What the first turn with `agent_models` says of the chef and of the assistant; empty where none has."""
    for turn in content:
        models = turn.get("agent_models") if isinstance(turn, dict) else None
        if isinstance(models, list):
            players = [player for player in models if isinstance(player, dict)]
            roles = {str(player.get("role")).casefold(): player for player in players}
            return roles.get("chef", {}), roles.get("assistant", {})
    return {}, {}


def _is_human(player: Json) -> bool:
    return (_text(player.get("agent_type")) or "").casefold() == HUMAN


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None


def _team_size(content: Iterable[JsonValue]) -> int:
    """How many agents every turn tells of: versions of the system have more than two."""
    statistics = [turn.get("statistical_data") for turn in content if isinstance(turn, dict)]
    talks = [one.get("communication") for one in statistics if isinstance(one, dict)]
    return min((len(talk) for talk in talks if isinstance(talk, list)), default=0)


def _steps(value: JsonValue) -> list[int]:
    """The timesteps that the log lists, up to where they stop rising: another episode begins anew."""
    steps: list[int] = []
    for step in value if isinstance(value, list) else []:
        if not isinstance(step, int) or (steps and step <= steps[-1]):
            break
        steps.append(step)
    return steps


def _score(value: JsonValue) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not is_finite(value):
        return None
    return float(value)


def _turns(turns: Iterable[JsonValue], bad: list[str]) -> Iterable[Turn]:
    """Each timestep once: where it comes again, as in a file of several episodes, the first counts."""
    timesteps: set[int] = set()
    for number, item in enumerate(turns):
        try:
            turn = _turn(expect(item, dict, f"content[{number}]"), f"content[{number}]")
        except ValueError as error:
            bad.append(str(error))
            continue
        if turn.timestep in timesteps:
            bad.append(f"content[{number}]: timestep {turn.timestep} came before; a file holds one episode")
            continue
        timesteps.add(turn.timestep)
        yield turn


def _turn(turn: Json, where: str) -> Turn:
    inner = field(turn, "content", dict, where)
    statistics = field(turn, "statistical_data", dict, where)
    place = f"{where}.statistical_data"
    calls = [
        field(c, "call", int, f"{place}.communication") for c in _pair(statistics, "communication", place)
    ]
    orders = turn.get("order_list")
    return Turn(
        timestep=field(turn, "timestamp", int, where),
        map=turn.get("map"),
        score=_score(statistics.get("score")),
        orders=tuple(str(order) for order in orders) if isinstance(orders, list) else (),
        calls=(calls[0], calls[1]),
        entries=tuple(_entries(inner, f"{where}.content")),
        refusals=tuple(_refusals(statistics, place)),
        prompts=_prompts(inner),
    )


def _pair(record: Mapping[str, JsonValue], key: str, where: str) -> list[Json]:
    pair = objects(record, key, where)
    if len(pair) != 2:
        raise ValueError(f"{where}.{key}: expected an item for either agent, got {len(pair)}")
    return pair


def _entries(inner: Json, where: str) -> Iterable[Entry]:
    for opener, dialogue in enumerate(field(inner, "content", list, where)):
        if opener > 1 and dialogue:
            raise ValueError(f"{where}.content[{opener}]: more than two agents")
        for number, item in enumerate(expect(dialogue, list, f"{where}.content[{opener}]")):
            place = f"{where}.content[{opener}][{number}]"
            entry = expect(item, dict, place)
            speaker = field(entry, "agent", int, place)
            if speaker not in (0, 1):
                raise ValueError(f"{place}.agent: expected 0 or 1, got {speaker}")
            analysis, say = _words(entry.get("analysis")), _words(entry.get("say"))
            plan = _words(entry["plan"]) if "plan" in entry else None
            more = {key: value for key, value in entry.items() if key not in FIELDS}
            yield Entry(opener, speaker, analysis, say, plan, more)


def _words(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _refusals(statistics: Json, where: str) -> Iterable[Refusal]:
    for agent, errors in enumerate(_pair(statistics, "error", where)):
        for key in ("format_error", "validator_error"):
            place = f"{where}.error[{agent}]"
            for message in field(field(errors, key, dict, place), "error_message", list, f"{place}.{key}"):
                kind = "format" if key == "format_error" else invalid_class(str(message))
                yield Refusal(agent, kind, str(message))


def _prompts(inner: Json) -> tuple[str | None, str | None]:
    observation = inner.get("observation")
    texts = (
        [text if isinstance(text, str) else None for text in observation]
        if isinstance(observation, list)
        else []
    )
    first, second, *_ = [*texts, None, None]
    return first, second


def _completions(lists: list[JsonValue], bad: list[str]) -> Iterable[Completion]:
    bad.extend(f"total_action_list[{extra}]: more than two agents" for extra in range(2, len(lists)))
    bad.extend(
        f"total_action_list[{agent}]: missing, as if no action was completed"
        for agent in range(len(lists), 2)
    )
    for agent, actions in enumerate(lists[:2]):
        for number, item in enumerate(expect(actions, list, f"total_action_list[{agent}]")):
            place = f"total_action_list[{agent}][{number}]"
            try:
                entry = expect(item, dict, place)
                timestep = field(entry, "timestamp", int, place)
                yield Completion(timestep, agent, field(entry, "action", str, place))
            except ValueError as error:
                bad.append(str(error))
