"""What a server that is none, or means ill, may do to us."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from coaudit.annotation.labelstudio import LabelStudioError, Server, client
from coaudit.annotation.labelstudio.server import is_healthy

WHO = b'{"id": 1, "email": "a@b.org"}'


@contextmanager
def giving(content: bytes, encoding: str) -> Iterator[str]:
    """The URL of a server that answers everything with these bytes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Encoding", encoding)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("content", "encoding", "why"),
    [
        (gzip.compress(WHO + b" " * (2 << 20)), "gzip", "an answer of more than 1 MiB"),
        (gzip.compress(gzip.compress(WHO)), "gzip, gzip", "an encoding that was not asked for"),
    ],
)
def test_what_an_answer_unpacks_to_is_bounded(
    content: bytes, encoding: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_BYTES", 1 << 20)
    with (
        giving(content, encoding) as url,
        Server(url, "f00d") as server,
        pytest.raises(LabelStudioError, match=why),
    ):
        server._get("api/current-user/whoami", {})


def test_a_packed_answer_is_read() -> None:
    with giving(gzip.compress(WHO), "gzip") as url, Server(url, "f00d") as server:
        assert server._get("api/current-user/whoami", {}) == {"id": 1, "email": "a@b.org"}


def test_a_server_on_this_machine_is_asked_past_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with giving(b"{}", "identity") as url:
        assert is_healthy(url)


def test_what_does_not_speak_http_is_not_healthy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")

        thread = Thread(target=greet)
        thread.start()
        assert not is_healthy(f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join()
