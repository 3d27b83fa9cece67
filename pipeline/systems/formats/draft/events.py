"""Guesses which paths are the speaker, the text, the action and so on of a survey's events."""

from __future__ import annotations

import re
from dataclasses import replace

from ..fields.paths import getter
from ..fields.roles import is_call, role_of, roles_of
from .names import (
    BEGUN,
    HEAD,
    NAMES,
    SPEECH,
    TOOL_NAMES,
    TOOLS,
    fields_named,
    first_field,
    is_label,
    is_time,
    is_tool_name,
    is_utterance,
    parent_of,
    snake_case,
)
from .records import events_of, items_in, value_at
from .result import Guess, Take
from .speakers import FEW, TYPES, sentence_fields, set_roles, set_senders_of_kinds, speaker_fields
from .survey import PathSummary, Survey
from .times import set_time_field

KINDS = {"type", "subtype", "kind", "event"}
"""Last words of the names of fields that say of what kind an event is."""
CHANGED = {"clean", "cleaned", "processed", "preprocessed", "normalized", "tokenized", "lemmatized", "masked"}
"""Words in the names of fields with what was said after changes."""
UNCHANGED = {"original", "raw", "unprocessed"}
"""Words in the names of fields with what was said before."""
SERVICE = (
    r"^(?:(?:channel|group)_(?:join|leave|topic|purpose|name|archive|unarchive|convert_to_private)"
    r"|(?:un)?pinned_item|bot_(?:add|remove)|reminder_add|tombstone"
    r"|system_(?:(?:join|leave|add|remove)_\w+|(?:header|purpose|displayname)_change)"
    r"|GuildMemberJoin|ChannelPinnedMessage|Recipient(?:Add|Remove)|Channel(?:Name|Icon)Change|ThreadCreated"
    r"|UserPremiumGuild\w*|systemEventMessage)$"
)
"""Kinds of what Slack, Mattermost, Discord and Teams write under people's names, such as that they joined."""
LABELS_OF_RESULTS = ("observation", "observation_type", "result_type")


def set_event_fields(guess: Guess, survey: Survey, inside: str) -> None:
    """Set the fields of `[event]`."""
    mapped_paths = set[str]()

    def take(name: str, candidates: list[PathSummary]) -> PathSummary | None:
        field = first_field([c for c in candidates if c.path not in mapped_paths])
        if field is not None:
            guess.event[name] = field.path
            mapped_paths.add(field.path)
        return field

    total = items_in(survey, inside.removesuffix("[].")) if inside else len(survey.records)
    actions = _actions(survey, inside)
    names = [field for field in actions if is_tool_name(field)]
    lines = [field for field in actions if field not in names]
    speakers = speaker_fields(survey, inside, names, total)
    role = take("role", speakers.candidates)
    text = [
        field
        for field in fields_named(survey.paths, NAMES["text"], inside)
        if is_utterance(field) and field not in lines
    ]
    text = [field for field in text if parent_of(field) not in {*TOOLS, *NAMES["result"]}] or (
        [] if actions else text
    )
    text.sort(key=lambda field: _is_changed(field, text))
    if role is None and (first := first_field(text)) and set_senders_of_kinds(guess, survey, inside):
        guess.event["text"] = first.path
    elif role is None:
        _set_without_speaker(
            guess,
            survey,
            inside,
            names,
            lines,
            [field for field in text if field.path not in mapped_paths],
            take,
        )
    else:
        type_names = _type_names(survey, inside, role, text) if speakers.are_types else []
        set_roles(guess, survey, inside, role, type_names)
        if speakers.are_types:
            _set_unknown_kinds(guess, role)
        take("action", [*names, *type_names])
        if role in speakers.players and not text:
            _set_moves(guess, survey, inside, take)
        first = take("text", text or sentence_fields(survey, inside))
        if first is not None:
            rest = [field for field in text if field.path not in mapped_paths]
            _set_texts(guess, survey, inside, role, first, rest, mapped_paths)
        if "action" in guess.event:
            _set_actions(guess, survey, inside, role, take)
    _set_service_notes(guess, survey, inside)
    set_time_field(guess, survey, inside, total, take)


def _set_service_notes(guess: Guess, survey: Survey, inside: str) -> None:
    """Make notes of what a platform writes under people's names."""
    for field in fields_named(survey.paths, (*KINDS,), inside, depth=0):
        is_free = guess.notes is None and field.path not in guess.mapped_paths
        if is_free and any(re.search(SERVICE, value) for value in field.values):
            guess.notes = field.path, [f"~{SERVICE}"]


def _is_changed(field: PathSummary, fields: list[PathSummary]) -> bool:
    """Whether a field has what another one of its name has as it was said, as `clean_text` has of `text`."""
    own = {*snake_case(field.key).split("_")}
    others = ({*snake_case(one.key).split("_")} - UNCHANGED for one in fields if one is not field)
    return not own.isdisjoint(CHANGED) and own - CHANGED in others


