"""Drawing samples from a store: what a sample must say for a second one to be weighed with it."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coaudit.pipeline import codebooks, units
from coaudit.pipeline.analyze import matrices
from coaudit.pipeline.annotate import draw
from coaudit.pipeline.errors import UsageError
from coaudit.pipeline.ingest.measure import save
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.store.ledgers import samples
from coaudit.schemas import Codebook
from tests.conftest import Coaudit
from tests.judges.teams import team
from tests.pipeline.stores import holding, made, rate, rows, verdict


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A session of forty-one utterances, the first of which opens it."""
    found = made(tmp_path / "workspace")
    log = team(*[(("human", "agent")[i % 2], f"Message {i}") for i in range(41)], key="t")
    with found.writing() as connection:
        save(found, [log], connection)
    return found


def events(sample: samples.Sample) -> set[int | None]:
    return {unit.event for unit in sample.units}


@pytest.mark.long
def test_samples_of_other_names_are_independent_and_of_the_same_one_the_same(store: Store) -> None:
    wish = draw.Wish(("initiative",), "first", size=20)
    drawn = events(draw.draw(store, wish))
    (store.workspace.samples / "first.jsonl").unlink()
    assert events(draw.draw(store, wish)) == drawn
    shared = [
        len(events(draw.draw(store, draw.Wish(("initiative",), f"s{k}", size=20))) & drawn) for k in range(9)
    ]
    assert 7 < np.mean(shared) < 13, "half of the half"


@pytest.mark.long
def test_the_same_wish_again_leaves_the_sample_as_it_is_and_another_is_refused(store: Store) -> None:
    """A run that was killed behind the file is whole when it is run again."""
    sample = draw.draw(store, draw.Wish(("initiative",), "first", size=10))
    rate(store, [verdict("t", 3, "initiative", "yes")])
    assert draw.draw(store, draw.Wish(("initiative",), "first", size=10)) == sample
    for other in (draw.Wish(("initiative",), "first", size=11), draw.Wish(("halting",), "first", size=10)):
        with pytest.raises(UsageError, match="sample 'first' exists; choose another --name"):
            draw.draw(store, other)
    with pytest.raises(UsageError, match="nobody"):
        draw.draw(store, draw.Wish(("nobody",), "first", size=10))


def test_a_judge_where_none_stratifies_is_refused_before_anything_is_drawn(store: Store) -> None:
    """The sample was written, and called one of another wish."""
    rate(store, [verdict("t", 3, "initiative", "yes", rater="rules", rater_kind="rule")])
    for given in ({}, {"by": ("condition",)}, {"method": "disagreements"}):
        with pytest.raises(UsageError, match="--judge rules says whose labels stratify: give --method strat"):
            draw.draw(store, draw.Wish(("initiative",), "first", judge="rules", **given))
    assert not samples.path(store.workspace, "first").exists()
    assert draw.draw(store, draw.Wish(("initiative",), "first", judge="rules", method="stratified"))


def test_a_sample_says_with_what_probability_it_could_have_taken_each_unit(store: Store) -> None:
    sample = draw.draw(store, draw.Wish(("initiative",), "first", size=10))
    n = rows(store, "SELECT count(*) AS n FROM units WHERE kind = 'utterance' AND NOT opening")[0]["n"]
    (frame,) = sample.frames
    assert frame.probability == pytest.approx(10 / n)
    assert sum(map(len, frame.units.values())) == n
    assert samples.load(store.workspace, "first") == sample
    assert rows(store, "SELECT count(*) AS n FROM frames") == [{"n": n}]


@pytest.mark.long
def test_a_stratified_sample_takes_of_each_stratum_its_share_of_the_corpus(store: Store) -> None:
    units = rows(store, "SELECT trajectory_id, event FROM units WHERE kind = 'utterance' AND NOT opening")
    more = {"rater": "judge", "rater_kind": "llm"}
    labels = ["yes" if number % 4 == 0 else "no" for number in range(len(units))]
    rate(
        store,
        [
            verdict(unit["trajectory_id"], unit["event"], "initiative", label, **more)
            for unit, label in zip(units, labels, strict=True)
        ],
    )
    sample = draw.draw(store, draw.Wish(("initiative",), "first", size=20, method="stratified"))
    flagged = [unit for unit in sample.units if unit.stratum == "judge=yes"]
    assert (len(flagged), len(sample.units)) == (5, 20)


