"""Guesses what each path of a survey holds: the list of turns, the session's id, what is said of it once."""

from __future__ import annotations

import re
from dataclasses import replace
from operator import itemgetter
from typing import Any

from ..fields.contents import plain_text
from ..fields.paths import as_list
from ..files.inputs import ALL
from ..mapped.reading import PLACES
from ..messages import agent_steps, copilot_events, part_kinds
from ..messages.dialects import CONTENTS, SPEAKERS
from ..messages.responses import is_exchange
from ..messages.turns import SIDES
from . import calls, span_fields
from .acts import is_of_actions
from .columns import set_column_shape
from .names import (
    DONE,
    GOALS,
    HEAD,
    LESSER,
    LISTS,
    LOOSE,
    NAMES,
    OUTCOME,
    REQUESTS,
    SAYS,
    SECRET,
    SESSION,
    SUBJECTS,
    TRUTHS,
    fields_named,
    first_field,
    is_head,
    is_label,
    is_numeric,
    is_one_word,
    is_speaker,
    is_time,
    is_utterance,
    parent_of,
    snake_case,
    time_formats,
    verdicts,
)
from .records import distinct_records, events_of, sessions_of, value_at
from .result import Guess
from .scores import Scores, scores_in
from .sessions import (
    TALKS,
    growing_session,
    latest,
    record_id,
    session_ids,
    session_of_turns,
    talk_ids,
    with_project,
)
from .shapes import (
    dialect_counts,
    is_of_one_side,
    is_questionnaire,
    item_pairs,
    list_pairs,
    set_event_shape,
    set_item_pairs,
    set_list_pairs,
    set_list_shape,
    set_message_shape,
    set_pair_shape,
    set_span_shape,
    set_table_shape,
    set_text_shape,
    speaker_fields,
)
from .speakers import party_fields
from .survey import PathSummary, Survey

SCORES = {"scores", "metrics", "evaluation", "outcomes", "feedback", "feedback_stats"}
"""Objects that hold outcomes."""
RATINGS = {"rating", "ratings", "score", "scores"}
"""Last words of the names of objects that hold ratings, such as `conversation_rating`."""
VALUES = ("value", "score", "avg", "mean")
"""Keys under which an object of a score has its value."""
STATISTICS = {
    *("count", "counts", "n", "num", "number", "total", "sum", "weight", "min", "max", "median", "ci"),
    *("std", "stdev", "stddev", "sd", "sem", "var", "variance"),
}
"""Words in the keys that a score's object has beside its value (VALUES), of what is no score of its own."""
LENGTH = 1.0
"""The most that its length adds to the score of a list."""
STEPS = 3
"""The action score of a list whose items have an action and its result."""
PLACEHOLDER = re.compile(r"<[\w-]+>")
"""What stands for no value."""
LABELS = 30
"""The most different values of a tag."""
RARE = 0.5
"""A list of turns that a smaller share of records has is not what is read, if records have a speaker and a
session."""


def guess_mapping(survey: Survey) -> Guess:
    """The likeliest mapping for a survey."""
    guess = Guess()
    if set_span_shape(guess, survey) or set_event_shape(guess, survey):
        _set_session(guess, survey)
        return guess
    lists = _lists(survey)
    score, path = _best_list(lists)
    if (pairs := list_pairs(survey)) and (score <= 0 or path in pairs.values()):
        if is_questionnaire(survey, pairs):
            return guess
        set_list_pairs(guess, survey, pairs)
        _set_session(guess, survey)
        return guess
    if score > 0 and is_of_one_side(survey, path):
        return guess
    if score > 0 and (fields := item_pairs(survey, path)):
        set_item_pairs(guess, survey, path, fields)
        _set_session(guess, survey)
        return guess
    if score > 0 and len(survey.paths[path].lengths) < RARE * len(survey.records) and _is_table(survey):
        score = 0.0
    if score > 0:
        others = [one for score, one in lists if score > 0]
        steps = _with_results(survey, path, others)
        set_list_shape(guess, survey, steps)
        chat = path if steps != path else _chat_of_steps(survey, path, others)
        if chat is not None and (position := _request_position(survey, chat)) is not None:
            guess.head["request"] = f"{chat}[{position}].content"
    elif set_message_shape(guess, survey) or (_is_table(survey) and set_table_shape(guess, survey)):
        pass
    elif survey.format == "text":
        if not set_text_shape(guess, survey):
            return guess  # a page in one piece is nobody's turn
    elif not any(
        shape(guess, survey) for shape in (set_text_shape, set_pair_shape, set_table_shape, set_column_shape)
    ):
        return guess
    if _leaves_out_speech(guess, survey):
        return Guess()
    _set_session(guess, survey)
    return guess


