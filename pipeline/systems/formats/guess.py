"""Which path of a survey is what: the list of turns, the session, what is said of it once."""

from __future__ import annotations

import re
from operator import itemgetter
from typing import Any

from . import guess_calls, guess_spans
from .contents import plain
from .guess_acts import is_of_actions
from .guess_columns import of_columns
from .guess_made import Guess
from .guess_names import (
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
    TRUTHS,
    first_one,
    is_head,
    is_label,
    is_named,
    is_numeric,
    is_said,
    is_speaker,
    named,
    parent_of,
    spelled,
    verdicts,
)
from .guess_records import distinct, sessions_of, value_at
from .guess_sessions import TALKS, session_ids
from .guess_shapes import in_dialect, of_list, of_messages, of_pairs, of_spans, of_table, of_text
from .guess_speakers import parties
from .mapped_paths import PLACES
from .responses import is_exchange
from .survey import PathSeen, Survey
from .turns import SIDES

SCORES = {"scores", "metrics", "evaluation", "outcomes", "feedback", "feedback_stats"}
"""Objects that hold outcomes."""
RATINGS = {"rating", "ratings", "score", "scores"}
"""What the names of objects end in that hold ratings: `conversation_rating`."""
VALUES = ("value", "score", "avg", "mean")
"""Where an object of a score has its value."""
STATISTICS = {
    *("count", "counts", "n", "num", "number", "total", "sum", "weight", "min", "max", "median", "ci"),
    *("std", "stdev", "stddev", "sd", "sem", "var", "variance"),
}
"""What a score's object has beside its value that is no score of its own."""
LENGTH = 1.0
"""By so much at most a list comes before another for its length alone."""
STEPS = 3
"""How much is done in a list whose items have an action and what came of it."""
LABELS = 30
"""More different values than that are no groups."""
RARE = 0.5
"""A list that fewer records have is not what they are, if who speaks and the session stand in each."""


def guess(survey: Survey) -> Guess:
    """The likeliest reading of a survey."""
    reading = Guess()
    if of_spans(reading, survey):
        _of_session(reading, survey)
        return reading
    lists = _lists(survey)
    score, path = _best(lists)
    if score > 0 and len(survey.paths[path].lengths) < RARE * len(survey.records) and _is_table(survey):
        score = 0.0
    if score > 0:
        steps = _with_results(survey, path, [one for score, one in lists if score > 0])
        of_list(reading, survey, steps)
        if steps != path and (position := _request_position(survey, path)) is not None:
            reading.head["request"] = f"{path}[{position}].content"
    elif of_messages(reading, survey) or (_is_table(survey) and of_table(reading, survey)):
        pass
    elif survey.format == "text":
        if not of_text(reading, survey):
            return reading  # a page in one piece is nobody's turn
    elif not any(shape(reading, survey) for shape in (of_text, of_pairs, of_table, of_columns)):
        return reading
    _of_session(reading, survey)
    return reading


def _best(lists: list[tuple[float, str]]) -> tuple[float, str]:
    """The list with the highest score; of what was liked less, the one beside it that is like it but for its
    length."""
    score, path = max(lists, key=itemgetter(0), default=(0.0, ""))
    if path.rpartition(".")[2] not in LESSER:
        return score, path
    like = [one for one in lists if one[0] > max(0.0, score - LENGTH)]
    return max(like, key=lambda one: (one[1].rpartition(".")[2] not in LESSER, one[0]), default=(score, path))


def _is_table(survey: Survey) -> bool:
    """Whether records have a speaker, a text and a session that comes again."""
    most = 0.9 * len(survey.records)
    has_text = any(is_said(one) for one in named(survey.paths, NAMES["text"]))
    speakers = [one for one in named(survey.paths, NAMES["role"]) if is_speaker(one) and one.count > most]
    return has_text and any(session_ids(survey, one.path) for one in speakers)


