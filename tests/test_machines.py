"""Many machines, one study: what each does, all see; nothing is lost, doubled or paid for twice."""

from __future__ import annotations

import ast
import json
import os
import re
import secrets
import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline import codebooks
from coaudit.pipeline.annotate.project import keep_codebook, pushed_codebook
from coaudit.pipeline.annotate.pull import last_pull
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.store.lake import attach
from coaudit.pipeline.store.lake import lake as tables_of_a_lake
from coaudit.pipeline.systems import ReadOptions
from coaudit.schemas import Codebook, canonical_json
from tests.judges.clients.processes import wait_until
from tests.judges.endpoint import Endpoint
from tests.servers import BUCKET, Machine, free_port, postgres
from tests.shared import ROOT
from tests.storm import storm
from tests.studies import alone, logs, study, tables

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("machines")]
pytest.importorskip("duckdb_extension_ducklake", reason="the extra `lake` is not installed")
psycopg = pytest.importorskip("psycopg", reason="the extra `lake` is not installed")
pytest.importorskip("obstore", reason="the extra `remote` is not installed")


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres(tmp_path_factory.mktemp("postgres") / "server") as conninfo:
        yield conninfo


@pytest.fixture
def database(catalog: str) -> str:
    """A database of the catalog for one run of one test alone."""
    name = f"test_{secrets.token_hex(8)}"
    with psycopg.connect(catalog, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return catalog.replace("dbname=postgres", f"dbname={name}")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(latency=0.05).serving() as serving:
        yield serving


def test_machines_that_share_an_object_store_see_what_one_machine_would(
    tmp_path: Path, s3: dict[str, str]
) -> None:
    first, second, third = study(tmp_path, s3, 3)
    one, two = logs(tmp_path / "logs", parts=2)
    first.run("ingest", one)
    second.run("ingest", two)
    first.run("judge")
    given = tmp_path / "outcomes.jsonl"
    (trajectory, *_) = json.loads(first.run("trajectory", "list", "--json"))["rows"]
    for number, machine in enumerate((first, second), start=2):
        line = {"trajectory": trajectory["id"], "name": ("satisfaction", "outcome_rating")[number - 2]}
        given.write_text(json.dumps({**line, "value": number}) + "\n")
        machine.run("outcomes", "import", given)
    expected = tables(first)
    assert tables(second) == expected
    assert json.loads(second.run("report", "--format", "json"))["workspace"].startswith("s3://")
    assert sum("True" in row for row in expected["outcomes"]) == 2, "neither import took the other's out"
    local = alone(tmp_path, [one, two], ("judge",))
    assert {**local, "outcomes": [], "measured": []} == {**expected, "outcomes": [], "measured": []}
    for part in (one, two):
        part.rename(part.with_suffix(".gone"))
    third.run("rebuild")
    assert tables(third) == expected, "logs lie in the study, not on the machine that read them"


def test_a_sample_of_one_name_is_drawn_once_in_a_study(tmp_path: Path, s3: dict[str, str]) -> None:
    first, second = study(tmp_path, s3)
    first.run("ingest", *logs(tmp_path / "logs", parts=1))
    first.run("sample", "--codebook", "initiative", "--size", 5, "--name", "pilot", "--seed", 1)
    assert "exists; choose" in second.run(
        "sample", "--codebook", "initiative", "--size", 5, "--name", "pilot", "--seed", 2, status=2
    )


def test_a_rebuild_keeps_what_other_machines_brought_into_the_lake(
    tmp_path: Path, s3: dict[str, str], database: str
) -> None:
    lake = {"store": f"ducklake:postgres:{database}", "data": f"s3://{BUCKET}/tables"}
    first, second = study(tmp_path, s3, 2, **lake)
    one, two = logs(tmp_path / "logs", parts=2)
    first.run("ingest", one)
    second.run("ingest", two)
    first.run("judge")
    before = tables(first)
    assert before == alone(tmp_path, [one, two], ("judge",)), "a lake gives the tables of a file"
    second.run("rebuild")
    assert tables(first) == tables(second) == before
    first.run("rebuild")  # takes away what the first rebuild left
    assert tables(second) == before


def test_four_writers_two_of_them_killed_four_readers_and_rebuilds_lose_double_and_tear_nothing(
    tmp_path: Path, s3: dict[str, str], database: str
) -> None:
    machines = study(tmp_path, s3, 9, store=f"ducklake:postgres:{database}", data=str(tmp_path / "tables"))
    parts = logs(tmp_path / "logs", parts=8, sessions=8)
    told = storm(tmp_path, machines, parts, kills=(5.0, 6.0), catalog=database)
    assert (told.wrong, told.killed, told.ingested) == ({}, 2, 8)
    assert told.looks >= 12 and told.rebuilds >= 2 and told.commits > 8


def test_machines_that_begin_a_study_at_once_are_in_one(
    tmp_path: Path, s3: dict[str, str], database: str
) -> None:
    """The one that had looked before the other made the tables was told that they were another study's."""
    lake = {"store": f"ducklake:postgres:{database}", "data": f"s3://{BUCKET}/{tmp_path.name}-tables"}
    first, second = study(tmp_path, s3, 2, **lake)
    one, two = logs(tmp_path / "logs", parts=2)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**s3, "COAUDIT_MIRRORS": str(first.folder)}.items():
            patch.setenv(name, value)
        store = Store(Workspace.at(first.workspace))
        store.workspace.pull()
        second.run("ingest", two)
        assert ingest(store, [one], ReadOptions()).quarantined == []
    assert tables(first) == tables(second) == alone(tmp_path, [one, two])