def _leaves_out_speech(guess: Guess, survey: Survey) -> bool:
    """Whether sentences stand in lists within other lists, to which no path leads, where a list has no texts;
    or in lists of turns there, where nobody is known who speaks in a list or table."""
    if guess.shape not in ("list", "table"):
        return False
    deep = [path for path, one in survey.paths.items() if path.count("[]") > 1 and is_utterance(one)]
    if guess.roles and not any(role.is_known for role in guess.roles):
        keys = {path.rpartition("[].")[0].rpartition(".")[2].lower() for path in deep}
        if not keys.isdisjoint(LISTS):
            return True
    if guess.shape == "list" and _is_rarely_said(guess, survey):
        return bool(deep)
    is_silent = guess.shape == "list" and "text" not in guess.event
    return is_silent and any(not path.startswith(f"{guess.at}[") for path in deep)


def _is_rarely_said(guess: Guess, survey: Survey) -> bool:
    """Whether few items of a list have a text and who says it, and none is an action."""
    if not {"role", "text"} <= guess.event.keys() or {"action", "command"} & guess.event.keys():
        return False
    fields = [survey.paths[path] for name in ("role", "text") for path in as_list(guess.event[name])]
    many = RARE * sum(survey.paths[guess.at or ""].lengths)
    return all(one.count - one.kinds["null"] < many for one in fields)


def lists_within_lists(survey: Survey) -> str | None:
    """Where the records of JSON files may be whose turns are in lists within two lists or more: at the lists
    around that of the turns, those with most texts."""
    texts = [one for path, one in survey.paths.items() if path.count("[]") > 1 and is_utterance(one)]
    if survey.format != "json" or not texts:
        return None
    text = max(texts, key=lambda one: one.characters)
    around = text.path.rpartition("[].")[0].rpartition("[].")[0]
    if isinstance(survey.sessions, str) and survey.sessions != ALL:
        around = f"{survey.sessions}[].{around}"
    return around if "[]" in around else None


def _best_list(lists: list[tuple[float, str]]) -> tuple[float, str]:
    """(score, path) of the best list; instead of a conversation that was liked less (LESSER), the best other
    one that comes within LENGTH of its score."""
    score, path = max(lists, key=itemgetter(0), default=(0.0, ""))
    if path.rpartition(".")[2] not in LESSER:
        return score, path
    like = [one for one in lists if one[0] > max(0.0, score - LENGTH)]
    return max(like, key=lambda one: (one[1].rpartition(".")[2] not in LESSER, one[0]), default=(score, path))


def _is_table(survey: Survey) -> bool:
    """Whether records have a speaker, a text and the id of a session that several of them share."""
    most = 0.9 * len(survey.records)
    has_text = any(is_utterance(one) for one in fields_named(survey.paths, NAMES["text"]))
    speakers = [one for one in speaker_fields(survey) if one.count > most]
    return has_text and any(session_ids(survey, one.path) for one in speakers)


def _is_talk(scores: Scores, survey: Survey) -> bool:
    """Whether what looks like scores is what several say to each other: texts, mostly with names twice."""
    values = [survey.paths[f"{scores.at}[].{value}"] for value in scores.values]
    if not all(value.has_only("text") and is_utterance(value) for value in values):
        return False
    lists = [items for record in survey.records if isinstance(items := value_at(record, scores.at), list)]
    names = [[str(value_at(item, scores.name)) for item in items] for items in lists if items]
    return sum(len(set(own)) < len(own) for own in names) > len(names) / 2


