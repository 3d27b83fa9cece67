"""An advisor that looks on: when a person is called for, and what the alert says."""

from __future__ import annotations

from typing import Any

import pytest

from coaudit.pipeline.follow.calls import Calls
from coaudit.schemas import Action, Event, Outcome, Trajectory
from tests.pipeline.advise import games
from tests.pipeline.follow.test_alerts import trajectory


def acts(*, failed: bool = False) -> Event:
    action = Action(name="Search")
    return Event(seq=0, actor="a", kind="action", action=action, status="failed" if failed else "succeeded")


async def calls(*looks: Trajectory, above: float = 0.0, initial: dict[str, int] | None = None) -> list[Any]:
    raised: list[dict[str, Any]] = []
    watch = Calls(raised.append, games.advisor(), above, initial or {})
    for look in looks:
        await watch([look])
    return raised


async def test_a_person_is_called_once_a_step_where_the_gain_passes_the_threshold() -> None:
    """By hand: .1 + .5 - .1 · 2 = .4 after a failed first step, -.1 after a good one."""
    failed, fine = trajectory(acts(failed=True)), trajectory(acts())
    (alert,) = await calls(failed, failed)
    assert (alert["alert"], alert["step"], alert["event"], alert["call"]) == ("call_a_person", 2, 0, True)
    assert alert["gain"] == pytest.approx(0.4)
    assert alert["because"][0] == {"what": "last: failed", "weight": 0.5}
    assert await calls(fine) == []
    assert await calls(failed, above=0.5) == []


async def test_what_has_ended_or_was_there_before_calls_nobody_until_it_grows() -> None:
    failed = trajectory(acts(failed=True))
    assert await calls(trajectory(acts(failed=True), ended=True)) == []
    known = failed.model_copy(update={"outcomes": (Outcome(name="task_reward", value=0.0),)})
    assert await calls(known) == []
    assert await calls(failed, initial={"t": 0}) == []
    grown = trajectory(acts(failed=True), acts(failed=True))
    assert [a["step"] for a in await calls(failed, grown, initial={"t": 0})] == [3]
    assert [a["step"] for a in await calls(grown, initial={"t": 0})] == [3]
    assert await calls(grown, initial={"t": 1}) == []