def test_what_reads_a_lake_stays_in_its_state_while_the_files_of_many_commits_are_merged(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "coaudit.toml").write_text(f'store = "ducklake:postgres:{database}"\n')
    store = Store(Workspace(here))
    first, *later = logs(tmp_path / "logs", parts=6, sessions=2)
    for part in (first, *later[:-1]):
        ingest(store, [part], ReadOptions())

    def looked() -> tuple[list[tuple[Any, ...]], int]:
        live = "SELECT count(*) FROM ducklake_data_file WHERE end_snapshot IS NULL"
        with store.reading() as connection, psycopg.connect(database) as catalog:
            rows = connection.execute(
                "SELECT trajectory_id, seq, sub, text FROM events ORDER BY ALL"
            ).fetchall()
            return rows, int((catalog.execute(live).fetchone() or (0,))[0])

    monkeypatch.setattr(tables_of_a_lake, "MANY_FILES", 3)
    count = "SELECT count(*) FROM trajectories"
    with store.hold_state():
        before, files = looked()
        with store.reading() as connection, ThreadPoolExecutor(1) as elsewhere:
            sessions = connection.execute(count).fetchone()
            elsewhere.submit(ingest, Store(store.workspace), later[-1:], ReadOptions()).result()
            assert connection.execute(count).fetchone() == sessions
        after, merged = looked()
        assert after == before and merged < files - 5
    assert len(looked()[0]) > len(before)


def test_a_lake_is_attached_once_for_what_is_read_of_one_state_unless_somebody_stores(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "coaudit.toml").write_text(f'store = "ducklake:postgres:{database}"\n')
    store = Store(Workspace(tmp_path))
    with store.writing():
        pass
    attached: list[str] = []
    really = attach._attach

    def noted(connection: Any, url: str, options: list[str]) -> None:
        attached.append(url)
        really(connection, url, options)

    monkeypatch.setattr(attach, "_attach", noted)
    with store.hold_state():
        for _ in range(2):  # each reading has temporary tables of its own
            with store.reading() as connection:
                connection.execute("CREATE TEMP TABLE mine AS SELECT count(*) FROM trajectories")
        assert len(attached) <= 1
        with Store(store.workspace).writing() as connection:
            connection.execute("INSERT INTO meta VALUES ('word', 'new')")
        for _ in range(2):
            with store.reading() as connection:
                assert connection.execute("SELECT * FROM meta WHERE key = 'word'").fetchall() == []
        assert len(attached) <= 3


