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


def guess(seen: Survey) -> Guess:
    """The likeliest reading of a survey."""
    made = Guess()
    if of_spans(made, seen):
        _of_session(made, seen)
        return made
    lists = _lists(seen)
    score, path = _best(lists)
    if score > 0 and len(seen.paths[path].lengths) < RARE * len(seen.records) and _is_table(seen):
        score = 0.0
    if score > 0:
        steps = _with_results(seen, path, [one for score, one in lists if score > 0])
        of_list(made, seen, steps)
        if steps != path and (asked := _asked_in(seen, path)) is not None:
            made.head["request"] = f"{path}[{asked}].content"
    elif of_messages(made, seen) or (_is_table(seen) and of_table(made, seen)):
        pass
    elif seen.format == "text":
        if not of_text(made, seen):
            return made  # a page in one piece is nobody's turn
    elif not any(shape(made, seen) for shape in (of_text, of_pairs, of_table, of_columns)):
        return made
    _of_session(made, seen)
    return made


def _best(lists: list[tuple[float, str]]) -> tuple[float, str]:
    """The list with the highest score; of what was liked less, the one beside it that is like it but for its
    length."""
    score, path = max(lists, key=itemgetter(0), default=(0.0, ""))
    if path.rpartition(".")[2] not in LESSER:
        return score, path
    like = [one for one in lists if one[0] > max(0.0, score - LENGTH)]
    return max(like, key=lambda one: (one[1].rpartition(".")[2] not in LESSER, one[0]), default=(score, path))


def _is_table(seen: Survey) -> bool:
    """Whether records have a speaker, a text and a session that comes again."""
    most = 0.9 * len(seen.records)
    said = any(is_said(one) for one in named(seen.paths, NAMES["text"]))
    speakers = [one for one in named(seen.paths, NAMES["role"]) if is_speaker(one) and one.count > most]
    return said and any(session_ids(seen, one.path) for one in speakers)


def _lists(seen: Survey) -> list[tuple[float, str]]:
    """(how like a list of turns, path) of lists of objects, less those within lists and what came back."""
    scored = []
    for path, one in seen.paths.items():
        parent = path.rpartition(".")[0]
        is_content = one.key == "content" and f"{parent}.role".lstrip(".") in seen.paths
        if not one.lengths or "[]" in path or is_content or _are_done(path, one, seen):
            continue
        inside = f"{path}[]."
        items = [p for p in seen.paths if p.startswith(inside)]
        if not items:
            continue
        length = sum(one.lengths) / len(one.lengths)
        if length >= 1.5 and guess_spans.fields_of(seen, inside):
            scored.append((8.0 + min(length, 20) / 20, path))
            continue
        told = in_dialect(seen, path)
        if told and max(length, told.total() / len(seen.records)) >= 1.5:
            scored.append((9.0 + min(length, 20) / 20, path))
            continue
        parts = f"{inside}role" in seen.paths and f"{inside}content[].text" in seen.paths
        text = parts or any(is_said(p) for p in named(seen.paths, NAMES["text"], inside))
        role = any(is_speaker(p) for p in named(seen.paths, NAMES["role"], inside))
        if not (text or role) and parties(seen, inside):
            text = role = True
        done = _done(seen, inside)
        score = 3 * text + 3 * role + 1.5 * done + (one.key.lower() in LISTS) + min(length, 20) / 20
        share = len(one.lengths) / max(1, len(seen.records))
        several = length >= 1.5 or (text and role and guess_calls.reply(seen, path) is not None)
        enough = several and (text or done)
        scored.append((score * min(1.0, share + 0.2) if enough else 0.0, path))
    replies = {guess_calls.reply(seen, path) for score, path in scored if score > 0}
    if any(is_exchange(record) and isinstance(record["input"], str) for record in seen.records):
        replies.add("output")  # of a question that is no list: read as a chat without a mapping
    return [one for one in scored if one[1] not in replies]


