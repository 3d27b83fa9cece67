"""What a log gave under ids that rest on what it held then goes, once it says more or says it otherwise."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.follow.sink import Sink
from coaudit.pipeline.follow.tail import Tail
from coaudit.pipeline.ingest.rebuild import rebuild
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.store import Store
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.systems.rehac.text import SOLVER
from tests.pipeline.stores import made, rows

Take = Callable[[Store, Path], None]


def followed() -> Take:
    """What takes in a folder as one follower does."""
    tails: list[Tail] = []

    def look(store: Store, logs: Path) -> None:
        if not tails:
            tails.append(Tail(Sink(store), ReadOptions()))
            tails[0].roots.append(logs)
        tails[0].look()
        tails[0].sink.flush()

    return look


def ingested(store: Store, logs: Path) -> None:
    ingest(store, [logs], ReadOptions())


@pytest.fixture(params=["follow", "ingest"])
def take(request: pytest.FixtureRequest) -> Take:
    return followed() if request.param == "follow" else ingested


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "logs").mkdir()
    return made(tmp_path / "workspace")


def tables(store: Store) -> list[list[dict[str, Any]]]:
    queries = (
        "SELECT id, native_id, digest FROM trajectories ORDER BY ALL",
        "SELECT trajectory_id, seq, actor, text FROM events ORDER BY ALL",
        "SELECT trajectory_id, name, value FROM outcomes ORDER BY ALL",
        "SELECT metric, trajectory_id, value FROM measured ORDER BY ALL",
    )
    store.sync(lags=True)
    return [rows(store, query) for query in queries]


def as_fresh(store: Store, logs: Path, other: Path) -> bool:
    """Whether a store has what a first ingest of the logs gives."""
    fresh = made(other)
    ingested(fresh, logs)
    with store.writing() as connection:
        store.catch_up(connection)
    return tables(store) == tables(fresh)


def row(idx: int, *answers: str, solver: str = "agent") -> str:
    """A line of ReHAC's: a question with a step for each answer."""
    steps = [
        f"{SOLVER} {solver}\nThought {n}: hm\nAction {n}: Finish[{answer}]\nObservation {n}: so\n"
        for n, answer in enumerate(answers, start=1)
    ]
    said = {"idx": idx, "trajectory": f"Question: is it {idx}?\n{''.join(steps)}", "em": 1.0, "f1": 1.0}
    return json.dumps(said) + "\n"


@pytest.mark.parametrize("corrected", [row(2, "yes"), row(2, "no", solver="human"), ""])
def test_a_row_that_is_corrected_in_a_finished_file_stands_there_once(
    take: Take, store: Store, tmp_path: Path, corrected: str
) -> None:
    log = tmp_path / "logs" / "q.jsonl"
    log.write_text(row(1, "yes") + row(2, "no") + row(3, "no"))
    take(store, log.parent)
    log.write_text(row(1, "yes") + corrected + row(3, "no"))
    take(store, log.parent)
    assert as_fresh(store, log.parent, tmp_path / "other")


def test_a_corrected_row_stands_there_once_where_both_states_of_its_file_were_copied(
    store: Store, tmp_path: Path
) -> None:
    log = tmp_path / "logs" / "q.jsonl"
    log.write_text(row(1, "yes") + row(2, "no"))
    ingest(store, [log], ReadOptions(), copy=True)
    log.write_text(row(1, "yes") + row(2, "yes"))
    (note,) = ingest(store, [log], ReadOptions(), copy=True).notes
    assert note == f"{log}: what it holds now replaces 1 trajectory that it gave before"
    before = tables(store)
    result = rebuild(store)
    assert tables(store) == before and result.trajectories == 2


