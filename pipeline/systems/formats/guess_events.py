"""Which path is the speaker, the text, the action ... of the events of a survey."""

from __future__ import annotations

from dataclasses import replace

from .guess_made import Guess, Take
from .guess_names import (
    BEGUN,
    HEAD,
    NAMES,
    SPEECH,
    TOOL_NAMES,
    TOOLS,
    first_one,
    is_label,
    is_said,
    is_time,
    is_tool_name,
    named,
    parent_of,
    spelled,
)
from .guess_records import events_of, items_in, value_at
from .guess_roles import is_call, role_of, roles_of
from .guess_speakers import FEW, TYPES, named_roles, sentences, speaking
from .guess_times import of_times
from .paths import getter
from .survey import PathSeen, Survey

KINDS = {"type", "subtype", "kind", "event"}
"""What the names of fields end in that say of what kind an event is."""
LABELS_OF_RESULTS = ("observation", "observation_type", "result_type")


def of_events(made: Guess, seen: Survey, inside: str) -> None:
    """The fields of `[event]`."""
    taken = set[str]()

    def take(name: str, candidates: list[PathSeen]) -> PathSeen | None:
        one = first_one([c for c in candidates if c.path not in taken])
        if one is not None:
            made.event[name] = one.path
            taken.add(one.path)
        return one

    total = items_in(seen, inside.removesuffix("[].")) if inside else len(seen.records)
    actions = _actions(seen, inside)
    names = [one for one in actions if is_tool_name(one)]
    lines = [one for one in actions if one not in names]
    who = speaking(seen, inside, names, total)
    role = take("role", who.likely)
    text = [one for one in named(seen.paths, NAMES["text"], inside) if is_said(one) and one not in lines]
    text = [one for one in text if parent_of(one) not in {*TOOLS, *NAMES["result"]}] or (
        [] if actions else text
    )
    if role is None:
        _of_one(made, seen, inside, names, lines, [one for one in text if one.path not in taken], take)
    else:
        called = _of_types(seen, inside, role, text) if who.typed else []
        named_roles(made, seen, inside, role, called)
        if who.typed:
            _of_kinds(made, role)
        take("action", [*names, *called])
        if role in who.playing and not text:
            _of_moves(made, seen, inside, take)
        first = take("text", text or sentences(seen, inside))
        if first is not None:
            rest = [one for one in text if one.path not in taken]
            _of_texts(made, seen, inside, role, first, rest, taken)
        if "action" in made.event:
            _of_acts(made, seen, inside, role, take)
    of_times(made, seen, inside, total, take)


def _actions(seen: Survey, inside: str) -> list[PathSeen]:
    """Fields that name what was done."""
    some = named(seen.paths, NAMES["action"], inside)
    some += [one for one in named(seen.paths, TOOL_NAMES, inside) if parent_of(one) in TOOLS]
    return [one for one in some if one.only("text")]


def _of_one(
    made: Guess,
    seen: Survey,
    inside: str,
    names: list[PathSeen],
    lines: list[PathSeen],
    text: list[PathSeen],
    take: Take,
) -> None:
    """Events of which none says whose it is: an agent's steps, or what two say in turn."""
    made.constant_role = "agent"
    _of_steps(made, seen, inside, names, lines, take)
    first = take("text", text)
    if first and "action" not in made.event and _of_person(first):
        made.constant_role = "user"
    if first and inside and (model := _model_beside(seen, inside, first)):
        made.constant_role = None
        take("role", [model])
        named_so = roles_of(model.values.items())
        made.roles = [replace(one, kind="agent", known=True) for one in named_so]
    elif first and not {"action", "command", "result"} & set(made.event) and inside:
        made.constant_role = None
        made.turns_about = True
        made.roles = roles_of((side, 0) for side in ("user", "assistant"))


def _model_beside(seen: Survey, inside: str, text: PathSeen) -> PathSeen | None:
    """Which model said what stands in each item of a list."""
    models = [one for one in named(seen.paths, HEAD["agent_model"], inside, depth=0) if is_label(one)]
    return first_one([one for one in models if one.only("text") and one.count >= text.count])


def _of_person(text: PathSeen) -> bool:
    """Whether its name says that a person said it: `user_message`."""
    who, _, more = spelled(text.key).partition("_")
    role = role_of(who)
    return bool(more) and role.known and role.kind == "human"


def _of_kinds(made: Guess, role: PathSeen) -> None:
    """What kinds of events are of, where some say whose they are: others are the environment's."""
    if any(one.known for one in made.roles):
        made.roles = [
            one if one.known or one.name not in role.values else replace(one, kind="environment")
            for one in made.roles
        ]


def _of_texts(
    made: Guess,
    seen: Survey,
    inside: str,
    role: PathSeen,
    text: PathSeen,
    rest: list[PathSeen],
    taken: set[str],
) -> None:
    """What is said, or what stands in its place; `rest` are other fields of it."""
    if "action" not in made.event:
        _of_written_calls(made, seen, inside, role.path, text.path)
    else:
        made.event["text"] = [text.path, *(one.path for one in rest[:1])] if rest else text.path
    if "action" not in made.event:
        begun = not inside and _instead(made, seen, text, taken)
        _silent(made, seen, inside, text, begun)


def _of_acts(made: Guess, seen: Survey, inside: str, role: PathSeen, take: Take) -> None:
    """What belongs to actions: arguments, what came of them, whose they are, and what is said by them."""
    done = seen.paths[str(made.event["action"])].values
    made.speech = [name for name in done if name.lower() in SPEECH]
    if "arguments" not in made.event:
        take("arguments", named(seen.paths, NAMES["arguments"], inside))
    made.came = _came(made, seen, inside, role.path)
    _of_calls(made, seen, inside, role.path)


