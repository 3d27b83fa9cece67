"""An object store that tests ask for what it does not keep."""

from __future__ import annotations

import http.server
from typing import Any


class Lying(http.server.BaseHTTPRequestHandler):
    """An object store that takes everything and holds nothing."""

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("ETag", '"0"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200)

    def do_GET(self) -> None:
        empty = b'<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>'
        self._answer(*((200, empty) if "list-type" in self.path else (404, b"")))

    def do_HEAD(self) -> None:
        self._answer(404)

    def log_message(self, *_: Any) -> None:
        pass
