"""CoBlock's team faults as the paper describes them: who stopped early, who neglected their own goal."""

from __future__ import annotations

from collections.abc import Iterator

from ....schemas import Event, Finding, Trajectory
from ....schemas.text import count_of
from .metrics import Task, apply, block_of, final_world, task
from .world import Block, World

IDLE = 2
"""This many waits in a row at the end are a stop."""


def faults(trajectory: Trajectory) -> Iterator[Finding]:
    """Every fault of the team in one game."""
    yield from stopped_early(trajectory)
    yield from neglected_own_goal(trajectory)


def stopped_early(trajectory: Trajectory) -> Iterator[Finding]:
    """Who stopped while the target lacked a block of a colour that they still held.

    To stop is to end the session, or to do nothing but wait at the end, at least twice. The finding cites
    what they did last and the events in which they stopped.
    """
    setup = task(trajectory)
    for participant in trajectory.team():
        own = [event for event in trajectory.events if event.actor == participant.name]
        idle = _stop_events(own)
        if not idle:
            continue
        blocks = _placeable_blocks(trajectory, setup, participant.name, idle[0].seq)
        if blocks:
            last = [event.seq for event in own if event.seq < idle[0].seq][-1:]
            cites = (*last, *(event.seq for event in idle))
            why = (
                f"{participant.name} stopped with {count_of(len(blocks), 'block', 'blocks')} "
                "left that they could place"
            )
            yield Finding("stopped_early", trajectory.id, cites, why)


def _stop_events(events: list[Event]) -> list[Event]:
    """The waits and session ends at the end of an agent's events, if they amount to a stop."""
    tail: list[Event] = []
    for event in reversed(events):
        if event.kind not in ("wait", "finish"):
            break
        tail.insert(0, event)
    return tail if len(tail) >= IDLE or any(event.kind == "finish" for event in tail) else []


def _placeable_blocks(trajectory: Trajectory, setup: Task, name: str, seq: int) -> list[Block]:
    """Target blocks that were missing before `seq` in colours that the agent still held."""
    world, inventory = World(setup.initial), setup.inventories[name].copy()
    for event in trajectory.events[1:]:
        if event.seq >= seq:
            break
        apply(event, world)
        block = block_of(event)
        if block is not None and event.actor == name:
            inventory[block.colour] -= 1
    return [block for block in world.missing_blocks(setup.target) if inventory[block.colour] > 0]


def neglected_own_goal(trajectory: Trajectory) -> Iterator[Finding]:
    """Who left their own goal unfinished and placed more blocks for the partner's goal than for it.

    A block that both goals want counts as one's own. The finding cites the blocks placed for the partner.
    """
    setup = task(trajectory)
    names = [participant.name for participant in trajectory.team()]
    world = final_world(trajectory, setup.initial)
    for name in names:
        own = setup.goals.get(name, [])
        theirs = [block for other in names if other != name for block in setup.goals.get(other, [])]
        missing = world.missing_blocks(own)
        for_own, for_them = _placements_by_goal(trajectory, name, own, theirs)
        if missing and len(for_them) > len(for_own):
            why = (
                f"{name} placed {count_of(len(for_them), 'block', 'blocks')} for the partner "
                f"and {len(for_own)} of {len(own)} own"
            )
            yield Finding("neglected_own_goal", trajectory.id, for_them, why)


def _placements_by_goal(
    trajectory: Trajectory, name: str, own: list[Block], theirs: list[Block]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """seqs of the places that fit one's own goal, and of those that fit only the partner's."""
    mine, yours = ({block.cell for block in goal} for goal in (own, theirs))
    placements = [
        (event.seq, block.cell)
        for event in trajectory.events
        if event.actor == name and event.status == "succeeded" and (block := block_of(event))
    ]
    fits_own = tuple(seq for seq, cell in placements if cell in mine)
    return fits_own, tuple(seq for seq, cell in placements if cell in yours and cell not in mine)
