"""A session that is known from its traffic and from its folder is one trajectory, whichever is read first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coaudit.pipeline.ingest.forgetting import forget
from coaudit.pipeline.ingest.identity import with_suffixes
from coaudit.pipeline.ingest.rebuild import rebuild
from coaudit.pipeline.store import Store
from tests.pipeline.follow.emulator import AGENT, USER, Env
from tests.pipeline.stores import counts, made, rows, take
from tests.shared import ROOT

pytestmark = pytest.mark.slow
NAME = "env_travel_planning_0"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return made(tmp_path / "workspace")


class Both:
    """A session played into a recording and into a folder; what is heard arrives `late` seconds later."""

    def __init__(self, folder: Path, *, late: float = 0.0, deaf: int = 0, **fields: object) -> None:
        self.lines: list[str] = []
        self.late, self.deaf = late, deaf
        self.recording = folder / "traffic.jsonl"
        self.env = Env(NAME, self._hear, folder / "results", **fields)  # type: ignore[arg-type]

    def _hear(self, channel: str, payload: str) -> None:
        if self.deaf:
            self.deaf -= 1
            return
        heard = {"time": self.env.clock + self.late, "channel": channel, "payload": payload}
        self.lines.append(json.dumps(heard) + "\n")

    def done(self, *steps: tuple[str, str]) -> Both:
        for role, action in steps:
            self.env.step(role, action)
        return self.written()

    def written(self) -> Both:
        self.recording.write_text("".join(self.lines))
        return self

    @property
    def folder(self) -> Path:
        return self.recording.parent / "results" / NAME


def ends(store: Store) -> list[tuple[str, object]]:
    found = rows(store, "SELECT text, data FROM outcomes WHERE name = 'end_reason'")
    return [(row["text"], json.loads(row["data"] or "null")) for row in found]


def known(store: Store) -> list[tuple[str, int, int]]:
    query = """
        SELECT t.id, count(*) FILTER (NOT e.live_only) AS logged, count(*) FILTER (e.live_only) AS heard
        FROM trajectories t JOIN events e ON e.trajectory_id = t.id GROUP BY t.id ORDER BY t.id
    """
    return [(row["id"], row["logged"], row["heard"]) for row in rows(store, query)]


@pytest.mark.parametrize("late", [0.0, 0.9, 1.4])
@pytest.mark.parametrize("order", ["folder first", "traffic first", "at once"])
def test_an_autonomous_session_heard_by_another_clock_is_one_with_its_folder(
    tmp_path: Path, store: Store, order: str, late: float
) -> None:
    both = Both(tmp_path / "logs", late=late, query=None)
    both.env.start()
    both.env.step(AGENT, "WAIT_TEAMMATE_CONTINUE()")
    both.done((AGENT, "EDITOR_UPDATE(text=Plan)"), (AGENT, "FINISH()"))
    sources = [both.folder, both.recording]
    if order == "at once":
        take(store, tmp_path / "logs")
    for source in sources if order == "folder first" else sources[::-1]:
        take(store, source)
    ((_, logged, heard),) = known(store)
    assert (logged, heard) == (3, 1)
    before = known(store)
    assert take(store, *sources).trajectories == 0
    rebuild(store)
    assert known(store) == before


def test_two_runs_of_one_name_hours_apart_stay_two(tmp_path: Path, store: Store) -> None:
    for hour in range(2):
        both = Both(tmp_path / f"logs{hour}", query=None)
        both.env.clock += 3600 * hour
        both.env.start()
        both.done((AGENT, "FINISH()"))
        take(store, both.recording if hour else both.folder)
    assert len(known(store)) == 2


@pytest.mark.parametrize("query", [None, "Help me."])
@pytest.mark.parametrize("apart", [0, 1])
def test_two_runs_of_one_name_that_began_at_once_and_went_other_ways_stay_two(
    tmp_path: Path, store: Store, apart: float, query: str | None
) -> None:
    for place, text in enumerate(("Rome", "Oslo")):
        both = Both(tmp_path / f"logs{place}", query=query)
        both.env.clock += apart * place
        both.env.start()
        searches = [(AGENT, f"FLIGHT_SEARCH(origin={text}, destination={n}, date=C)") for n in range(4)]
        both.done(*searches, (AGENT, f"EDITOR_UPDATE(text={text})"), (AGENT, "FINISH()"))
        take(store, both.recording if place else both.folder)
    assert len(known(store)) == 2


def test_a_session_joined_late_is_one_with_its_folder_when_that_is_ingested(
    tmp_path: Path, store: Store
) -> None:
    both = Both(tmp_path / "logs", deaf=4)
    both.env.start()
    both.env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Before)")
    both.deaf = 0
    both.env.answer(AGENT)
    both.done((USER, "SEND_TEAMMATE_MESSAGE(message=After)"), (AGENT, "FINISH()"))
    take(store, both.recording)
    take(store, both.folder)
    assert [logged for _, logged, _ in known(store)] == [5]


@pytest.mark.parametrize("order", [1, -1])
def test_a_limit_that_was_heard_to_be_reached_stands_before_the_time_out_that_a_folder_implies(
    tmp_path: Path, store: Store, order: int
) -> None:
    both = Both(tmp_path / "logs", max_steps=3)
    both.env.start()
    both.done(*[(AGENT, f"SEND_TEAMMATE_MESSAGE(message={n})") for n in range(3)])
    alone = made(tmp_path / "alone")
    take(alone, both.folder)
    ((text, why),) = ends(alone)
    assert text == "time_out" and "assumed" in str(why)
    take(alone, both.folder, max_steps=3)
    assert ends(alone) == [("step_limit", {"inferred": "3 steps of 3 (--max-steps)"})]
    for source in [both.folder, both.recording][::order]:
        take(store, source)
    assert ends(store) == [("step_limit", {"heard": "the end came right after a step"})]


def test_a_silence_that_was_heard_before_the_end_is_a_time_out(tmp_path: Path, store: Store) -> None:
    both = Both(tmp_path / "logs")
    both.env.start()
    both.env.step(AGENT, "SEND_TEAMMATE_MESSAGE(message=Hello)")
    both.env.tick(idle=True)
    both.env.end()
    take(store, both.written().recording)
    assert ends(store) == [("time_out", {"heard": "the end came long after a step"})]


def _answered(question: str) -> str:
    """A row of ReHAC, which has no times."""
    step = "<solver> agent\nThought 1: Yes.\nAction 1: Finish[yes]\nObservation 1: Episode finished\n"
    return json.dumps({"trajectory": f"Question: {question}?\n{step}", "em": 1, "f1": 1.0}) + "\n"


def test_rows_that_another_file_has_too_count_once_and_are_told(tmp_path: Path, store: Store) -> None:
    """Two seeds' results of one name: whether a row that both have is a copy, no log says."""
    files = [tmp_path / name / "run.jsonl" for name in ("first", "second", "copy")]
    for path, questions in zip(files, ("abc", "abd", "abc"), strict=True):
        path.parent.mkdir()
        path.write_text("".join(map(_answered, questions)), encoding="utf-8")
    told = (
        f"{files[1]}: 2 of its trajectories say the same as those of {files[0]}, without any times: "
        "they count once; if they are other runs, give each file its own --condition"
    )
    both = take(store, *files)
    assert (both.trajectories, both.unchanged, both.notes) == (4, 3, [told])
    files[0].write_text("".join(map(_answered, "abce")), encoding="utf-8")
    assert take(store, files[0]).notes == []
    assert take(store, files[1]).notes == []
    files[1].write_text("".join(map(_answered, "abdf")), encoding="utf-8")
    later = take(store, files[1])
    assert (later.trajectories, later.notes) == (1, [told])


