"""Collab-Overcooked: one experiment log a run, rewritten after every timestep. A file may hold several, as a
list or one a line.

Events, timestep by timestep: what each agent said (`message`, the words as text) or planned in silence
(`note`), in speaking order and by its true speaker, with analysis, plan and who opened the dialogue as
arguments; then each refused plan as a failed `action` named `plan`, with its class; then each completed
action. All carry their `timestep`. The map, drawn after the timestep's actions, is the public state of its
last event; a prompt is a state that only its agent sees.

Identity: of the file's name (the experiment's time and order), from the second of several logs on with its
number, and of what was shown and said in the first timestep, which later ones leave as it is. The condition
is the model's folder, or what a folder of one run lies in, or that of an arm within the order's. Where two
models (or a person and one) play, the log or else the file's name says who is who.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from ....schemas import Action, Event, JsonValue, Outcome, Participant, Quarantined, Trajectory, content_hash
from ..base import ReadOptions, folder_of, json_file, json_lines, only_object, quarantine_failure
from .log import HUMAN, Completion, Entry, Log, Refusal, Turn, parse

SYSTEM = "overcooked"
AGENTS = ("chef", "assistant")
"""In the log's order: agent 0 and agent 1."""
LEGEND = (
    "On the map an arrow with a number is a player, 0 the chef and 1 the assistant, and where it looks; "
    "behind the number is what it holds. X is a counter, P the pot, O the oven, C the chopping board, B the "
    "blender, I the dispenser of ingredients, D that of dishes, S where dishes are served."
)
"""Of the kitchen that the system comes with."""
SILENCE = "[NOTHING]"
NO_TURNS = "no timestep of the log can be read"
"""Why nothing is known of a run but its completed actions and its result."""
LOOK = 64 * 1024
"""Bytes of a file's beginning, and of its end, that are enough to recognise it."""
KEYS = frozenset({"total_timestamp", "total_order_finished"})
"""Of these a log has one."""
HEAD = 10
"""Lines of a file of several logs among which one can be read."""
MAX_ERROR = 500
"""Characters; a format error quotes the whole prompt."""
_TIME = r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_"
_NAME = re.compile(rf"experiment_{_TIME}(.*)")
_RUN = re.compile(rf"{_TIME}.+")
"""A folder that holds one run, and says nothing of its model."""
_SEATS = re.compile(r"chef_(.+)_assistant_(.+)")
"""What a file's name says of both players, before the order."""
_CALL = re.compile(r"(\w+)\((.*)\)\s*\Z", re.DOTALL)


def recognises(path: Path) -> bool:
    """Whether a file begins as an experiment log does, or ends so where its keys were sorted."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        look = file.read(LOOK)
        file.seek(max(file.tell(), path.stat().st_size - LOOK))
        look += file.read(LOOK)
    return any(f'"{key}"'.encode() in look for key in KEYS)


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The run in one log, or those in a file of several, each after what could not be read of it."""
    for number, value in _logs(path):
        yield from _run(path, number, only_object(value, str(path), number), options)


def _logs(path: Path) -> Iterator[tuple[int | None, JsonValue | Quarantined]]:
    """(number, log) of each log of a file: it is one, without a number, or a list, or has one a line."""
    value = json_file(path)
    if isinstance(value, list) and value:
        yield from enumerate(value, start=1)
        return
    lines = json_lines(path) if isinstance(value, Quarantined) else iter(())
    head = list(itertools.islice(lines, HEAD))
    if any(isinstance(line, dict) and not KEYS.isdisjoint(line) for _, line in head):
        yield from itertools.chain(head, lines)
    else:
        yield None, value


def _run(
    path: Path, number: int | None, value: dict[str, JsonValue] | Quarantined, options: ReadOptions
) -> Iterator[Trajectory | Quarantined]:
    if isinstance(value, Quarantined):
        yield value
        return
    log = quarantine_failure(lambda: parse(value), str(path), number)
    if isinstance(log, Quarantined):
        yield log
        return
    for reason in log.bad:
        yield Quarantined(source=str(path), line=number, reason=reason)
    # A file of one run may get more.
    name = path.stem if number in (None, 1) else f"{path.stem}:{number}"
    yield quarantine_failure(lambda: _trajectory(path, name, log, options), str(path), number)


