"""Claims: one holder at a time, given back, or taken over from one that is gone."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coaudit.pipeline.store.claims import FolderClaims
from coaudit.pipeline.store.lake.postgres import CatalogClaims
from coaudit.pipeline.store.remote.bucket import Stamp
from coaudit.pipeline.store.remote.leases import ObjectClaims
from coaudit.pipeline.store.remote.remote import Remote
from tests.servers import BUCKET, object_store, postgres

HOLDER = """
import sys, time
from pathlib import Path
from coaudit.pipeline.store.claims import FolderClaims
print(FolderClaims(Path(sys.argv[1])).take(["a", "b"]), flush=True)
time.sleep(60)
"""


def test_a_claim_in_a_folder_has_one_holder_until_it_is_given_back(tmp_path: Path) -> None:
    one, other = FolderClaims(tmp_path), FolderClaims(tmp_path)
    assert one.take(["a", "b"]) == {"a", "b"}
    assert other.take(["b", "c"]) == {"c"}
    one.release(["b"])
    assert other.take(["a", "b"]) == {"b"}
    one.close()
    assert other.take(["a"]) == {"a"}
    other.close()


def test_the_claims_of_a_killed_process_are_free_at_once(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-P", "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout and "a" in holder.stdout.readline()
    mine = FolderClaims(tmp_path)
    assert mine.take(["a"]) == set()
    holder.kill()
    holder.communicate()
    assert mine.take(["a", "b"]) == {"a", "b"}
    mine.close()


CATALOG_HOLDER = """
import sys, time
from coaudit.pipeline.store.lake.postgres import CatalogClaims
claims = CatalogClaims(sys.argv[1])
print(len(claims.take([str(n) for n in range(20000)])), flush=True)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("psycopg", reason="the extra `lake` is not installed")
    with postgres(tmp_path_factory.mktemp("postgres") / "server") as conninfo:
        yield conninfo


def locks_and_rows(catalog: str) -> tuple[int, int]:
    """How many advisory locks Postgres holds, and how many claims."""
    import psycopg

    with psycopg.connect(catalog) as connection:
        locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
        (held,) = connection.execute(locks).fetchone() or (0,)
        (rows,) = connection.execute("SELECT count(*) FROM coaudit_claims").fetchone() or (0,)
    return int(held), int(rows)