def test_a_lake_that_is_made_anew_is_another_to_a_process_that_lives_on(
    tmp_path: Path, database: str
) -> None:
    (tmp_path / "coaudit.toml").write_text(f'store = "ducklake:postgres:{database}"\n')
    store = Store(Workspace(tmp_path))
    for sessions in (2, 3):
        parts = logs(tmp_path / f"logs {sessions}", parts=1, sessions=sessions)
        ingest(Store(store.workspace), parts, ReadOptions())
        with store.reading(synced=True) as connection:
            assert connection.execute("SELECT count(*) FROM trajectories").fetchall() == [(sessions,)]
        with psycopg.connect(database, autocommit=True) as catalog:
            catalog.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        shutil.rmtree(tmp_path / "lake")
        shutil.rmtree(tmp_path / "sources")


@pytest.mark.parametrize("place", ["folder", "object store", "catalog"])
def test_two_machines_judge_one_study_and_ask_each_question_once(
    tmp_path: Path, s3: dict[str, str], database: str, endpoint: Endpoint, place: str
) -> None:
    lake = {"store": f"ducklake:postgres:{database}", "data": str(tmp_path / "tables")}
    if place == "folder":
        shared = str(tmp_path / "shared")
        machines = [Machine(tmp_path / f"m{n}", shared) for n in range(2)]
    else:
        machines = study(tmp_path, s3, 2, **(lake if place == "catalog" else {}))
    machines[0].run("ingest", *logs(tmp_path / "logs", parts=1, sessions=30))
    asking = ["judge", "--json", "--model", "hosted_vllm/judge", "--api-base", endpoint.url, "--yes"]
    asking += ["--codebook", "initiative", "--concurrency", "4"]
    machines[1].run("trajectory", "list")  # else it brings the sessions in while the other asks for all
    running = [machine.start(*asking) for machine in machines]
    ended = [(json.loads(out), err) for out, err in (one.communicate() for one in running)]
    first, second = (summary for summary, _ in ended)
    assert endpoint.asked_twice == 0
    assert first["requests"] + second["requests"] == endpoint.requests
    assert min(first["rated"], second["rated"]) > 0, "both had a share"
    assert first["rated"] + first["already"] == second["rated"] + second["already"]
    again = json.loads(machines[1].run(*asking))
    assert (again["rated"], again["requests"]) == (0, 0)
    assert tables(machines[0]) == tables(machines[1])


@pytest.mark.parametrize("place", ["folder", "catalog"])
def test_what_a_killed_judge_had_claimed_is_asked_by_the_other(
    tmp_path: Path, s3: dict[str, str], database: str, endpoint: Endpoint, place: str
) -> None:
    lake = {"store": f"ducklake:postgres:{database}", "data": str(tmp_path / "tables")}
    if place == "folder":
        machines = [Machine(tmp_path / f"m{n}", str(tmp_path / "shared")) for n in range(2)]
    else:
        machines = study(tmp_path, s3, 2, **lake)
    machines[0].run("ingest", *logs(tmp_path / "logs", parts=1, sessions=30))
    asking = ["judge", "--json", "--model", "hosted_vllm/judge", "--api-base", endpoint.url, "--yes"]
    asking += ["--codebook", "initiative", "--concurrency", "4"]
    running = [machine.start(*asking) for machine in machines]
    wait_until(lambda: endpoint.requests >= 40, 120)
    os.kill(running[0].pid, signal.SIGKILL)
    running[0].communicate()
    asked = endpoint.requests
    out, err = running[1].communicate()
    done = json.loads(out)
    assert (done["errors"], running[1].returncode) == (0, 0), err
    units = done["rated"] + done["already"]
    again = json.loads(machines[1].run(*asking))
    assert (again["already"], again["rated"], again["requests"]) == (units, 0, 0)
    assert endpoint.asked_twice <= asked, "only what the killed one had asked and not yet published"