def test_many_files_that_are_corrected_at_once_are_told_in_one_note(store: Store, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    for said in ("no", "yes"):
        for n in range(3):
            (logs / f"q{n}.jsonl").write_text(row(1, f"maybe {n}") + row(2, f"{said} {n}"))
        notes = ingest(store, [logs], ReadOptions()).notes
    (note,) = [note for note in notes if "replace" in note]
    assert note == (
        f"{logs / 'q0.jsonl'} and 2 more files: what they hold now replaces 3 trajectories that they "
        "gave before"
    )
    assert as_fresh(store, logs, tmp_path / "other")


def test_rows_of_another_run_that_was_written_over_a_file_stand_beside_the_first(
    store: Store, tmp_path: Path
) -> None:
    log = tmp_path / "logs" / "q.jsonl"
    for condition in ("A", "B"):
        log.write_text(row(1, f"yes to {condition}"))
        ingest(store, [log], ReadOptions(condition=condition), copy=True)
    assert [one["condition"] for one in rows(store, "SELECT condition FROM trajectories ORDER BY ALL")] == [
        "A",
        "B",
    ]


def test_each_state_that_was_copied_takes_the_place_of_the_one_before_it(
    store: Store, tmp_path: Path
) -> None:
    log = tmp_path / "logs" / "q.jsonl"
    for condition, answer in (("A", "yes"), ("B", "no"), ("A", "unknown")):
        log.write_text(row(1, answer))
        ingest(store, [log], ReadOptions(condition=condition), copy=True)
    before = tables(store)
    rebuild(store)
    assert tables(store) == before and len(before[0]) == 3


def test_a_row_that_another_file_has_too_stays(take: Take, store: Store, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    for folder in ("one", "two"):
        (logs / folder).mkdir()
        (logs / folder / "q.jsonl").write_text(row(1, "yes") + row(2, "no"))
    take(store, logs)
    (logs / "one" / "q.jsonl").write_text(row(1, "yes"))
    take(store, logs)
    assert as_fresh(store, logs, tmp_path / "other")


def test_a_row_that_two_files_had_goes_once_both_are_corrected(
    take: Take, store: Store, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    for said in (("no", "no"), ("yes", "unknown")):
        for n, answer in enumerate(said):
            log = logs / str(n) / "q.jsonl"
            log.parent.mkdir(exist_ok=True)
            log.write_text(row(n, "yes") + row(2, answer))
            take(store, logs)
    assert as_fresh(store, logs, tmp_path / "other")


def test_a_chat_without_an_id_that_grows_is_one(take: Take, store: Store, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "chat.json"
    said = [{"role": ("user", "assistant")[n % 2], "content": f"text {n}"} for n in range(6)]
    for size in (2, 4, 6):
        log.write_text(json.dumps(said[:size]))
        take(store, log.parent)
    assert as_fresh(store, log.parent, tmp_path / "other")


MAPPED = """
[trajectory]
native_id = "id"
[outcomes]
success = "ok"
[event]
role = "log[].role"
text = "log[].say"
"""


@pytest.mark.parametrize("follows", [False, True])
def test_a_session_that_was_empty_and_has_events_now_is_one(
    store: Store, tmp_path: Path, follows: bool
) -> None:
    """It was stored twice, once as a failure, and so in rates of success."""
    log = tmp_path / "logs" / "runs.jsonl"
    options, said = ReadOptions(map=MAPPED), [{"role": "user", "say": "To Ulm."}]
    tail = Tail(Sink(store), options, "mapped")
    tail.roots.append(log.parent)
    for lines in ([("a", 0, []), ("b", 1, said)], [("a", 1, said), ("b", 1, said)]):
        runs = [json.dumps({"id": name, "ok": ok, "log": events}) for name, ok, events in lines]
        log.write_text("".join(f"{run}\n" for run in runs))
        if follows:
            tail.look()
            tail.sink.flush()
        else:
            ingest(store, [log.parent], options, system="mapped")
    _, events, outcomes, _ = tables(store)
    assert [one["text"] for one in events] == ["To Ulm."] * 2
    assert [one["value"] for one in outcomes] == [1, 1]


def test_another_chat_that_was_written_over_one_stands_beside_it(
    take: Take, store: Store, tmp_path: Path
) -> None:
    log = tmp_path / "logs" / "latest.json"
    for name in ("Ada", "Ben"):
        said = [("system", "Be brief."), ("user", f"I am {name}."), ("assistant", f"Hello {name}.")]
        log.write_text(json.dumps([{"role": role, "content": text} for role, text in said]))
        take(store, log.parent)
    assert len(tables(store)[0]) == 2


def test_a_session_whose_first_span_comes_last_is_one(take: Take, store: Store, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "spans.jsonl"
    for start in (3, 5, 1, 4):
        with log.open("a") as file:
            file.write(json.dumps(_span(start)) + "\n")
        take(store, log.parent)
    assert as_fresh(store, log.parent, tmp_path / "other")


def test_spans_that_come_late_contradict_nothing(store: Store, tmp_path: Path) -> None:
    log, notes = tmp_path / "logs" / "spans.jsonl", list[str]()
    for start in (3, 5, 4):
        with log.open("a") as file:
            file.write(json.dumps(_span(start)) + "\n")
        notes += ingest(store, [log], ReadOptions()).notes
    assert len(tables(store)[0]) == 1
    assert notes == []


def test_a_trace_whose_words_were_changed_is_told(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "spans.jsonl"
    log.write_text(json.dumps(_span(3)) + "\n")
    ingest(store, [log], ReadOptions())
    log.write_text(json.dumps(_span(3)).replace("answer 3", "another one") + "\n")
    assert "differs from what was stored" in "".join(ingest(store, [log], ReadOptions()).notes)


@pytest.mark.parametrize("order", ["chat, tool, agent", "tool, chat, agent", "last, tool, chat, agent"])
def test_a_session_whose_name_or_actor_comes_late_is_one(
    take: Take, store: Store, tmp_path: Path, order: str
) -> None:
    log = tmp_path / "logs" / "spans.jsonl"
    call = {"type": "tool_call", "id": "k1", "name": "find", "arguments": {"to": "Ulm"}}
    asked = json.loads(_message("user", "To Ulm, please."))
    called = [{"role": "assistant", "parts": [call]}]
    result = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "k1", "response": "at 9"}]}]
    told = {"gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be kind."}])}
    spans = {
        "chat": _any_span(
            "s1",
            10,
            "chat",
            {
                **told,
                "gen_ai.input.messages": json.dumps(asked),
                "gen_ai.output.messages": json.dumps(called),
            },
        ),
        "tool": _any_span(
            "s2", 12, "execute_tool", {"gen_ai.tool.name": "find", "gen_ai.tool.call.id": "k1"}
        ),
        "last": _any_span(
            "s3",
            14,
            "chat",
            {
                **told,
                "gen_ai.input.messages": json.dumps([*asked, *called, *result]),
                "gen_ai.output.messages": _message("assistant", "At 9."),
            },
        ),
        "agent": _any_span(
            "s0", 9, "invoke_agent", {"gen_ai.agent.name": "Guide", "gen_ai.conversation.id": "c1"}
        ),
    }
    for name in order.split(", "):
        with log.open("a") as file:
            file.write(json.dumps(spans[name]) + "\n")
        take(store, log.parent)
    assert len(tables(store)[0]) == 1
    assert as_fresh(store, log.parent, tmp_path / "other")


