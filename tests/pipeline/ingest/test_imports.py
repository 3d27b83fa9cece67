"""Ratings and outcomes from outside, ratings going out, and sessions with planted truth."""

from __future__ import annotations

import hashlib
import json
import shutil
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from openpyxl import Workbook

from coaudit.pipeline.analyze.metrics import metrics
from coaudit.pipeline.errors import CoauditError, SourceError
from coaudit.pipeline.ingest import checks, imports, labels
from coaudit.pipeline.store import Store
from coaudit.pipeline.store.ledgers import ledger
from coaudit.pipeline.systems.cogym.generate import generate
from tests.conftest import Coaudit
from tests.judges.teams import team
from tests.pipeline.stores import (
    copied,
    document,
    give,
    holding,
    made,
    metric,
    rate,
    rows,
    take,
    verdict,
    write_lines,
)
from tests.pipeline.systems.cogym.folders import AGENT, USER, Log
from tests.shared import ROOT

NAME = "env_travel_planning_0"


@pytest.fixture(scope="module")
def one_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A session: the agent's question (2) with the human's answer (3), an action (4), the end (5).

    Nothing gets added to it.
    """
    folder = tmp_path_factory.mktemp("one")
    log = Log().say(AGENT, "May I book?").say(USER, "Yes").write(AGENT, "Plan").finish()
    found = made(folder / "workspace")
    take(found, log.folder(folder / "logs" / "a" / NAME))
    return found


@pytest.fixture
def store(one_store: Store, workspace: Path) -> Store:
    """A copy of the session's workspace, with its logs beside it."""
    shutil.copytree(one_store.workspace.path.parent / "logs", workspace.parent / "logs")
    return copied(one_store, workspace)


FULL = [
    verdict(NAME, 2, "initiative", "yes", probability=0.9, rationale="It asks.", model="m", seed=7),
    verdict(NAME, 3, "initiative", "no", rater="judge", rater_kind="llm", cost_usd=0.01, seconds=1.5),
    verdict(NAME, 2, "confirmation", "yes", cites=[2, 3], quote="May I book?"),
    verdict(NAME, 3, "halting", "unclear"),
    verdict(NAME, None, "failures", "present", code="C.1", error_source="model", external={"task": 4}),
]


@pytest.mark.long
def test_ratings_go_out_and_come_back_the_same(tmp_path: Path, store: Store) -> None:
    assert rate(store, FULL).imported == 5
    out = list(imports.export_lines(store))
    other = made(tmp_path / "other")
    take(other, tmp_path / "logs")
    path = tmp_path / "ratings.jsonl"
    path.write_text("".join(out))
    assert imports.ratings(other, path).imported == 5
    assert list(imports.export_lines(other)) == out
    assert document(other) == document(store)
    kept = [json.loads(line) for line in out]
    for given, line in zip(sorted(FULL, key=_sorting), sorted(kept, key=_sorting), strict=True):
        assert {k: v for k, v in line.items() if k in given and k != "trajectory"} == {
            k: v for k, v in given.items() if k != "trajectory"
        }


def _sorting(line: dict[str, Any]) -> str:
    return f"{line['code']} {line.get('event')} {line['rater']}"


@pytest.mark.long
def test_importing_twice_changes_nothing(store: Store) -> None:
    rate(store, FULL)
    before = document(store), len(list(store.workspace.ratings.iterdir()))
    again = rate(store, FULL)
    assert (again.imported, again.unchanged, again.quarantined) == (0, 5, [])
    assert (document(store), len(list(store.workspace.ratings.iterdir()))) == before
    changed = rate(store, [{**FULL[0], "label": "no"}])
    assert (changed.imported, changed.unchanged) == (1, 0)


