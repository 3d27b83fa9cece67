"""Agreement, rates, comparisons and the validation page, on numbers that can be computed by hand."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.analyze import agreement, compare, rates, validate
from coaudit.pipeline.errors import SourceError, UsageError
from coaudit.pipeline.store import Store
from coaudit.schemas import Agreement
from tests.pipeline.stores import made, rate, take, verdict
from tests.pipeline.systems.cogym.folders import AGENT, BEGAN, USER, Log, performance

NAME = "env_0"
SAID = {
    "ann": "yyyyyynnnn",
    "bob": "yyyyynynnn",
    "judge": "yyyyyyynnn",
    "gold": "yyyyyynnnn",
}
"""What each rater said of the ten utterances of a session, yes or no."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A session of ten utterances, rated by two people and a judge, with the gold label."""
    folder = tmp_path_factory.mktemp("trust")
    log = Log()
    for number in range(10):
        log.say((AGENT, USER)[number % 2], f"Message {number}")
    found = made(folder / "workspace")
    take(found, log.folder(folder / "logs" / NAME))
    lines = [
        verdict(NAME, seq, "initiative", {"y": "yes", "n": "no"}[label], rater=rater, rater_kind=_kind(rater))
        for rater, labels in SAID.items()
        for seq, label in enumerate(labels, start=2)
    ]
    assert rate(found, lines).imported == 40
    return found


def _kind(rater: str) -> str:
    return "llm" if rater == "judge" else "human"


def value(found: list[Agreement], coefficient: str, *raters: str) -> float | None:
    (row,) = [r for r in found if r.coefficient == coefficient and (not raters or r.raters == raters)]
    return row.value


def test_agreement_of_two_people_by_hand(store: Store) -> None:
    people = [row for row in agreement.of_workspace(store) if set(row.raters) == {"ann", "bob"}]
    # 8 of 10 agree, both say yes 6 times: chance 0.52; alpha's expected disagreement is 192/380.
    for coefficient, expected in {
        "percent_agreement": 0.8,
        "cohen_kappa": 0.28 / 0.48,
        "fleiss_kappa": 0.28 / 0.48,
        "krippendorff_alpha": 1 - 0.2 * 380 / 192,
        "gwet_ac1": 0.32 / 0.52,
        "pabak": 0.6,
    }.items():
        assert value(people, coefficient) == pytest.approx(expected), coefficient
    assert {(row.n_units, row.n_ratings) for row in people} == {(10, 20)}


def test_agreement_of_a_judge_with_people_by_hand(store: Store) -> None:
    found = agreement.of_workspace(store)
    # 9 of 10 with each of them; the judge says yes 7 times: chance 0.54.
    kappa = 0.36 / 0.46
    assert value(found, "cohen_kappa", "judge", "ann") == pytest.approx(kappa)
    assert value(found, "cohen_kappa", "judge", "bob") == pytest.approx(kappa)
    (mean,) = [row for row in found if row.coefficient == "mean_judge_human_kappa"]
    assert mean.value == pytest.approx(kappa)
    assert value(found, "cohen_kappa", "judge", "gold") == pytest.approx(kappa)


def test_disagreements_are_the_units_to_discuss(store: Store) -> None:
    found = agreement.disagreements(store)
    assert [(row["event"], row["labels"]["ann"], row["labels"]["bob"]) for row in found] == [
        (7, "yes", "no"),
        (8, "no", "yes"),
    ]


def test_the_judges_own_rate_stands_beside_the_one_of_people(store: Store) -> None:
    (row,) = rates.rates(store)
    assert (row.judge, row.n_human, row.n_judged) == ("judge", 10, 10)
    assert row.judge_rate == pytest.approx(0.7)
    assert row.rate == pytest.approx(0.6)
    assert row.low is not None and row.high is not None and row.low <= 0.6 <= row.high
    with pytest.raises(UsageError, match="no judge 'bob', expected one of judge"):
        rates.rates(store, judge="bob")
    with pytest.raises(UsageError, match="unknown estimator 'best'"):
        rates.rates(store, estimator="best")


def test_the_page_on_a_judge_names_its_errors(store: Store) -> None:
    page = validate.validate(store, "judge")
    (code,) = page["codes"]
    assert (code["n_judged"], code["n_both"], code["n_errors"], code["n_unclear"]) == (10, 10, 0, 0)
    (kind,) = code["errors"]
    assert (kind["people"], kind["judge"], kind["n"]) == ("no", "yes", 1)
    assert [example["text"] for example in kind["examples"]] == ["Message 6"]
    yes = next(one for one in code["confusion"]["classes"] if one["label"] == "yes")
    shown = {name: yes[name]["value"] for name in ("sensitivity", "specificity", "ppv", "npv")}
    assert shown == pytest.approx({"sensitivity": 1, "specificity": 0.75, "ppv": 6 / 7, "npv": 1})
    assert "\n".join(validate.lines(page)).startswith("Judge judge")
    with pytest.raises(UsageError, match="no ratings by judge 'ann'"):
        validate.validate(store, "ann")


def test_a_codebook_that_is_not_there_names_the_choices(store: Store) -> None:
    for ask in (agreement.of_workspace, agreement.disagreements, rates.rates):
        with pytest.raises(UsageError, match="unknown codebook 'tone', expected one of"):
            ask(store, ["tone"])


# Comparisons.


