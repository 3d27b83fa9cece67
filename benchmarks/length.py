"""What reading and measuring take of one session that is ten times as long, in each of many shapes: what
holds each event against each is found by the shape in which it does.

    python benchmarks/length.py [--events 1000] [--keep]

CPU seconds of this process, the least of some, for a session of N and for one of ten times N events. The
ratio is ten times the one / the other: 1 is in step with the length, less grows faster.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ratios import hold

from coaudit.pipeline.ingest.measure import own_measures
from coaudit.pipeline.ingest.run import preview
from coaudit.pipeline.systems import ReadOptions, References
from coaudit.pipeline.systems.registry import SYSTEMS
from coaudit.schemas import Trajectory

LIST = """
[constants]
system = "long"
[event]
actor = "turns[].who"
text = "turns[].said"
"""
LINES = """
[constants]
system = "long"
[trajectory]
native_id = "session"
[event]
actor = "who"
text = "said"
"""
Shape = Callable[[int], Iterator[str]]
"""Number of events -> the lines of a log."""


def chat(ids: bool, answered: bool) -> Shape:
    """Tool calls between turns, with or without ids and answers."""

    def lines(n: int) -> Iterator[str]:
        messages: list[dict[str, Any]] = []
        for i in range(n // 4):
            own = {"id": f"c{i}"} if ids else {}
            call = {**own, "type": "function", "function": {"name": "look", "arguments": f'{{"n": {i}}}'}}
            messages += [
                {"role": "user", "content": f"look {i} up"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "content": f"found {i}", **({"tool_call_id": f"c{i}"} if ids else {})},
                {"role": "assistant", "content": f"it is {i}"},
            ]
        yield json.dumps({"messages": [one for one in messages if answered or one["role"] != "tool"]})

    return lines


def calls_at_once(n: int) -> Iterator[str]:
    """As many calls in one message as answers that do not name them."""
    calls = [{"type": "function", "function": {"name": "look", "arguments": f"[{i}]"}} for i in range(n // 2)]
    answers = [{"role": "tool", "content": f"found {i}"} for i in range(n // 2)]
    yield json.dumps({"messages": [{"role": "assistant", "content": None, "tool_calls": calls}, *answers]})


def turns(n: int) -> Iterator[str]:
    yield json.dumps({"turns": [{"who": ("user", "agent")[i % 2], "said": f"line {i}"} for i in range(n)]})


def an_event_a_line(n: int) -> Iterator[str]:
    """Without ids, numbers and times: each is held against what was said before."""
    for i in range(n):
        yield json.dumps({"session": "s", "who": ("user", "agent")[i % 2], "said": f"line {i}"})


def spans(nested: str) -> Shape:
    """A model call and a tool in turn: in one agent, each pair in one of its own, or each in the last."""

    def lines(n: int) -> Iterator[str]:
        yield span(0, None, "invoke_agent", agent="boss")
        last, around = 0, 0
        for i in range(n // 2):
            if nested == "agents":
                last, around = last + 1, last + 1
                yield span(last, 0, "invoke_agent", agent=f"worker {i % 5}")
            asked, said = ([{"role": role, "content": f"{role} {i}"}] for role in ("user", "assistant"))
            yield span(last + 1, around, "chat", input=asked, output=said)
            yield span(last + 2, around, "execute_tool", tool=f"tool {i % 3}", result=f"found {i}")
            last += 2
            around = last if nested == "chain" else around

    return lines


NAMES = {
    "agent": "gen_ai.agent.name",
    "tool": "gen_ai.tool.name",
    "result": "gen_ai.tool.call.result",
    "input": "gen_ai.input.messages",
    "output": "gen_ai.output.messages",
}


def span(number: int, around: int | None, operation: str, **more: Any) -> str:
    """A span of OTLP, a line."""
    said = {"gen_ai.operation.name": operation, **{NAMES[name]: value for name, value in more.items()}}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in said.items()}
    given = {
        "traceId": "t",
        "spanId": str(number),
        "parentSpanId": None if around is None else str(around),
        "startTimeUnixNano": str(10**18 + number),
        "endTimeUnixNano": str(10**18 + number),
        "attributes": [{"key": key, "value": {"stringValue": text}} for key, text in texts.items()],
    }
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [given]}]}]})


def solved(n: int) -> Iterator[str]:
    """A question of ReHAC's that takes n steps."""
    acts = "Thought {0}: on\nAction {0}: Search[{0}]\nObservation {0}: {0}\n"
    steps = (f"<solver> {('agent', 'human')[i % 2]}\n{acts.format(i)}" for i in range(1, n + 1))
    yield json.dumps({"idx": 0, "trajectory": f"Question: Which?\n{''.join(steps)}\n", "em": True, "f1": 1})


