"""How much of a session was missed while nobody listened, as far as the next state that is shown tells.

Messages come back with the chat. Any other event leaves at most one trace: a request that is pending now or
no longer, an action that failed (the chat says so), a changed document, an agent that fell asleep or woke up.
So the count is a lower bound; the session's log has the number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import records
from .messages import ChatLine, StateMessage

FAILED = "] takes an action but fails: "


@dataclass(frozen=True)
class PriorState:
    """What was known of a session before: its state, and the steps that were heard and have no outcome."""

    public: Mapping[str, Any]
    chat: Sequence[ChatLine]
    pending: Collection[str]
    asleep: bool
    acting: int
    """How many of these steps change documents, or may fail."""
    requests: Collection[str]
    """Ids of the requests that one of these steps makes or answers."""
    controls: int


def count_missed(previous: PriorState, state: StateMessage, public: Mapping[str, Any]) -> int:
    """At least how many events were neither heard nor came back with the chat. `public` is what `state` shows
    to all."""
    lines = state.chat_history[len(previous.chat) :]
    failures = sum(line["role"] == records.ENVIRONMENT and FAILED in line["message"] for line in lines)
    requests = set(previous.pending).symmetric_difference(state.pending_confirmations) - set(
        previous.requests
    )
    has_changed = dict(public) != dict(previous.public) and not previous.acting
    has_woken = state.agent_asleep != previous.asleep and not previous.controls
    return max(0, failures - previous.acting) + len(requests) + has_changed + has_woken