@pytest.mark.long
def test_a_copy_under_another_name_is_told_where_sessions_are_named_by_their_file(
    tmp_path: Path, store: Store
) -> None:
    names = ("run", "other", "copy", "again")
    files = dict(zip(names, (tmp_path / f"{name}.jsonl" for name in names), strict=True))
    for name, questions in zip(names, ("ab", "ac", "ba", "ab"), strict=True):
        files[name].write_text("".join(map(_answered, questions)), encoding="utf-8")
    told = "{}: says to the word what {} says, and counts beside it; if it is a copy, `coaudit forget` it"
    assert take(store, files["run"], files["other"]).notes == []
    copied = take(store, files["copy"])
    assert (copied.trajectories, copied.notes) == (2, [told.format(files["copy"], files["run"])])
    assert take(store, files["again"], condition="a second run").notes == []
    more = tmp_path / "more.jsonl"
    more.write_text(files["run"].read_text())
    assert take(store, more, condition="a second run").notes == [told.format(more, files["again"])]


@pytest.mark.long
def test_a_run_that_does_the_same_and_of_which_another_thing_comes_is_no_copy(
    tmp_path: Path, store: Store
) -> None:
    """Three attempts at one task, as an agent without times logs them: the same command, twice in vain."""
    for n, answer in enumerate(("Error: no such file", "a.py", "Error: no such file")):
        call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        said = [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": answer},
        ]
        (tmp_path / f"{n}.json").write_text(json.dumps({"id": f"attempt {n}", "messages": said}))
    taken = take(store, *(tmp_path / f"{n}.json" for n in range(3)))
    first, last = tmp_path / "0.json", tmp_path / "2.json"
    assert taken.trajectories == 3
    assert [note.partition(", and counts")[0] for note in taken.notes] == [
        f"{last}: says to the word what {first} says"
    ]