def test_groups_are_compared_in_pairs_where_they_share_instances(tmp_path: Path) -> None:
    store = made(tmp_path / "workspace")
    scores = {"a": (0.5, 0.6, 0.7), "b": (0.6, 0.8, 0.9)}
    for arm, (condition, given) in enumerate(scores.items()):
        for instance, score in enumerate(given):
            log = Log(began=BEGAN + timedelta(hours=10 * arm + instance)).write(AGENT, "Plan").finish()
            files = performance("Plan", performance_rating=score)
            log.folder(tmp_path / "logs" / condition / f"env_travel_planning_{instance}", files)
    take(store, tmp_path / "logs")
    (row,) = compare.compare(store, "condition", metrics=["task_performance"])
    assert row["groups"] == ["a", "b"]
    assert row["effect"] == pytest.approx(-0.5 / 3)
    assert (row["n"], "paired" in row["test"]) == (3, True), "three pairs"
    assert "task_performance" in row["statement"]
    with pytest.raises(UsageError, match="no metric or code 'speed', expected one of"):
        compare.compare(store, "condition", metrics=["speed"])
    with pytest.raises(UsageError, match="cannot group by 'colour'"):
        compare.compare(store, "colour")
    with pytest.raises(UsageError, match="--correction must be one of holm"):
        compare.compare(store, "condition", correction="none")


# Agreement from a table of other people's.


def table(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_is_read_whatever_the_order_of_its_columns_and_with_others_beside(tmp_path: Path) -> None:
    lines = ["note,label,rater,unit"]
    lines += [
        f'"x, y",{label},{rater},{unit}' for rater in ("ann", "bob") for unit, label in enumerate(SAID[rater])
    ]
    found = agreement.of_csv(table(tmp_path / "r.csv", "\ufeff" + "\r\n".join(lines)), ["y", "n"], "nominal")
    assert value(found, "cohen_kappa") == pytest.approx(0.28 / 0.48)
    assert value(found, "krippendorff_alpha") == pytest.approx(1 - 0.2 * 380 / 192)
    assert {row.code for row in found} == {"r"}


def test_an_empty_label_in_a_csv_is_missing(tmp_path: Path) -> None:
    text = "unit,rater,label\n1,ann,y\n1,bob,y\n2,ann,n\n2,bob,\n3,ann,n\n3,bob,n\n"
    found = agreement.of_csv(table(tmp_path / "r.csv", text), [], "nominal")
    assert value(found, "percent_agreement") == 1


def test_constant_data_has_no_coefficient_but_a_reason(tmp_path: Path) -> None:
    text = "unit,rater,label\n1,ann,y\n1,bob,y\n2,ann,y\n2,bob,y\n"
    found = agreement.of_csv(table(tmp_path / "r.csv", text), [], "nominal")
    for row in found:
        if row.coefficient in ("cohen_kappa", "fleiss_kappa", "krippendorff_alpha"):
            assert row.value is None and row.reason, row.coefficient
    assert value(found, "percent_agreement") == 1


@pytest.mark.parametrize(
    ("text", "labels", "message"),
    [
        ("unit,rater\n1,ann\n", "", r"r\.csv:1: columns must be unit,rater,label; 'label' is missing"),
        ("", "", r"r\.csv:1: columns must be unit,rater,label"),
        ("unit,rater,label\n1,ann,y\n1,ann,n\n", "", r"r\.csv:3: 'ann' rated '1' before, in line 2"),
        ("unit,rater,label\n1,ann,y\n1,bob,z\n", "y,n", r"r\.csv:3: label must be one of y, n, got 'z'"),
        ("unit,rater,label\n1,ann\n", "", r"r\.csv:2: fewer cells than columns"),
    ],
)
def test_a_csv_with_something_wrong_is_named_by_line(
    tmp_path: Path, text: str, labels: str, message: str
) -> None:
    with pytest.raises(SourceError, match=message):
        agreement.of_csv(table(tmp_path / "r.csv", text), [x for x in labels.split(",") if x], "nominal")


def test_a_csv_that_is_no_text_or_a_level_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SourceError, match=r"r\.csv: not UTF-8"):
        agreement.of_csv(tmp_path / "r.csv", [], "nominal")
    good = table(tmp_path / "good.csv", "unit,rater,label\n1,ann,1\n1,bob,2\n")
    with pytest.raises(UsageError, match="--level must be nominal, ordinal or interval, got 'ratio'"):
        agreement.of_csv(good, [], "ratio")


def test_ordinal_labels_are_ordered_as_numbers(tmp_path: Path) -> None:
    rows = [("1", "2", "10"), ("1", "10", "10")]
    lines = ["unit,rater,label"]
    lines += [f"{unit},{rater},{label}" for rater, said in enumerate(rows) for unit, label in enumerate(said)]
    found: list[Any] = agreement.of_csv(table(tmp_path / "r.csv", "\n".join(lines)), [], "ordinal")
    # Ranks 0, 1, 2 against 0, 2, 2. Linear weights: observed disagreement (1/2)/3 = 1/6. Expected, of the
    # nine pairs 0-0, 0-2, 0-2, 1-0, 1-2, 1-2, 2-0, 2-2, 2-2: (0 + 1 + 1 + 1/2 + 1/2 + 1/2 + 1)/9 = 1/2.
    assert value(found, "cohen_kappa_linear") == pytest.approx(1 - (1 / 6) / (4.5 / 9))
