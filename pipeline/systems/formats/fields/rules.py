"""Who speaks and whether a result failed: a mapping's rules first, then the shipped marks (marks.py)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .....schemas import JsonValue
from .....schemas.trajectory import ParticipantKind
from . import contents, marks
from .mapping import Mapping, parse
from .paths import fits, getter


class Rules:
    """What a mapping says of roles and results, on top of what is shipped."""

    def __init__(self, mapping: Mapping) -> None:
        self.mapping = mapping
        conditions = [rule.where for rule in mapping.role_rules] + [rule.where for rule in mapping.results]
        self._paths = {path: getter(path) for condition in conditions for path in condition}

    def speaker(
        self, message: dict[str, Any], *, has_agent: bool = True
    ) -> tuple[ParticipantKind, str | None]:
        """(kind, a rule's own name for them) of who says `message`, `{role, content, name}`, where an agent
        spoke before (`has_agent`) or none; ValueError for an unknown role."""
        rule = next((r for r in self.mapping.role_rules if self._fits(r.where, message)), None)
        if rule is not None:
            return rule.kind, rule.actor
        role, kinds = message["role"], self.mapping.role_table
        if role not in kinds:
            raise ValueError(f"unknown role {role[:80]!r}, expected one of {', '.join(kinds)}")
        content = message.get("content")
        if kinds[role] != "human" or not isinstance(content, str):
            return kinds[role], None
        return "environment" if marks.is_from_scaffold(content, has_agent=has_agent) else "human", None

    def status(self, content: JsonValue, tool: str | None) -> marks.Status | None:
        """Whether a tool's result failed or succeeded; None where nothing says it."""
        text = contents.plain_text(content)
        value = contents.arguments(text)[0] if text.lstrip().startswith("{") else content
        result = {"content": text, "tool": tool, "json": value}
        for rule in self.mapping.results:
            if self._fits(rule.where, result):
                return None if rule.status == "unknown" else rule.status
        return marks.status(content) or self.mapping.constants.status

    def _fits(self, where: dict[str, Any], value: dict[str, Any]) -> bool:
        return fits(where, lambda path: self._paths[path](value))


@lru_cache(maxsize=8)
def rules(text: str | None) -> Rules:
    """The rules of a mapping's text; the shipped ones alone without one."""
    return Rules(parse(text) if text else Mapping())