@pytest.mark.parametrize(
    ("level", "labels", "expected"),
    [
        ("ordinal", ("1", "2"), "about 1"),
        ("ordinal", ("1", "3"), "about 2"),
        ("ordinal", ("3", "3"), "about 3"),
        ("ordinal", ("3", None), "about 3"),
        ("ordinal", ("error", None), draw.NONE),
        ("nominal", ("3", "3"), "mostly 3"),
        ("nominal", ("3", "2"), "mostly 2"),
        ("binary", ("2", "1"), "any 1"),
        ("binary", ("2", "error"), "no 1"),
    ],
)
def test_several_codes_of_a_unit_have_one_stratum(
    level: str, labels: tuple[str | None, ...], expected: str
) -> None:
    """Whether any of them had the first label said nothing on a scale."""
    content = codebooks.load("related_work_quality").model_dump(exclude={"version"})
    codes = [{"code": name, "name": name, "definition": name} for name in "ab"]
    choices = ["1", "2"] if level == "binary" else ["1", "2", "3"]
    kind = "nominal" if level == "binary" else level
    book = Codebook.model_validate({**content, "level": kind, "labels": choices, "codes": codes})
    judgments: dict[tuple[str, str, int | None], str] = {
        (code, "t", 1): label for code, label in zip("ab", labels, strict=True) if label
    }
    assert draw._overall_label(book, judgments, {"trajectory_id": "t", "event": 1}) == expected


def of_tasks(tmp_path: Path, sessions: int = 12) -> Store:
    """Sessions of two tasks, one after the other, of two to six utterances behind the opening one."""
    logs = []
    for number in range(sessions):
        said = [(("human", "agent")[i % 2], f"Message {number}.{i}") for i in range(3 + number % 5)]
        log = team(*said, key=f"s{number:02}")
        logs.append(log.model_copy(update={"task": "xy"[number % 2]}))
    return holding(tmp_path / "workspace", logs)


def strata_of(store: Store) -> set[int]:
    with store.reading() as connection:
        (code,) = matrices.rated_codes(connection, codebooks.load("initiative", None))
    return set(code.design.strata.tolist())


@pytest.mark.long
@pytest.mark.parametrize("method", ["stratified", "simple"])
def test_the_strata_of_a_sample_are_known_of_every_unit_that_it_could_take(
    tmp_path: Path, method: str
) -> None:
    store = of_tasks(tmp_path)
    by = ("task",) if method == "stratified" else ()
    sample = draw.draw(store, draw.Wish(("initiative",), method, size=20, method=method, by=by))
    rate(store, [verdict(u.trajectory, u.event, "initiative", "yes") for u in sample.units[:7]])
    assert strata_of(store) == ({0, 1} if by else {-1})


@pytest.mark.long
def test_the_strata_of_a_sample_are_not_known_once_a_session_that_it_took_is_in_another(
    tmp_path: Path,
) -> None:
    store = of_tasks(tmp_path)
    wish = draw.Wish(("initiative",), "s", size=20, method="stratified", by=("task",))
    sample = draw.draw(store, wish)
    rate(store, [verdict(u.trajectory, u.event, "initiative", "yes") for u in sample.units])
    assert strata_of(store) == {0, 1}
    moved = sample.units[0].trajectory
    with store.writing() as connection:
        connection.execute("UPDATE trajectories SET task = 'z' WHERE id = ?", [moved])
    assert strata_of(store) == {-1}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_whole_trajectories_are_drawn_from_each_stratum_by_its_share(tmp_path: Path, seed: int) -> None:
    store = of_tasks(tmp_path)
    wish = draw.Wish(
        ("initiative",), "s", size=4, method="stratified", by=("task",), unit="trajectory", seed=seed
    )
    sample = draw.draw(store, wish)
    sessions = {unit.trajectory: unit.stratum for unit in sample.units}
    assert sorted(map(str, sessions.values())) == ["task=x", "task=x", "task=y", "task=y"]
    assert [unit.probability for unit in sample.units] == [pytest.approx(1 / 3)] * len(sample.units)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("method", ["simple", "neyman"])