def _lists(survey: Survey) -> list[tuple[float, str]]:
    """(score as a list of turns, path) of the lists of objects, without lists in lists, a model's replies and
    a session's scores."""
    candidates, scores = [], scores_in(survey)
    scores_at = None if scores is None or _is_talk(scores, survey) else scores.at
    for path, one in survey.paths.items():
        parent = path.rpartition(".")[0]
        speakers = SPEAKERS if one.kinds["text"] else ("role",)  # a content may be a text or parts
        beside = (f"{parent}.{name}".lstrip(".") for name in speakers)
        is_content = one.key in CONTENTS and any(path in survey.paths for path in beside)
        is_content = is_content or f"{path}[].{part_kinds.KIND}" in survey.paths
        results = {
            f"{path}[].call_id",
            f"{parent}.tool_calls".lstrip("."),
        }  # beside calls, as AutoGen has them
        if not one.lengths or "[]" in path or is_content or results <= survey.paths.keys():
            continue
        if _is_list_of_actions(path, one, survey) or path == scores_at:
            continue
        inside = f"{path}[]."
        items = [p for p in survey.paths if p.startswith(inside)]
        if not items:
            continue
        lengths = [length for length in one.lengths if length]  # a run that ended at once has none
        if len(lengths) < RARE * len(one.lengths):
            lengths = one.lengths
        length = sum(lengths) / len(lengths)
        is_trace = length >= 1.5 or (length >= 1 and span_fields.are_nested(survey, inside))
        if is_trace and span_fields.fields_of(survey, inside):
            candidates.append((8.0 + min(length, 20) / 20, path))
            continue
        message_counts = dialect_counts(survey, path)
        if message_counts and max(length, message_counts.total() / len(survey.records)) >= 1.5:
            candidates.append((9.0 + min(length, 20) / 20, path))
            continue
        parts = f"{inside}role" in survey.paths and f"{inside}content[].text" in survey.paths
        text = parts or any(is_utterance(p) for p in fields_named(survey.paths, NAMES["text"], inside))
        role = any(is_speaker(p) for p in fields_named(survey.paths, NAMES["role"], inside))
        if not (text or role) and party_fields(survey, inside):
            text = role = True
        text = text or bool(item_pairs(survey, path))  # a talk beside them comes first
        action_score = _action_score(survey, inside)
        score = 3 * text + 3 * role + 1.5 * action_score + (one.key.lower() in LISTS) + min(length, 20) / 20
        share = len(one.lengths) / max(1, len(survey.records))
        several = length >= 1.5 or (text and role and calls.reply(survey, path) is not None)
        enough = several and (text or action_score)
        candidates.append((score * min(1.0, share + 0.2) if enough else 0.0, path))
    replies = {calls.reply(survey, path) for score, path in candidates if score > 0}
    if any(is_exchange(record) and isinstance(record["input"], str) for record in survey.records):
        replies.add("output")  # an exchange whose input is a text is a chat that needs no mapping
    return [one for one in candidates if one[1] not in replies]


def _action_score(survey: Survey, inside: str) -> int:
    """How much a list is one of actions, from 0 to STEPS: STEPS where its items have calls, or an action and
    its result."""
    acts = fields_named(survey.paths, NAMES["action"], inside)
    score = bool(acts) + 2 * bool(acts and fields_named(survey.paths, NAMES["result"], inside))
    return max(score, STEPS * (f"{inside}tool_calls" in survey.paths))


def _with_results(survey: Survey, path: str, others: list[str]) -> str:
    """The list of turns, or a list of steps beside it that has the result of each action, where the turns are
    messages of a chat that has results as a user's words."""
    inside = f"{path}[]."
    role = survey.paths.get(f"{inside}role")
    if (
        role is None
        or "tool" in role.values
        or _action_score(survey, inside) == STEPS
        or dialect_counts(survey, path)
    ):
        return path
    steps = [
        one
        for one in others
        if _action_score(survey, f"{one}[].") == STEPS
        and not fields_named(survey.paths, NAMES["role"], f"{one}[].")
    ]
    return steps[0] if len(steps) == 1 and _says_results(survey, path, steps[0]) else path


