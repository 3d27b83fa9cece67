"""The participants of a mapped session, as its events name them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .....schemas import Participant
from .....schemas.trajectory import ParticipantKind
from ..fields import marks
from ..fields.mapping import ANY
from ..fields.values import describe, is_name
from .reading import MappedSessions


class Speakers:
    """The participants that have come up so far."""

    def __init__(self, sessions: MappedSessions) -> None:
        self._sessions = sessions
        self._kinds: dict[str, ParticipantKind] = {}
        self.kind_cache: dict[tuple[Any, Any], ParticipantKind] = {}
        """(actor, role) as logged -> kind, where only a human's text can say otherwise."""

    def speaker_of(
        self, event: dict[str, Any], actor: Any, role: Any, text: Any, place: int
    ) -> tuple[str, ParticipantKind]:
        """(name, kind) of who did an event; `actor`, `role` and `text` as they were logged.

        ValueError for a name that is none, an unknown role, or a name under two kinds.
        """
        sessions = self._sessions
        pair = actor, role
        is_plain = type(actor) is str and type(role) is str and actor != ""
        if is_plain and pair in self.kind_cache:
            kind = self.kind_cache[pair]
            if kind != "human" or not self._is_from_scaffold(text):
                return actor, kind
        constant = sessions.mapping.constants.role
        if isinstance(constant, list):
            constant = constant[place % len(constant)]
        if rule := sessions.role_rule(event):
            speaker = rule.actor or (sessions.strip_name(actor) if isinstance(actor, str) else actor)
            return self.add(speaker, rule.kind), rule.kind
        if not is_name(actor) and constant is not None:
            actor, role = constant, constant
        actor = actor if is_name(actor) else role
        if not is_name(actor):
            raise ValueError(f"actor: expected a name, got {describe(actor)}")
        name, kind = sessions.strip_name(str(actor)), self._kind(role)
        if kind == "human" and self._is_from_scaffold(text):
            return self.add(name, "environment"), "environment"
        if sessions.mapping.role_rules:
            return self.add(name, kind), kind
        earlier_kind = self._kinds.setdefault(name, kind)
        if earlier_kind != kind:
            raise ValueError(f"role: {name!r} was of kind {earlier_kind} before and is {kind} here")
        if is_plain and name == actor:
            self.kind_cache[pair] = kind
        return name, kind

    def _is_from_scaffold(self, text: Any) -> bool:
        return type(text) is str and marks.is_from_scaffold(text, has_agent="agent" in self._kinds.values())

    def _kind(self, role: Any) -> ParticipantKind:
        """The kind of a role, looked up as logged, then stripped as `[names]` says, then in small letters,
        then as `*`; ValueError for an unknown role."""
        sessions = self._sessions
        role = str(role) if isinstance(role, (int, float)) else role
        alike = (role, sessions.strip_name(role), role.lower()) if isinstance(role, str) else (role,)
        for one in (*alike, ANY):
            if one in sessions.roles:
                return sessions.roles[one]
        roles = ", ".join(sessions.roles)
        raise ValueError(f"role: unknown role {str(role)[:80]!r}, expected one of {roles}")

    def add(self, actor: Any, kind: ParticipantKind) -> str:
        """Add a participant and return the name. Without one it is the kind; if somebody of another kind has
        it, the kind is added to it."""
        name = str(actor) if isinstance(actor, (str, int)) and actor != "" else kind
        while self._kinds.get(name, kind) != kind:
            name = f"{name} ({kind})"
        self._kinds[name] = kind
        return name

    def participants(self, head: dict[str, Any]) -> tuple[Participant, ...]:
        """All who took part, in the order in which they came up."""
        simulated = head["setting"] == "simulated"
        return tuple(
            _participant(
                name,
                kind,
                head["agent_model"] if kind == "agent" else None,
                simulated and kind == "human",
            )
            for name, kind in self._kinds.items()
        )


@lru_cache(maxsize=4096)
def _participant(name: str, kind: ParticipantKind, model: str | None, simulated: bool) -> Participant:
    """A participant; cached, for the same ones take part in many sessions."""
    return Participant(name=name, kind=kind, model=model, simulated=simulated)
