"""CoBlock's metrics by replay: success, progress, workload balance, timesteps, illegal moves.

What counts as an action for the workload is not said in the paper: here places and breaks. Where there
are two readings the first has no `scoring` and the other names itself: workload_balance on the target's
blocks, or `literal`; timesteps as every action, messages and waits included, or `place_break`. A record
that is the beginning of another of its session, made at once with it, is a copy: its metrics are missing for
that reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....schemas import Event, Finding, JsonValue, Measure, Trajectory
from . import world as blocks_world
from .workload import Reading, balance, literal_split, split
from .world import Block, World

NO_TARGET = "the export does not say what was to be built"


@dataclass(frozen=True, slots=True)
class Task:
    """What was to be built, by whom and with what."""

    target: list[Block]
    initial: list[Block]
    inventories: dict[str, Counter[str]]
    goals: dict[str, list[Block]]


def task(trajectory: Trajectory) -> Task:
    """The task as the start event's states hold it."""
    start = trajectory.events[0]
    views = {view: _state(trajectory, key) for view, key in start.states.items()}
    stage = views.pop("environment", {})
    return Task(
        blocks_world.blocks(stage.get("target"), "target"),
        blocks_world.blocks(stage.get("initial"), "initial"),
        {name: blocks_world.counts(state.get("inventory")) for name, state in views.items()},
        {name: blocks_world.blocks(state.get("goal"), f"{name}.goal") for name, state in views.items()},
    )


def _state(trajectory: Trajectory, key: str) -> dict[str, JsonValue]:
    state = trajectory.states[key]
    return state if isinstance(state, dict) else {}


def acts(trajectory: Trajectory, actor: str | None = None) -> list[Event]:
    """The places and breaks, of one actor where one is given."""
    return [e for e in trajectory.events if e.kind == "action" and actor in (None, e.actor)]


def block_of(event: Event) -> Block | None:
    """The block that a place event puts."""
    if event.action is None or event.action.name != "place":
        return None
    return blocks_world.block(event.action.arguments, f"event {event.seq}", "blockPos")


def apply(event: Event, world: World) -> None:
    """Carry a place or break out on the world; any other event leaves it as it is."""
    if block := block_of(event):
        world.place(block)
    elif event.action and event.action.name == "break":
        world.break_(str(event.action.arguments.get("uid", "")))


def final(trajectory: Trajectory, initial: list[Block]) -> World:
    """The world in the end."""
    world = World(initial)
    for event in trajectory.events[1:]:
        apply(event, world)
    return world


def progress(trajectory: Trajectory) -> list[float | None]:
    """Matching blocks over the larger of target and standing: at the start, then after every action."""
    setup = task(trajectory)
    world = World(setup.initial)
    shares = [world.progress(setup.target)]
    for event in trajectory.events[1:]:
        apply(event, world)
        shares.append(world.progress(setup.target))
    return shares


def measures(trajectory: Trajectory) -> Iterator[Measure]:
    """Every metric of one game."""
    setup = task(trajectory)
    world = final(trajectory, setup.initial)
    rows = [
        *_built(trajectory, setup, world),
        *_effort(trajectory, setup),
        *_faults(trajectory, setup),
    ]
    for row in rows:
        if trajectory.copy_of is None:
            yield row
        else:
            yield _missing(row, f"a shorter copy of record {trajectory.copy_of}")


def _missing(row: Measure, reason: str) -> Measure:
    return replace(row, value=None, reason=reason)


def _built(trajectory: Trajectory, setup: Task, world: World) -> Iterator[Measure]:
    reason = None if setup.target else NO_TARGET
    success = float(world.complete(setup.target)) if setup.target else None
    share = world.progress(setup.target) if setup.target else None
    extra = float(len(world.extra(setup.target))) if setup.target else None
    # What the paper's reflection step checks: nothing stands that the target has not, and be it unfinished.
    exact = None if extra is None else float(extra == 0)
    for metric, value in (
        ("success_rate", success),
        ("progress", share),
        ("extra_blocks", extra),
        ("partial_structure", exact),
    ):
        yield Measure(metric, trajectory.id, value, reason=reason)


def _effort(trajectory: Trajectory, setup: Task) -> Iterator[Measure]:
    readings: tuple[tuple[Reading, str | None], ...] = (("target", None), ("literal", "literal"))
    for reading, scoring in readings:
        value, reason = workload_balance(trajectory, setup, reading)
        yield Measure("workload_balance", trajectory.id, value, reason=reason, scoring=scoring)
    yield Measure("timesteps", trajectory.id, float(len(trajectory.events) - 1))
    yield Measure("timesteps", trajectory.id, float(len(acts(trajectory))), scoring="place_break")


def workload_balance(
    trajectory: Trajectory, setup: Task, reading: Reading = "target"
) -> tuple[float | None, str | None]:
    """γ of a game of two, or None with the reason."""
    names = [participant.name for participant in trajectory.team()]
    if len(names) != 2:
        return None, f"defined for two agents, there are {len(names)}"
    if reading == "target" and not setup.target:
        return None, NO_TARGET
    a, b = (setup.inventories.get(name, Counter()) for name in names)
    work = World(setup.initial).missing(setup.target)
    shares = split(a, b, [block.colour for block in work]) if reading == "target" else literal_split(a, b)
    counts = len(acts(trajectory, names[0])), len(acts(trajectory, names[1]))
    return balance(counts, shares.optimal)


def _faults(trajectory: Trajectory, setup: Task) -> Iterator[Measure]:
    illegal = {finding.cites for finding in illegal_placements(trajectory, setup)}
    vain = {finding.cites for finding in breaks_without_effect(trajectory)}
    for participant in trajectory.team():
        mine = {(event.seq,) for event in acts(trajectory, participant.name)}
        for metric, places in (("illegal_placements", illegal), ("breaks_without_effect", vain)):
            yield Measure(metric, trajectory.id, float(len(mine & places)), participant=participant.name)


def illegal_placements(trajectory: Trajectory, setup: Task | None = None) -> Iterator[Finding]:
    """Places that the rules forbid: `floating`, `occupied` or beyond the `inventory`; a finding a rule.

    The game only tells a language model so and carries on. A broken block is not given back.
    """
    setup = setup or task(trajectory)
    world, uses = World(setup.initial), Counter[tuple[str, str]]()
    for event in acts(trajectory):
        block = block_of(event)
        if block is None:
            apply(event, world)
            continue
        uses[event.actor, block.colour] += 1
        supply = setup.inventories.get(event.actor, Counter())[block.colour]
        for code, is_broken, why in (
            ("occupied", world.occupied(block.position), "a block is there already"),
            ("floating", not world.supported(block.position), "it touches neither ground nor block"),
            ("inventory", uses[event.actor, block.colour] > supply, f"{event.actor} had {supply}"),
        ):
            if is_broken:
                message = f"{block.colour} at {block.position}: {why}"
                yield Finding(code, trajectory.id, (event.seq,), message)
        world.place(block)


def breaks_without_effect(trajectory: Trajectory) -> Iterator[Finding]:
    """Breaks that removed nothing, as those whose position the game's parser lost."""
    for event in acts(trajectory):
        if event.status == "failed" and event.action and event.action.name == "break":
            yield Finding("break_without_effect", trajectory.id, (event.seq,), event.error or "")