def _lists(survey: Survey) -> list[tuple[float, str]]:
    """(how like a list of turns, path) of lists of objects, less those within lists and what came back."""
    candidates = []
    for path, one in survey.paths.items():
        parent = path.rpartition(".")[0]
        is_content = one.key == "content" and f"{parent}.role".lstrip(".") in survey.paths
        if not one.lengths or "[]" in path or is_content or _is_list_of_actions(path, one, survey):
            continue
        inside = f"{path}[]."
        items = [p for p in survey.paths if p.startswith(inside)]
        if not items:
            continue
        length = sum(one.lengths) / len(one.lengths)
        if length >= 1.5 and guess_spans.fields_of(survey, inside):
            candidates.append((8.0 + min(length, 20) / 20, path))
            continue
        message_counts = in_dialect(survey, path)
        if message_counts and max(length, message_counts.total() / len(survey.records)) >= 1.5:
            candidates.append((9.0 + min(length, 20) / 20, path))
            continue
        parts = f"{inside}role" in survey.paths and f"{inside}content[].text" in survey.paths
        text = parts or any(is_said(p) for p in named(survey.paths, NAMES["text"], inside))
        role = any(is_speaker(p) for p in named(survey.paths, NAMES["role"], inside))
        if not (text or role) and parties(survey, inside):
            text = role = True
        action_score = _action_score(survey, inside)
        score = 3 * text + 3 * role + 1.5 * action_score + (one.key.lower() in LISTS) + min(length, 20) / 20
        share = len(one.lengths) / max(1, len(survey.records))
        several = length >= 1.5 or (text and role and guess_calls.reply(survey, path) is not None)
        enough = several and (text or action_score)
        candidates.append((score * min(1.0, share + 0.2) if enough else 0.0, path))
    replies = {guess_calls.reply(survey, path) for score, path in candidates if score > 0}
    if any(is_exchange(record) and isinstance(record["input"], str) for record in survey.records):
        replies.add("output")  # of a question that is no list: read as a chat without a mapping
    return [one for one in candidates if one[1] not in replies]


def _action_score(survey: Survey, inside: str) -> int:
    """How much is done in a list: STEPS where its items have calls, or an action and what came of it."""
    acts = named(survey.paths, NAMES["action"], inside)
    score = bool(acts) + 2 * bool(acts and named(survey.paths, NAMES["result"], inside))
    return max(score, STEPS * (f"{inside}tool_calls" in survey.paths))


def _with_results(survey: Survey, path: str, others: list[str]) -> str:
    """A list of turns, or the one of steps beside it that has what came of each action, where the turns are
    messages of a chat in which a result stands as somebody's words."""
    inside = f"{path}[]."
    role = survey.paths.get(f"{inside}role")
    if (
        role is None
        or "tool" in role.values
        or _action_score(survey, inside) == STEPS
        or in_dialect(survey, path)
    ):
        return path
    steps = [
        one
        for one in others
        if _action_score(survey, f"{one}[].") == STEPS and not named(survey.paths, NAMES["role"], f"{one}[].")
    ]
    return steps[0] if len(steps) == 1 and _says_results(survey, path, steps[0]) else path


def _says_results(survey: Survey, path: str, steps: str) -> bool:
    """Whether most of what a person says in a chat, once they asked, is what came of the steps: what people
    said in between is in no step."""
    inside = f"{steps}[]."
    places = [one.path.removeprefix(inside) for one in named(survey.paths, NAMES["result"], inside)]
    total = matches = 0
    for record in survey.records:
        chat, actions = value_at(record, path), value_at(record, steps)
        if not isinstance(chat, list) or not isinstance(actions, list):
            continue
        results = (value_at(step, place) for step in actions for place in places)
        outputs = {plain(one).strip() for one in results} - {""}  # type: ignore[arg-type]
        _, *later = [plain(one.get("content")) for one in chat if _is_user_message(one)] or [""]
        total += len(later)
        matches += sum(any(f"\n{one}\n" in f"\n{text.strip()}\n" for one in outputs) for text in later)
    return matches > RARE * total


def _request_position(survey: Survey, path: str) -> int | None:
    """Which message of each record's chat is a person's first one, demonstrations aside."""
    chats = [value for record in survey.records if isinstance(value := value_at(record, path), list)]
    first = {next((place for place, one in enumerate(chat) if _is_user_message(one)), None) for chat in chats}
    return first.pop() if len(first) == 1 else None