def _done(seen: Survey, inside: str) -> int:
    """How much is done in a list: STEPS where its items have calls, or an action and what came of it."""
    acts = named(seen.paths, NAMES["action"], inside)
    done = bool(acts) + 2 * bool(acts and named(seen.paths, NAMES["result"], inside))
    return max(done, STEPS * (f"{inside}tool_calls" in seen.paths))


def _with_results(seen: Survey, path: str, others: list[str]) -> str:
    """A list of turns, or the one of steps beside it that has what came of each action, where the turns are
    messages of a chat in which a result stands as somebody's words."""
    inside = f"{path}[]."
    role = seen.paths.get(f"{inside}role")
    if role is None or "tool" in role.values or _done(seen, inside) == STEPS or in_dialect(seen, path):
        return path
    steps = [
        one
        for one in others
        if _done(seen, f"{one}[].") == STEPS and not named(seen.paths, NAMES["role"], f"{one}[].")
    ]
    return steps[0] if len(steps) == 1 and _says_results(seen, path, steps[0]) else path


def _says_results(seen: Survey, path: str, steps: str) -> bool:
    """Whether most of what a person says in a chat, once they asked, is what came of the steps: what people
    said in between is in no step."""
    inside = f"{steps}[]."
    places = [one.path.removeprefix(inside) for one in named(seen.paths, NAMES["result"], inside)]
    words = told = 0
    for record in seen.records:
        chat, done = value_at(record, path), value_at(record, steps)
        if not isinstance(chat, list) or not isinstance(done, list):
            continue
        results = (value_at(step, place) for step in done for place in places)
        came = {plain(one).strip() for one in results} - {""}  # type: ignore[arg-type]
        _, *later = [plain(one.get("content")) for one in chat if _is_asked(one)] or [""]
        words += len(later)
        told += sum(any(f"\n{one}\n" in f"\n{text.strip()}\n" for one in came) for text in later)
    return told > RARE * words


def _asked_in(seen: Survey, path: str) -> int | None:
    """Which message of each record's chat is a person's first one, demonstrations aside."""
    chats = [value for record in seen.records if isinstance(value := value_at(record, path), list)]
    first = {next((place for place, one in enumerate(chat) if _is_asked(one)), None) for chat in chats}
    return first.pop() if len(first) == 1 else None


