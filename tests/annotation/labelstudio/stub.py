"""What `labelstudio pull` asks of Label Studio, from a list of tasks: for tests that ask often."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

WHEN = "2026-06-01T10:00:00.000000Z"
PERSON = {"id": 1, "email": "ann@example.org", "username": "ann", "first_name": "", "last_name": ""}


def annotated(task: dict[str, Any], number: int, label: str) -> dict[str, Any]:
    """An exported task as the server lists it once a person has labelled it."""
    control = {"from_name": "answer", "to_name": "transcript", "type": "choices"}
    result = {**control, "value": {"choices": [label]}}
    annotation = {
        "id": 100 + number,
        "completed_by": 1,
        "result": [{**result, "id": f"r{number}"}],
        "created_at": WHEN,
        "updated_at": WHEN,
    }
    return {**task, "id": number, "updated_at": WHEN, "overlap": 1, "annotations": [annotation]}


@contextmanager
def serving(description: str, tasks: list[dict[str, Any]]) -> Iterator[str]:
    """The URL of a server on 127.0.0.1 with one project of these tasks."""
    project = {"id": 7, "title": "Project", "description": description, "label_config": "<View/>"}
    answers = {
        "/api/current-user/whoami": PERSON,
        "/api/users": [PERSON],
        "/api/projects": {"count": 1, "next": None, "previous": None, "results": [project]},
        "/api/tasks": {"total": len(tasks), "tasks": tasks},
    }

    def answer(request: str) -> tuple[int, Any]:
        path, _, query = request.partition("?")
        # Clients ask for pages until there is none.
        found = answers.get(path.rstrip("/")) if parse_qs(query).get("page", ["1"]) == ["1"] else None
        return (404 if found is None else 200), found

    with answering(answer) as url:
        yield url


def answering(answer: Callable[[str], tuple[int, Any]]) -> AbstractContextManager[str]:
    """The URL of a server on 127.0.0.1 that gives status and JSON of each path with its query."""

    def written(request: str) -> tuple[int, bytes]:
        status, body = answer(request)
        return status, json.dumps(body).encode()

    return sending(written)


@contextmanager
def sending(answer: Callable[[str], tuple[int, bytes]], encoding: str | None = None) -> Iterator[str]:
    """The same with bytes as they are, said to be in an encoding."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, content = answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if encoding is not None:
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
