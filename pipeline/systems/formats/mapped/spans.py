"""Mapped sessions whose records are spans: runs of models, tools and agents with what went in and came out.

The spans are made those of OTLP (otlp_spans.py) and read as such, in order of their start: of a model call's
input what was not said before, of a tool's span the result of the call that asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

from .....schemas import Quarantined, Trajectory
from ...base import json_value
from ..fields.mapping import Spans
from ..fields.paths import Getter, as_list, first_of, getter
from ..fields.rules import rules
from ..fields.values import MICROSECONDS, seconds_of
from ..messages.turns import Place
from ..traces import otlp
from ..traces.otlp_spans import Span
from ..traces.span_values import arguments_in, messages_in
from .chats import trajectory
from .reading import MappedSessions

Kind = Literal["model", "tool", "agent", "other"]
MODEL = {"llm", "model", "generation", "chat", "completion", "completions", "chatmodel", "generate"}
TOOL = {"tool", "function"}
AGENT = {"agent", "crew", "assistant"}
FAILED = {"error", "failed", "failure", "exception"}
SUCCEEDED = {"success", "succeeded", "ok", "completed", "done"}
OPERATIONS: dict[Kind, str] = {"model": "chat", "tool": "execute_tool", "agent": "invoke_agent", "other": ""}


def kind_of(value: object) -> Kind:
    """The kind that a span's own word for it means."""
    terms = words(value)
    if terms & MODEL and not terms & {"prompt", "list"}:
        return "model"
    return "tool" if terms & TOOL else "agent" if terms & AGENT else "other"


