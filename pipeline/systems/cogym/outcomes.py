"""What came of a Co-Gym session: the files beside its log, and what follows from its last state."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ....schemas import Event, JsonValue, Outcome, Quarantined
from ....schemas.trajectory import ParticipantKind, decimal_in, is_finite, number_in
from ..base import json_file, json_lines, only_object
from ..merge import END_REASON
from .records import StepLimit, is_file

PERFORMANCE = "task_performance.json"
SIMULATED_USER = "simulated_user"
_INFO, _CALLS = "info.json", "llm_call_history.jsonl"
FILES = frozenset((PERFORMANCE, _INFO, _CALLS))
"""Names of the files beside a log that are read."""
_HIDDEN_MARK = "Additional information that you know"
_RATINGS = {
    "outcomeRating": "outcome_rating",
    "agentRating": "satisfaction",
    "communicationRating": "communication_rating",
}
_LINK = re.compile(r"\[\[(\d+)\]\([^)\[]*\)\]")
"""A citation of a related work as its evaluation links it; no address has a bracket."""


class SessionFiles:
    """The files beside an event log; `folder` is None for a session that is a single file and has none.

    An evaluation whose result is not the log's last state was left by an earlier run in the same folder, and
    so was all that Co-Gym writes after it: such files are set aside as stale. Their times tell nothing, since
    a copy has others.
    """

    def __init__(self, folder: Path | None, final_state: dict[str, Any]) -> None:
        self.folder = folder
        self.final_state = final_state
        self.quarantined: list[Quarantined] = []
        self._stale = False
        self.performance = self._performance()
        self.ended = not self._stale and folder is not None and (folder / PERFORMANCE).is_file()
        """Whether the session came to its end: the file that Co-Gym writes then is there, readable or not."""
        self.simulated_user = folder is not None and (folder / SIMULATED_USER).is_dir()

    def has_result(self) -> bool | None:
        """Whether the last state holds a result: a text, and for related work a library too; None for an
        environment whose result Co-Gym does not define."""
        return has_result(self.final_state)

    def player_fields(self, name: str, kind: ParticipantKind) -> dict[str, Any]:
        """The model, tokens and simulated mark of a participant, from its info.json."""
        if self.folder is None or kind == "environment":
            return {}
        if kind == "human":
            return self._simulated_human() if self.simulated_user else {}
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            return {}
        info = self._object(self.folder / name / _INFO)
        return {"model": _text(info.get("lm")), "tokens": _tokens(info.get("token_usage"))}

    @cached_property
    def hidden(self) -> JsonValue:
        """What only the simulated human was told, out of the prompts it was played with."""
        calls = self.folder and self.folder / SIMULATED_USER / _CALLS
        if not calls or not calls.is_file():
            return None
        for _, call in json_lines(calls):
            prompt = call.get("prompt") if isinstance(call, dict) else None
            if isinstance(prompt, str) and _HIDDEN_MARK in prompt:
                return _object_after(prompt, _HIDDEN_MARK)
        return None

    def _simulated_human(self) -> dict[str, Any]:
        info = self._object(self._folder / SIMULATED_USER / _INFO)
        usage = info.get("token_usage")
        parts = [_tokens(part) for part in usage.values()] if isinstance(usage, dict) else []
        total = {key: sum(part.get(key, 0) for part in parts) for key in parts[0]} if parts else {}
        return {"model": _text(info.get("planning_lm")), "simulated": True, "tokens": total}

    def _performance(self) -> dict[str, Any] | None:
        if self.folder is None or not (self.folder / PERFORMANCE).is_file():
            return None
        performance = self._object(self.folder / PERFORMANCE)
        if not _same_result(performance, self.final_state):
            why = "stale: its result is not the log's last state, it belongs to an earlier run"
            self._set_aside(self.folder / PERFORMANCE, why)
            self._stale = True
            return None
        return performance or None

    def _object(self, path: Path) -> dict[str, Any]:
        if not is_file(path):
            return {}
        if self._stale:
            self._set_aside(path, f"stale: {PERFORMANCE}, which is written before it, is")
            return {}
        value = only_object(json_file(path), str(path), None)
        if isinstance(value, Quarantined):
            self.quarantined.append(value)
            return {}
        return value

    def _set_aside(self, path: Path, reason: str) -> None:
        self.quarantined.append(Quarantined(source=str(path), reason=reason))

    @property
    def _folder(self) -> Path:
        if self.folder is None:
            raise ValueError("a session that is one file has no files beside it")
        return self.folder


def outcomes(events: Sequence[Event], files: SessionFiles, limit: StepLimit | None) -> Iterator[Outcome]:
    """end_reason, delivered, task_performance and the result, each null with a reason where unknown."""
    reason = end_reason(events, files, limit)
    yield reason
    performance = files.performance or {}
    yield _delivery(performance, reason.text, files)
    yield _task_performance(performance, unreadable=files.ended and files.performance is None)
    result = performance.get("outcome")
    yield Outcome(name="result", text=result if isinstance(result, str) else editor_text(files.final_state))


def rated_outcomes(record: dict[str, JsonValue]) -> Iterator[Outcome]:
    """The ratings that a person gave after a released real-user session (1-5)."""
    for key, name in _RATINGS.items():
        rating = record.get(key)
        if (value := _number(rating)) is not None:
            yield Outcome(name=name, value=value)
        elif not _is_blank(rating):
            yield Outcome(name=name, reason=f"{key} must be a number, got {rating!r:.42}")
    feedback = record.get("agentFeedback")
    if isinstance(feedback, str):
        yield Outcome(name="agent_feedback", text=feedback)


def end_reason(events: Sequence[Event], files: SessionFiles, limit: StepLimit | None) -> Outcome:
    """Why the session ended, which Co-Gym does not store: finished, step_limit, time_out, or unfinished.

    All but `finished` is inferred, and `data` says from what. A released file is known to have ended; where
    neither FINISH nor the limit shows why, it is `unknown`.
    """
    last = events[-1]
    if last.kind == "finish" and last.status == "succeeded":
        return Outcome(name=END_REASON, text="finished")
    if limit is not None and _steps(events) >= limit.steps:
        return _inferred_reason("step_limit", f"{_steps(events)} steps of {limit}")
    if files.folder is None:
        return _inferred_reason("unknown", "the session has ended, and its log does not show why")
    if not files.ended:
        return _inferred_reason("unfinished", f"no FINISH, and no {PERFORMANCE} of this run")
    return _inferred_reason("time_out", f"no FINISH, and {_steps(events)} steps of {limit}")


def _inferred_reason(text: str, why: str) -> Outcome:
    return Outcome(name=END_REASON, text=text, data={"inferred": why})


def _steps(events: Sequence[Event]) -> int:
    """Records of the party that has more, by Co-Gym's substring rule; the opening query does not count."""
    records = [e.actor for e in events if e.kind != "start" and e.status is not None]
    return max(sum("agent" in actor for actor in records), sum("user" in actor for actor in records))


