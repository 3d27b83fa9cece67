"""Which path of a survey is a span's kind, input, output ..., where records are runs of models and tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .guess_names import first_one, is_time, named, parent_of, spelled
from .mapped_spans import FAILED, SUCCEEDED, kind_of, words
from .paths import several
from .survey import PathSeen, Survey

KINDS = (
    *("run_type", "span_kind", "span_type", "observation_type", "kind", "event", "event_type", "type", "op"),
    *("op_name", "operation", "category"),
)
INPUTS = ("inputs", "input", "request", "prompt", "arguments", "args", "parameters", "span_inputs")
OUTPUTS = ("outputs", "output", "response", "completion", "result", "span_outputs")
PARENTS = ("parent_run_id", "parent_id", "parent_span_id", "parent_observation_id", "parent")
IDS = ("id", "run_id", "span_id", "observation_id", "uuid", "call_id", "event_id")
NAME = ("name", "tool_name", "function", "span_name", "display_name", "op_name")
STARTS = ("start_time", "started_at", "start", "timestamp", "created_at", "start_time_unix_nano", "time")
ENDS = ("end_time", "ended_at", "end", "completed_at", "end_time_unix_nano")
ERRORS = ("error", "exception", "status_message", "error_message")
STATUSES = ("status", "status_code", "level", "state", "code")
TRACES = (
    "thread_id",
    "conversation_id",
    "trace_id",
    "trace",
    "session_id",
    "session",
    "root_run_id",
    "run_id",
)
"""What spans of one session share. What is called a session comes behind the trace: it may be a project."""
MODELS = ("model", "model_name", "ls_model_name", "model_id", "request_model")
TOKENS = (
    ("input_tokens", ("input_tokens", "prompt_tokens")),
    ("output_tokens", ("output_tokens", "completion_tokens")),
)
LABELS = ("id", "type", "name", "format", "schema")
"""How the names of fields end that say of what kind an input or output is, or which."""
COUNTED = {"usage", "token", "tokens"}
"""Words in the names of objects that hold counts of what went in and came out."""
DEEP = 3
MOST = 0.8
"""So many records say of which trace they are: its own head, which some logs have, does not."""


def fields_of(survey: Survey, inside: str) -> dict[str, str | list[str]]:
    """Field of `[spans]` -> its path; empty where the records are no spans."""
    kind = first_one([one for one in named(survey.paths, KINDS, inside, DEEP) if _tells(one)])
    if kind is None:
        return {}
    fields: dict[str, str | list[str]] = {"kind": kind.path}
    sides: tuple[tuple[str, tuple[str, ...]], ...] = (("input", INPUTS), ("output", OUTPUTS))
    for field, names in sides:
        candidates = [
            one for one in named(survey.paths, names, inside, DEEP) if one.key.lower() not in ("", kind.key)
        ]
        candidates = [one for one in candidates if not (_counts(one, names, candidates) or _labels(one))]
        outer = [one for one in candidates if not any(one.path.startswith(f"{o.path}.") for o in candidates)]
        if not outer:
            return {}
        fields[field] = [one.path for one in outer][:3] if len(outer) > 1 else outer[0].path
    mapped_paths = {kind.path, *(p for name in ("input", "output") for p in several(fields[name]))}
    for field, names, fits in _others():
        one = first_one([
            one for one in named(survey.paths, names, inside, DEEP)
            if one.path not in mapped_paths and not _below(one.path, mapped_paths) and fits(one)
        ])  # fmt: skip
        if one is not None:
            fields[field] = one.path
            mapped_paths.add(one.path)
    if "name" not in fields and kind.key.endswith("name"):
        fields["name"] = kind.path  # kinds are told by the names of what ran
    return fields


def traces(survey: Survey, spans: dict[str, str | list[str]]) -> list[str]:
    """The path of what spans of one session share, where several spans are a record each."""
    for one in named(survey.paths, TRACES, depth=1):
        is_shared = one.count >= MOST * len(survey.records) and one.only("text", "number")
        if is_shared and one.path not in (spans.get("id"), spans.get("parent")):
            return [one.path]
    return []


Others = Iterator[tuple[str, tuple[str, ...], Callable[[PathSeen], bool]]]


def _plain(one: PathSeen) -> bool:
    return one.only("text", "number")


def _ends(one: PathSeen) -> bool:
    """Whether its values say how a span ended; a code does in its status alone."""
    own = one.key.lower() != "code" or parent_of(one) == "status"
    return own and any(words(value) & (SUCCEEDED | FAILED) for value in one.values)


def _others() -> Others:
    """The fields that may be missing: their names in logs, and what must stand there."""
    yield "id", IDS, _plain
    yield "parent", PARENTS, lambda one: _plain(one) or set(one.kinds) == {"null"}
    yield "start", STARTS, is_time
    yield "end", ENDS, is_time
    yield "error", ERRORS, lambda one: set(one.kinds) <= {"text", "null", "object"}
    yield "status", STATUSES, _ends
    yield "name", NAME, lambda one: one.only("text")
    yield "model", MODELS, lambda one: one.only("text")
    for field, names in TOKENS:
        yield field, names, lambda one: one.only("number")


def _counts(one: PathSeen, names: tuple[str, ...], others: list[PathSeen]) -> bool:
    """Whether it counts what went in or came out: numbers under a longer name, as `prompt_tokens` has them,
    in an object of counts, or where another path of the same name holds more than numbers."""
    if not one.only("number"):
        return False
    holder = spelled(one.path.rpartition(".")[0]).split("_")
    rivals = (other for other in others if other.key.lower() == one.key.lower())
    has_rival = any(set(other.kinds) - {"number", "null"} for other in rivals)
    return has_rival or one.key.lower() not in names or not COUNTED.isdisjoint(holder)


def _labels(one: PathSeen) -> bool:
    """Whether its name has other words, and ends in one for which or what kind: `output_type`."""
    *more, last = spelled(one.key).split("_")
    return bool(more) and last in LABELS


def _tells(one: PathSeen) -> bool:
    """Whether its values are kinds of spans: a model call among them, and something else."""
    kinds = {kind_of(value) for value in one.values} if one.only("text") and len(one.values) > 1 else set()
    return "model" in kinds and len(kinds) > 1


def _below(path: str, mapped_paths: set[str]) -> bool:
    return any(path.startswith((f"{one}.", f"{one}[")) for one in mapped_paths)
