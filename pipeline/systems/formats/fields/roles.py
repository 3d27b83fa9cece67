"""What kind of participant a name stands for, as far as the name says it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from .....schemas.trajectory import ParticipantKind
from .mapping import ROLES

_WORDS: tuple[tuple[ParticipantKind, tuple[str, ...]], ...] = (
    (
        "environment",
        ("tool", "tools", "terminal", "computerterminal", "environment", "env", "system", "function"),
    ),
    ("environment", ("observation", "observations", "code_executor", "shell", "console", "developer")),
    ("environment", ("sandbox", "toolresult", "narrator", "result", "output", "interpreter", "feedback")),
    ("environment", ("state", "log", "logger", "callback", "status", "error", "simulator", "executor")),
    ("human", ("user", "human", "prompter", "interviewer", "interviewee", "respondent", "subject")),
    ("human", ("moderator", "customer", "client", "patient", "student", "learner", "seeker", "caller")),
    ("human", ("person", "participant", "worker", "crowdworker", "annotator", "you", "visitor", "guest")),
    ("human", ("admin", "me", "incoming", "human_agent", "humanagent", "live_agent", "liveagent")),
    ("agent", ("outgoing",)),
    ("human", ("turker", "turkers", "mturk")),
    ("human", ("nutzer", "nutzerin", "benutzer", "benutzerin", "teilnehmer", "teilnehmerin", "mensch")),
    ("human", ("utilisateur", "utilisatrice", "usuario", "usuaria", "usuário", "utente", "gebruiker")),
    ("human", ("пользователь", "ユーザー", "ユーザ", "用户", "使用者", "사용자")),
    ("agent", ("assistent", "assistentin", "asistente", "assistente", "ki", "ia")),
    ("agent", ("ассистент", "помощник", "アシスタント", "助手", "어시스턴트")),
    ("human", ("teacher", "tutor", "operator", "wizard", "clinician", "doctor", "apprentice", "inquirer")),
    ("agent", ("assistant", "agent", "bot", "chatbot", "model", "ai", "gpt", "gpt4", "chatgpt", "claude")),
    ("agent", ("llama", "gemini", "mistral", "qwen", "bard", "copilot", "llm", "robot", "planner", "critic")),
    ("agent", ("orchestrator", "surfer", "websurfer", "filesurfer", "coder", "expert", "manager", "solver")),
    ("agent", ("reviewer", "verifier", "programmer", "ceo", "cto", "cpo", "researcher", "action")),
)
CROWD = {"turker", "turkers", "mturk", "crowdworker"}
"""Words that make a name a person's, whatever else is in it."""
TRADES = {"teacher", "tutor", "operator", "wizard", "clinician", "doctor", "interviewer", "moderator"}
"""Words of people, of whom a model may do the work, as an `AI Tutor` does."""
MODELS = {"ai", "llm", "gpt", "chatgpt"}
_KINDS = {word: kind for kind, words in _WORDS for word in words}
BOTS = {
    "assistant",
    "bot",
    "chatbot",
    "gpt",
    "chatgpt",
    "ai",
    "copilot",
    "claude",
    "gemini",
    "bard",
    "llm",
    "model",
    "robot",
}
"""Words of names of agents that people talk with."""
_PERSON = re.compile(r"[^\W\d_a-z][^_]*$|@")
"""People's names: with a capital, or in a script that has none, or of an account."""
_ORDER = ("agent", "environment", "human")


@dataclass(frozen=True)
class Role:
    """A role of the log, what it is taken for, and whether its name says so."""

    name: str
    kind: ParticipantKind
    is_known: bool
    count: int = 0

    @property
    def is_builtin(self) -> bool:
        """Whether it is of this kind without a mapping."""
        return ROLES.get(self.name) == self.kind


def role_of(name: str, count: int = 0) -> Role:
    """What a name is taken for: an agent where nothing in it says anything else."""
    kind = _kind_of(name)
    return Role(name, kind or "agent", kind is not None, count)