def test_a_later_session_with_the_words_of_one_that_is_gone_stands_beside_it(
    take: Take, store: Store, tmp_path: Path
) -> None:
    log = tmp_path / "logs" / "spans.jsonl"
    for start in (10, 20):
        said = {
            "gen_ai.input.messages": _message("user", "Hi"),
            "gen_ai.output.messages": _message("assistant", "Yes?"),
        }
        span = _any_span(f"s{start}", start, "chat", {"gen_ai.conversation.id": f"c{start}", **said})
        log.write_text(json.dumps(span) + "\n")
        take(store, log.parent)
    assert [row["native_id"] for row in rows(store, "SELECT native_id FROM trajectories ORDER BY 1")] == [
        "c10",
        "c20",
    ]


def _any_span(
    name: str, start: int, operation: str, attributes: dict[str, str], trace: str = "t1"
) -> dict[str, Any]:
    """One span of a trace, inside s0, as an object of OTLP."""
    span = {
        "traceId": trace,
        "spanId": name,
        "parentSpanId": None if name == "s0" else "s0",
        "startTimeUnixNano": f"{start}000000000",
        "endTimeUnixNano": f"{start + 1}000000000",
        "attributes": [
            {"key": key, "value": {"stringValue": text}}
            for key, text in {"gen_ai.operation.name": operation, **attributes}.items()
        ],
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def _span(start: int) -> dict[str, Any]:
    said = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": "c1",
        "gen_ai.input.messages": _message("user", f"question {start}"),
        "gen_ai.output.messages": _message("assistant", f"answer {start}"),
    }
    span = {
        "traceId": "t1",
        "spanId": f"s{start}",
        "startTimeUnixNano": f"{start}000000000",
        "endTimeUnixNano": f"{start}500000000",
        "attributes": [{"key": key, "value": {"stringValue": text}} for key, text in said.items()],
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def _message(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def _chat_line(n: int) -> str:
    said = {"user": "Yes", "assistant": "OK"}
    messages = [
        {"role": role, "content": text, "timestamp": f"2026-01-01T10:{n:02}:0{place}Z"}
        for place, (role, text) in enumerate(said.items())
    ]
    return json.dumps({"id": f"c{n}", "messages": messages}) + "\n"


def _span_line(n: int, start: int) -> str:
    said = {
        "gen_ai.input.messages": _message("user", "Yes"),
        "gen_ai.output.messages": _message("assistant", "OK"),
    }
    span = _any_span(f"s{n}", start, "chat", {"gen_ai.conversation.id": f"c{n}", **said}, trace=f"t{n}")
    return json.dumps(span) + "\n"


@pytest.mark.parametrize(
    "told",
    [
        [_chat_line(n) for n in range(5)],
        [_span_line(n, 10 + n) for n in range(5)],
        [_span_line(n, 10) for n in range(5)],
    ],
    ids=["chats", "spans", "spans at one time"],
)
def test_sessions_with_the_same_words_stay_where_their_file_was_cut(
    take: Take, store: Store, tmp_path: Path, told: list[str]
) -> None:
    log = tmp_path / "logs" / "many.jsonl"
    for text in (told, told[:1], told[2:4]):
        log.write_text("".join(text))
        take(store, log.parent)
    names = [row["native_id"] for row in rows(store, "SELECT native_id FROM trajectories ORDER BY 1")]
    assert names == ["c0", "c1", "c2", "c3", "c4"]


def lines(path: Path, **sessions: int) -> None:
    """Our own lines: sessions of so many messages."""
    people = [{"name": "a", "kind": "agent"}]
    told = [
        {"type": "trajectory", "native_id": name, "participants": people, "events": events}
        for name, count in sessions.items()
        for events in [[{"actor": "a", "kind": "message", "text": str(n)} for n in range(count)]]
    ]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in told))