def _chat_of_steps(survey: Survey, steps: str, others: list[str]) -> str | None:
    """The chat beside steps of nobody that has their results as a user's words, and what was asked for."""
    if f"{steps}[].role" in survey.paths or not fields_named(survey.paths, NAMES["result"], f"{steps}[]."):
        return None
    chats = (one for one in others if one != steps and f"{one}[].role" in survey.paths)
    return next((one for one in chats if _says_results(survey, one, steps)), None)


def _says_results(survey: Survey, path: str, steps: str) -> bool:
    """Whether most user messages of a chat but the first are results of the steps; else people's words would
    be lost, which are in no step."""
    inside = f"{steps}[]."
    places = [one.path.removeprefix(inside) for one in fields_named(survey.paths, NAMES["result"], inside)]
    total = matches = 0
    for record in survey.records:
        chat, actions = value_at(record, path), value_at(record, steps)
        if not isinstance(chat, list) or not isinstance(actions, list):
            continue
        results = (value_at(step, place) for step in actions for place in places)
        outputs = {plain_text(one).strip() for one in results} - {""}  # type: ignore[arg-type]
        _, *later = [plain_text(one.get("content")) for one in chat if _is_user_message(one)] or [""]
        total += len(later)
        matches += sum(any(f"\n{one}\n" in f"\n{text.strip()}\n" for one in outputs) for text in later)
    return matches > RARE * total


def _request_position(survey: Survey, path: str) -> int | None:
    """The position of the first user message that is no demonstration, where it is the same in all chats;
    else None."""
    values = (value_at(record, path) for record in survey.records)
    chats = [value for value in values if isinstance(value, list) and value]
    first = {next((place for place, one in enumerate(chat) if _is_user_message(one)), None) for chat in chats}
    return first.pop() if len(first) == 1 else None


