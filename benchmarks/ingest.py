"""How fast logs come into the store beside plain readers of the same bytes, and in how much memory.

    python benchmarks/ingest.py [--sessions 2000] [--folders 300] [--generator GEN.py] [--scout PYTHON]
                                [--keep]

Each load is ingested by processes of its own, in turn with its yardstick: DuckDB's `read_json_auto` into a
table for JSON Lines, Python's JSON parser (pydantic-core's, which only parses) for Co-Gym folders, and with
`--scout` Inspect Scout, in an environment of its own whose Python is named, for sessions a line each. The
ratio is yardstick / ours by wall time: 1 is as fast. One load tells of each session again and again, as it
grew; others have the same sessions as chats, with agents' calls or without, and as coaudit's own JSON Lines.
Then the same load again, and grown by a tenth. CPU seconds and memory are those of all processes together,
imports included; the machine's other work spoils times, not ratios of runs side by side.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from programs import OURS, Run
from ratios import hold

ROOT = Path(__file__).resolve().parents[1]
DUCKDB = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1])
connection.execute(f"CREATE TABLE logs AS FROM read_json_auto('{sys.argv[2]}')")
connection.close()
"""
PARSER = """
import sys
from pathlib import Path
from pydantic_core import from_json
for path in Path(sys.argv[2]).rglob("*"):
    if path.suffix == ".json":
        from_json(path.read_bytes())
    elif path.suffix == ".jsonl":
        for line in path.read_bytes().splitlines():
            from_json(line)
"""
SCOUT = """
import asyncio, json, sys
from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageTool, ChatMessageUser
from inspect_scout import Transcript, transcripts_db

ROLES = {"human": ChatMessageUser, "agent": ChatMessageAssistant, "system": ChatMessageSystem}

def message(event):
    kind = ROLES.get(event["role"], ChatMessageTool)
    return kind(content=event["text"], id=event["event_id"], metadata={"action": event["action"]})

def transcripts(path):
    with open(path, "rb") as log:
        for session in map(json.loads, log):
            name = session["session_id"]
            yield Transcript(
                transcript_id=name, source_type="bench", source_id=name, source_uri=path,
                task_set=session["task"], model=session["agent_model"], success=session["success"],
                messages=[message(event) for event in session["events"]],
                metadata={"condition": session["condition"]},
            )

async def main():
    async with transcripts_db(sys.argv[1]) as database:
        await database.insert(transcripts(sys.argv[2]))

asyncio.run(main())
"""
"""One transcript a session, its events as messages."""
ROLES = {"human": "user", "agent": "assistant"}
ROUNDS = 3
VERSIONS = 8
"""So often a log that grows tells of each session."""


def ingest(source: Path, mapping: str, workspace: Path) -> Run:
    """One `coaudit ingest`."""
    given = ["--system", "mapped", "--map", mapping] if mapping else []
    run = Run(OURS, "--workspace", workspace, "ingest", source, *given, "--json")
    if not json.loads(run.out):
        raise SystemExit(run.out)
    return run


def compared(
    name: str, source: Path, mapping: str, yardstick: str, place: Path, scout: Path | None
) -> dict[str, float]:
    """Ratios of a load, from rounds in turn; prints what each took."""
    ours, theirs, again, grown, scouts = [], [], [], [], []
    for turn in range(ROUNDS):
        workspace = place / f"{name}-{turn}"
        ours.append(ingest(source, mapping, workspace))
        theirs.append(Run(yardstick, place / f"{name}-{turn}.duckdb", source))
        again.append(ingest(source, mapping, workspace))
        if scout and name == "sessions":
            scouts.append(Run(SCOUT, place / f"{name}-{turn}-scout", source, python=scout))
        if name == "sessions":
            with source.open("ab") as log, source.with_suffix(".more").open("rb") as more:
                shutil.copyfileobj(more, log)
            grown.append(ingest(source, mapping, workspace))
            os.truncate(source, source.stat().st_size - source.with_suffix(".more").stat().st_size)
        shutil.rmtree(workspace)
    kinds = {"ingest": ours, "yardstick": theirs, "again": again, "a tenth more": grown, "Scout": scouts}
    for what, runs in kinds.items():
        if runs:
            wall, cpu = median(run.wall for run in runs), median(run.cpu for run in runs)
            print(f"{name:12}{what:14}{wall:>8.2f} s{cpu:>8.2f} s CPU{max(r.mib for r in runs):>8.0f} MiB")
    ratios = {
        f"ingest {name}: yardstick / ours": _ratio(theirs, ours),
        f"ingest {name}: first / again": _ratio(ours, again),
    }
    if grown:
        ratios[f"ingest {name}: first / a tenth more"] = _ratio(ours, grown)
    if scouts:
        ratios[f"ingest {name}: Scout / ours"] = _ratio(scouts, ours)
    return ratios