def _actions(survey: Survey, inside: str) -> list[PathSummary]:
    """Fields that name what was done."""
    fields = fields_named(survey.paths, NAMES["action"], inside)
    fields += [field for field in fields_named(survey.paths, TOOL_NAMES, inside) if parent_of(field) in TOOLS]
    # Rasa's `utter_action` names what a message says.
    return [one for one in fields if one.has_only("text") and not snake_case(one.key).startswith("utter")]


def _argument_fields(survey: Survey, inside: str) -> list[PathSummary]:
    """Fields of what something was done with: an `input`, and not its tokens or channel."""
    fields = fields_named(survey.paths, NAMES["arguments"], inside)
    keys = [snake_case(one.key) for one in fields]
    return [
        one
        for key, one in zip(keys, fields, strict=True)
        if key in NAMES["arguments"] or "input" not in key.split("_")
    ]


def _set_without_speaker(
    guess: Guess,
    survey: Survey,
    inside: str,
    names: list[PathSummary],
    lines: list[PathSummary],
    text: list[PathSummary],
    take: Take,
) -> None:
    """Set the fields of events that name no speaker: an agent's steps, or what two say in turn."""
    guess.constant_role = "agent"
    _set_steps(guess, survey, inside, names, lines, take)
    first = take("text", text)
    if first and "action" not in guess.event and _is_of_person(first):
        guess.constant_role = "user"
    if first and inside and (model := _model_beside(survey, inside, first)):
        guess.constant_role = None
        take("role", [model])
        roles = roles_of(model.values.items())
        guess.roles = [replace(one, kind="agent", is_known=True) for one in roles]
    elif first and not {"action", "command", "result"} & set(guess.event) and inside:
        guess.constant_role = None
        guess.is_alternating = True
        guess.roles = roles_of((side, 0) for side in ("user", "assistant"))


def _model_beside(survey: Survey, inside: str, text: PathSummary) -> PathSummary | None:
    """The field that says which model wrote the text of each item of a list."""
    models = [
        one for one in fields_named(survey.paths, HEAD["agent_model"], inside, depth=0) if is_label(one)
    ]
    return first_field([one for one in models if one.has_only("text") and one.count >= text.count])


def _is_of_person(text: PathSummary) -> bool:
    """Whether its name says that a person said it: `user_message`."""
    speaker, _, rest = snake_case(text.key).partition("_")
    role = role_of(speaker)
    return bool(rest) and role.is_known and role.kind == "human"


def _set_unknown_kinds(guess: Guess, role: PathSummary) -> None:
    """Where some types of events say whose they are, the other types are the environment's."""
    if any(one.is_known for one in guess.roles):
        guess.roles = [
            one if one.is_known or one.name not in role.values else replace(one, kind="environment")
            for one in guess.roles
        ]


def _set_texts(
    guess: Guess,
    survey: Survey,
    inside: str,
    role: PathSummary,
    text: PathSummary,
    rest: list[PathSummary],
    mapped_paths: set[str],
) -> None:
    """Set what is said, calls that are written in it, and what stands in its place; `rest` are other fields
    of texts."""
    if "action" not in guess.event:
        _set_written_calls(guess, survey, inside, role.path, text.path)
    else:
        guess.event["text"] = [text.path, *(one.path for one in rest[:1])] if rest else text.path
    if "action" not in guess.event:
        has_substitute = not inside and _set_substitute(guess, survey, text, mapped_paths)
        _set_notes(guess, survey, inside, text, has_substitute)


def _set_actions(guess: Guess, survey: Survey, inside: str, role: PathSummary, take: Take) -> None:
    """Set what belongs to actions: which of them only say something, arguments, results and who acts."""
    actions = survey.paths[str(guess.event["action"])].values
    guess.speech = [name for name in actions if name.lower() in SPEECH]
    if "arguments" not in guess.event:
        take("arguments", _argument_fields(survey, inside))
    guess.result_label = _result_label(guess, survey, inside, role.path)
    _set_call_roles(guess, survey, inside, role.path)


def _set_written_calls(guess: Guess, survey: Survey, inside: str, role: str, text: str) -> None:
    """Set actions where the texts of roles such as `function_call` are calls as JSON."""
    name, arguments = survey.paths.get(f"{text}.name"), survey.paths.get(f"{text}.arguments")
    if (
        name
        and arguments
        and is_tool_name(name)
        and all(map(is_call, _actors(survey, inside, role, name.path)))
    ):
        guess.event |= {"action": name.path, "arguments": arguments.path}


