"""CoBlock: the games of a `dumpdata` or REST export.

Events: seq 0 is the start; then `actionHistory`, which alone is canonical, at seq 1, 2, ...: `place` and
`break` as `action`, `message`, `null` as `wait`, `end_session` as `finish`. A break that removes nothing has
failed, and so has a place where a block stands, though the game has both there. The start's states hold what
each agent had and wanted (only that agent sees it) and, as view `environment`, the target and the first
blocks; the world itself comes by replay (world.py). A machine's raw reply is a state that only it sees.

Identity: of session, record and the record's creation time to the millisecond; a record only grows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

from ....schemas import Action, Event, JsonValue, Outcome, Participant, Quarantined, Trajectory, content_hash
from ....schemas.base import repeated
from ....schemas.event import EventKind
from ....schemas.trajectory import COPY
from ..base import ReadOptions, expect, field, folder_of, json_file, json_lines, quarantine_failure
from . import export
from . import world as blocks_world
from .dependence import TaskType, task_type
from .export import Game, Json
from .replies import Replies, replies
from .siblings import siblings
from .world import World

SYSTEM = "coblock"
LOOK = 1024 * 1024
KINDS: dict[str, EventKind] = {
    "place": "action",
    "break": "action",
    "message": "message",
    "end_session": "finish",
    "null": "wait",
}
ARGUMENTS = ("blockType", "blockPos", "uid")


def recognises(path: Path) -> bool:
    """Whether a file begins as one of the two exports does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(LOOK)
    rows = b'"minestructure.' in head and b'"model"' in head
    return rows or (b'"session"' in head and (b'"task_config"' in head or b'"actionHistory"' in head))


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The games of one export, and what could not be read of it."""
    value = _content(path)
    if isinstance(value, Quarantined):
        yield value
        return
    others = [other for file in siblings(path) if not isinstance(other := json_file(file), Quarantined)]
    games = quarantine_failure(lambda: export.games(value, others), str(path))
    if isinstance(games, Quarantined):
        yield games
        return
    for game in games:
        if isinstance(game, str):
            yield Quarantined(source=str(path), reason=game)
            continue
        bad: list[str] = []
        trajectory = quarantine_failure(partial(_trajectory, path, game, options, bad), str(path))
        yield from (Quarantined(source=str(path), reason=reason) for reason in bad)
        yield trajectory


def _content(path: Path) -> JsonValue | Quarantined:
    """The exported value; for JSON Lines, as `dumpdata --format jsonl` writes them, the list of the lines."""
    value = json_file(path)
    if not isinstance(value, Quarantined):
        return value
    rows = [row for _, row in json_lines(path)]
    lines = len(rows) > 1 and isinstance(rows[0], dict)
    return [row if isinstance(row, dict) else None for row in rows] if lines else value


def _trajectory(path: Path, game: Game, options: ReadOptions, bad: list[str]) -> Trajectory:
    spec = {key: value for key, value in _spec(game).items() if isinstance(value, str)}
    agents = export.agents(game)
    _check_names([str(agent["name"]) for agent in agents], game)
    machine_replies = replies(game)
    team = _participants(agents, game.backend, {name for _, name in machine_replies})
    people = any(participant.kind == "human" for participant in team)
    history = _History(game, [str(agent["name"]) for agent in agents], machine_replies, bad)
    events = (_start(game, agents, history.states), *history.events())
    own = spec | ({} if game.copy_of is None else {COPY: game.copy_of})
    checkpoint = game.session.get("prompt_checkpoint")
    own |= {} if checkpoint is None else {"prompt_checkpoint": str(checkpoint)}
    kind = _task_type(game, agents)
    own |= {} if kind is None else {"task_type": kind}
    return Trajectory(
        id=content_hash(SYSTEM, game.session_id, game.record_id, _creation_time(game)),
        native_id=game.record_id,
        source=str(path),
        system=SYSTEM,
        setting=options.setting or ("real" if people else None),
        condition=options.condition or folder_of(path.resolve()).name,
        task=spec.get("motiveType"),
        instance=_instance(game),
        agent=options.agent,
        agent_model=game.backend,
        tags=own | options.tags,
        participants=team,
        events=events,
        outcomes=tuple(_outcomes(game, history.world)),
        states=history.states,
    )


def _check_names(names: list[str], game: Game) -> None:
    """ValueError where the names cannot tell who did what."""
    if not names and game.history():
        raise ValueError(f"record {game.record_id}: neither its turns nor its session say who takes part")
    shared = repeated(names)
    for name in names:
        if name in shared or name == "environment":
            raise ValueError(f"record {game.record_id}: {name[:40]!r} is not the name of one agent alone")


def _creation_time(game: Game) -> str | None:
    """To the millisecond, since dumpdata and REST print the same time to different digits."""
    whole, dot, fraction = (game.created or "").rstrip("Z").partition(".")
    return f"{whole}{dot}{fraction[:3]}Z" if whole else None


def _moment(game: Game) -> str | None:
    """When the record was made, in UTC also where the server printed an offset."""
    text = game.created or ""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo and not text.endswith("Z"):
            return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        pass
    return _creation_time(game)


def _spec(game: Game) -> Json:
    spec = game.config.get("spec")
    return spec if isinstance(spec, dict) else {}


def _task_type(game: Game, agents: list[Json]) -> TaskType | None:
    target = export.target(game)
    goals = {str(a["name"]): blocks_world.blocks(export.goal(a, target), "goal") for a in agents}
    inventories = {str(a["name"]): blocks_world.counts(a.get("inventory")) for a in agents}
    first = blocks_world.blocks(export.initial(game).get("initiablocks"), "initiablocks")
    return task_type(goals, inventories, first)


def _instance(game: Game) -> str | None:
    for blueprint in (game.config.get("baseBlueprint"), game.blueprint):
        if isinstance(blueprint, dict) and blueprint.get("name"):
            return str(blueprint["name"])
    return game.session_id and f"session {game.session_id}"


def _participants(agents: list[Json], backend: str | None, machines: set[str]) -> tuple[Participant, ...]:
    """Who took part: an agent with a person's role is a machine where it did what `machines` replied."""
    team = [
        Participant(name=str(agent["name"]), kind="human")
        if agent.get("role") == "human" and agent["name"] not in machines
        else Participant(name=str(agent["name"]), kind="agent", model=backend)
        for agent in agents
    ]
    return (*team, Participant(name="environment", kind="environment"))


