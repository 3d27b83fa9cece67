"""The methods of a report: each sentence from what the workspace holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from coaudit.pipeline.analyze import rates
from coaudit.pipeline.analyze.metrics import metrics
from coaudit.pipeline.annotate import draw
from coaudit.pipeline.ingest import forgetting
from coaudit.pipeline.report import build, methods, progress
from coaudit.pipeline.report.tables import count
from coaudit.pipeline.report.trust import AGREEMENT_METHOD, RATES_METHOD
from coaudit.pipeline.store import Selection, Store
from coaudit.schemas import Event, Participant, Trajectory
from tests.pipeline.stores import holding, rate, verdict

RUNS = [
    Trajectory(
        id=f"s{i}",
        native_id=f"s{i}",
        source="log",
        system=system,
        participants=(Participant(name="Ann", kind="human"), Participant(name="Bot", kind="agent")),
        events=(Event(seq=0, actor="Bot", kind="message", text="Shall I?"),),
    )
    for i, system in enumerate(("cogym", "cogym", "rehac"))
]


def audited(folder: Path) -> Store:
    store = holding(folder / "workspace", RUNS)
    made_by = {"model": "Qwen-72B", "rater_version": "v7", "seed": 5, "parameters": {"temperature": 0.0}}
    lines = [
        verdict(f"s{i}", None, "failures", "absent", code=code, rater="m", rater_kind="llm",
                prompt_hash=f"hash{code}", **made_by)
        for i in range(3)
        for code in ("C.1", "C.2", "C.3", "C.4")
    ]  # fmt: skip
    rate(store, [*lines, verdict("s0", None, "failures", "present", code="C.1", rater="eva")])
    return store


def test_a_judge_is_told_with_model_version_prompts_seed_and_parameters(tmp_path: Path) -> None:
    store = audited(tmp_path)
    text = "\n".join(methods.paragraphs(store, ["m"], rates.rates(store)))
    assert "The audit covers 3 trajectories (2 of cogym, 1 of rehac) with 3 events" in text
    assert (
        "m (a language model; model Qwen-72B; version v7; prompts hashC.1, hashC.2, hashC.3 and 1 more; "
        "seed 5; "
        'parameters {"temperature":0.0}) rated failures: 12 answers and 0 errors.'
    ) in text.replace('": ', '":')
    assert "Labels by people: eva gave 1 on failures.\n" in text


def test_what_a_judge_s_endpoint_does_not_take_is_told(tmp_path: Path) -> None:
    """Its parameters say temperature 0: the endpoint answered with its own."""
    store = audited(tmp_path)
    external = {"left_out": ["temperature"]}
    rate(
        store,
        [
            verdict(
                "s1", None, "failures", "absent", code="C.1", rater="n", rater_kind="llm", external=external
            )
        ],
    )
    (judge,) = [text for text in methods.paragraphs(store, ["m"]) if text.startswith("n (")]
    assert "asked without temperature, which its endpoint does not take) rated" in judge


def test_labels_that_began_from_one_that_was_shown_are_told(tmp_path: Path) -> None:
    store = audited(tmp_path)
    external = {"labelstudio": {"parent_prediction": 7}}
    rate(store, [verdict("s1", None, "failures", "absent", code="C.1", rater="eva", external=external)])
    (people,) = [text for text in methods.paragraphs(store, ["m"]) if text.startswith("Labels by people")]
    assert "eva gave 2 on failures. 1 of them began from a judge's label that was shown: not bl" in people


def test_agreement_of_judges_alone_has_its_method_and_rates_without_people_have_none(tmp_path: Path) -> None:
    """A report without labels by people had intervals of agreement, and no word on how they are made."""
    store = holding(tmp_path / "judges", RUNS)
    lines = [verdict(run.id, None, "failures", "absent", code="C.1", rater_kind="llm") for run in RUNS]
    rate(store, [line | {"rater": name} for line in lines for name in ("m", "n")])
    report = build.build(store)
    assert AGREEMENT_METHOD in report.methods and RATES_METHOD not in report.methods
    lone = holding(tmp_path / "lone", RUNS)
    rate(lone, [line | {"rater": "m"} for line in lines])
    report = build.build(lone)
    assert AGREEMENT_METHOD not in report.methods
    assert "Process metrics have no ratings yet. " in "\n".join(report.methods)
    (prompts,) = [table for table in report.tables if table.name == "prompts"]
    assert prompts.empty == "No prompt was sent from this workspace.", "what m answered was imported"


def test_a_jury_is_called_one_whatever_kind_its_members_are(tmp_path: Path) -> None:
    """Of rules and a trained model it was "rules"."""
    store = audited(tmp_path)
    parameters = {"members": ["m", "rules"]}
    line = verdict("s0", None, "failures", "absent", code="C.1", rater="jury", rater_kind="rule")
    rate(store, [{**line, "parameters": parameters}])
    text = "\n".join(methods.paragraphs(store, ["m"], rates.rates(store)))
    assert "jury (a jury;" in text and "m (a language model;" in text


@pytest.mark.long
def test_the_time_for_a_unit_is_told_once_however_many_codes_it_has(tmp_path: Path) -> None:
    store = audited(tmp_path)
    lines = [
        verdict(f"s{i}", None, "failures", "absent", code=code, rater="eva", seconds=seconds)
        for i, seconds in enumerate((30.0, 50.0, 400.0))
        for code in ("C.2", "C.3")
    ]
    rate(store, lines)
    (row,) = progress.pace(store)
    assert (row["rater"], row["units"], row["seconds"]) == ("eva", 3, 50.0)
    assert "eva took 50 s per unit of failures (median of 3)" in "\n".join(methods.paragraphs(store, ["m"]))


def test_unclear_answers_are_told_among_a_judge_s_answers(
    tmp_path: Path,
) -> None:
    store = holding(tmp_path / "w", RUNS)
    bot = {"rater": "m", "rater_kind": "llm", "code": "C.1"}
    rate(store, [verdict(run.id, None, "failures", "unclear", **bot) for run in RUNS[:2]])
    rate(store, [verdict(RUNS[2].id, None, "failures", "absent", **bot)])
    assert "rated failures: 3 answers (2 unclear) and 0 errors." in "\n".join(methods.paragraphs(store, []))
    own = store.workspace.codebooks / "failures.toml"  # the codebook of those answers is no longer known
    own.parent.mkdir()
    own.write_text(
        'name = "failures"\ntitle = "F"\nunit = "trajectory"\ncontext = "none"\nlevel = "nominal"\n'
        'labels = ["present", "absent"]\n[[codes]]\ncode = "C.1"\nname = "N"\nquestion = "Q?"\n'
    )
    assert "rated failures: 3 answers (2 unclear) and 0 errors." in "\n".join(methods.paragraphs(store, []))


def test_every_prompt_is_listed_behind_the_methods(tmp_path: Path) -> None:
    table = methods.prompts(audited(tmp_path))
    assert table.appendix
    assert [(row[1], row[4]) for row in table.rows] == [(c, f"hash{c}") for c in ("C.1", "C.2", "C.3", "C.4")]


def test_of_thousands_of_prompts_those_with_most_answers_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = audited(tmp_path)
    one = verdict(
        "s0", None, "failures", "absent", code="C.5", rater="m", rater_kind="llm", prompt_hash="once"
    )
    rate(store, [one])
    assert "most answers" not in methods.prompts(store).caption
    monkeypatch.setattr(methods, "PROMPTS", 4)
    table = methods.prompts(store)
    assert [row[4] for row in table.rows] == ["hashC.1", "hashC.2", "hashC.3", "hashC.4"]
    assert "The 4 of 5 with the most answers" in table.caption


def test_prompts_of_every_version_of_a_judge_are_listed_with_the_answers_that_its_provenance_has(
    tmp_path: Path,
) -> None:
    store = audited(tmp_path)
    again = {"code": "C.1", "rater": "m", "rater_kind": "llm", "rater_version": "v8", "prompt_hash": "new"}
    lines = [verdict("s0", None, "failures", "present", **again)]
    lines += [verdict("s1", None, "failures", "", **again) | {"label": None, "error": "no answer"}]
    rate(store, lines)
    given = {row[4]: row[-1] for row in methods.prompts(store).rows if row[1] == "C.1"}
    assert given == {"hashC.1": count(3), "new": count(1)}
    (judge,) = [row for row in methods.raters_table(store).rows if row[2] == "m"]
    assert (judge[7], judge[8]) == (count(13), count(1))


def test_facts_have_the_ratings_that_count_of_the_trajectories_that_are_selected(tmp_path: Path) -> None:
    store = audited(tmp_path)
    rate(store, [verdict("s0", None, "failures", "absent", code="C.1", rater="eva")])  # she thinks again
    whole, some = dict(methods.facts(store)), dict(methods.facts(store, Selection(system=("rehac",))))
    assert (whole["Ratings"], some["Ratings"]) == ("13", "4")
    assert "Sources" in whole and "Sources" not in some


def test_of_a_judge_that_was_asked_again_about_some_units_methods_say_how_many(tmp_path: Path) -> None:
    """Each of its questions had been asked three times, by the words."""
    store = audited(tmp_path)
    again = {"code": "C.1", "rater": "m", "rater_kind": "llm", "rater_version": "v7"}
    rate(store, [verdict("s0", None, "failures", "absent", **again, repeat=number) for number in (1, 2)])
    assert "; 1 question asked up to 3 times) rated failures: 12 answers" in "\n".join(
        methods.paragraphs(store, ["m"])
    )


def test_a_sample_s_design_is_told_in_words(tmp_path: Path) -> None:
    store = audited(tmp_path)
    some = draw.Wish(("failures",), "some", size=1, overlap=1.0, where=(("system", "cogym"),))
    draw.draw(store, some)
    draw.draw(
        store, replace(some, name="by", size=3, method="stratified", by=("judge",), judge="m", where=())
    )
    lines = [line for line in methods.paragraphs(store, ["m"]) if line.startswith("Sample for people")]
    assert lines == [
        "Sample for people (by): 3 of 3 units of failures, stratified in proportion by the labels of m, seed "
        "0, inclusion probability 1; 3 to be labelled by several people.",
        "Sample for people (some): 1 of 2 units of failures, simple random, only system = cogym, seed 0, "
        "inclusion probability 0.5; 1 to be labelled by several people.",
    ]


def test_sessions_that_were_taken_out_are_told(tmp_path: Path) -> None:
    """A report on what was left said nothing of them, but of their ratings."""
    one = {"system": "lab", "source": "log", "participants": (), "events": ()}
    runs = [Trajectory.model_validate(one | {"id": name, "native_id": name}) for name in ("a", "b", "c")]
    store = holding(tmp_path / "workspace", runs)
    assert not [text for text in methods.paragraphs(store, ()) if "forget" in text]
    for name in ("a", "b"):
        forgetting.forget(store, name)
    expected = "Left out on request (`coaudit forget`): 2 trajectories."
    assert expected in methods.paragraphs(store, ())


def test_what_was_not_read_is_counted_for_whatever_reason() -> None:
    """Reasons beyond the fifth were left out without a word."""
    rows = [{"reason": f"why {number}", "n": 9 - number} for number in range(7)]
    lines = methods._not_read(rows)
    assert lines[0] == "Not read: 9 lines or files (why 0)." and len(lines) == methods.REASONS + 1
    assert lines[-1] == "Not read for 2 other reasons: 7 lines or files (`coaudit quarantine list`)."
    assert len(methods._not_read(rows[: methods.REASONS])) == methods.REASONS


@pytest.mark.long
def test_the_estimators_that_are_named_are_those_of_the_rates(tmp_path: Path) -> None:
    store = audited(tmp_path)
    corrected = rates.rates(store)
    names = {row.estimator for row in corrected if row.n_human and row.estimator}
    text = methods.paragraphs(store, ["m"], corrected)
    (sentence,) = [line for line in text if line.startswith("Corrected rates in this report")]
    assert names and all(name.replace("_", " ") in sentence for name in names if name)
    assert not any("Corrected rates in" in line for line in methods.paragraphs(store, ["m"]))


def test_sessions_lie_between_days_whatever_else_logs_give_as_a_time(tmp_path: Path) -> None:
    """`10:00` comes before every day, and `yesterday` after them."""
    times = ("10:00", "2026-02-03T10:00:00Z", "2026-02-05 09:00", "yesterday", None)
    bot = (Participant(name="Bot", kind="agent"),)
    runs = [
        Trajectory(
            id=f"s{i}",
            native_id=f"s{i}",
            source="log",
            system="lab",
            participants=bot,
            events=(Event(seq=0, actor="Bot", kind="message", text="Hello.", time=time),),
        )
        for i, time in enumerate(times)
    ]
    store = holding(tmp_path / "workspace", runs)
    told = dict(methods.facts(store))
    assert (told["First session"], told["Last session"]) == ("2026-02-03", "2026-02-05")
    said = methods.paragraphs(store, [])[0]
    assert (
        "; 2 of the trajectories, whose logs have a date, took place from 2026-02-03 to 2026-02-05." in said
    )
    assert dict(methods.facts(store, Selection(days=("2026-02-04..",))))["Trajectories"] == "1"
    days = {row.group["day"] for row in metrics(store, by=("day",)) if row.group}
    assert days == {None, "2026-02-03", "2026-02-05"}


def test_of_a_crowd_methods_say_how_many_gave_how_many_labels() -> None:
    few = [{"rater": f"w{n}", "answers": n + 1, "books": ["failures"], "shown": 0} for n in range(3)]
    assert methods._people(few) == (
        "Labels by people: w0 gave 1 on failures; w1 gave 2 on failures; w2 gave 3 on failures."
    )
    many = [{"rater": f"w{n}", "answers": 30 + n, "books": ["failures"], "shown": 0} for n in range(60)]
    assert methods._people(many) == (
        "Labels by people: 60 people gave 3,570 on failures, from 30 to 89 each."
    )
    gold = {"rater": "gold", "answers": 2, "books": ["failures"], "shown": 0}
    alike = [{**row, "answers": 30} for row in many]
    assert methods._people([*alike, gold]) == (
        "Labels by people: 60 people gave 1,800 on failures, 30 each; gold gave 2 on failures."
    )


def test_of_a_crowd_methods_say_between_which_times_it_took() -> None:
    rows = [
        {"codebook": book, "rater": f"w{n}", "seconds": 30.0 + n, "units": 10}
        for book, people in (("failures", 60), ("halting", 2))
        for n in range(people)
    ]
    assert methods._pace(rows) == (
        "Labelling time, as measured in the browser: 60 people took from 30 to 89 s per unit of failures "
        "(their medians; 600 units in all); w0 took 30 s per unit of halting (median of 10); w1 took 31 s "
        "per unit of halting (median of 10).",
    )
    assert methods._pace([]) == ()
