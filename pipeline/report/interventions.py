"""Where a person's step helped and where it was wasted, compared with an agent's step in the same state.

Source: ReHAC's Monte-Carlo return and advantage. States are shared by the text so far, within a condition.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any

from ...annotation.statistics.estimate import TOO_LARGE
from ...schemas import Trajectory
from ...schemas.text import count_of
from ..errors import UsageError
from ..store import Selection, Store, execute
from ..systems.rehac import metrics
from ..systems.rehac.metrics import Definition, State, Value
from .tables import Cell, Number, Table, count


def interventions(
    store: Store,
    penalty: float,
    top: int,
    *,
    definition: Definition = "released",
    longest: int | None = None,
    only: Selection | None = None,
) -> list[dict[str, Any]]:
    """One document a condition: its states, and the `top` ones where a human step was worth most and least.

    `definition` says which cost R(s, a) counts. As released, states of over 5,041 characters are left out, in
    the paper none; `longest` sets another limit (0: no limit). Empty where no ReHAC trajectory is selected.
    """
    if longest is None:
        longest = metrics.MAX_STATE if definition == "released" else 0
    where, values = (only or Selection()).where()
    query = f"SELECT t.id FROM trajectories t WHERE t.system = 'rehac' AND {where} ORDER BY t.id"
    with store.reading() as connection:
        rows = execute(connection, query, values).fetchall()
        result = store.load(connection, [row[0] for row in rows], states=True)
    by_condition: dict[str | None, list[Trajectory]] = {}
    for trajectory in result:
        by_condition.setdefault(trajectory.condition, []).append(trajectory)
    by_id = {trajectory.id: trajectory for trajectory in result}

    def states(group: Iterable[Trajectory]) -> list[State]:
        return metrics.monte_carlo(group, penalty, longest or None)

    settings = {"definition": definition, "longest_state": longest or None}
    return [
        settings | _condition(name, states(group), penalty, top, by_id, definition)
        for name, group in sorted(by_condition.items(), key=lambda item: str(item[0]))
    ]


def _condition(
    name: str | None,
    states: list[State],
    penalty: float,
    top: int,
    by_id: dict[str, Trajectory],
    definition: Definition,
) -> dict[str, Any]:
    defined = [state for state in states if state.advantage is not None]
    advantages = [state.advantage or 0.0 for state in defined]
    if not isfinite(sum(map(abs, advantages))):
        raise UsageError(f"--penalty {penalty:g}: {TOO_LARGE}")
    undefined: dict[str, int] = {}
    for state in states:
        if state.reason is not None:
            undefined[state.reason] = undefined.get(state.reason, 0) + 1
    return {
        "condition": name,
        "penalty": penalty,
        "states": len(states),
        "with_both": len(defined),
        "undefined": undefined,
        "human_better": sum(state.human_better for state in defined),
        "ties": sum(state.tie for state in defined),
        "mean_advantage": sum(advantages) / len(advantages) if advantages else None,
        "sum_absolute_advantage": sum(abs(value) for value in advantages),
        "helped": [_state(state, by_id, definition) for state in metrics.helpful_states(states)[:top]],
        "wasted": [_state(state, by_id, definition) for state in metrics.wasted_states(states)[:top]],
    }


def _state(state: State, by_id: dict[str, Trajectory], definition: Definition) -> dict[str, Any]:
    """A state with the steps that a person took from it; `advantage` is that of the person.

    `reward_*` is R(s, a) by the definition; `whole_cost` and `cost_after` have it with the cost of the whole
    trajectory and with that from here on.
    """
    steps = [{"trajectory": t, "event": seq, "step": _step(by_id[t], seq)} for t, seq in state.human_steps]
    return {
        "instance": state.instance,
        "question": _question(by_id[state.human_steps[0][0]]),
        "depth": state.depth,
        "advantage": state.advantage,
        "reward_human": _reward(state.human, definition),
        "reward_agent": _reward(state.agent, definition),
        "whole_cost": _rewards(state, "released"),
        "cost_after": _rewards(state, "paper"),
        "n_human": state.human and state.human.n,
        "n_agent": state.agent and state.agent.n,
        "human_steps": steps,
    }


def _reward(value: Value | None, definition: Definition) -> float | None:
    if value is None:
        return None
    return value.reward if definition == "released" else value.reward_after


def _rewards(state: State, definition: Definition) -> dict[str, float | None]:
    return {"human": _reward(state.human, definition), "agent": _reward(state.agent, definition)}


def _question(trajectory: Trajectory) -> str | None:
    text = trajectory.events[0].text
    return text.strip().splitlines()[-1] if text and text.strip() else None


def _step(trajectory: Trajectory, seq: int) -> str:
    event = next(e for e in trajectory.events if e.seq == seq)
    if event.action is None:
        return event.text or ""
    arguments = ", ".join(str(value) for value in event.action.arguments.values())
    return f"{event.action.name}[{arguments}]"


def table(store: Store, penalty: float, top: int, *, only: Selection | None = None) -> Table:
    """The states where a person's step was worth most and least; each row links to one such step."""
    documents = interventions(store, penalty, top, only=only)
    with_both = sum(document["with_both"] for document in documents)
    better = sum(document["human_better"] for document in documents)
    return Table(
        name="interventions",
        title="Where people helped, and where they were not needed",
        caption="Reward: the mean of the runs that continued from the same state with a person's step, or "
        f"with the agent's, at λ = {penalty:g}. Advantage: the person's minus the mean of both (ReHAC). Runs "
        "of a condition with the same steps so far share a state. Both acted in "
        f"{count_of(f'{with_both:,}', 'state', 'states')}; the person was better in {better:,}. "
        "`coaudit interventions` lists more.",
        columns=("Condition", "Step was", "Question", "What the person did", *_FIGURES),
        rows=tuple(
            _row(document["condition"], kind, state)
            for document in documents
            for kind in ("helped", "wasted")
            for state in document[kind]
        ),
        heads=4,
        empty="No ReHAC state in which both people and agents acted: `coaudit ingest PATH --system rehac`.",
    )