def _is_asked(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") != "user":
        return False
    return not message.get("is_demo") and message.get("message_type") != "demonstration"


def _are_done(path: str, one: PathSeen, seen: Survey) -> bool:
    """Whether a list has plain texts that its name says were done, or names where it says nothing."""
    sides, said = seen.paths.get(f"{path}[].turn"), seen.paths.get(f"{path}[].text")
    plain = sides is not None and said is not None and set(sides.values) <= set(SIDES)
    done = not DONE.isdisjoint(re.split(r"[^a-z]+", one.key.lower()))
    return plain and (done or (one.key.lower() not in LISTS and said is not None and is_named(said)))


def _of_session(made: Guess, seen: Survey) -> None:
    """What is said once a session: its id, head, tags and outcomes."""
    used = made.used
    heads = {
        path: one
        for path, one in seen.paths.items()
        if "[]" not in path and path.count(".") < 4 and path not in used and not one.only("list", "object")
    }
    if made.shape != "table" and not made.each:
        made.native_id = _ids(heads, seen)
    if (not made.native_id and seen.per_file) or (made.shape == "table" and not made.native_id):
        made.native_id = _places(seen)
    for name, names in HEAD.items():
        deep = 3 if name == "agent_model" else 1
        some = [one for one in named(heads, names, depth=deep) if one.path not in made.head.values()]
        some = [one for one in some if not SAYS.search(one.key) and _is_called(one, name)]
        one = first_one([one for one in some if is_head(one, name)])
        if one is not None and not _steady(one.path, made, seen):
            continue
        if one is not None and (name == "instance" or one.path not in made.native_id):
            made.head[name] = one.path
    columns = made.tags
    made.tags = {}
    if seen.format == "text":
        heads.pop("file", None)
    if seen.sides:
        made.tags["side"] = "side"
    for path, one in heads.items():
        if seen.sides and path in ("side", "record"):
            continue
        if SECRET.search(path):
            made.secrets.append(path)
        elif path in made.native_id or path in made.head.values() or not one.count:
            continue
        elif (
            (OUTCOME.search(one.key) or _is_scored(path))
            and not _is_beside(path, seen)
            and one.only("number", "true or false", "text")
            and is_label(one)
        ):
            made.outcomes[_unique(_outcome(path), made.outcomes)] = path
        elif (
            one.only("text", "number", "true or false")
            and _tells(one, seen)
            and path.count(".") < 2
            and not path.startswith(f"{made.reply}.")
        ):
            made.tags[_unique(one.key, made.tags)] = path
    _name_success(made, seen)
    _ask(made, heads)
    if made.shape == "table" or made.each:
        made.tags = {key: path for key, path in columns.items() if path not in made.head.values()}
        made.outcomes = {
            name: path
            for name, path in made.outcomes.items()
            if _is_outcome(name, seen.paths[path]) and _steady(path, made, seen, but_last=True)
        }
        of_actions = {path for path in made.outcomes.values() if is_of_actions(seen.paths[path], made, seen)}
        made.outcomes = {name: path for name, path in made.outcomes.items() if path not in of_actions}
        made.acted += sorted(of_actions - {*made.acted})


def _is_called(one: PathSeen, head: str) -> bool:
    """Whether a key ends in a name of that head or its id, and lies in no object of ratings: `agent_1` is
    another thing than `agent`."""
    key = spelled(one.key)
    names = {end for name in HEAD[head] for end in (name, f"{name}_id")}
    others = HEAD["instance"] if head != "instance" else ()
    rated = _is_scored(one.path) or spelled(one.path.rpartition(".")[0]).rpartition("_")[2] in RATINGS
    return f"_{key}".endswith(tuple(f"_{name}" for name in names)) and key not in others and not rated


def _is_outcome(name: str, one: PathSeen) -> bool:
    """Whether a column of rows that are events is one: words for success are what each event's status has."""
    return is_numeric(one) or (name.lower() in (*GOALS, "success") and bool(verdicts(one)))


def _steady(path: str, made: Guess, seen: Survey, *, but_last: bool = False) -> bool:
    """Whether a field says the same in all records of a session, or in all but the last one."""
    if made.shape != "table" and not made.each:
        return True
    for records in sessions_of(seen, made.native_id):
        said = [str(value) for record in records if (value := value_at(record, path)) is not None]
        if len(set(said[: -1 if but_last else None])) > 1:
            return False
    return True


def _ask(made: Guess, heads: dict[str, PathSeen]) -> None:
    """What the session was asked for, where nobody says it in the session."""
    asked = [
        one for one in named(heads, REQUESTS) if one.only("text") and is_said(one) and one.mean_length > 15
    ]
    alone = made.shape == "list" and all(role.kind == "agent" for role in made.roles)
    if asked and alone and not made.turns_about:
        made.head["request"] = asked[0].path
        made.tags = {name: path for name, path in made.tags.items() if path != asked[0].path}


def _is_scored(path: str) -> bool:
    """Whether it stands within an object of scores."""
    return any(part in SCORES for part in path.split(".")[:-1])


def _outcome(path: str) -> str:
    """The name of what stands at a path: its key, or whose value it is."""
    *above, key = path.replace("\\", "").split(".")
    return above[-1] if above and key in VALUES and above[-1] not in SCORES else key


def _is_beside(path: str, seen: Survey) -> bool:
    """Whether it is a count of a score, or the like, and another field of the object has its value."""
    above, _, key = path.rpartition(".")
    counts = not STATISTICS.isdisjoint(spelled(key).split("_"))
    return counts and _is_scored(above) and any(f"{above}.{name}" in seen.paths for name in VALUES)


def _name_success(made: Guess, seen: Survey) -> None:
    """Have what is 0 or 1 of a whole run, and named for it, as `success` too."""
    order = {name: place for place, name in enumerate(GOALS)}
    binary = [
        (order[name.lower()], path)
        for name, path in made.outcomes.items()
        if name.lower() in order and _is_goal(name.lower(), seen.paths[path])
    ]
    if binary and "success" not in made.outcomes and not seen.sides:
        made.outcomes["success"] = min(binary)[1]


def _is_goal(name: str, one: PathSeen) -> bool:
    """Whether it says in a word or a number if the goal was reached."""
    if name in LOOSE:
        return bool(verdicts(one)) and "." not in one.path
    return set(one.values) <= TRUTHS or bool(verdicts(one))


def _tells(one: PathSeen, seen: Survey) -> bool:
    """Whether it is a label that is not the same everywhere."""
    few = not one.more and len(one.values) <= LABELS
    return is_label(one) and few and (len(one.values) > 1 or len(seen.records) == 1)


def _unique(key: str, names: dict[str, str]) -> str:
    return next(one for n in range(1, 1000) if (one := key if n == 1 else f"{key}_{n}") not in names)


def _whole(heads: dict[str, PathSeen], seen: Survey) -> list[str]:
    """The field that tells the records apart that have several sides, else their number."""
    n = len(seen.records) / len(seen.sides or [0])
    for one in named(heads, SESSION):
        if (
            one.only("text", "number")
            and len({str(value_at(record, one.path)) for record in seen.records}) == n
        ):
            return [one.path]
    return ["record"]


def _places(seen: Survey) -> list[str]:
    """What tells files apart that have the same name: the nearest folder that does."""
    stems = [path.stem for path in seen.files]
    if len(set(stems)) == len(stems):
        return []
    for level, place in enumerate(PLACES[1:]):
        names = [path.absolute().parents[level].name for path in seen.files]
        for many, paths in ((names, [place]), (list(zip(names, stems, strict=True)), [place, "$file"])):
            if len(set(many)) == len(stems):
                return paths
    return []


def _ids(heads: dict[str, PathSeen], seen: Survey) -> list[str]:
    """Fields that tell the records apart: one, or as few as it takes."""
    if seen.sides:
        return [*_whole(heads, seen), "side"]
    records = distinct(seen)
    names = (*SESSION, "index", "idx", "number")
    everywhere = [one for one in heads.values() if one.count == len(seen.records)]
    likely = [
        *named(heads, names),
        *(one for one in named(heads, TALKS, depth=3) if spelled(one.key) in TALKS),
    ]
    candidates = [one for one in likely if one.only("text", "number") and one in everywhere]
    if len(records) == 1:
        candidates = [one for one in candidates if not _is_of_another(one)]
    for one in candidates:
        if _tell_apart([one.path], records) and (one.mean_length <= 100):
            return [one.path]
    chosen: list[str] = []
    more = [one for one in named(heads, ("trial", "run", "seed", "epoch", "attempt", "round", *HEAD["task"]))]
    more += named(heads, (*HEAD["agent"], *HEAD["agent_model"]))
    for one in [*candidates[:1], *more] if candidates else []:
        if one not in everywhere or one.path in chosen:
            continue
        chosen.append(one.path)
        if _tell_apart(chosen, records):
            return chosen
    return []


def _is_of_another(one: PathSeen) -> bool:
    """Whether an id may be that of an object within the record: one record alone does not tell."""
    within = "." in one.path and spelled(parent_of(one)) not in SESSION
    return within and spelled(one.key) in (*NAMES["id"], "name")


def _tell_apart(paths: list[str], records: list[dict[str, Any]]) -> bool:
    return len({tuple(str(value_at(record, path)) for path in paths) for record in records}) == len(records)
