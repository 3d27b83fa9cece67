"""The three answers: on one screen, from the numbers that every other command prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline import codebooks
from coaudit.pipeline.analyze import agreement, metrics, rates, validate
from coaudit.pipeline.report import answers, build, methods, modes
from coaudit.pipeline.report.tables import Answer, Number, plain
from coaudit.pipeline.report.text import brief
from coaudit.pipeline.store import Selection, Store
from coaudit.schemas import Agreement, Event, Outcome, Participant, Rate, Trajectory
from tests.conftest import Coaudit
from tests.judges.teams import team
from tests.pipeline.stores import holding, rate, rows, verdict

TEAM = (Participant(name="Ann", kind="human"), Participant(name="Bot", kind="agent"))
CODE = "C.1"


def run(arm: str, number: int, delivered: float) -> Trajectory:
    events = (
        Event(seq=0, actor="Ann", kind="message", text="Please"),
        Event(seq=1, actor="Bot", kind="action", status="succeeded"),
    )
    done = Outcome(name="delivered", value=delivered)
    return Trajectory(
        id=f"{arm}-{number}",
        native_id=f"{arm}-{number}",
        source="log",
        system="cogym",
        condition=arm,
        participants=TEAM,
        events=events,
        outcomes=(done,),
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """20 runs that deliver and 20 that mostly do not; a judge who flags half, people who flag less."""
    runs = [run("good", n, 1) for n in range(20)] + [run("bad", n, float(n < 2)) for n in range(20)]
    store = holding(tmp_path / "workspace", runs)
    lines = [
        verdict(
            t.id, None, "failures", "present" if n % 2 else "absent", code=CODE, rater="bot", rater_kind="llm"
        )
        for n, t in enumerate(runs)
    ]
    lines += [
        verdict(t.id, None, "failures", "present" if n % 8 == 1 else "absent", code=CODE, rater="eva")
        for n, t in enumerate(runs)
    ]
    rate(store, lines)
    return store


@pytest.mark.long
def test_the_answers_hold_the_numbers_of_metrics_and_rates(store: Store) -> None:
    work, failed, trust = answers.answers(store)
    delivered = {
        row.group["condition"]: row
        for row in metrics.metrics(store, by=("system", "condition"))
        if row.metric == "delivery_rate" and row.group
    }
    assert work.table and failed.table and trust.table
    reached = {str(line[1]): line[3] for line in work.table.rows}
    for arm, row in delivered.items():
        cell = reached[str(arm)]
        assert isinstance(cell, Number) and (cell.value, cell.low) == (row.value, row.low)
    assert work.sentences[0].startswith("cogym: good delivered most often, 100 %")
    assert "overlap" not in work.sentences[0]
    (own,) = [row for row in rates.rates(store) if row.code == CODE and row.judge == "bot"]
    (line,) = [line for line in trust.table.rows if line[0] == CODE]
    assert isinstance(line[4], Number) and line[4].value == own.rate
    assert isinstance(line[3], Number) and line[3].value == own.judge_rate == 0.5
    assert "do not print it" in trust.sentences[-1] and CODE in trust.sentences[-1]
    assert [cell for cell in failed.table.rows[0][:2]] == [CODE, "Silent start"]
    every = answers.answers(store, Selection(setting=("simulated", "real", "–")))[2]
    assert (every.sentences, every.table) == (trust.sentences, trust.table)
    other = answers.answers(store, Selection(condition=("none",)))[2]
    assert other.table is None and other.sentences[-1] == answers.WITHOUT_OTHERS


def test_what_to_run_after_answers_of_some_sessions_is_of_these_in_every_format(store: Store) -> None:
    only = Selection(condition=("bad", "none of"), outcomes=("delivered=0",))
    where = " --where condition=bad --where 'condition=none of' --where delivered=0"
    further = [answer.further for answer in answers.answers(store, only)]
    assert [text.removesuffix(where) for text in further] == [
        "coaudit metrics --by system,condition",
        "coaudit sample --codebook failures",
        "coaudit validate bot",
    ] and all(text.endswith(where) for text in further)
    assert [answer.further for answer in build.build(store, only=only).answers] == further
    nobody = Selection(condition=("none",))
    assert build.build(store, only=nobody).answers[2].sentences[-1] == answers.WITHOUT_OTHERS


def test_where_more_rates_are_off_than_are_named_that_is_told() -> None:
    def said(many: int, *judges: str) -> str:
        off = [(f"C.{n}", judges[-1] if judges else "bot") for n in range(many)]
        every = [(code, judge) for code, _ in off for judge in judges or ("bot",)]
        return answers._judgement({}, off, every)[-1]

    assert (
        "3 of its own rates lie outside the corrected interval (C.0, C.1, C.2): do not print them." in said(3)
    )
    assert "5 of its own rates lie outside the corrected interval (C.0, C.1, C.2 …):" in said(5)
    several = "3 of judges' own rates lie outside the corrected interval (C.0 of eva, C.1 of eva, C.2 of eva)"
    assert several in said(3, "bot", "eva"), "of which judge, was not told"


def test_an_earlier_version_of_a_judge_stands_behind_the_present_one() -> None:
    """It had a label more, and the five rows had no room for the present one."""
    codes = [f"C.{number}" for number in range(1, 6)]
    judged = [("bot (v1)", 10), ("bot", 9)]
    rows = [
        Agreement(codebook="failures", code=code, coefficient="mean_judge_human_kappa", raters=(judge, "ann"),
                  value=0.5, n_units=number, n_ratings=2 * number)
        for code in codes for judge, number in judged
    ]  # fmt: skip
    every = [
        Rate(codebook="failures", code=code, judge=judge, judge_rate=0.2, rate=0.2, low=0.1, high=0.3,
             estimator=None, design=None, n_units=20, n_human=number, n_judged=20)
        for code in codes for judge, number in judged
    ]  # fmt: skip
    answer = answers.trust(rows, every)
    assert answer.table is not None
    assert [row[:2] for row in answer.table.rows] == [(code, "bot") for code in codes]
    assert answer.further == "coaudit validate bot"
    assert answer.sentences[-1] == "The table has 5 of these 10, those with the most labels first."
    assert "before" not in answer.table.caption, "a figure has what has intervals: the corrected rate alone"


def test_where_it_failed_names_the_mode_on_which_two_arms_are_most_apart(tmp_path: Path) -> None:
    runs = [run(arm, n, 1) for arm in ("one", "two") for n in range(20)] + [run("small", 0, 1)]
    store = holding(tmp_path / "apart", runs)

    def said(code: str, present: Callable[[Trajectory], bool]) -> list[dict[str, Any]]:
        labels = {True: "present", False: "absent"}
        return [
            verdict(t.id, None, "failures", labels[present(t)], code=code, rater="bot", rater_kind="llm")
            for t in runs
        ]

    # C.1 is common in both arms, C.2 in one alone; the arm of one session, which shows all, is no arm.
    rate(store, said("C.1", lambda t: True) + said("C.2", lambda t: t.condition != "two"))
    worst = answers.failure(store).sentences[1]
    assert "most common is C.1" in worst
    assert (
        "largest difference between conditions is on C.2" in worst
        and "in one against 0 %" in worst
        and "in two" in worst
    )
    assert "overlap" not in worst


@pytest.mark.long
def test_a_judges_codes_are_counted_without_their_categories_and_apart_from_another_judges(
    store: Store,
) -> None:
    codes = [code.code for code in codebooks.load("failures").codes if code.category == "C"]
    lines = [
        verdict(f"good-{n}", None, "failures", "absent", code=code, rater=rater, rater_kind=kind)
        for n in range(20)
        for code in codes
        for rater, kind in (("eva", "human"), ("bot", "llm"), ("second", "llm"))
    ]
    rate(store, lines)
    category = [row for row in rates.rates(store) if row.code == "C" and row.judge == "bot"]
    assert category and category[0].n_human, "a category has a corrected rate"
    judged = answers.answers(store)[2]
    counted = [said.split(" agrees")[0] for said in judged.sentences[:2]]
    assert counted == [f"Of {len(codes)} codes with labels by people, {name}" for name in ("bot", "second")]
    assert judged.table is not None and {line[1] for line in judged.table.rows} == {"bot", "second"}


@pytest.mark.long
def test_the_answers_fit_a_screen_of_80_columns(store: Store) -> None:
    text = brief(answers.answers(store), methods.facts(store), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) <= 45


def test_without_anything_each_answer_names_the_command_that_is_missing(tmp_path: Path) -> None:
    empty = holding(tmp_path / "empty")
    assert [answer.further.split(" --")[0] for answer in answers.answers(empty)] == [
        "coaudit ingest PATH",
        "coaudit judge",
        "coaudit sample",
    ]


@pytest.mark.long
def test_the_report_of_a_terminal_is_short_and_a_judges_page_too(store: Store, coaudit: Coaudit) -> None:
    there = {"COAUDIT_WORKSPACE": str(store.workspace.path), "COLUMNS": "80"}
    short, full = coaudit("report", **there).out, coaudit("report", "--full", **there).out
    assert len(short.splitlines()) < 45 < len(full.splitlines())
    page = coaudit("validate", "bot", **there).out
    whole = coaudit("validate", "bot", "--full", **there).out
    document = coaudit("validate", "bot", "--json", **there).json
    (code,) = [code for code in document["codes"] if code["n_both"]]
    assert f"{code['kappa']['value']:.2f}" in page and len(page.splitlines()) <= 10
    assert "percent_agreement" in whole and "percent_agreement" not in page
    assert "got bot" in coaudit("validate", "bot", "--by", "task", status=2, **there).err
    assert "--full needs a judge" in coaudit("validate", "--full", status=2, **there).err


@pytest.mark.long
def test_a_command_that_can_do_nothing_says_why(store: Store, coaudit: Coaudit) -> None:
    there = {"COAUDIT_WORKSPACE": str(store.workspace.path)}
    assert "one agent_model" in coaudit("compare", "--by", "agent_model", **there).err
    drawn = coaudit("sample", "--codebook", "failures", "--size", "5000", **there)
    assert "5000 units were asked for, but there are only" in drawn.err
    refused = coaudit("judge", "--codebook", "failures", status=2, **there).err
    assert "--rater detectors" in refused


def test_the_doctor_names_what_is_missing_and_for_which_command(store: Store, coaudit: Coaudit) -> None:
    there = {"COAUDIT_WORKSPACE": str(store.workspace.path), "OPENAI_API_KEY": "sk-secret"}
    closed = coaudit("doctor", "--redis", "redis://user:hidden@127.0.0.1:1/0", "--json", **there)
    findings = {row["what"]: row for row in json.loads(closed.out)["rows"]}
    assert findings["Redis"]["state"] == "missing" and findings["Redis"]["needed_for"] == "follow"
    assert findings["workspace"]["detail"].endswith("40 trajectories")
    assert findings["OPENAI_API_KEY"]["state"] == "ok"
    assert "hidden" not in closed.out and "sk-secret" not in closed.out
    store.workspace.database.write_bytes(b"no database")
    broken = coaudit("doctor", status=1, **there)
    assert "failed" in broken.out


def test_what_an_action_gave_back_is_shown_with_the_session(tmp_path: Path, coaudit: Coaudit) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    log = tmp_path / "chat.jsonl"
    talk = [
        {"role": "user", "content": "Is it there?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "it is\non the\u202e table " + "x" * 500},
    ]
    log.write_text(json.dumps({"messages": talk}) + "\n")
    key = coaudit("ingest", log, "--json").json
    assert key["trajectories"] == 1
    listed = coaudit("trajectory", "list", "--json").json["rows"]
    shown = coaudit("trajectory", "show", listed[0]["id"]).out
    assert "→ it is on the\\u202e table xxx" in shown and "--states shows all" in shown


def test_a_rater_of_some_modes_looked_for_those_and_a_category_of_others_has_no_rate(tmp_path: Path) -> None:
    runs = [run("one", n, 1) for n in range(10)]
    store = holding(tmp_path / "some", runs)
    asked = {"C.1": runs, "C.2": runs[:6]}
    labels = {True: "present", False: "absent"}
    rate(
        store,
        [
            verdict(t.id, None, "failures", labels[t is runs[0]], code=code, rater="bot", rater_kind="llm")
            for code, own in asked.items()
            for t in own
        ],
    )
    said = answers.failure(store).sentences[0]
    assert said == "bot looked for 2 of the 26 modes in up to 10 trajectories and found 2 of them."
    cells = {line[0]: line[3] for line in modes.failures(store).rows}
    assert isinstance(cells["C.1"], Number) and cells["C.1"].value == 0.1
    category = cells["C"]
    assert isinstance(category, Number) and category.value is None, "1 of 1, were a finding enough"
    assert category.reason == "no trajectory has an answer to all of its modes"


@pytest.mark.long
def test_a_judge_that_failed_everywhere_has_not_found_none(tmp_path: Path) -> None:
    runs = [run("one", n, 1) for n in range(4)]
    store = holding(tmp_path / "failed", runs)
    bot: dict[str, Any] = {"rater": "bot", "rater_kind": "llm"}
    for t in runs:
        failed = verdict(t.id, None, "failures", "", code="C.1", error="timeout", **bot)
        rate(store, [{key: value for key, value in failed.items() if key != "label"}])
    answer = answers.failure(store)
    assert answer.sentences == ("bot gave no usable answer: 4 failed.",)
    assert answer.further.endswith("--rater bot --model MODEL --retry-errors")
    rate(store, [verdict(t.id, None, "failures", "absent", code="C.2", **bot) for t in runs])
    answer = answers.failure(store)
    assert answer.sentences[0] == "bot looked for 1 of the 26 modes in 4 trajectories and found none of them."
    assert answer.sentences[1] == "4 of its answers failed or are unclear, and count as neither."
    assert answer.further == "coaudit report --full"


def test_shares_without_an_interval_say_why(tmp_path: Path) -> None:
    """Seven runs of two instances stood without an interval or a word beside four with one."""
    runs = [run("one", n, n % 2) for n in range(7)]
    assert answers.BARE not in answers.teamwork(holding(tmp_path / "own", runs)).sentences
    same = [one.model_copy(update={"instance": str(n % 2)}) for n, one in enumerate(runs)]
    answer = answers.teamwork(holding(tmp_path / "same", same))
    assert answer.sentences[-1] == answers.BARE
    assert answer.table and isinstance(cell := answer.table.rows[0][3], Number) and not cell.interval


def test_unclear_answers_are_no_failed_ones_and_asking_the_same_judge_again_is_no_way_on(
    tmp_path: Path,
) -> None:
    runs = [run("one", n, 1) for n in range(3)]
    store = holding(tmp_path / "unclear", runs)
    bot: dict[str, Any] = {"code": "C.1", "rater": "bot", "rater_kind": "llm"}
    rate(store, [verdict(runs[0].id, None, "failures", "unclear", **bot)])
    assert answers.failure(store).sentences == ("bot gave no usable answer: 1 is unclear.",)
    rate(store, [verdict(runs[1].id, None, "failures", "unclear", **bot)])
    answer = answers.failure(store)
    assert answer.sentences == ("bot gave no usable answer: 2 are unclear.",)
    assert answer.further == "coaudit judge --codebook failures --model MODEL"
    failed = verdict(runs[2].id, None, "failures", "", error="timeout", **bot)
    rate(store, [{key: value for key, value in failed.items() if key != "label"}])
    answer = answers.failure(store)
    assert answer.sentences == ("bot gave no usable answer: 1 failed and 2 are unclear.",)
    assert answer.further.endswith("--rater bot --model MODEL --retry-errors")


def test_a_mode_rated_on_few_trajectories_is_not_called_the_most_common(tmp_path: Path) -> None:
    runs = [run("one", n, 1) for n in range(20)]
    store = holding(tmp_path / "few", runs)
    bot: dict[str, Any] = {"rater": "bot", "rater_kind": "llm"}
    labels = [("C.1", t, "present" if n < 4 else "absent") for n, t in enumerate(runs)]
    labels += [("C.5", t, "present" if n < 1 else "absent") for n, t in enumerate(runs[:2])]
    rate(store, [verdict(t.id, None, "failures", label, code=code, **bot) for code, t, label in labels])
    answer = answers.failure(store)
    assert answer.table and [row[0] for row in answer.table.rows] == ["C.1", "C.5"], "20 % of 20, 50 % of 2"
    assert answer.sentences[-1].startswith(
        "Of modes rated in 5 trajectories or more, the most common is C.1 Silent start: 20 % [7–42]. "
        "Rated in fewer and found: C.5 in 1 of 2."
    )


def test_a_mode_found_in_most_of_few_trajectories_is_told_where_the_table_has_no_room_for_it(
    tmp_path: Path,
) -> None:
    """One that was found in 3 of 4 stood nowhere, and one found in 1 of 30 was called the most common."""
    runs = [run("one", n, 1) for n in range(30)]
    store = holding(tmp_path / "few", runs)
    bot: dict[str, Any] = {"rater": "bot", "rater_kind": "llm"}
    labels = [("P.3", t, "present" if n < 3 else "absent") for n, t in enumerate(runs[:4])]
    labels += [
        (f"C.{c}", t, "present" if n < 1 else "absent") for c in range(1, 6) for n, t in enumerate(runs)
    ]
    rate(store, [verdict(t.id, None, "failures", label, code=code, **bot) for code, t, label in labels])
    assert "Rated in fewer and found: P.3 in 3 of 4." in answers.failure(store).sentences[-1]
    lone = holding(tmp_path / "lone", runs[:4])
    rate(lone, [verdict(t.id, None, "failures", label, code=code, **bot) for code, t, label in labels[:4]])
    assert answers.failure(lone).sentences[-1].startswith("The most common is P.3 ")


def test_logs_without_an_outcome_say_how_to_add_one(tmp_path: Path) -> None:
    store = holding(
        tmp_path / "open", [run("one", 0, 1).model_copy(update={"outcomes": (), "system": "own"})]
    )
    answer = answers.teamwork(store)
    assert any("outcomes import" in sentence for sentence in answer.sentences)
    assert answer.table and answers.DELIVERED not in answer.table.caption, (
        "none delivered, as far as is known"
    )


@pytest.mark.long
def test_labels_of_people_without_a_judge_are_no_word_of_judges(tmp_path: Path) -> None:
    runs = [run("one", n, 1) for n in range(8)]

    def labelled(name: str, raters: dict[str, str]) -> Answer:
        store = holding(tmp_path / name, runs)
        marks = [(t.id, rater, kind, n) for n, t in enumerate(runs) for rater, kind in raters.items()]
        rate(
            store,
            [
                verdict(
                    key,
                    None,
                    "failures",
                    "present" if n % 2 or (n == 0 and rater == "eva") else "absent",
                    code=CODE,
                    rater=rater,
                    rater_kind=kind,
                )
                for key, rater, kind, n in marks
            ],
        )
        return answers.answers(store)[2]

    people = labelled("people", {"eva": "human", "tom": "human"})
    assert people.sentences[0].startswith("No judge rated what people labelled")
    assert people.sentences[1] == "Agreement among people is α = 0.76 (C.1)."
    assert people.further == "coaudit judge --codebook failures --model MODEL"
    judges = labelled("judges", {"eva": "llm", "tom": "llm"})
    assert judges.sentences[0].startswith("Nobody has labelled a unit")
    assert judges.sentences[1].startswith("Agreement among judges is α = 0.76 (C.1), which proves little")


def test_agreement_on_codes_of_one_name_says_of_which_codebook() -> None:
    """ "α = -0.26 (A)" was of one of two codebooks with an A, the page of the other showed 0.06."""
    rows = [
        Agreement(
            codebook=book, code="A", coefficient="krippendorff_alpha", raters=(), value=value, low=None,
            high=None, n_units=9, n_ratings=18, population=agreement.PEOPLE,
        )
        for book, value in (("mine", -0.26), ("yours", 0.06))
    ]  # fmt: skip
    (_, sentence) = answers.trust(rows, []).sentences
    assert sentence == "Agreement among people is between α = -0.26 (mine / A) and α = 0.06 (yours / A)."


def test_a_judge_of_a_scale_is_held_against_people_by_a_kappa_that_knows_it(tmp_path: Path) -> None:
    runs = [run("one", n, 1) for n in range(20)]
    store = holding(tmp_path / "scale", runs)
    book = 'name = "grade"\ntitle = "Grade"\nunit = "trajectory"\nlevel = "ordinal"\n'
    book += 'labels = ["1", "2", "3", "4"]\nquestion = "How good?"\n[[codes]]\n'
    book += 'code = "G"\nname = "Grade"\ndefinition = "Of all."\n'
    store.workspace.codebooks.mkdir(parents=True)
    (store.workspace.codebooks / "grade.toml").write_text(book, encoding="utf-8")
    raters = (("bot", "llm", 1), ("eva", "human", 0), ("tom", "human", 0))
    rate(
        store,
        [
            verdict(
                t.id,
                None,
                "grade",
                str(1 + min(n % 4 + off, 3)),
                code="G",
                rater=name,
                rater_kind=kind,
            )
            for n, t in enumerate(runs)
            for name, kind, off in raters
        ],
    )
    answer = answers.answers(store)[2]
    assert "No judge" not in answer.sentences[0] and "Of 1 code with labels by people" in answer.sentences[0]
    assert answer.table is not None
    ((code, judge, kappa, own, corrected, labels),) = answer.table.rows
    assert isinstance(kappa, Number) and isinstance(own, Number) and isinstance(labels, Number)
    (row,) = [
        row
        for row in agreement.of_workspace(store, ["grade"])
        if row.coefficient == "mean_judge_human_kappa_quadratic"
    ]
    assert (code, judge, kappa.value, labels.value) == ("G", "bot", row.value, 20)
    assert isinstance(corrected, Number) and not own.percent and not corrected.percent
    assert [own.value, corrected.value] == pytest.approx([3.25, 2.5])  # means of 2 3 4 4, 1 2 3 4
    assert any(
        "1 of its own rates lies outside the corrected interval (G (mean))" in x for x in answer.sentences
    )
    page = validate.validate(store, "bot")["codes"][0]
    assert (page["kappa"]["value"], page["kappa_of_people"]["value"]) == (row.value, 1.0)
    assert page["calibration"]["reason"] == "no unit with a probability and a human label"


@pytest.mark.parametrize(("low", "high", "n"), [(0.0, 0.2, 0), (-0.1, 0.0, 7)])
def test_a_cell_as_json_keeps_what_is_0(low: float, high: float, n: int) -> None:
    cell = Number(0.0, low, high, n, percent=True)
    assert plain(cell) == {"value": 0.0, "low": low, "high": high, "n": n}
    assert plain(Number(None, reason="one label only")) == {"value": None, "reason": "one label only"}


@pytest.mark.parametrize(("other", "head"), [("few", "All together"), ("All together", "All together (2)")])
def test_a_group_called_all_is_not_all_groups_together(tmp_path: Path, other: str, head: str) -> None:
    runs = [run(arm, n, 1) for arm in ("All", other) for n in range(4)]
    store = holding(tmp_path / "all", runs)
    found = {t.id: "present" if t.condition == "All" else "absent" for t in runs}
    rate(
        store, [verdict(key, None, "failures", label, code=CODE, rater="eva") for key, label in found.items()]
    )
    table = modes.failures(store, by=("condition",))
    assert table.columns[3:] == (head, "All", other)
    (row,) = [row for row in table.rows if row[0] == CODE]
    assert [cell.value for cell in row[3:] if isinstance(cell, Number)] == [0.5, 1.0, 0.0]


def test_sessions_of_which_nothing_is_measured_are_told_from_a_workspace_without_any(tmp_path: Path) -> None:
    """A note of the environment is nobody's step, and has no date here."""
    alone = run("good", 1, 1).model_copy(
        update={
            "system": "lab",
            "participants": (Participant(name="Env", kind="environment"),),
            "events": (Event(seq=0, actor="Env", kind="note", text="Hello."),),
            "outcomes": (),
        }
    )
    store = holding(tmp_path / "workspace", [alone])
    work = answers.teamwork(store)
    assert work.sentences[0].startswith("Of 1 trajectory no log says who took a step")
    assert answers.teamwork(store, Selection(system=("none",))).sentences == (answers.UNFIT,)
    assert methods.paragraphs(store, [])[0].endswith("(1 of lab) with 1 event.")