LONGEST = 200
"""Characters of a question or step in a table."""
_FIGURES = ("Advantage", "Reward, person", "Reward, agent", "Runs, person", "Runs, agent")


def _row(condition: str | None, kind: str, state: dict[str, Any]) -> tuple[Cell, ...]:
    step = state["human_steps"][0]
    place = (("trajectory", step["trajectory"]), ("event", str(step["event"])))
    return (
        condition or "–",
        kind,
        _task(state)[:LONGEST],
        step["step"][:LONGEST],
        Number(state["advantage"], of=place),
        Number(state["reward_human"]),
        Number(state["reward_agent"]),
        count(state["n_human"]),
        count(state["n_agent"]),
    )


def lines(document: dict[str, Any]) -> list[str]:
    """A condition's document as text."""
    head = (
        f"{document['condition']}: {count_of(document['states'], 'state', 'states')}, "
        f"{document['with_both']} with both actions; "
        f"a human step was better in {document['human_better']}, as good in {document['ties']} "
        f"(λ = {document['penalty']}, {document['definition']})"
    )
    result = [
        head,
        *(
            f"  {count_of(n, 'state', 'states')} without a comparison: {reason}"
            for reason, n in document["undefined"].items()
        ),
    ]
    for kind, title in (("helped", "helped most"), ("wasted", "was wasted")):
        if document[kind]:
            result.append(f"  where a person's step {title}:")
            result.extend(f"    {_line(state)}" for state in document[kind])
    return result


def _task(state: dict[str, Any]) -> str:
    """The question; of a tree, which holds none, its number."""
    instance = f"instance {state['instance']}" if state["instance"] else "–"
    return state["question"] or instance


def _line(state: dict[str, Any]) -> str:
    step = state["human_steps"][0]
    where = f"step {state['depth']}  {_task(state)}"
    what = f"{step['step']}  ({step['trajectory']} event {step['event']})"
    return f"A = {state['advantage']:+.3f}  {where}  -> {what}"
