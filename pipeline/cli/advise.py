"""The commands `advise train`, `advise evaluate` and `advise next`: when should a person step in?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ...schemas import Trajectory
from ...schemas.text import count_of
from ..errors import UsageError
from ..store import Selection
from ..store.queries import trajectories
from .console import Json, emit, number, price, progress, say, store, table, tell, workspace

app = typer.Typer(rich_markup_mode=None)
advise_app = typer.Typer(
    help="Learn when a person should step in, evaluate that, and get advice.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(advise_app, name="advise")

PENALTY = 0.08
_HUMAN = ("human steps (C)", "share of steps")
"""Human steps an episode, and of all steps."""
PAPER, TABLE, DATASETS = "rehac", "Table 5", "datasets"
Outcome = Annotated[
    str | None,
    typer.Option(
        help="What a trajectory earned, from 0 to 1; else task_reward, task_performance, success or "
        "delivered, whichever most have."
    ),
]
Condition = Annotated[
    list[str] | None, typer.Option("--condition", help="Only these conditions of the workspace; repeatable.")
]
PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy", help="File that `advise train` wrote; default: models/advisor.json in the workspace."
    ),
]


@advise_app.command("train")
def train(
    ctx: typer.Context,
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Files of trajectories or trees; default: the workspace.")
    ] = None,
    penalty: Annotated[
        list[float] | None,
        typer.Option(help=f"λ, the price of one human step; repeatable. Default: {PENALTY:g}."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write; default: models/advisor.json in the workspace.")
    ] = None,
    condition: Condition = None,
    outcome: Outcome = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the folds and of all random draws.")] = 0,
    json: Json = False,
) -> None:
    """Learn from trajectories with outcomes when a person should step in.

    They must have steps of people and of agents. Rules and learnt policies are tried on held-out questions,
    and one is chosen.
    """
    from ..advise import advisor, training

    penalties = [price(value) for value in penalty or [PENALTY]]
    items = _trajectories(ctx, paths or [], condition)
    with progress("learning") as report:
        model = training.train(items, penalties, outcome=outcome, seed=seed, report=report)
    file = out or advisor.default(workspace(ctx))
    advisor.save(model, file)
    document = training.documents(model)
    if json:
        emit({"file": str(file), **document})
        return
    for row in document["rows"]:
        _print_training(row)
    for note in document["notes"]:
        tell(f"note: {note}")
    say(f"saved as {file}; `coaudit advise evaluate --policy {file} --tree FILE` tries it on other questions")


def _print_training(row: Mapping[str, Any]) -> None:
    """What was chosen, then the candidates by what they gained on held-out questions."""
    from ..advise.scores import LEAST_KNOWN

    candidates = [one for one in row["candidates"] if one["chosen"] or one["effective"] >= LEAST_KNOWN - 1e-9]
    ranking = sorted(candidates, key=lambda one: (not one["chosen"], -(one["difference"] or 0.0)))
    columns = ["policy", "kind", "reward", *_HUMAN, "gain", "error"]
    rows = [
        [
            ("→ " if one["chosen"] else "  ") + one["policy"],
            one["kind"],
            number(one["reward"]),
            number(one["human_steps"], 2),
            number(one["human_intervention_rate"], 2),
            number(one["difference"]),
            number(one["difference_error"]),
        ]
        for one in ranking
        if one["chosen"] or one["difference"] is not None
    ]
    table(f"λ = {row['lambda']:g}, on held-out questions", columns, rows[:15])
    gain = row["procedure"]
    tell(
        f"chosen: {row['chosen']}, of {count_of(row['tried'], 'configuration', 'configurations')} "
        f"({row['learnt']} learnt)",
        f"rule: {row['rule']}",
        "expected gain of this way of choosing over agent-only, on held-out questions: "
        f"{_interval(gain, 'difference')}",
    )


@advise_app.command("evaluate")
def evaluate(
    ctx: typer.Context,
    policy: PolicyFile = None,
    tree: Annotated[
        list[Path] | None,
        typer.Option(help="Files of trees or trajectories; repeatable. Default: the workspace."),
    ] = None,
    penalty: Annotated[float | None, typer.Option(help="λ; default: the first one trained.")] = None,
    condition: Condition = None,
    outcome: Outcome = None,
    keep_seen: Annotated[
        bool, typer.Option("--keep-seen", help="Keep questions that the advisor learnt from.")
    ] = False,
    json: Json = False,
) -> None:
    """Evaluate an advisor on other questions, beside every baseline and rule and the oracle."""
    from ..advise import advisor, evaluation

    model = advisor.load(policy or advisor.default(workspace(ctx)))
    items = _trajectories(ctx, tree or [], condition)
    document = evaluation.evaluate(model, items, penalty, outcome=outcome, keep_seen=keep_seen)
    document["table_5"] = _published_rows(items, document)
    if json:
        emit(document)
        return
    _print_evaluation(document)


def _print_evaluation(document: Mapping[str, Any]) -> None:
    columns = ["policy", "kind", "reward", *_HUMAN, "gain over agent-only"]
    rows = [
        [
            ("→ " if row["chosen"] else "  ") + row["policy"],
            row["kind"],
            _with_bounds(row, "reward", "low", "high"),
            number(row["human_steps"], 2),
            number(row["human_intervention_rate"], 2),
            _with_bounds(row, "difference", "difference_low", "difference_high"),
        ]
        for row in document["rows"]
    ]
    table(
        f"{count_of(document['questions'], 'question', 'questions')}, λ = {document['lambda']:g}; "
        "→ is chosen",
        columns,
        rows,
    )
    choice = next(row for row in document["rows"] if row["chosen"])
    tell(
        f"{choice['policy']} gains {_interval(choice, 'difference')} over agent-only (paired over questions)"
    )
    if document["share"] is not None:
        tell(f"that is {document['share']:.0%} of the way to the oracle")
    counts = document["tried"]
    tell(f"it was chosen among {counts['candidates']} configurations on its training questions alone")
    if document["table_5"]:
        names = ["row", "published: human %", "T", "R", "here: human %", "T", "R"]
        lines = [
            [one["row"], *(number(one[side][key], 2) for side in ("published", "here") for key in _TABLE)]
            for one in document["table_5"]
        ]
        table("Table 5 of the paper, per cent: published beside these questions", names, lines)
    names = ["λ", "policy", "task reward (T)", *_HUMAN, "reward (T - λC)"]
    points = [
        [f"{p['lambda']:g}", p["policy"], *(number(p[k], 4) for k in _POINT)]
        for p in document["curve"]
        if p["policy"] in ("chosen", "oracle", "agent-only")
    ]
    table("Reward and interventions over λ", names, points)
    for note in document["notes"]:
        tell(f"note: {note}")


def _with_bounds(row: Mapping[str, Any], name: str, low: str, high: str) -> str:
    """A value with its interval, where it has one."""
    if row[name] is None or row[low] is None:
        return number(row[name])
    return f"{row[name]:.3f} [{row[low]:.2f}–{row[high]:.2f}]"


_TABLE = ("human_intervention_rate", "task_reward", "reward")
_POINT = ("task_reward", "human_steps", "human_intervention_rate", "reward")
_ROWS = {"Agent-only": "agent-only", "Human-only": "human-only", "Random": "random", "IL": "imitation"}


def _published_rows(items: Sequence[Trajectory], document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of ReHAC's table 5 for these trajectories' data set; none for other data sets or another λ."""
    from ..report.replicate.cells import load

    paper = load(PAPER)
    tasks = {item.task for item in items}
    name = next((n for n, task in paper.names[DATASETS].items() if tasks == {task}), None)
    if name is None or abs(document["lambda"] - PENALTY) > 1e-9:
        return []
    ours = {row["policy"]: row for row in document["rows"]} | {
        "chosen": next(row for row in document["rows"] if row["chosen"])
    }
    rows = []
    for row, values in paper.table(TABLE).rows.items():
        dataset, _, method = row.partition(" · ")
        here = ours.get("chosen" if method == "Ours" else _ROWS.get(method, ""), {})
        if dataset == name:
            percentages = {key: None if here.get(key) is None else 100 * here[key] for key in _TABLE}
            label = "Ours (here: chosen)" if method == "Ours" else method
            rows.append(
                {"row": label, "published": dict(zip(_TABLE, values, strict=True)), "here": percentages}
            )
    return rows


