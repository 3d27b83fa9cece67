"""A mirror has what the object store has, all of it and nothing else."""

from __future__ import annotations

import http.server
import json
import threading
from pathlib import Path

import pytest

from coaudit.pipeline.errors import StoreError
from coaudit.pipeline.store.remote.bucket import Entry
from coaudit.pipeline.store.remote.remote import Remote
from tests.lying import Lying
from tests.servers import BUCKET, Machine, object_store
from tests.studies import logs, study

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("machines")]
pytest.importorskip("obstore", reason="the extra `remote` is not installed")


class _Cutting(Lying):
    """An object store that gives half of what it lists."""

    def do_GET(self) -> None:
        if "list-type" not in self.path:
            self._answer(200, b"{}\n" * 5)
        elif "ratings" in self.path:
            self._answer(200, _LISTED)
        else:
            super().do_GET()


_LISTED = (
    b"<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>cut/ratings/20260101T0-m-1-00.jsonl"
    b'</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"0"</ETag><Size>30</Size></Contents>'
    b"</ListBucketResult>"
)


def test_an_object_store_that_gives_less_than_it_lists_is_told_on_and_nothing_of_it_counts(
    tmp_path: Path, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Cutting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    cutting = {**s3, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}"}
    for name, value in {**cutting, "COAUDIT_MIRRORS": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    mirror = Remote(f"s3://{BUCKET}/cut")
    with pytest.raises(StoreError, match="sent 15 bytes, but reports a size of 30"):
        mirror.pull()
    server.shutdown()
    server.server_close()
    assert not any(path.is_file() for path in mirror.folder.rglob("*"))


def test_a_mirror_heals_what_its_disk_lost_and_says_what_the_object_store_lost(
    tmp_path: Path, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**s3, "COAUDIT_MIRRORS": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    url, names = f"s3://{BUCKET}/losing", [f"sources/2026{number}-m-1-00.jsonl" for number in range(3)]
    for name in names:
        Remote(url).create(name, b'{"line": 1}\n')
    mirror = Remote(url)
    mirror.pull()
    (mirror.folder / names[1]).write_bytes(b'{"li')
    Remote(url).pull()
    assert (mirror.folder / names[1]).read_bytes() == b'{"line": 1}\n'
    mirror.delete(names[2:])
    with pytest.raises(StoreError, match=f"1 ledger file is missing there, such as {names[2]}"):
        Remote(url).pull()
    Remote(url).put(names[2], mirror.folder / names[2])
    Remote(url).pull()


def test_studies_of_one_name_in_two_object_stores_have_a_mirror_each(
    tmp_path: Path, s3: dict[str, str]
) -> None:
    (one,) = study(tmp_path, s3, 1)
    (part,) = logs(tmp_path / "logs", parts=1, sessions=2)
    one.run("ingest", part)
    with object_store() as elsewhere:
        other = Machine(one.folder, one.workspace, elsewhere)
        assert "no workspace here" in other.run("trajectory", "list", status=1), "not that of the first"
    assert len(json.loads(one.run("trajectory", "list", "--json"))["rows"]) == 2


def test_a_new_mirror_fetches_what_many_short_runs_left_side_by_side(
    tmp_path: Path, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**s3, "COAUDIT_MIRRORS": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    names = [f"ratings/2026{number:04d}-m-1-0a0b0c0d.jsonl" for number in range(60)]
    for name in names:
        assert Remote(f"s3://{BUCKET}/short").create(name, name.encode())
    fetch, at_once = Remote.fetch, threading.Barrier(8)

    def slowly(remote: Remote, name: str, target: Path, size: int | None = None) -> None:
        if name < names[8]:
            at_once.wait(30)  # breaks unless eight are fetched at once
        fetch(remote, name, target, size)

    monkeypatch.setattr(Remote, "fetch", slowly)
    mirror = Remote(f"s3://{BUCKET}/short")
    mirror.pull()
    assert {name: (mirror.folder / name).read_text() for name in names} == {name: name for name in names}
    monkeypatch.setattr(Remote, "fetch", _unwanted)
    Remote(f"s3://{BUCKET}/short").pull()


def _unwanted(remote: Remote, name: str, target: Path, size: int | None = None) -> None:
    raise AssertionError(f"{name} is there")


class _Overwriting(Lying):
    """An object store that knows no conditions."""

    held: dict[str, bytes]

    def do_PUT(self) -> None:
        self.held[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200)

    def do_GET(self) -> None:
        self._answer(200, self.held[self.path])


def test_an_object_store_that_knows_no_conditions_is_told_before_anything_rests_on_them(
    tmp_path: Path, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _Overwriting.held = {}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Overwriting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    there = {
        **s3,
        "COAUDIT_MIRRORS": str(tmp_path),
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
    }
    for name, value in there.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreError, match="overwrites existing objects: two machines"):
        Remote(f"s3://{BUCKET}/careless").secret()
    server.shutdown()
    server.server_close()
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3["AWS_ENDPOINT_URL"])
    careful = Remote(f"s3://{BUCKET}/careful")
    assert careful.secret() == careful.secret() == Remote(careful.url).secret()


def test_a_look_holds_the_longer_the_longer_its_list_took_and_never_where_one_must_see_all(
    tmp_path: Path, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**s3, "COAUDIT_MIRRORS": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    mirror, now = Remote(f"s3://{BUCKET}/looks"), [1000.0]
    lists: list[float] = []

    def listed(*_: object) -> dict[str, Entry]:
        lists.append(now[0])
        now[0] += 3.0
        return {}

    monkeypatch.setattr("coaudit.pipeline.store.remote.remote.time.monotonic", lambda: now[0])
    monkeypatch.setattr(Remote, "_remote_entries", listed)
    for moment in (1000.0, 1004.0, 1017.9, 1018.1):
        now[0] = moment
        mirror.pull()
    mirror.pull(at_once=True)
    assert lists == [1000.0, 1018.1, 1021.1]
