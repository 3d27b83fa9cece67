"""What an object store refuses, loses or never had is told; of two who write at once one is."""

from __future__ import annotations

import errno
import http.server
import re
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coaudit.pipeline.errors import StoreError, WriteError
from coaudit.pipeline.store import Workspace, disk
from coaudit.pipeline.store.remote.bucket import Bucket
from coaudit.pipeline.store.remote.remote import Remote
from tests.lying import Lying
from tests.servers import BUCKET, Machine, free_port
from tests.studies import logs

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("machines")]
pytest.importorskip("obstore", reason="the extra `remote` is not installed")


def test_of_two_machines_that_put_settings_at_once_the_object_store_refuses_one(
    tmp_path: Path, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**s3, "COAUDIT_MIRRORS": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    remote = Remote(f"s3://{BUCKET}/at-once")
    assert remote.create("coaudit.toml", b"a = 0")
    with ThreadPoolExecutor(8) as pool:
        news = [b"a = %d" % n for n in range(1, 9)]
        done = list(pool.map(lambda new: remote.replace("coaudit.toml", new, b"a = 0"), news))
    assert sum(done) == 1
    assert remote.read("coaudit.toml") == news[done.index(True)]


def test_an_object_store_that_refuses_or_lies_about_a_write_is_told_on(
    tmp_path: Path, s3: dict[str, str]
) -> None:
    parts = logs(tmp_path / "logs", parts=1, sessions=1)
    nowhere = Machine(tmp_path / "mirrors", "s3://no-such-bucket/study", s3)
    assert "the object store refused the request: NoSuchBucket" in nowhere.run("ingest", *parts, status=1)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Lying)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    lying = {**s3, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}"}
    machine = Machine(tmp_path / "mirrors", f"s3://{BUCKET}/lies", lying)
    told = machine.run("ingest", *parts, status=1)
    server.shutdown()
    server.server_close()
    assert "was written but is not there" in told
    assert "hush-hush" not in told


def test_an_object_store_that_nobody_gave_credentials_for_is_told_so(
    tmp_path: Path, s3: dict[str, str]
) -> None:
    keys = {name: text for name, text in s3.items() if "KEY" not in name}
    alone = Machine(
        tmp_path / "mirrors", "s3://bucket/study", {**keys, "AWS_METADATA_ENDPOINT": "http://127.0.0.1:9"}
    )
    told = alone.run("metrics", status=1)
    assert "no credentials" in told and "AWS_ACCESS_KEY_ID" in told and "Debug" not in told


def test_an_object_store_that_is_away_is_told_from_one_that_refuses(
    s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    for name, value in {**s3, "AWS_ENDPOINT_URL": away}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreError, match=f"s3://bucket/study: the object store does not answer at {away}"):
        Remote("s3://bucket/study/").pull()
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3["AWS_ENDPOINT_URL"])
    with pytest.raises(
        StoreError, match="s3://no-such/study: the object store refused the request: NoSuchBucket"
    ):
        Remote("s3://no-such/study").pull()


@pytest.mark.parametrize("place", ["s3://", "http://host/study", "s3:/bucket/study", "gs:bucket"])
def test_a_place_that_is_no_object_store_is_refused_and_no_folder_of_that_name_is_made(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=re.escape(place)):
        Workspace.at(place)
    assert not list(tmp_path.iterdir())


def test_an_object_store_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(StoreError, match=r"needs the extra `remote`: pip install 'coaudit\[remote\]'"):
        Workspace.at("s3://bucket/study")


class Torn:
    """A client whose connection breaks in the middle of an object."""

    def get(self, name: str) -> Torn:
        return self

    def stream(self) -> Iterator[bytes]:
        yield b"half"
        raise OSError("connection closed before message completed")


def test_a_download_that_breaks_off_leaves_nothing_behind(tmp_path: Path) -> None:
    bucket = Bucket("s3://bucket/study")
    bucket._store = Torn()
    with pytest.raises(
        StoreError, match=r"study/ratings/a\.jsonl: the object store refused .* closed before"
    ):
        bucket.fetch("ratings/a.jsonl", tmp_path / "ratings" / "a.jsonl")
    assert not list((tmp_path / "ratings").iterdir())


def test_a_full_disk_is_not_the_object_stores_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(point: str, path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    bucket = Bucket("s3://bucket/study")
    bucket._store = Torn()
    monkeypatch.setattr(disk, "fault", full)
    with pytest.raises(WriteError, match=r"a\.jsonl.*: cannot write: No space left on device"):
        bucket.fetch("ratings/a.jsonl", tmp_path / "a.jsonl")
    assert not list(tmp_path.iterdir())
