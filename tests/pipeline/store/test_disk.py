"""Ledgers on a disk that fails: whole lines or none, and no line ever fuses with one that was cut off."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from coaudit.pipeline.errors import StoreError
from coaudit.pipeline.store import disk
from coaudit.pipeline.store.ledgers import ledger
from coaudit.schemas import Rating
from tests.conftest import Coaudit

Fault = Callable[[str, Path], None]


def rating(event: int) -> Rating:
    given = {"codebook": "initiative", "code": "c", "rater": "r", "rater_kind": "llm", "label": "yes"}
    return Rating.model_validate({"trajectory": "t", "event": event, **given})


def failing(point: str, times: int = 1, code: int = errno.ENOSPC) -> Fault:
    left = [times]

    def fault(at: str, path: Path) -> None:
        if at == point and left[0]:
            left[0] -= 1
            raise OSError(code, os.strerror(code))

    return fault


def events(path: Path) -> list[int | None]:
    return [item.event for item, _ in ledger.ratings(path) if isinstance(item, Rating)]


@pytest.mark.parametrize("point", ["write", "sync"])
def test_a_rating_after_a_full_disk_is_whole_and_the_error_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    file = ledger.RatingLedger(tmp_path)
    file.append([rating(1)])
    monkeypatch.setattr(disk, "fault", failing(point))
    with pytest.raises(StoreError, match=f"{file.path.name}: cannot write: No space left"):
        file.append([rating(2)])
    file.append([rating(3)])
    file.close()
    assert events(file.path) == ([1, 3] if point == "write" else [1, 2, 3])


def test_half_a_line_on_a_full_disk_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ledger.RatingLedger(tmp_path)
    file.append([rating(1)])
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:40]))
    calls = [0]

    def full(point: str, path: Path) -> None:
        calls[0] += point == "write"
        if calls[0] == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(disk, "fault", full)
    with pytest.raises(StoreError):
        file.append([rating(2)])
    assert file.path.read_bytes().endswith(b"\n")
    monkeypatch.undo()
    file.append([rating(3)])
    assert events(file.path) == [1, 3]


def test_a_cut_line_that_cannot_be_taken_back_stands_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sources.jsonl"
    ledger.append(path, ['{"a": 1}'])
    with path.open("ab") as file:
        file.write(b'{"cut')
    ledger.append(path, ['{"b": 2}'])
    assert [line for _, line in ledger.lines(path)] == [b'{"a": 1}\n', b'{"cut\n', b'{"b": 2}\n']


def replace(path: Path, content: str) -> None:
    """As editors, rsync and what rotates logs do."""
    path.with_name("new").write_text(content)
    path.with_name("new").rename(path)


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "happen",
    [
        Path.unlink,
        lambda path: path.rename(path.with_name("moved.jsonl")),
        lambda path: replace(path, "one\n"),
        lambda path: replace(path, "one, which is longer than what is written\n"),
        make_pipe,
    ],
)
def test_what_is_written_to_a_file_that_lost_its_name_does_not_count_as_on_disk(
    tmp_path: Path, happen: Callable[[Path], object]
) -> None:
    path = tmp_path / "ledger.jsonl"
    file = disk.AppendOnly(path)
    file.write(b"one\n")
    file.sync()
    happen(path)
    file.write(b"two\n")
    with pytest.raises(StoreError, match=r"ledger\.jsonl: moved, replaced, cut or deleted while"):
        file.sync()
    file.close()


@pytest.mark.parametrize("is_written", [False, True])
def test_what_was_cut_off_a_file_does_not_count_as_on_disk(tmp_path: Path, is_written: bool) -> None:
    """Some editors write into the file itself what they had read before."""
    path = tmp_path / "ledger.jsonl"
    file = disk.AppendOnly(path)
    file.write(b"one\n")
    file.write(b"two\n")
    path.write_bytes(b"one\n")
    with pytest.raises(StoreError, match=r"ledger\.jsonl: moved, replaced, cut or deleted while"):
        file.write(b"three\n") if is_written else file.sync()
    file.close()


def test_what_another_thread_writes_while_a_file_is_looked_at_is_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run with quick answers ended: it had read the file's size, wrote, and found the file too short."""
    file, fstat = disk.AppendOnly(tmp_path / "ledger.jsonl"), os.fstat
    file.write(b"one\n")

    def fstat_before_a_write(descriptor: int) -> os.stat_result:
        size = fstat(descriptor)
        monkeypatch.undo()
        file.write(b"two\n")
        return size

    monkeypatch.setattr(os, "fstat", fstat_before_a_write)
    file.sync()
    file.close()
    assert (tmp_path / "ledger.jsonl").read_bytes() == b"one\ntwo\n"


def test_a_file_with_another_number_and_the_same_words_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    file = disk.AppendOnly(path)
    file.write(b"one\n")
    replace(path, "one\n")
    file.sync()
    file.close()