def _trajectory(path: Path, name: str, log: Log, options: ReadOptions) -> Trajectory:
    menu = [order for turn in log.turns for order in turn.orders]
    order = _order(path, log, menu)
    orders = {*menu, *log.finished_orders, *([order] if order else [])}
    condition, folder = _folders(path, orders)
    models = _models(path, orders, folder, log)
    # Which order is served is told at the end: an event says what it said at the beginning.
    events, states = _events(log, menu[0] if menu else order)
    first = min(log.turns, key=lambda turn: turn.timestep, default=None)
    opening = first and (first.map, [(e.speaker, e.say, e.plan or "") for e in first.entries])
    return Trajectory(
        id=content_hash(SYSTEM, name, opening),
        native_id=name,
        source=str(path),
        system=SYSTEM,
        setting=options.setting or ("real" if HUMAN in models else None),
        condition=options.condition or condition,
        task=order,
        instance=order,
        agent=options.agent or log.scaffolding,
        agent_model=next((model for model in models if model not in (None, HUMAN)), None),
        tags=options.tags,
        participants=_participants(models),
        events=events,
        outcomes=tuple(_outcomes(log)),
        states=states,
    )


def _order(path: Path, log: Log, menu: list[str]) -> str | None:
    """The order that was served first, since the run ends with it, or else the first of the menu."""
    if orders := [*log.finished_orders, *menu]:
        return orders[0]
    name, folder = _NAME.fullmatch(path.stem), folder_of(path.resolve()).name
    if name and _SEATS.fullmatch(name[1]):
        return folder if name[1].endswith(f"_{folder}") else None
    return name and (name[1] or None)


def _folders(path: Path, orders: Collection[str]) -> tuple[str | None, str | None]:
    """What the folders say of the condition and of the model: both are the folder above the order's (right
    below `src/data` the one or two folders there, since a model's name may hold a slash). Where the order's
    folder has one for each arm, that is the condition, and only below `src/data` it is sure that the model's
    is above."""
    above = list(folder_of(path.resolve()).parts[1:])
    while above and _RUN.fullmatch(above[-1]):
        above.pop()
    arm = above.pop() if len(above) > 1 and above[-2] in orders and above[-1] not in orders else None
    if above and above[-1] in orders:
        above.pop()
    places = (n for n in range(len(above) - 2, 0, -1) if above[n - 1 : n + 1] == ["src", "data"])
    model = next(("/".join(above[n + 1 :]) for n in places if len(above) - n <= 3), None)
    if arm is not None:
        return arm, arm if _player(arm) == HUMAN else model
    folder = model or (above[-1] if above else None)
    return folder, folder


def _models(
    path: Path, orders: Collection[str], folder: str | None, log: Log
) -> tuple[str | None, str | None]:
    """The model of the chef and of the assistant, HUMAN where a person plays, None where nothing says."""
    first, second = map(_player, log.models)
    name = _NAME.fullmatch(path.stem)
    ends = [f"_{order}" for order in orders if name and name[1].endswith(f"_{order}")]
    seats = _SEATS.fullmatch(name[1].removesuffix(max(ends, key=len, default=""))) if name else None
    if seats:
        return first or _player(seats[1]), second or _player(seats[2])
    model = _player(folder)
    # The folder around folders of single runs, or around files of names that the system does not write, may
    # have any name, and where the log names one model, it may be both models'; only `human` tells who played.
    is_named_by_model = name is not None and not _RUN.fullmatch(folder_of(path.resolve()).name)
    if model != HUMAN and (first or second or not is_named_by_model):
        return first, second
    return first or model, second or model


def _player(name: str | None) -> str | None:
    """The model of that name, or HUMAN, however it is written."""
    return HUMAN if name is not None and name.casefold() == HUMAN else name


def _participants(models: tuple[str | None, str | None]) -> tuple[Participant, ...]:
    team = [
        Participant(name=name, kind="human")
        if model == HUMAN
        else Participant(name=name, kind="agent", model=model)
        for name, model in zip(AGENTS, models, strict=True)
    ]
    return (*team, Participant(name="environment", kind="environment"))


