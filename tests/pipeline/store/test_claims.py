"""Claims: one holder at a time, given back, or taken over from one that is gone."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from coaudit.pipeline.store.claims import FolderClaims
from coaudit.pipeline.store.leases import ObjectClaims
from coaudit.pipeline.store.remote import Remote
from tests.servers import BUCKET, object_store

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


@pytest.mark.slow
def test_a_claim_in_an_object_store_goes_over_when_the_heartbeat_stays_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore", reason="the extra `remote` is not installed")
    with object_store() as environment:
        for name, value in {**environment, "COAUDIT_MIRRORS": str(tmp_path)}.items():
            monkeypatch.setenv(name, value)
        remote = Remote(f"s3://{BUCKET}/study")
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
