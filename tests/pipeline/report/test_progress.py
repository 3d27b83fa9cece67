"""What is left to do, and the command that does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline import codebooks
from coaudit.pipeline.annotate import draw
from coaudit.pipeline.report import Number, progress
from coaudit.pipeline.store import Selection, Store
from tests.conftest import Coaudit
from tests.pipeline.report.test_answers import run
from tests.pipeline.stores import holding, rate, verdict

BOOK: dict[str, Any] = {
    "codebook": "failures",
    "title": "Failures",
    "questions": 100,
    "drawn": 0,
    "labelled": 0,
    "model": None,
    "errors": 0,
}


def row(**given: Any) -> dict[str, Any]:
    return {**BOOK, **given}


def commands(*rows: dict[str, Any]) -> list[Any]:
    return [line[-1] for line in progress.to_do(rows).rows]


def test_what_a_model_has_left_is_asked_of_that_model_under_its_name() -> None:
    judge = row(rater="strict", kind="llm", model="openai/gpt x", answers=60)
    assert commands(judge)[0] == "coaudit judge --codebook failures --rater strict --model 'openai/gpt x'"
    alone = row(rater="openai/m", kind="llm", model="openai/m", answers=60)
    assert commands(alone)[0] == "coaudit judge --codebook failures --model openai/m"


def test_what_the_rules_can_rate_needs_no_model() -> None:
    """A newcomer without a model was told that initiative needs one."""
    nobody = {"rater": None, "kind": None, "answers": 0}
    assert commands(row(**nobody, codebook="initiative")) == ["coaudit judge --codebook initiative"]
    assert commands(row(**nobody)) == ["coaudit judge --codebook failures --model MODEL"]


def test_what_to_run_of_some_sessions_asks_about_these_alone() -> None:
    """Beside numbers of a filtered page stood commands that would have asked about the whole workspace."""
    only = Selection(system=("my system",), days=("..2026-01-01",))
    where = " --where 'system=my system' --where day=..2026-01-01"
    judge = row(rater="m", kind="llm", model="m", answers=60, errors=1, drawn=0)
    nobody = row(rater=None, kind=None, answers=0, codebook="initiative")
    jury = row(rater="jury", kind="model", model=None, answers=60)
    table = progress.to_do([judge, jury, nobody], only)
    assert [line[-1] for line in table.rows] == [
        f"coaudit judge --codebook failures --model m{where} --retry-errors",
        "coaudit judge --codebook failures --rater jury --members RATERS",
        f"coaudit sample --codebook failures{where}",
        f"coaudit judge --codebook initiative{where}",
    ]


def test_errors_of_a_judge_who_is_through_are_asked_again() -> None:
    judge = row(rater="m", kind="llm", model="m", answers=97, errors=3)
    assert commands(judge)[0] == "coaudit judge --codebook failures --model m --retry-errors"
    assert commands(row(rater="m", kind="llm", model="m", answers=100))[0] == ""


def test_a_former_version_of_a_judge_is_not_gone_on_with() -> None:
    assert commands(row(rater="m (3f1c)", kind="llm", model="m", answers=7, errors=3))[0] == ""


def test_rules_are_no_substitute_for_a_model_and_detectors_have_nothing_left() -> None:
    assert commands(row(rater="detectors", kind="rule", answers=9))[0] == ""
    assert commands(row(rater="rules", kind="rule", answers=9)) == [
        "coaudit judge --codebook failures --rater rules",
        "coaudit sample --codebook failures",
    ]


def test_people_are_asked_about_what_is_left_of_a_sample_and_not_about_the_corpus() -> None:
    labelled = row(rater="ann", kind="human", answers=6, drawn=10, labelled=6)
    last = progress.to_do([labelled]).rows[-1]
    assert last[-2].value == 4 and "Label Studio" in last[-1]  # type: ignore[union-attr, operator]
    assert commands(row(rater="ann", kind="human", answers=6))[-1] == "", "labels without a sample are whole"
    drawn = row(rater="m", kind="llm", model="m", answers=100, drawn=10)
    assert commands(drawn)[-1].startswith("coaudit labelstudio push")


def test_of_a_crowd_the_first_is_named() -> None:
    crowd = [row(rater=f"w{n:02}", kind="human", answers=2) for n in range(60)]
    who, answers = (progress.to_do(crowd).rows[-1][place] for place in (1, 3))
    assert who == "w00, 59 more" and isinstance(answers, Number) and answers.value == 120


@pytest.fixture
def store(tmp_path: Path) -> Store:
    runs = [run("arm", n, 1) for n in range(10)]
    store = holding(tmp_path / "workspace", runs)
    said = [verdict(t.id, None, "failures", "absent", code="C.1", rater="eva") for t in runs[:3]]
    rate(store, said)
    return store


def test_labels_outside_of_a_sample_do_not_finish_it(store: Store, coaudit: Coaudit) -> None:
    before = {r["codebook"]: r for r in progress.coverage(store)}["failures"]
    assert (before["drawn"], before["labelled"]) == (0, 0)
    coaudit("--workspace", store.workspace.path, "sample", "--codebook", "failures", "--size", "4")
    after = {r["codebook"]: r for r in progress.coverage(store)}["failures"]
    codes = after["questions"] // 10
    assert after["drawn"] == (4 + 2) * codes, "two of the four are for two people"
    assert 0 <= after["labelled"] <= 3


def test_a_unit_for_two_people_is_left_until_both_have_labelled_it(store: Store) -> None:
    """One of them finished it, and nothing was left of a sample whose agreement nobody could compute."""
    units = draw.draw(store, draw.Wish(("failures",), "some", size=4, overlap=0.5)).units
    codes = [code.code for code in codebooks.load("failures").codes]

    def left() -> int:
        book = {r["codebook"]: r for r in progress.coverage(store)}["failures"]
        assert book["drawn"] == 6 * len(codes)
        return int(book["drawn"] - book["labelled"])

    for who, some in (("ann", units), ("bob", [unit for unit in units if unit.overlap == 2])):
        lines = [
            verdict(unit.trajectory, None, "failures", "absent", code=code, rater=who)
            for unit in some
            for code in codes
            if (who, code) != ("bob", "C.1")
        ]
        assert rate(store, lines).imported == len(lines)
        both = sum(unit.overlap == 2 for unit in units)
        if who == "ann":
            assert 0 < left() <= both * len(codes)
    eva = {f"arm-{n}" for n in range(3)} & {unit.trajectory for unit in units if unit.overlap == 2}
    assert left() == both - len(eva), "of C.1, where nobody else labelled it"


def test_what_people_dispute_is_left_until_gold_settles_it_and_other_codes_of_the_unit_are_not(
    store: Store,
) -> None:
    """A dispute in a unit of an ordinary sample was done before anybody settled it; of one in labels from
    elsewhere the codes on which people agree were left for ever, for nobody is asked about them again."""
    codes = [code.code for code in codebooks.load("failures").codes]

    def counts() -> tuple[int, int]:
        book = {r["codebook"]: r for r in progress.coverage(store)}["failures"]
        return book["drawn"], book["labelled"]

    def say(trajectory: str, who: str, present: str, *only: str) -> None:
        labels = {code: "present" if code == present else "absent" for code in only or codes}
        rate(
            store,
            [
                verdict(trajectory, None, "failures", label, code=code, rater=who)
                for code, label in labels.items()
            ],
        )

    first, *_ = draw.draw(store, draw.Wish(("failures",), "some", size=1, overlap=1.0)).units
    elsewhere = next(f"arm-{n}" for n in range(3, 10) if f"arm-{n}" != first.trajectory)
    for trajectory in (first.trajectory, elsewhere):
        say(trajectory, "ann", "C.1")
        say(trajectory, "bob", "C.2")
    assert counts() == (2 * len(codes), 2 * len(codes))

    draw.draw(store, draw.Wish(("failures",), "disputes", method="disagreements"))
    assert counts() == (2 * len(codes) + 4, 2 * len(codes)), "C.1 and C.2 of both"
    say(elsewhere, "gold", "C.1", "C.1", "C.2")
    say(first.trajectory, "gold", "C.1", "C.1")
    assert counts() == (2 * len(codes) + 4, 2 * len(codes) + 3)


def test_what_somebody_could_not_tell_is_not_left_to_settle(store: Store) -> None:
    """Nobody is asked to settle it, so that it would have been left for ever."""
    for rater, labels in (("ann", ("present", "present")), ("bob", ("absent", "unclear"))):
        answers = zip(("C.1", "C.2"), labels, strict=True)
        lines = [verdict("arm-3", None, "failures", label, code=code, rater=rater) for code, label in answers]
        rate(store, lines)
    draw.draw(store, draw.Wish(("failures",), "disputes", method="disagreements"))
    book = {row["codebook"]: row for row in progress.coverage(store)}["failures"]
    assert (book["drawn"], book["labelled"]) == (1, 0), "C.1"


def test_a_codebook_made_for_another_system_is_left_to_do_once_somebody_has_used_it(store: Store) -> None:
    """Whoever audited one system was told to judge with the codebooks of seven others."""
    shown = {row["codebook"] for row in progress.coverage(store)}
    assert "failures" in shown
    assert not shown & {"dilemmas", "collaborative_errors", "team_faults", "mast", "trail", "decisive_step"}
    rate(store, [verdict("arm-0", None, "dilemmas", "absent", code="ambiguity", rater="eva")])
    assert "dilemmas" in {row["codebook"] for row in progress.coverage(store)}


def test_a_codebook_made_for_a_system_is_left_to_do_where_its_sessions_are(tmp_path: Path) -> None:
    mixed = [run("arm", 0, 1), run("arm", 1, 1).model_copy(update={"system": "rehac"})]
    store = holding(tmp_path / "mixed", mixed)
    assert "dilemmas" in {row["codebook"] for row in progress.coverage(store)}
    assert "dilemmas" not in {
        row["codebook"] for row in progress.coverage(store, Selection(system=("cogym",)))
    }
