"""CoBlock's two exports as games: `manage.py dumpdata` (a list of rows) and REST records."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ....schemas import JsonValue, Quarantined
from ..base import field, json_value, objects

Json = dict[str, JsonValue]
_APP = "minestructure."
TOGETHER = 120
"""Seconds within which the first saves of a game are made: the page posts it anew until it knows its record's
id."""


@dataclass(frozen=True, slots=True)
class Game:
    """One stored record with its session, whichever the export."""

    record_id: str
    session_id: str | None
    created: str | None
    record: Json
    session: Json
    blueprint: Json
    backend: str | None = None
    feedback: tuple[Json, ...] = ()
    copy_of: str | None = None
    """Another record of the session that begins with everything this one holds."""

    @property
    def config(self) -> Json:
        """The session's task configuration; empty where the export lacks it."""
        return _object(self.session.get("task_config"))

    def history(self) -> list[JsonValue]:
        """The actions in order."""
        return field(self.record, "actionHistory", list, f"record {self.record_id}")


def games(value: JsonValue, siblings: Iterable[JsonValue] = ()) -> list[Game | str]:
    """Every game of an export, and what is wrong with each that cannot be read.

    `siblings` are other served records of its session: they tell which of its games are copies.
    """
    items: list[Game | str]
    if isinstance(value, list) and any(_is_row(item) for item in value):
        items = list(_games_of_dump([item for item in value if isinstance(item, dict) and item.get("model")]))
        items += [
            f"row {number}: expected an object with a model, got {str(item)[:60]}"
            for number, item in enumerate(value, start=1)
            if not (isinstance(item, dict) and item.get("model"))
        ]
    else:
        page = value.get("results") if isinstance(value, dict) and "record" not in value else value
        items = list(_games_of_records(page if isinstance(page, list) else [value]))
    return _mark_copies(items, [game for game in _games_of_records(siblings) if isinstance(game, Game)])


def _is_row(item: JsonValue) -> bool:
    return isinstance(item, dict) and str(item.get("model")).startswith(_APP)