@lru_cache(maxsize=4096)
def _kind_of(name: str) -> ParticipantKind | None:
    plain = name.strip().lower()
    if plain in ROLES:
        return ROLES[plain]
    words = [re.sub(r"\W", "", plain), re.sub(r"[\W\d_]", "", plain), *reversed(_parts(name))]
    if TRADES.intersection(words) and MODELS.intersection(words):
        return "agent"
    kinds = [_KINDS[word] for word in sorted(words, key=CROWD.__contains__, reverse=True) if word in _KINDS]
    return kinds[0] if kinds else None


def _parts(name: str) -> list[str]:
    return [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def _words(name: str) -> set[str]:
    return {re.sub(r"\W", "", name.lower()), *_parts(name)}


def is_call(name: str) -> bool:
    """Whether a role's name is that of a tool call, which an agent made, and not of its result."""
    words = _words(name)
    return bool({"call", "use", "invocation"} & words) and not {"result", "output", "response", "end"} & words


def roles_of(names: Iterable[tuple[str, int]]) -> list[Role]:
    """What each name is taken for, by kind and name. Of two that say nothing, the first is a human and the
    second an agent."""
    roles = [role_of(name, count) for name, count in names]
    unknown = [role for role in roles if not role.is_known]
    bots = [role for role in roles if role.is_known and BOTS & _words(role.name)]
    teammates = [role for role in roles if role.is_known and role.kind != "environment"]
    people = len(unknown) == 1 and len(roles) == 2
    people = people or (
        all(_PERSON.match(role.name) for role in unknown) and any("bot" in role.name.lower() for role in bots)
    )
    if unknown and teammates == bots and len(bots) == 1 and people:
        # Beside one chat bot stand people; beside an agent of a team mostly other agents.
        roles = [Role(r.name, "human", False, r.count) if r in unknown else r for r in roles]
    elif len(roles) == 2 and len(unknown) == 2:
        first, second = roles
        return [Role(first.name, "human", False, first.count), second]
    kinds = [role.kind for role in roles]
    if "agent" not in kinds and "human" in kinds:
        # In a dialogue without an agent, the system is who answers people.
        roles = [Role(r.name, "agent", True, r.count) if r.name.lower() == "system" else r for r in roles]
    return sorted(roles, key=lambda role: (_ORDER.index(role.kind), role.name))


def contrary_kinds(messages: Iterable[tuple[object, str, str]]) -> dict[str, ParticipantKind]:
    """Name -> the kind that it says, where its roles in a chat say the other of human and agent.

    `messages` are (session, name or "", role). An agent's name under a human's role counts only where `user`
    stands beside several names of a session, as frameworks call agents so, or people's names stand under an
    agent's role; these count only where agents' names are under a human's, for a `tutor` may be a model.
    """
    roles: dict[str, set[ParticipantKind | None]] = {}
    users: dict[object, set[str]] = {}
    for session, name, role in messages:
        kind = ROLES.get(role.lower())
        roles.setdefault(name, set()).add(kind)
        if kind == "human":
            users.setdefault(session, set()).add(name)
    kinds = {name: role_of(name).kind for name in roles if name and role_of(name).is_known}
    bots = {name for name, kind in kinds.items() if (kind, roles[name]) == ("agent", {"human"})}
    people = {name for name, kind in kinds.items() if (kind, roles[name]) == ("human", {"agent"})}
    if not bots or not (people or any(len(names) > 1 for names in users.values())):
        return {}
    return {name: kind for name, kind in kinds.items() if name in bots | people}


def several_users(messages: Iterable[tuple[object, str, str]]) -> list[str]:
    """The names under a human's role in sessions that have several of these."""
    users: dict[object, list[str]] = {}
    for session, name, role in messages:
        if name and ROLES.get(role.lower()) == "human" and name not in users.setdefault(session, []):
            users[session].append(name)
    return list(dict.fromkeys(name for names in users.values() if len(names) > 1 for name in names))