def _ratio(one: list[Run], other: list[Run]) -> float:
    return median(a.wall / b.wall for a, b in zip(one, other, strict=True))


def loads(options: argparse.Namespace, folder: Path) -> Iterable[tuple[str, Path, str, str]]:
    """(Name, where, mapping, yardstick) of each load, freshly written."""
    for form in ("sessions", "events"):
        path = folder / f"{form}.jsonl"
        for count, target in ((options.sessions, path), (options.sessions // 10, path.with_suffix(".more"))):
            given = ["--sessions", str(count), "--format", form, "--out", str(target), "--seed", str(count)]
            subprocess.run([sys.executable, str(options.generator), *given], check=True, capture_output=True)
        yield form, path, f"bench_{form}", DUCKDB
    yield "growing", _grown(folder / "sessions.jsonl", options.sessions // VERSIONS), "bench_sessions", DUCKDB
    yield "chats", _chats(folder / "sessions.jsonl"), "", DUCKDB
    yield "calls", _chats(folder / "sessions.jsonl", with_calls=True), "", DUCKDB
    yield "own", _own(folder / "sessions.jsonl"), "", DUCKDB
    path = folder / "cogym"
    coaudit = [sys.executable, "-P", "-m", "coaudit.pipeline", "generate", str(path)]
    subprocess.run([*coaudit, "--sessions", str(options.folders)], check=True, capture_output=True)
    yield "folders", path, "", PARSER


def _grown(sessions: Path, count: int) -> Path:
    """A log that tells of each of some sessions again and again, as it grew."""
    path = sessions.with_name("growing.jsonl")
    with sessions.open() as whole, path.open("w") as log:
        for session in map(json.loads, itertools.islice(whole, count)):
            events = session["events"]
            for version in range(1, VERSIONS + 1):
                told = session | {"events": events[: max(1, len(events) * version // VERSIONS)]}
                log.write(json.dumps(told) + "\n")
    return path


def _chats(sessions: Path, *, with_calls: bool = False) -> Path:
    """What people and agents said in some sessions, as lists of messages, with agents' calls."""
    path = sessions.with_name("calls.jsonl" if with_calls else "chats.jsonl")
    with sessions.open() as log, path.open("w") as chats:
        for session in map(json.loads, log):
            events = (event for event in session["events"] if event["role"] in ROLES)
            messages = [m for event in events for m in _messages(event, with_calls=with_calls)]
            chats.write(json.dumps({"id": session["session_id"], "messages": messages}) + "\n")
    return path


def _messages(event: dict[str, Any], *, with_calls: bool) -> Iterator[dict[str, Any]]:
    """What was said and, with calls, what an agent called for it, and the result."""
    message = {"role": ROLES[event["role"]], "content": event["text"]}
    if not with_calls or not event["action"] or event["role"] != "agent":
        yield message
        return
    call, action = event["event_id"], event["action"]
    function = {"name": action["type"], "arguments": json.dumps(action["args"])}
    yield message | {"tool_calls": [{"id": call, "type": "function", "function": function}]}
    yield {"role": "tool", "tool_call_id": call, "content": action["status"]}


def _own(sessions: Path) -> Path:
    """Some sessions as coaudit's own JSON Lines."""
    path, workspace = sessions.with_name("own.jsonl"), sessions.with_name("own")
    ingest(sessions, "bench_sessions", workspace)
    Run(OURS, "--workspace", workspace, "export", path, "--format", "jsonl")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=2000)
    parser.add_argument("--folders", type=int, default=300)
    parser.add_argument("--generator", type=Path, default=ROOT.parent / "shared" / "bench" / "gen.py")
    parser.add_argument("--scout", type=Path, help="A Python that has inspect-scout.")
    parser.add_argument("--keep", action="store_true", help="Make the ratios of this run the baseline.")
    options = parser.parse_args()
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"DuckDB {version('duckdb')}, Arrow {version('pyarrow')}, pydantic {version('pydantic')}"
    )
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        for load in loads(options, Path(place)):
            ratios |= compared(*load, Path(place), options.scout)
    hold(ratios, keep=options.keep)


if __name__ == "__main__":
    main()
