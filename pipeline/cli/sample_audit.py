"""The main job on the sample logs that ship with coaudit: ingest, judge, metrics, report."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path

from ...schemas.text import count_of
from ..errors import CoauditError
from ..ingest import imports
from ..ingest.run import ingest
from ..judge import Scope, embedded
from ..report import answers, build, methods
from ..report.html import html
from ..report.text import brief
from ..store import Store, Workspace
from ..systems import ReadOptions

SYSTEMS = ("cogym", "rehac", "overcooked", "coblock")


def samples() -> Path:
    """The folder of the sample logs, wherever coaudit is installed."""
    return Path(str(resources.files("coaudit.data")))


def run(folder: Path, say: Callable[[str], None]) -> tuple[Path, str]:
    """Audit the samples in a workspace under `folder`; returns the HTML report's path and the answers.

    The folder is the demo's own: CoauditError where it holds anything but an earlier demo.
    """
    store = Store(Workspace(folder / "workspace"))
    if folder.exists() and any(folder.iterdir()) and not store.workspace.exists():
        raise CoauditError(f"{folder}: contains something other than an earlier demo")
    say("Reading the sample logs of four systems ...")
    data = samples()
    read = ingest(store, [data / name for name in SYSTEMS], ReadOptions(), reference=data / "overcooked")
    say(
        f"  {count_of(read.trajectories, 'trajectory', 'trajectories')} with "
        f"{count_of(read.events, 'event', 'events')}, {read.unchanged} unchanged"
    )
    say("Judging them with the embedded rules (no network, no key) ...")
    for rater in embedded.EMBEDDED:
        summary = embedded.judge(store, rater, (), Scope(()), say)
        say(f"  {rater}: {count_of(summary.rated, 'unit', 'units')} rated, {summary.already} rated before")
    say("Adding the labels that come with the samples (made by language-model labellers, not by people) ...")
    for path in sorted((data / "labels").glob("*.jsonl")):
        imports.ratings(store, path)
    imports.outcomes(store, data / "cogym" / "real" / "outcomes.jsonl")
    document = build.build(store)
    page = folder / "report.html"
    page.write_text(html(document), encoding="utf-8")
    return page, brief(answers.answers(store), methods.facts(store))
