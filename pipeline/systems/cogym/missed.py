"""What was missed of a session while nobody listened, as far as the next state that is shown tells.

Messages come back with the chat. Of the rest each leaves at most one trace: a request that is pending now or
no longer, an action that failed (the chat says so), a changed document or agent that sleeps. So the count is
the least that was missed; the session's log has the number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import records
from .messages import ChatLine, Shown

FAILED = "] takes an action but fails: "


@dataclass(frozen=True)
class Known:
    """What was known of a session before: its state, and the steps heard whose outcome is open."""

    public: Mapping[str, Any]
    chat: Sequence[ChatLine]
    pending: Collection[str]
    asleep: bool
    acting: int
    """Steps on their way that change documents, or may fail."""
    requests: Collection[str]
    """Requests that are asked or answered by a step on its way."""
    controls: int


def missed(previous: Known, state: Shown, public: Mapping[str, Any]) -> int:
    """At least how many events were neither heard nor come back with the chat; `public` is shown to all."""
    lines = state.chat_history[len(previous.chat) :]
    failures = sum(line["role"] == records.ENVIRONMENT and FAILED in line["message"] for line in lines)
    requests = set(previous.pending).symmetric_difference(state.pending_confirmations) - set(
        previous.requests
    )
    has_changed = dict(public) != dict(previous.public) and not previous.acting
    has_woken = state.agent_asleep != previous.asleep and not previous.controls
    return max(0, failures - previous.acting) + len(requests) + has_changed + has_woken
