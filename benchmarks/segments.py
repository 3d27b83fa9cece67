"""A study of very many segments: what a look at it takes, and a new mirror.

    python benchmarks/segments.py [--segments N] [--delay MS] [--keep]

The object store is a stand-in on this machine, which lists names a thousand at a time as S3 does and has each
request wait: a real one is slow to answer and serves many at once, moto's is the other way round. Ratios are
seconds of a few segments / those of many, both of one run.
"""

from __future__ import annotations

import argparse
import bisect
import http.server
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

from ratios import hold

from coaudit.pipeline.store.ledgers import ledger
from coaudit.pipeline.store.remote.remote import Remote

FEW = 1000
PAGE = 1000
LINE = b'{"line": 1}\n'


class StandIn(http.server.ThreadingHTTPServer):
    """An S3 whose objects all hold one line."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, delay: float) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.delay = delay
        self.names: list[str] = []
        self.requests = 0

    def page(self, prefix: str, after: str) -> tuple[list[str], bool]:
        """Names behind one of them, and whether there are more."""
        start = bisect.bisect_right(self.names, after) if after else bisect.bisect_left(self.names, prefix)
        start = max(start, bisect.bisect_left(self.names, prefix))
        end = bisect.bisect_left(self.names, prefix + "\U0010ffff")
        return self.names[start : min(start + PAGE, end)], start + PAGE < end


class _Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: StandIn

    def do_GET(self) -> None:
        time.sleep(self.server.delay)
        self.server.requests += 1
        url = urlsplit(self.path)
        asked = {name: values[-1] for name, values in parse_qs(url.query).items()}
        if "list-type" in asked:
            self._answer(self._listed(asked))
        elif "/ratings/" in url.path:
            self._answer(LINE)
        else:
            self._answer(b"", 404)

    def _listed(self, asked: dict[str, str]) -> bytes:
        if "delimiter" in asked:
            return b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
        after = asked.get("continuation-token") or asked.get("start-after", "")
        names, more = self.server.page(asked.get("prefix", ""), after)
        rows = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f'<ETag>"0"</ETag><Size>{len(LINE)}</Size></Contents>'
            for name in names
        )
        token = f"<NextContinuationToken>{escape(names[-1])}</NextContinuationToken>" if more else ""
        told = f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}"
        return f"<ListBucketResult>{told}{rows}</ListBucketResult>".encode()

    def _answer(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("ETag", '"0"')
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    """Look at studies of few and of many segments, print a row each."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--segments", type=int, default=20_000)
    options.add_argument("--delay", type=float, default=30.0, help="of each request, milliseconds")
    options.add_argument("--fetch", action="store_true", help="a new mirror of all of them as well")
    options.add_argument("--keep", action="store_true")
    given = options.parse_args()
    ratios = {}
    with tempfile.TemporaryDirectory() as place, _serving(given.delay / 1000) as server:
        os.environ["COAUDIT_MIRRORS"] = place
        few, many = (_looked(server, number, fetch=given.fetch) for number in (FEW, given.segments))
        ratios = {f"{what}: few / many segments": few[what] / many[what] for what in few}
    hold(ratios, keep=given.keep)


def _looked(server: StandIn, segments: int, *, fetch: bool) -> dict[str, float]:
    """Seconds of a new mirror, of a look where nothing is new, and of one at the folder alone."""
    study = f"study{segments}"
    names = [f"20260101T{number:012d}-m-1-0a0b0c0d.jsonl" for number in range(segments)]
    server.names = [f"{study}/ratings/{name}" for name in names]
    ratings = Remote(f"s3://bucket/{study}").folder / "ratings"
    took = {}
    if fetch:
        took["new mirror"] = _timed(server, study, segments, "new mirror")
    else:
        ratings.mkdir(parents=True)
        for name in names:
            (ratings / name).write_bytes(LINE)
    took["look"] = _timed(server, study, segments, "nothing new")
    known = ledger.sizes(ratings)
    began = time.perf_counter()
    assert not ledger.changed_files(ratings, known)
    took["folder"] = time.perf_counter() - began
    print(f"{segments} segments, folder alone: {took['folder']:.3f} s", flush=True)
    return took


def _timed(server: StandIn, study: str, segments: int, what: str) -> float:
    server.requests = 0
    began, used = time.perf_counter(), time.process_time()
    Remote(f"s3://bucket/{study}").pull()
    took, cpu = time.perf_counter() - began, time.process_time() - used
    print(f"{segments} segments, {what}: {took:.2f} s, CPU {cpu:.2f}, {server.requests} requests", flush=True)
    return took


@contextmanager
def _serving(delay: float) -> Iterator[StandIn]:
    server = StandIn(delay)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ACCESS_KEY_ID": "anybody",
        "AWS_SECRET_ACCESS_KEY": "anything",
        "AWS_REGION": "us-east-1",
    }
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()