def test_lines_held_against_the_store_some_at_a_time_say_what_they_say_together(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate(store, [FULL[1]])
    again = {**FULL[0], "label": "no"}
    strange = [
        {**FULL[0], "event": 99},
        {**FULL[2], "cites": [98]},
        {**FULL[0], "codebook": "nothing like it"},
    ]
    lines = [FULL[0], FULL[1], *strange[:2], FULL[2], again, again, FULL[3], {**FULL[1], "rater": "ann"}]
    marks = [verdict(NAME, 2, "initiative", "yes", rater=who) for who in ("bob", "eve")]
    given = [*(imports.RatingLine("f", number, line) for number, line in enumerate(lines, 1))]
    given += [imports.RatingLine("m", number, line, rest="no") for number, line in enumerate(marks, 1)]
    results = []
    for size in (1, 2, 100):
        monkeypatch.setattr(imports, "AT_ONCE", size)
        monkeypatch.setattr(imports, "MARKS", size)
        own = copied(store, tmp_path / str(size))
        done = imports.import_lines(own, given, imports.ImportResult())
        kept = [json.loads(line) | {"created": None} for line in imports.export_lines(own)]
        results.append((done, kept, len(list(own.workspace.ratings.iterdir()))))
    assert results[0] == results[1] == results[2]
    done, kept, files = results[0]
    assert (done.imported, done.unchanged, done.changed, len(done.contradicted)) == (9, 2, 0, 1)
    assert [(item.line, item.reason.split(":")[0].split(" is ")[0]) for item in done.quarantined] == [
        (3, "event 99"),
        (4, "cites"),
        (9, "rater_kind"),
    ]
    assert [(line["event"], line["label"]) for line in kept if line["rater"] == "eve"] == [
        (1, "no"),
        (2, "yes"),
        (3, "no"),
    ]
    assert files == 2


def test_a_label_on_a_scale_may_be_written_as_a_number(store: Store, tmp_path: Path) -> None:
    lines = [
        verdict(NAME, None, "related_work_quality", label, code="quality", rater=f"r{n}")  # type: ignore[arg-type]
        for n, label in enumerate((4, 4.0, "4", 4.5, True))
    ]
    result = imports.ratings(store, write_lines(tmp_path / "numbers.jsonl", lines))
    assert result.imported == 3
    assert [one.reason.rpartition(", ")[2] for one in result.quarantined] == ["got '4.5'", "got 'true'"]
    assert {row["label"] for row in rows(store, "FROM current_ratings")} == {"4"}


def test_a_label_of_the_rest_that_the_codebook_lacks_stops_the_import(store: Store) -> None:
    given = [imports.RatingLine("labels.csv", 1, FULL[0], rest="fine")]
    with pytest.raises(SourceError, match=r"labels\.csv: \[constants\] rest: label must be one of yes, no"):
        imports.import_lines(store, given, imports.ImportResult())
    assert rows(store, "FROM ratings") == []


def test_a_label_takes_little_memory_until_all_are_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    monkeypatch.setattr(imports, "AT_ONCE", 500)
    monkeypatch.setattr(imports, "_append", lambda *_: sizes.append(tracemalloc.get_traced_memory()[0]))
    for n in (500, 8000):
        lines = [imports.RatingLine("f", i, {**FULL[0], "repeat": i}) for i in range(n)]
        tracemalloc.start()
        imports.import_lines(store, lines, imports.ImportResult())
        tracemalloc.stop()
    assert (sizes[1] - sizes[0]) / 7500 < 700, "990 bytes with its line of the ledger"


def test_an_import_that_is_cut_short_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def lines() -> Iterator[imports.RatingLine]:
        yield imports.RatingLine("f", 1, FULL[0])
        yield imports.RatingLine("f", 2, FULL[1])
        raise KeyboardInterrupt

    monkeypatch.setattr(imports, "AT_ONCE", 1)
    with pytest.raises(KeyboardInterrupt):
        imports.import_lines(store, lines(), imports.ImportResult())
    assert rows(store, "FROM ratings") == []


def test_a_file_is_kept_where_nothing_can_be_exported(
    tmp_path: Path, store: Store, coaudit: Coaudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object) -> None:
        raise duckdb.IOException("No space left on device")

    kept = tmp_path / "ratings.jsonl"
    kept.write_text("from before")
    monkeypatch.setattr(imports, "rows_aside", full)
    coaudit("ratings", "export", "--out", kept, status=1)
    assert kept.read_text() == "from before"


def test_what_goes_out_is_what_the_ledger_holds(store: Store) -> None:
    rate(store, FULL)
    rate(store, [{**FULL[0], "retracted": True, "label": None}, {**FULL[3], "label": "yes", "seconds": 3}])
    said = [
        line for path in ledger.files(store.workspace.ratings) for line in path.read_text().splitlines(True)
    ]
    assert sorted(imports.export_lines(store)) == sorted([*said[1:3], said[4], said[6]])


def test_lines_of_one_file_that_contradict_each_other_are_named(
    tmp_path: Path, store: Store, coaudit: Coaudit
) -> None:
    lines = [FULL[0], FULL[1], {**FULL[0], "label": "no"}, {**FULL[1], "rationale": "It does not."}]
    done = coaudit("ratings", "import", write_lines(tmp_path / "labels.jsonl", lines))
    (key,) = rows(store, "SELECT id FROM trajectories")
    assert (
        f"labels.jsonl:3: {FULL[0]['rater']} on initiative of event 2 of {key['id']} is 'no' here and 'yes' "
        "in line 1; the last counts\n"
    ) in done.err
    assert done.err.count("the last counts") == 1
    kept = rows(store, "SELECT label FROM current_ratings WHERE event = 2")
    assert kept == [{"label": "no"}]


def test_lines_that_are_refused_alike_are_one_message_with_a_count(
    tmp_path: Path, store: Store, coaudit: Coaudit
) -> None:
    lines = [FULL[0], *({**FULL[1], "trajectory": f"no{number}"} for number in range(108))]
    done = coaudit("ratings", "import", write_lines(tmp_path / "labels.jsonl", lines))
    assert done.err.count("no trajectory") == 1
    assert "labels.jsonl:2: no trajectory 'no0' in the workspace (and 107 more like it)" in done.err


def test_of_two_dated_lines_of_a_rater_the_later_one_counts_wherever_it_stands(store: Store) -> None:
    early, late = "2026-01-01T09:00:00+00:00", "2026-01-01T08:00:00-04:00"
    lines = [
        verdict(NAME, 2, "initiative", "no", created=late),
        verdict(NAME, 2, "initiative", "yes", created=early),
        verdict(NAME, 3, "initiative", "no", created=late),
        verdict(NAME, 3, "initiative", "yes"),
    ]
    first = rate(store, lines)
    assert (first.imported, first.changed, first.unchanged) == (2, 0, 0)
    assert [sentence.partition(" is ")[2] for sentence in first.contradicted] == [
        "'yes' here and 'no' in line 1; line 1 was created later and counts",
        "'yes' here and 'no' in line 3; the last counts",
    ]
    assert rows(store, "SELECT event, label FROM current_ratings ORDER BY event") == [
        {"event": 2, "label": "no"},
        {"event": 3, "label": "yes"},
    ]


def test_what_a_rater_says_again_later_is_as_late_as_that(store: Store) -> None:
    days = {"no": ("01", "09"), "yes": ("05",)}
    said = [(label, day) for label, some in days.items() for day in some]
    lines = [verdict(NAME, 2, "initiative", label, created=f"2026-01-{day}") for label, day in said]
    done = rate(store, lines)
    assert (done.imported, done.unchanged) == (1, 1)
    assert done.contradicted[0].endswith("'no' in line 2; line 2 was created later and counts")
    (kept,) = rows(store, "SELECT label, created FROM current_ratings")
    assert kept["label"] == "no" and str(kept["created"]).startswith("2026-01-09")


def test_what_was_taken_back_later_is_not_said_again_by_an_earlier_line(store: Store) -> None:
    said = verdict(NAME, 2, "initiative", "no", rater="judge", rater_kind="llm")
    back = {key: value for key, value in said.items() if key != "label"} | {"retracted": True}
    lines = [back | {"created": "2026-01-09"}, said | {"created": "2026-01-01", "rater_version": "1"}]
    done = rate(store, lines)
    assert (done.imported, len(done.contradicted)) == (0, 1)
    assert not rows(store, "SELECT label FROM current_ratings")


def test_a_file_in_which_raters_changed_their_minds_is_taken_once(store: Store) -> None:
    judge = FULL[1] | {"rater_version": "1"}
    back = {key: value for key, value in FULL[3].items() if key != "label"} | {"retracted": True}
    again = judge | {"rater_version": "2", "label": "yes"}
    lines = [FULL[0], {**FULL[0], "label": "no"}, judge, again, FULL[3], back]
    first = rate(store, lines)
    assert (first.imported, first.changed) == (3, 1), "one's last word, and both versions of the judge"
    assert first.contradicted[1].endswith("is taken back here and 'unclear' in line 5; the last counts")
    before = document(store)
    second = rate(store, lines)
    assert (second.imported, second.changed) == (0, 0)
    assert second.contradicted == first.contradicted
    assert document(store) == before and len(ledger.files(store.workspace.ratings)) == 1


def test_where_a_line_of_a_table_cannot_be_read_nothing_is_taken_for_unmarked(
    tmp_path: Path, store: Store
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(f"id,at,said,why\n{NAME},2,yes,\n{NAME},3,yes,so, it seems\n", encoding="utf-8")
    text = """
        [constants]
        codebook = "initiative"
        code = "initiative"
        rater = "ann"
        rest = "no"
        [rating]
        trajectory = "id"
        event = "at"
        label = "said"
    """
    done = imports.ratings(store, path, labels.parse(text, "m.toml"))
    assert [wrong.reason for wrong in done.quarantined] == [
        "5 cells where the first line names 4",
        "[constants] rest: line 3 could not be read: what raters left unmarked is not known",
    ]
    assert rows(store, "SELECT event, label FROM current_ratings") == [{"event": 2, "label": "yes"}]
    path.write_text(path.read_text(encoding="utf-8").replace("so, it", "so it"), encoding="utf-8")
    assert imports.ratings(store, path, labels.parse(text, "m.toml")).imported == 2


@pytest.mark.parametrize(
    ("mapping", "row"),
    [
        ('[labels]\n"not sure" = ""', "3,Not sure,"),
        ('[filter]\nskip = [{ state = "draft" }]', "3,yes,draft"),
        ('[filter]\nkeep = [{ state = "~^$" }, { state = "done" }]', "3,yes,draft"),
    ],
)
def test_a_unit_of_which_a_mapping_leaves_something_out_is_none_that_a_rater_left_unmarked(
    tmp_path: Path, store: Store, mapping: str, row: str
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(f"id,at,said,state\n{NAME},2,yes,done\n{NAME},{row}\n", encoding="utf-8")
    text = f"""
        [constants]
        codebook = "initiative"
        code = "initiative"
        rater = "ann"
        rest = "no"
        [rating]
        trajectory = "id"
        event = "at"
        label = "said"
        {mapping}
    """
    done = imports.ratings(store, path, labels.parse(text, "m.toml"))
    query = "SELECT event, label FROM current_ratings ORDER BY event"
    assert rows(store, query) == [{"event": 1, "label": "no"}, {"event": 2, "label": "yes"}]
    (told,) = [wrong.reason for wrong in done.quarantined]
    assert told.startswith("[constants] rest: 1 unit of which [labels] or [filter] left something out")


def test_a_label_left_out_that_names_no_unit_leaves_unknown_what_its_rater_did_not_mark(
    tmp_path: Path, store: Store
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(f"id,at,said\n{NAME},2,yes\n{NAME},99,not sure\n", encoding="utf-8")
    text = """
        [constants]
        codebook = "initiative"
        code = "initiative"
        rater = "ann"
        rest = "no"
        [rating]
        trajectory = "id"
        event = "at"
        label = "said"
        [labels]
        "not sure" = ""
    """
    done = imports.ratings(store, path, labels.parse(text, "m.toml"))
    assert rows(store, "SELECT event, label FROM current_ratings") == [{"event": 2, "label": "yes"}]
    assert [wrong.line for wrong in done.quarantined] == [3, None]


def test_what_a_refused_line_may_have_marked_is_not_taken_for_unmarked(store: Store) -> None:
    marked = verdict(NAME, 2, "initiative", "yes")
    typed = verdict(NAME, 3, "initiative", "yess")
    other = verdict(NAME, 2, "initiative", "yes", rater="eve")
    lines = [
        imports.RatingLine("f", number, line, "no") for number, line in enumerate((marked, typed, other), 1)
    ]
    result = imports.import_lines(store, lines, imports.ImportResult())
    assert [wrong.reason.partition(" on ")[0] for wrong in result.quarantined] == [
        "label must be one of yes, no, unclear (initiative), got 'yess'",
        f"[constants] rest: a line of {marked['rater']}",
    ]
    kept = rows(store, "SELECT event, rater, label FROM current_ratings ORDER BY rater, event")
    assert [(one["event"], one["label"]) for one in kept if one["rater"] == marked["rater"]] == [(2, "yes")]
    assert [(one["event"], one["label"]) for one in kept if one["rater"] == "eve"] == [
        (1, "no"),
        (2, "yes"),
        (3, "no"),
    ]


def test_a_session_is_known_whatever_the_space_around_its_name(store: Store) -> None:
    """Whole rows of a table saved by hand were refused for a space that nobody sees."""
    (row,) = rows(store, f"SELECT id FROM trajectories WHERE native_id = '{NAME}'")
    names = (f" {NAME}", f"{row['id']}\t")
    lines = [verdict(name, 2, "initiative", "yes", rater=f"r{n}") for n, name in enumerate(names)]
    assert rate(store, lines).imported == 2


def test_a_session_whose_own_name_has_space_around_it_is_known_without(tmp_path: Path) -> None:
    """A table's reader trims the name, and no line could name the session; where another has the bare name,
    that one has it alone."""
    talk = team(("human", "Hi"), ("agent", "Ho"))
    names = {"x": "a", "y": "a ", "z": "b "}
    runs = [talk.model_copy(update={"id": key, "native_id": name}) for key, name in names.items()]
    with holding(tmp_path / "workspace", runs).reading() as connection:
        resolve = checks.Names(connection).resolve
    assert [resolve(name) for name in ("a", "a ", " a", "b", "b ", "b\t")] == [*"xyxzzz"]


def test_a_label_is_taken_whatever_its_case_and_surrounding_space(store: Store) -> None:
    assert rate(store, [verdict(NAME, 2, "initiative", " YES\n")]).imported == 1
    assert rows(store, "SELECT label FROM ratings") == [{"label": "yes"}]


def test_spaces_around_a_name_make_no_other_rater(store: Store) -> None:
    said = [
        verdict(NAME, event, "initiative", "yes", rater=name) for event, name in ((2, "ann"), (3, " ann "))
    ]
    assert rate(store, said).imported == 2
    assert rows(store, "SELECT DISTINCT rater FROM ratings") == [{"rater": "ann"}]
    (wrong,) = rate(
        store, [verdict(NAME, 2, "initiative", "yes", rater="gold ", rater_kind="llm")]
    ).quarantined
    assert "rater 'gold' is a human's name" in wrong.reason


@pytest.mark.long
def test_a_name_is_of_one_kind_until_what_it_said_is_taken_back(store: Store) -> None:
    first = verdict(NAME, 2, "initiative", "yes", rater="ann")
    assert rate(store, [first]).imported == 1
    for label in ("yes", "no"):
        (wrong,) = rate(store, [first | {"label": label, "rater_kind": "llm"}]).quarantined
        assert wrong.reason.startswith(
            "rater_kind: 'ann' is 'human' here, got 'llm'; give one of them another"
        )
    lines = [verdict(NAME, 2, "initiative", "yes", rater="new", rater_kind=kind) for kind in ("llm", "human")]
    assert [one.line for one in rate(store, lines).quarantined] == [2]
    back = {key: value for key, value in first.items() if key != "label"} | {"retracted": True}
    assert rate(store, [back]).imported == 1
    assert rate(store, [first | {"rater_kind": "llm"}]).imported == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "other"),
    [("ann", "a\u200bnn"), ("\u202eann", "ann"), ("Andr\u00e9", "Andre\u0301"), ("Ann", "ann")],
)
def test_a_name_that_only_looks_like_another_raters_is_no_rater(store: Store, name: str, other: str) -> None:
    line = verdict(NAME, 2, "initiative", "yes", rater=name)
    reason = f"rater: {other!a} looks like {name!a}; use one of them"
    first = rate(store, [line, line | {"rater": other}])
    again = rate(store, [line | {"rater": other}])
    assert [one.reason for result in (first, again) for one in result.quarantined] == [reason] * 2
    assert rate(store, [line]).quarantined == []


def test_nobody_looks_like_a_reserved_name(store: Store) -> None:
    line = verdict(NAME, 2, "initiative", "yes", rater="gold\u200b")
    (left, other) = rate(store, [line, line | {"rater": "Gold"}]).quarantined
    assert left.reason == r"rater: 'gold\u200b' looks like 'gold'; use one of them"
    assert other.reason == "rater: 'Gold' looks like 'gold'; use one of them"
    assert rate(store, [line | {"rater": "gold"}]).imported == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"label": "maybe"}, "label must be one of yes, no, unclear (initiative), got 'maybe'"),
        ({"codebook": "tone"}, "unknown codebook 'tone', expected one of"),
        ({"code": "C.1"}, "codebook 'initiative' has no code 'C.1', expected one of initiative"),
        ({"event": 4}, "event 4 is no unit of codebook 'initiative', which rates each utterance"),
        ({"event": 99}, "event 99 is no unit of codebook 'initiative'"),
        ({"event": None}, "the whole trajectory is no unit of codebook 'initiative'"),
        ({"event": 2**40}, "event: Input should be less than 2147483648"),
        (
            {"event": "2x"},
            "unable to parse string as an integer, got '2x'",
        ),
        ({"event": True}, "event: the number of an event, got true"),
        ({"cites": [1, True]}, "cites: the number of an event, got true"),
        ({"cost_usd": -1}, "cost_usd: 0 or more, got -1"),
        ({"seconds": -0.5}, "seconds: 0 or more, got -0.5"),
        ({"seconds": "-2.5"}, "seconds: 0 or more, got -2.5"),
        ({"trajectory": "env_9"}, "no trajectory 'env_9' in the workspace"),
        ({"trajectory": None}, "trajectory: Input should be a valid string"),
        ({"label": None}, "a rating has exactly one of label, error and retracted"),
        ({"error": "timeout"}, "a rating has exactly one of label, error and retracted"),
        ({"rater_kind": "robot"}, "rater_kind: Input should be 'human', 'llm', 'rule' or 'model'"),
        ({"probability": 1.5}, "probability: Input should be less than or equal to 1"),
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
    ],
)
def test_a_line_that_does_not_fit_is_quarantined_with_the_reason(
    one_store: Store, change: dict[str, Any], reason: str
) -> None:
    result = rate(one_store, [verdict(NAME, 2, "initiative", "yes") | change])
    (wrong,) = result.quarantined
    assert (result.imported, wrong.line) == (0, 1)
    assert reason in wrong.reason