def _of_written_calls(made: Guess, seen: Survey, inside: str, role: str, text: str) -> None:
    """Calls that are written as JSON in the texts of those who are called so: `function_call`."""
    name, given = seen.paths.get(f"{text}.name"), seen.paths.get(f"{text}.arguments")
    if name and given and is_tool_name(name) and all(map(is_call, _acting(seen, inside, role, name.path))):
        made.event |= {"action": name.path, "arguments": given.path}


def _acting(seen: Survey, inside: str, role: str, action: str) -> set[str]:
    """Who does something."""
    done, who = (getter(path.removeprefix(inside)) for path in (action, role))
    return {str(who(event)) for event in events_of(seen, inside.removesuffix("[]."), inside) if done(event)}


def _of_calls(made: Guess, seen: Survey, inside: str, role: str) -> None:
    """Events that are called `tool_call` or `action` and do something are the agent's own."""
    acting = _acting(seen, inside, role, str(made.event["action"]))
    made.calling = [
        one.name
        for one in made.roles
        if one.name in acting
        and (is_call(one.name) if one.kind == "environment" else one.name.lower() in TOOLS)
    ]
    made.roles = [replace(one, kind="agent") if one.name in made.calling else one for one in made.roles]


def _came(made: Guess, seen: Survey, inside: str, role: str) -> str | None:
    """A label that results have, and no event in which something is done; who acts, or the environment,
    bears them."""
    action = str(made.event["action"])
    done, who = (getter(path.removeprefix(inside)) for path in (action, role))
    events = list(events_of(seen, inside.removesuffix("[]."), inside))
    acting = _acting(seen, inside, role, action)
    around = {one.name for one in made.roles if one.kind == "environment"}
    for one in named(seen.paths, LABELS_OF_RESULTS, inside, depth=0):
        at = getter(one.path.removeprefix(inside))
        labelled = [event for event in events if at(event) is not None]
        apart = not any(done(event) is not None for event in labelled)
        bearing = {str(who(event)) for event in labelled} - around
        if is_label(one) and one.only("text") and apart and bearing and bearing <= acting:
            return one.path
    return None


def _of_types(seen: Survey, inside: str, role: PathSeen, text: list[PathSeen]) -> list[PathSeen]:
    """The name of what was done, where events are called `action` or the like, and none has a name in which
    somebody speaks."""
    one = seen.paths.get(f"{inside}name")
    if one is None or not text or not is_tool_name(one):
        return []
    done, said = (getter(path.removeprefix(inside)) for path in (one.path, text[0].path))
    events = events_of(seen, inside.removesuffix("[]."), inside)
    spoken = any(done(event) and said(event) for event in events)
    acts = any(who.lower() in TOOLS or is_call(who) for who in _acting(seen, inside, role.path, one.path))
    return [one] if acts and not spoken else []


def _instead(made: Guess, seen: Survey, text: PathSeen, taken: set[str]) -> bool:
    """Note what stands where records have no text, such as the task that is begun; whether it does."""
    empty = any(value_at(record, text.path) in (None, "") for record in seen.records)
    other = [one for one in named(seen.paths, BEGUN) if one.path not in taken and is_said(one)]
    if empty and other:
        made.event["text"] = [text.path, other[0].path]
    return empty and bool(other)


def _silent(made: Guess, seen: Survey, inside: str, text: PathSeen, begun: bool) -> None:
    """Events without a text are notes, where a field that says of what kind they are, or any where another
    text says what is begun, says of them what it says of no other, and that is no call."""
    events = list(events_of(seen, inside.removesuffix("[]."), inside))
    said = getter(text.path.removeprefix(inside))
    empty = [event for event in events if said(event) in (None, "")]
    others = [event for event in events if said(event) not in (None, "")]
    for path, one in seen.paths.items() if empty else ():
        own = path.startswith(inside) and "[]" not in path[len(inside) :] and path not in made.used
        own = own and (begun or spelled(one.key).rpartition("_")[2] in KINDS)
        if not own or not one.only("text") or not is_label(one) or len(one.values) > FEW or is_time(one):
            continue
        at = getter(path.removeprefix(inside))
        without, spoken = ({str(at(event)) for event in many} for many in (empty, others))
        if not without & {*spoken, *TOOLS, "None"}:
            made.notes = path, sorted(without)
            return


def _of_steps(
    made: Guess, seen: Survey, inside: str, names: list[PathSeen], lines: list[PathSeen], take: Take
) -> None:
    """Steps that are all the agent's: what was done, and what came back."""
    if names:
        done = take("action", names)
        if not take("arguments", named(seen.paths, NAMES["arguments"], inside)) and done:
            _beside(made, seen, done)
    elif lines:
        take("command", lines)
    take("result", named(seen.paths, NAMES["result"], inside))
    take("error", [one for one in named(seen.paths, NAMES["error"], inside) if one.only("text")])


def _of_moves(made: Guess, seen: Survey, inside: str, take: Take) -> None:
    """What players and drivers did, if only what events are called says it, and what came of it."""
    happened = [one for one in named(seen.paths, TYPES, inside, depth=0) if is_tool_name(one)]
    if "action" not in made.event and (move := take("action", happened)):
        made.by_values["action"] = move.path
    take("result", named(seen.paths, NAMES["result"], inside))


def _beside(made: Guess, seen: Survey, action: PathSeen) -> None:
    """What stands beside an action's name in the action's own object are its arguments."""
    within = action.path.rpartition(".")[0]
    if parent_of(action) in TOOLS:
        beside = [path for path in seen.paths if path.rpartition(".")[0] == within and path != action.path]
        if beside:
            made.event["arguments"] = sorted(beside)
