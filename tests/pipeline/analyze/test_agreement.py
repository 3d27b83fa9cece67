"""Agreement, rates, comparisons and the validation page, on numbers that can be computed by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coaudit.pipeline import codebooks
from coaudit.pipeline.analyze import agreement, compare, matrices, rates, validate
from coaudit.pipeline.analyze.metrics import metrics, trajectory_metrics
from coaudit.pipeline.analyze.people import lines as people_lines
from coaudit.pipeline.analyze.people import people as validate_people
from coaudit.pipeline.errors import SourceError, UsageError
from coaudit.pipeline.ingest import imports
from coaudit.pipeline.ingest.rebuild import rebuild
from coaudit.pipeline.judge import Scope, jury
from coaudit.pipeline.report import trust
from coaudit.pipeline.store import Selection, Store
from coaudit.pipeline.store.ledgers import samples
from coaudit.schemas import Agreement
from tests.judges.teams import team
from tests.pipeline.stores import holding, made, rate, rows, take, verdict, write_lines
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
    return "llm" if "judge" in rater or rater.startswith("late") else "human"


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


def test_disagreements_between_people_come_before_those_of_judges() -> None:
    judges = {"m", "r"}
    assert agreement._between({"ann": "yes", "eva": "no", "m": "yes"}, judges) == "people"
    assert agreement._between({"ann": "yes", "m": "no"}, judges) == "judge and people"
    assert agreement._between({"gold": "yes", "m": "no"}, judges) == "judge and people"
    assert agreement._between({"m": "yes", "r": "no"}, judges) == "judges"
    assert agreement.BETWEEN[0] == "people"


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
    with pytest.raises(UsageError, match="by judge 'ann' on these codebooks; there are ratings by judge"):
        validate.validate(store, "ann")


def test_a_codebook_that_is_not_there_names_the_choices(store: Store) -> None:
    for ask in (agreement.of_workspace, agreement.disagreements, rates.rates):
        with pytest.raises(UsageError, match="unknown codebook 'tone', expected one of"):
            ask(store, ["tone"])


# Comparisons.


def arms(tmp_path: Path, scores: dict[str, list[float]]) -> Store:
    """Sessions of two conditions; the n-th of each ran the n-th instance."""
    store = made(tmp_path / "workspace")
    for arm, (condition, given) in enumerate(scores.items()):
        for instance, score in enumerate(given):
            log = Log(began=BEGAN + timedelta(hours=100 * arm + instance)).write(AGENT, "Plan").finish()
            files = performance("Plan", performance_rating=score)
            log.folder(tmp_path / "logs" / condition / f"env_travel_planning_{instance}", files)
    take(store, tmp_path / "logs")
    return store


def test_groups_are_compared_in_pairs_where_they_share_instances(tmp_path: Path) -> None:
    scores = {"a": [0.5, 0.6, 0.7], "b": [0.6, 0.8, 0.9]}
    store = arms(tmp_path, scores)
    (row,) = compare.compare(store, "condition", metrics=["task_performance"])
    assert (row["groups"], row["system"], row["question"]) == (["a", "b"], "cogym", "metrics")
    assert row["effect"] == pytest.approx(-0.5 / 3)
    assert (row["n"], row["pairs"], row["alone"]) == (6, 3, (0, 0))
    # Three pairs have eight arrangements: the most extreme has p = 1/8.
    assert row["p_value"] is None and "with 3 pairs like these, no outcome" in row["reason"]
    assert "task_performance" in row["statement"] and "3 instances paired" in row["statement"]
    with pytest.raises(UsageError, match="no metric or code 'speed', expected one of"):
        compare.compare(store, "condition", metrics=["speed"])
    with pytest.raises(UsageError, match="field or a tag 'colour'"):
        compare.compare(store, "colour")
    with pytest.raises(UsageError, match="--correction must be one of holm"):
        compare.compare(store, "condition", correction="none")
    with pytest.raises(UsageError, match="--estimator must be one of post_stratified, ppi"):
        compare.compare(store, "condition", estimator="best")


def test_a_pair_is_compared_alone_and_corrected_for_its_own_tests(tmp_path: Path) -> None:
    scores = {"a": [0.1, 0.5, 0.9, 1.0], "b": [0.0, 0.2, 0.3, 0.3], "c": [0.2] * 4}
    store = arms(tmp_path, scores)
    every = [row for row in compare.compare(store, "condition") if row["groups"] == ["a", "b"]]
    alone = compare.compare(store, "condition", pair=("a", "b"))
    assert [row["groups"] for row in alone] == [["a", "b"]] * len(every)
    same = ("metric", "first", "second", "effect", "low", "high", "n", "pairs")
    assert [[row[key] for key in same] for row in alone] == [[row[key] for key in same] for row in every]
    turned = compare.compare(store, "condition", pair=("b", "a"))
    assert [(row["groups"], row["first"], row["second"]) for row in turned] == [
        (["b", "a"], row["second"], row["first"]) for row in alone
    ]
    assert [row["effect"] for row in turned if row["effect"]] == [
        -row["effect"] for row in alone if row["effect"]
    ]
    only = Selection(condition=("c",))
    with pytest.raises(UsageError, match="no trajectory is in group 'a'"):
        compare.compare(store, "condition", pair=("a", "c"), only=only)


def test_a_comparison_says_of_each_group_what_metrics_says(tmp_path: Path) -> None:
    store = arms(tmp_path, {"a": [0.1, 0.5, 0.9, 1.0], "b": [0.0, 0.2, 0.3, 0.3, 0.8]})
    with store.writing() as connection:  # pooled: a ratio whose denominators differ
        query = "UPDATE measured SET weight = 1 + 9 * value WHERE metric = 'task_performance'"
        connection.execute(query)
    said = {
        (row.metric, (row.group or {})["condition"]): row.value
        for row in metrics(store, by=["condition"])
        if row.scoring != "human"
    }
    rows = {row["metric"]: row for row in compare.compare(store, "condition")}
    assert said["task_performance", "a"] == pytest.approx((0.1 * 1.9 + 0.5 * 5.5 + 0.9 * 9.1 + 10) / 26.5)
    for name in ("task_performance", "collab_score/automatic", "error_rate"):
        own = rows[name]
        metric = name.split("/")[0]
        assert own["first"] == pytest.approx(said[metric, "a"]), name
        assert own["second"] == pytest.approx(said[metric, "b"]), name


def test_the_groups_of_one_system_are_not_compared_with_anothers(tmp_path: Path) -> None:
    store = arms(tmp_path, {"a": [0.1, 0.5, 0.9], "b": [0.0, 0.2, 0.3]})
    with store.writing() as connection:
        connection.execute("UPDATE trajectories SET system = 'rehac' WHERE condition = 'b'")
    assert compare.compare(store, "condition") == []
    across = compare.compare(store, "system", metrics=["task_performance"])
    assert [(row["groups"], row["system"]) for row in across] == [(["cogym", "rehac"], None)]


@pytest.mark.long
def test_codes_are_compared_by_corrected_rates_where_people_labelled(tmp_path: Path) -> None:
    """The judge flags half of arm b for nothing; people find F.1 in a quarter of either arm."""
    size = 16
    store = arms(tmp_path, {"a": [0.5] * size, "b": [0.5] * size})
    names = {
        condition: [
            row["id"]
            for row in rows(store, "SELECT id FROM trajectories WHERE condition = ? ORDER BY id", condition)
        ]
        for condition in "ab"
    }
    code, other = (
        row["code"] for row in rows(store, "SELECT code FROM codebooks WHERE name = 'failures' LIMIT 2")
    )
    judged = [
        verdict(name, None, "failures", "present" if k < 4 + 8 * (arm == "b") else "absent", code=code)
        | {"rater": "judge", "rater_kind": "llm"}
        for arm, own in names.items()
        for k, name in enumerate(own)
    ]
    assert rate(store, judged).imported == 2 * size
    (raw,) = compare.compare(store, "condition", metrics=[code])
    assert (raw["first"], raw["second"]) == (0.25, 0.75)
    assert raw["basis"] == "judge only: its errors are not corrected" and raw["p_value"] < 0.05
    assert f"{code} (judge) [judge only: its errors are not corrected]: 0.250 (a)" in raw["statement"]
    beside = [verdict(name, None, "failures", "absent", code=other) for name in names["a"] + names["b"]]
    assert rate(store, beside).imported == 2 * size
    (still,) = compare.compare(store, "condition", metrics=[code])
    assert still == raw, "people labelled another code"
    labelled = [
        verdict(name, None, "failures", "present" if k < 4 else "absent", code=code, rater_kind="human")
        for own in names.values()
        for k, name in enumerate(own)
        if k % 2 == 0 or k == 11
    ]
    assert rate(store, labelled).imported == len(labelled)
    (row,) = compare.compare(store, "condition", metrics=[code])
    assert (row["rater"], row["basis"]) == ("judge", "corrected by people's labels")
    a, b = row["sizes"]
    assert row["n"] == a + b == len(labelled) and f", n={a} + {b} labelled units" in row["statement"]
    # Of arm b's 12 flagged ones 7 were labelled and 2 of those are: 12/16 · 2/7.
    assert row["first"] == pytest.approx(0.25) and row["second"] == pytest.approx(0.75 * 2 / 7)
    assert row["p_value"] > 0.5
    (own,) = compare.compare(store, "condition", metrics=[code], rater="ann")
    assert own["basis"] == "the rater's own labels"


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


def test_an_empty_label_in_a_csv_is_missing_and_spaces_are_nothing(tmp_path: Path) -> None:
    text = "unit,rater,label\n1,ann,y\n1,bob ,y\n2,ann,n\n2,bob,\n 3,ann,n\n3,bob,n\n"
    found = agreement.of_csv(table(tmp_path / "r.csv", text), [], "nominal")
    assert value(found, "percent_agreement") == 1
    assert {(row.raters, row.n_units) for row in found} == {(("ann", "bob"), 2)}


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("labels", [[], ["1", "2", "3"]])
def test_a_number_is_one_label_however_it_is_written(tmp_path: Path, level: str, labels: list[str]) -> None:
    lines = [f"{unit},ann,{n}\n{unit},bob,{n}.0" for unit, n in enumerate((1, 2, 3, 1))]
    found = agreement.of_csv(
        table(tmp_path / "r.csv", "\n".join(["unit, rater, label", *lines])), labels, level
    )
    assert {value(found, name) for name in ("percent_agreement", "cohen_kappa", "krippendorff_alpha")} == {1}


def test_case_makes_no_other_label(tmp_path: Path) -> None:
    path = table(tmp_path / "r.csv", "unit,rater,label\n1,ann,Yes\n1,bob,yes\n2,ann,no\n2,bob,NO\n")
    for labels in ([], ["yes", "no"]):
        assert value(agreement.of_csv(path, labels, "nominal"), "cohen_kappa") == 1
    with pytest.raises(UsageError, match="--labels must differ by more than their case, got Yes, yes"):
        agreement.of_csv(path, ["Yes", "yes"], "nominal")


def test_an_accented_letter_is_one_whether_it_has_one_character_or_two(tmp_path: Path) -> None:
    one, two = "\u00e9", "\u0065\u0301"
    rows = f"1,ann,{one}\n1,bob,{two}\n2,ann,no\n2,bob,no\n{one},ann,no\n{two},bob,{two}\n"
    path = table(tmp_path / "r.csv", f"unit,rater,label\n{rows}")
    for labels in ([], [two, "no"]):
        assert value(agreement.of_csv(path, labels, "nominal"), "percent_agreement") == pytest.approx(2 / 3)


@pytest.mark.parametrize(("label", "level"), [("y", "nominal"), ("0", "ordinal"), ("0", "interval")])
def test_constant_data_has_no_coefficient_but_a_reason(tmp_path: Path, label: str, level: str) -> None:
    text = f"unit,rater,label\n1,ann,{label}\n1,bob,{label}\n2,ann,{label}\n2,bob,{label}\n"
    found = agreement.of_csv(table(tmp_path / "r.csv", text), [], level)
    for row in found:
        if row.coefficient in ("cohen_kappa", "fleiss_kappa", "krippendorff_alpha"):
            assert row.value is None and row.reason, row.coefficient
    assert value(found, "percent_agreement") == 1


@pytest.mark.parametrize(
    ("text", "labels", "message"),
    [
        ("unit,rater\n1,ann\n", "", r"r\.csv:1: columns must be unit,rater,label; 'label' is missing"),
        ("", "", r"r\.csv: no rows in it"),
        ("unit,rater,label,label\n1,ann,y,n\n", "", r"r\.csv: the first line has the column 'label' 2 times"),
        ('unit,rater,label\n1,ann,y\n1,bob,"y\n2,ann,y\n', "", r"r\.csv:3: a quotation mark opens a cell"),
        ("unit,rater,label\n1,ann,y\n1,ann,n\n", "", r"r\.csv:3: 'ann' rated '1' before, in line 2"),
        ("unit,rater,label\n1,ann,y\n1,bob,z\n", "y,n", r"r\.csv:3: label must be one of y, n, got 'z'"),
        ("unit,rater,label\n1,ann\n", "", r"r\.csv:2: 2 cells where the first line names 3"),
        ("unit,rater,label\n1,ann,\n1,bob,\n", "", r"r\.csv: no row has a label"),
    ],
)
def test_a_csv_with_something_wrong_is_named_by_line(
    tmp_path: Path, text: str, labels: str, message: str
) -> None:
    with pytest.raises(SourceError, match=message):
        agreement.of_csv(table(tmp_path / "r.csv", text), [x for x in labels.split(",") if x], "nominal")


@pytest.mark.parametrize(("sign", "encoding"), [(";", "utf-8-sig"), ("\t", "utf-16"), (",", "utf-8")])
def test_a_csv_is_read_as_spreadsheets_write_it(tmp_path: Path, sign: str, encoding: str) -> None:
    rows = ["unit,rater,label", "1,Zoë,yes", "1,bob,yes", "2,Zoë,no", "2,bob,"]
    path = tmp_path / "r.csv"
    path.write_text("\n".join(rows).replace(",", sign) + "\n", encoding=encoding)
    found = agreement.of_csv(path, ["yes", "no"], "nominal")
    assert {(row.raters, row.n_units) for row in found if row.coefficient == "cohen_kappa"} == {
        (("Zoë", "bob"), 1)
    }


def test_a_csv_that_is_no_text_or_a_level_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes(b"unit\xff")
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


def test_a_scale_of_words_has_no_order_unless_it_is_given(tmp_path: Path) -> None:
    path = table(
        tmp_path / "r.csv", "unit,rater,label\n1,a,low\n1,b,medium\n2,a,high\n2,b,high\n3,a,low\n3,b,low"
    )
    with pytest.raises(UsageError, match="--level ordinal needs --labels in their order"):
        agreement.of_csv(path, [], "ordinal")
    assert agreement.of_csv(path, ["low", "medium", "high"], "ordinal")


def test_weighted_kappas_are_of_scales_alone(tmp_path: Path) -> None:
    path = table(
        tmp_path / "r.csv", "unit,rater,label\n1,a,red\n1,b,blue\n2,a,red\n2,b,red\n3,a,blue\n3,b,blue"
    )
    assert not {row.coefficient for row in agreement.of_csv(path, [], "nominal")} & {
        "cohen_kappa_linear",
        "cohen_kappa_quadratic",
    }


# Which units a figure stands on.


def labelled(folder: Path, said: dict[str, str], *, probability: dict[int, float] | None = None) -> Store:
    """A session of utterances that raters label y, n, u(nclear), s(kip) or never see (–); some are drawn."""
    log = Log()
    for number in range(max(map(len, said.values()))):
        log.say((AGENT, USER)[number % 2], f"Message {number}")
    found = made(folder / "workspace")
    take(found, log.folder(folder / "logs" / NAME))
    words = {"y": "yes", "n": "no", "u": "unclear"}
    skipped = {"label": None, "error": "skipped"}
    lines = [
        verdict(NAME, seq, "initiative", words.get(label, ""), rater=rater, rater_kind=_kind(rater))
        | (skipped if label == "s" else {})
        for rater, labels in said.items()
        for seq, label in enumerate(labels, start=2)
        if label != "–"
    ]
    assert not rate(found, lines).quarantined
    if probability:
        sampled(found, "drawn", probability)
    return found


def sampled(
    store: Store,
    name: str,
    drawn: dict[int, float],
    frame: dict[int, float] | None = None,
    codebook: str = "initiative",
    kind: str = "utterance",
) -> None:
    """Write a sample that drew these units, by number, with these probabilities."""
    query = """
        SELECT u.trajectory_id, u.event, u.hash FROM units u JOIN trajectories t ON t.id = u.trajectory_id
        WHERE u.kind = ? AND NOT coalesce(u.event, 2) < 2 ORDER BY t.native_id, u.event
    """
    units = rows(store, query, kind)
    design = samples.Design(
        name=name,
        codebooks={},
        method="neyman",
        unit="unit",
        size=len(drawn),
        seed=0,
        overlap=1,
        annotators=2,
        created="",
        coaudit="",
    )
    of = [
        samples.SampledUnit(
            codebook=codebook,
            trajectory=units[number]["trajectory_id"],
            event=units[number]["event"],
            unit_hash=units[number]["hash"],
            probability=probability,
        )
        for number, probability in drawn.items()
    ]
    frames = [
        samples.Frame(
            frame=codebook,
            probability=probability,
            units={units[number]["trajectory_id"]: (units[number]["event"],)},
        )
        for number, probability in (frame or {}).items()
    ]
    samples.save(store.workspace, samples.Sample(design=design, units=tuple(of), frames=tuple(frames)))


def people(found: list[Agreement], coefficient: str, *raters: str) -> list[Agreement]:
    return [row for row in found if row.coefficient == coefficient and row.raters == raters]


UNEVEN = {"ann": "yyyynnnnnn", "bob": "yynnnnnyyn", "judge": "yyyynnnnyn"}
CHANCES = dict(enumerate([1.0, 1.0, 1.0, 1.0, 0.25, 0.25, 0.25, 0.25, 0.25]))


@pytest.mark.long
def test_a_label_outside_the_samples_leaves_the_weights_of_the_others_alone(tmp_path: Path) -> None:
    apart = labelled(tmp_path / "a", UNEVEN, probability=CHANCES)
    alone = labelled(
        tmp_path / "b",
        {**{r: s[:9] for r, s in UNEVEN.items()}, "judge": UNEVEN["judge"]},
        probability=CHANCES,
    )
    found, without = agreement.of_workspace(apart), agreement.of_workspace(alone)
    inside, outside = people(found, "percent_agreement", "ann", "bob")
    (only,) = people(without, "percent_agreement", "ann", "bob")
    # weights 1 and 4: agreed 1 1 0 0 | 1 1 1 0 0
    assert inside.value == only.value == pytest.approx((2 + 3 * 4) / (4 + 5 * 4))
    assert (inside.n_units, outside.n_units, outside.value) == (9, 1, 1.0)
    assert inside.population == "units that two people labelled; units of the samples, weighted by 1/π"
    assert outside.population is not None and outside.population.endswith("outside the samples, unweighted")
    confused = agreement.confusions(apart)
    assert [sum(map(sum, row["counts"])) for row in confused] == [9, 1]
    assert confused[0]["classes"] == agreement.confusions(alone)[0]["classes"]
    page = validate.validate(apart, "judge")["codes"][0]
    assert page["confusion"] == {k: v for k, v in confused[0].items() if k in page["confusion"]}
    assert page["outside_the_samples"]["population"] == "labelled units outside the samples, unweighted"


@pytest.mark.long
def test_a_rate_leaves_out_labels_from_outside_the_samples_and_says_so(tmp_path: Path) -> None:
    store = labelled(tmp_path, UNEVEN, probability=CHANCES)
    (row,) = rates.rates(store)
    # judge yes: 1 1 ½ ½ of weight 1, ½ of weight 4; judge no: 0 0 0 ½ of one weight. Five units yes, five no.
    assert row.rate == pytest.approx((5 * (3 + 2) / 8 + 5 * 0.125) / 10)
    assert row.n_human == 9
    assert row.design is not None and "; 1 labelled unit outside the samples left out" in row.design


def test_ties_between_two_people_count_as_the_mean_of_their_labels(tmp_path: Path) -> None:
    store = labelled(tmp_path, {"ann": "yyyynnnnnn", "bob": "ynnn–nnnnn"})
    (row,) = rates.rates(store)
    assert row.rate == pytest.approx((1 + 0.5 * 3) / 10)
    assert row.n_human == 10
    assert row.design is not None and "3 on which people differ count as the mean" in row.design


def test_a_judge_is_held_against_gold_and_where_there_is_none_against_what_people_agree_on(
    tmp_path: Path,
) -> None:
    # bob and ann dispute units 2 to 4; gold settles two of them
    said = {"ann": "yyyyynnnnn", "bob": "yynnnnnnnn", "gold": "––yn", "judge": "yynynnnnnn"}
    found = agreement.of_workspace(labelled(tmp_path, said))
    (row,) = people(found, "percent_agreement", "judge", "gold")
    assert row.n_units == 9 and row.value == pytest.approx(7 / 9)
    assert row.population == "settled units: 2 by gold, 7 on which people agree (1 disputed ones left out)"
    assert row.n_disputed == 1
    (between,) = people(found, "percent_agreement", "ann", "bob")
    assert between.population == "units that two people labelled"


@pytest.mark.parametrize(
    ("gold", "coefficient"),
    [("––yn", "mean_judge"), ("––yny", "mean_judge"), ("", "mean_judge"), ("––yny–––––yn", "cohen_kappa")],
)
def test_a_judge_is_held_against_people_unless_gold_has_more_units(
    tmp_path: Path, gold: str, coefficient: str
) -> None:
    """Settled labels err less than a person's: the kappa with them stood far above people's own."""
    said = {"ann": "yyyyynnnnn", "bob": "yynnnnnnnn", "judge": "yynynnnnnnyn"} | (
        {"gold": gold} if gold else {}
    )
    rows = agreement.of_workspace(labelled(tmp_path, said))
    kappa = agreement.with_people(rows, "judge")
    assert kappa is not None and kappa.coefficient.startswith(coefficient)
    assert agreement.judge_kappas(rows) == {("initiative", "initiative", "judge"): kappa}


def test_units_outside_the_samples_never_stand_for_those_of_the_samples(tmp_path: Path) -> None:
    """Where people dispute none of the former, the kappa of these few was that of the judge."""
    said = {"ann": "yyyyynnnnnyn", "bob": "yynnnnnnnn––", "gold": "––y", "judge": "yynynnnnnnyy"}
    drawn = dict.fromkeys(range(2, 12), 0.5)
    kappa = agreement.with_people(
        agreement.of_workspace(labelled(tmp_path, said, probability=drawn)), "judge"
    )
    assert kappa is not None and kappa.n_units == 10 and kappa.raters == ("judge", "ann", "bob")


def test_a_judge_has_no_kappa_with_people_where_there_are_only_judges(tmp_path: Path) -> None:
    rows = agreement.of_workspace(labelled(tmp_path, {"judge": "yyn", "judge2": "yyn"}))
    assert rows and agreement.with_people(rows, "judge") is None


def test_settled_units_are_told_apart_by_how_many_people_said_so(tmp_path: Path) -> None:
    """A majority of three and the label of one alone went by the name of agreement."""
    said = {"ann": "yyynu", "bob": "yyn–u", "carl": "yn–––", "gold": "–––––y", "judge": "yyyyyy"}
    (row,) = people(agreement.of_workspace(labelled(tmp_path, said)), "percent_agreement", "judge", "gold")
    assert row.population == (
        "settled units: 1 by gold, 1 on which people agree, 1 by most of three or more people, 1 by one "
        "person alone (1 disputed and 1 unclear ones left out)"
    )
    assert row.n_units == 4 and row.value == pytest.approx(3 / 4)


def test_a_unit_that_one_of_several_people_skipped_is_not_called_unclear(tmp_path: Path) -> None:
    said = {"ann": "yyns–", "bob": "yyyu–", "carl": "––––s", "gold": "–––––y", "judge": "yyyyyy"}
    (row,) = people(agreement.of_workspace(labelled(tmp_path, said)), "percent_agreement", "judge", "gold")
    assert row.population == (
        "settled units: 1 by gold, 2 on which people agree (1 disputed and 1 unclear ones left out)"
    )
    assert row.n_left_out == 0, "those are told of"


def test_a_jury_changes_no_agreement_of_judges_and_is_held_against_those_it_did_not_hear(
    tmp_path: Path,
) -> None:
    """Three that labelled by chance agreed, jointly and on average, once there was a jury of them."""
    judges = {"judge a": "yynnyynn", "judge b": "ynynynyn", "judge c": "yyyynnnn", "judge d": "yyynnnyn"}
    store = labelled(tmp_path, judges)
    before = agreement.of_workspace(store)
    scope = Scope((codebooks.load("initiative"),))
    jury.judge(store, scope, ["judge a", "judge b", "judge c"])
    jury.judge(store, scope, ["jury", "judge d"], "jury:all")
    found = agreement.of_workspace(store)
    others = [row for row in found if not any(rater.startswith("jury") for rater in row.raters)]
    assert others == before
    juries = {row.raters for row in found} - {row.raters for row in before}
    assert juries == {("judge d", "jury")}


def test_a_jury_is_held_against_a_judge_whose_name_begins_like_one_that_it_heard(tmp_path: Path) -> None:
    store = labelled(tmp_path, {"judge": "yynn", "judge b": "ynyn", "judge (mini)": "ynny"})
    jury.judge(store, Scope((codebooks.load("initiative"),)), ["judge", "judge b"])
    with_jury = {row.raters for row in agreement.of_workspace(store) if "jury" in row.raters}
    assert with_jury == {("judge (mini)", "jury")}


def test_a_jury_is_not_held_against_a_judge_whose_answers_a_member_has(tmp_path: Path) -> None:
    store = labelled(tmp_path, {"judge c": "yynnyynn"})
    prompts = [{"prompt_hash": f"p{seq}", "rater_kind": "llm", "rater_version": "1"} for seq in range(2, 10)]
    for rater, more in (("judge a", {}), ("judge b", {"external": {"answered_for": "judge a"}})):
        rate(store, [
            verdict(NAME, seq, "initiative", "yes" if seq % 2 else "no", rater=rater, **prompt, **more)
            for seq, prompt in enumerate(prompts, start=2)
        ])  # fmt: skip
    done = jury.judge(store, Scope((codebooks.load("initiative"),)), ["judge b", "judge c"])
    assert (done.summary.rated, done.shared) == (8, 0)
    assert not [row for row in agreement.of_workspace(store) if "jury" in row.raters]


def test_what_has_no_prompt_is_not_taken_for_a_copy_of_another_without(tmp_path: Path) -> None:
    """A jury of two lost the vote of one, and rated nothing."""
    store = labelled(tmp_path, {"judge a": "yynn"})
    rate(store, [
        verdict(NAME, seq, "initiative", "yes", rater="judge b", rater_kind="llm",
                external={"answered_for": "judge of another workspace"})
        for seq in range(2, 6)
    ])  # fmt: skip
    done = jury.judge(store, Scope((codebooks.load("initiative"),)), ["judge a", "judge b"])
    assert (done.summary.rated, done.shared) == (4, 0)


@pytest.mark.parametrize("members", [3, None, "ab", [3], [["a"]], {"a": 1}])
def test_a_judge_with_a_parameter_that_is_called_members_is_no_jury(tmp_path: Path, members: Any) -> None:
    found = labelled(tmp_path, {"judge a": "yynn", "judge b": "ynyn"})
    own = [verdict(NAME, 2, "initiative", "yes", rater="judge c", rater_kind="llm")]
    assert not rate(found, [line | {"parameters": {"members": members}} for line in own]).quarantined
    raters = {row.raters for row in agreement.of_workspace(found)}
    assert ("judge a", "judge b", "judge c") in raters


def test_people_and_judges_say_that_they_meet_on_different_units(tmp_path: Path) -> None:
    found = agreement.of_workspace(labelled(tmp_path, {"ann": "yynn", "bob": "y–n", "judge": "yyyynn"}))
    (two,) = people(found, "fleiss_kappa", "ann", "bob")
    (three,) = people(found, "fleiss_kappa", "judge", "ann", "bob")
    assert (two.n_units, three.n_units) == (2, 4)
    assert two.population != three.population


@pytest.mark.long
def test_a_pilot_and_a_second_sample_weigh_by_their_joint_inclusion(tmp_path: Path) -> None:
    store = labelled(tmp_path, {"ann": "yynnnnnn–––", "judge": "yyyynnnnnnn"})
    frame = dict.fromkeys(range(11), 0.4)
    sampled(store, "pilot", {n: 0.4 for n in (0, 4, 5)}, frame)
    second = {n: 0.75 if n < 4 else 0.25 for n in range(11)}
    sampled(store, "second", {n: second[n] for n in (0, 1, 2, 3, 6, 7)}, second)
    with store.reading() as connection:
        (code,) = matrices.rated_codes(connection, codebooks.load("initiative", store.workspace.codebooks))
    assert code.design.inclusion[:8] == pytest.approx([0.85] * 4 + [0.55] * 4)
    assert np.isnan(code.design.inclusion[8:]).all()


@pytest.mark.long
@pytest.mark.parametrize("said", ["yynnyu", "yynny–"])
def test_a_set_with_an_unclear_or_missing_answer_is_left_out_and_not_taken_for_empty(
    tmp_path: Path, said: str
) -> None:
    store = made(tmp_path / "workspace")
    names = [f"env_{number}" for number in range(6)]
    for number, name in enumerate(names):
        began = BEGAN + timedelta(hours=number)
        take(store, Log(began=began).say(AGENT, f"Hello {number}").folder(tmp_path / "logs" / name))
    book = codebooks.load("failures", store.workspace.codebooks)
    words = dict(zip("yn", book.labels, strict=True)) | {"u": "unclear"}
    lines = []
    for rater, first in (("ann", "yynnyn"), ("bob", said)):
        for name, label in zip(names, first, strict=True):
            for code in book.codes:
                own = label if code is book.codes[0] else "n"
                if own in words:
                    lines.append(verdict(name, None, "failures", words[own], code=code.code, rater=rater))
    assert not rate(store, lines).quarantined
    (row,) = people(agreement.of_workspace(store, ["failures"]), "krippendorff_alpha_masi", "ann", "bob")
    assert (row.value, row.n_units) == (1.0, 5)
    assert row.population == "1 set with an unclear, failed or missing answer left out"


def test_a_judge_may_number_its_repeats_and_call_its_versions_as_it_likes(tmp_path: Path) -> None:
    found = {}
    for name, last, version in (("plain", 1, "v1"), ("odd", 2**31 - 1, "v'\0\"; --")):
        store = labelled(tmp_path / name, {"ann": "yyn"})
        more: dict[str, Any] = {"rater": "judge", "rater_kind": "llm"}
        lines = [
            verdict(NAME, seq, "initiative", label, repeat=repeat, rater_version=version, **more)
            for repeat, said in ((0, ("yes", "no", "no")), (last, ("yes", "no", "yes")))
            for seq, label in enumerate(said, start=2)
        ]
        lines.append(verdict(NAME, 2, "initiative", "no", rater_version="later", **more))
        assert rate(store, lines).imported == 7
        own = [
            row
            for row in agreement.of_workspace(store)
            if row.coefficient in ("intra_rater_alpha", "flip_rate")
        ]
        found[name] = [(row.coefficient, row.value, row.low, row.n_units) for row in own]
        assert metrics(store) and list(trajectory_metrics(store)) and rates.rates(store)
    assert found["plain"] == found["odd"] and found["odd"][1][1] == pytest.approx(1 / 3)


@pytest.mark.long
def test_a_judge_asked_again_agrees_with_itself_so_far_and_counts_once(tmp_path: Path) -> None:
    store = labelled(tmp_path, {"ann": "yynnyynnnn"})
    log = Log(began=BEGAN + timedelta(days=1))
    for number in range(10):
        log.say((AGENT, USER)[number % 2], f"Again {number}")
    take(store, log.folder(tmp_path / "logs" / "env_1"))
    answers = ["yynnyynnnn", "yynnyynnny", "yynnynnnnn"]
    words = {"y": "yes", "n": "no"}
    more: dict[str, Any] = {"rater": "judge", "rater_kind": "llm", "rater_version": "v1"}
    lines = [
        verdict(name, seq, "initiative", words[label], repeat=repeat, **more)
        for name in (NAME, "env_1")
        for repeat, said in enumerate(answers)
        for seq, label in enumerate(said, start=2)
    ]
    assert rate(store, lines).imported == 60
    found = agreement.of_workspace(store)
    (flips,) = people(found, "flip_rate", "judge")
    assert flips.value == pytest.approx(
        2 * 2 / 3 / 10
    )  # in each session two units of three pairs, two unlike
    assert flips.value and flips.low and flips.high and flips.low < flips.value < flips.high
    (alpha,) = people(found, "intra_rater_alpha", "judge")
    # 60 values, 24 of them yes; four units with coincidences 2 · 2/2 off the diagonal
    assert alpha.value == pytest.approx(1 - 59 * 4 * 2 / (2 * 24 * 36))
    assert (alpha.n_units, alpha.n_ratings) == (20, 60)
    (row,) = rates.rates(store)
    assert (row.n_judged, row.judge_rate) == (20, 0.4)
    assert rate(store, lines).unchanged == 60
    page = validate.validate(store, "judge")["codes"][0]
    assert [one["coefficient"] for one in page["consistency"]] == ["intra_rater_alpha", "flip_rate"]


@pytest.mark.long
def test_versions_of_a_judge_are_never_mixed_under_its_name(tmp_path: Path) -> None:
    store = labelled(tmp_path, {"ann": "yynnyynnnn"})
    for version, seqs in (("v1", range(2, 6)), ("v2", range(6, 12))):
        more: dict[str, Any] = {"rater": "judge", "rater_kind": "llm", "rater_version": version}
        rate(store, [verdict(NAME, seq, "initiative", "yes", **more) for seq in seqs])
    assert [(row.judge, row.n_judged) for row in rates.rates(store)] == [("judge", 6), ("judge (v1)", 4)]
    rows = {row.rater: row for row in metrics(store) if row.metric == "initiative_entropy"}
    answered = {rater: row.answered for rater, row in rows.items()}
    assert answered == {"ann": 1.0, "judge": pytest.approx(0.6), "judge (v1)": pytest.approx(0.4)}
    versions = [row["rater_version"] for row in validate.validate(store, "judge")["versions"]]
    assert sorted(versions) == ["v1", "v2"], "validate tells of all"
    (own,) = {row.raters[0] for row in agreement.of_workspace(store) if "(" in row.raters[0]}
    (version,) = validate.validate(store, own)["versions"]
    assert own == f"judge ({version['rater_version']})", "and of one alone under its own name"
    more = {"rater": "judge", "rater_kind": "llm", "rater_version": "v1", "retracted": False}
    assert rate(store, [verdict(NAME, seq, "initiative", "no", **more) for seq in range(6, 10)]).imported == 4
    assert {row.judge: row.n_judged for row in rates.rates(store)} == {"judge": 8, "judge (v2)": 6}
    rebuild(store)
    assert {row.judge: row.n_judged for row in rates.rates(store)} == {"judge": 8, "judge (v2)": 6}


@pytest.mark.long
def test_versions_of_a_judge_go_out_and_come_back(tmp_path: Path) -> None:
    store, other = runs(tmp_path / "one", 10), runs(tmp_path / "other", 10)
    said(store, "first", {("ann", "late"): "yyyyynnnnn"})
    for version, letters in (("v1", "yyyynynnnn"), ("v2", "–––yyn––––"), ("v3", "––––yn––––")):
        said(store, "first", {("judge", "late"): letters}, version)
    path = tmp_path / "ratings.jsonl"
    path.write_text("".join(imports.export_lines(store)))
    assert imports.ratings(other, path).imported == 25
    query = """
        SELECT r.rater, r.label, r.is_last, t.native_id
        FROM counted_ratings r JOIN trajectories t ON t.id = r.trajectory_id ORDER BY ALL
    """
    assert rows(other, query) == rows(store, query)
    assert [r.model_dump() for r in rates.rates(other)] == [r.model_dump() for r in rates.rates(store)]
    assert imports.ratings(other, path).imported == 0


@pytest.mark.long
def test_of_versions_with_equally_many_units_the_later_has_the_name_also_after_an_export(
    tmp_path: Path,
) -> None:
    store, other = (labelled(tmp_path / name, {"ann": "yynnyynnnn"}) for name in ("one", "other"))
    for day, version, seqs in ((1, "v1", range(7, 12)), (2, "v2", range(2, 7))):
        more = {"rater": "judge", "rater_kind": "llm", "rater_version": version}
        moment = {"created": f"2026-01-0{day}T10:00:00Z"}
        rate(store, [verdict(NAME, seq, "initiative", "yes", **more, **moment) for seq in seqs])
    query = """
        SELECT DISTINCT rater, rater_version FROM counted_ratings WHERE rater_kind = 'llm' ORDER BY ALL
    """
    names = [("judge", "v2"), ("judge (v1)", "v1")]
    assert [(row["rater"], row["rater_version"]) for row in rows(store, query)] == names
    path = tmp_path / "ratings.jsonl"
    path.write_text("".join(imports.export_lines(store)))
    assert imports.ratings(other, path).imported == 10
    assert [(row["rater"], row["rater_version"]) for row in rows(other, query)] == names


@pytest.mark.long
def test_a_version_is_held_to_all_that_it_said_whatever_another_was_asked_about(tmp_path: Path) -> None:
    """Asked again about the disputed units alone, a judge agreed with people on all that was left of it."""
    store = runs(tmp_path, 10)
    of_people = "yyyyynnnnn"
    said(store, "first", {("ann", "late"): of_people})
    said(store, "first", {("judge", "late"): "yyyynynnnn"}, "v1")

    def figures() -> dict[str, tuple[int, float | None]]:
        rows = [r for r in agreement.of_workspace(store) if r.coefficient == "percent_agreement"]
        return {row.raters[0]: (row.n_units, row.value) for row in rows if "ann" in row.raters}

    assert figures() == {"judge": (10, 0.8)}
    said(store, "first", {("judge", "late"): "––––yn––––"}, "v2")
    both = {"judge": (10, 0.8), "judge (v2)": (2, 1.0)}
    assert figures() == both
    rebuild(store)
    assert figures() == both
    said(store, "first", {("judge", "late"): "yyyy––nnn–"}, "v2")
    assert figures() == {"judge": (9, 1.0), "judge (v1)": (10, 0.8)}
    said(store, "first", {("judge", "late"): "–––––––––n"}, "v2")
    assert figures() == {"judge": (10, 1.0)}, "who was replaced everywhere is gone"
    said(store, "first", {("judge", "late"): "n–––––––––"}, "v1")
    back = {"judge": (10, 1.0), "judge (v1)": (10, 0.7)}
    assert figures() == back, "and back with all that it said as soon as it has a word again"
    rebuild(store)
    assert figures() == back


@pytest.mark.long
def test_what_a_judge_took_back_is_no_earlier_word_of_it(tmp_path: Path) -> None:
    store = runs(tmp_path, 4)
    said(store, "first", {("judge", "late"): "yyyy"}, "v1")
    said(store, "first", {("judge", "late"): "n–––"}, "v2")
    assert {row.judge: row.n_judged for row in rates.rates(store)} == {"judge": 4, "judge (v2)": 1}
    asked = {"codebook": "first", "code": "late", "rater": "judge", "rater_kind": "llm"}
    rate(store, [{"trajectory": "env_0", **asked, "rater_version": "v2", "retracted": True}])
    assert {row.judge: row.n_judged for row in rates.rates(store)} == {"judge": 3}


def test_an_annotator_model_is_null_with_the_reason_where_two_people_cannot_identify_it(store: Store) -> None:
    (row,) = rates.rates(store, labels="dawid-skene")
    assert (row.estimator, row.rate, row.judge_rate) == ("dawid_skene", None, 0.7)
    assert row.reason == (
        "an annotator model needs 3 raters of the same units, got 2; the judge may be one more"
    )
    (row,) = rates.rates(store, labels="dawid-skene-judge")
    assert row.reason is not None and row.reason.startswith("two annotators agree that 3 units lack it")
    with pytest.raises(UsageError, match="--labels must be one of mean, dawid-skene, dawid-skene-judge"):
        rates.rates(store, labels="majority")
    with pytest.raises(UsageError, match="--labels must, without --estimator, be one of"):
        rates.rates(store, labels="dawid-skene", estimator="hajek")


BOOK = """
name = "{name}"
title = "T"
unit = "trajectory"
level = "{level}"
labels = {labels}
question = "Q?"
origin = "o"
guidance = "g"
[[codes]]
code = "late"
name = "Late"
definition = "d"
[[codes]]
code = "lost"
name = "Lost"
definition = "d"
"""


RUNS = """
[trajectory]
native_id = "id"
condition = "arm"
instance = "instance"
[event]
role = "log[].role"
text = "log[].text"
"""


def runs(folder: Path, n: int, arms: Sequence[str | None] = (), instances: Sequence[str] = ()) -> Store:
    """Short sessions env_0 and on; codebooks `first`, `second`, `scale`, `kind` with the same codes."""
    found = made(folder / "workspace")
    log = [{"role": "user", "text": "Hello"}, {"role": "assistant", "text": "Yes"}]
    lines = [
        {
            "id": f"env_{place}",
            "arm": arms[place] if arms else None,
            "instance": instances[place] if instances else None,
            "log": log,
        }
        for place in range(n)
    ]
    path = folder / "runs.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    take(found, path, map=RUNS, system="mapped")
    found.workspace.codebooks.mkdir(exist_ok=True)
    for name, level, labels in (
        ("first", "nominal", '["present", "absent"]'),
        ("second", "nominal", '["present", "absent"]'),
        ("scale", "ordinal", '["1", "2", "3"]'),
        ("kind", "nominal", '["1", "2", "3"]'),
    ):
        text = BOOK.format(name=name, level=level, labels=labels)
        (found.workspace.codebooks / f"{name}.toml").write_text(text)
    return found


def said(
    store: Store, codebook: str, answers: dict[tuple[str, str], str], version: str | None = None
) -> None:
    """(Rater, code) -> their label of each session, a letter each; s skips one, – leaves one out."""
    labels = {"y": "present", "n": "absent", "u": "unclear", **dict(zip("123", "123", strict=True))}
    lines = [
        {
            "trajectory": f"env_{place}",
            "codebook": codebook,
            "code": code,
            "rater": rater,
            "rater_kind": _kind(rater),
            "rater_version": version,
            **({"error": "skipped by the annotator"} if letter == "s" else {"label": labels[letter]}),
        }
        for (rater, code), letters in answers.items()
        for place, letter in enumerate(letters)
        if letter != "–"
    ]
    assert rate(store, lines).imported == len(lines)


@pytest.mark.long
def test_codes_of_the_same_name_in_two_codebooks_are_kept_apart(tmp_path: Path) -> None:
    found = runs(tmp_path, 4)
    # `first` by hand: 3 of 4 agree, margins 2/4 and 3/4, chance .5, kappa .5. `second`: never, −1.
    said(found, "first", {("ann", "late"): "yynn", ("bob", "late"): "yyyn", ("judge", "late"): "yyyy"})
    said(found, "second", {("ann", "late"): "yynn", ("bob", "late"): "nnyy"})
    every = agreement.of_workspace(found)
    kappas = {row.codebook: row.value for row in people(every, "cohen_kappa", "ann", "bob")}
    assert kappas == {"first": pytest.approx(0.5), "second": pytest.approx(-1)}
    macro = {row.codebook: row.value for row in people(every, "macro_cohen_kappa", "ann", "bob")}
    assert macro == kappas
    assert {row.codebook for row in every if "judge" in row.raters} == {"first"}
    table = trust.agreement_table(every)
    assert [row[0] for row in table.rows if row[1] == "ann · bob" and "late" in str(row[0])] == [
        "first / late",
        "second / late",
    ]


@pytest.mark.long
def test_the_mean_over_codes_tells_labels_outside_the_samples_apart_from_those_of_gold_inside(
    tmp_path: Path,
) -> None:
    found = runs(tmp_path, 6)
    letters = {("gold", "late"): "yynnyn", ("judge", "late"): "yynyyy"}
    said(found, "first", {**letters, **{(rater, "lost"): own for (rater, _), own in letters.items()}})
    sampled(found, "drawn", dict.fromkeys(range(4), 0.5), codebook="first", kind="trajectory")
    macros = people(agreement.of_workspace(found), "macro_cohen_kappa", "judge", "gold")
    assert [row.population for row in macros] == [
        "settled units; units of the samples",
        "settled units; labelled units outside the samples, unweighted",
    ]
    assert [(row.n_units, agreement.is_outside_samples(row)) for row in macros] == [(4, False), (2, True)]


@pytest.mark.long
def test_a_judge_that_was_asked_again_about_one_code_has_no_rows_on_others(tmp_path: Path) -> None:
    found = runs(tmp_path, 4)
    for rater, again in (("judge", "second"), ("other", "first")):
        for book in ("first", "second"):
            lines = [
                verdict(
                    f"env_{place}",
                    None,
                    book,
                    label,
                    code=code,
                    rater=rater,
                    rater_kind="llm",
                    rater_version="v1",
                    repeat=repeat,
                )
                for code in ("late", "lost")
                for repeat in range(1 + ((book, code) == (again, "late")))
                for place, label in enumerate(("present", "present", "absent", "absent"))
            ]
            assert rate(found, lines).imported == len(lines)
    own = [row for row in agreement.of_workspace(found) if row.coefficient == "flip_rate"]
    told = [(row.codebook, row.code, row.raters) for row in own]
    assert told == [("first", "late", ("other",)), ("second", "late", ("judge",))]


@pytest.mark.long
def test_only_codes_that_are_there_or_not_make_sets(tmp_path: Path) -> None:
    found = runs(tmp_path, 4)
    said(found, "scale", {("ann", "late"): "1123", ("bob", "late"): "1223"})
    assert not people(agreement.of_workspace(found), "krippendorff_alpha_masi", "ann", "bob")
    said(found, "first", {("ann", "late"): "yynn", ("bob", "late"): "yyyn"})
    (row,) = people(agreement.of_workspace(found), "krippendorff_alpha_masi", "ann", "bob")
    assert row.population == "sets of the 1 of 2 codes that all of them rated"


@pytest.mark.long
@pytest.mark.parametrize("alone", ["late", "lost"])
def test_sets_are_of_those_who_rated_most_codes_whichever_comes_first(tmp_path: Path, alone: str) -> None:
    """Of one code ann gave labels alone: with that in front there was no alpha of sets at all."""
    found = runs(tmp_path, 4)
    (other,) = {"late", "lost"} - {alone}
    shared = {("ann", other): "yynn", ("bob", other): "yyyn", ("judge", other): "ynnn"}
    said(found, "first", {**shared, ("ann", alone): "yyny"})
    rows = [r for r in agreement.of_workspace(found) if r.coefficient == "krippendorff_alpha_masi"]
    assert [row.raters for row in rows] == [("ann", "bob"), ("judge", "ann", "bob")]
    assert rows[0].value == pytest.approx(1 - 7 * 2 / (2 * 5 * 3))  # coincidences: 2 apart, 5 y and 3 n


@pytest.mark.long
def test_the_short_page_on_a_judge_says_of_which_of_three_labels_sensitivity_is(tmp_path: Path) -> None:
    found = runs(tmp_path, 4)
    for book, letters in (("first", "yynn"), ("kind", "1123")):
        said(found, book, {(rater, "late"): letters for rater in ("judge", "ann")})
    (told,) = [line for line in _foot(found, "judge") if line.startswith("sensitivity")]
    assert told.startswith("sensitivity, specificity: of the label 1 against all others")
    assert not [line for line in _foot(found, "judge", "first") if line.startswith("sensitivity")]


def _foot(store: Store, judge: str, *names: str) -> tuple[str, ...]:
    return validate.summary(validate.validate(store, judge, names)).foot


def test_who_labelled_a_code_is_named_where_others_labelled_another(tmp_path: Path) -> None:
    """Two numbers stood under three names; and a mean of kappas without an interval said no reason."""
    found = runs(tmp_path, 4)
    labels = {
        ("ann", "late"): "1123",
        ("bob", "late"): "1223",
        ("bob", "lost"): "112",
        ("cyd", "lost"): "1223",
    }
    said(found, "scale", labels)
    lines = list(people_lines(validate_people(found)))
    late, lost = (line for code in ("late", "lost") for line in lines if line.startswith(f"  {code}:"))
    assert late.endswith("; labelled ann 4, bob 4") and lost.endswith("; labelled bob 3, cyd 4")
    (mean, *_) = [line for line in lines if "over all codes (4 trajectories): mean" in line]
    assert "(no interval: pairs share" in mean


@pytest.mark.long
def test_people_on_a_scale_are_told_by_how_far_they_differ(tmp_path: Path) -> None:
    found = runs(tmp_path, 4)
    said(found, "scale", {("ann", "late"): "1123", ("bob", "late"): "1223"})
    page = validate_people(found)
    (first, code, *_) = people_lines(page)
    assert first == "People on scale: ann, bob"
    assert "cohen_kappa_quadratic" in code and "krippendorff_alpha" in code
    assert code.endswith("labelled 4, 4") and "fleiss" not in code and "found" not in code
    assert code.count("cohen_kappa_quadratic") == 1
    lost = {("ann", "lost"): "1123", ("bob", "lost"): "1223", ("cyd", "lost"): "1233"}
    said(found, "scale", {**lost, ("cyd", "late"): "1233"})
    (_, *each, _, _) = lines = list(people_lines(validate_people(found)))
    assert len(each) == 2
    for line in each:
        assert "mean_cohen_kappa_quadratic" in line and line.count("cohen_kappa_quadratic") == 1, "of no pair"
    assert [line.partition("): ")[2].split()[0] for line in lines[-2:]] == [
        "mean_cohen_kappa_quadratic",
        "krippendorff_alpha",
    ]
    said(found, "first", {("ann", "late"): "yynn"})
    (alone,) = [line for line in people_lines(validate_people(found)) if line.endswith("found 2 of 4")]
    assert ": ;" not in alone
    said(found, "kind", {("ann", "late"): "1123", ("bob", "late"): "1222"})
    lines = list(people_lines(validate_people(found, ["kind"])))
    assert lines[1].endswith("labelled 4, 4"), "the first of three kinds is none that is found"


def test_of_a_crowd_pages_name_the_first_and_count_what_all_said(tmp_path: Path) -> None:
    """21 people, each of whom labelled one of four units, and a judge."""
    found = runs(tmp_path, 4)
    crowd = [f"user{number:02}" for number in range(21)]
    labels = ["–" * (n % 4) + ("y" if n % 3 else "n") + "–" * (3 - n % 4) for n in range(21)]
    everyone = {(rater, "late"): said_by for rater, said_by in zip(crowd, labels, strict=True)}
    said(found, "first", {**everyone, ("judge", "late"): "yynn"})
    (first, code, *_) = people_lines(validate_people(found))
    assert first == "People on first: user00, 20 more"
    assert code.endswith("found in 14 of 21 labels by 21 people")
    page = "\n".join(validate.lines(validate.validate(found, "judge")))
    assert "fleiss_kappa (judge, 21 more)" in page


@pytest.mark.long
def test_kappa_over_all_codes_weighs_the_units_of_a_sample_as_kappa_of_one_code_does(tmp_path: Path) -> None:
    found = runs(tmp_path, 4)
    sampled(found, "uneven", {0: 0.5, 1: 0.5, 2: 0.25, 3: 0.25}, codebook="first", kind="trajectory")
    said(found, "first", {("ann", "late"): "yynn", ("bob", "late"): "ynnn"})
    said(found, "first", {("ann", "lost"): "ynnn", ("bob", "lost"): "ynny"})
    (book,) = validate_people(found)["people"]
    (row,) = [r for r in book["pooled"] if r["coefficient"] == "cohen_kappa"]
    # Of 24 by weight 18 agree; ann says yes in 6, bob in 8: chance 7/12, kappa (9/12 - 7/12) / (5/12).
    assert row["value"] == pytest.approx(0.4)
    assert row["population"] == "units of the samples, weighted by 1/π"


@pytest.mark.long
def test_sessions_without_a_group_are_not_those_of_a_group_called_none(tmp_path: Path) -> None:
    # Of arm "None" half are found, of arm "x" none; the four without an arm are all found.
    found = runs(tmp_path, 12, arms=["None"] * 4 + ["x"] * 4 + [None] * 4)
    said(found, "first", {(rater, "late"): "yynnnnnnyyyy" for rater in ("judge", "ann")})
    (row,) = compare.compare(found, "condition", metrics=["late"])
    assert (row["groups"], row["first"], row["second"]) == (["None", "x"], 0.5, 0)


@pytest.mark.long
def test_codes_with_more_than_two_labels_are_compared_label_by_label_or_by_their_mean_on_a_scale(
    tmp_path: Path,
) -> None:
    found = runs(tmp_path, 8, arms=["a"] * 4 + ["b"] * 4)
    for book in ("scale", "kind"):
        said(found, book, {("judge", "late"): "12232333"})
    rows = {(r["question"], r["metric"], r["rater"]): r for r in compare.compare(found, "condition")}
    mean = rows["scale", "late (mean)", "judge"]
    assert (mean["first"], mean["second"]) == (2, 2.75)  # (1+2+2+3)/4, (2+3+3+3)/4
    shares = [rows["kind", f"late: {label}", "judge"] for label in "123"]
    assert [(r["first"], r["second"]) for r in shares] == [(0.25, 0), (0.5, 0.25), (0.25, 0.75)]
    assert {r["basis"] for r in shares} == {"judge only: its errors are not corrected"}


@pytest.mark.long
def test_corrected_rates_of_instances_take_each_run_of_one_for_itself(tmp_path: Path) -> None:
    found = runs(tmp_path, 12, instances=["one"] * 6 + ["two"] * 6)
    said(found, "first", {(rater, "late"): "yyynnnnnnnny" for rater in ("judge", "ann")})
    (row,) = compare.compare(found, "instance", metrics=["late"])
    assert (row["first"], row["pairs"], row["alone"]) == (0.5, 0, (6, 6))
    assert row["reason"] is None and row["p_value"] is not None


@pytest.mark.long
def test_runs_of_one_instance_are_alike_in_agreement_and_between_versions(tmp_path: Path) -> None:
    """Where whole instances are hard, intervals of runs taken each for itself held kappa in .71 of samples,
    and two versions alike differed at .05 in .28."""
    instances = [f"task {place // 6}" for place in range(30)]
    store = runs(tmp_path, 30, instances=instances)
    of_old, of_new = "yyyyyy" + "n" * 24, "yyyyyyyyyyyynnnnnnnnnnnnnnnnnn"
    said(store, "first", {("ann", "late"): of_new, ("judge2", "late"): of_old, ("judge", "late"): of_new})
    alone = runs(tmp_path / "alone", 30)
    said(alone, "first", {("ann", "late"): of_new, ("judge2", "late"): of_old, ("judge", "late"): of_new})
    rows_of, drifts = [], []
    for found in (store, alone):
        (row,) = (
            row
            for row in agreement.of_workspace(found, ["first"])
            if row.code == "late"
            and row.raters == ("judge2", "ann")
            and row.coefficient == "percent_agreement"
        )
        rows_of.append(row)
        page = validate.validate(found, "judge", ["first"], previous="judge2")
        drifts.append(page["codes"][0]["drift"]["rate"])
    clustered, independent = rows_of
    assert clustered.value == independent.value == 24 / 30
    assert clustered.low is not None and clustered.high is not None
    assert independent.low is not None and independent.high is not None
    assert clustered.high - clustered.low > 1.5 * (independent.high - independent.low)
    assert drifts[0]["p_value"] is None, "one instance moved"
    assert "1 cluster with a difference cannot reach .05" in drifts[0]["reason"]
    assert drifts[1]["p_value"] == pytest.approx(2 * 0.5**6)


@pytest.mark.long
def test_a_judge_asked_again_about_runs_of_one_instance_has_an_interval_of_instances(tmp_path: Path) -> None:
    """Its answers waver on whole instances."""
    widths = []
    for name, instances in (("runs", [f"task {place // 6}" for place in range(30)]), ("alone", [])):
        found = runs(tmp_path / name, 30, instances=instances)
        more: dict[str, Any] = {"code": "late", "rater": "judge", "rater_kind": "llm", "rater_version": "v1"}
        for repeat, positive in ((0, 6), (1, 12)):
            labels = ["present"] * positive + ["absent"] * (30 - positive)
            lines = [
                verdict(f"env_{n}", None, "first", label, repeat=repeat, **more)
                for n, label in enumerate(labels)
            ]
            assert rate(found, lines).imported == 30
        rows_of = agreement.of_workspace(found, ["first"])
        (flips,) = (row for row in rows_of if row.coefficient == "flip_rate")
        assert flips.value == pytest.approx(6 / 30) and flips.low is not None and flips.high is not None
        widths.append(flips.high - flips.low)
    assert widths[0] > 1.5 * widths[1]


@pytest.mark.long
def test_runs_of_the_only_instance_stand_each_alone(tmp_path: Path) -> None:
    store = runs(tmp_path, 30, instances=["the task"] * 30)
    answers = {("ann", "late"): "yyyyyy" + "n" * 24, ("bob", "late"): "yyynnn" + "n" * 24}
    said(store, "first", answers)
    with store.reading() as connection:
        (code,) = matrices.rated_codes(connection, codebooks.load("first", store.workspace.codebooks))
    assert code.clusters(np.ones(30, dtype=bool)) is None


@pytest.mark.long
def test_runs_stand_alone_where_all_that_are_compared_are_of_one_instance(tmp_path: Path) -> None:
    """A judge had rated other instances besides: one cluster has no interval and no test."""
    pages = []
    for name, instances in (("one", ["task"] * 30 + ["a", "b"] * 5), ("apart", [])):
        store = runs(tmp_path / name, 40, instances=instances)
        labels = {
            ("ann", "late"): "y" * 15 + "n" * 15,
            ("bob", "late"): "y" * 12 + "n" * 18,
            ("cy", "late"): "y" * 14 + "n" * 16,
            ("judge2", "late"): "y" * 8 + "n" * 22,
            ("judge", "late"): "y" * 16 + "n" * 24,
        }
        said(store, "first", labels)
        page = validate.validate(store, "judge", ["first"], previous="judge2")["codes"][0]
        pages.append({name: page[name] for name in ("agreement", "confusion", "drift")})
        pages[-1]["test"] = page["alternative_annotator_test"]
    assert pages[0]["drift"]["rate"]["p_value"] is not None
    assert pages[0] == pages[1]


@pytest.mark.long
def test_a_rate_says_how_many_labels_lie_beyond_what_the_judge_was_asked_about(tmp_path: Path) -> None:
    # Of the four sessions that the judge saw one is found by ann: 1/4, whatever she says of the other two.
    found = runs(tmp_path, 6)
    said(found, "first", {("judge", "late"): "yyyy––", ("ann", "late"): "ynnnyy"})
    (row,) = rates.rates(found, ["first"])
    assert (row.rate, row.n_human, row.n_judged) == (0.25, 4, 4)
    assert "2 labelled units that the judge was not asked about left out" in (row.design or "")


def test_a_rate_says_of_how_many_units_it_is_where_judging_was_interrupted(tmp_path: Path) -> None:
    store = runs(tmp_path, 6)
    said(store, "first", {("judge", "late"): "yyyy––", ("ann", "late"): "ynnn––"})
    (row,) = rates.rates(store, ["first"])
    assert (row.rate, row.n_human, row.n_judged) == (0.25, 4, 4)
    assert "; of the 4 units that the judge was asked about, not of 2 others" in (row.design or "")
    (model,) = rates.rates(store, ["first"], labels="dawid-skene-judge")
    assert "; of the 4 units that the judge was asked about, not of 2 others" in (model.design or "")
    said(store, "first", {("judge", "late"): "––––ny"})
    (row,) = rates.rates(store, ["first"])
    assert "others" not in (row.design or "")


@pytest.mark.long
def test_an_imported_version_of_a_judge_has_also_the_answers_that_an_earlier_one_gave(tmp_path: Path) -> None:
    # Of six sessions version 2 rated the first four and finds three; version 1 all, and finds three.
    found = runs(tmp_path, 6)
    said(found, "first", {("judge", "late"): "yynnyn"}, version="1")
    said(found, "first", {("judge", "late"): "yyyn––"}, version="2")
    shown = {row.judge: (row.judge_rate, row.n_judged) for row in rates.rates(found, ["first"])}
    assert shown == {"judge": (0.75, 4), "judge (1)": (0.5, 6)}


def test_who_skips_a_unit_has_not_called_it_unclear(tmp_path: Path) -> None:
    found = runs(tmp_path, 8)
    said(found, "first", {("ann", "late"): "ynnussyn", ("bob", "late"): "ynn–su–s"})
    (row,) = rates.rates(found, ["first"])
    # Of the eight, ann or bob label five; of the others they call two unclear and skip one.
    assert (row.n_human, row.n_unclear, row.n_skipped) == (5, 2, 1)
    assert row.rate == pytest.approx(2 / 5)
    assert (row.rate_if_unclear_absent, row.rate_if_unclear_present) == pytest.approx((2 / 7, 4 / 7))
    assert (
        row.design is not None
        and (
            "; 2 that people found unclear left out (0.286 if none of them has it, 0.571 if all have it)"
            "; 1 that people skipped left out"
        )
        in row.design
    )


def test_units_that_two_were_asked_about_and_not_both_labelled_are_counted_beside_agreement(
    tmp_path: Path,
) -> None:
    """Two who leave open what one finds agree wholly on the rest: 1.00, and nothing told of the others."""
    store = labelled(tmp_path, {"ann": "ynnuuysn–", "bob": "ynnyuu–nn", "judge": "ynyyuynnn"})
    found = agreement.of_workspace(store)
    shown = {row.raters: (row.n_units, row.n_left_out) for row in found if row.coefficient == "cohen_kappa"}
    # Of ann and bob units 3 to 5; of the judge with ann 3, 4 and 6, with bob 4 and 5.
    assert shown == {("ann", "bob"): (4, 3), ("judge", "ann"): (5, 3), ("judge", "bob"): (6, 2)}
    (joint,) = people(found, "fleiss_kappa", "judge", "ann", "bob")
    assert (joint.n_units, joint.n_left_out) == (7, 2)
    page = validate_people(store)
    assert any(line.endswith("; 3 more left out: unclear, or no answer") for line in people_lines(page))
    foot = validate.summary(validate.validate(store, "judge")).foot
    assert any(
        line.startswith("units that the judge found unclear or failed on: initiative 1 of 9;")
        for line in foot
    )


def test_a_rate_says_of_its_own_labels_alone_what_they_are(tmp_path: Path) -> None:
    """The judge was asked about half of what people labelled, and of all of these was told who differ."""
    said = {"ann": "yyyynnnn", "bob": "ynynynnn", "gold": "–––y–n––", "judge": "yyn–––––"}
    (row,) = rates.rates(labelled(tmp_path, said))
    assert row.n_human == 3 and row.design is not None
    assert "; 1 on which people differ count as the mean" in row.design and "gold" not in row.design


def test_units_on_which_a_person_was_unclear_are_not_said_to_be_labelled(tmp_path: Path) -> None:
    found = runs(tmp_path, 4)
    said(found, "first", {("ann", "late"): "ynnu"})
    (row,) = rates.rates(found, ["first"])
    assert row.rate == pytest.approx(1 / 3)
    assert (row.n_human, row.n_unclear) == (3, 1)
    assert "every unit was labelled" not in (row.design or "")


@pytest.mark.long
@pytest.mark.parametrize(("last", "told"), [(0.25, True), (0.5, False)])
def test_what_the_page_on_a_judge_does_not_weigh_says_so_under_uneven_samples(
    tmp_path: Path, last: float, told: bool
) -> None:
    found = runs(tmp_path, 4)
    sampled(found, "drawn", {0: 0.5, 1: 0.5, 2: last, 3: last}, codebook="first", kind="trajectory")
    said(found, "first", {(rater, "late"): "yynn" for rater in ("judge", "ann", "bob", "cleo")})
    (code,) = validate.validate(found, "judge")["codes"]
    notes = {code[part]["note"] for part in ("alternative_annotator_test", "calibration")}
    assert notes == {validate.EVENLY if told else None}


@pytest.mark.long
def test_a_rate_is_not_of_sessions_that_the_sample_could_not_take(tmp_path: Path) -> None:
    # Two of four were drawn: what the judge flags is so, the rest not; 2/4. Nobody knows of the last two.
    found = runs(tmp_path, 6, arms=["a"] * 4 + ["b"] * 2)
    sampled(found, "some", {0: 0.5, 2: 0.5}, dict.fromkeys(range(4), 0.5), "first", "trajectory")
    said(found, "first", {("judge", "late"): "yynnyy", ("ann", "late"): "y–n–––"})
    (row,) = rates.rates(found, ["first"])
    assert (row.rate, row.judge_rate, row.n_judged) == (0.5, 0.5, 4)
    assert "of the 4 units that the samples could take, not of 2 others" in (row.design or "")
    arms = {(row.group or {})["condition"]: row for row in rates.rates(found, ["first"], by=["condition"])}
    assert (arms["a"].rate, arms["b"].rate, arms["b"].judge_rate) == (0.5, None, 1)
    (item,) = agreement.confusions(found, ["first"])
    assert item["classes"][0]["sensitivity"]["value"] == 1


def test_units_drawn_for_certain_do_not_tell_of_a_judge_on_those_that_a_sample_could_take(
    tmp_path: Path,
) -> None:
    found = runs(tmp_path, 10)
    chances = {n: 1.0 if n < 3 else 0.2 for n in range(10)}
    sampled(found, "some", {n: chances[n] for n in (0, 1, 2, 8, 9)}, chances, "first", "trajectory")
    said(found, "first", {("judge", "late"): "yyyyyyynnn", ("ann", "late"): "yyy–––––nn"})
    (item,) = agreement.confusions(found, ["first"])
    assert item["classes"][0]["ppv"]["low"] < 0.4
    (row,) = rates.rates(found, ["first"])
    assert row.estimator == "difference" and row.low is not None and row.low < 0.4


def test_nor_where_the_sample_took_none_but_units_drawn_for_certain(tmp_path: Path) -> None:
    """Their weights are alike: the interval of the predictive value was that of an even sample."""
    found = runs(tmp_path, 10)
    chances = {n: 1.0 if n < 6 else 0.05 for n in range(10)}
    sampled(found, "some", dict.fromkeys(range(6), 1.0), chances, "first", "trajectory")
    said(found, "first", {("judge", "late"): "yyyyynyyyn", ("ann", "late"): "yyyyyn––––"})
    (item,) = agreement.confusions(found, ["first"])
    (row,) = rates.rates(found, ["first"])
    assert row.estimator == "difference" and row.low is not None and row.low < 0.5
    assert item["classes"][0]["ppv"]["low"] < 0.5


@pytest.mark.parametrize(
    ("others", "estimator"), [(0.5, "post_stratified"), (0.25, "difference"), (None, "post_stratified")]
)
def test_a_sample_is_even_by_all_units_that_it_could_take(
    tmp_path: Path, others: float | None, estimator: str
) -> None:
    found = runs(tmp_path, 10)
    drawn = dict.fromkeys(range(1, 10, 2), 0.5)
    rest = dict.fromkeys(range(0, 10, 2), others or 0.5)
    sampled(found, "some", drawn, {**drawn, **rest} if others else None, "first", "trajectory")
    said(found, "first", {("judge", "late"): "yyyyynnnnn", ("ann", "late"): "–y–y–n–n–n"})
    (row,) = rates.rates(found, ["first"])
    assert row.estimator == estimator and row.low is not None


@pytest.mark.parametrize(
    ("picked", "rate", "words"),
    [
        ("yy–", None, "2 labelled units outside the samples left out"),
        ("yyn", 2 / 3, "every unit was labelled"),
        ("yuy", 1.0, "every unit was asked about"),
    ],
)
def test_labels_beside_a_sample_count_in_no_group_unless_they_are_of_all_of_it(
    tmp_path: Path, picked: str, rate: float | None, words: str
) -> None:
    found = runs(tmp_path, 9, arms=["a"] * 6 + ["b"] * 3)
    drawn = dict.fromkeys((0, 2, 4), 0.3)
    sampled(found, "some", drawn, dict.fromkeys(range(9), 0.3), "first", "trajectory")
    said(found, "first", {("judge", "late"): "yynnyyyyn", ("ann", "late"): f"y–n–n–{picked}"})
    *_, other = rates.rates(found, ["first"], by=["condition"])
    assert other.rate == (rate and pytest.approx(rate))
    assert (other.design or "").endswith(f"; {words}")
    (row,) = compare.compare(found, "condition", metrics=["late"])
    assert (row["second"] is None) == (rate is None)


@pytest.mark.long
def test_sessions_without_a_group_are_a_group_of_their_own_on_peoples_page(tmp_path: Path) -> None:
    found = runs(tmp_path, 8, arms=["x"] * 4 + [None] * 4)
    # Of arm x both say the same; of the rest, half and half over both codes, they differ on half.
    for code in ("late", "lost"):
        said(found, "first", {("ann", code): "yynnyynn", ("bob", code): "yynnynyn"})
    (book,) = validate_people(found)["people"]
    kappas = {row["group"]: row for row in book["pooled"] if row["coefficient"] == "cohen_kappa"}
    assert {group: (row["value"], row["n_traces"]) for group, row in kappas.items()} == {
        None: (pytest.approx(0.5), 8),
        "x": (pytest.approx(1), 4),
        "no condition": (pytest.approx(0), 4),
    }


def test_who_joined_late_is_compared_on_the_sample_that_they_rated(tmp_path: Path) -> None:
    """Ann and Bob rated the first sample, Ann and Cy the second: each pair's units counted by the chance to
    be in either, so that kappa of a judge with Cy was .37 where it is .53."""
    store = made(tmp_path / "workspace")
    talk: dict[str, Any] = {"type": "event", "actor": "Bot", "kind": "message", "text": "Done."}
    lines: list[dict[str, Any]] = []
    for n in range(60):
        head = {"type": "trajectory", "native_id": f"s{n:02d}"}
        lines += [
            head | {"participants": [{"name": "Bot", "kind": "agent"}]},
            talk | {"trajectory": f"s{n:02d}"},
        ]
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    first = {n: 0.8 if n < 20 else 0.25 for n in range(60)}
    second = {n: 0.5 if n % 2 else 0.2 for n in range(60)}
    drawn = {"w1": (*range(16), *range(20, 30)), "w2": (*range(10, 25), *range(40, 50))}
    raters = {"ann": {*drawn["w1"], *drawn["w2"]}, "bob": {*drawn["w1"]}, "cy": {*drawn["w2"]}}
    labels = {
        r: {n: (n * k) % 5 < 2 for n in own} for (r, own), k in zip(raters.items(), (7, 3, 4), strict=True)
    }
    given = [
        verdict(f"s{n:02d}", None, "failures", "present" if yes else "absent", rater=r, code="C.1")
        for r, own in labels.items()
        for n, yes in own.items()
    ]
    assert rate(store, [line | {"rater_kind": "human"} for line in given]).imported == len(given)
    sampled(store, "w1", {n: first[n] for n in drawn["w1"]}, first, "failures", "trajectory")
    sampled(store, "w2", {n: second[n] for n in drawn["w2"]}, second, "failures", "trajectory")
    chances = {
        ("ann", "bob"): first,
        ("ann", "cy"): second,
        ("bob", "cy"): {n: first[n] * second[n] for n in range(60)},
    }
    found = [row for row in agreement.of_workspace(store, ["failures"]) if row.code == "C.1"]
    kappas = {row.raters: row.value for row in found if row.coefficient == "cohen_kappa"}
    for (one, other), own in chances.items():
        expected = _weighted_kappa(labels[one], labels[other], own)
        assert kappas[one, other] == pytest.approx(expected), (one, other)
    (mean,) = [row for row in found if row.coefficient == "mean_cohen_kappa"]
    assert mean.value == pytest.approx(np.mean(list(kappas.values()))) and mean.low is None
    assert mean.reason == "no interval: pairs rated units of different samples"


def test_units_that_two_of_three_samples_brought_to_a_pair_weigh_by_the_chance_of_both(
    tmp_path: Path,
) -> None:
    """Ann rated the first and the third sample, Bob the second and the third. What the first two both drew
    was told of as outside the samples, unweighted, and of Bob and Cy as if the third had brought it."""
    store = holding(tmp_path / "workspace", _numbered(80))
    chances = [{n: own[n % 2] for n in range(80)} for own in ((0.5, 0.3), (0.4, 0.6), (0.25, 0.35))]
    drawn = [range(40), range(20, 60), range(50, 80)]
    raters = {"ann": {*drawn[0], *drawn[2]}, "bob": {*drawn[1], *drawn[2]}, "cy": {*drawn[0]}}
    labels = {
        r: {n: n * k % 7 < 3 for n in own} for (r, own), k in zip(raters.items(), (3, 5, 2), strict=True)
    }
    given = [
        verdict(f"s{n:02d}", None, "failures", "present" if yes else "absent", rater=r, code="C.1")
        for r, own in labels.items()
        for n, yes in own.items()
    ]
    assert rate(store, [line | {"rater_kind": "human"} for line in given]).imported == len(given)
    for number, (own, units) in enumerate(zip(chances, drawn, strict=True)):
        sampled(store, f"w{number}", {n: own[n] for n in units}, own, "failures", "trajectory")
    both = {n: chances[0][n] * chances[1][n] for n in range(80)}
    third = {n: 1 - (1 - both[n]) * (1 - chances[2][n]) for n in range(80)}
    found = [row for row in agreement.of_workspace(store, ["failures"]) if row.code == "C.1"]
    assert not [row for row in found if "outside" in (row.population or "")]
    kappas = {row.raters: row for row in found if row.coefficient == "cohen_kappa"}
    for (one, other), pi, n_units in ((("ann", "bob"), third, 50), (("bob", "cy"), both, 20)):
        expected = _weighted_kappa(labels[one], labels[other], pi)
        assert kappas[one, other].value == pytest.approx(expected) and kappas[one, other].n_units == n_units


def test_of_some_sessions_of_a_sample_units_keep_the_weights_that_they_have_in_the_whole(
    tmp_path: Path,
) -> None:
    runs = [run.model_copy(update={"condition": "ab"[n % 2]}) for n, run in enumerate(_numbered(60))]
    store = holding(tmp_path / "workspace", runs)
    chances = {n: 0.8 if n % 3 else 0.25 for n in range(60)}
    drawn = {n: chances[n] for n in range(60) if n % 3 or n % 4 < 2}
    said = {
        "ann": {n: n * 3 % 7 < 3 for n in drawn},
        "bob": {n: n * 5 % 11 < 5 for n in drawn},
        "judge": {n: n * 2 % 5 < 2 for n in range(60)},
    }
    given = [
        verdict(f"s{n:02d}", None, "failures", "present" if yes else "absent", code="C.1")
        | {"rater": rater, "rater_kind": _kind(rater)}
        for rater, own in said.items()
        for n, yes in own.items()
    ]
    assert rate(store, given).imported == len(given)
    sampled(store, "w", drawn, chances, "failures", "trajectory")
    only = Selection(condition=("b",))
    found = agreement.of_workspace(store, ["failures"], only=only)
    own = {rater: {n: yes for n, yes in labels.items() if n % 2} for rater, labels in said.items()}
    expected = _weighted_kappa(own["ann"], own["bob"], chances)
    assert value(found, "cohen_kappa", "ann", "bob") == pytest.approx(expected)
    some = [row.model_copy(update={"group": None}) for row in rates.rates(store, by=["condition"])[1:]]
    assert rates.rates(store, only=only) == some and some[0].n_human == len(own["ann"])


def _weighted_kappa(
    one: Mapping[int, bool], other: Mapping[int, bool], chances: Mapping[int, float]
) -> float:
    """Cohen's kappa by hand, of what two said of the units that both rated, by 1/π."""
    shared = sorted(one.keys() & other.keys())
    w = np.array([1 / chances[n] for n in shared])
    a, b = (np.array([labels[n] for n in shared]) for labels in (one, other))
    pa, pb = np.average(a, weights=w), np.average(b, weights=w)
    chance = pa * pb + (1 - pa) * (1 - pb)
    return float((np.average(a == b, weights=w) - chance) / (1 - chance))


def _numbered(count: int) -> list[Any]:
    talk = team(("human", "Hi"), ("agent", "Ho"))
    names = [f"s{number:02d}" for number in range(count)]
    return [talk.model_copy(update={"id": name, "native_id": name}) for name in names]