@pytest.mark.parametrize("event", [None, 1, 99])
def test_of_a_shorter_copy_of_another_record_no_label_is_taken(
    tmp_path: Path, store: Store, event: int | None
) -> None:
    take(store, ROOT / "data/coblock/dumpdata.json")
    book = "initiative" if event else "failures"
    line = verdict("21", event, book, "yes") | ({} if event else {"code": "C.1", "label": "absent"})
    (wrong,) = rate(store, [line]).quarantined
    assert wrong.reason == "its trajectory is a shorter copy of record 22, and has no units"


@pytest.mark.long
def test_every_label_that_comes_with_the_samples_is_of_a_unit(store: Store) -> None:
    data = ROOT / "data"
    for name in ("coblock", "cogym", "overcooked", "rehac"):
        take(store, data / name)
    wrong = [imports.ratings(store, path).quarantined for path in sorted((data / "labels").glob("*.jsonl"))]
    assert wrong == [[], [], []]


def test_a_bad_line_costs_only_itself(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "ratings.jsonl"
    good = json.dumps(FULL[0]).encode()
    path.write_bytes(b"\n".join([b"{half", b"[]", b"\xff", good, b"[" * 100_000, b'{"trajectory": "x']))
    result = imports.ratings(store, path)
    assert result.imported == 1
    assert [q.line for q in result.quarantined] == [1, 2, 3, 5, 6]
    assert all(q.source == str(path) for q in result.quarantined)


def test_a_native_id_that_several_have_is_asked_back(tmp_path: Path, store: Store) -> None:
    take(store, Log(description="Another").say(AGENT, "Hi").folder(tmp_path / "logs" / "b" / NAME))
    (wrong,) = rate(store, [verdict(NAME, 2, "initiative", "yes")]).quarantined
    assert wrong.reason.startswith(f"trajectory '{NAME}' names 2 trajectories, give one's id: ")
    (first, _) = rows(store, "SELECT id FROM trajectories ORDER BY condition")
    assert rate(store, [verdict(first["id"], 2, "initiative", "yes")]).imported == 1


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path, store: Store) -> None:
    with pytest.raises(SourceError, match=r"nothing\.jsonl: no such file"):
        imports.ratings(store, tmp_path / "nothing.jsonl")
    with pytest.raises(SourceError, match=r"nothing\.jsonl: no such file"):
        imports.outcomes(store, tmp_path / "nothing.jsonl")


