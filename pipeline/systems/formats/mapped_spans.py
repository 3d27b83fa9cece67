"""A mapped session whose records are spans: runs of models, tools and agents with what went in and came out.

They are made spans of OTLP (otlp_spans.py) and read as such: in order of their start, of a model call's input
what was not said before, of a tool's span the result of the call that asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

from ....schemas import Quarantined, Trajectory
from ..base import json_value
from . import otlp
from .mapped_messages import trajectory
from .mapped_paths import MappedSessions
from .mapped_values import seconds_of
from .mapping import Spans
from .otlp_spans import Span
from .paths import Getter, first_of, several
from .rules import rules
from .span_values import arguments_in, messages_in

Kind = Literal["model", "tool", "agent", "other"]
MODEL = {"llm", "model", "generation", "chat", "completion", "completions", "chatmodel", "generate"}
TOOL = {"tool", "function"}
AGENT = {"agent", "crew", "assistant"}
FAILED = {"error", "failed", "failure", "exception"}
SUCCEEDED = {"success", "succeeded", "ok", "completed", "done"}
OPERATIONS: dict[Kind, str] = {"model": "chat", "tool": "execute_tool", "agent": "invoke_agent", "other": ""}


def kind_of(value: object) -> Kind:
    """What a span's own word for its kind stands for."""
    said = words(value)
    if said & MODEL and not said & {"prompt", "list"}:
        return "model"
    return "tool" if said & TOOL else "agent" if said & AGENT else "other"


def words(value: object) -> set[str]:
    """The words of a name, in small letters."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(value))
    return {word for word in re.split(r"[^a-z]+", parted.lower()) if word}


def told(
    many: list[Any], value: dict[str, Any], number: int | None, sessions: MappedSessions
) -> Iterator[Trajectory | Quarantined]:
    """The conversation of a list of spans; one that cannot be read is quarantined."""
    assert sessions.mapping.spans is not None
    chosen = sessions.chosen(many)
    how = _Paths(sessions.mapping.spans, chosen)
    spans = []
    for place, given in enumerate(chosen):
        try:
            spans.append(how.span(place, given))
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            yield Quarantined(source=sessions.source, line=number, reason=f"span {place}: {error}")
    conversation = otlp.conversation(spans, sessions.source, rules(sessions.options.map), sessions.system)
    yield from conversation.wrong
    if conversation.talk.events:
        made = trajectory(conversation.talk, value, number, sessions)
        yield made.model_copy(update={"agent": made.agent or conversation.agent})
    else:
        reason = "nothing is said in its spans; do input and output of [spans] say where that is?"
        yield Quarantined(source=sessions.source, line=number, reason=reason)


class _Paths:
    """The mapping's paths made into functions."""

    def __init__(self, spans: Spans, many: list[Any]) -> None:
        inside = f"{spans.at}[]." if spans.at else ""

        def at(path: str | list[str] | None) -> Getter:
            return first_of(several(path), inside)

        self.kinds = spans.kinds
        self.id, self.parent, self.kind, self.name = map(at, (spans.id, spans.parent, spans.kind, spans.name))
        self.start, self.end = at(spans.start), at(spans.end)
        self.input, self.output, self.model = at(spans.input), at(spans.output), at(spans.model)
        self.error, self.status = at(spans.error), at(spans.status)
        self.tokens = at(spans.input_tokens), at(spans.output_tokens)
        objects = [given for given in many if isinstance(given, dict)]
        known = {str(self.id(given)): given for given in objects if self.id(given) is not None}
        self.wrappers = self._wrappers(objects, known)
        self.flat = any(self._asks(given) for given in objects)

    def span(self, place: int, given: Any) -> Span:
        """One record as a span; ValueError where it is none."""
        if not isinstance(given, dict):
            raise ValueError(f"expected an object, got {type(given).__name__}")
        start = _nanoseconds(self.start(given), place)
        parent = self.parent(given)
        kind = self._kind(given, root=parent is None)
        why, status = self.error(given), words(self.status(given) or "")
        failed = str(why or self.status(given)) if why or status & FAILED else None
        return Span(
            trace="",
            id=str(self.id(given) or place),
            parent=None if parent is None else str(parent),
            start=start,
            end=_nanoseconds(self.end(given), place) if self.end(given) else start,
            attributes=dict(self._attributes(given, kind)),
            events=[],
            failed=failed,
            service=None,
            tells=bool(status & SUCCEEDED),
        )

    def _kind(self, given: dict[str, Any], *, root: bool) -> Kind:
        kind = self._logged(given)
        if kind == "model" and self._passes(given):
            return "agent"
        # What holds all others speaks where no model call in it does, and none stands beside it.
        return "agent" if root and kind == "other" and not self.flat else kind

    def _logged(self, given: dict[str, Any]) -> Kind:
        """What the log says that a span is."""
        said = self.kind(given)
        return self.kinds.get(str(said)) or kind_of(said)

    def _asks(self, given: dict[str, Any]) -> bool:
        """Whether a span is a model call with words in no other span."""
        model = self._logged(given) == "model" and not self._passes(given)
        return model and self.parent(given) is None and bool(self.input(given))

    def _passes(self, given: dict[str, Any]) -> bool:
        """Whether what is called a model holds models and only passes their words on."""
        return self.id(given) is not None and str(self.id(given)) in self.wrappers

    def _wrappers(self, objects: list[dict[str, Any]], known: dict[str, dict[str, Any]]) -> set[str]:
        """Ids of the models that are nearest around another one; one around a tool asked for it and is none
        of these."""
        nearest: dict[str, str | None] = {}
        """Id -> the model there or nearest around it; None where that is a tool, or there is none."""
        wrappers = set[str]()
        for given in objects:
            if self._logged(given) != "model":
                continue
            passed, place = list[str](), str(self.parent(given))
            while place in known and place not in nearest:
                kind = self._logged(known[place])
                nearest[place] = place if kind == "model" else None
                if kind in ("model", "tool"):
                    break
                passed.append(place)
                place = str(self.parent(known[place]))
            model = nearest.get(place)
            nearest.update(dict.fromkeys(passed, model))
            if model is not None and model != str(self.id(given)):
                wrappers.add(model)
        return wrappers

    def _attributes(self, given: dict[str, Any], kind: Kind) -> Iterator[tuple[str, Any]]:
        """What the span says, in the words of the GenAI conventions."""
        yield "gen_ai.operation.name", OPERATIONS[kind]
        name = re.sub(r"^\w+://.*/|(?<=://).*|:v?\w+$", "", str(self.name(given) or "")) or None
        if kind == "tool":
            yield "gen_ai.tool.name", str(name or "tool")
            yield "gen_ai.tool.call.arguments", arguments_in(self.input(given))
            yield "gen_ai.tool.call.result", _result(self.output(given))
        elif kind != "other":
            if kind == "agent" and name and self._logged(given) == kind:
                yield "gen_ai.agent.name", str(name)
            asked = messages_in(self.input(given), "user")
            said = messages_in(self.output(given), "assistant")
            yield "gen_ai.input.messages", asked
            yield "gen_ai.output.messages", said[len(asked) :] if said[: len(asked)] == asked else said
        if self.model(given):
            yield "gen_ai.request.model", self.model(given)
        for side, at in zip(("input", "output"), self.tokens, strict=True):
            if isinstance(count := at(given), int):
                yield f"gen_ai.usage.{side}_tokens", count


def _nanoseconds(moment: Any, place: int) -> int:
    """A start, as a time or (in order) a place in the list."""
    if isinstance(moment, str):
        moment = moment.replace(" UTC", "+00:00")
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
