"""Co-Gym's channel messages: session and kind from the channel's name, the content from the payload.

Source: the Redis protocol of collaborative-gym at 1e3b02e (plain pub/sub, no history).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from typing_extensions import TypedDict

from ....schemas.text import rule_of
from ..base import json_value, without_surrogates

PATTERN = "env_*/*"
_CHANNEL = re.compile(r"(?P<session>env_[^/]+)/(?:(?P<role>.+)/)?(?P<kind>[a-z_]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RawMessage:
    """One message as it came: Unix seconds on this machine, channel and payload."""

    time: float
    channel: str
    payload: str

    @property
    def as_replayed(self) -> RawMessage:
        """The message as its recording gives it back: with U+FFFD for bytes that are no UTF-8."""
        return RawMessage(self.time, without_surrogates(self.channel), without_surrogates(self.payload))


class ChatLine(TypedDict):
    """One line of the chat."""

    role: str
    timestamp: str
    message: str


class _Payload(BaseModel):
    model_config = ConfigDict(strict=True)


class Start(_Payload):
    """The environment opens the session."""

    task_description: str
    team_members: list[str]
    action_space: list[dict[str, Any]] = []
    additional_task_info: Any = None

    @property
    def collaborative(self) -> bool:
        """Whether members may talk; else every string is an action on the environment."""
        names = [action.get("machine_readable_identifier") for action in self.action_space]
        return not names or "SEND_TEAMMATE_MESSAGE" in names


class StateMessage(_Payload):
    """The state that a member is shown after a step or a tick, or because it asked (`answer_state`)."""

    observation: dict[str, Any]
    observation_type: dict[str, Any] = {}
    reward: float = 0
    info: dict[str, Any] = {}
    chat_history: list[ChatLine]
    pending_confirmations: dict[str, Any] = {}
    agent_asleep: bool = False
    task_description: str | None = None

    @property
    def has_result(self) -> bool:
        """Whether it carries the result of an environment action."""
        return bool(self.info) or self.reward < 0

    @property
    def result(self) -> str:
        """The result, as the log words it."""
        error = self.info.get("action_error")
        if error:
            return f"failed (action_error: {error})"
        return "failed" if self.reward < 0 else "succeeded"


class Step(_Payload):
    """What a member wants done; not yet checked by the environment."""

    role: str
    action: str


class End(_Payload):
    """The environment closes the session."""

    result_dir: str | None = None


class Tick(_Payload):
    """The clock node's heartbeat; it says nothing about the environment."""


Kind = Literal["start", "observation", "answer_state", "step", "end", "tick"]
KINDS: dict[str, type[_Payload]] = {
    "start": Start,
    "observation": StateMessage,
    "answer_state": StateMessage,
    "step": Step,
    "end": End,
    "tick": Tick,
}


@dataclass(frozen=True, slots=True)
class SessionMessage:
    """A parsed message of Co-Gym. `role` is the member that the channel belongs to."""

    time: float
    session: str
    role: str | None
    kind: str
    payload: Any


def parse_message(message: RawMessage) -> SessionMessage | None:
    """The parsed message; None for a channel that is not Co-Gym's. ValueError says what is wrong with a
    payload."""
    channel = _CHANNEL.fullmatch(message.channel)
    if channel is None or channel["kind"] not in KINDS:
        return None
    content = _object(message.payload)
    try:
        payload = KINDS[channel["kind"]].model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(
            f"{message.channel}: {'.'.join(map(str, first['loc']))}: {rule_of(first)}"
        ) from error
    return SessionMessage(message.time, channel["session"], channel["role"], channel["kind"], payload)


def envelope(content: object) -> str:
    """A payload as Co-Gym's nodes wrap it."""
    import json

    return json.dumps({"data": {"data_type": "json_obj", "object": content}}, ensure_ascii=False)


def _object(payload: str) -> Any:
    try:
        value = json_value(payload.encode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise ValueError(f"payload is not JSON: {error}") from error
    data = value.get("data") if isinstance(value, dict) else None
    content = data.get("object") if isinstance(data, dict) else None
    if not isinstance(content, dict):
        raise ValueError("payload must be {'data': {'object': {…}}}")
    return content