def test_the_command_reports_what_it_took_and_fails_only_where_it_took_nothing(
    tmp_path: Path, store: Store, coaudit: Coaudit
) -> None:
    bad = verdict(NAME, 2, "initiative", "maybe")
    good = write_lines(tmp_path / "good.jsonl", [FULL[0], bad])
    first, second = (coaudit("ratings", "import", good, "--json").json for _ in range(2))
    assert (first["imported"], first["unchanged"], len(first["quarantined"])) == (1, 0, 1)
    assert (second["imported"], second["unchanged"], len(second["quarantined"])) == (0, 1, 1)
    nothing = coaudit("ratings", "import", write_lines(tmp_path / "bad.jsonl", [bad]), "--json", status=1)
    assert nothing.json["imported"] == 0
    assert nothing.err == "coaudit: nothing could be imported\n"
    exported = coaudit("ratings", "export").out
    assert [json.loads(line)["label"] for line in exported.splitlines()] == ["yes"]


# Outcomes.


def test_outcomes_are_taken_once_and_the_last_one_holds(store: Store) -> None:
    line = {"trajectory": NAME, "name": "satisfaction", "value": 4}
    assert give(store, [line]).imported == 1
    ledger = list(store.workspace.outcomes.lines())
    again = give(store, [line, line])
    assert (again.imported, again.unchanged) == (0, 2)
    assert list(store.workspace.outcomes.lines()) == ledger
    assert give(store, [{**line, "value": 2}]).imported == 1
    assert metric(metrics(store), "satisfaction").value == 2


