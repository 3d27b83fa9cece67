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


def of_events(guess: Guess, survey: Survey, inside: str) -> None:
    """The fields of `[event]`."""
    mapped_paths = set[str]()

    def take(name: str, candidates: list[PathSeen]) -> PathSeen | None:
        field = first_one([c for c in candidates if c.path not in mapped_paths])
        if field is not None:
            guess.event[name] = field.path
            mapped_paths.add(field.path)
        return field

    total = items_in(survey, inside.removesuffix("[].")) if inside else len(survey.records)
    actions = _actions(survey, inside)
    names = [field for field in actions if is_tool_name(field)]
    lines = [field for field in actions if field not in names]
    speakers = speaking(survey, inside, names, total)
    role = take("role", speakers.likely)
    text = [
        field for field in named(survey.paths, NAMES["text"], inside) if is_said(field) and field not in lines
    ]
    text = [field for field in text if parent_of(field) not in {*TOOLS, *NAMES["result"]}] or (
        [] if actions else text
    )
    if role is None:
        _of_one(
            guess,
            survey,
            inside,
            names,
            lines,
            [field for field in text if field.path not in mapped_paths],
            take,
        )
    else:
        type_names = _of_types(survey, inside, role, text) if speakers.typed else []
        named_roles(guess, survey, inside, role, type_names)
        if speakers.typed:
            _of_kinds(guess, role)
        take("action", [*names, *type_names])
        if role in speakers.playing and not text:
            _of_moves(guess, survey, inside, take)
        first = take("text", text or sentences(survey, inside))
        if first is not None:
            rest = [field for field in text if field.path not in mapped_paths]
            _of_texts(guess, survey, inside, role, first, rest, mapped_paths)
        if "action" in guess.event:
            _of_acts(guess, survey, inside, role, take)
    of_times(guess, survey, inside, total, take)


def _actions(survey: Survey, inside: str) -> list[PathSeen]:
    """Fields that name what was done."""
    fields = named(survey.paths, NAMES["action"], inside)
    fields += [field for field in named(survey.paths, TOOL_NAMES, inside) if parent_of(field) in TOOLS]
    return [field for field in fields if field.only("text")]


def _of_one(
    guess: Guess,
    survey: Survey,
    inside: str,
    names: list[PathSeen],
    lines: list[PathSeen],
    text: list[PathSeen],
    take: Take,
) -> None:
    """Events of which none says whose it is: an agent's steps, or what two say in turn."""
    guess.constant_role = "agent"
    _of_steps(guess, survey, inside, names, lines, take)
    first = take("text", text)
    if first and "action" not in guess.event and _of_person(first):
        guess.constant_role = "user"
    if first and inside and (model := _model_beside(survey, inside, first)):
        guess.constant_role = None
        take("role", [model])
        roles = roles_of(model.values.items())
        guess.roles = [replace(one, kind="agent", known=True) for one in roles]
    elif first and not {"action", "command", "result"} & set(guess.event) and inside:
        guess.constant_role = None
        guess.turns_about = True
        guess.roles = roles_of((side, 0) for side in ("user", "assistant"))


def _model_beside(survey: Survey, inside: str, text: PathSeen) -> PathSeen | None:
    """Which model said what stands in each item of a list."""
    models = [one for one in named(survey.paths, HEAD["agent_model"], inside, depth=0) if is_label(one)]
    return first_one([one for one in models if one.only("text") and one.count >= text.count])


def _of_person(text: PathSeen) -> bool:
    """Whether its name says that a person said it: `user_message`."""
    speaker, _, rest = spelled(text.key).partition("_")
    role = role_of(speaker)
    return bool(rest) and role.known and role.kind == "human"


def _of_kinds(guess: Guess, role: PathSeen) -> None:
    """What kinds of events are of, where some say whose they are: others are the environment's."""
    if any(one.known for one in guess.roles):
        guess.roles = [
            one if one.known or one.name not in role.values else replace(one, kind="environment")
            for one in guess.roles
        ]


def _of_texts(
    guess: Guess,
    survey: Survey,
    inside: str,
    role: PathSeen,
    text: PathSeen,
    rest: list[PathSeen],
    mapped_paths: set[str],
) -> None:
    """What is said, or what stands in its place; `rest` are other fields of it."""
    if "action" not in guess.event:
        _of_written_calls(guess, survey, inside, role.path, text.path)
    else:
        guess.event["text"] = [text.path, *(one.path for one in rest[:1])] if rest else text.path
    if "action" not in guess.event:
        has_substitute = not inside and _set_substitute(guess, survey, text, mapped_paths)
        _set_notes(guess, survey, inside, text, has_substitute)


def _of_acts(guess: Guess, survey: Survey, inside: str, role: PathSeen, take: Take) -> None:
    """What belongs to actions: arguments, what came of them, whose they are, and what is said by them."""
    actions = survey.paths[str(guess.event["action"])].values
    guess.speech = [name for name in actions if name.lower() in SPEECH]
    if "arguments" not in guess.event:
        take("arguments", named(survey.paths, NAMES["arguments"], inside))
    guess.came = _result_label(guess, survey, inside, role.path)
    _of_calls(guess, survey, inside, role.path)


def _of_written_calls(guess: Guess, survey: Survey, inside: str, role: str, text: str) -> None:
    """Calls that are written as JSON in the texts of those who are called so: `function_call`."""
    name, arguments = survey.paths.get(f"{text}.name"), survey.paths.get(f"{text}.arguments")
    if (
        name
        and arguments
        and is_tool_name(name)
        and all(map(is_call, _actors(survey, inside, role, name.path)))
    ):
        guess.event |= {"action": name.path, "arguments": arguments.path}