def _object(value: JsonValue) -> Json:
    """A JSON object, also where it was posted as JSON text; {} for anything else."""
    if isinstance(value, str):
        try:
            value = json_value(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _games_of_dump(rows: Iterable[Json]) -> Iterator[Game | str]:
    tables: dict[str, dict[str, Json]] = defaultdict(dict)
    for row in rows:
        tables[str(row.get("model")).removeprefix(_APP)][str(row.get("pk"))] = _object(row.get("fields"))
    backends, feedback = _backends(tables), _feedback(tables)
    for pk, fields in tables["collaborationrecordmodel"].items():
        session_id = str(fields.get("session"))
        session = tables["collaborationsessionmodel"].get(session_id, {})
        blueprint = tables["blueprintmodel"].get(str(session.get("blueprint")), {})
        game = _game(pk, session_id, fields, session, blueprint)
        if isinstance(game, Game):
            game = replace(game, backend=backends.get(session_id), feedback=tuple(feedback[pk]))
        yield game


def _backends(tables: dict[str, dict[str, Json]]) -> dict[str, str]:
    """Session -> language model, where all its experiments name the same."""
    models_by_session: dict[str, set[str]] = defaultdict(set)
    for experiment in tables["collaborationexperimentmodel"].values():
        if isinstance(model := experiment.get("backend_version"), str) and model:
            models_by_session[str(experiment.get("session"))].add(model)
    return {session: models.pop() for session, models in models_by_session.items() if len(models) == 1}


def _feedback(tables: dict[str, dict[str, Json]]) -> dict[str, list[Json]]:
    by_record: dict[str, list[Json]] = defaultdict(list)
    for row in tables["collaborationexperimentfeedbackmodel"].values():
        by_record[str(row.get("record"))].append(row | {"spec": _object(row.get("spec"))})
    return by_record


def _games_of_records(records: Iterable[JsonValue]) -> Iterator[Game | str]:
    for number, item in enumerate(records):
        if not isinstance(item, dict) or "record" not in item:
            yield f"item {number} is neither a row of dumpdata nor a record of /api/record/"
            continue
        session = _object(item.get("session"))
        yield _game(
            str(item.get("id")), served_session(item), item, session, _object(session.get("blueprint"))
        )


def served_session(item: JsonValue | Quarantined) -> str | None:
    """The id of a served record's session; None where it names none, or where `item` is no served record."""
    if not isinstance(item, dict) or "record" not in item:
        return None
    session_id = _object(item.get("session")).get("id", item.get("session"))
    return None if session_id is None or isinstance(session_id, dict) else str(session_id)


def _game(pk: str, session_id: str | None, row: Json, session: Json, blueprint: Json) -> Game | str:
    record = _object(row.get("record"))
    time = row.get("created_at")
    game = Game(pk, session_id, time if isinstance(time, str) else None, record, session, blueprint)
    try:
        game.history()
    except ValueError as error:
        return str(error)
    return game


def served_game(value: JsonValue | Quarantined) -> Game | None:
    """A served record as a game of its session, history and time alone, which is all that telling copies
    takes; None for any other value."""
    session_id = served_session(value)
    if session_id is None or not isinstance(value, dict):
        return None
    history = _object(value.get("record")).get("actionHistory")
    row: Json = {"record": {"actionHistory": history}, "created_at": value.get("created_at")}
    creation = _object(value.get("session")).get("created_at")
    game = _game(str(value.get("id")), session_id, row, {"created_at": creation}, {})
    return game if isinstance(game, Game) else None


def other_saves(games: Sequence[Game]) -> Iterator[tuple[int, list[int]]]:
    """The index of each game with the indices of those of its session that may be other saves of it: one
    history is the beginning of the other, and they were made within TOGETHER seconds, or at an unknown time,
    or have a placed block in common, whose id no other game has (a game that was resumed has all that was
    done before)."""
    sessions: dict[str, list[int]] = defaultdict(list)
    resumed: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, game in enumerate(games):
        if game.session_id is not None:
            sessions[game.session_id].append(number)
            resumed[game.session_id, _first_block(game)].append(number)
    for session, numbers in sessions.items():
        for number, near in _near(games, numbers):
            uid = _first_block(games[number])
            others = dict.fromkeys([*near, *(resumed[session, uid] if uid else ())])
            yield number, [n for n in others if n != number and _may_be_one(games[number], games[n])]


def _may_be_one(one: Game, other: Game) -> bool:
    """Whether one history is the beginning of the other, and their sessions are not of two servers, which
    number them alike but made them at different times (to the second, since exports print other digits)."""
    moments = (_seconds(game.session.get("created_at")) for game in (one, other))
    times = {int(moment) for moment in moments if moment is not None}
    return len(times) < 2 and _is_beginning(one, other)


def _first_block(game: Game) -> str:
    """The id of the first block that was placed, made at random; empty where there is none."""
    places = (a for a in game.history() if isinstance(a, dict) and a.get("actionType") == "place")
    return str(next(places, {}).get("uid") or "")


def _near(games: Sequence[Game], numbers: Sequence[int]) -> Iterator[tuple[int, Sequence[int]]]:
    """The index of each of these games with the indices of those that may have been made within TOGETHER of
    it."""
    moments = [(time, number) for number in numbers if (time := _seconds(games[number].created)) is not None]
    rest = sorted(set(numbers) - {number for _, number in moments})
    moments.sort()
    times = [time for time, _ in moments]
    for time, number in moments:
        first, last = bisect_left(times, time - TOGETHER), bisect_right(times, time + TOGETHER)
        yield number, [*(other for _, other in moments[first:last]), *rest]
    for number in rest:
        yield number, numbers


def _is_beginning(one: Game, other: Game) -> bool:
    """Whether the shorter history of two games is the beginning of the longer one."""
    short, long = sorted((one.history(), other.history()), key=len)
    return long[: len(short)] == short


def _seconds(time: JsonValue) -> float | None:
    """Unix seconds of a time; one without a zone is UTC, as in the events, on every machine."""
    try:
        moment = datetime.fromisoformat(time if isinstance(time, str) else "")
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _mark_copies(rows: list[Game | str], others: Iterable[Game] = ()) -> list[Game | str]:
    """Mark the records that hold no more than another of their session: the page sends several first saves at
    once.

    Many people may play one session: a short game that was begun at another time is one of its own.
    """
    games = [row for row in (*rows, *others) if isinstance(row, Game)]
    result = list(games)
    for number, near in other_saves(games):
        result[number] = _with_original(games[number], [games[n] for n in near])
    iterator = iter(result)
    return [next(iterator) if isinstance(row, Game) else row for row in rows]


def _with_original(game: Game, others: Iterable[Game]) -> Game:
    """The game, marked as a copy of a record that continues it, if there is one; never one with feedback."""
    mine = len(game.history())
    for other in others if not game.feedback else ():
        theirs = len(other.history())
        longer = theirs > mine or (theirs == mine and other.record_id > game.record_id)
        if longer and other.record_id != game.record_id:
            return replace(game, copy_of=other.record_id)
    return game


def target(game: Game) -> list[JsonValue] | None:
    """The blocks of the structure to build; None where the export does not say."""
    for blueprint in (game.config.get("baseBlueprint"), game.blueprint):
        blocks = _object(_object(blueprint).get("spec")).get("blocks")
        if isinstance(blocks, list) and blocks:
            return blocks
    return None


def initial(game: Game) -> Json:
    """The world before the first action; empty where none was saved.

    The page may save a turn before it has loaded the task (with agents by other names and no blocks), and
    first of all the last one of the session that it showed before.
    """
    turns = game.record.get("turns")
    checkpoints = (
        _object(_object(turn).get("checkpoint")) for turn in (turns if isinstance(turns, list) else ())
    )
    states = [_object(checkpoint.get("state")) for checkpoint in checkpoints]
    of_task = [state for state in states if state.get("initialized") is not False]
    fresh = (state for state in of_task if not state.get("agentActions"))
    return next(fresh, next(iter(of_task if game.config.get("agents") else of_task or states), {}))


def agents(game: Game) -> list[Json]:
    """Role, name, inventory and motives of each agent; the saved world takes precedence over the task's
    settings."""
    configs = {str(a.get("name")): a for a in _objects_of(game.config, "agents")}
    initial_states = {
        str(_object(state.get("agent")).get("name")): state
        for state in _objects_of(initial(game), "initialAgentStates")
    }
    roster = _objects_of(initial(game), "agents") or list(configs.values())
    items = []
    for agent in roster:
        name = str(agent.get("name"))
        config, state = configs.get(name, {}), initial_states.get(name, {})
        inventory = state.get("inventory") or config.get("inventory") or []
        items.append(config | {"role": agent.get("role"), "name": name, "inventory": inventory})
    return items


def _objects_of(value: Json, key: str) -> list[Json]:
    return objects(value, key, "record") if key in value else []


def goal(agent: Json, blocks: list[JsonValue] | None) -> list[JsonValue]:
    """The blocks that one agent's motives name, each once."""
    own = _object(_object(agent.get("blueprint")).get("spec")).get("blocks")
    source = own if isinstance(own, list) and own else blocks or []
    items: list[JsonValue] = []
    for motive in _objects_of(agent, "motives"):
        indices = _object(motive.get("config")).get("blockIndices")
        fallback = _object(motive.get("description")).get("blocks")
        selection = [source[i] for i in _indices(indices, len(source))] or (
            fallback if isinstance(fallback, list) else []
        )
        items += [block for block in selection if block not in items]
    return items


def _indices(indices: JsonValue, length: int) -> list[int]:
    return [i for i in indices if isinstance(i, int) and 0 <= i < length] if isinstance(indices, list) else []
