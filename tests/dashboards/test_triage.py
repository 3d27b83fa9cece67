"""The list of sessions: what is worst stands first, and words are found wherever they were said."""

from __future__ import annotations

from pathlib import Path

import pytest

from coaudit.dashboards import triage
from coaudit.dashboards.drawing import lists
from coaudit.dashboards.triage import Present
from coaudit.pipeline import codebooks
from coaudit.pipeline.report import Number, answers
from coaudit.pipeline.store import Selection, Store
from coaudit.schemas import Action, Event, Outcome, Participant, Trajectory
from tests.pipeline.stores import holding, rate, verdict

TEAM = (
    Participant(name="Ann", kind="human"),
    Participant(name="Bot", kind="agent", tokens={"prompt_tokens": 10, "completion_tokens": 5}),
)


def run(name: str, said: str, delivered: float | None, events: int = 1) -> Trajectory:
    return Trajectory(
        id=name,
        native_id=f"run {name}",
        source="log",
        system="cogym",
        condition="arm",
        task="related_work",
        participants=TEAM,
        events=(
            *(Event(seq=n, actor="Ann", kind="message", text=said) for n in range(events)),
            Event(seq=events, actor="Bot", kind="action", action=Action(name="look", arguments={"at": said})),
        ),
        outcomes=(Outcome(name="delivered", value=delivered),) if delivered is not None else (),
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    runs = [
        run("aa", "The Ferry", 1),
        run("bb", "a <b>train</b>", 0, events=4),
        run("cc", "100% bus_stop", None),
    ]
    store = holding(tmp_path / "workspace", runs)
    lines = [
        verdict("bb", None, "failures", "present", code=code, rater="m", rater_kind="llm")
        for code in ("C.1", "C.2")
    ]
    lines += [verdict("cc", None, "failures", "present", code="C.1", rater="m", rater_kind="llm")]
    lines += [verdict("cc", None, "failures", "absent", code="C.1", rater="eva")]
    # Two people who differ, one of them with the judge: the judge said what a person said.
    lines += [
        verdict("bb", None, "failures", label, code="C.1", rater=who)
        for who, label in (("eva", "present"), ("ann", "absent"))
    ]
    # The first label of a scale is a score, not a finding.
    lines += [verdict("aa", None, "related_work_quality", "1", code="quality", rater="eva")]
    rate(store, lines)
    return store


def ids(store: Store, **wish: object) -> list[str]:
    return [row["id"] for row in triage.listed(store, Selection(), **wish)[0]]  # type: ignore[arg-type]


@pytest.mark.long
def test_a_run_that_delivered_and_failed_did_not_reach_its_goal(tmp_path: Path) -> None:
    outcomes = (Outcome(name="delivered", value=1), Outcome(name="success", value=0))
    both = run("aa", "Done.", None).model_copy(update={"system": "lab", "outcomes": outcomes})
    store = holding(tmp_path / "workspace", [both])
    (row,), _ = triage.listed(store, Selection())
    answer = answers.teamwork(store)
    assert answer.table and isinstance(reached := answer.table.rows[0][3], Number)
    assert (row["outcome"], reached.value) == (0, 0), "as the overview has it"


def test_sessions_are_sorted_by_what_is_wrong_and_what_is_unknown_comes_last(store: Store) -> None:
    assert ids(store, order="most findings") == ["bb", "cc", "aa"]
    assert ids(store, order="worst outcome") == ["bb", "aa", "cc"]
    assert ids(store, order="judge and people differ")[0] == "cc"
    assert ids(store, order="longest")[0] == "bb"
    assert ids(store, order="delivered") == ["aa", "bb", "cc"], "a metric: the greatest first"
    rows, _ = triage.listed(store, Selection())
    told = {row["id"]: (row["found"], row["outcome"], row["differ"], row["tokens"]) for row in rows}
    assert told == {"aa": (None, 1.0, None, 15), "bb": (2, 0.0, 0, 15), "cc": (1, None, 1, 15)}


def test_of_what_was_rated_a_list_says_that_nothing_was_found_and_of_the_rest_nothing(tmp_path: Path) -> None:
    """A dash stood for both, so that of a judge's sessions most seemed to wait for it."""
    labels = {"aa": "unclear", "bb": None, "cc": "absent", "dd": "present"}
    store = holding(tmp_path / "workspace", [run(name, "Well", None) for name in labels])
    bot = {"code": "C.1", "rater": "m", "rater_kind": "llm"}
    rate(store, [verdict(name, None, "failures", label, **bot) for name, label in labels.items() if label])
    rows, _ = triage.listed(store, Selection(), order="most findings")
    assert [(row["id"], row["found"]) for row in rows] == [("dd", 1), ("cc", 0), ("aa", None), ("bb", None)]


@pytest.mark.long
def test_a_list_by_a_rated_metric_is_of_one_rater_the_wanted_one_if_there(store: Store) -> None:
    said = {"eva": ("no", "no", "no"), "m": ("yes", "yes", "yes"), "tom": ("yes",)}
    lines = [
        verdict("bb", event, "halting", label, rater=rater, rater_kind="llm" if rater == "m" else "human")
        for rater, labels in said.items()
        for event, label in enumerate(labels, 1)
    ]
    rate(store, lines)

    def values(rater: str | None) -> dict[str, float | None]:
        rows, _ = triage.listed(store, Selection(), order="halting_messages", rater=rater)
        return {row["id"]: row["value"] for row in rows}

    assert values("m") == {"bb": 3, "aa": 0, "cc": 0}
    assert values("tom") == {"aa": 0, "cc": 0, "bb": None}, "two of three are not rated"
    assert values(None) == values("nobody") == values("eva") == {"aa": 0, "bb": 0, "cc": 0}


def test_a_number_of_a_list_is_written_out() -> None:
    shown = [lists._cell("value", value) for value in (0.0312, 0.5, 12.0, 120.0, 1234.5, 295.46876)]
    assert shown == ["0.031", "0.5", "12", "120", "1,234", "295.5"]
    assert lists._cell("rationale", "x" * 300).endswith("x …"), "what is cut says so"


@pytest.mark.long
def test_words_are_found_as_they_are_in_what_was_said_and_in_ids(store: Store) -> None:
    assert ids(store, words="ferry") == ["aa"]
    assert ids(store, words="<B>train") == ["bb"]
    assert ids(store, words="0% bus_") == ["cc"], "no character is a wildcard"
    assert ids(store, words="_ _") == []
    assert ids(store, words="run c") == ["cc"]
    rows, total = triage.listed(store, Selection(), words="train", present=Present("C.2", found_by="m"))
    assert total == 1 and rows[0]["cited"] == 0


@pytest.mark.long
def test_the_list_behind_a_number_has_the_sessions_that_it_counts(store: Store) -> None:
    """Of a category those with an answer to each mode, of a code those of its codebook, of people theirs."""

    def behind(code: str, **who: str) -> list[str]:
        return sorted(ids(store, present=Present(code, **who)))

    assert behind("C", found_by="m") == [], "of two modes of many there is no saying what else was found"
    modes = [code for code in codebooks.load("failures").codes if code.category == "C"]
    rate(
        store,
        [
            verdict("cc", None, "failures", "absent", code=mode.code, rater="m", rater_kind="llm")
            for mode in modes
            if mode.code != "C.1"
        ],
    )
    assert behind("C", found_by="m") == ["cc"]
    assert behind("C.1", found_by="m") == ["bb", "cc"]
    assert behind("C.1", kind="human") == ["bb"]
    assert behind("C.1", codebook="failures") == ["bb", "cc"]
    assert behind("C.1", codebook="mast") == []


@pytest.mark.long
def test_pages_of_a_list_hold_every_session_once(store: Store) -> None:
    pages = [triage.listed(store, Selection(), first=at, limit=1)[0] for at in range(3)]
    assert sorted(page[0]["id"] for page in pages) == ["aa", "bb", "cc"]
    assert triage.listed(store, Selection(), first=9)[0] == []
