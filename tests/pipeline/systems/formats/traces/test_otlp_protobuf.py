"""The same traces as protobuf: what JSON gives, one message or several; a broken one costs itself."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.formats.traces import otlp, otlp_protobuf
from coaudit.schemas import Quarantined, Trajectory
from tests.pipeline.systems.formats.logs import one, outline, write_lines
from tests.pipeline.systems.formats.traces.test_otlp import attributes, chats, traced

HEX = {"t1": "0af7651916cd43dd8448eb211c80319c", "t2": "1af7651916cd43dd8448eb211c80319c"}


def with_ids(trace: str, *spans: dict[str, Any]) -> dict[str, Any]:
    """The spans with ids as OTLP wants them, which are hexadecimal in JSON."""
    return traced(
        *({**span, "traceId": HEX[trace], "spanId": f"{n + 1:016x}"} for n, span in enumerate(spans))
    )


def packed(traces: dict[str, Any]) -> bytes:
    """As the SDKs write it; protobuf's own JSON has bytes as base64, which ids are here by chance not."""
    given = json.loads(json.dumps(traces))
    message = ParseDict(given, TracesData(), ignore_unknown_fields=True)
    for resource, source in zip(message.resource_spans, traces["resourceSpans"], strict=True):
        for span, said in zip(resource.scope_spans[0].spans, source["scopeSpans"][0]["spans"], strict=True):
            span.trace_id, span.span_id = bytes.fromhex(said["traceId"]), bytes.fromhex(said["spanId"])
    content: bytes = message.SerializeToString()
    return content


def framed(*messages: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(one)) + one for one in messages)


def read(path: Path) -> tuple[list[Trajectory], list[Quarantined]]:
    items = list(otlp.read(path, ReadOptions()))
    return (
        [item for item in items if isinstance(item, Trajectory)],
        [item for item in items if isinstance(item, Quarantined)],
    )


@pytest.mark.parametrize("lengths", [False, True])
def test_a_trace_is_what_its_json_gives(tmp_path: Path, lengths: bool) -> None:
    trace = with_ids("t1", *chats())
    content = packed(trace)
    path = tmp_path / "trace.binpb"
    path.write_bytes(framed(content) if lengths else content)
    assert otlp.recognises(path)
    ours, theirs = one("otlp", path), one("otlp", write_lines(tmp_path / "a.jsonl", trace))
    assert outline(ours.events)[:2] == [
        ("user", "message", "Weather in Paris?"),
        ("assistant", "action", "weather"),
    ]
    assert ours.model_dump(exclude={"source"}) == theirs.model_dump(exclude={"source"})


def test_spans_of_openinference_are_read_alike(tmp_path: Path) -> None:
    span = {
        **chats()[0],
        "name": "ChatCompletion",
        "attributes": attributes(
            {
                "openinference.span.kind": "LLM",
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.content": "Weather in Paris?",
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": "It rains.",
            }
        ),
    }
    path = tmp_path / "trace.pb"
    path.write_bytes(packed(with_ids("t1", span)))
    assert [event.text for event in one("otlp", path).events] == ["Weather in Paris?", "It rains."]


def test_a_broken_message_costs_itself_and_is_named_by_its_number(tmp_path: Path) -> None:
    good = [packed(with_ids(trace, *chats())) for trace in ("t1", "t2")]
    path = tmp_path / "traces.pb"
    path.write_bytes(framed(good[0], b"\n\xff\xff\xff\xff\x0fnothing", good[1]) + b"\0\0\x10\0cut")
    trajectories, wrong = read(path)
    assert len(trajectories) == 2
    assert [item.line for item in wrong] == [2, 4]
    assert "protobuf" in wrong[0].reason and "cut off" in wrong[1].reason


def test_a_message_that_is_too_long_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = packed(with_ids("t1", *chats()))
    monkeypatch.setattr(otlp_protobuf, "LONGEST", len(good))
    path = tmp_path / "traces.pb"
    path.write_bytes(framed(b"\n" + bytes(2 * len(good)), good))
    trajectories, wrong = read(path)
    assert len(trajectories) == 1 and [item.line for item in wrong] == [1]


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\n\x05abc", b"\0", b"\0\0\0\x01\n", bytes(range(256)) * 40]
)
def test_what_only_bears_the_name_raises_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.pb"
    path.write_bytes(content)
    assert read(path)[0] == []