def test_as_many_whole_trajectories_are_drawn_as_were_asked_for(
    tmp_path: Path, method: str, seed: int
) -> None:
    """Each session has a unit of a rare judge's label, which Neyman's shares take nearly always."""
    store = of_tasks(tmp_path)
    units = rows(store, "SELECT trajectory_id, event FROM units WHERE kind = 'utterance' AND NOT opening")
    judge = {"rater": "judge", "rater_kind": "llm"}
    said = [(u["trajectory_id"], u["event"], "yes" if u["event"] == 1 else "no") for u in units]
    rate(store, [verdict(key, event, "initiative", label, **judge) for key, event, label in said])
    pilot = draw.draw(store, draw.Wish(("initiative",), "pilot", size=40))
    rate(store, [verdict(u.trajectory, u.event, "initiative", "no") for u in pilot.units])
    wish = draw.Wish(
        ("initiative",),
        "s",
        size=5,
        method=method,
        pilot="pilot" if method == "neyman" else None,
        unit="trajectory",
        seed=seed,
    )
    sample = draw.draw(store, wish)
    assert len({unit.trajectory for unit in sample.units}) == 5
    chances = {unit.trajectory: unit.probability for unit in sample.units}
    of_all = {key: frame.probability for frame in sample.frames for key in frame.units}
    assert sum(of_all.values()) == pytest.approx(5)
    assert all(of_all[key] == chance for key, chance in chances.items())


def test_of_three_labels_more_is_drawn_where_people_differ_in_any_and_not_the_first_alone(
    tmp_path: Path,
) -> None:
    """Where the judge says fair, people say fair or bad: no first label, so that it was taken for certain."""
    store = of_tasks(tmp_path)
    (own := store.workspace.codebooks).mkdir(parents=True)
    text = """
name = "quality"
title = "Quality"
unit = "utterance"
labels = ["good", "fair", "bad"]
question = "How good is it?"
codes = [{code = "quality", name = "Quality", definition = "How good it is."}]
"""
    (own / "quality.toml").write_text(text)
    store.sync()
    units = rows(store, "SELECT trajectory_id, event FROM units WHERE kind = 'utterance' AND NOT opening")
    judge = {"rater": "judge", "rater_kind": "llm"}
    said = {(u["trajectory_id"], u["event"]): ("good", "fair")[n % 2] for n, u in enumerate(units)}
    rate(store, [verdict(key, event, "quality", label, **judge) for (key, event), label in said.items()])
    pilot = draw.draw(store, draw.Wish(("quality",), "pilot", size=len(units)))
    people = [(u, said[u.trajectory, u.event], ("fair", "bad")[n % 2]) for n, u in enumerate(pilot.units)]
    rate(
        store,
        [
            verdict(u.trajectory, u.event, "quality", "good" if judged == "good" else split)
            for u, judged, split in people
        ],
    )
    drawn = draw.draw(store, draw.Wish(("quality",), "s", size=20, method="neyman", pilot="pilot"))
    chances = {unit.stratum: unit.probability or 0 for unit in drawn.units}
    assert chances["judge=fair"] > 1.5 * chances["judge=good"]


