"""Which path of a survey is a span's kind, input, output ..., where records are runs of models and tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..fields.paths import as_list
from ..fields.values import MICROSECONDS
from ..mapped.spans import FAILED, SUCCEEDED, Kind, kind_of, words
from .names import fields_named, first_field, is_time, parent_of, snake_case, tells_messages
from .records import rows_per
from .sessions import TALKS, with_project
from .survey import PathSummary, Survey

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
    "root_span_id",
    "session_id",
    "session",
    "root_run_id",
    "run_id",
)
"""Names of what the spans of a session share. `session` stands behind `trace`, for what is called so may be a
project."""
MODELS = ("model", "model_name", "ls_model_name", "model_id", "request_model")
TOKENS = (
    ("input_tokens", ("input_tokens", "prompt_tokens")),
    ("output_tokens", ("output_tokens", "completion_tokens")),
)
LABELS = ("id", "type", "name", "format", "schema")
"""Last words of the names of fields that label an input or output and do not hold it: `output_type`."""
COUNTED = {"usage", "token", "tokens"}
"""Words in the names of objects that count what went in and came out."""
AGENTS_SDK = "span_data.type"
"""Path of the kind of a span of OpenAI's Agents SDK."""
ALONE = {"generation", "llm"}
"""Kinds of spans that are model calls whatever else there is; a `chat` may be a turn of people's."""
TWICE = 2
"""The most records that an id of a span is in, on average; the pieces of a stream share that of its run."""
DEEP = 3
MOST = 0.8
"""Share of the records that must name their trace: a header of the trace, which some logs have, does not."""


def fields_of(survey: Survey, inside: str) -> dict[str, str | list[str]]:
    """Field of `[spans]` -> its path; empty where the records are no spans."""
    kinds = fields_named(survey.paths, KINDS, inside, DEEP)
    kind = first_field([one for one in kinds if _has_span_kinds(one)])
    if kind is not None and tells_messages(kind):
        return {}
    if kind is None and inside and are_nested(survey, inside):
        kind = first_field([one for one in kinds if _has_model_calls_alone(one)])
    if kind is None:
        return {}
    fields: dict[str, str | list[str]] = {"kind": kind.path}
    sides: tuple[tuple[str, tuple[str, ...]], ...] = (("input", INPUTS), ("output", OUTPUTS))
    for field, names in sides:
        candidates = [
            one
            for one in fields_named(survey.paths, names, inside, DEEP)
            if one.key.lower() not in ("", kind.key)
        ]
        candidates = [one for one in candidates if not (_is_count(one, names, candidates) or _is_label(one))]
        outer = [one for one in candidates if not any(one.path.startswith(f"{o.path}.") for o in candidates)]
        if not outer:
            return {}
        fields[field] = [one.path for one in outer][:3] if len(outer) > 1 else outer[0].path
    mapped_paths = {kind.path, *(p for name in ("input", "output") for p in as_list(fields[name]))}
    for field, names, fits in _optional_fields():
        if field in fields:
            continue
        one = first_field([
            one for one in fields_named(survey.paths, names, inside, DEEP)
            if one.path not in mapped_paths and not _is_below(one.path, mapped_paths) and fits(one)
            and (field != "id" or inside or rows_per(one, survey) <= TWICE)
        ])  # fmt: skip
        if one is not None:
            fields[field] = one.path
            mapped_paths.add(one.path)
    if "name" not in fields and kind.key.endswith("name"):
        fields["name"] = kind.path  # the kind is known by the name of what ran
    return fields


def kind_at(path: str, word: str) -> Kind:
    """The kind that a word at a path means: OpenAI's Agents SDK calls calls of the Responses API so."""
    return "model" if (path.endswith(AGENTS_SDK) and word == "response") else kind_of(word)