def _start(game: Game, agents: list[Json], states: Json) -> Event:
    target = export.target(game)
    first = export.initial(game).get("initiablocks")
    views: dict[str, Json] = {"environment": {"target": target, "initial": first or []}}
    for agent in agents:
        fields: Json = {key: agent[key] for key in ("role", "inventory", "views", "motives") if key in agent}
        views[str(agent["name"])] = {**fields, "goal": export.goal(agent, target)}
    hashes = {view: content_hash(state) for view, state in views.items()}
    states.update({hashes[view]: state for view, state in views.items()})
    return Event(
        seq=0, time=_moment(game), actor="environment", kind="start", text=_instance(game), states=hashes
    )


@dataclass
class _History:
    """The events of a game's history; an action that cannot be read leaves its seq free and its error in
    `bad`."""

    game: Game
    names: list[str]
    replies: Replies
    bad: list[str]

    def __post_init__(self) -> None:
        self.states: Json = {}
        first = export.initial(self.game).get("initiablocks")
        self.world = World(blocks_world.blocks(first, f"record {self.game.record_id}: initiablocks"))

    def events(self) -> Iterator[Event]:
        for number, item in enumerate(self.game.history()):
            where = f"record {self.game.record_id}: actionHistory[{number}]"
            try:
                yield self._event(number, expect(item, dict, where), where)
            except ValueError as error:
                self.bad.append(str(error))

    def _event(self, number: int, item: Json, where: str) -> Event:
        name, actor = field(item, "actionType", str, where), field(item, "agentName", str, where)
        if name not in KINDS:
            raise ValueError(f"{where}.actionType: expected one of {', '.join(KINDS)}, got {name!r:.40}")
        if actor not in self.names:
            raise ValueError(f"{where}.agentName: expected one of {', '.join(self.names)}, got {actor!r:.40}")
        words = expect(item.get("message", ""), str, f"{where}.message")
        error = self._carry_out(name, item, where)
        status: Literal["failed", "succeeded"] = "failed" if error else "succeeded"
        arguments: Json = {key: value for key, value in item.items() if key in ARGUMENTS}
        return Event(
            seq=number + 1,
            actor=actor,
            kind=KINDS[name],
            text=words if name in ("message", "end_session") else None,
            action=Action(name=name, arguments=arguments),
            status=status if KINDS[name] == "action" else None,
            error=error,
            states=self._reply(number, actor),
        )

    def _carry_out(self, name: str, item: Json, where: str) -> str | None:
        """Carry an action out; returns why it changed nothing, if so."""
        if name == "place":
            return self.world.place(blocks_world.block(item, where, "blockPos"))
        if name != "break":
            return None
        uid = item.get("uid")
        return self.world.break_(str(uid) if isinstance(uid, int) else field(item, "uid", str, where))

    def _reply(self, number: int, actor: str) -> dict[str, str]:
        reply = self.replies.get((number, actor))
        if reply is None:
            return {}
        key = content_hash(reply)
        self.states[key] = reply
        return {actor: key}


def _outcomes(game: Game, world: World) -> Iterator[Outcome]:
    target = blocks_world.blocks(export.target(game), f"record {game.record_id}: target")
    value = float(world.is_complete(target)) if target else None
    reason = None if target else "the export does not say what was to be built"
    if game.copy_of is not None:
        value, reason = None, f"a shorter copy of record {game.copy_of}"
    extra: list[JsonValue] = (
        [f"{b.colour} at {b.position}" for b in world.extra_blocks(target)] if target else []
    )
    data: Json = {"extra_blocks": extra} | ({} if game.copy_of is None else {"copy_of": game.copy_of})
    yield Outcome(name="success", value=value, reason=reason, data=data)
    if game.feedback:
        words = [row["content"] for row in game.feedback if isinstance(row.get("content"), str)]
        yield Outcome(
            name="feedback", text="\n".join(map(str, words)), data=[_details(row) for row in game.feedback]
        )


def _details(row: Json) -> JsonValue:
    return {key: row[key] for key in ("spec", "is_complete", "participant_code") if key in row}