def test_of_many_files_that_say_the_same_some_are_named(tmp_path: Path, store: Store) -> None:
    """One folder for each of 1,500 runs told 1,499 times of the greeting that all have."""
    for n in range(8):
        (tmp_path / str(n)).mkdir()
        (tmp_path / str(n) / "run.jsonl").write_text(_answered("a") + _answered(str(n)), encoding="utf-8")
    *named, more = [note for note in take(store, tmp_path).notes if "without any times" in note]
    assert len(named) == 5
    assert more == "2 more pairs of files say in part the same, without any times"


def test_what_two_runs_without_times_say_alike_is_each_ones_own(tmp_path: Path, store: Store) -> None:
    """The second file took what both had from the first one's condition."""

    def n_by_condition() -> dict[str, int]:
        counted = "SELECT condition, count(*) AS n FROM trajectories GROUP BY ALL"
        return {one["condition"]: one["n"] for one in rows(store, counted)}

    files = {name: tmp_path / name / "run.jsonl" for name in ("first", "second", "copy")}
    for name, questions in (("first", "ab"), ("second", "ac"), ("copy", "ab")):
        files[name].parent.mkdir()
        files[name].write_text("".join(map(_answered, questions)), encoding="utf-8")
    for _ in range(2):
        for name in ("first", "second"):
            take(store, files[name], condition=name)
            files[name].touch()
        assert n_by_condition() == {"first": 2, "second": 2}
    with files["second"].open("a") as file:
        file.write(_answered("b"))
    assert counts(take(store, files["second"], condition="second")) == (1, 2, 0)
    rebuild(store)
    assert n_by_condition() == {"first": 2, "second": 3}
    assert counts(take(store, files["first"], condition="mended")) == (2, 0, 0)
    assert n_by_condition() == {"mended": 2, "second": 3}
    take(store, files["copy"], condition="moved")
    assert n_by_condition() == {"moved": 2, "second": 3}


def test_what_two_runs_say_alike_stays_each_ones_own_whatever_becomes_of_them(
    tmp_path: Path, store: Store
) -> None:
    """A rebuild read what was left in another order, and took one's id and condition for the other's."""

    def by_id() -> dict[str, str]:
        return {one["id"]: one["condition"] for one in rows(store, "SELECT id, condition FROM trajectories")}

    first, second, moved = (tmp_path / name / "run.jsonl" for name in ("first", "second", "moved"))
    for path, questions in ((first, "ab"), (second, "ac")):
        path.parent.mkdir()
        path.write_text("".join(map(_answered, questions)), encoding="utf-8")
    take(store, first, condition="one")
    take(store, second, condition="two")
    told = by_id()
    moved.parent.mkdir()
    first.rename(moved)
    take(store, moved, condition="one")
    rebuild(store)
    assert by_id() == told
    take(store, second, condition="three")
    mended = {key: "three" if said == "two" else said for key, said in told.items()}
    assert by_id() == mended
    rebuild(store)
    assert by_id() == mended
    moved.unlink()
    rebuild(store)
    assert by_id() == {key: said for key, said in mended.items() if said == "three"}
    assert len(forget(store, str(second)).trajectories) == 2
    assert by_id() == {}


def test_an_id_stands_for_one_with_a_suffix_only_where_its_source_gave_no_other() -> None:
    """Of two, which one it stood for hung on the order of a set: rebuilds differed."""
    given = {"a-123456", "b", "c-123456", "c", "d-1", "e-000001", "e-000002"}
    assert with_suffixes(given) == {"a": "a-123456"}


def test_a_copy_in_another_folder_is_the_model_and_the_condition_of_the_first(
    tmp_path: Path, store: Store
) -> None:
    (log,) = (ROOT / "data/overcooked/logs/model_a").rglob("*_10-00-00_*.json")
    copy = tmp_path / "backup" / log.name
    copy.parent.mkdir()
    copy.write_bytes(log.read_bytes())
    take(store, log)
    take(store, copy)
    query = "SELECT t.condition, t.agent_model, p.model FROM trajectories t JOIN participants p"
    found = rows(store, query + " ON p.trajectory_id = t.id WHERE p.kind = 'agent'")
    assert [list(row.values()) for row in found] == [["model_a"] * 3] * 2


def test_of_a_chat_that_goes_on_in_another_file_the_model_is_the_one_that_its_log_names(
    tmp_path: Path, store: Store
) -> None:
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    for folder, model, messages in (("a", "m-4", said), ("b", "m-5", said * 2)):
        path = tmp_path / folder / "s1.json"
        path.parent.mkdir()
        path.write_text(json.dumps({"id": "s1", "model": model, "messages": messages}), encoding="utf-8")
        take(store, path)
    assert rows(store, "SELECT agent_model FROM trajectories") == [{"agent_model": "m-5"}]