def _events(log: Log, order: str | None) -> tuple[tuple[Event, ...], dict[str, JsonValue]]:
    states: dict[str, JsonValue] = {}
    drafts = [_draft("environment", "start", text=order and f"Order: {order}")]
    turns = {turn.timestep: turn for turn in log.turns}
    completions: dict[int, list[Completion]] = defaultdict(list)
    for completion in log.completions:
        completions[completion.timestep].append(completion)
    for timestep in sorted(turns.keys() | completions.keys()):
        turn = turns.get(timestep)
        items = [] if turn is None else [*_dialogue(turn, states), *_refusals(turn)]
        items += map(_completed_action, completions.get(timestep, ()))
        if turn is not None and items:
            items[-1]["states"] = {"public": _store(states, {"map": turn.map})} | items[-1]["states"]
        drafts += items
    if log.finished_orders:
        drafts.append(_draft("environment", "finish", text=log.finished_orders[0]))
    return tuple(Event(seq=seq, **draft) for seq, draft in enumerate(drafts)), states


def _draft(actor: str, kind: str, **fields: object) -> dict[str, Any]:
    return {"actor": actor, "kind": kind, "states": {}} | fields


def _store(states: dict[str, JsonValue], state: dict[str, JsonValue]) -> str:
    key = content_hash(state)
    states[key] = state
    return key


def _dialogue(turn: Turn, states: dict[str, JsonValue]) -> Iterator[dict[str, Any]]:
    speakers: set[int] = set()
    for entry in turn.entries:
        prompt = turn.prompts[entry.speaker]
        private = {}
        if prompt and entry.speaker not in speakers:
            private = {AGENTS[entry.speaker]: _store(states, {"prompt": prompt})}
        speakers.add(entry.speaker)
        silent = entry.say.strip() in ("", SILENCE)
        yield _draft(
            AGENTS[entry.speaker],
            "note" if silent else "message",
            text=None if silent else entry.say,
            action=Action(name="plan" if silent else "say", arguments=_arguments(turn, entry)),
            states=private,
        )


def _arguments(turn: Turn, entry: Entry) -> dict[str, JsonValue]:
    return {
        **entry.more,
        "timestep": turn.timestep,
        "opener": AGENTS[entry.opener],
        "dialogue": turn.calls[entry.opener] != 0,
        "analysis": entry.analysis,
        "plan": entry.plan,
    }


def _refusals(turn: Turn) -> Iterator[dict[str, Any]]:
    for refusal in turn.refusals:
        plans = [entry.plan for entry in turn.entries if entry.speaker == refusal.agent]
        earlier = [r for r in turn.refusals if r.agent == refusal.agent and r.kind != "format"]
        number = earlier.index(refusal) if refusal in earlier else None
        plan = plans[number] if number is not None and number < len(plans) else None
        yield _refusal(turn, refusal, plan)


def _refusal(turn: Turn, refusal: Refusal, plan: str | None) -> dict[str, Any]:
    message = refusal.message if len(refusal.message) <= MAX_ERROR else refusal.message[:MAX_ERROR] + "…"
    arguments: dict[str, JsonValue] = {"timestep": turn.timestep, "class": refusal.kind}
    action = Action(name="plan", arguments=arguments, raw=plan)
    return _draft(AGENTS[refusal.agent], "action", action=action, status="failed", error=message)


def _completed_action(completion: Completion) -> dict[str, Any]:
    call = _CALL.match(completion.action)
    name, inside = call.groups() if call else ("other", "")
    objects: list[JsonValue] = [part.strip() for part in inside.split(",") if part.strip()]
    action = Action(
        name=name, arguments={"timestep": completion.timestep, "objects": objects}, raw=completion.action
    )
    return _draft(AGENTS[completion.agent], "action", action=action, status="succeeded")


def _outcomes(log: Log) -> Iterator[Outcome]:
    yield Outcome(name="success", value=float(bool(log.finished_orders)))
    yield Outcome(name="score", value=log.score, reason=None if log.score is not None else "not logged")
    last, finish = log.last_timestep, log.finished_at
    goes_on = last is not None and finish is not None and finish < last
    yield Outcome(
        name="last_timestep",
        value=None if last is None else float(last),
        reason=None if last is not None else "the log has no timestep",
        data={"finished_at": finish} if goes_on and log.finished_orders else None,
    )
    dialogues: list[JsonValue] = [
        {"timestep": turn.timestep, "opener": AGENTS[opener]}
        for turn in log.turns
        for opener in (0, 1)
        if turn.calls[opener]
    ]
    yield Outcome(
        name="dialogues",
        value=float(len(dialogues)) if log.turns else None,
        reason=None if log.turns else NO_TURNS,
        data=dialogues,
    )