SHORT_LEASE = """
from coaudit.pipeline.store.remote import leases
leases.ObjectClaims.__init__.__kwdefaults__.update(lease=6.0, beat=1.0)
"""


def answers(machine: Machine) -> list[tuple[str, int]]:
    """The units that the ledger of a mirror holds answers of, in its order."""
    files = sorted(machine.folder.glob("*/ratings/*.jsonl"))
    ratings = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    return [(rating["trajectory"], rating["event"]) for rating in ratings]


def test_in_an_object_store_a_killed_judge_is_taken_over_from_when_its_heart_has_stopped(
    tmp_path: Path, s3: dict[str, str], endpoint: Endpoint
) -> None:
    killed, other = study(tmp_path, s3)
    killed.changed = other.changed = SHORT_LEASE
    killed.run("ingest", *logs(tmp_path / "logs", parts=1, sessions=30))
    asking = ["judge", "--json", "--model", "hosted_vllm/judge", "--api-base", endpoint.url, "--yes"]
    asking += ["--codebook", "initiative", "--concurrency", "4"]
    endpoint.latency = 0.3
    running = [machine.start(*asking) for machine in (killed, other)]
    own = f"*/ratings/*-{running[0].pid}-*.jsonl"
    wait_until(lambda: list(killed.folder.glob(own)), 120)  # it has published something, claimed more
    time.sleep(1.5)
    os.kill(running[0].pid, signal.SIGKILL)
    running[0].communicate()
    (part,) = killed.folder.glob(f"{own}.part")
    unpublished = len(part.read_text().splitlines())
    assert unpublished, "it was killed while it had answers that nobody else knows"
    out, err = running[1].communicate()
    done = json.loads(out)
    assert (done["errors"], running[1].returncode) == (0, 0), err
    units = done["rated"] + done["already"]
    answered = answers(other)
    assert len(answered) == len(set(answered)) == units, "each unit is answered once in the ledger"
    questions = len(endpoint.answered)
    assert questions < endpoint.requests <= questions + unpublished + 4, "and 4 were in flight"
    again = json.loads(other.run(*asking))
    assert (again["already"], again["rated"], again["requests"]) == (units, 0, 0)
    time.sleep(6)  # until then the part may be somebody's
    killed.run("metrics")
    both = tables(other)
    assert len(answers(other)) == units + unpublished, "what it had not published comes late"
    assert tables(killed) == both
    assert len(both["counted"]) == units, "and counts once"


def test_tables_of_another_study_are_refused_and_stay_as_they_are(
    tmp_path: Path, database: str, endpoint: Endpoint
) -> None:
    url = f"ducklake:postgres:{database}"
    machines = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "coaudit.toml").write_text(f'store = "{url}"\ndata = "{tmp_path / "tables"}"\n')
        machines.append(Machine(tmp_path / "mirrors", str(tmp_path / name)))
    one, two = logs(tmp_path / "logs", parts=2)
    machines[0].run("ingest", one)
    before = tables(machines[0])
    guest = json.loads(machines[1].run("trajectory", "list", "--json"))["rows"]
    assert len(guest) == len(before["trajectories"]), "a machine that only looks needs no ledgers"
    sample = ("sample", "--codebook", "initiative", "--name", "s")
    paid = ("judge", "--model", "hosted_vllm/judge", "--api-base", endpoint.url, "--yes")
    for command in (("ingest", two), ("judge",), paid, sample, ("rebuild",)):
        told = machines[1].run(*command, status=1)
        assert f"belong to another study, whose ledgers are in {tmp_path / 'a'}" in told
    assert not endpoint.requests, "nothing is paid for that nobody can keep"
    assert len(json.loads(machines[1].run("trajectory", "list", "--json"))["rows"]) == len(guest)
    assert tables(machines[0]) == before


