"""Co-Gym's live traffic as trajectories: messages are dealt to sessions, sessions become trajectories.

A session's id is that of its folder: both are made from the first record (`records.session_id`). What its
folder holds takes precedence over what was heard (`merge`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....schemas import Outcome, Participant, Trajectory, content_hash
from ..base import ReadOptions
from ..merge import END_REASON, hearing_outcome
from . import outcomes, records
from .messages import End, RawMessage, SessionMessage, Start, StateMessage, Step, parse_message
from .session import LiveSession

KEPT = 200
"""So many sessions that are over are remembered: a message after the end of one is not taken for a late join.
"""


@dataclass
class Sessions:
    """The sessions of one stream of messages."""

    open: dict[str, LiveSession] = field(default_factory=dict)
    over: OrderedDict[str, LiveSession | None] = field(default_factory=OrderedDict)
    """By name; None for one that came to its end, a session that only fell silent may go on."""
    changed: dict[str, LiveSession] = field(default_factory=dict)
    """By key; whoever stores them clears this."""
    strangers: dict[str, str] = field(default_factory=dict)
    """Session -> a member, for sessions that were already running: their state should be asked for."""
    fresh: list[LiveSession] = field(default_factory=list)
    """Sessions that were just opened; whoever looks at them clears this."""
    max_steps: int | None = None
    """How many logged records a party may have, where a person said so."""
    foreign: int = 0
    """Messages on channels of something else."""

    def feed(self, message: RawMessage) -> LiveSession | None:
        """Take in a message and return its session; ValueError where the payload cannot be read."""
        update = parse_message(message)
        if update is None:
            self.foreign += 1
            return None
        if update.kind == "tick":
            return None
        session = self._session(update)
        if session is None:
            return None
        self._apply(session, update)
        if session.log.records:
            self.changed[session.key] = session
        return session

    def close(self, name: str) -> LiveSession | None:
        """End a session that fell silent; should it speak again, it goes on."""
        session = self.open.pop(name, None)
        if session is not None:
            session.ended = "abandoned"
            self._remember(session)
        return session

    def apply_note(self, note: dict[str, Any]) -> None:
        """Apply a note that the follower wrote between the messages."""
        if "closed" in note:
            self.close(str(note["closed"]))
        if "follows" in note or "away" in note:
            for session in self.open.values():
                session.note_gap()
                self.changed[session.key] = session
            for name, silent in list(self.over.items()):
                if silent is None:
                    del self.over[name]  # another run of it may have begun unheard
                else:
                    silent.silent_in_gap = True

    def _session(self, update: SessionMessage) -> LiveSession | None:
        """The session that a message belongs to; None where there is none to speak of (yet)."""
        name = update.session
        if isinstance(update.payload, Start):
            self.close(name)
            self.strangers.pop(name, None)
            return self._open_session(LiveSession.from_start(name, update.time, update.payload))
        self._revive(name)
        self._part_runs(update)
        if name in self.open:
            return self.open[name]
        return None if name in self.over else self._handle_stranger(update)

    def _revive(self, name: str) -> None:
        """Have a session that fell silent go on."""
        silent = self.over.get(name)
        if silent is None or name in self.open:
            return
        del self.over[name]
        self.open[name] = silent
        silent.ended = None
        if silent.silent_in_gap:
            silent.silent_in_gap = False
            silent.note_gap()

    def _part_runs(self, update: SessionMessage) -> None:
        """End a session of which another run has begun unheard: names are used again, and its chat is not
        continued."""
        session = self.open.get(update.session)
        if session and isinstance(update.payload, StateMessage) and session.is_another_run(update.payload):
            session.leave_to_another_run()
            self.close(update.session)
            del self.over[update.session]

    def _handle_stranger(self, update: SessionMessage) -> LiveSession | None:
        if isinstance(update.payload, StateMessage) and update.payload.task_description is not None:
            self.strangers.pop(update.session, None)
            session = LiveSession.from_state(update.session, update.time, update.role, update.payload)
            self.changed[session.key] = self._open_session(session)
            return None
        if isinstance(update.payload, End):
            self.strangers.pop(update.session, None)
        role = update.payload.role if isinstance(update.payload, Step) else update.role
        if role and not isinstance(update.payload, End):
            self.strangers.setdefault(update.session, role)
        return None

    def _open_session(self, session: LiveSession) -> LiveSession:
        self.open[session.name] = session
        self.fresh.append(session)
        return session

    def _apply(self, session: LiveSession, update: SessionMessage) -> None:
        if isinstance(update.payload, Step):
            session.step(update.time, update.payload.role, update.payload.action)
        elif isinstance(update.payload, StateMessage):
            session.take_state(update.time, update.role, update.payload)
        elif isinstance(update.payload, End):
            config = records.config_of(Path(update.payload.result_dir or session.name))
            settings = config if isinstance(config, dict) else {}
            limit = records.step_limit(settings, session.team, self.max_steps)
            session.end(update.time, update.payload.result_dir, limit.steps)
            del self.open[session.name]
            self._remember(session)

    def _remember(self, session: LiveSession) -> None:
        self.changed[session.key] = session
        self.over[session.name] = session if session.ended == "abandoned" else None
        self.over.move_to_end(session.name)
        while len(self.over) > KEPT:
            self.over.popitem(last=False)


def trajectory(
    session: LiveSession, source: str, options: ReadOptions, known_as: str | None = None
) -> Trajectory:
    """The session as it stands, as a trajectory. `known_as` is its folder's id, where only the folder could
    tell."""
    task, instance = records.task_of(session.name, session.log, {})
    above = records.condition_of(Path(session.result_dir)) if session.result_dir else None
    real = any(name.startswith("user_") for name in session.team)
    return Trajectory(
        id=known_as or session_id(session),
        native_id=session.name,
        source=source,
        system=records.SYSTEM,
        setting=options.setting or ("real" if real else None),
        condition=options.condition or above,
        task=task,
        instance=instance,
        agent=options.agent or records.agent_of(session.team),
        tags=options.tags,
        participants=tuple(_participants(session)),
        events=session.events(),
        outcomes=(*_outcomes(session), _hearing(session)),
        states=session.log.states,
        hidden=session.hidden,
    )


def session_id(session: LiveSession) -> str:
    """The id that the session's folder has; for a session joined late an id of its own, until the folder is
    read."""
    if session.late:
        return content_hash(records.SYSTEM, "joined late", session.name, session.description, session.opened)[
            :16
        ]
    opening = session.log.opening
    start = session.log.first.timestamp
    return records.session_id(session.name, session.log.first.team, session.description, opening, start)


def _participants(session: LiveSession) -> Iterator[Participant]:
    for name in [*session.team, records.ENVIRONMENT]:
        yield Participant(name=name, kind=records.participant_kind(name))


def _outcomes(session: LiveSession) -> Iterator[Outcome]:
    """The folder's outcomes as far as live traffic tells: the final state and the score are only there."""
    last = session.log.events[-1]
    is_finished = last.kind == "finish" and last.status == "succeeded"
    yield _end_reason(session, is_finished)
    final = session.log.last.current_observation.public if is_finished else {}
    has_result = outcomes.has_result(final) if final else None
    why = None
    if has_result is None:
        why = "the last state is only in the session's folder" if session.ended == "end" else "not ended"
    value = None if has_result is None else float(has_result)
    yield Outcome(name="delivered", value=value, reason=why)
    yield Outcome(name="task_performance", reason="the score is only in the session's folder")
    yield Outcome(name="result", text=outcomes.editor_text(final))


def _hearing(session: LiveSession) -> Outcome:
    counts = session.gaps, session.recovered, session.missed
    return hearing_outcome(session.late, *counts, unsettled=session.doubtful)


def _end_reason(session: LiveSession, is_finished: bool) -> Outcome:
    if session.ended != "end":
        return Outcome(name=END_REASON, text=session.ended or "unfinished")
    if is_finished:
        return Outcome(name=END_REASON, text="finished")
    # After the last step of a limit nothing is shown to anybody; a time-out leaves nothing unanswered.
    text, why = ("step_limit", "right after") if session.cut_short else ("time_out", "long after")
    mark = "inferred" if session.gaps else "heard"
    return Outcome(name=END_REASON, text=text, data={mark: f"the end came {why} a step"})