def test_outcomes_that_a_file_gives_twice_are_named_and_the_last_is_taken_once(
    tmp_path: Path, store: Store
) -> None:
    line = {"trajectory": NAME, "name": "satisfaction", "value": 4}
    over = {"trajectory": NAME, "name": "preferred", "value": 1, "baseline": "b"}
    lines = [line, over, {**line, "value": 2.5}, {**over, "baseline": "c", "value": 0}]
    first = give(store, lines)
    assert (first.imported, first.changed, first.unchanged) == (3, 0, 0)
    (sentence,) = first.contradicted
    assert sentence.partition(": ")[0].endswith(":3")
    assert sentence.startswith("satisfaction of ", sentence.index(": ") + 2)
    assert sentence.endswith(" is 2.5 here and 4 in line 1; the last counts")
    again = give(store, lines)
    assert (again.imported, again.changed, again.unchanged) == (0, 0, 3)
    assert again.contradicted == first.contradicted
    better = give(store, [{**line, "name": " satisfaction ", "value": 5}])
    assert (better.imported, better.changed) == (1, 1)


def test_outcomes_come_in_tables_and_lists_as_labels_do(tmp_path: Path, store: Store) -> None:
    table = tmp_path / "outcomes.csv"
    table.write_bytes(
        f"Trajectory; name;value;baseline\r\n{NAME};satisfaction;4,5;\r\n{NAME};preferred;true;b 1.10\r\n"
        f"{NAME};quality;1,234;\r\n".encode("utf-8-sig")
    )
    done = imports.outcomes(store, table)
    assert (done.imported, [wrong.line for wrong in done.quarantined]) == (2, [4])
    reason = "value: write a number with a point alone, such as 1234.5, got '1,234'"
    assert done.quarantined[0].reason == reason
    kept = rows(store, "SELECT name, value, baseline FROM outcomes WHERE imported ORDER BY name")
    assert [tuple(one.values()) for one in kept] == [("preferred", 1, "b 1.10"), ("satisfaction", 4.5, None)]
    listed = tmp_path / "outcomes.json"
    listed.write_text(json.dumps([{"trajectory": NAME, "name": "satisfaction", "value": 2}, 3], indent=1))
    done = imports.outcomes(store, listed)
    assert (done.imported, done.changed, [wrong.line for wrong in done.quarantined]) == (1, 1, [2])
    listed.write_text(f'[{{"trajectory": "{NAME}", "name": "preferred", "value": 0, "value": 1}}]')
    (wrong,) = imports.outcomes(store, listed).quarantined
    assert wrong.reason == "value: said twice in one object; which one holds?"


