"""The commands `sample` and `plan`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ...annotation.statistics import planning
from ...schemas import Need
from ...schemas.text import count_of
from .. import codebooks
from ..analyze.planning import needs
from ..annotate import draw
from ..errors import UsageError
from ..store.ledgers import samples
from .console import Json, Where, conditions, emit, interval, number, say, selection, split, store, table

app = typer.Typer(rich_markup_mode=None)
PREVALENCES = "0.5,0.3,0.1,0.05,0.02"
KAPPA = 0.6


@app.command("sample")
def sample(
    ctx: typer.Context,
    codebook: Annotated[list[str], typer.Option(help="What people rate; repeatable.")],
    name: Annotated[str, typer.Option(help="Name of the sample, written to samples/NAME.jsonl.")] = "sample",
    size: Annotated[
        int, typer.Option(min=1, help="Units for each codebook; with --unit trajectory, trajectories.")
    ] = 100,
    method: Annotated[
        str,
        typer.Option(
            help="simple; stratified: each stratum by its share of the corpus; neyman: more where labels are "
            "uncertain (needs --pilot); disagreements: what people dispute, to be settled as gold."
        ),
    ] = "simple",
    by: Annotated[str, typer.Option(help="Strata, comma-separated: judge, task, condition ...")] = "",
    judge: Annotated[str | None, typer.Option(help="The rater whose labels stratify.")] = None,
    pilot: Annotated[
        str | None, typer.Option(help="A labelled sample, from which neyman learns how rare codes are.")
    ] = None,
    overlap: Annotated[
        float | None,
        typer.Option(min=0, max=1, help=f"Share of units that two people label. [default: {draw.OVERLAP}]"),
    ] = None,
    annotators: Annotated[int, typer.Option(min=1, help="Number of annotators.")] = 2,
    unit: Annotated[
        str, typer.Option(help="unit, or trajectory (all units of the trajectories drawn).")
    ] = "unit",
    where: Where = None,
    seed: Annotated[int, typer.Option(help="The same seed and name draw the same sample.")] = 0,
    json: Json = False,
) -> None:
    """Draw units for people to label, with their inclusion probabilities."""
    if overlap and annotators == 1:
        raise UsageError(f"--overlap {overlap:g} is for two people or more, got --annotators 1")
    wish = draw.Wish(
        codebooks=tuple(codebook),
        name=name,
        size=size,
        method=method,
        by=tuple(split(by)),
        judge=judge,
        pilot=pilot,
        overlap=draw.OVERLAP if overlap is None else overlap,
        annotators=annotators,
        unit=unit,
        where=conditions(where),
        seed=seed,
    )
    workspace_store = store(ctx)
    path = workspace_store.workspace.samples / f"{name}.jsonl"
    existed = path.exists()
    result = draw.draw(workspace_store, wish)
    if existed:
        say(f"{path}: drawn with the same options at {result.design.created}, and left unchanged")
    rows: list[dict[str, Any]] = [
        {
            "codebook": book,
            "units": len(units),
            "of": result.design.corpus[book],
            "trajectories": len({u.trajectory for u in units}),
            "labels": sum(u.overlap for u in units),
        }
        for book in result.design.codebooks
        for units in [[u for u in result.units if u.codebook == book]]
    ]
    if json:
        emit({"sample": name, "path": str(path), "seed": seed, "rows": rows})
        return
    for row in rows:
        _tell_difference(row, wish)
    columns = ["codebook", "units", "of", "trajectories", "labels"]
    table(f"{path}", columns, [[str(value) for value in row.values()] for row in rows])


def _tell_difference(row: dict[str, Any], wish: draw.Wish) -> None:
    """Say where other numbers were drawn of a codebook than were asked for."""
    whole = wish.unit != "unit"
    what, noun = ("trajectories", "trajectory") if whole else ("units", "unit")
    request = f"{row['codebook']}: {count_of(wish.size, f'{noun} was', f'{what} were')} asked for"
    if not whole and row["units"] < wish.size:
        say(f"{request}, but there {'is' if row['units'] == 1 else 'are'} only {row['units']}, all drawn")
    elif not whole and wish.method == samples.ADJUDICATION and row["units"] < row["of"]:
        rest = row["of"] - row["units"]
        left = f"{rest} more that people dispute {'was' if rest == 1 else 'were'} left"
        say(f"{row['codebook']}: {left} for another sample (--size)")
    elif row[what] > wish.size:
        say(f"{request}, {row[what]} were drawn: two of each stratum are the least, or the one that it has")


@app.command("plan")
def plan(
    ctx: typer.Context,
    half_width: Annotated[
        float,
        typer.Option(
            min=0.001, max=0.5, help="Half the width of the interval; of a mean, as a share of its scale."
        ),
    ] = 0.1,
    prevalence: Annotated[
        str | None,
        typer.Option(
            help=f"How common the code is; several values, comma-separated. [default: {PREVALENCES}]"
        ),
    ] = None,
    kappa: Annotated[
        float | None, typer.Option(min=-1, max=1, help=f"Expected kappa. [default: {KAPPA}]")
    ] = None,
    corpus: Annotated[
        int | None, typer.Option(min=1, help="Number of units in the corpus; default: without limit.")
    ] = None,
    codebook: Annotated[
        list[str] | None,
        typer.Option(help="Go by the labels that this codebook has in the workspace; repeatable."),
    ] = None,
    judge: Annotated[str | None, typer.Option(help="With --codebook: this judge alone.")] = None,
    where: Where = None,
    json: Json = False,
) -> None:
    """How many units people must label for an interval of the wanted width.

    Without labels, for a code with two labels and units drawn one by one; for kappa, two people label each
    unit. If m units of each trajectory are drawn and their labels correlate by ρ, a rate needs 1 + (m - 1)ρ
    times as many. A judge that agrees with people by kappa κ leaves about 1 - κ² of the units for the rate.

    With --codebook, after a pilot: by each code's own interval, so judge, strata and clusters are in it.
    """
    if codebook:
        for option, value in (("prevalence", prevalence), ("kappa", kappa), ("corpus", corpus)):
            if value is not None:
                raise UsageError(f"--{option} is for a plan without labels, got --codebook {codebook[0]}")
        here = store(ctx)
        rows = needs(here, codebook, half_width, judge=judge, only=selection(here, where))
        _after_pilot(rows, half_width, json=json)
        return
    for option, wish in (("judge", judge), ("where", where)):
        if wish:
            raise UsageError(f"--{option} is for a plan by labels: name their --codebook, too")
    _without_labels(
        half_width, prevalence or PREVALENCES, KAPPA if kappa is None else kappa, corpus, json=json
    )


def _after_pilot(rows: Sequence[Need], half_width: float, *, json: bool) -> None:
    """What each figure needs, from the labels that there are."""
    if json:
        emit({"half_width": half_width, "rows": [row.model_dump() for row in rows]})
        return
    if not rows:
        say("people have labelled nothing that a sample asks about: `coaudit sample` draws a pilot")
        return
    titles = codebooks.titles((row.codebook, row.code) for row in rows)
    cells = [
        [
            titles[row.codebook, row.code] + ("" if row.label is None else f": {row.label}"),
            row.figure,
            row.judge or "",
            number(row.value),
            interval(row.low, row.high),
            number(row.target),
            str(row.n),
            "–" if row.units is None else str(row.units),
            "–" if row.more is None else str(row.more),
            row.reason or "",
        ]
        for row in rows
    ]
    columns = ["code", "figure", "judge", "value", "95 %", "target ±", "labelled", "needed", "more", "note"]
    table(f"Units that people must label for 95 % intervals of ± {half_width:g}", columns, cells)
    say("if more are drawn and rated as those before; for kappa of people, two label each unit")


def _without_labels(
    half_width: float, prevalence: str, kappa: float, corpus: int | None, *, json: bool
) -> None:
    """What a code of such a prevalence needs."""
    rows = []
    few = False
    if not (texts := split(prevalence)):
        raise UsageError("--prevalence must be numbers such as 0.3,0.1, got none")
    for text in texts:
        try:
            share = float(text)
        except ValueError as error:
            raise UsageError(f"--prevalence must be numbers such as 0.3,0.1, got {text!r}") from error
        try:
            units = planning.units_for_kappa(half_width, share, kappa)
            rate = planning.units_for_rate(half_width, share, corpus)
        except ValueError as error:
            raise UsageError(f"--prevalence {text}: {error}") from error
        few |= corpus is not None and units > corpus
        rows.append(
            {
                "prevalence": share,
                "units_for_kappa": units,
                "positives": round(units * share),
                "units_for_rate": rate,
            }
        )
    if json:
        emit({"half_width": half_width, "kappa": kappa, "corpus": corpus, "rows": rows})
        return
    columns = [
        "prevalence",
        "units two people label, for kappa",
        "positives among them",
        "units for the rate",
    ]
    title = f"95 % intervals of ± {half_width:g}; kappa {kappa:g}"
    table(title, columns, [[str(value) for value in row.values()] for row in rows])
    if few:
        say(
            f"a corpus of {count_of(corpus or 0, 'unit', 'units')} is too small for kappa ± "
            f"{half_width:g} where more are needed"
        )