def words(value: object) -> set[str]:
    """The words of a name, in small letters; `camelCase` is two."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(value))
    return {word for word in re.split(r"[^a-z]+", parted.lower()) if word}


def session_of(
    many: list[Place], value: dict[str, Any], number: int | None, sessions: MappedSessions
) -> Iterator[Trajectory | Quarantined]:
    """The conversation of a list of spans; one that cannot be read is quarantined."""
    assert sessions.mapping.spans is not None
    items = sessions.select(many)
    paths = _Paths(sessions.mapping.spans, [item for _, item in items])
    spans = []
    items_by_id: dict[str, Any] = {}
    for index, (place, item) in enumerate(items):
        try:
            span = paths.span(index, item)
            if items_by_id.setdefault(span.id, item) != item:
                raise ValueError(f"another span has the id {span.id!r}")
            spans.append(span)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            yield Quarantined(source=sessions.source, line=number, reason=f"span {place}: {error}")
    conversation = otlp.conversation(spans, sessions.source, rules(sessions.options.map), sessions.system)
    yield from conversation.problems
    if conversation.talk.events:
        result = trajectory(conversation.talk, value, number, sessions)
        yield result.model_copy(update={"agent": result.agent or conversation.agent})
    else:
        reason = "nothing is said in its spans; do input and output of [spans] say where that is?"
        yield Quarantined(source=sessions.source, line=number, reason=reason)


class _Paths:
    """The mapping's paths made into functions."""

    def __init__(self, spans: Spans, many: list[Any]) -> None:
        inside = f"{spans.at}[]." if spans.at else ""

        def at(path: str | list[str] | None) -> Getter:
            return first_of(getter(one.removeprefix(inside)) for one in as_list(path))

        self.kinds = spans.kinds
        self.id, self.parent, self.kind, self.name = map(at, (spans.id, spans.parent, spans.kind, spans.name))
        self.start, self.end = at(spans.start), at(spans.end)
        self.input, self.output, self.model = at(spans.input), at(spans.output), at(spans.model)
        self.error, self.status = at(spans.error), at(spans.status)
        self.tokens = at(spans.input_tokens), at(spans.output_tokens)
        objects = [record for record in many if isinstance(record, dict)]
        by_id = {str(self.id(record)): record for record in objects if self.id(record) is not None}
        self.ids = set(by_id)
        self.wrappers = self._wrappers(objects, by_id)
        self.has_root_calls = any(self._is_root_call(record) for record in objects)

    def span(self, place: int, record: Any) -> Span:
        """One record as a span; ValueError where it is none. Without an id it has its place as one."""
        if not isinstance(record, dict):
            raise ValueError(f"expected an object, got {type(record).__name__}")
        start = _nanoseconds(self.start(record), place)
        own_id, parent = self.id(record), self.parent(record)
        if own_id is None:
            own_id = f"place {place}" if str(place) in self.ids else place
        kind = self._kind(record, root=parent is None)
        error, status = self.error(record), words(self.status(record) or "")
        failure = str(error or self.status(record)) if error or status & FAILED else None
        return Span(
            trace="",
            id=str(own_id),
            parent=None if parent is None else str(parent),
            start=start,
            end=_nanoseconds(self.end(record), place) if self.end(record) else start,
            attributes=dict(self._attributes(record, kind)),
            events=[],
            failure=failure,
            service=None,
            reports_success=bool(status & SUCCEEDED),
        )

    def _kind(self, record: dict[str, Any], *, root: bool) -> Kind:
        kind = self._logged_kind(record)
        if kind == "model" and self._is_wrapper(record):
            return "agent"
        # A root of no known kind may speak, as an agent's span does, unless model calls stand beside it.
        return "agent" if root and kind == "other" and not self.has_root_calls else kind

    def _logged_kind(self, record: dict[str, Any]) -> Kind:
        """The kind that the log gives a span."""
        word = self.kind(record)
        return self.kinds.get(str(word)) or kind_of(word)

    def _is_root_call(self, record: dict[str, Any]) -> bool:
        """Whether a span is a model call with an input and without a parent."""
        is_model = self._logged_kind(record) == "model" and not self._is_wrapper(record)
        return is_model and self.parent(record) is None and bool(self.input(record))

    def _is_wrapper(self, record: dict[str, Any]) -> bool:
        """Whether a span that is called a model only passes on the words of a model in it."""
        return self.id(record) is not None and str(self.id(record)) in self.wrappers

    def _wrappers(self, objects: list[dict[str, Any]], by_id: dict[str, dict[str, Any]]) -> set[str]:
        """Ids of the model spans that are the nearest model around another one. A tool between the two ends
        the search: the outer model asked for it."""
        nearest: dict[str, str | None] = {}
        """Id -> the model there or nearest around it; None where that is a tool, or there is none."""
        wrappers = set[str]()
        for record in objects:
            if self._logged_kind(record) != "model":
                continue
            chain, place = list[str](), str(self.parent(record))
            while place in by_id and place not in nearest:
                kind = self._logged_kind(by_id[place])
                nearest[place] = place if kind == "model" else None
                if kind in ("model", "tool"):
                    break
                chain.append(place)
                place = str(self.parent(by_id[place]))
            model = nearest.get(place)
            nearest.update(dict.fromkeys(chain, model))
            if model is not None and model != str(self.id(record)):
                wrappers.add(model)
        return wrappers

    def _attributes(self, record: dict[str, Any], kind: Kind) -> Iterator[tuple[str, Any]]:
        """What the span says, in the words of the GenAI conventions."""
        yield "gen_ai.operation.name", OPERATIONS[kind]
        name = _plain_name(str(self.name(record) or "")) or None
        if kind == "tool":
            yield "gen_ai.tool.name", str(name or "tool")
            yield "gen_ai.tool.call.arguments", arguments_in(self.input(record))
            yield "gen_ai.tool.call.result", _result(self.output(record))
        elif kind != "other":
            if kind == "agent" and name and self._logged_kind(record) == kind:
                yield "gen_ai.agent.name", str(name)
            inputs = messages_in(self.input(record), "user")
            outputs = messages_in(self.output(record), "assistant")
            yield "gen_ai.input.messages", inputs
            yield (
                "gen_ai.output.messages",
                outputs[len(inputs) :] if outputs[: len(inputs)] == inputs else outputs,
            )
        if self.model(record):
            yield "gen_ai.request.model", self.model(record)
        for side, at in zip(("input", "output"), self.tokens, strict=True):
            if isinstance(count := at(record), int):
                yield f"gen_ai.usage.{side}_tokens", count


def _plain_name(name: str) -> str:
    """A name without its version, `:v3`; of an address (`lab:///project/op/search:3f2a`) the last part."""
    return re.sub(r"^\w+://.*/|(?<=://).*|:v?\w+$" if "://" in name else r":v\d+$", "", name)


def _nanoseconds(moment: Any, place: int) -> int:
    """Nanoseconds since 1970; without a time, the place in the list, which keeps the order."""
    if isinstance(moment, str):
        moment = int(moment) if MICROSECONDS.fullmatch(moment) else moment.replace(" UTC", "+00:00")
    seconds = seconds_of(moment)
    return place if seconds is None else int(seconds * 1e9)


def _result(output: Any) -> Any:
    """What a tool gave back: of a message its content, of an object with nothing else its only value."""
    if isinstance(output, str) and output[:1] == '"' == output[-1:]:
        with suppress(ValueError):
            return json_value(output)
    if isinstance(output, dict):
        inner = output.get("kwargs", output)
        if isinstance(inner, dict) and "content" in inner and ("type" in inner or "role" in inner):
            return inner["content"]
        if len(output) == 1:
            return _result(next(iter(output.values())))
    return output