def test_a_catalog_that_is_newer_away_or_elsewhere_says_so_without_its_password(
    tmp_path: Path, database: str
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    machine = Machine(tmp_path / "mirrors", str(here))

    def settings(store: str, data: object) -> None:
        (here / "coaudit.toml").write_text(f'store = "{store}"\ndata = "{data}"\n')

    settings(f"ducklake:postgres:{database}", tmp_path / "tables")
    machine.run("ingest", *logs(tmp_path / "logs", parts=1, sessions=1))
    with Store(Workspace(here)).writing() as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    assert "written by a newer coaudit (tables 99" in machine.run("metrics", status=1)
    settings(f"ducklake:postgres:{database}", tmp_path / "other")
    assert "does not match existing data path" in machine.run("metrics", status=1)
    settings(f"ducklake:postgres:{database}", "ftp://host/tables")
    assert "tables must be in a folder or in s3://, got ftp://" in machine.run("metrics", status=1)
    settings(f"ducklake:postgres:host=127.0.0.1 port={free_port()} password=hunter2", tmp_path / "tables")
    told = machine.run("metrics", status=1)
    assert "refused" in told and "hunter2" not in told


OFF = """
import datetime, time
from coaudit.pipeline.ingest import imports, intake
from coaudit.pipeline.store.ledgers import ledger, sync
import coaudit.schemas.rating as rating
real, hours = time.time, {hours}
time.time = lambda: real() + 3600 * hours
class Off(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime.now(tz) + datetime.timedelta(hours=hours)
for module in (imports, ledger, rating):
    module.datetime = Off
"""
"""Has a process believe that it is so many hours later."""


def test_of_two_machines_whose_clocks_are_two_hours_apart_the_later_word_counts_on_both(
    tmp_path: Path, s3: dict[str, str]
) -> None:
    ahead, behind = study(tmp_path, s3)
    ahead.changed, behind.changed = OFF.format(hours=1), OFF.format(hours=-1)
    (part,) = logs(tmp_path / "logs", parts=1, sessions=2)
    ahead.run("ingest", part)
    (one, *_) = json.loads(behind.run("trajectory", "list", "--json"))["rows"]
    given = tmp_path / "outcomes.jsonl"
    for value, machine in enumerate((ahead, behind, ahead, behind), start=1):
        given.write_text(json.dumps({"trajectory": one["id"], "name": "satisfaction", "value": value}) + "\n")
        machine.run("outcomes", "import", given)
        for other in (ahead, behind):
            imported = [row for row in tables(other)["outcomes"] if "True" in row]
            assert len(imported) == 1 and f"{float(value)}, True" in imported[0]


def put(machine: Machine, text: str, *options: str, status: int = 0) -> str:
    """Put settings into a study; what was printed or complained of."""
    file = machine.folder / "mine" / "coaudit.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return machine.run("study", "put", file, *options, status=status)


@pytest.mark.parametrize("place", ["folder", "object store"])
def test_nobody_overwrites_settings_that_they_have_not_seen(
    tmp_path: Path, s3: dict[str, str], place: str
) -> None:
    first, second = study(tmp_path, s3)
    if place == "folder":
        first, second = (Machine(tmp_path / f"m{n}", str(tmp_path / "shared")) for n in range(2))
    one = re.search("version ([0-9a-f]{12}) is there", put(first, "a = 1\n"))
    assert one, "a version names what was put"
    told = put(second, "b = 2\n", status=2)
    assert f"another one is there, version {one[1]}" in told and f"--replace {one[1]}" in told
    two = re.search("version ([0-9a-f]{12}) is there", put(second, "b = 2\n", "--replace", one[1]))
    assert two
    told = put(first, "a = 3\n", "--replace", one[1], status=2)
    assert f"version {two[1]}" in told, "who has seen the one before has not seen this one"
    put(first, "b = 2\n")
    (there,) = {path.read_text() for path in tmp_path.glob("*/**/coaudit.toml") if path.parent.name != "mine"}
    assert there == "b = 2\n"


def test_references_are_in_the_study_when_they_are_gone_from_the_machine_that_had_them(
    tmp_path: Path, s3: dict[str, str]
) -> None:
    first, second = study(tmp_path, s3)
    given = shutil.copytree(ROOT / "data" / "overcooked", tmp_path / "given")
    first.run("ingest", given, "--reference", given / "reference")
    before = tables(first)
    measured = [ast.literal_eval(row) for row in before["measured"]]
    assert [value for name, _, value, *_ in measured if name == "tes" and value is not None]
    given.rename(tmp_path / "gone")
    second.run("rebuild")
    assert tables(second) == before


def test_what_label_studio_was_given_and_gave_is_in_the_study(
    tmp_path: Path, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = study(tmp_path, s3)
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    book = codebooks.load("initiative", None)

    def workspace(machine: Machine) -> Workspace:
        monkeypatch.setenv("COAUDIT_MIRRORS", str(machine.folder))
        place = Workspace.at(machine.workspace)
        place.pull()
        return place

    here = workspace(first)
    old = Codebook.model_validate({**book.model_dump(exclude={"version"}), "title": "As it was pushed"})
    assert old.version != book.version
    keep_codebook(here, old)
    moment = "2026-11-27T10:00:00+00:00"
    pull = {"mark": moment, "project": 7, "pulled": moment, "server": "http://s"}
    here.received.append([canonical_json(pull)])
    there = workspace(second)
    assert pushed_codebook(there, "initiative", old.version) == old
    last = last_pull(there.received, "http://s", 7)
    assert last and last["mark"] == moment
    assert last_pull(there.received, "http://s", 8) is None


def test_what_one_machine_forgets_or_takes_back_is_so_on_the_other(
    tmp_path: Path, s3: dict[str, str]
) -> None:
    first, second = study(tmp_path, s3)
    first.run("ingest", *logs(tmp_path / "logs", parts=1, sessions=3))
    before = tables(second) if second.run("trajectory", "list") else {}
    (one, *_) = json.loads(first.run("trajectory", "list", "--json"))["rows"]
    first.run("forget", one["id"])
    assert one["id"] not in second.run("trajectory", "list", "--json")
    first.run("forget", one["id"], "--undo")
    assert one["id"] in second.run("trajectory", "list", "--json")
    assert tables(second) == before


def test_logs_that_were_followed_are_in_the_study_when_following_ends(
    tmp_path: Path, s3: dict[str, str]
) -> None:
    first, second = study(tmp_path, s3)
    (part,) = logs(tmp_path / "logs", parts=1, sessions=2)
    following = first.start("follow", part)
    wait_until(lambda: list(first.folder.glob("*/sources/*.jsonl")), 120)
    following.send_signal(signal.SIGINT)
    _, complaint = following.communicate()
    assert following.returncode == 0, complaint
    part.rename(tmp_path / "elsewhere")
    rows = json.loads(second.run("trajectory", "list", "--json"))["rows"]
    assert len(rows) == 2


def test_logs_of_a_follower_that_was_killed_are_in_the_study_when_the_next_one_ends(
    tmp_path: Path, s3: dict[str, str]
) -> None:
    first, second = study(tmp_path, s3)
    (part,) = logs(tmp_path / "logs", parts=1, sessions=2)
    following = first.start("follow", part)
    wait_until(lambda: _notes(first) >= 4, 120)  # when it is met, and when it is still
    following.kill()
    following.communicate()
    first.run("follow", part, "--stop-when-idle", "1")
    part.rename(tmp_path / "elsewhere")
    assert len(json.loads(second.run("trajectory", "list", "--json"))["rows"]) == 2
    before = _notes(first)
    (tmp_path / "elsewhere").rename(part)
    first.run("follow", part, "--stop-when-idle", "1")
    assert _notes(first) == before, "all is there"


def _notes(machine: Machine) -> int:
    """Lines of the ledger of sources, as a machine knows it."""
    return sum(len(path.read_bytes().splitlines()) for path in machine.folder.glob("*/sources/*.jsonl"))
