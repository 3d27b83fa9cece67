"""Locks and claims of machines that share a catalog in Postgres: they end with their holder."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ....schemas.extras import pip_command
from ...errors import StoreError
from ..locks import Waiting, lock_key, process_name, reason

if TYPE_CHECKING:
    import psycopg


class CatalogLocks:
    """Advisory locks of a Postgres, each held by a connection of its own."""

    def __init__(self, conninfo: str) -> None:
        self.conninfo = conninfo

    @contextmanager
    def exclusive(self, name: str, waiting: Waiting) -> Iterator[None]:
        with self.attempt(name) as holder:
            if holder is None:
                yield
                return
        waiting(holder)
        with self._connect() as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", [lock_key(name)])
            yield

    @contextmanager
    def shared(self, name: str, waiting: Waiting = lambda holder: None) -> Iterator[None]:
        with self._connect() as connection:
            query = "SELECT pg_try_advisory_lock_shared(%s)"
            (free,) = connection.execute(query, [lock_key(name)]).fetchone() or (0,)
            if not free:
                waiting(_holder(connection, name))
                connection.execute("SELECT pg_advisory_lock_shared(%s)", [lock_key(name)])
            yield

    @contextmanager
    def attempt(self, name: str) -> Iterator[str | None]:
        with self._connect() as connection:
            (free,) = connection.execute("SELECT pg_try_advisory_lock(%s)", [lock_key(name)]).fetchone() or (
                0,
            )
            yield None if free else _holder(connection, name)

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return connect(self.conninfo)


LIVENESS = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""How libpq finds out, in a minute, that the server's machine or the network is gone: by a system's own
settings an answer is waited for for hours. A server that only takes its time is still waited for."""


_SERVER_LIVENESS = "; ".join(
    f"SET tcp_{name.removeprefix('tcp_')} = {value}" for name, value in LIVENESS.items()
)
"""The same for the server, which else keeps the locks of a machine that is gone for hours."""


def with_liveness(conninfo: str) -> str:
    """A connection string, or URL, with `LIVENESS` where it does not say otherwise."""
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict, make_conninfo
    except ImportError as error:
        raise StoreError(f"a catalog in Postgres needs the extra `lake`: {pip_command('lake')}") from error
    try:
        return str(make_conninfo("", **{**LIVENESS, **conninfo_to_dict(conninfo)}))
    except ProgrammingError:  # connecting says what is wrong with it
        return conninfo


def connect(conninfo: str) -> psycopg.Connection[tuple[object, ...]]:
    """A connection to Postgres that says who it is; StoreError without a password in it."""
    conninfo = with_liveness(conninfo)
    import psycopg

    try:
        connection = psycopg.connect(
            conninfo, autocommit=True, application_name=process_name(), connect_timeout=30
        )
        with suppress(psycopg.ProgrammingError, psycopg.DataError, psycopg.NotSupportedError):
            connection.execute(_SERVER_LIVENESS)  # a server, or a pool before it, may not know or allow it
        return connection
    except psycopg.Error as error:
        raise StoreError(f"the catalog in Postgres cannot be reached: {reason(error)}") from error


class CatalogClaims:
    """Claims as rows of a table, each with its holder, who lives as long as it holds one advisory lock.

    So Postgres' lock table, which has room for some thousands, holds one lock a process. The rows of dead
    holders go whenever somebody claims.
    """

    def __init__(self, conninfo: str) -> None:
        self._connection = connect(conninfo)
        self._thread_lock = threading.Lock()
        self._me = int.from_bytes(secrets.token_bytes(8), "big", signed=True)
        try:
            with self._turn():
                self._connection.execute("SELECT pg_advisory_lock(%s)", [self._me])
                self._connection.execute(_CLAIMS)
        except StoreError:
            self.close()
            raise

    def take(self, names: Sequence[str]) -> set[str]:
        by_key = {lock_key(f"claim {name}"): name for name in names}
        with self._turn():
            self._connection.execute(_FORGET_THE_DEAD)
            rows = self._connection.execute(_CLAIM, [list(by_key), self._me]).fetchall()
        return {by_key[int(str(row[0]))] for row in rows}

    def release(self, names: Collection[str]) -> None:
        keys = [lock_key(f"claim {name}") for name in names]
        with self._turn():
            self._connection.execute(_LET_GO, [self._me, keys])

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One process at a time, and one thread of it: a holder that is not seen to hold its lock then is
        dead."""
        with self._thread_lock, _explain_errors(), self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", [lock_key("claims")])
            yield


_CLAIMS = """
    CREATE UNLOGGED TABLE IF NOT EXISTS coaudit_claims (claim bigint PRIMARY KEY, holder bigint NOT NULL)
"""
"""Not logged: a server that goes down takes the sessions along whose claims these are."""
_FORGET_THE_DEAD = """
    DELETE FROM coaudit_claims WHERE holder NOT IN (
        SELECT classid::bigint << 32 | objid::bigint FROM pg_locks
        WHERE locktype = 'advisory' AND granted AND objsubid = 1
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    )
"""
_CLAIM = """
    INSERT INTO coaudit_claims SELECT unnest(%s::bigint[]), %s ON CONFLICT DO NOTHING RETURNING claim
"""
_LET_GO = "DELETE FROM coaudit_claims WHERE holder = %s AND claim = ANY(%s::bigint[])"


def _holder(connection: psycopg.Connection[tuple[object, ...]], name: str) -> str:
    query = """
        SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
        WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
            AND (l.classid::bigint << 32 | l.objid::bigint) = %s
    """
    row = connection.execute(query, [lock_key(name)]).fetchone()
    return str(row[0]) if row else "unknown"


@contextmanager
def _explain_errors() -> Iterator[None]:
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        why = f"the catalog in Postgres refuses a claim: {reason(error)}; run it again to go on"
        raise StoreError(why) from error