def test_a_session_whose_name_is_a_number_gets_its_outcome_from_any_table(
    tmp_path: Path, workspace: Path
) -> None:
    store = made(workspace)
    log = tmp_path / "log.jsonl"
    log.write_text('{"id": "12", "messages": [{"role": "user", "content": "Hi"}]}\n', encoding="utf-8")
    take(store, log)
    pl.DataFrame({"trajectory": [12], "name": ["satisfaction"], "value": [3.0]}).write_parquet(
        path := tmp_path / "outcomes.parquet"
    )
    assert imports.outcomes(store, path).imported == 1


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("session,name,value", "no column 'trajectory' among 'session', 'name', 'value'; an outcome is"),
        ("trajectory,satisfaction", "no column 'name', 'value' among 'trajectory', 'satisfaction'; an"),
        ("trajectory,name,value,by", "the column 'by' is none of trajectory, name, value, baseline; an"),
    ],
)
def test_a_table_with_other_columns_is_refused_once(
    tmp_path: Path, one_store: Store, head: str, reason: str
) -> None:
    path = tmp_path / "outcomes.csv"
    line = ",".join("1" for _ in head.split(","))
    path.write_text(f"{head}\n{line}\n{line}\n")
    (wrong,) = imports.outcomes(one_store, path).quarantined
    assert wrong.reason.startswith(reason)


