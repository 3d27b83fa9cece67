"""Agreement in a report: one row a codebook for the paper's table, all else behind the methods."""

from __future__ import annotations

from pathlib import Path

import pytest
from sklearn.metrics import cohen_kappa_score

from coaudit.pipeline import codebooks
from coaudit.pipeline.analyze import rates
from coaudit.pipeline.report import Number, Table, trust
from coaudit.pipeline.report.tables import count
from coaudit.pipeline.store import Store
from coaudit.schemas import Agreement, Event, Participant, Rate, Trajectory
from tests.pipeline.stores import holding, rate, verdict

LABELS = {
    "C.1": {"judge": "1100", "eva": "1101", "ann": "1001", "other": "11"},
    "C.2": {"judge": "0011", "eva": "0111", "ann": "0011", "other": "00"},
    # Everybody says no: kappa is not defined.
    "C.3": {"judge": "0000", "eva": "0000", "ann": "0000", "other": "00"},
}
KINDS = {"judge": "llm", "other": "llm", "eva": "human", "ann": "human"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = holding(tmp_path / "workspace", [_session(f"s{i}") for i in range(4)])
    lines = [
        verdict(f"s{i}", None, "failures", ("absent", "present")[int(said)], code=code, rater=who,
                rater_kind=KINDS[who])
        for code, raters in LABELS.items()
        for who, labels in raters.items()
        for i, said in enumerate(labels)
    ]  # fmt: skip
    lines += [
        verdict(f"s{i}", 0, "initiative", label, code="initiative", rater=who, rater_kind=KINDS[who])
        for who, labels in {"judge": "yyn", "eva": "yny"}.items()
        for i, label in enumerate({"y": "yes", "n": "no"}[sign] for sign in labels)
    ]
    rate(store, lines)
    return store


def _session(name: str) -> Trajectory:
    return Trajectory(
        id=name,
        native_id=name,
        source="log",
        system="cogym",
        participants=(Participant(name="Ann", kind="human"), Participant(name="Bot", kind="agent")),
        events=(Event(seq=0, actor="Bot", kind="message", text="Shall I?"),),
    )


def _row(table: Table, name: str) -> tuple[object, ...]:
    (row,) = (row for row in table.rows if row[0] == name)
    return row


def _kappa(code: str, one: str, two: str) -> float:
    return float(cohen_kappa_score(list(LABELS[code][one]), list(LABELS[code][two])))


@pytest.mark.long
def test_a_codebook_has_one_row_of_the_judge_that_shares_most_units_with_people(store: Store) -> None:
    table, *_ = trust.tables(store, trust.agreements(store), rates.rates(store))
    assert [row[0] for row in table.rows] == ["failures", "initiative"]
    _, codes, raters, kappa, fleiss, people, units = _row(table, "failures")
    assert codes == "2 of 26" and sorted(str(raters).split(" · ")) == ["ann", "eva", "judge"]
    pairs = [(_kappa(code, "judge", "eva") + _kappa(code, "judge", "ann")) / 2 for code in ("C.1", "C.2")]
    assert isinstance(kappa, Number) and kappa.value == pytest.approx(sum(pairs) / 2)
    among = [_kappa(code, "eva", "ann") for code in ("C.1", "C.2")]
    assert isinstance(people, Number) and people.value == pytest.approx(sum(among) / 2)
    assert isinstance(fleiss, Number) and not fleiss.interval, "a mean over codes has none"
    assert isinstance(units, Number) and units.value == 4


@pytest.mark.long
def test_a_codebook_of_one_code_keeps_its_interval_and_one_person_is_enough(store: Store) -> None:
    table, *_ = trust.tables(store, trust.agreements(store), rates.rates(store))
    _, codes, raters, kappa, _, people, units = _row(table, "initiative")
    assert (codes, raters, people) == ("1", "judge · eva", "")
    assert isinstance(kappa, Number) and kappa.interval
    assert kappa.value == pytest.approx(cohen_kappa_score(list("yyn"), list("yny")))
    assert isinstance(units, Number) and units.value == 3


def test_of_a_crowd_the_first_is_named_and_codes_count_on_which_all_have_a_kappa() -> None:
    who = ("judge", *(f"worker_{n:02}" for n in range(60)))

    def row(coefficient: str, code: str, value: float | None) -> Agreement:
        return Agreement(
            codebook="failures", code=code, coefficient=coefficient, raters=who, value=value,
            n_units=120, n_ratings=480, reason="kappas of few units lie low",
        )  # fmt: skip

    rows = [row("fleiss_kappa", "C.1", 0.6), row("fleiss_kappa", "C.2", 0.5)]
    rows += [row("mean_cohen_kappa", code, None) for code in ("C.1", "C.2")]
    _, codes, raters, kappa, fleiss, *_ = trust._codebook(codebooks.load("failures"), rows, who[1:])
    assert (codes, raters) == ("2 of 26", "judge · 60 more")
    assert isinstance(kappa, Number) and isinstance(fleiss, Number)
    assert kappa.value is None and fleiss.value == pytest.approx(0.55)


def test_codes_count_where_any_kappa_is_defined_and_each_mean_is_over_its_own() -> None:
    """Where each pair shares units of one label alone, all of them have a kappa and no pair has."""

    def row(coefficient: str, code: str, value: float | None) -> Agreement:
        raters = ("x", "y", "z")
        return Agreement(
            codebook="failures", code=code, coefficient=coefficient, raters=raters, value=value, n_units=20,
            n_ratings=40, reason=None if value else "nothing to compare",
        )  # fmt: skip

    rows = [row("mean_cohen_kappa", "C.1", None), row("mean_cohen_kappa", "C.2", 0.25)]
    rows += [row("fleiss_kappa", "C.1", 1.0), row("fleiss_kappa", "C.2", 0.5)]
    _, codes, _, kappa, fleiss, *_ = trust._codebook(codebooks.load("failures"), rows, ("x", "y", "z"))
    assert codes == "2 of 26" and isinstance(kappa, Number) and isinstance(fleiss, Number)
    assert (kappa.value, fleiss.value) == (0.25, 0.75)
    assert "Codes counts those where any is defined" in trust.codebook_table(()).caption


def test_people_are_compared_on_the_codes_of_the_judge_s_present_version() -> None:
    """An earlier version that had rated a unit more was the judge; people's mean was over codes that no judge
    rated."""

    def row(coefficient: str, code: str, raters: tuple[str, ...], value: float, units: int = 20) -> Agreement:
        return Agreement(
            codebook="failures", code=code, coefficient=coefficient, raters=raters, value=value,
            n_units=units, n_ratings=40,
        )  # fmt: skip

    people = ("ann", "bob")
    rows = [row("fleiss_kappa", code, people, 0.5) for code in ("C.1", "C.2")]
    rows += [row("mean_cohen_kappa", "C.1", people, 0.5), row("mean_cohen_kappa", "C.2", people, 0.9)]
    for judge, value, units in (("judge", 0.6, 20), ("judge (v1)", 0.2, 21)):
        rows.append(row("fleiss_kappa", "C.1", (judge, *people), value, units))
        rows.append(row("mean_judge_human_kappa", "C.1", (judge, *people), value, units))
    line = trust._codebook(codebooks.load("failures"), rows, people)
    assert line[1:3] == ("1 of 26", "judge · ann · bob")
    assert [cell.value for cell in line[3:6] if isinstance(cell, Number)] == [0.6, 0.6, 0.5]


@pytest.mark.long
def test_every_code_and_every_judge_stands_in_the_appendix(store: Store) -> None:
    table, _, every = trust.tables(store, trust.agreements(store), rates.rates(store))
    assert every.appendix and not table.appendix
    sets = {(str(row[0]), *sorted(str(row[1]).split(" · "))) for row in every.rows}
    assert {("C.1", "judge", "other"), ("C.1", "ann", "eva", "other"), ("C.3", "ann", "eva")} <= sets


@pytest.mark.long
def test_on_a_scale_kappa_knows_how_far_labels_lie_apart(store: Store) -> None:
    """The next grade was as wrong as the last, beside an answer on the same page by which it was not."""
    said = {"judge": "1234", "eva": "1244", "ann": "2234"}
    with store.writing() as connection:
        connection.execute("UPDATE trajectories SET task = 'related_work'")
    rate(
        store,
        [
            verdict(f"s{i}", None, "related_work_quality", grade, code="quality", rater=who,
                    rater_kind=KINDS[who])
            for who, grades in said.items() for i, grade in enumerate(grades)
        ],
    )  # fmt: skip
    short, _, every = trust.tables(store, trust.agreements(store), [])

    def quadratic(one: str, two: str) -> float:
        grades = [1, 2, 3, 4, 5]
        own = (list(map(int, said[name])) for name in (one, two))
        return float(cohen_kappa_score(*own, labels=grades, weights="quadratic"))

    judge, people = (quadratic("judge", "eva") + quadratic("judge", "ann")) / 2, quadratic("eva", "ann")
    row = _row(short, "related_work_quality")
    assert [cell.value for cell in (row[3], row[5]) if isinstance(cell, Number)] == pytest.approx(
        [judge, people]
    )
    shown = {row[1]: row[3] for row in every.rows if row[0] == "quality"}
    assert {who: cell.value for who, cell in shown.items() if isinstance(cell, Number)} == pytest.approx(
        {"judge · ann · eva": judge, "ann · eva": people}
    )


def test_a_judges_rate_has_a_reason_only_where_there_is_none(store: Store) -> None:
    found = rates.rates(store)
    own = [trust.rate_table([row]).rows[0][2] for row in found if row.n_human]
    assert all(isinstance(cell, Number) and (cell.value is None) == (cell.reason is not None) for cell in own)
    assert any(isinstance(cell, Number) and cell.value is not None for cell in own)


def test_a_cost_is_written_out_however_large() -> None:
    assert [count(cost).text for cost in (0.0123, 12.5, 40.0, 12345.678)] == [
        "0.0123",
        "12.5",
        "40",
        "12,345.68",
    ]


def test_what_people_left_open_stands_beside_what_they_labelled() -> None:
    def of(unclear: int, skipped: int) -> Rate:
        return Rate(codebook="failures", code="C.1", judge_rate=None, rate=0.5, estimator=None, design=None,
                    n_units=9, n_human=4, n_judged=0, n_unclear=unclear, n_skipped=skipped)  # fmt: skip

    sizes = ("Units", "Judged", "Labelled")
    assert trust.rate_table([of(0, 0)]).columns[5:] == sizes
    table = trust.rate_table([of(0, 2), of(0, 0)])
    assert table.columns[5:] == (*sizes, "Skipped")
    assert [row[5:] for row in table.rows] == [
        (count(9), count(0), count(4), count(2)),
        (count(9), count(0), count(4), count(0)),
    ]
    assert trust.rate_table([of(1, 2)]).columns[5:] == (*sizes, "Unclear", "Skipped", trust.RANGE)
    ranged = of(1, 0).model_copy(update={"rate_if_unclear_absent": 0.4, "rate_if_unclear_present": 0.6})
    table = trust.rate_table([ranged, of(0, 0)])
    assert [row[-1] for row in table.rows] == ["40 % – 60 %", ""] and "left out" in table.caption
    named = of(0, 0).model_copy(update={"estimator": "post_stratified"})
    assert trust.rate_table([named]).rows[0][4] == "post stratified", "as the methods have it"