@pytest.mark.slow
@pytest.mark.xdist_group("machines")
def test_twenty_thousand_claims_in_a_catalog_hold_one_lock_and_go_with_their_killed_holder(
    catalog: str,
) -> None:
    """Postgres has room for 6,400 locks as it comes: a lock a claim would not fit."""
    names = [str(n) for n in range(20_000)]
    rival = CatalogClaims(catalog)
    holder = subprocess.Popen(
        [sys.executable, "-P", "-c", CATALOG_HOLDER, catalog], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout and holder.stdout.readline().strip() == "20000"
    assert locks_and_rows(catalog) == (2, 20_000), "a lock for each of the two that are connected"
    assert rival.take([*names, "mine"]) == {"mine"}
    holder.kill()
    holder.communicate()
    deadline = time.monotonic() + 20
    while locks_and_rows(catalog)[0] == 2 and time.monotonic() < deadline:  # until the server notices
        time.sleep(0.05)
    assert rival.take(names[:5000]) == set(names[:5000])
    assert locks_and_rows(catalog) == (1, 5_001), "what nobody wants of a dead process is cleared as well"
    other = CatalogClaims(catalog)
    assert other.take(names[4999:5001]) == {"5000"}
    rival.release(names[:5000])
    assert other.take(names[:2]) == {"0", "1"}
    assert rival.take(names[:2]) == set(), "what another has taken since is not given back by who had it"
    rival.release(names[:2])
    assert rival.take(names[:2]) == set()
    for claims in (rival, other):
        claims.close()


@pytest.mark.slow
@pytest.mark.xdist_group("machines")
def test_what_many_claim_at_once_in_a_catalog_each_one_gets_once(catalog: str) -> None:
    names = [f"contested {n}" for n in range(300)]
    everyone = [CatalogClaims(catalog) for _ in range(6)]
    with ThreadPoolExecutor(len(everyone)) as pool:
        orders = [names if n % 2 else names[::-1] for n in range(len(everyone))]
        bites = [
            (claims, order[at : at + 10])
            for at in range(0, 300, 10)
            for claims, order in zip(everyone, orders, strict=True)
        ]
        shares = list(pool.map(lambda one: one[0].take(one[1]), bites))
    assert sorted(name for share in shares for name in share) == sorted(names)
    for claims in everyone:
        claims.close()


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    pytest.importorskip("obstore", reason="the extra `remote` is not installed")
    with object_store() as environment:
        for name, value in {**environment, "COAUDIT_MIRRORS": str(tmp_path)}.items():
            monkeypatch.setenv(name, value)
        yield Remote(f"s3://{BUCKET}/study")


@pytest.mark.slow
def test_a_claim_in_an_object_store_goes_over_when_the_heartbeat_stays_out(remote: Remote) -> None:
    stalled = ObjectClaims(remote, lease=4, beat=3600)  # its heart beats when it claims and never again
    alive = ObjectClaims(remote, lease=4, beat=0.5)
    assert stalled.take(["a", "b"]) == {"a", "b"}
    assert alive.take(["a", "c"]) == {"c"}, "held by somebody whose last heartbeat is fresh"
    stalled.release(["b"])
    assert alive.take(["b"]) == {"b"}
    time.sleep(6)
    rival = ObjectClaims(remote, lease=4, beat=0.5)
    assert rival.take(["c"]) == set(), "a heart that beats keeps its claims however long it holds them"
    assert rival.take(["a"]) == {"a"}
    assert alive.take(["a"]) == set(), "one of those who see a holder gone gets it"
    for claims in (rival, alive):
        claims.close()
    assert stalled.take(["c"]) == {"c"}
    stalled.close()


@pytest.mark.slow
def test_what_dead_processes_left_in_an_object_store_goes_when_the_next_one_claims(remote: Remote) -> None:
    dead = [ObjectClaims(remote, lease=3, beat=3600) for _ in range(3)]
    for number, one in enumerate(dead):
        assert one.take([f"a{number}", f"b{number}"])
    alive = ObjectClaims(remote, lease=3, beat=0.5)
    assert alive.take(["mine"]) == {"mine"}
    time.sleep(5)
    fresh = ObjectClaims(remote, lease=3, beat=0.5)
    assert fresh.take(["new"]) == {"new"}
    assert len(remote.stamps("claims")) == 2, "of six old claims none is left, of one that is held all"
    assert len(remote.stamps("writers")) == 2
    assert fresh.take(["mine"]) == set(), "however old a claim is, a heart that beats keeps it"
    for claims in (fresh, alive):
        claims.close()
    assert not remote.stamps("claims") and not remote.stamps("writers")


@pytest.mark.slow
def test_who_looked_before_another_took_over_and_a_third_claimed_anew_gets_nothing(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = ObjectClaims(remote, lease=2, beat=3600)
    assert dead.take(["a"])
    time.sleep(4)
    third = ObjectClaims(remote, lease=2, beat=0.5)
    seen = Remote.stamps

    def late(self: Remote, folder: str) -> dict[str, Stamp]:
        """A look at claims that is long on its way back."""
        there = seen(self, folder)
        if folder == "claims":
            monkeypatch.setattr(Remote, "stamps", seen)
            second = ObjectClaims(remote, lease=2, beat=0.5)
            assert second.take(["a"]) == {"a"}
            second.close()
            assert third.take(["a"]) == {"a"}
        return there

    slow = ObjectClaims(remote, lease=2, beat=0.5)
    monkeypatch.setattr(Remote, "stamps", late)
    assert slow.take(["a"]) == set()
    third.release(["a"])
    assert slow.take(["a"]) == {"a"}
    for claims in (slow, third):
        claims.close()