def trace_paths(survey: Survey, spans: dict[str, str | list[str]]) -> list[str]:
    """Paths of what the spans of a session share, where a record is a span; empty without one. What metadata
    of all say of the conversation comes first, for a trace is one of its turns then."""
    for one in fields_named(survey.paths, TALKS, depth=2):
        is_everywhere = one.kinds["text"] + one.kinds["number"] == len(survey.records)
        if parent_of(one) == "metadata" and snake_case(one.key) in TALKS and is_everywhere:
            return with_project(one.path, survey)
    for one in fields_named(survey.paths, TRACES, depth=1):
        is_shared = one.count >= MOST * len(survey.records) and one.has_only("text", "number")
        if is_shared and one.path not in (spans.get("id"), spans.get("parent")):
            return [one.path]
    return []


OptionalFields = Iterator[tuple[str, tuple[str, ...], Callable[[PathSummary], bool]]]


def _is_id(one: PathSummary) -> bool:
    return one.has_only("text", "number")


def _is_moment(one: PathSummary) -> bool:
    """Whether a field's values are times, in micro- or nanoseconds as texts, too."""
    texts = one.texts[:5]
    return is_time(one) or (bool(texts) and all(map(MICROSECONDS.fullmatch, texts)))


def _has_statuses(one: PathSummary) -> bool:
    """Whether a field's values say how a span ended; one called `code` counts only in a `status`."""
    own = one.key.lower() != "code" or parent_of(one) == "status"
    return own and any(words(value) & (SUCCEEDED | FAILED) for value in one.values)


def _optional_fields() -> OptionalFields:
    """(field, its names in logs, test of what stands there) of each field that spans may lack."""
    yield "id", IDS, _is_id
    yield "parent", PARENTS, lambda one: _is_id(one) or set(one.kinds) == {"null"}
    yield "start", STARTS, _is_moment
    yield "end", ENDS, _is_moment
    yield "error", ERRORS, lambda one: set(one.kinds) <= {"text", "null", "object"}
    yield "status", STATUSES, _has_statuses
    yield "name", NAME, lambda one: one.has_only("text")
    yield "model", MODELS, lambda one: one.has_only("text")
    for field, names in TOKENS:
        yield field, names, lambda one: one.has_only("number")
        yield field, (field.partition("_")[0],), _is_in_counts  # Langfuse has usage.input


def _is_in_counts(one: PathSummary) -> bool:
    """Whether a field is a number in an object of counts."""
    return one.has_only("number") and not COUNTED.isdisjoint(_holder_words(one))


def _holder_words(one: PathSummary) -> list[str]:
    return snake_case(one.path.rpartition(".")[0]).split("_")


def _is_count(one: PathSummary, names: tuple[str, ...], others: list[PathSummary]) -> bool:
    """Whether a field counts what went in or came out: numbers under a longer name (`prompt_tokens`), in an
    object of counts, or where another path of the same name holds more than numbers."""
    if not one.has_only("number"):
        return False
    rivals = (other for other in others if other.key.lower() == one.key.lower())
    has_rival = any(set(other.kinds) - {"number", "null"} for other in rivals)
    return has_rival or one.key.lower() not in names or not COUNTED.isdisjoint(_holder_words(one))


def _is_label(one: PathSummary) -> bool:
    """Whether a field's name has several words and ends in one for which or what kind: `output_type`."""
    *more, last = snake_case(one.key).split("_")
    return bool(more) and last in LABELS


def _has_span_kinds(one: PathSummary) -> bool:
    """Whether a field's values are kinds of spans: a model call among them, and something else."""
    kinds = (
        {kind_at(one.path, value) for value in one.values}
        if one.has_only("text") and len(one.values) > 1
        else set()
    )
    return "model" in kinds and len(kinds) > 1


def _has_model_calls_alone(one: PathSummary) -> bool:
    """Whether a field says of all records that they are calls of a model, as tracing tools write it."""
    return one.has_only("text") and bool(one.values) and {*map(str.lower, one.values)} <= ALONE


def are_nested(survey: Survey, inside: str) -> bool:
    """Whether the items of a list have a time and, if only null, the span that each is in."""
    parents = fields_named(survey.paths, PARENTS, inside, 1)
    return bool(parents) and any(map(_is_moment, fields_named(survey.paths, STARTS, inside, 1)))


def _is_below(path: str, mapped_paths: set[str]) -> bool:
    return any(path.startswith((f"{one}.", f"{one}[")) for one in mapped_paths)