def test_where_lines_begin_and_end_is_told_also_to_two_at_once(tmp_path: Path) -> None:
    path = tmp_path / "sources.jsonl"
    places = [ledger.append(path, ["x" * n]) for n in (1, 2, 3)]
    assert places == [(0, 2), (2, 5), (5, 9)]
    children = []
    for number in range(4):
        child = os.fork()
        if not child:
            for _ in range(50):
                ledger.append(path, [str(number) * 3000])
            os._exit(0)
        children.append(child)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    lines = path.read_text().splitlines()[3:]
    assert len(lines) == 200 and all(len(line) == 3000 and len(set(line)) == 1 for line in lines)


def test_a_whole_file_is_there_as_it_was_or_as_it_is_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sample.jsonl"
    disk.put(path, b"before")
    for point in ("write", "sync", "rename"):
        with monkeypatch.context() as patch, pytest.raises(StoreError):
            patch.setattr(disk, "fault", failing(point))
            disk.put(path, b"after")
        assert path.read_bytes() == b"before"
    disk.put(path, b"after")
    assert path.read_bytes() == b"after"
    assert [p.name for p in tmp_path.iterdir()] == ["sample.jsonl"]


def test_an_export_that_is_interrupted_leaves_what_was_there(tmp_path: Path) -> None:
    path, link = tmp_path / "ratings.jsonl", tmp_path / "link.jsonl"
    path.write_text("before")
    path.chmod(0o600)
    link.symlink_to(path)
    with pytest.raises(KeyboardInterrupt), disk.replace_file(link) as file:
        file.write("half of")
        raise KeyboardInterrupt
    assert path.read_text() == "before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.jsonl", "ratings.jsonl"]
    with disk.replace_file(link) as file:
        file.write("after")
    assert link.is_symlink() and path.read_text() == "after"
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_export_into_a_pipe_leaves_the_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with disk.replace_file(pipe) as file:
            file.write("a line")
        assert os.read(reader, 100) == b"a line" and pipe.is_fifo()
    finally:
        os.close(reader)