def test_each_sheet_of_a_workbook_has_outcomes_or_is_refused_once(tmp_path: Path, store: Store) -> None:
    book = Workbook()
    answers: list[list[object]] = [["trajectory", "name", "value"], [NAME, "ease", 4]]
    sheets: dict[str, list[list[object]]] = {"Notes": [["note"], ["a"], ["b"]], "Ann": answers}
    for title, lines in sheets.items():
        sheet = book.create_sheet(title)
        for line in lines:
            sheet.append(line)
    del book["Sheet"]
    book.save(path := tmp_path / "outcomes.xlsx")
    done = imports.outcomes(store, path)
    assert done.imported == 1
    (wrong,) = done.quarantined
    assert wrong.reason.startswith("sheet 'Notes': no column 'trajectory', 'name', 'value' among 'note'; an")


def test_a_metrics_outcome_is_known_by_its_name_whatever_its_case(store: Store) -> None:
    done = give(store, [{"trajectory": NAME, "name": "Satisfaction ", "value": 4}])
    assert (done.imported, metric(metrics(store), "satisfaction").value) == (1, 4)
    done = give(store, [{"trajectory": NAME, "name": "Satisfaction", "value": 9}])
    assert done.quarantined[0].reason.endswith("satisfaction must be from 1 to 5, got 9")


def test_outcomes_outlive_a_new_ingest_of_their_trajectory(tmp_path: Path, store: Store) -> None:
    give(store, [{"trajectory": NAME, "name": "satisfaction", "value": 4}])
    take(store, tmp_path / "logs", agent="other")
    assert metric(metrics(store), "satisfaction").value == 4


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"value": 6}, "satisfaction must be from 1 to 5, got 6"),
        ({"value": float("nan")}, "value: Input should be a finite number"),
        ({"value": "good"}, "value: Input should be a valid number"),
        ({"name": "preferred", "value": 2}, "preferred must be from 0 to 1, got 2"),
        ({"name": ""}, "name: String should have at least 1 character"),
        ({"trajectory": "env_9"}, "no trajectory 'env_9' in the workspace"),
        ({"comment": "x"}, "comment: Extra inputs are not permitted"),
    ],
)
def test_an_outcome_that_cannot_be_is_quarantined_with_the_reason(
    one_store: Store, change: dict[str, Any], reason: str
) -> None:
    result = give(one_store, [{"trajectory": NAME, "name": "satisfaction", "value": 4} | change])
    (wrong,) = result.quarantined
    assert (result.imported, wrong.line) == (0, 1)
    assert reason in wrong.reason


def test_a_line_of_the_outcome_ledger_that_was_cut_off_costs_only_itself(store: Store) -> None:
    give(store, [{"trajectory": NAME, "name": "satisfaction", "value": 4}])
    with store.workspace.outcomes.files()[-1].open("a") as file:
        file.write('{"trajectory": "x", "na')
    assert metric(metrics(store), "satisfaction").value == 4
    give(store, [{"trajectory": NAME, "name": "outcome_rating", "value": 3}])
    found = metrics(store)
    assert (metric(found, "satisfaction").value, metric(found, "outcome_rating").value) == (4, 3)


# Generated sessions.


def _bytes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        generate(tmp_path / name, 4, seed)
    assert _bytes(tmp_path / "a") == _bytes(tmp_path / "b")
    assert _bytes(tmp_path / "a") != _bytes(tmp_path / "c")


