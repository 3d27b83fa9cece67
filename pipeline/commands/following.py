"""The command that watches collaboration while it happens: follow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coaudit.pipeline.commands.context import Commands, Groups, Json, emit, say, store, tags
from coaudit.pipeline.commands.data import checked_setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coaudit.pipeline.live.judges import LiveJudge
    from coaudit.pipeline.live.sink import Sink
    from coaudit.pipeline.store import Store


def follow(
    targets: Annotated[
        list[str], typer.Argument(help="redis://host:port/db, folders whose logs grow, or - (JSON Lines).")
    ],
    results: Annotated[
        Path | None, typer.Option(help="Where the result folders that Co-Gym names are here.")
    ] = None,
    stop_when_idle: Annotated[
        float | None, typer.Option(min=0, help="Stop when nothing has come for so many seconds.")
    ] = None,
    silence: Annotated[
        float, typer.Option(min=0, help="Seconds after which a silent session counts as abandoned.")
    ] = 600.0,
    judge: Annotated[
        list[str] | None, typer.Option(help="Codebook whose units are rated as they complete; repeatable.")
    ] = None,
    metrics: Annotated[
        list[str] | None, typer.Option(help="URL of a vLLM server's /metrics; repeatable.")
    ] = None,
    every: Annotated[float, typer.Option(min=0.05, help="Seconds between two scrapes.")] = 5.0,
    alerts: Annotated[bool, typer.Option("--alerts", help="One JSON line on stdout for each alert.")] = False,
    webhook: Annotated[str | None, typer.Option(help="URL that alerts are POSTed to.")] = None,
    unanswered: Annotated[
        float, typer.Option(min=0, help="Seconds after which a person counts as left unanswered.")
    ] = 60.0,
    patience: Annotated[float, typer.Option(min=0, help="Seconds that a lost Redis is tried again.")] = 30.0,
    system: Annotated[str, typer.Option(help="Whose logs the folders hold; auto looks.")] = "auto",
    setting: Annotated[
        str | None, typer.Option(help="real or simulated, where the log does not say.")
    ] = None,
    condition: Annotated[
        str | None, typer.Option(help="The experiment's arm; else the folder above.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="key=value, kept with each trajectory; repeatable.")
    ] = None,
    json: Json = False,
) -> None:
    """Follow live sessions and growing logs into the workspace until interrupted.

    What comes over Redis is recorded under raw/ first. The password of a server is taken from its URL or
    from REDIS_PASSWORD.
    """
    import asyncio

    from coaudit.pipeline.live.follow import Plan
    from coaudit.pipeline.sources.reader import ReadOptions

    plan = Plan(
        targets=tuple(targets),
        options=ReadOptions(setting=checked_setting(setting), condition=condition, tags=tags(tag or [])),
        system=system,
        results=results,
        stop_when_idle=stop_when_idle,
        silence=silence,
        patience=patience,
        metrics=tuple(metrics or ()),
        every=every,
    )
    plan.check()
    done = asyncio.run(_follow(plan, judge or [], alerts, webhook, unanswered))
    if json:
        emit(done)
    else:
        say(", ".join(f"{value} {key}" for key, value in done.items()))


async def _follow(
    plan: Any, books: Sequence[str], lines: bool, webhook: str | None, unanswered: float
) -> dict[str, int]:
    """Put the pieces together and run them."""
    from coaudit.pipeline.live.alerts import Alerts, Webhook, line
    from coaudit.pipeline.live.follow import Follower

    found = store(for_ingest=True)
    sent = Webhook(webhook, say) if webhook else None
    follower = Follower(plan, found, say, [sent.run] if sent else [])
    judge = _judge(follower.sink, books) if books else None
    if judge:
        follower.watchers.append(judge)

    def emitted(alert: dict[str, Any]) -> None:
        if lines:
            print(line(alert), flush=True)
        if sent:
            sent(alert)

    if lines or sent:
        from coaudit.judges.rules import halts

        follower.watchers.append(Alerts(emitted, unanswered, halts, frozenset(_ids(found))))
    try:
        await follower.run()
    finally:
        if judge:
            judge.close()
    return follower.summary() | ({"rated": judge.rated} if judge else {})


def _judge(sink: Sink, books: Sequence[str]) -> LiveJudge:
    from coaudit.judges.rules import NAME, VERSION, Rules
    from coaudit.judges.verdict import JudgeError
    from coaudit.pipeline import judging
    from coaudit.pipeline.errors import UsageError
    from coaudit.pipeline.live.judges import LiveJudge

    chosen = judging.chosen(sink.store, books)
    try:
        raters = [Rules(book) for book in chosen]
    except JudgeError as error:
        raise UsageError(str(error)) from error
    return LiveJudge(sink, chosen, raters, (NAME, VERSION))


def _ids(found: Store) -> list[str]:
    if not found.workspace.database.exists():
        return []
    with found.reading() as connection:
        return [row[0] for row in connection.execute("SELECT id FROM trajectories").fetchall()]


COMMANDS: Commands = {"follow": follow}
GROUPED: Groups = {}