def test_an_export_to_where_this_process_writes_its_output_stands_there(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with disk.replace_file(Path("/dev/stdout")) as file:
        file.write("a line")
    assert capfd.readouterr().out == "a line"


def test_an_export_beside_which_no_file_can_be_made_is_written_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with disk.replace_file(long := tmp_path / ("n" * 250)) as file:
        file.write("whole")
    assert long.read_text() == "whole"
    short = tmp_path / "short"
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as root, every folder admits one
    with disk.replace_file(short) as file:
        assert sorted(tmp_path.iterdir()) == [long, short]
    missing = tmp_path / "missing" / "a.jsonl"
    with pytest.raises(OSError, match=r"/missing/a\.jsonl"), disk.replace_file(missing):
        pass


def test_an_export_over_a_file_of_others_stays_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner, group and names were gone; one that was protected from writing was replaced, too."""
    path = tmp_path / "report.html"
    path.write_text("before")
    writable = os.access
    own, group, file = os.geteuid(), os.getegid(), path.stat().st_ino
    for name, value in (
        ("geteuid", lambda: own + 1),
        ("getegid", lambda: group + 1),
        ("access", lambda place, mode: Path(place) != path and writable(place, mode)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, value)
            patch.setattr(os, "getgroups", list)
            with disk.replace_file(path) as text:
                text.write(name)
        assert (path.read_text(), path.stat().st_ino) == (name, file)
    other = tmp_path / "other.html"
    other.hardlink_to(path)
    with disk.replace_file(path) as text:
        text.write("both")
    assert other.read_text() == "both"


def test_an_export_over_a_file_that_is_mounted_by_itself_is_written_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("before")
    monkeypatch.setattr(disk, "fault", failing("rename", code=errno.EBUSY))
    with disk.replace_file(path) as file:
        file.write("after")
    assert path.read_text() == "after" and [*tmp_path.iterdir()] == [path]
    monkeypatch.setattr(disk, "fault", failing("rename"))
    with pytest.raises(StoreError, match="No space left"), disk.replace_file(path) as file:
        file.write("later")
    assert path.read_text() == "after" and [*tmp_path.iterdir()] == [path]


def test_what_a_workspace_holds_is_its_owners_alone(tmp_path: Path) -> None:
    from coaudit.pipeline.store import Store, Workspace

    store = Store(Workspace(tmp_path / "w"))
    with store.writing():
        pass
    store.workspace.sources.append(["{}"])
    modes = {
        p.name: p.stat().st_mode & 0o777 for p in (store.workspace.path, *store.workspace.path.rglob("*"))
    }
    assert modes["w"] == 0o700
    (noted,) = store.workspace.sources.files()
    assert modes["coaudit.duckdb"] == modes[noted.name] == 0o600


@pytest.mark.parametrize(("umask", "mode"), [(0o002, 0o660), (0o022, 0o640), (0o077, 0o600)])
def test_what_lies_in_a_folder_of_a_group_is_its_too_as_far_as_the_umask_says(
    tmp_path: Path, umask: int, mode: int
) -> None:
    from coaudit.pipeline.store import Store, Workspace

    folder = tmp_path / "w"
    folder.mkdir()
    folder.chmod(0o2770)
    before = os.umask(umask)
    try:
        store = Store(Workspace(folder))
        with store.writing(), closing(store.claims()):
            store.workspace.secret()
        store.workspace.sources.append(["{}"])
    finally:
        os.umask(before)
    (noted,) = store.workspace.sources.files()
    files = [folder / "coaudit.duckdb", folder / "secret", folder / "locks" / "claims", noted]
    own = 0o660 if umask == 0o002 else 0o600  # a folder that the group cannot write to is the owner's
    modes = [file.stat().st_mode & 0o777 for file in files]
    assert modes == [mode, mode, own, own]


@pytest.mark.parametrize(("folder", "group"), [(0o1777, 0), (0o2777, 0), (0o770, 1)])
def test_a_folder_that_all_may_write_to_or_whose_group_files_do_not_get_shares_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: int, group: int
) -> None:
    if group and not sys.platform.startswith("linux"):
        pytest.skip("files get the group of their folder")
    tmp_path.chmod(folder)
    own = tmp_path.stat().st_gid
    monkeypatch.setattr(os, "getegid", lambda: own + group)
    assert disk.mode_in(tmp_path) == 0o600


def test_nothing_is_appended_to_what_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "next.jsonl").symlink_to(tmp_path / "own")
    with pytest.raises(StoreError, match="it is a link"):
        disk.AppendOnly(tmp_path / "next.jsonl")
    assert not (tmp_path / "own").exists()


def test_what_another_person_forbids_is_said_with_who_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    refusal = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    for path, whose in ((tmp_path / "new", "its folder belongs to "), (tmp_path, "it belongs to ")):
        text = str(disk.write_error(path, refusal))
        assert text.startswith(f"{path}: cannot write: Permission denied; {whose}")
        assert "`chmod g+rwX`" in text
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert str(disk.write_error(tmp_path, full)) == f"{tmp_path}: cannot write: {os.strerror(errno.ENOSPC)}"


def test_a_run_of_a_day_leaves_some_hundreds_of_objects_and_a_short_one_publishes_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(ledger, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    file = ledger.RatingLedger(tmp_path, publish=lambda part: part.rename(part.with_suffix("")))
    paused = []
    while clock[0] < 86_400:
        paused.append(file.pause)
        clock[0] += file.pause
        file.append([rating(len(paused))])
    file.close()
    assert paused[:100] == [5.0] * 100, "for 500 seconds"
    assert len(list(tmp_path.glob("*.jsonl"))) == len(paused) < 650, "not 17,280"
    assert max(paused) < 0.01 * 86_400


def test_two_machines_on_which_processes_have_one_number_write_a_file_each_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in containers, where a command is often the first process."""
    path = tmp_path / "sample.jsonl"

    def other(point: str, target: Path) -> None:
        if point == "sync":
            monkeypatch.setattr(disk, "fault", lambda point, path: None)
            disk.put(path, b"of the other machine\n")

    monkeypatch.setattr(disk, "fault", other)
    disk.put(path, b"of this machine\n")
    assert path.read_bytes() == b"of this machine\n"
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_pipes_devices_and_folders_are_no_files_of_a_ledger(tmp_path: Path) -> None:
    """A pipe among them held up a rebuild for ever, and a folder ended every command."""
    folder = tmp_path / "ratings"
    folder.mkdir()
    (folder / "a.jsonl").write_text(f"{rating(1).model_dump_json()}\n")
    os.mkfifo(folder / "b.jsonl")
    (folder / "c.jsonl").mkdir()
    (folder / "d.jsonl").symlink_to("/dev/zero")
    (folder / "e.jsonl").symlink_to(folder / "a.jsonl")
    names = ["a.jsonl", "e.jsonl"]
    assert list(ledger.sizes(folder)) == names
    assert [path.name for path in ledger.files(folder)] == names


def test_a_lock_is_held_though_the_disk_has_no_room_for_the_name_of_its_holder(tmp_path: Path) -> None:
    """A command ended with "No space left on device" and no file's name."""
    code = """if True:
        import resource, sys
        from pathlib import Path
        from coaudit.pipeline.store.locks import FolderLocks
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        with FolderLocks(Path(sys.argv[1])).exclusive("turn", print):
            with FolderLocks(Path(sys.argv[1])).attempt("turn") as holder:
                sys.exit(0 if holder == "unknown" else 9)"""
    assert subprocess.run([sys.executable, "-P", "-c", code, str(tmp_path)], check=False).returncode == 0


def test_a_full_disk_is_said_with_the_name_of_what_was_to_be_written(
    coaudit: Coaudit, tmp_path: Path
) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("the system has no device that is full")
    (tmp_path / "log.jsonl").write_text('{"who": "user", "what": "Hello"}\n')
    told = coaudit("map", tmp_path / "log.jsonl", "--out", full, status=1).err
    assert "coaudit: /dev/full: No space left on device" in told