def _is_user_message(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") != "user":
        return False
    return not message.get("is_demo") and message.get("message_type") != "demonstration"


def _is_list_of_actions(path: str, field: PathSeen, survey: Survey) -> bool:
    """Whether a list has plain texts that its name says were done, or names where it says nothing."""
    sides, text = survey.paths.get(f"{path}[].turn"), survey.paths.get(f"{path}[].text")
    is_plain = sides is not None and text is not None and set(sides.values) <= set(SIDES)
    names_actions = not DONE.isdisjoint(re.split(r"[^a-z]+", field.key.lower()))
    return is_plain and (
        names_actions or (field.key.lower() not in LISTS and text is not None and is_named(text))
    )


def _of_session(reading: Guess, survey: Survey) -> None:
    """What is said once a session: its id, head, tags and outcomes."""
    mapped_paths = reading.used
    heads = {
        path: field
        for path, field in survey.paths.items()
        if "[]" not in path
        and path.count(".") < 4
        and path not in mapped_paths
        and not field.only("list", "object")
    }
    if reading.shape != "table" and not reading.each:
        reading.native_id = _ids(heads, survey)
    if (not reading.native_id and survey.per_file) or (reading.shape == "table" and not reading.native_id):
        reading.native_id = _places(survey)
    for name, names in HEAD.items():
        depth = 3 if name == "agent_model" else 1
        candidates = [
            field for field in named(heads, names, depth=depth) if field.path not in reading.head.values()
        ]
        candidates = [field for field in candidates if not SAYS.search(field.key) and _fits_head(field, name)]
        field = first_one([field for field in candidates if is_head(field, name)])
        if field is not None and not _is_constant(field.path, reading, survey):
            continue
        if field is not None and (name == "instance" or field.path not in reading.native_id):
            reading.head[name] = field.path
    columns = reading.tags
    reading.tags = {}
    if survey.format == "text":
        heads.pop("file", None)
    if survey.sides:
        reading.tags["side"] = "side"
    for path, field in heads.items():
        if survey.sides and path in ("side", "record"):
            continue
        if SECRET.search(path):
            reading.secrets.append(path)
        elif path in reading.native_id or path in reading.head.values() or not field.count:
            continue
        elif (
            (OUTCOME.search(field.key) or _is_scored(path))
            and not _is_beside(path, survey)
            and field.only("number", "true or false", "text")
            and is_label(field)
        ):
            reading.outcomes[_unique(_outcome(path), reading.outcomes)] = path
        elif (
            field.only("text", "number", "true or false")
            and _is_varied_label(field, survey)
            and path.count(".") < 2
            and not path.startswith(f"{reading.reply}.")
        ):
            reading.tags[_unique(field.key, reading.tags)] = path
    _name_success(reading, survey)
    _set_request(reading, heads)
    if reading.shape == "table" or reading.each:
        reading.tags = {key: path for key, path in columns.items() if path not in reading.head.values()}
        reading.outcomes = {
            name: path
            for name, path in reading.outcomes.items()
            if _is_outcome(name, survey.paths[path]) and _is_constant(path, reading, survey, but_last=True)
        }
        of_actions = {
            path for path in reading.outcomes.values() if is_of_actions(survey.paths[path], reading, survey)
        }
        reading.outcomes = {name: path for name, path in reading.outcomes.items() if path not in of_actions}
        reading.acted += sorted(of_actions - {*reading.acted})


def _fits_head(field: PathSeen, head: str) -> bool:
    """Whether a key ends in a name of that head or its id, and lies in no object of ratings: `agent_1` is
    another thing than `agent`."""
    key = spelled(field.key)
    names = {end for name in HEAD[head] for end in (name, f"{name}_id")}
    others = HEAD["instance"] if head != "instance" else ()
    is_rating = _is_scored(field.path) or spelled(field.path.rpartition(".")[0]).rpartition("_")[2] in RATINGS
    return f"_{key}".endswith(tuple(f"_{name}" for name in names)) and key not in others and not is_rating


def _is_outcome(name: str, field: PathSeen) -> bool:
    """Whether a column of rows that are events is one: words for success are what each event's status has."""
    return is_numeric(field) or (name.lower() in (*GOALS, "success") and bool(verdicts(field)))


def _is_constant(path: str, reading: Guess, survey: Survey, *, but_last: bool = False) -> bool:
    """Whether a field says the same in all records of a session, or in all but the last one."""
    if reading.shape != "table" and not reading.each:
        return True
    for records in sessions_of(survey, reading.native_id):
        values = [str(value) for record in records if (value := value_at(record, path)) is not None]
        if len(set(values[: -1 if but_last else None])) > 1:
            return False
    return True


def _set_request(reading: Guess, heads: dict[str, PathSeen]) -> None:
    """What the session was asked for, where nobody says it in the session."""
    requests = [
        one for one in named(heads, REQUESTS) if one.only("text") and is_said(one) and one.mean_length > 15
    ]
    only_agents = reading.shape == "list" and all(role.kind == "agent" for role in reading.roles)
    if requests and only_agents and not reading.turns_about:
        reading.head["request"] = requests[0].path
        reading.tags = {name: path for name, path in reading.tags.items() if path != requests[0].path}


def _is_scored(path: str) -> bool:
    """Whether it stands within an object of scores."""
    return any(part in SCORES for part in path.split(".")[:-1])


def _outcome(path: str) -> str:
    """The name of what stands at a path: its key, or whose value it is."""
    *above, key = path.replace("\\", "").split(".")
    return above[-1] if above and key in VALUES and above[-1] not in SCORES else key


def _is_beside(path: str, survey: Survey) -> bool:
    """Whether it is a count of a score, or the like, and another field of the object has its value."""
    above, _, key = path.rpartition(".")
    counts = not STATISTICS.isdisjoint(spelled(key).split("_"))
    return counts and _is_scored(above) and any(f"{above}.{name}" in survey.paths for name in VALUES)


def _name_success(reading: Guess, survey: Survey) -> None:
    """Have what is 0 or 1 of a whole run, and named for it, as `success` too."""
    order = {name: place for place, name in enumerate(GOALS)}
    binary = [
        (order[name.lower()], path)
        for name, path in reading.outcomes.items()
        if name.lower() in order and _is_goal(name.lower(), survey.paths[path])
    ]
    if binary and "success" not in reading.outcomes and not survey.sides:
        reading.outcomes["success"] = min(binary)[1]


def _is_goal(name: str, field: PathSeen) -> bool:
    """Whether it says in a word or a number if the goal was reached."""
    if name in LOOSE:
        return bool(verdicts(field)) and "." not in field.path
    return set(field.values) <= TRUTHS or bool(verdicts(field))


def _is_varied_label(field: PathSeen, survey: Survey) -> bool:
    """Whether it is a label that is not the same everywhere."""
    few = not field.more and len(field.values) <= LABELS
    return is_label(field) and few and (len(field.values) > 1 or len(survey.records) == 1)


def _unique(key: str, names: dict[str, str]) -> str:
    return next(one for n in range(1, 1000) if (one := key if n == 1 else f"{key}_{n}") not in names)


def _record_ids(heads: dict[str, PathSeen], survey: Survey) -> list[str]:
    """The field that tells the records apart that have several sides, else their number."""
    n = len(survey.records) / len(survey.sides or [0])
    for field in named(heads, SESSION):
        if (
            field.only("text", "number")
            and len({str(value_at(record, field.path)) for record in survey.records}) == n
        ):
            return [field.path]
    return ["record"]


def _places(survey: Survey) -> list[str]:
    """What tells files apart that have the same name: the nearest folder that does."""
    stems = [path.stem for path in survey.files]
    if len(set(stems)) == len(stems):
        return []
    for level, place in enumerate(PLACES[1:]):
        names = [path.absolute().parents[level].name for path in survey.files]
        for keys, paths in ((names, [place]), (list(zip(names, stems, strict=True)), [place, "$file"])):
            if len(set(keys)) == len(stems):
                return paths
    return []


def _ids(heads: dict[str, PathSeen], survey: Survey) -> list[str]:
    """Fields that tell the records apart: one, or as few as it takes."""
    if survey.sides:
        return [*_record_ids(heads, survey), "side"]
    records = distinct(survey)
    names = (*SESSION, "index", "idx", "number")
    everywhere = [field for field in heads.values() if field.count == len(survey.records)]
    likely = [
        *named(heads, names),
        *(field for field in named(heads, TALKS, depth=3) if spelled(field.key) in TALKS),
    ]
    candidates = [field for field in likely if field.only("text", "number") and field in everywhere]
    if len(records) == 1:
        candidates = [field for field in candidates if not _is_of_another(field)]
    for field in candidates:
        if _tell_apart([field.path], records) and (field.mean_length <= 100):
            return [field.path]
    paths: list[str] = []
    others = [
        field for field in named(heads, ("trial", "run", "seed", "epoch", "attempt", "round", *HEAD["task"]))
    ]
    others += named(heads, (*HEAD["agent"], *HEAD["agent_model"]))
    for field in [*candidates[:1], *others] if candidates else []:
        if field not in everywhere or field.path in paths:
            continue
        paths.append(field.path)
        if _tell_apart(paths, records):
            return paths
    return []


def _is_of_another(field: PathSeen) -> bool:
    """Whether an id may be that of an object within the record: one record alone does not tell."""
    is_nested = "." in field.path and spelled(parent_of(field)) not in SESSION
    return is_nested and spelled(field.key) in (*NAMES["id"], "name")


def _tell_apart(paths: list[str], records: list[dict[str, Any]]) -> bool:
    return len({tuple(str(value_at(record, path)) for path in paths) for record in records}) == len(records)
