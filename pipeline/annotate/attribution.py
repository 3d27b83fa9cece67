"""Whose answer an annotation is, and whether it may count as that person's.

Any member of a Label Studio organisation can open a colleague's annotation from the list of tasks and update
it: it then has the colleague's name and the other's answer. And an answer is not blind if another's could be
seen when it was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .project import Mark

_AUTHOR = re.compile(r"(?:.* )?(\S+@\S+), (\d+)")
"""How an annotation has its author: their name, if they gave one, their address and their number."""


@dataclass(frozen=True)
class Refusal:
    """An annotation that is kept as received and never counted, and why."""

    project: int
    task: int
    annotation: int | None
    completed_by: str
    updated_by: str | None
    reason: str

    def text(self) -> str:
        """One line for people."""
        return f"task {self.task}, annotation {self.annotation} by {self.completed_by}: {self.reason}"


def origin_of(external: Any) -> dict[str, Any]:
    """The address in Label Studio of the annotation that a rating was pulled from, out of its `external`; {}
    where there is none. Anybody may import ratings, with anything there."""
    origin = external.get("labelstudio") if isinstance(external, dict) else None
    if not isinstance(origin, dict):
        return {}
    fits = (
        isinstance(origin.get("server"), str)
        and isinstance(origin.get("project"), int)
        and isinstance(origin.get("updated_at", ""), str)
        and all(value is None or isinstance(value, str | int) for value in origin.values())
    )
    return origin if fits else {}


def person(user: Any) -> int | None:
    """A person's number, from an annotation as listed or as exported."""
    number = user.get("id") if isinstance(user, dict) else user
    return number if isinstance(number, int) else None


def name(users: Mapping[int, str], user: Any) -> str:
    """A person's e-mail address; their number where it is not known."""
    if isinstance(user, dict) and user.get("email"):
        return str(user["email"])
    number = person(user)
    return users.get(number, str(number)) if number is not None else "unknown"


def authors(annotations: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """E-mail addresses by number as annotations have them: of who left, the list of people has none."""
    matches = (_AUTHOR.fullmatch(str(one.get("created_username"))) for one in annotations)
    return {int(match[2]): match[1] for match in matches if match}


def changed_by(annotation: Mapping[str, Any]) -> Any:
    """The user who last changed this annotation of somebody else's; None where nobody did."""
    last, own = annotation.get("updated_by"), annotation.get("completed_by")
    return last if person(last) is not None and person(last) != person(own) else None


def refusals(
    project: int,
    mark: Mark | None,
    task: int,
    annotations: Sequence[dict[str, Any]],
    users: Mapping[int, str],
) -> dict[int, Refusal]:
    """The annotations of a task that must not count, by their place in `annotations`."""
    result: dict[int, Refusal] = {}
    order = sorted(range(len(annotations)), key=lambda n: str(annotations[n].get("created_at") or ""))
    # A skipped task leaves no answer that others could see.
    answers = [annotations[n] for n in order if not annotations[n].get("was_cancelled")]
    first = person(answers[0].get("completed_by")) if answers else None
    earlier: list[int | None] = []
    for place in order:
        annotation = annotations[place]
        by, other = annotation.get("completed_by"), changed_by(annotation)
        blind = not answers or person(by) == first
        again = _is_after_anothers(person(by), earlier)
        if not annotation.get("was_cancelled"):
            earlier.append(person(by))
        if reason := _reason(mark, name(users, by), other and name(users, other), blind, again):
            number = annotation.get("id")
            people = (name(users, by), name(users, other) if other else None)
            result[place] = Refusal(project, task, number, *people, reason)
    return result


def _is_after_anothers(by: int | None, earlier: Sequence[int | None]) -> bool:
    """Whether a person had answered a task before somebody else did, who both are among the `earlier`."""
    return by in earlier and any(one != by for one in earlier[earlier.index(by) :])


def _reason(mark: Mark | None, by: str, other: str | None, blind: bool, again: bool) -> str | None:
    if other:
        return (
            f"changed by {other}: whose answer it is now can't be told, it is not counted; one that was "
            "pulled before the change still is"
        )
    if mark is None or not mark.annotator:
        return None
    if mark.person and by.casefold() != mark.person.casefold():
        return f"this is the project of {mark.person}: it is not counted"
    if not mark.person and not blind:
        return "somebody else answered this task, and their answer could be seen: it is not counted"
    if again:
        return "somebody else's answer could be seen when it was given: it does not replace the earlier one"
    return None