def cooked(n: int) -> Iterator[str]:
    """A run of Collab-Overcooked with a dialogue and an action of both agents at every step."""
    run = json.loads((DATA / "overcooked/logs/model_a/poached_pear" / RUN).read_text())
    _, asked, *_ = run["content"]
    steps = range(n // 5)
    done = ("pickup(pear, counter)", "place_obj_on_counter()")
    run |= {
        "total_timestamp": list(steps),
        "total_action_list": [[{"timestamp": i, "action": one} for i in steps] for one in done],
        "content": [{**asked, "timestamp": i} for i in steps],
    }
    yield json.dumps(run)


def built(n: int) -> Iterator[str]:
    """A game of CoBlock in which n blocks are placed, layer upon layer."""
    game = json.loads((DATA / "coblock/record_25.json").read_text())
    first = next(act for act in game["record"]["actionHistory"] if act["actionType"] == "place")
    game["record"]["actionHistory"] = [
        {**first, "blockPos": {"x": i % 20, "y": i // 400, "z": i // 20 % 20}, "uid": f"u{i}"}
        for i in range(n)
    ]
    yield json.dumps(game)


DATA = Path(__file__).parents[1] / "data"
RUN = "experiment_2026-01-12_10-00-00_poached_pear.json"


class Log(NamedTuple):
    """How the log of a shape is made, and read."""

    lines: Shape
    system: str
    mapping: str | None = None
    name: str = "log.jsonl"


SHAPES = {
    "chat": Log(chat(ids=True, answered=True), "chat"),
    "chat without ids": Log(chat(ids=False, answered=True), "chat"),
    "calls without answers": Log(chat(ids=False, answered=False), "chat"),
    "calls at once": Log(calls_at_once, "chat"),
    "a list": Log(turns, "mapped", LIST),
    "an event a line": Log(an_event_a_line, "mapped", LINES),
    "spans in one agent": Log(spans("flat"), "otlp"),
    "spans in many agents": Log(spans("agents"), "otlp"),
    "spans in each other": Log(spans("chain"), "otlp"),
    "ReHAC": Log(solved, "rehac"),
    "Collab-Overcooked": Log(cooked, "overcooked", name=RUN),
    "CoBlock": Log(built, "coblock", name="record_25.json"),
}


def references() -> dict[str, References]:
    """System -> what its logs are held against, of orders without a time limit."""
    known, _ = SYSTEMS["overcooked"].read_references(DATA / "overcooked")
    return {"overcooked": {order: one.model_copy(update={"level": 0}) for order, one in known.items()}}


def measured(shape: str, n: int, folder: Path) -> float:
    """CPU seconds that it takes to read a session of so many events and to measure it."""
    log, against = SHAPES[shape], references()
    path = folder / log.name
    path.write_text("\n".join(log.lines(n)) + "\n")
    began = time.process_time()
    items = preview([path], ReadOptions(map=log.mapping), log.system, count=10)
    sessions = [item for item in items if isinstance(item, Trajectory)]
    measures = sum(len(own_measures(one, against)) for one in sessions)
    taken = time.process_time() - began
    events = sum(len(one.events) for one in sessions)
    assert events >= n // 2, f"{shape}: {events} events of {n}, {measures} measures: {items[:1]}"
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--keep", action="store_true", help="Make the ratios of this run the baseline.")
    options = parser.parse_args()
    ratios = {}
    with tempfile.TemporaryDirectory() as place:
        for name in SHAPES:
            one = min(measured(name, options.events, Path(place)) for _ in range(5))
            ten = min(measured(name, 10 * options.events, Path(place)) for _ in range(2))
            print(f"{name:24}{one:>8.3f} s{ten:>8.3f} s")
            ratios[f"read {options.events} events and ten times as many, {name}"] = 10 * one / ten
    hold(ratios, keep=options.keep)


if __name__ == "__main__":
    main()