def test_a_filter_that_leaves_no_rated_session_is_told_from_a_workspace_without_ratings(store: Store) -> None:
    told = answers.failure(store, Selection(condition=("none",)))
    assert told.sentences == ("No failure is rated in what the filters leave.",) and not told.further


@pytest.mark.parametrize(("book", "code", "event"), [("mast", "1.1", None), ("decisive_step", "decisive", 1)])
def test_failures_that_are_rated_with_another_codebook_are_not_said_to_be_unrated(
    tmp_path: Path, book: str, code: str, event: int | None
) -> None:
    """Of whatever units they are, and the command that rates failures is still the one to run."""
    store = holding(tmp_path / "workspace", [team(("human", "Hi"), ("agent", "Ho"))])
    before = answers.failure(store)
    assert before.sentences == ("No failure is rated yet.",)
    (label, *_) = codebooks.load(book).labels
    (key,) = [row["id"] for row in rows(store, "SELECT id FROM trajectories")]
    process = verdict(key, 1, "initiative", "yes", rater="ann")
    assert rate(store, [process]).imported == 1
    assert answers.failure(store) == before
    assert rate(store, [verdict(key, event, book, label, code=code, rater="ann")]).imported == 1
    told = answers.failure(store)
    assert told.sentences == (
        "This is answered by the codebook failures, with which nothing is rated yet.",
        f"There are ratings with {book}: `coaudit rates` has the rates of their codes.",
    )
    assert told.further == before.further
    assert answers.failure(store, Selection(system=("none",))).sentences == before.sentences


