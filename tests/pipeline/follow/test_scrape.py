"""The model server's metrics beside the events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from coaudit.pipeline.analyze.load import measures
from coaudit.pipeline.errors import UsageError
from coaudit.pipeline.follow import Plan
from coaudit.pipeline.follow import scrape as scrape_module
from coaudit.pipeline.follow.scrape import Scraper, worth_keeping
from coaudit.pipeline.follow.sink import Sink
from coaudit.pipeline.ingest.rebuild import rebuild
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.ingest.serving import parse, row
from coaudit.pipeline.store import Store, Workspace, insert
from coaudit.pipeline.systems import ReadOptions
from tests.pipeline.follow.conftest import Following

SCRAPE = """# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a } b"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0
vllm:num_requests_waiting{engine="0"} 7
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.75
vllm:num_preemptions_total{engine="0"} 1e1
vllm:prefix_cache_queries_total{engine="0"} 100
vllm:prefix_cache_hits_total{engine="0"} 80
vllm:time_to_first_token_seconds_bucket{le="0.1"} 4
vllm:time_to_first_token_seconds_sum{engine="0"} 12.5
vllm:time_to_first_token_seconds_count{engine="0"} 5
vllm:broken{} not-a-number
python_gc_objects_collected_total{generation="0"} 5
"""
START = 1_795_242_000.0


def scrape(seconds: float, values: dict[str, float], server: str = "gpu") -> dict[str, object]:
    """A recorded scrape of a server so many seconds in, with these metrics."""
    text = "\n".join(f"vllm:{name} {value}" for name, value in values.items())
    return {"time": START + seconds, "url": f"http://{server}/metrics", "text": text}


def test_samples_are_summed_over_their_labels_but_for_shares_and_what_is_not_there_is_null() -> None:
    found = parse(SCRAPE)
    assert found["running"] == 5.0
    assert (found["queue"], found["preemptions"], found["kv_cache_use"]) == (7.0, 10.0, 0.75)
    assert (found["prefix_queries"], found["prefix_hits"]) == (100.0, 80.0)
    assert (found["ttft_sum"], found["ttft_count"]) == (12.5, 5.0)
    assert found["generation_tokens"] is None


def test_a_sample_has_its_own_value_whatever_stands_in_its_labels_or_behind_it() -> None:
    text = (
        'vllm:num_requests_running{model="a} 7 {b",path="C:\\\\"} 3 1795242000000\n'
        'vllm:generation_tokens_total{model="say \\"}\\" 8"} 5 # {trace_id="z"} 0.67\n'
    )
    assert (parse(text)["running"], parse(text)["generation_tokens"]) == (3.0, 5.0)


def test_what_is_recorded_has_all_that_is_read_and_no_buckets() -> None:
    """Buckets were most of raw/serving, which grew by hundreds of megabytes a day."""
    text = worth_keeping(SCRAPE)
    assert parse(text) == parse(SCRAPE)
    assert "_bucket" not in text and "python_gc" not in text and "vllm:broken" in text


def test_engines_in_another_order_have_the_same_sum() -> None:
    """The waiting time of three engines had fallen by 1e-16, and nothing was known of the time between."""
    samples = [f'vllm:time_to_first_token_seconds_sum{{engine="{n}"}} 0.{n}' for n in (1, 2, 3)]
    assert parse("\n".join(samples)) == parse("\n".join(reversed(samples)))


def test_a_sample_without_a_number_is_null_and_blanks_stand_before_labels() -> None:
    found = parse('vllm:num_requests_running nothing\nvllm:num_requests_waiting {engine="0"} 7\n')
    assert (found["running"], found["queue"]) == (None, 7.0)


def test_rates_are_differences_of_counters_and_null_after_a_restart(workspace: Path) -> None:
    store = Store(Workspace(workspace))
    steps = [(0, 10.0, 5.0), (5, 16.0, 8.0), (10, 1.0, 1.0)]
    names = ("time_to_first_token_seconds_sum", "time_to_first_token_seconds_count")
    scrapes = [scrape(t, dict(zip(names, values, strict=True))) for t, *values in steps]
    with store.writing() as connection:
        insert(connection, "serving", [row(s) for s in scrapes])
    with store.reading() as connection:
        found = connection.execute(
            "SELECT new_ttft / new_first_tokens FROM serving_rates ORDER BY time"
        ).fetchall()
    assert found == [(None,), (2.0,), (None,)]


def test_a_restart_that_one_counter_shows_is_one_of_all(workspace: Path) -> None:
    names = (
        *("time_to_first_token_seconds_sum", "time_to_first_token_seconds_count"),
        *("num_preemptions_total", "prompt_tokens_total", "num_requests_running"),
    )
    steps = [(0, 2.0, 4, 0, 90_000, 1), (5, 9.0, 5, 3, 700, 1), (10, 10.0, 7, 4, 800, 1)]
    scrapes = [scrape(t, dict(zip(names, values, strict=True))) for t, *values in steps]
    assert total(workspace, scrapes, "ttft, preemptions") == [
        (0.0, None, None),
        (5.0, None, None),
        (10.0, 0.5, 1.0),
    ]


def total(workspace: Path, scrapes: list[dict[str, object]], columns: str) -> list[tuple[object, ...]]:
    """Rows of `serving_total`, the seconds of their scrapes since the first one in front."""
    store = Store(Workspace(workspace))
    with store.writing() as connection:
        insert(connection, "serving", [row(one) for one in scrapes])
    query = f"SELECT epoch(utc) - {START}, {columns} FROM serving_total ORDER BY utc"
    with store.reading() as connection:
        return list(connection.execute(query).fetchall())


def test_servers_that_are_read_in_different_seconds_are_loaded_together(workspace: Path) -> None:
    def load(seconds: float, server: str, running: float, queue: float, use: float) -> dict[str, object]:
        names = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
        return scrape(seconds, dict(zip(names, (running, queue, use), strict=True)), server)

    scrapes = [
        load(0.2, "a", 4, 2, 0.5),
        load(1.1, "b", 1, 0, 0.1),
        load(5.0, "a", 3, 0, 0.4),
        load(5.5, "a", 2, 0, 0.3),  # twice in a second: its last state, and not both
        scrape(6.1, {}, "b") | {"error": "refused"},
        load(7.0, "a", 2, 0, 0.2),
        load(80.0, "b", 7, 0, 0.6),  # what a did is too old
    ]
    assert total(workspace, scrapes, "running, queue, kv_cache_use") == [
        (0.0, 4.0, 2.0, 0.5),
        (1.0, 5.0, 2.0, 0.5),
        (5.0, 3.0, 0.0, 0.3),
        (6.0, 2.0, 0.0, 0.3),
        (7.0, 2.0, 0.0, 0.2),
        (80.0, 7.0, 0.0, 0.6),
    ]


def test_a_server_that_fails_under_load_leaves_the_load_unknown_unless_requests_wait(workspace: Path) -> None:
    def load(seconds: float, server: str, running: float, queue: float) -> dict[str, object]:
        names = ("num_requests_running", "num_requests_waiting")
        return scrape(seconds, dict(zip(names, (running, queue), strict=True)), server)

    timeout = {"error": "timed out"}
    scrapes = [
        load(0, "a", 5, 3),
        load(0, "b", 0, 0),
        scrape(5, {}, "a") | timeout,
        load(5, "b", 0, 0),
        scrape(10, {}, "a") | timeout,
        load(10, "b", 1, 1),
        scrape(70, {}, "a") | timeout,  # gone for longer than what it did says anything
        load(70, "b", 0, 0),
    ]
    assert total(workspace, scrapes, "load") == [(0.0, "queue"), (5.0, None), (10.0, "queue"), (70.0, "idle")]


def test_times_to_first_token_are_means_of_requests_and_not_of_scrapes_or_servers(workspace: Path) -> None:
    names = (
        *("time_to_first_token_seconds_sum", "time_to_first_token_seconds_count"),
        *("prefix_cache_queries_total", "prefix_cache_hits_total", "num_requests_running"),
    )

    def counters(seconds: float, server: str, *values: float) -> dict[str, object]:
        return scrape(seconds, dict(zip(names, values, strict=True)), server)

    scrapes = [
        counters(0, "a", 0, 0, 0, 0, 1),
        counters(0, "b", 0, 0, 0, 0, 1),
        counters(5, "a", 9, 90, 900, 900, 1),
        counters(5, "b", 11, 10, 100, 0, 1),
        counters(10, "a", 19, 91, 900, 900, 1),
    ]
    rows = total(workspace, scrapes, "ttft, prefix_hit_rate")
    assert rows == [(0.0, None, None), (5.0, 0.2, 0.9), (10.0, 10.0, None)]
    (measure,) = [m for m in measures(Store(Workspace(workspace))) if m["metric"] == "ttft"]
    assert (measure["value"], measure["n"], measure["missing"]) == (30.0 / 101, 101, 0)


def test_answers_and_failures_are_set_against_the_load_in_force(workspace: Path, tmp_path: Path) -> None:
    people = [{"name": "a", "kind": "agent"}, {"name": "h", "kind": "human"}]

    def at(seconds: int) -> str:
        return f"2026-11-21T06:20:{seconds:02d}+00:00"

    events = [
        {"actor": "h", "kind": "message", "text": "One?", "time": at(1)},
        {"actor": "a", "kind": "message", "text": "1", "time": at(3)},
        {"actor": "h", "kind": "message", "text": "Two?", "time": at(11)},
        {"actor": "h", "kind": "message", "text": "Hello?", "time": at(20)},
        {"actor": "a", "kind": "action", "action": {"name": "GO"}, "status": "failed", "time": at(51)},
    ]
    log = tmp_path / "own.jsonl"
    head = {"type": "trajectory", "native_id": "x", "participants": people, "events": events}
    log.write_text(json.dumps(head) + "\n")
    store = Store(Workspace(workspace))
    ingest(store, [log], ReadOptions())
    waiting = [(0.0, 1.0, 0.0), (10.0, 4.0, 6.0), (50.0, 4.0, 6.0)]
    with store.writing() as connection:
        for seconds, running, queue in waiting:
            one = scrape(seconds, {"num_requests_running": running, "num_requests_waiting": queue})
            insert(connection, "serving", [row(one)])
    found = {(r["metric"], r["group"]["load"]): (r["value"], r["n"]) for r in measures(store)}
    assert found["answer_seconds", "busy"] == (2.0, 1)
    assert found["answer_seconds", "queue"] == (35.5, 2)
    assert found["spoke_again_rate", "queue"] == (0.5, 2)
    assert found["action_failure_rate", "queue"] == (1.0, 1)
    assert found["slow_answer_rate", "busy"] == (0.0, 1)


def test_an_answer_counts_whatever_is_known_of_the_load_by_then(workspace: Path, tmp_path: Path) -> None:
    people = [{"name": "a", "kind": "agent"}, {"name": "h", "kind": "human"}]
    events = [
        {"actor": "h", "kind": "message", "text": "One?", "time": "2026-11-21T06:20:50+00:00"},
        {"actor": "h", "kind": "message", "text": "Hello?", "time": "2026-11-21T06:21:10+00:00"},
        {"actor": "a", "kind": "message", "text": "1", "time": "2026-11-21T06:21:30+00:00"},
    ]
    log = tmp_path / "own.jsonl"
    head = {"type": "trajectory", "native_id": "x", "participants": people, "events": events}
    log.write_text(json.dumps(head) + "\n")
    store = Store(Workspace(workspace))
    ingest(store, [log], ReadOptions())
    with store.writing() as connection:  # the last scrape is of 06:20:00
        insert(connection, "serving", [row(scrape(0.0, {"num_requests_running": 1.0}))])
    rates = {r["metric"]: (r["value"], r["n"], r["missing"]) for r in measures(store)}
    assert rates["answer_seconds"] == (40.0, 1, 0)
    assert rates["spoke_again_rate"] == (1.0, 1, 0)


def test_what_happened_while_nobody_looked_counts_under_no_load(workspace: Path) -> None:
    names = (
        *("time_to_first_token_seconds_sum", "time_to_first_token_seconds_count"),
        *("num_preemptions_total", "num_requests_running"),
    )
    steps = [(0, 0, 0, 0, 1), (5, 1, 1, 0, 1), (7200, 50_001, 5_001, 900, 0), (7205, 50_002, 5_002, 901, 0)]
    scrapes = [scrape(t, dict(zip(names, values, strict=True))) for t, *values in steps]
    assert total(workspace, scrapes, "ttft, preemptions") == [
        (0.0, None, None),
        (5.0, 1.0, 0.0),
        (7200.0, None, None),
        (7205.0, 1.0, 1.0),
    ]
    store = Store(Workspace(workspace))
    rows = {(r["metric"], r["group"]["load"]): (r["value"], r["n"]) for r in measures(store)}
    assert (rows["ttft", "busy"], rows["ttft", "idle"]) == ((1.0, 1), (1.0, 1))
    assert rows["preemptions", "idle"] == (1.0, 1)


def test_a_server_that_no_longer_answers_has_no_load(workspace: Path) -> None:
    scrapes = [
        scrape(0.0, {"num_requests_running": 3.0}),
        scrape(1.0, {"num_requests_running": 4.0}),
        scrape(1.5, {}) | {"error": "refused"},  # in a second in which it answered
        scrape(5.0, {}) | {"error": "refused"},
        scrape(10.0, {"prompt_tokens_total": 7.0}),  # it answers, and does not say
    ]
    loads = [(0.0, 3.0, "busy"), (1.0, 4.0, "busy"), (5.0, None, None), (10.0, None, None)]
    assert total(workspace, scrapes, "running, load") == loads
    assert {r["group"]["load"] for r in measures(Store(Workspace(workspace)))} <= {"busy"}


@pytest.mark.parametrize("values", [("NaN", "0.5"), ("0.5", "NaN"), ("+Inf", "0.5")])
def test_what_one_engine_does_not_say_is_not_known_of_all(values: tuple[str, str]) -> None:
    for name, column in (("kv_cache_usage_perc", "kv_cache_use"), ("num_requests_running", "running")):
        text = "".join(f'vllm:{name}{{engine="{n}"}} {value}\n' for n, value in enumerate(values))
        assert parse(text)[column] is None


async def test_a_server_that_does_not_end_its_answer_is_left_and_said_to_be_late(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100):
            await response.write(b"\n")
            await asyncio.sleep(0.05)
        return response

    monkeypatch.setattr(scrape_module, "TIMEOUT", 0.5)
    app = web.Application()
    app.router.add_get("/metrics", drip)
    async with TestServer(app) as server:
        scraper = Scraper(str(server.make_url("/metrics")), Sink(Store(Workspace(workspace))), print, 1.0)
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=0.5)) as session:
            scrape = await scraper._scrape(session)
    assert scrape["error"] == "no answer within 0.5 s"


async def test_an_answer_that_comes_in_pieces_is_read_to_its_end(workspace: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        separator = "\N{LINE SEPARATOR}".encode()
        waiting = b'vllm:num_requests_waiting{model="a' + separator + b'b"} 7\n'
        for piece in (b"vllm:num_requests_running 1", b"2\n" + waiting[:9], waiting[9:]):
            await response.write(piece)
            await asyncio.sleep(0.05)
        return response

    app = web.Application()
    app.router.add_get("/metrics", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/metrics"
    sink = Sink(Store(Workspace(workspace)))
    task = asyncio.create_task(Scraper(url, sink, lambda _: None, every=0.05).run())
    async with asyncio.timeout(30):
        while not list((workspace / "raw" / "serving").glob("*.jsonl")):
            await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.wait([task])
    await runner.cleanup()
    sink.flush()
    with sink.store.reading() as connection:
        rows = connection.execute("SELECT DISTINCT running, queue, error FROM serving").fetchall()
    assert rows == [(12.0, 7.0, None)]


@pytest.mark.long
async def test_scrapes_are_recorded_stored_and_replayed(workspace: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=SCRAPE)

    app = web.Application()
    app.router.add_get("/metrics", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    said: list[str] = []
    sink = Sink(Store(Workspace(workspace)))
    task = asyncio.create_task(
        Scraper(f"http://127.0.0.1:{port}/metrics", sink, said.append, every=0.05).run()
    )
    await asyncio.sleep(0.4)
    await runner.cleanup()
    await asyncio.sleep(0.3)
    task.cancel()
    await asyncio.wait([task])
    sink.flush()

    def rows() -> list[object]:
        with sink.store.reading() as connection:
            query = "SELECT time, running, queue, error IS NULL FROM serving ORDER BY time"
            return list(connection.execute(query).fetchall())

    before = rows()
    assert len(said) == 1
    assert any(r[1:] == (5.0, 7.0, True) for r in before)  # type: ignore[index]
    assert any(r[1:] == (None, None, False) for r in before)  # type: ignore[index]
    rebuild(sink.store)
    assert rows() == before


@pytest.mark.slow
def test_an_address_of_metrics_that_is_none_is_wrong_use(
    follow: Callable[..., Following], tmp_path: Path
) -> None:
    follower = follow(tmp_path, "--metrics", "gpu:8000")
    follower.finish(status=2)
    assert "--metrics" in follower.said


def test_two_servers_that_only_a_query_tells_apart_are_wrong_use() -> None:
    one, other = "http://gateway/metrics?server=a", "http://gateway/metrics?server=b"
    Plan((), metrics=(one, "http://gateway/b/metrics")).check()
    with pytest.raises(UsageError, match="--metrics http://gateway/metrics: given twice, or for two servers"):
        Plan((), metrics=(one, other)).check()
