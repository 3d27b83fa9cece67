"""Label Studio's answers that are none, and its token, which goes to it alone and is never shown."""

from __future__ import annotations

import gzip
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Thread
from typing import Any

import pytest

from coaudit.annotation.labelstudio import LabelStudioError, Server, client
from coaudit.annotation.labelstudio.server import is_healthy
from tests.annotation.labelstudio.stub import answering, sending

TOKEN = "f00dfeedc0ffee" * 3
ASKED: dict[str, Callable[[Server], Any]] = {
    "who": lambda server: server.check(),
    "users": lambda server: server.users(),
    "projects": lambda server: server.projects("mark"),
    "tasks": lambda server: list(server.tasks(1)),
    "invitation": lambda server: server.invitation(),
}


def saying(status: int, body: Any) -> AbstractContextManager[str]:
    """A server that answers everything so."""
    return answering(lambda _: (status, body))


@pytest.mark.long
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("body", [None, [1]], ids=["null", "a list"])
def test_an_answer_that_is_none_of_label_studios_is_said_to_be(asked: str, body: Any) -> None:
    with (
        saying(200, body) as url,
        Server(url, TOKEN) as server,
        pytest.raises(LabelStudioError, match="that is no answer of Label Studio's"),
    ):
        ASKED[asked](server)


@pytest.mark.long
@pytest.mark.parametrize("task", [{"meta": {}}, {"meta": [1]}, {"id": 1, "meta": {}}, 1])
def test_a_task_that_is_none_of_label_studios_is_said_to_be(task: Any) -> None:
    with (
        saying(200, {"total": 1, "tasks": [task]}) as url,
        Server(url, TOKEN) as server,
        pytest.raises(LabelStudioError, match="that is no answer of Label Studio's"),
    ):
        list(server.tasks(1))


def listing(annotation: Any, **ours: Any) -> AbstractContextManager[str]:
    """A server that lists one task with one annotation."""
    meta = {"coaudit_key": "x", **ours}
    task = {"id": 1, "meta": meta, "updated_at": "", "annotations": [annotation]}
    return saying(200, {"total": 1, "tasks": [task]})


@pytest.mark.long
@pytest.mark.parametrize(
    ("annotation", "ours"),
    [
        *(("x", {}), (None, {}), ({"id": "a"}, {}), ({"id": {}}, {})),
        *(({"id": 1}, {"seqs": [seq]}) for seq in (float("inf"), 2**31, -2)),
    ],
)
def test_an_annotation_that_is_none_of_label_studios_is_said_to_be(annotation: Any, ours: Any) -> None:
    with (
        listing(annotation, **ours) as url,
        Server(url, TOKEN) as server,
        pytest.raises(LabelStudioError, match="that is no answer of Label Studio's"),
    ):
        list(server.tasks(1))


@pytest.mark.long
@pytest.mark.parametrize("seconds", [float("nan"), float("-inf"), 10**400, "soon", None, [1]])
def test_a_time_that_is_no_number_costs_nobody_their_labels(seconds: Any) -> None:
    with listing({"id": 1, "lead_time": seconds}) as url, Server(url, TOKEN) as server:
        (task,) = server.tasks(1)
    assert task.annotations == [{"id": 1, "lead_time": None}]


@pytest.mark.long
def test_half_a_character_in_a_note_or_an_address_costs_nobody_their_labels() -> None:
    with listing({"id": 1, "lead_time": 2.5, "note": "so \ud83d"}) as url, Server(url, TOKEN) as server:
        (task,) = server.tasks(1)
    assert task.annotations == [{"id": 1, "lead_time": 2.5, "note": "so ?"}]
    people = [{"id": 1, "email": "ann\ud83d@example.org"}, {"id": 2, "email": "bob\U0001f600@example.org"}]
    with answering(lambda request: (200, [] if "page=2" in request else people)) as url:
        assert [*Server(url, TOKEN).users().values()] == [r"ann\ud83d@example.org", "bob😀@example.org"]


@pytest.mark.long
def test_a_key_that_is_no_text_is_no_key_of_ours() -> None:
    with listing({"id": 1}, coaudit_key={"a": 1}) as url, Server(url, TOKEN) as server:
        assert [task.key for task in server.tasks(1)] == ["{'a': 1}"]