def test_an_arm_that_delivered_is_not_said_to_have_reached_the_goal_that_it_failed(tmp_path: Path) -> None:
    def ran(arm: str, number: int, success: float) -> Trajectory:
        outcome = Outcome(name="success", value=success)
        given = run(arm, number, 1.0 - success)
        return given.model_copy(update={"system": "own", "outcomes": (*given.outcomes, outcome)})

    runs = [ran(arm, n, float(arm == "good")) for arm in ("good", "bad") for n in range(20)]
    runs += [run("lone", n, 1).model_copy(update={"system": "own"}) for n in range(20)]
    told = answers.teamwork(holding(tmp_path / "workspace", runs))
    assert told.sentences[0].startswith("own: good reached the goal most often, 100 %")
    assert told.table is not None and "delivered" not in (told.table.caption or "")
    cells = {row[1]: row[3] for row in told.table.rows}
    assert isinstance(cells["lone"], Number) and cells["lone"].value is None


def test_arms_that_reached_the_goal_as_often_are_counted_beside_the_one_that_is_named(tmp_path: Path) -> None:
    runs = [run(arm, n, float(arm != "bad")) for arm in ("good", "fine", "bad") for n in range(20)]
    said = answers.teamwork(holding(tmp_path / "workspace", runs)).sentences[0]
    assert said.startswith("cogym: good and 1 other delivered most often, 100 %") and "; bad least" in said