@pytest.mark.long
def test_planted_truth_is_imported_whole_and_completes_every_metric(tmp_path: Path) -> None:
    written = generate(tmp_path / "logs", 30, 5)
    assert written["sessions"] == 30
    assert written["utterances"] >= 6 * 30
    store = made(tmp_path / "workspace")
    result = take(store, tmp_path / "logs")
    assert (result.trajectories, result.quarantined) == (30, [])
    truth = imports.ratings(store, tmp_path / "logs" / "truth.jsonl")
    assert (truth.imported, truth.quarantined) == (written["labels"], [])
    (counted,) = rows(store, "SELECT count(*) AS n FROM counted_ratings")
    assert counted["n"] == written["labels"]
    found = metrics(store)
    for name in ("delivery_rate", "task_performance", "effective_confirmations", "halting_messages"):
        assert metric(found, name).n == 30
    (utterances,) = rows(store, "SELECT count(*) AS n FROM units WHERE kind = 'utterance' AND NOT opening")
    assert utterances["n"] == written["utterances"]


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(CoauditError, match="must be an empty or new folder"):
        generate(tmp_path, 1, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"rater": "gold", "rater_kind": "llm"}, "rater 'gold' is a human's name, got rater_kind 'llm'"),
        ({"rater": "rules"}, "rater 'rules' is a rule's name, got rater_kind 'human'"),
        ({"rater": "trained:x.skops", "rater_kind": "llm"}, "is a model's name"),
        ({"rater": " "}, "rater: a name, got an empty text"),
        ({"cites": [2, 99]}, "has no event 99"),
        ({"codebook_version": "0" * 12}, "codebook_version: codebook 'initiative' is"),
        ({"unit_hash": "0" * 32}, "unit_hash: the unit has changed"),
        ({"created": "yesterday"}, "created: expected an ISO 8601 time, got 'yesterday'"),
        ({"created": "2099-01-01T00:00:00+00:00"}, "is in the future"),
    ],
)
def test_what_could_never_count_is_refused_with_its_line(
    store: Store, given: dict[str, Any], reason: str
) -> None:
    result = rate(store, [verdict(NAME, 2, "initiative", "yes", **given)])
    assert result.imported == 0 and result.quarantined[0].line == 1
    assert reason in result.quarantined[0].reason


def test_the_last_word_is_the_one_appended_last_whatever_the_clocks_said(store: Store) -> None:
    for label, moment in (("yes", "2026-01-01T10:00:00+02:00"), ("no", "2026-01-01T07:30:00+00:00")):
        done = rate(store, [verdict(NAME, 2, "initiative", label, created=moment)])
        assert done.imported == 1
    assert done.changed == 1
    query = "SELECT label, created FROM counted_ratings"
    assert rows(store, query) == [{"label": "no", "created": "2026-01-01T07:30:00.000+00:00"}]


@pytest.mark.long
def test_a_ledger_begun_by_a_slower_clock_still_comes_last(store: Store) -> None:
    rate(store, [verdict(NAME, 2, "initiative", "yes")])
    (first,) = ledger.files(store.workspace.ratings)
    first.rename(first.with_name(f"20990101T000000000000-1-{first.name[-14:]}"))
    rate(store, [verdict(NAME, 2, "initiative", "no")])
    rate(store, [verdict(NAME, 2, "initiative", "unclear")])
    assert rows(store, "SELECT label FROM current_ratings") == [{"label": "unclear"}]


def test_a_key_that_is_said_twice_is_refused(store: Store) -> None:
    path = store.workspace.path / "given.jsonl"
    line = json.dumps(verdict(NAME, 2, "initiative", "yes"))
    path.write_text(f'{line[:-1]}, "label": "no"}}\n{line}\n')
    result = imports.ratings(store, path)
    assert (result.imported, [q.line for q in result.quarantined]) == (1, [1])
    assert result.quarantined[0].reason.startswith("label: said twice")


def test_a_list_that_is_nested_too_deeply_is_quarantined(store: Store) -> None:
    path = store.workspace.path / "given.json"
    path.write_text(f"[{'[' * 100_000}{']' * 100_000}]")
    for read in (imports.ratings, imports.outcomes):
        assert "recursion limit" in read(store, path).quarantined[0].reason


def test_what_is_wrong_with_a_line_of_many_unknown_fields_fits_a_line(store: Store) -> None:
    path = store.workspace.path / "given.jsonl"
    line = verdict(NAME, 2, "initiative", "yes") | {f"{n}{'k' * 1000}": 1 for n in range(100)}
    path.write_text(json.dumps(line) + "\n")
    (wrong,) = imports.ratings(store, path).quarantined
    assert "Extra inputs are not permitted" in wrong.reason and wrong.reason.endswith("more")
    assert len(wrong.reason) < 2000


def test_a_rating_under_a_damaged_codebook_says_where_to_look_in_one_line(store: Store) -> None:
    own = store.workspace.codebooks
    own.mkdir()
    (own / "mine.toml").write_text("name = 'half")
    path = write_lines(store.workspace.path / "given.jsonl", [verdict(NAME, 2, "mine", "yes")])
    (wrong,) = imports.ratings(store, path).quarantined
    assert wrong.reason == "codebook 'mine' cannot be read: `coaudit codebook check FILE` tells why"