@pytest.mark.long
@pytest.mark.parametrize("asked", ASKED)
def test_an_answer_that_is_too_long_is_not_held(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_BYTES", 1 << 20)
    with (
        saying(200, "x" * (2 << 20)) as url,
        Server(url, TOKEN) as server,
        pytest.raises(LabelStudioError, match="an answer of more than 1 MiB"),
    ):
        ASKED[asked](server)


@pytest.mark.long
def test_a_list_of_projects_that_never_ends_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_LISTED", 10)
    project = {"id": 7, "title": "", "description": "", "label_config": "<View/>"}
    with (
        saying(200, {"count": 1, "next": "x", "previous": None, "results": [project]}) as url,
        Server(url, TOKEN) as server,
        pytest.raises(LabelStudioError, match="a list of more than 10 goes on and on"),
    ):
        server.projects("sample")


@pytest.mark.long
@pytest.mark.parametrize("count", [0, 1])
def test_a_list_of_tasks_that_never_ends_is_left(count: int) -> None:
    tasks = [{"id": 1, "meta": {"coaudit_key": "x"}, "updated_at": ""}] * count
    with (
        saying(200, {"total": 10**12, "tasks": tasks}) as url,
        Server(url, TOKEN) as server,
        pytest.raises(LabelStudioError, match=f"promises 1,000,000,000,000 tasks and lists {count}"),
    ):
        list(server.tasks(1))


@pytest.mark.long
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize(
    "body",
    [{"detail": f"Token {TOKEN}"}, {"validation_errors": {"x": [TOKEN]}}, {"detail": "x" * 280 + TOKEN}],
    ids=["echoed", "in a list", "over the end"],
)
def test_a_refusal_that_repeats_the_token_is_told_without_it(asked: str, body: dict[str, Any]) -> None:
    with (
        saying(400, body) as url,
        Server(url, TOKEN) as server,
        pytest.raises(LabelStudioError, match=r"HTTP 400: .*\*\*\*") as error,
    ):
        ASKED[asked](server)
    assert TOKEN[:10] not in str(error.value)


@pytest.mark.long
def test_a_server_on_this_machine_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with saying(502, None) as proxy, saying(200, {"invite_url": "/join"}) as url:
        monkeypatch.setenv("HTTP_PROXY", proxy)
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        with Server(url, TOKEN) as server:
            assert server.invitation() == f"{url}/join"


def test_who_left_has_no_address_whatever_the_server_calls_them() -> None:
    people = [{"id": 1, "email": "ann@example.org"}, {"id": 2, "email": "Deleted"}]
    listed = [{"username": "", "first_name": "", "last_name": "", **one} for one in people]
    with saying(200, listed) as url, Server(url, TOKEN) as server:
        assert server.users() == {1: "ann@example.org"}


WHO = b'{"id": 1, "email": "a@b.org"}'
TWICE = gzip.compress(gzip.compress(WHO, mtime=0), mtime=0)


def giving(content: bytes, encoding: str) -> AbstractContextManager[str]:
    """The URL of a server that answers everything with these bytes."""
    return sending(lambda _: (200, content), encoding)


@pytest.mark.parametrize(
    ("content", "encoding", "why"),
    [
        (gzip.compress(WHO + b" " * (2 << 20)), "gzip", "an answer of more than 1 MiB"),
        (TWICE, "gzip, gzip", "an encoding that was not asked for"),
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
    with giving(gzip.compress(WHO, mtime=0), "gzip") as url, Server(url, "f00d") as server:
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


@contextmanager
def dripping(head: bytes, seconds: float) -> Iterator[str]:
    """The URL of a server that answers once, with a byte now and then behind `head`, for so long."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.recv(1000)
                connection.sendall(head)
                for _ in range(int(seconds / 0.05)):
                    connection.sendall(b" ")
                    time.sleep(0.05)

        thread = Thread(target=drip)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


HEADS = [b"HTTP/1.1 200 OK\r\nX-Long: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"]


@pytest.mark.parametrize("head", HEADS, ids=["header", "body"])
def test_an_answer_that_comes_byte_by_byte_is_not_waited_for(
    head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_SECONDS", 1.0)
    with (
        dripping(head, 2.0) as url,
        Server(url, "f00d") as server,
        pytest.raises(LabelStudioError, match="an answer that takes more than 1 s"),
    ):
        server.check()


def test_who_answers_byte_by_byte_is_not_healthy() -> None:
    end = b"HTTP/1.1 200 OK\r\nX-Long: "
    with dripping(end, 8.0) as url:
        start = time.monotonic()
        assert not is_healthy(url)
        assert time.monotonic() - start < 7


def test_who_answers_without_end_is_not_healthy_and_is_not_read_on() -> None:
    """A thread read such an answer into memory for as long as the command ran."""
    taken: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def pour() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while sum(taken) < 64 << 20:
                    taken.append(connection.send(bytes(1 << 16)))

        thread = Thread(target=pour)
        thread.start()
        assert not is_healthy(f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert sum(taken) < 64 << 20