def _actors(survey: Survey, inside: str, role: str, action: str) -> set[str]:
    """The roles of the events in which something is done."""
    action_of, actor_of = (getter(path.removeprefix(inside)) for path in (action, role))
    return {
        str(actor_of(event))
        for event in events_of(survey, inside.removesuffix("[]."), inside)
        if action_of(event)
    }


def _set_call_roles(guess: Guess, survey: Survey, inside: str, role: str) -> None:
    """Set the roles, such as `tool_call` or `action`, that are names of calls and do something: the
    agent's."""
    actors = _actors(survey, inside, role, str(guess.event["action"]))
    guess.call_roles = [
        one.name
        for one in guess.roles
        if one.name in actors
        and (is_call(one.name) if one.kind == "environment" else one.name.lower() in TOOLS)
    ]
    guess.roles = [replace(one, kind="agent") if one.name in guess.call_roles else one for one in guess.roles]


def _result_label(guess: Guess, survey: Survey, inside: str, role: str) -> str | None:
    """A label that results have and actions have not, and that stands, but for the environment's events, only
    with roles that act."""
    action = str(guess.event["action"])
    action_of, actor_of = (getter(path.removeprefix(inside)) for path in (action, role))
    events = list(events_of(survey, inside.removesuffix("[]."), inside))
    actors = _actors(survey, inside, role, action)
    around = {one.name for one in guess.roles if one.kind == "environment"}
    for one in fields_named(survey.paths, LABELS_OF_RESULTS, inside, depth=0):
        label_of = getter(one.path.removeprefix(inside))
        results = [event for event in events if label_of(event) is not None]
        apart = not any(action_of(event) is not None for event in results)
        owners = {str(actor_of(event)) for event in results} - around
        if is_label(one) and one.has_only("text") and apart and owners and owners <= actors:
            return one.path
    return None


def _type_names(survey: Survey, inside: str, role: PathSummary, text: list[PathSummary]) -> list[PathSummary]:
    """The field `name`, as that of what was done, where types of events include calls and no event with a
    name has a text; else none."""
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


def _set_substitute(guess: Guess, survey: Survey, text: PathSummary, mapped_paths: set[str]) -> bool:
    """Set what stands where records have no text, such as the task that is begun; whether there is any."""
    empty = any(value_at(record, text.path) in (None, "") for record in survey.records)
    substitutes = [
        one for one in fields_named(survey.paths, BEGUN) if one.path not in mapped_paths and is_utterance(one)
    ]
    if empty and substitutes:
        guess.event["text"] = [text.path, substitutes[0].path]
    return empty and bool(substitutes)


def _set_notes(guess: Guess, survey: Survey, inside: str, text: PathSummary, has_substitute: bool) -> None:
    """Set which events without a text are notes: those with certain values of a field.

    The field says of what kind an event is (KINDS), or is any where texts have a substitute. No event with a
    text has one of these values, and none of them is the name of a call.
    """
    events = list(events_of(survey, inside.removesuffix("[]."), inside))
    text_of = getter(text.path.removeprefix(inside))
    empty = [event for event in events if text_of(event) in (None, "")]
    others = [event for event in events if text_of(event) not in (None, "")]
    for path, field in survey.paths.items() if empty else ():
        is_candidate = (
            path.startswith(inside) and "[]" not in path[len(inside) :] and path not in guess.mapped_paths
        )
        is_candidate = is_candidate and (has_substitute or snake_case(field.key).rpartition("_")[2] in KINDS)
        if (
            not is_candidate
            or not field.has_only("text")
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


def _set_steps(
    guess: Guess, survey: Survey, inside: str, names: list[PathSummary], lines: list[PathSummary], take: Take
) -> None:
    """Set the fields of an agent's steps: what was done, and what came back."""
    if names:
        action = take("action", names)
        if not take("arguments", _argument_fields(survey, inside)) and action:
            _set_arguments(guess, survey, action)
    elif lines:
        take("command", lines)
    take("result", fields_named(survey.paths, NAMES["result"], inside))
    take("error", [one for one in fields_named(survey.paths, NAMES["error"], inside) if one.has_only("text")])


def _set_moves(guess: Guess, survey: Survey, inside: str, take: Take) -> None:
    """Set what players and drivers did, by the type of events where no other field says it, and its
    result."""
    candidates = [one for one in fields_named(survey.paths, TYPES, inside, depth=0) if is_tool_name(one)]
    if "action" not in guess.event and (move := take("action", candidates)):
        guess.by_values["action"] = move.path
    take("result", fields_named(survey.paths, NAMES["result"], inside))


def _set_arguments(guess: Guess, survey: Survey, action: PathSummary) -> None:
    """Set as arguments all fields beside the action's name in an object of the action's own."""
    parent = action.path.rpartition(".")[0]
    if parent_of(action) in TOOLS:
        beside = [path for path in survey.paths if path.rpartition(".")[0] == parent and path != action.path]
        if beside:
            guess.event["arguments"] = sorted(beside)
