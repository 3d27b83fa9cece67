"""What CoBlock's machines replied, and which agents machines played.

A record keeps the roles of its session, also where two machines play a session made for a person and a
machine: then the replies alone tell that both are machines. They are logged by number among the session's
machines, so that those of the first panel may be listed as another agent's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ....schemas import JsonValue
from . import export
from .export import Game, Json

Replies = dict[tuple[int, str], Json]
"""(Number of actions before it, agent) -> its raw reply."""


def replies(game: Game) -> Replies:
    """The last reply of each agent before each action."""
    machines = [str(a["name"]) for a in export.agents(game) if a.get("role") != "human"]
    result: Replies = {}
    records = game.record.get("chatGPTRecords")
    for record in records if isinstance(records, list) else []:
        index = record.get("agentIndex") if isinstance(record, dict) else None
        if not isinstance(record, dict) or not isinstance(index, int) or not 0 <= index < len(machines):
            continue
        turns = list(_turns(record.get("turns")))
        name = _player(game, turns, machines[index])
        result |= {(before, name): {"reply": reply} for before, reply in turns}
    return result


def _turns(turns: JsonValue) -> Iterator[tuple[int, JsonValue]]:
    for turn in turns if isinstance(turns, list) else []:
        if isinstance(turn, dict) and isinstance(before := turn.get("index"), int):
            yield before, turn.get("response")


def _player(game: Game, turns: Sequence[tuple[int, JsonValue]], agent: str) -> str:
    """Who gave these replies: the agent that they are listed for, unless it never did next what a reply says,
    to the word, and another did in half of the turns or more. A person may do once what a machine proposed.
    """
    history = game.history()
    nexts = [(history[before], reply) for before, reply in turns if 0 <= before < len(history)]
    commands = [
        (str(action.get("agentName")), isinstance(reply, str) and command in reply)
        for action, reply in nexts
        if isinstance(action, dict) and (command := _command(action)) is not None
    ]
    authors = Counter(name for name, is_said in commands if is_said)
    if not authors or agent in authors:
        return agent
    ((name, turns_of_it),) = authors.most_common(1)
    return name if 2 * turns_of_it >= len(commands) else agent


def _command(action: Json) -> str | None:
    """A place or message as machines are told to write it; None for any other action."""
    if action.get("actionType") == "message":
        return f'send_message(message="{action.get("message")}")'
    place = action.get("blockPos")
    if action.get("actionType") != "place" or not isinstance(place, dict):
        return None
    x, y, z = (place.get(axis) for axis in "xyz")
    return f'place_block(block_type="{action.get("blockType")}", pos=({x}, {y}, {z}))'
