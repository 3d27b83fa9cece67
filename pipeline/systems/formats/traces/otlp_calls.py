"""One call that the spans of a conversation tell several times, though not alike.

A model's output, the histories that repeat it and the tool's own span name the same call. Some
instrumentations give it one id in the output (the item's) and another in histories (`call_id`), some record
no outputs, and a tool's span may have no id and no arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .....schemas import Action
from ..fields.contents import arguments
from ..messages.conversation import Call, ChatMessage, Talk


@dataclass
class KnownCalls:
    """The calls that came up so far, by the ids under which the talk has them."""

    talk: Talk
    _open: dict[str, str | None] = field(default_factory=dict)
    """Calls of outputs and tools' spans that no history has told so far -> what was said with them."""
    _of_tools: set[str] = field(default_factory=set)
    """Those that a tool's span alone tells of."""
    _other_ids: dict[str, str] = field(default_factory=dict)
    """Another id of a call -> the talk's."""

    def note_output(self, message: ChatMessage) -> None:
        """Note the calls of a model's answer, which later histories repeat."""
        self._open |= {call.id: message.text for call in message.calls if call.id}

    def note_same(self, message: ChatMessage) -> None:
        """Note the ids that the calls of an answer have in another library's span, which tells it again."""
        for call in message.calls:
            own = next((one for one in reversed(self.talk.calls) if self._fits(call, one)), None)
            if call.id is not None and own is not None and call.id != own:
                self._other_ids[call.id] = own

    def note_tool(self, call_id: str) -> None:
        """Note the call of a tool's span that nobody was seen to ask for."""
        self._open[call_id] = None
        self._of_tools.add(call_id)

    def note_history(self, history: Iterable[ChatMessage]) -> None:
        """Note that a history tells the calls in it under the ids that they have there."""
        for message in history:
            for call in message.calls:
                if call.id not in self._of_tools:
                    self._open.pop(call.id or "", None)

    def own_id(self, call_id: str) -> str:
        """The talk's id for a call."""
        return self._other_ids.get(call_id, call_id)

    def without_known(self, message: ChatMessage) -> ChatMessage | None:
        """A message that is new in a history, without the calls that the talk has and with answers under the
        talk's ids; None where nothing is left of it."""
        takes = [self._take(call) for call in message.calls]
        message.calls = [call for call, one in zip(message.calls, takes, strict=True) if one is None]
        if any(one is not None and one[1] == message.text for one in takes):
            message.text = None
        for answer in message.answers:
            answer.call = answer.call and self.own_id(answer.call)
        is_rest = message.text or message.calls or message.answers or message.call_errors
        return message if is_rest or not any(takes) else None

    def _take(self, call: Call) -> tuple[str, str | None] | None:
        """(the talk's id, what was said with it) of the same call, where the talk has it and no history told
        it; it is told now."""
        candidates = [call.id] if call.id in self.talk.calls else [*self._open]
        one = next((one for one in candidates if one in self._open and self._fits(call, one)), None)
        if one is None:
            return None
        if call.id is not None and call.id != one:
            self._other_ids[call.id] = one
        self._complete(call, one)
        self._of_tools.discard(one)
        return one, self._open.pop(one)

    def _fits(self, call: Call, own_id: str) -> bool:
        action = self.talk.events[self.talk.calls[own_id]].action
        if action is None or action.name != call.name:
            return False
        is_bare = own_id in self._of_tools and not action.arguments and action.raw is None
        return is_bare or (action.arguments, action.raw) == arguments(call.arguments)

    def _complete(self, call: Call, own_id: str) -> None:
        """Give the action of a tool's span the arguments that its call has."""
        place = self.talk.calls[own_id]
        event = self.talk.events[place]
        values, raw = arguments(call.arguments)
        if event.action is not None and not event.action.arguments and event.action.raw is None:
            action = Action(name=call.name, arguments=values, raw=raw)
            self.talk.events[place] = event.model_copy(update={"action": action})
