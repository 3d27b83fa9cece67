"""Comparisons: what they leave out and what their metrics are called."""

import json
from math import comb
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.analyze import compare, rates
from coaudit.pipeline.analyze.metrics import metrics
from coaudit.pipeline.store import Store
from tests.conftest import Coaudit
from tests.pipeline.analyze.test_agreement import runs, said, sampled
from tests.pipeline.stores import made, rate, take, verdict, write_lines
from tests.shared import ROOT

GRADE = """
name = "grade"
title = "Grade"
unit = "trajectory"
level = "ordinal"
labels = ["1", "2", "3", "4"]
question = "How good is the result?"
[[codes]]
code = "grade"
name = "Grade"
definition = "How good the result is."
"""


def session(number: int, condition: str | None, outcomes: dict[str, float]) -> list[dict[str, Any]]:
    """One session of two that hold one outcome each line, as coaudit's own JSON Lines."""
    name = f"s{number}"
    head = {"type": "trajectory", "native_id": name, "participants": [{"name": "Bot", "kind": "agent"}]}
    said = {"type": "event", "trajectory": name, "actor": "Bot", "kind": "message", "text": "hello"}
    came = [{"type": "outcome", "trajectory": name, "name": n, "value": v} for n, v in outcomes.items()]
    return [head | ({} if condition is None else {"condition": condition}), said, *came]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Four sessions in a, four in b, one in neither."""
    found = made(tmp_path / "workspace")
    lines = []
    for number, condition in enumerate([*"aaaabbbb", None]):
        lines += session(number, condition, {"success": float(number < 3), "helpful": float(number)})
    take(found, write_lines(tmp_path / "log.jsonl", lines))
    return found


def test_a_rate_has_one_name_in_metrics_and_comparisons(store: Store) -> None:
    named = {row.metric for row in metrics(store, by=["condition"])}
    compared = {row["metric"] for row in compare.compare(store, "condition")}
    assert {"success_rate", "outcome:helpful"} <= compared & named
    assert "success" not in compared | named


def test_a_code_of_utterances_that_people_labelled_is_compared_as_rates_tells_it(store: Store) -> None:
    """What the judge alone rated is compared by its own labels, those of a run together."""
    kinds = {"ann": "human", "bot": "llm"}
    words = {"y": "yes", "n": "no"}
    lines = [
        verdict(f"s{number}", 0, "initiative", words[label], rater=rater, rater_kind=kinds[rater])
        for rater, said in (("bot", "yynnyyny"), ("ann", "yynnnyyn"))
        for number, label in enumerate(said)
    ]
    rate(store, lines[:8])
    (alone,) = compare.compare(store, "condition", metrics=["initiative"])
    assert (alone["rater"], alone["basis"]) == ("bot", compare.JUDGE_ONLY)
    assert (alone["first"], alone["second"], alone["sizes"]) == (0.5, 0.75, (4, 4))
    rate(store, lines)
    (own,) = compare.compare(store, "condition", metrics=["initiative"], rater="ann")
    assert (own["basis"], own["first"], own["second"]) == (compare.OWN_LABELS, 0.5, 0.5)
    (row,) = compare.compare(store, "condition", metrics=["initiative"])
    told = {(r.group or {}).get("condition"): r for r in rates.rates(store, ["initiative"], by=["condition"])}
    assert (row["rater"], row["basis"], row["sizes"]) == ("bot", compare.CORRECTED, (4, 4))
    assert (row["first"], row["second"]) == (told["a"].rate, told["b"].rate) == (0.5, 0.5)
    assert "unclear or skipped" not in row["statement"]
    rate(store, [{**lines[-1], "label": "unclear"}, {**lines[-5], "label": None, "error": "skipped"}])
    (row,) = compare.compare(store, "condition", metrics=["initiative"])
    assert (row["sizes"], row["left_out"]) == ((3, 3), (1, 1))
    assert "n=3 + 3 labelled units (1 + 1 unclear or skipped left out)" in row["statement"]


def test_no_label_of_a_scale_is_a_finding(tmp_path: Path) -> None:
    """The first of its labels was counted as one, as `present` is."""
    store = made(tmp_path / "workspace")
    take(store, write_lines(tmp_path / "log.jsonl", session(0, "a", {}) + session(1, "a", {})))
    folder = store.workspace.codebooks
    folder.mkdir()
    (folder / "grade.toml").write_text(GRADE, encoding="utf-8")
    faults = {"codebook": "failures", "code": "C.1"}
    rate(store, [verdict("s0", None, "grade", "1"), verdict("s1", None, "grade", "4")])
    rate(
        store, [verdict("s0", None, label="present", **faults), verdict("s1", None, label="absent", **faults)]
    )
    with store.reading() as connection:
        rows = connection.execute("SELECT code, label, present FROM findings ORDER BY ALL").fetchall()
    assert rows == [("C.1", "absent", 0), ("C.1", "present", 1), ("grade", "1", None), ("grade", "4", None)]


@pytest.mark.parametrize("rater", ["ann", "bot"])
def test_units_within_sessions_are_compared_on_any_scale_by_what_a_rater_said_of_them(
    tmp_path: Path, rater: str
) -> None:
    """Where people had not labelled a code with two labels, small units had no row, and nothing said why. 6
    utterances of each session in the first group, one of each in the second: sessions are the clusters."""
    store = made(tmp_path / "workspace")
    store.workspace.codebooks.mkdir(parents=True)
    text = GRADE.replace('"trajectory"', '"utterance"')
    (store.workspace.codebooks / "grade.toml").write_text(text, encoding="utf-8")
    lines, given = [], []
    for number in range(8):
        head, said, *_ = session(number, "ab"[number // 4], {})
        count = 6 if number < 4 else 1
        lines += [head, *[said] * count]
        kind = {"rater": rater, "rater_kind": "human" if rater == "ann" else "llm", "code": "grade"}
        labels = "444444" if number < 2 else "123412" if number < 4 else str(number - 3)
        given += [verdict(f"s{number}", n, "grade", labels[n], **kind) for n in range(count)]
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    assert rate(store, given).imported == 28
    (row,) = compare.compare(store, "condition", metrics=["grade (mean)"], rater=rater)
    assert row["first"] == pytest.approx((12 * 4 + 2 * 13) / 24) and row["second"] == 2.5
    assert (row["rater"], row["sizes"], row["pairs"]) == (rater, (24, 4), 0)
    # s²/n of 4 clusters' means, which are of 6 units each and of one: 4, 4, 13/6, 13/6 and 1 to 4.
    error = (4 * (11 / 12) ** 2 / 3 / 4 + 5 / 3 / 4) ** 0.5
    assert row["p_value"] is not None and row["p_value"] > 0.05
    assert row["low"] < row["effect"] - error < row["effect"] + error < row["high"]


@pytest.mark.parametrize(
    "command", ["agreement", "rates", "validate", "compare --by condition", "train --codebook grade"]
)
def test_ratings_on_another_version_of_a_codebook_are_told_where_they_do_not_count(
    coaudit: Coaudit, tmp_path: Path, command: str
) -> None:
    """Nothing was rated yet, so it said, of a codebook that was corrected between two waves; or that there
    was nothing to learn from."""
    store = made(tmp_path / "workspace")
    store.workspace.codebooks.mkdir(parents=True)
    path = store.workspace.codebooks / "grade.toml"
    path.write_text(GRADE, encoding="utf-8")
    take(store, write_lines(tmp_path / "log.jsonl", session(0, "a", {}) + session(1, "b", {})))
    given = [verdict(f"s{n}", None, "grade", "2", code="grade", rater_kind="human") for n in range(2)]
    assert rate(store, given).imported == 2
    expected = "grade: 2 ratings on another version of it do not count (`coaudit ratings uncounted`)"
    assert expected not in coaudit(*command.split(), status=None).err
    path.write_text(GRADE.replace("the result is.", "the result is, all in all."), encoding="utf-8")
    assert expected in coaudit(*command.split(), status=None).err


def test_ratings_on_sessions_that_a_codebook_is_not_for_are_told_where_they_do_not_count(
    coaudit: Coaudit, tmp_path: Path
) -> None:
    """`ratings import` takes them, for sessions may get the task that they lack; nothing was rated yet, so it
    said."""
    store = made(tmp_path / "workspace")
    take(store, write_lines(tmp_path / "log.jsonl", session(0, "a", {}) + session(1, "b", {})))
    given = [verdict(f"s{n}", None, "related_work_quality", "2", code="quality") for n in range(2)]
    assert rate(store, given).imported == 2
    expected = "related_work_quality: 2 ratings on sessions that it is not for (applies_to) do not count"
    assert expected in coaudit("agreement", status=None).err


def test_statements_of_a_code_that_two_codebooks_have_say_of_which_they_are(tmp_path: Path) -> None:
    """Both read alike, down to the rater."""
    store = made(tmp_path / "workspace")
    store.workspace.codebooks.mkdir(parents=True)
    log = [line for n in range(8) for line in session(n, "ab"[n % 2], {})]
    take(store, write_lines(tmp_path / "log.jsonl", log))
    expected = {"grade": ["grade (mean)"], "twin": ["grade (mean) of grade", "grade (mean) of twin"]}
    for name, heads in expected.items():
        text = GRADE.replace('name = "grade"', f'name = "{name}"')
        (store.workspace.codebooks / f"{name}.toml").write_text(text, encoding="utf-8")
        given = [verdict(f"s{n}", None, name, "2", code="grade", rater_kind="human") for n in range(8)]
        assert rate(store, given).imported == 8
        rows = compare.compare(store, "condition", metrics=["grade (mean)"], rater="ann")
        assert [row["statement"].split(" (ann)")[0] for row in rows] == heads


def test_an_outcome_of_any_name_is_compared_as_it_is_measured(store: Store) -> None:
    (row,) = compare.compare(store, "condition", metrics=["outcome:helpful"])
    assert (row["first"], row["second"], row["effect"]) == (1.5, 5.5, -4)
    # Student's t by hand: both variances are 5/3, so the error is √(5/6) on 6 degrees of freedom, t = 2.4469.
    reach = 2.446912 * (5 / 6) ** 0.5
    assert (row["low"], row["high"]) == pytest.approx((-4 - reach, -4 + reach))
    # One of C(8, 4) = 70 arrangements is as extreme, and its mirror: as mid-p 1/70; Welch's t gives .0046.
    assert row["p_value"] == pytest.approx(1 / 70)


def test_a_reward_is_compared_at_the_price_that_it_names(tmp_path: Path) -> None:
    """ReHAC's own figure was in `metrics` alone."""
    store = made(tmp_path / "workspace")
    for condition in ("a", "b"):
        log = (ROOT / "data" / "rehac" / "hotpotqa_pairs.jsonl").read_text("utf-8").splitlines()
        lines = log[:3] if condition == "a" else log[3:]
        (tmp_path / f"{condition}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    take(store, tmp_path / "a.jsonl")
    take(store, tmp_path / "b.jsonl")
    for penalty in (0.0, 0.08, 0.5):
        (row,) = compare.compare(store, "condition", metrics=["reward"], penalty=penalty)
        own = [m.value for m in metrics(store, by=["condition"], penalty=penalty) if m.metric == "reward"]
        assert [row["first"], row["second"]] == pytest.approx(own)
        assert row["definition"] == f"λ = {penalty:g}" and f"reward (λ = {penalty:g}): " in row["statement"]


def test_own_labels_of_an_uneven_sample_are_weighted_and_gold_that_settled_disputes_is_not_compared(
    tmp_path: Path,
) -> None:
    """What a sample took likelier counted as often as it was taken: the means were those of the sample."""
    store = made(tmp_path / "workspace")
    store.workspace.codebooks.mkdir(parents=True)
    (store.workspace.codebooks / "grade.toml").write_text(GRADE, encoding="utf-8")
    lines = [line for n in range(8) for line in session(n, "ab"[n % 2], {})]
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    code = {"code": "grade", "rater_kind": "human"}
    labels = {"ann": (0, 1, 4, 5), "bob": (0, 2, 3), "gold": (0,)}
    for rater, numbers in labels.items():
        scores = {0: "4", 1: "3"} if rater == "ann" else {0: "4"} if rater == "gold" else {}
        ratings = [verdict(f"s{n}", None, "grade", scores.get(n, "2"), rater=rater, **code) for n in numbers]
        assert rate(store, ratings).imported == len(numbers)
    chances = {n: 0.8 if n < 2 else 0.25 for n in range(8)}
    sampled(store, "drawn", {n: chances[n] for n in (0, 1, 4, 5)}, chances, "grade", "trajectory")
    ((ann,), (bob,)) = (
        compare.compare(store, "condition", metrics=["grade (mean)"], rater=name) for name in ("ann", "bob")
    )
    (row,) = compare.compare(store, "condition", metrics=["grade (mean)"])
    assert (row["rater"], row["basis"]) == (None, compare.PEOPLE)
    assert (ann["basis"], bob["basis"]) == (f"{compare.OWN_LABELS}; {compare.WEIGHTED}", compare.OWN_LABELS)
    # Of a: 4 with 1/.8 and 2 with 1/.25; unweighted 3 and 2.5.
    assert ann["first"] == pytest.approx((4 * 1.25 + 2 * 4) / 5.25)
    assert ann["second"] == pytest.approx((3 * 1.25 + 2 * 4) / 5.25)


def graded(folder: Path, conditions: str, labels: dict[int, str]) -> Store:
    """A session of each letter, some of them labelled by ann, on a codebook without an order."""
    found = made(folder / "workspace")
    found.workspace.codebooks.mkdir(parents=True)
    book = GRADE.replace('"ordinal"', '"nominal"')
    (found.workspace.codebooks / "grade.toml").write_text(book, encoding="utf-8")
    lines = [line for n, arm in enumerate(conditions) for line in session(100 + n, arm, {})]
    take(found, write_lines(folder / "log.jsonl", lines))
    code = {"code": "grade", "rater_kind": "human", "rater": "ann"}
    ratings = [verdict(f"s{100 + n}", None, "grade", label, **code) for n, label in labels.items()]
    assert rate(found, ratings).imported == len(labels)
    return found


def test_weights_change_nothing_where_each_group_was_drawn_evenly(tmp_path: Path) -> None:
    """A sample with as many of the smaller group: its shares had no table any more."""
    drawn = [*range(10), *range(12, 22)]
    store = graded(tmp_path, "a" * 12 + "b" * 48, {n: "4" if n < 7 else "2" for n in drawn})
    (alone,) = compare.compare(store, "condition", metrics=["grade: 4"], rater="ann")
    chances = {n: 10 / 12 if n < 12 else 10 / 48 for n in range(60)}
    sampled(store, "drawn", {n: chances[n] for n in drawn}, chances, "grade", "trajectory")
    (weighted,) = compare.compare(store, "condition", metrics=["grade: 4"], rater="ann")
    assert weighted["basis"] == f"{compare.OWN_LABELS}; {compare.WEIGHTED}"
    assert alone["test"] == "Fisher, mid-p" and (alone["first"], alone["second"]) == (0.7, 0.0)
    figures = ("test", "first", "second", "low", "high", "p_value")
    assert [weighted[name] for name in figures] == [alone[name] for name in figures]


def test_what_few_heavy_sessions_lack_others_may_have(tmp_path: Path) -> None:
    """An interval of as many even ones held shares in .56 to .81 of samples."""
    labels = {n: "4" if n == 1 else "2" for n in range(50)}  # 40 of 40 and 10 of 200
    store = graded(tmp_path, "ab" * 120, labels)
    chances = {n: 1.0 if n < 40 else 0.05 for n in range(240)}
    sampled(store, "drawn", {n: chances[n] for n in labels}, chances, "grade", "trajectory")
    (row,) = compare.compare(store, "condition", metrics=["grade: 4"], rater="ann")
    assert (row["first"], row["second"]) == (0.0, pytest.approx(1 / 120))
    assert row["low"] < -0.3 and row["high"] > 0.3


PEOPLE = ["Ada", "Bea", "Cem", "Dov", "Eva", "Fay", "Gus", "Hal"]


def studied(folder: Path, names: list[str], values: list[float], **head: str) -> Store:
    """Three sessions of each of eight people, the first twelve sessions in a; `values` are one a person."""
    lines = []
    for number in range(24):
        name, own = f"s{number}", {"score": values[number // 3], "success": float(values[number // 3] > 3)}
        trajectory, event, *outcomes = session(number, "ab"[number // 12], own)
        person = [{"name": names[number // 3], "kind": "human"}]
        lines += [{**trajectory, **head, "participants": [*trajectory["participants"], *person]}, event]
        lines += [{**event, "actor": names[number // 3], "text": name}, *outcomes]
    store = made(folder / "workspace")
    take(store, write_lines(folder / "log.jsonl", lines))
    return store


def test_sessions_of_one_person_can_count_as_one_observation(coaudit: Coaudit, tmp_path: Path) -> None:
    """Eight people with three sessions each, and what they get depends on who they are: by sessions every
    difference is significant. In simulation .28 of groups that are alike differed."""
    store = studied(tmp_path, PEOPLE, [5, 4, 3, 4, 3, 2, 4, 2])
    (alone,) = compare.compare(store, "condition", metrics=["outcome:score"])
    assert alone["p_value"] < 0.01 and alone["alone"] == (12, 12)
    (row,) = compare.compare(store, "condition", metrics=["outcome:score"], cluster="person")
    assert (row["effect"], row["alone"], row["cluster"]) == (alone["effect"], (4, 4), "person")
    assert row["p_value"] > 0.05 and "n=12 + 12 (of 4 + 4 people)" in row["statement"]
    place = store.workspace.path
    shown = coaudit("--workspace", place, "compare", "--by", "condition")
    assert "8 people (such as Ada) took part in several sessions" in shown.err
    told = coaudit("--workspace", place, "compare", "--by", "condition", "--json").json
    assert told["repeated_people"] == 8
    clustered = coaudit("--workspace", place, "compare", "--by", "condition", "--cluster", "person")
    assert "took part" not in clustered.err and "(of 4 + 4 people)" in clustered.out


def test_a_person_who_was_in_both_groups_is_paired(tmp_path: Path) -> None:
    store = studied(tmp_path, PEOPLE[:4] * 2, [5, 4, 3, 4, 4, 3, 2, 3])
    (row,) = compare.compare(store, "condition", metrics=["outcome:score"], cluster="person")
    assert (row["pairs"], row["alone"], row["effect"]) == (4, (0, 0), 1)
    assert "(4 people paired)" in row["statement"]


def test_names_that_say_who_speaks_are_no_people(tmp_path: Path) -> None:
    store = studied(tmp_path, ["user"] * 8, [5.0] * 8)
    assert compare.repeated_people(store) == (0, None)
    runs_of_one = studied(tmp_path / "instances", PEOPLE, [5.0] * 8, instance="one")
    assert compare.repeated_people(runs_of_one) == (0, None)


def test_metrics_say_that_people_took_part_in_several_sessions_of_a_group(
    coaudit: Coaudit, tmp_path: Path
) -> None:
    """Intervals took them as independent without a word; by round each person has one session a group."""
    lines = []
    for number in range(12):
        trajectory, event = session(number, None, {})
        trajectory["participants"].append({"name": PEOPLE[number // 3], "kind": "human"})
        lines += [{**trajectory, "tags": {"round": str(number % 3)}}, event]
    store = made(tmp_path / "workspace")
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    shown = coaudit("--workspace", store.workspace.path, "metrics")
    assert "4 people (such as Ada) took part in several sessions, which count as independent" in shown.err
    by_round = coaudit("--workspace", store.workspace.path, "metrics", "--by", "round")
    assert "took part" not in by_round.err


def test_names_in_every_session_say_who_speaks(tmp_path: Path) -> None:
    """A log of roles warned, and by these people all its sessions were one observation."""
    lines = []
    for number in range(8):
        trajectory, event = session(number, "ab"[number % 2], {})
        for name in ("user", "expert", "student"):
            trajectory["participants"].append({"name": name, "kind": "human"})
        lines += [trajectory, event]
    store = made(tmp_path / "workspace")
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    assert compare.repeated_people(store) == (0, None)


def test_a_tag_that_is_called_person_says_who_took_part(tmp_path: Path) -> None:
    """Participants are called user: by their names all sessions were of one person."""
    lines = []
    for number in range(12):
        trajectory, event, outcome = session(number, "ab"[number // 6], {"score": float(number // 2)})
        trajectory["participants"].append({"name": "user", "kind": "human"})
        lines += [{**trajectory, "tags": {"person": f"P{number // 2}"}}, event, outcome]
    store = made(tmp_path / "workspace")
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    (row,) = compare.compare(store, "condition", metrics=["outcome:score"], cluster="person")
    assert (row["pairs"], row["alone"]) == (0, (3, 3))


def test_the_cluster_instance_is_the_default(tmp_path: Path) -> None:
    """Instances are numbered within tasks: the first of two tasks were one observation."""
    lines = []
    for number in range(8):
        trajectory, event, outcome = session(number, "ab"[number % 2], {"score": float(number)})
        head = {"task": "xy"[number // 4], "instance": str(number // 2 % 2)}
        lines += [trajectory | head, event, outcome]
    store = made(tmp_path / "workspace")
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    by_default = compare.compare(store, "condition")
    assert by_default[0]["pairs"] == 4
    assert compare.compare(store, "condition", cluster="instance") == by_default


def test_what_the_cluster_person_leaves_independent_is_told(coaudit: Coaudit, tmp_path: Path) -> None:
    """Each person took part with three partners, and two sessions have nobody: all counted as independent
    without a word."""
    lines = []
    for number in range(14):
        trajectory, event = session(number, "ab"[number % 2], {})
        team = (PEOPLE[number // 3], f"partner {number}") if number < 12 else ()
        trajectory["participants"] += [{"name": name, "kind": "human"} for name in team]
        lines += [trajectory, event]
    store = made(tmp_path / "workspace")
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    place = store.workspace.path
    shown = coaudit("--workspace", place, "compare", "--by", "condition", "--cluster", "person")
    assert "2 of 14 trajectories have no person: each counts as one observation" in shown.err
    assert "4 people (such as Ada) took part in several teams" in shown.err
    told = coaudit("--workspace", place, "compare", "--by", "condition", "--cluster", "person", "--json").json
    assert (told["without_cluster"], told["repeated_people"]) == (2, 4)


def test_a_reason_names_the_groups(store: Store) -> None:
    rate(store, [verdict(f"s{n}", 0, "initiative", "yes", rater="bot", rater_kind="llm") for n in range(8)])
    rate(store, [verdict(f"s{n}", 0, "initiative", "yes", rater="ann", rater_kind="human") for n in range(4)])
    (row,) = compare.compare(store, "condition", metrics=["initiative"], rater="bot")
    assert row["reason"] == "b: no human label"


def test_trajectories_without_a_group_are_counted(store: Store) -> None:
    assert compare.ungrouped(store, "condition") == (1, 9)
    assert compare.ungrouped(store, "system") == (0, 9)


def test_what_rests_on_a_judge_alone_says_so_of_process_metrics_too(tmp_path: Path) -> None:
    store = made(tmp_path / "workspace")
    people = [{"name": "Ada", "kind": "human"}, {"name": "Bot", "kind": "agent"}]
    lines: list[dict[str, Any]] = []
    for number in range(8):
        name = f"s{number}"
        head = {
            "type": "trajectory",
            "native_id": name,
            "condition": "ab"[number % 2],
            "participants": people,
        }
        said = {"type": "event", "trajectory": name, "kind": "message"}
        lines += [head, *(said | {"actor": who, "text": f"{who} {number}"} for who in ("Ada", "Bot", "Ada"))]
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    ratings = [
        verdict(f"s{number}", event, "initiative", "yes", rater=rater, rater_kind=kind)
        for rater, kind, every in (("judge", "llm", 8), ("part", "llm", 6), ("ann", "human", 8))
        for number in range(every)
        for event in (1, 2)
    ]
    assert rate(store, ratings).imported == len(ratings)
    rows = compare.compare(store, "condition", metrics=["initiative_entropy"])
    assert {row["rater"]: row["basis"] for row in rows} == {
        "judge": compare.JUDGE_ONLY,
        "part": f"{compare.ESTIMATED}; {compare.JUDGE_ONLY}",
        "ann": compare.MEASURED,
    }


def test_a_group_of_which_few_units_are_rated_is_shown_and_not_tested(tmp_path: Path) -> None:
    """Of such groups, two that were alike differed at .05 in four of five samples."""
    store = made(tmp_path / "workspace")
    people = [{"name": "Ada", "kind": "human"}, {"name": "Bot", "kind": "agent"}]
    lines: list[dict[str, Any]] = []
    for number in range(16):
        name, condition = f"s{number}", "ab"[number % 2]
        head = {"type": "trajectory", "native_id": name, "condition": condition, "participants": people}
        said = {"type": "event", "trajectory": name, "kind": "message"}
        lines += [
            head,
            *(said | {"actor": ("Ada", "Bot")[i % 2], "text": f"{i} {number}"} for i in range(13)),
        ]
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    ratings = [
        verdict(f"s{number}", event, "initiative", "yes" if (number + event) % 3 else "no", rater="ann")
        for number in range(16)
        for event in (range(1, 13) if number % 2 else (1, 2))
    ]
    assert rate(store, ratings).imported == len(ratings)
    (row,) = compare.compare(store, "condition", metrics=["initiative_entropy"])
    assert row["effect"] == pytest.approx(row["first"] - row["second"])
    assert (row["p_value"], row["low"], row["family"]) == (None, None, None)
    assert row["statement"].endswith("no test, of a fewer than a fifth of the sessions' units are rated.")


@pytest.mark.long
def test_a_crowd_is_compared_by_those_alone_who_are_asked_for(coaudit: Coaudit, tmp_path: Path) -> None:
    """Each of 500 people was a test of its own, and corrected for those of all others."""
    store = made(tmp_path / "workspace")
    people = [{"name": "Ada", "kind": "human"}, {"name": "Bot", "kind": "agent"}]
    lines: list[dict[str, Any]] = []
    for number in range(6):
        name = f"s{number}"
        head = {"type": "trajectory", "native_id": name, "condition": "ab"[number % 2]}
        said = {"type": "event", "trajectory": name, "kind": "message"}
        turns = (said | {"actor": who, "text": f"{who} {number}"} for who in ("Ada", "Bot", "Ada"))
        lines += [head | {"participants": people}, *turns]
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    everyone = [*((f"w{n}", "human") for n in range(21)), ("judge", "llm")]
    ratings = [
        verdict(f"s{number}", event, "initiative", "yes", rater=rater, rater_kind=kind)
        for rater, kind in everyone
        for number in range(6)
        for event in (1, 2)
    ]
    assert rate(store, ratings).imported == len(ratings)
    workspace = ["--workspace", str(store.workspace.path), "compare", "--by", "condition"]
    told = coaudit(*workspace)
    assert "initiative_entropy (judge)" in told.out and "(w" not in told.out
    assert "21 people rated a few units each: `--rater NAME` compares by one of them" in told.err
    told = coaudit(*workspace, "--rater", "w7")
    assert "initiative_entropy (w7)" in told.out and "judge" not in told.out
    assert "people rated a few units" not in told.err


def test_a_scale_from_0_to_1_is_no_yes_and_no(tmp_path: Path) -> None:
    store = made(tmp_path / "workspace")
    folder = store.workspace.codebooks
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "grade.toml").write_text(
        'name = "grade"\ntitle = "Grade"\nunit = "trajectory"\nlevel = "ordinal"\n'
        'labels = ["0", "0.5", "1"]\nquestion = "How good?"\n'
        '[[codes]]\ncode = "grade"\nname = "Grade"\ndefinition = "How good it is."\n'
    )
    lines = [line for n in range(16) for line in session(n, "ab"[n % 2], {})]
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    label = {"a": "0.5", "b": "0"}
    rate(store, [verdict(f"s{n}", None, "grade", label["ab"[n % 2]]) for n in range(16)])
    (row,) = compare.compare(store, "condition", metrics=["grade (mean)"], rater="ann")
    assert (row["first"], row["second"]) == (0.5, 0)
    # Each of eight is ½. A share of 4 of 8 would reach to .78 (Agresti and Coull), and so the difference.
    assert row["high"] < 0.6
    # A grade that was not seen may be 1: as if four of these eight were, of which the other eight have none.
    assert row["p_value"] == pytest.approx(comb(12, 8) / comb(16, 8))


@pytest.mark.long
def test_groups_with_commas_and_without_letters_can_be_named(coaudit: Coaudit, tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    lines = [
        {
            "id": f"r{n}",
            "messages": talk,
            "tags": {"arm": ("a, b", "c", "")[n % 3]},
            "outcomes": {"success": n % 2},
        }
        for n in range(12)
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    coaudit("ingest", path)
    for given, names in (('"a, b",c', ["a, b", "c"]), ('"", c', ["", "c"])):
        found = json.loads(coaudit("compare", "--by", "arm", "--groups", given, "--json").out)
        assert {tuple(row["groups"]) for row in found["rows"]} == {tuple(names)}
    for given in ("a, b, c", "c", "c,c", '"a'):
        said = coaudit("compare", "--by", "arm", "--groups", given, status=2).err
        assert "--groups takes two names separated by a comma" in said
    assert (
        "no trajectory is in group 'd'" in coaudit("compare", "--by", "arm", "--groups", "c,d", status=2).err
    )


def test_what_a_metric_can_t_be_is_missing_for_that_reason(coaudit: Coaudit, tmp_path: Path) -> None:
    """Steps below 0 ended metrics and compare with a division by 0, and a reward of 7 was cut to 1."""
    outcomes = [
        {"success": 1.0, "last_timestep": -3.0 - number, "task_reward": 7.0 if number % 2 else 0.5}
        for number in range(12)
    ]
    lines: list[dict[str, Any]] = []
    for number, came in enumerate(outcomes):
        head, *rest = session(number, "ab"[number % 2], came)
        lines += [head | {"instance": f"i{number}", "system": "rehac" if number < 4 else "overcooked"}, *rest]
    coaudit("ingest", write_lines(tmp_path / "log.jsonl", lines))
    rows = json.loads(coaudit("metrics", "--json").out)["rows"]
    values = {row["metric"]: (row["value"], row["missing"], row.get("reason")) for row in rows}
    assert values["timesteps"] == (None, 8, "timesteps must be 0 or more, got -10")
    assert [values[name][:2] for name in ("task_reward", "reward")] == [(0.5, 2), (0.5, 2)]
    rows = json.loads(coaudit("compare", "--by", "condition", "--json").out)["rows"]
    assert "timesteps" not in {row["metric"] for row in rows}


def test_a_run_whose_timesteps_lie_below_0_has_no_number_of_them(coaudit: Coaudit, tmp_path: Path) -> None:
    """By hand: the sample's last timestep is 16, and these runs begin at -30, -31 and so on."""
    (sample,) = (ROOT / "data/overcooked/logs/model_a/poached_pear").glob("*10-00-00*")
    for number in range(8):
        order = f"dish_{number}"
        log = json.loads(sample.read_text(encoding="utf-8").replace("poached_pear", order))
        for place in (*log["content"], *(entry for actions in log["total_action_list"] for entry in actions)):
            place["timestamp"] -= 30 + number
        log["total_timestamp"] = [step - 30 - number for step in log["total_timestamp"]]
        path = tmp_path / "logs" / "ab"[number % 2] / order / f"experiment_2026-01-12_10-00-00_{order}.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(log), encoding="utf-8")
    coaudit("ingest", tmp_path / "logs")
    rows = json.loads(coaudit("metrics", "--per", "trajectory", "--json").out)["rows"]
    reasons = {row["reason"] for row in rows if row["metric"] == "timesteps"}
    assert reasons == {f"timesteps must be 0 or more, got {-14 - number}" for number in range(8)}
    assert coaudit("compare", "--by", "condition").out


def test_a_code_of_several_codebooks_says_whose_it_is_whatever_is_estimated_of_it(tmp_path: Path) -> None:
    """Of `late` in a scale and in two nominal codebooks nothing told which was which, since their names
    differed by `: 1` and ` (mean)` alone."""
    store = runs(tmp_path, 12, ["a", "b"] * 6)
    for book, labels in (("first", "yn"), ("scale", "12"), ("kind", "12")):
        letters = "".join(labels[n % 3 == 0] for n in range(12))
        said(store, book, {("ann", "late"): letters})
    statements = [
        row["statement"]
        for row in compare.compare(store, "condition", rater="ann")
        if row["question"] != "metrics"
    ]
    assert {one.split(" (ann)")[0] for one in statements} >= {"late of first", "late: 1 of kind"}
    assert any("late (mean) of scale" in one for one in statements)