def has_result(public: dict[str, Any]) -> bool | None:
    """Whether a state holds a result; None for an environment whose result Co-Gym does not define.

    Whitespace counts as delivered, except for related work, which needs a paper in the library too.
    """
    if "related_works_editor" in public:
        return bool(public.get("library")) and bool(str(public["related_works_editor"]).strip())
    text = editor_text(public)
    return None if text is None else len(text) > 0


def editor_text(public: dict[str, Any]) -> str | None:
    """The text of whichever editor the task has."""
    for key in ("travel_plan_editor", "related_works_editor", "result_editor"):
        if isinstance(public.get(key), str):
            return str(public[key])
    return None


def _delivery(performance: dict[str, Any], reason: str | None, files: SessionFiles) -> Outcome:
    flag = performance.get("task_completion")
    completion = number_in(flag) if isinstance(flag, str) else flag
    value = float(completion) if isinstance(completion, bool) else _number(completion)
    if value in (0, 1):
        return Outcome(name="delivered", value=value)
    if value is not None or (isinstance(flag, str) and flag.strip()):
        return Outcome(name="delivered", reason=f"task_completion must be 0 or 1, got {flag!r:.42}")
    if reason == "unfinished":
        return Outcome(name="delivered", reason="the session did not come to an end")
    result = files.has_result()
    if result is None:
        flagless = "this task has no flag for delivery"
        return Outcome(name="delivered", reason=flagless if files.final_state else "the log shows no state")
    return Outcome(name="delivered", value=float(result))


def _task_performance(performance: dict[str, Any], *, unreadable: bool) -> Outcome:
    rating = performance.get("performance_rating")
    details = {k: v for k, v in performance.items() if k not in ("outcome", "performance_rating")} or None
    value = _number(rating)
    if value is not None:
        return Outcome(name="task_performance", value=value, data=details)
    reason = "its evaluation found no score" if rating == "" else "the log has no performance rating"
    if unreadable:
        reason = f"nothing can be read of its {PERFORMANCE}"
    return Outcome(name="task_performance", reason=reason, data=details)


def _same_result(performance: dict[str, Any], public: dict[str, Any]) -> bool:
    """Whether a recorded result can be that of this log's last state."""
    text = editor_text(public)
    result = performance.get("pure_text", performance.get("outcome"))
    if text is None or not isinstance(result, str):
        return True
    if "related_works_editor" in public:
        result, text = (_LINK.sub(r"[\1]", words).strip() for words in (result, text))
    return result == text


def _object_after(text: str, mark: str) -> JsonValue:
    start = text.find("{", text.index(mark))
    if start < 0:
        return None
    try:
        value: JsonValue = json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None
    return value


def _number(value: object) -> float | None:
    """A finite number, also where it is written as a text; None for everything else, as `true` is."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and value.strip().isalpha():
        return None
    number = decimal_in(value) if isinstance(value, str) else value
    return float(number) if number is not None and is_finite(number) else None


def _is_blank(value: object) -> bool:
    """Whether a rating is empty: null, blank, or NaN, as tables write it."""
    blank = value is None or (isinstance(value, str) and not value.strip())
    return blank or (isinstance(value, float) and math.isnan(value))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _tokens(usage: object) -> dict[str, int]:
    if not isinstance(usage, dict):
        return {}
    return {
        str(k): v
        for k, v in usage.items()
        if isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2**62
    }