def _actors(survey: Survey, inside: str, role: str, action: str) -> set[str]:
    """Who does something."""
    action_of, actor_of = (getter(path.removeprefix(inside)) for path in (action, role))
    return {
        str(actor_of(event))
        for event in events_of(survey, inside.removesuffix("[]."), inside)
        if action_of(event)
    }


def _of_calls(guess: Guess, survey: Survey, inside: str, role: str) -> None:
    """Events that are called `tool_call` or `action` and do something are the agent's own."""
    actors = _actors(survey, inside, role, str(guess.event["action"]))
    guess.calling = [
        one.name
        for one in guess.roles
        if one.name in actors
        and (is_call(one.name) if one.kind == "environment" else one.name.lower() in TOOLS)
    ]
    guess.roles = [replace(one, kind="agent") if one.name in guess.calling else one for one in guess.roles]


def _result_label(guess: Guess, survey: Survey, inside: str, role: str) -> str | None:
    """A label that results have, and no event in which something is done; who acts, or the environment,
    bears them."""
    action = str(guess.event["action"])
    action_of, actor_of = (getter(path.removeprefix(inside)) for path in (action, role))
    events = list(events_of(survey, inside.removesuffix("[]."), inside))
    actors = _actors(survey, inside, role, action)
    around = {one.name for one in guess.roles if one.kind == "environment"}
    for one in named(survey.paths, LABELS_OF_RESULTS, inside, depth=0):
        label_of = getter(one.path.removeprefix(inside))
        results = [event for event in events if label_of(event) is not None]
        apart = not any(action_of(event) is not None for event in results)
        owners = {str(actor_of(event)) for event in results} - around
        if is_label(one) and one.only("text") and apart and owners and owners <= actors:
            return one.path
    return None


def _of_types(survey: Survey, inside: str, role: PathSeen, text: list[PathSeen]) -> list[PathSeen]:
    """The name of what was done, where events are called `action` or the like, and none has a name in which
    somebody speaks."""
    field = survey.paths.get(f"{inside}name")
    if field is None or not text or not is_tool_name(field):
        return []
    action_of, text_of = (getter(path.removeprefix(inside)) for path in (field.path, text[0].path))
    events = events_of(survey, inside.removesuffix("[]."), inside)
    has_speech = any(action_of(event) and text_of(event) for event in events)
    acts = any(
        actor.lower() in TOOLS or is_call(actor) for actor in _actors(survey, inside, role.path, field.path)
    )
    return [field] if acts and not has_speech else []


def _set_substitute(guess: Guess, survey: Survey, text: PathSeen, mapped_paths: set[str]) -> bool:
    """Note what stands where records have no text, such as the task that is begun; whether it does."""
    empty = any(value_at(record, text.path) in (None, "") for record in survey.records)
    substitutes = [one for one in named(survey.paths, BEGUN) if one.path not in mapped_paths and is_said(one)]
    if empty and substitutes:
        guess.event["text"] = [text.path, substitutes[0].path]
    return empty and bool(substitutes)


def _set_notes(guess: Guess, survey: Survey, inside: str, text: PathSeen, has_substitute: bool) -> None:
    """Events without a text are notes, where a field that says of what kind they are, or any where another
    text says what is begun, says of them what it says of no other, and that is no call."""
    events = list(events_of(survey, inside.removesuffix("[]."), inside))
    text_of = getter(text.path.removeprefix(inside))
    empty = [event for event in events if text_of(event) in (None, "")]
    others = [event for event in events if text_of(event) not in (None, "")]
    for path, field in survey.paths.items() if empty else ():
        is_candidate = path.startswith(inside) and "[]" not in path[len(inside) :] and path not in guess.used
        is_candidate = is_candidate and (has_substitute or spelled(field.key).rpartition("_")[2] in KINDS)
        if (
            not is_candidate
            or not field.only("text")
            or not is_label(field)
            or len(field.values) > FEW
            or is_time(field)
        ):
            continue
        value_of = getter(path.removeprefix(inside))
        silent_values, other_values = ({str(value_of(event)) for event in group} for group in (empty, others))
        if not silent_values & {*other_values, *TOOLS, "None"}:
            guess.notes = path, sorted(silent_values)
            return


def _of_steps(
    guess: Guess, survey: Survey, inside: str, names: list[PathSeen], lines: list[PathSeen], take: Take
) -> None:
    """Steps that are all the agent's: what was done, and what came back."""
    if names:
        action = take("action", names)
        if not take("arguments", named(survey.paths, NAMES["arguments"], inside)) and action:
            _set_arguments(guess, survey, action)
    elif lines:
        take("command", lines)
    take("result", named(survey.paths, NAMES["result"], inside))
    take("error", [one for one in named(survey.paths, NAMES["error"], inside) if one.only("text")])


def _of_moves(guess: Guess, survey: Survey, inside: str, take: Take) -> None:
    """What players and drivers did, if only what events are called says it, and what came of it."""
    candidates = [one for one in named(survey.paths, TYPES, inside, depth=0) if is_tool_name(one)]
    if "action" not in guess.event and (move := take("action", candidates)):
        guess.by_values["action"] = move.path
    take("result", named(survey.paths, NAMES["result"], inside))


def _set_arguments(guess: Guess, survey: Survey, action: PathSeen) -> None:
    """What stands beside an action's name in the action's own object are its arguments."""
    parent = action.path.rpartition(".")[0]
    if parent_of(action) in TOOLS:
        beside = [path for path in survey.paths if path.rpartition(".")[0] == parent and path != action.path]
        if beside:
            guess.event["arguments"] = sorted(beside)