def test_a_unit_of_the_pilot_on_which_people_differ_counts_in_part_and_gold_alone(tmp_path: Path) -> None:
    store = of_tasks(tmp_path)
    pilot = draw.draw(store, draw.Wish(("initiative",), "pilot", size=3))
    one, two, three = ((u.trajectory, u.event) for u in pilot.units)
    lines = [(one, "ann", "yes"), (one, "bob", "no"), (two, "ann", "yes"), (two, "gold", "no")]
    rate(store, [verdict(*key, "initiative", label, rater=rater) for key, rater, label in lines])
    rate(store, [verdict(*three, "initiative", "unclear", rater="ann")])
    with store.reading() as connection:
        found = draw._pilot(connection, codebooks.load("initiative"), "pilot")
    assert {key[1:]: shares for key, shares in found.items()} == {
        one: {"yes": 0.5, "no": 0.5},
        two: {"no": 1},
    }


def test_whole_trajectories_of_what_their_units_do_not_share_are_refused(store: Store) -> None:
    units = rows(store, "SELECT trajectory_id, event FROM units WHERE kind = 'utterance' AND NOT opening")
    more = {"rater": "judge", "rater_kind": "llm"}
    said = [(unit, "yes" if number % 2 else "no") for number, unit in enumerate(units)]
    rate(store, [verdict(u["trajectory_id"], u["event"], "initiative", label, **more) for u, label in said])
    wish = draw.Wish(("initiative",), "s", size=1, method="stratified", unit="trajectory")
    with pytest.raises(UsageError, match="--by judge puts units of one trajectory into several strata"):
        draw.draw(store, wish)


def scoped(store: Store) -> None:
    """Three sessions more, two of them lessons, and a codebook for the lessons of one class."""
    tasks = {"a": ("lesson", "3b"), "b": ("lesson", "4c"), "c": ("trip", "3b")}
    with store.writing() as connection:
        for key, (task, group) in tasks.items():
            log = team(("human", "Hello"), ("agent", "Message"), ("human", "Bye"), key=key)
            save(store, [log.model_copy(update={"task": task, "tags": {"class": group}})], connection)
    own = store.workspace.codebooks
    own.mkdir(parents=True)
    text = """
name = "polite"
title = "Politeness"
unit = "utterance"
labels = ["yes", "no"]
applies_to = {task = "lesson", class = "3b"}
question = "Is it polite?"
codes = [{code = "polite", name = "Polite", definition = "It is kind."}]
"""
    (own / "polite.toml").write_text(text)
    store.sync()


@pytest.mark.long
def test_a_codebook_is_asked_of_the_sessions_that_it_is_for_and_of_no_others(store: Store) -> None:
    scoped(store)
    drawn = draw.draw(store, draw.Wish(("polite", "initiative"), "s", size=1000))
    asked = {
        book: {u.trajectory for u in drawn.units if u.codebook == book} for book in drawn.design.codebooks
    }
    assert asked == {"polite": {"a"}, "initiative": {"a", "b", "c", "t"}}
    with store.reading() as connection:
        book = codebooks.load("polite", store.workspace.codebooks)
        for trajectory in store.load(connection, ["a", "b", "c", "t"]):
            assert bool(list(units.cut(trajectory, book))) == (trajectory.id == "a")


@pytest.mark.long
def test_what_was_rated_beyond_a_codebooks_scope_is_told_and_not_counted(store: Store) -> None:
    scoped(store)
    for key in "abc":
        rate(store, [verdict(key, 1, "polite", "yes", rater=who) for who in ("ann", "bob")])
    with store.reading() as connection:
        (code,) = matrices.rated_codes(connection, codebooks.load("polite", store.workspace.codebooks))
        assert {trajectory for trajectory, _ in code.units} == {"a"}
        query = "SELECT DISTINCT trajectory_id, reason FROM uncounted_ratings ORDER BY ALL"
        why = "its codebook is not for this trajectory (applies_to)"
        assert connection.execute(query).fetchall() == [("b", why), ("c", why)]