def _interval(document: Mapping[str, Any], name: str) -> str:
    if document[f"{name}_low"] is None:
        return f"{number(document[name], 4)} ({document.get('reason', 'no interval')})"
    low, high = (number(document[f"{name}_{end}"], 4) for end in ("low", "high"))
    return f"{number(document[name], 4)} (95 %: {low} to {high})"


def _trajectories(ctx: typer.Context, paths: Sequence[Path], condition: list[str] | None) -> list[Trajectory]:
    from ..advise import sources

    if not paths:
        return sources.of_store(store(ctx), Selection(condition=tuple(condition or ())))
    if condition:
        raise UsageError("--condition is for trajectories of the workspace; files are read whole")
    items, quarantined = sources.of_files(paths)
    for wrong in quarantined[:5]:
        say(str(wrong))
    if len(quarantined) > 5:
        say(f"{count_of(len(quarantined), 'piece', 'pieces')} could not be read")
    return items


@advise_app.command("next")
def advise_next(
    ctx: typer.Context,
    trajectory: Annotated[
        str, typer.Argument(help="Its id, the beginning of its id, or a unique native_id.")
    ],
    policy: PolicyFile = None,
    penalty: Annotated[float | None, typer.Option(help="λ; default: the first one trained.")] = None,
    json: Json = False,
) -> None:
    """Say whether a person should take a trajectory's next step, and what that should gain."""
    from ..advise import advice, advisor

    model = advisor.load(policy or advisor.default(workspace(ctx)))
    item = trajectories.one(store(ctx), trajectory, states=True)
    result = advice.advise(model, item, penalty)
    if json:
        emit(advice.document(result))
        return
    for line in advice.lines(result):
        tell(line)