def test_a_goal_that_logs_tell_of_in_words_alone_says_why_it_has_no_rate(tmp_path: Path) -> None:
    said = (Outcome(name="success", text="maybe"),)
    one = run("good", 1, 1.0).model_copy(update={"system": "chat", "outcomes": said})
    table = answers.teamwork(holding(tmp_path / "workspace", [one])).table
    assert table is not None
    cell = table.rows[0][table.columns.index("Reached the goal")]
    assert isinstance(cell, Number) and cell.note == "success must be a number, got 'maybe'"


def test_an_arm_whose_logs_know_no_goal_says_so_beside_one_that_has_a_rate(tmp_path: Path) -> None:
    silent = run("silent", 1, 1.0).model_copy(update={"system": "chat", "outcomes": ()})
    table = answers.teamwork(holding(tmp_path / "workspace", [silent, run("good", 1, 1.0)])).table
    assert table is not None
    cells = {row[1]: row[table.columns.index("Reached the goal")] for row in table.rows}
    assert isinstance(cells["silent"], Number) and cells["silent"].note == "the log does not say"
    assert isinstance(cells["good"], Number) and cells["good"].value == 1.0


def test_an_arm_that_a_sentence_names_stands_in_the_table(tmp_path: Path) -> None:
    """Ten arms of 7 runs, and two of 6 of which one delivered most often and one least."""
    arms = {f"arm {n}": (7, 3) for n in range(answers.ARMS)} | {"best": (6, 6), "worst": (6, 0)}
    runs = [run(arm, n, float(n < hits)) for arm, (size, hits) in arms.items() for n in range(size)]
    answer = answers.teamwork(holding(tmp_path / "arms", runs))
    assert answer.table is not None
    shown = [row[1] for row in answer.table.rows]
    assert answer.sentences[0].startswith("cogym: best delivered most often")
    assert "worst least" in answer.sentences[0] and {"best", "worst"} <= {*shown}
    assert len(shown) == 12 and not any("13 arms" in sentence for sentence in answer.sentences)
    runs += [run("middle", n, float(n < 3)) for n in range(6)]
    answer = answers.teamwork(holding(tmp_path / "more", runs))
    assert "Of 13 arms, the 10 with most runs and those named above stand here." in answer.sentences
