"""Connections to a catalog in Postgres find out in a minute that the other machine is gone."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests import servers

psycopg = pytest.importorskip("psycopg", reason="the extra `lake` is not installed")

from psycopg.conninfo import conninfo_to_dict  # noqa: E402

from coaudit.pipeline.errors import StoreError  # noqa: E402
from coaudit.pipeline.store.lake.postgres import LIVENESS, connect, with_liveness  # noqa: E402


@pytest.mark.parametrize(
    "conninfo", ["host=db password='a \\' b'", "postgresql://u:p%27x@db:5433/study?sslmode=require"]
)
def test_a_connection_string_gets_what_it_does_not_say_itself(conninfo: str) -> None:
    wanted = {name: str(value) for name, value in LIVENESS.items()} | conninfo_to_dict(conninfo)
    assert conninfo_to_dict(with_liveness(conninfo)) == wanted


def test_what_a_connection_string_says_itself_stays_and_a_wrong_one_too() -> None:
    assert conninfo_to_dict(with_liveness("keepalives_idle=7"))["keepalives_idle"] == "7"
    assert with_liveness("no connection string") == "no connection string"


def test_a_server_that_knows_no_such_setting_is_used_without(monkeypatch: pytest.MonkeyPatch) -> None:
    class Server:
        def __init__(self, refusal: type[Exception]) -> None:
            self.refusal = refusal

        def execute(self, query: str) -> None:
            raise self.refusal("no such setting")

    for refusal in (psycopg.errors.UndefinedObject, psycopg.errors.InsufficientPrivilege):
        server = Server(refusal)
        monkeypatch.setattr(psycopg, "connect", lambda *_, one=server, **__: one)
        assert connect("host=db") is server
    monkeypatch.setattr(psycopg, "connect", lambda *_, **__: Server(psycopg.errors.AdminShutdown))
    with pytest.raises(StoreError, match="cannot be reached"):
        connect("host=db")


@pytest.mark.long
def test_a_server_and_its_client_find_out_that_the_other_is_gone(tmp_path: Path) -> None:
    with servers.postgres(tmp_path / "postgres") as conninfo, connect(conninfo) as connection:
        (idle,) = connection.execute("SHOW tcp_keepalives_idle").fetchone() or ("",)
        with socket.socket(fileno=connection.fileno()) as own:
            timeout = own.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            own.detach()
    assert (idle, timeout) == ("30", 60_000)