def test_a_log_that_holds_less_than_before_says_so_and_so_does_a_rebuild(
    store: Store, tmp_path: Path
) -> None:
    log = tmp_path / "logs" / "own.jsonl"
    lines(log, x=5, y=2, z=3)
    ingested(store, tmp_path / "logs")
    lines(log, x=2, z=3)
    result = ingest(store, [log], ReadOptions())
    assert [note.partition(";")[0] for note in result.notes] == [
        f"{log}: no longer contains 1 session that it gave before",
        f"{log}: holds 2 of the 5 events of x that it held before",
    ]
    assert ingest(store, [log], ReadOptions()).notes == []
    assert [row["n_events"] for row in rows(store, "SELECT n_events FROM trajectories ORDER BY 1")] == [
        2,
        3,
        5,
    ]
    (wrong,) = rebuild(store).quarantined
    assert wrong.reason.startswith("no longer contains 1 session, and 3 events of ")


def test_a_log_that_grows_while_it_is_read_has_lost_nothing(store: Store, tmp_path: Path) -> None:
    """A follower has stored more of it than this ingest has read."""
    log = tmp_path / "logs" / "own.jsonl"
    lines(log, x=5)
    ingested(store, log.parent)
    lines(log, x=2)
    looks = iter([2, 6])  # when it is hashed, and when it was read
    assert ingest(store, [log], ReadOptions(), progress=lambda *_: lines(log, x=next(looks))).notes == []
    ingested(store, log.parent)
    assert [row["n_events"] for row in rows(store, "SELECT n_events FROM trajectories")] == [6]


def test_a_session_that_an_unchanged_log_and_a_new_one_hold_is_unchanged_once(
    store: Store, tmp_path: Path
) -> None:
    """What a log gained while it was read counted twice as well: its end is read again."""
    log = tmp_path / "logs" / "own.jsonl"
    lines(log, x=5, y=3)
    ingested(store, log.parent)
    shutil.copyfile(log, log.with_name("zcopy.jsonl"))
    result = ingest(store, [log.parent], ReadOptions())
    assert (result.trajectories, result.unchanged) == (0, 2)
    places = [log.parent.with_name(name) for name in ("third", "fourth")]
    for place in places:
        shutil.copytree(log.parent, place)
    result = ingest(store, [*places, log.parent], ReadOptions())
    assert (result.trajectories, result.unchanged) == (0, 2), "from new folders first, too"


def test_of_many_logs_that_hold_less_five_are_named(store: Store, tmp_path: Path) -> None:
    for until in (3, 2):
        for n in range(7):
            lines(tmp_path / "logs" / f"{n}.jsonl", **{f"x{n}": until, f"y{n}": until}, **{f"z{until}{n}": 1})
        notes = ingest(store, [tmp_path / "logs"], ReadOptions()).notes
    assert sum("no longer contains 1 session" in note for note in notes) == 5
    assert sum("holds 2 of the 3 events of x" in note and "1 more session" in note for note in notes) == 5
    assert sum(note.startswith("2 more files") for note in notes) == 2


def test_a_log_that_tells_a_session_at_each_step_is_not_shorter(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "chat.json"
    said = [{"role": "user", "content": "One"}, {"role": "assistant", "content": "Two"}] * 3
    steps = [{"id": "c", "messages": said[:n]} for n in range(1, 7)]
    for told in (steps[:3], [steps[0], steps[5]], [*steps, {"id": "d", "messages": said}]):
        log.write_text(json.dumps(told))
        assert ingest(store, [log], ReadOptions()).notes == []