@pytest.mark.long
def test_of_many_disputes_a_random_few_are_drawn_and_the_others_told(
    store: Store, coaudit: Coaudit, workspace: Path
) -> None:
    """The first hundred were taken, in the order of ids, and nothing said that there were more."""
    said = {"ann": "yes", "bob": "no"}
    rate(
        store,
        [
            verdict("t", event, "initiative", label, rater=rater, rater_kind="human")
            for rater, label in said.items()
            for event in range(3, 41)
        ],
    )
    wish = draw.Wish(("initiative",), "few", size=10, method="disagreements")
    few, again = (draw.draw(store, replace(wish, name=name)) for name in ("few", "again"))
    assert few.design.corpus == {"initiative": 38}
    assert len(few.units) == 10 and events(few) != events(again)
    assert [unit.event for unit in few.units] == sorted(unit.event or 0 for unit in few.units)
    ask = ("sample", "--codebook", "initiative", "--method", "disagreements", "--name", "told", "--size")
    assert "28 more that people dispute were left for another sample" in coaudit(*ask, "10").err
    with pytest.raises(UsageError, match="no disagreement on halting is left to settle"):
        draw.draw(store, replace(wish, codebooks=("halting",), name="none"))


def test_a_copy_of_a_sample_under_another_name_counts_nothing_twice(store: Store) -> None:
    draw.draw(store, draw.Wish(("initiative",), "first", size=5))
    folder = store.workspace.samples
    shutil.copy(folder / "first.jsonl", folder / "second.jsonl")
    store.sync()
    with store.reading() as connection:
        query = "SELECT sample, count(*) FROM samples GROUP BY ALL"
        assert connection.execute(query).fetchall() == [("first", 5)]
        ((reason,),) = connection.execute("SELECT reason FROM quarantine").fetchall()
    assert reason.endswith("second.jsonl: holds the sample 'first', whose file is first.jsonl")


@pytest.mark.long
def test_a_sample_may_be_drawn_where_a_field_or_tag_has_a_value_and_says_so(store: Store) -> None:
    scoped(store)
    wish = draw.Wish(("initiative",), "s", size=1000, where=(("class", "3b"), ("task", "trip")))
    drawn = draw.draw(store, wish)
    assert {unit.trajectory for unit in drawn.units} == {"c"}
    assert drawn.design.where == wish.where
    assert drawn.design.corpus == {"initiative": len(drawn.units)}
    assert samples.load(store.workspace, "s") == drawn
    with pytest.raises(UsageError, match="exists; choose another"):
        draw.draw(store, draw.Wish(("initiative",), "s", size=1000))
    with pytest.raises(
        UsageError, match=r"asked of sessions with task = lesson, class = 3b only; --where tas"
    ):
        draw.draw(store, draw.Wish(("polite",), "none", where=(("task", "trip"),)))
    with pytest.raises(UsageError, match="field, a tag or an outcome 'colour', expected one of system,"):
        draw.draw(store, draw.Wish(("polite",), "none", where=(("colour", "red"),)))


def test_of_two_processes_that_draw_one_name_at_once_the_later_finds_what_the_first_has_drawn(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def another() -> None:
        with pytest.raises(UsageError) as refused:
            draw.draw(store, draw.Wish(("initiative",), "first", size=10, seed=1))
        told.append(str(refused.value))

    other = threading.Thread(target=another)
    really = samples.save

    def late(workspace: Workspace, sample: samples.Sample) -> Path:
        """The other one comes while the first is about to write."""
        if not other.ident:
            other.start()
            other.join(0.3)
        return really(workspace, sample)

    monkeypatch.setattr(samples, "save", late)
    first = draw.draw(store, draw.Wish(("initiative",), "first", size=10))
    other.join()
    assert told == ["sample 'first' exists; choose another --name"]
    assert samples.load(store.workspace, "first") == first


def test_a_pilot_that_nobody_drew_is_not_said_to_be_unlabelled(tmp_path: Path) -> None:
    store = of_tasks(tmp_path)
    judge = {"rater": "judge", "rater_kind": "llm"}
    (unit, *_) = draw.draw(store, draw.Wish(("initiative",), "first", size=4)).units
    rate(store, [verdict(unit.trajectory, unit.event, "initiative", "no", **judge)])
    with pytest.raises(UsageError, match="no sample 'frist', expected one of first"):
        draw.draw(store, draw.Wish(("initiative",), "s", size=4, method="neyman", pilot="frist"))