def _is_user_message(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") != "user":
        return False
    return not message.get("is_demo") and message.get("message_type") != "demonstration"


def _is_list_of_actions(path: str, field: PathSummary, survey: Survey) -> bool:
    """Whether a list of plain texts holds actions by its name (DONE), or single words under a name that says
    nothing."""
    sides, text = survey.paths.get(f"{path}[].turn"), survey.paths.get(f"{path}[].text")
    is_plain = sides is not None and text is not None and set(sides.values) <= set(SIDES)
    names_actions = not DONE.isdisjoint(re.split(r"[^a-z]+", field.key.lower()))
    return is_plain and (
        names_actions or (field.key.lower() not in LISTS and text is not None and is_one_word(text))
    )


def _set_session(guess: Guess, survey: Survey) -> None:
    """Set what is said once a session: its id, head, tags, outcomes and secrets."""
    mapped_paths = guess.mapped_paths
    heads = {
        path: field
        for path, field in survey.paths.items()
        if "[]" not in path
        and path.count(".") < 4
        and path not in mapped_paths
        and not field.has_only("list", "object")
    }
    if guess.shape == "spans" and not guess.each:
        guess.native_id = _shared_session(guess, survey)
        guess.joined = bool(guess.native_id)
    if guess.shape == "messages" and guess.at and not guess.each:
        _set_turns(guess, survey)
    if guess.shape != "table" and not guess.each and not guess.native_id:
        guess.native_id = _ids(heads, survey)
    if guess.shape == "list" and not guess.native_id:
        guess.native_id = growing_session(survey, str(guess.at))
    if not guess.native_id and (survey.per_file or guess.each or guess.shape == "table"):
        guess.native_id = _places(survey)
    _set_head(guess, survey, heads)
    columns, guess.tags = guess.tags, {}
    if survey.format == "text":
        heads.pop("file", None)
    _set_labels(guess, survey, heads)
    is_event = guess.each or (guess.shape == "table" and not guess.has_rounds)
    guess.scores = None if is_event else scores_in(survey)
    if guess.joined:
        guess.tags = {key: path for key, path in guess.tags.items() if _is_constant(path, guess, survey)}
    _name_success(guess, survey)
    _set_request(guess, heads)
    if guess.shape == "table" or guess.each:
        guess.tags = {key: path for key, path in columns.items() if path not in guess.head.values()}
        _drop_outcomes_of_events(guess, survey)


def _set_head(guess: Guess, survey: Survey, heads: dict[str, PathSummary]) -> None:
    """Set which fields say the session's condition, task, instance, agent and model."""
    said_once = heads
    if guess.each:
        said_once = {path: one for path, one in heads.items() if not _is_argument(path, survey)}
    for name, names in HEAD.items():
        depth = 3 if name == "agent_model" else 1
        candidates = [
            field
            for field in fields_named(said_once, names, depth=depth)
            if field.path not in guess.head.values()
        ]
        candidates = [field for field in candidates if not SAYS.search(field.key) and _fits_head(field, name)]
        field = first_field([field for field in candidates if is_head(field, name)])
        if field is not None and not _is_constant(field.path, guess, survey):
            continue
        if field is not None and (name == "instance" or field.path not in guess.native_id):
            guess.head[name] = field.path


def _set_labels(guess: Guess, survey: Survey, heads: dict[str, PathSummary]) -> None:
    """Sort what else is said once a session into secrets, outcomes and tags."""
    if survey.sides:
        guess.tags["side"] = "side"
    for path, field in heads.items():
        if survey.sides and path in ("side", "record"):
            continue
        if SECRET.search(path):
            guess.secrets.append(path)
        elif path in guess.native_id or path in guess.head.values() or not field.count:
            continue
        elif (
            (OUTCOME.search(field.key) or _is_scored(path))
            and not _is_statistic(path, survey)
            and field.has_only("number", "true or false", "text")
            and is_label(field)
        ):
            guess.outcomes[_unique_name(_outcome_name(path), guess.outcomes)] = path
        elif (
            field.has_only("text", "number", "true or false")
            and _is_varied_label(field, survey)
            and path.count(".") < 2
            and not path.startswith(f"{guess.reply}.")
        ):
            guess.tags[_unique_name(field.key, guess.tags)] = path


def _drop_outcomes_of_events(guess: Guess, survey: Survey) -> None:
    """Leave the outcomes that rows of events say of their session, and not of an action."""
    outcomes = {
        name: path
        for name, path in guess.outcomes.items()
        if _is_outcome(name, survey.paths[path]) and _is_constant(path, guess, survey, but_last=True)
    }
    of_actions = {path for path in outcomes.values() if is_of_actions(survey.paths[path], guess, survey)}
    guess.outcomes = {name: path for name, path in outcomes.items() if path not in of_actions}
    guess.uncertain_statuses += sorted(of_actions - {*guess.uncertain_statuses})
    readers = (agent_steps, copilot_events)
    if guess.each and any(reader.messages(one) for reader in readers for one in survey.records):
        guess.outcomes = {}  # such events say how an action ended, and nothing of the run


def _fits_head(field: PathSummary, head: str) -> bool:
    """Whether a key ends in a name of that head field or its id (`agent_1` does not end in `agent`), and is
    not in an object of ratings."""
    key = snake_case(field.key)
    names = {end for name in HEAD[head] for end in (name, f"{name}_id")}
    others = HEAD["instance"] if head != "instance" else ()
    is_rating = (
        _is_scored(field.path) or snake_case(field.path.rpartition(".")[0]).rpartition("_")[2] in RATINGS
    )
    return f"_{key}".endswith(tuple(f"_{name}" for name in names)) and key not in others and not is_rating


def _is_argument(path: str, survey: Survey) -> bool:
    """Whether a field is an argument of some actions, such as the agent that one asks, and not what all say
    of their model."""
    holder = path.split(".")[0]
    return holder in NAMES["arguments"] and survey.paths[path].count < survey.paths[holder].count


def _is_outcome(name: str, field: PathSummary) -> bool:
    """Whether a column of a table of events may be an outcome: numbers, or verdicts under a name for success;
    other words are each event's status."""
    return is_numeric(field) or (name.lower() in (*GOALS, "success") and bool(verdicts(field)))


def _is_constant(path: str, guess: Guess, survey: Survey, *, but_last: bool = False) -> bool:
    """Whether a field says the same in all records of a session, or in all but the last one; a value such as
    `<synthetic>`, of a message that no model wrote, aside."""
    if guess.shape != "table" and not guess.each and not guess.joined:
        return True
    for records in sessions_of(survey, guess.native_id):
        values = [str(value) for record in records if (value := value_at(record, path)) is not None]
        names = {value for value in values[: -1 if but_last else None] if not PLACEHOLDER.fullmatch(value)}
        if len(names) > 1:
            return False
    return True


def _set_request(guess: Guess, heads: dict[str, PathSummary]) -> None:
    """Set what the session was asked for, where only agents speak in it."""
    requests = [
        one
        for one in fields_named(heads, REQUESTS)
        if one.has_only("text") and is_utterance(one) and one.mean_length > 15
    ]
    only_agents = guess.shape == "list" and all(role.kind == "agent" for role in guess.roles)
    if requests and only_agents and not guess.is_alternating:
        guess.head["request"] = requests[0].path
        guess.tags = {name: path for name, path in guess.tags.items() if path != requests[0].path}


def _is_scored(path: str) -> bool:
    """Whether it stands within an object of scores."""
    return any(part in SCORES for part in path.split(".")[:-1])


def _outcome_name(path: str) -> str:
    """The name of the outcome at a path: its key, or that of the object whose value it is."""
    *above, key = path.replace("\\", "").split(".")
    return above[-1] if above and key in VALUES and above[-1] not in SCORES else key


def _is_statistic(path: str, survey: Survey) -> bool:
    """Whether it is a count or the like of a score whose value is in another field of the object."""
    above, _, key = path.rpartition(".")
    counts = not STATISTICS.isdisjoint(snake_case(key).split("_"))
    return counts and _is_scored(above) and any(f"{above}.{name}" in survey.paths for name in VALUES)


def _name_success(guess: Guess, survey: Survey) -> None:
    """Add as `success` the first outcome by GOALS that says whether the goal was reached, if there is none of
    this name."""
    order = {name: place for place, name in enumerate(GOALS)}
    binary = [
        (order[name.lower()], path)
        for name, path in guess.outcomes.items()
        if name.lower() in order and _is_goal(name.lower(), survey.paths[path])
    ]
    if binary and "success" not in guess.outcomes and not survey.sides:
        guess.outcomes["success"] = min(binary)[1]


def _is_goal(name: str, field: PathSummary) -> bool:
    """Whether it says in a word or a number if the goal was reached."""
    if name in LOOSE:
        return bool(verdicts(field)) and "." not in field.path
    return set(field.values) <= TRUTHS or bool(verdicts(field))


def _is_varied_label(field: PathSummary, survey: Survey) -> bool:
    """Whether it is a label that is not the same everywhere."""
    few = not field.has_more_values and len(field.values) <= LABELS
    return is_label(field) and few and (len(field.values) > 1 or len(survey.records) == 1)


def _unique_name(key: str, names: dict[str, str]) -> str:
    return next(one for n in range(1, 1000) if (one := key if n == 1 else f"{key}_{n}") not in names)


def _record_ids(heads: dict[str, PathSummary], survey: Survey) -> list[str]:
    """The field that tells apart records with several sides each, else their number."""
    n = len(survey.records) / len(survey.sides or [0])
    for field in fields_named(heads, SESSION):
        if (
            field.has_only("text", "number")
            and len({str(value_at(record, field.path)) for record in survey.records}) == n
        ):
            return [field.path]
    return ["record"]


def _places(survey: Survey) -> list[str]:
    """Paths that tell apart files of one name: the nearest folder that does, alone or with the file's
    name."""
    stems = [path.stem for path in survey.files]
    if len(set(stems)) == len(stems):
        return []
    for level, place in enumerate(PLACES[1:]):
        names = [path.absolute().parents[level].name for path in survey.files]
        for keys, paths in ((names, [place]), (list(zip(names, stems, strict=True)), [place, "$file"])):
            if len(set(keys)) == len(stems):
                return paths
    return []


def _set_turns(guess: Guess, survey: Survey) -> None:
    """Set that records are turns of sessions, and the time of one, where they are and it can be read, or
    their numbers tell the order."""
    if guess.native_id or survey.sides:
        return
    times = fields_named(survey.paths, NAMES["time"], depth=0)
    field, formats = first_field([one for one in times if is_time(one)]), list[str]()
    texts = [one for one in times if one.has_only("text")]
    if field is None and texts:
        field = texts[0]
        formats = time_formats(value_at(record, field.path) for record in survey.records)
        if len(formats) != 1:
            field, formats = None, []
            if not any(one.has_only("number") for one in fields_named(survey.paths, NAMES["seq"], depth=0)):
                return
    when = None if field is None else field.path
    some = calls.calls_in(survey, str(guess.at), guess.reply)
    own_id = record_id(survey, some, when)
    if (once := latest(survey, own_id)) is not survey:
        some = calls.calls_in(once, str(guess.at), guess.reply)
    if session := session_of_turns(once, some, when, formats):
        guess.native_id, guess.joined = with_project(session[0], survey), True
        guess.record_id = own_id if own_id not in guess.native_id else None
        guess.growing = False  # turns that repeat all before them are joined, too
        guess.turn_time, guess.time_formats = when, formats


def _shared_session(guess: Guess, survey: Survey) -> list[str]:
    """Paths of what names a session of several traces in a file, such as those of its turns; none where each
    has a session of its own, or where several traces have spans of one id."""
    if _has_ids_of_traces(guess, survey):
        return []
    for one in talk_ids(survey):
        many = [own for own in sessions_of(survey, [one.path]) if value_at(own[0], one.path)]
        if any(len(own) > 1 for own in many):
            return with_project(one.path, survey)
    return []


def _has_ids_of_traces(guess: Guess, survey: Survey) -> bool:
    """Whether the ids of spans are those of their trace alone, such as numbers."""
    inside = f"{guess.at}[]."
    path = as_list(guess.spans.get("id"))[:1]
    once = replace(survey, records=distinct_records(survey))
    spans = events_of(once, guess.at or "", inside) if path else ()
    ids = [value for span in spans if (value := value_at(span, path[0].removeprefix(inside))) is not None]
    return len(set(map(str, ids))) < len(ids)


def _ids(heads: dict[str, PathSummary], survey: Survey) -> list[str]:
    """Fields that tell the records apart: one, or as few as it takes."""
    if survey.sides:
        return [*_record_ids(heads, survey), "side"]
    records = distinct_records(survey)
    names = (*SESSION, "index", "idx", "number", "response_id", *SUBJECTS)
    everywhere = [field for field in heads.values() if field.count == len(survey.records)]
    likely = [
        *fields_named(heads, names),
        *(field for field in fields_named(heads, TALKS, depth=3) if snake_case(field.key) in TALKS),
    ]
    candidates = [field for field in likely if field.has_only("text", "number") and field in everywhere]
    if len(records) == 1:
        candidates = [field for field in candidates if not _may_be_nested_id(field)]
    for field in candidates:
        if _tell_apart([field.path], records) and (field.mean_length <= 100):
            return [field.path]
    paths: list[str] = []
    others = [
        field
        for field in fields_named(heads, ("trial", "run", "seed", "epoch", "attempt", "round", *HEAD["task"]))
    ]
    others += fields_named(heads, (*HEAD["agent"], *HEAD["agent_model"]))
    for field in [*candidates[:1], *others] if candidates else []:
        if field not in everywhere or field.path in paths:
            continue
        paths.append(field.path)
        if _tell_apart(paths, records):
            return paths
    return []


def _may_be_nested_id(field: PathSummary) -> bool:
    """Whether an id may be that of an object within the record, as one record alone does not tell."""
    is_nested = "." in field.path and snake_case(parent_of(field)) not in SESSION
    return is_nested and snake_case(field.key) in (*NAMES["id"], "name")


def _tell_apart(paths: list[str], records: list[dict[str, Any]]) -> bool:
    return len({tuple(str(value_at(record, path)) for path in paths) for record in records}) == len(records)
