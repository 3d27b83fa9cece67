"""A paper's tables out of a workspace: what is published, what comes out, what is left out and why."""

from __future__ import annotations

import json
import re
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from coaudit.pipeline.errors import UsageError
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.report.replicate import PAPERS, Replication, lines, remarks, replicate
from coaudit.pipeline.report.replicate.cells import Cell, load
from coaudit.pipeline.store import Store
from coaudit.pipeline.systems import ReadOptions
from tests.conftest import Coaudit
from tests.pipeline.advise import games
from tests.pipeline.stores import give, made, rate, take, verdict
from tests.pipeline.systems.cogym.folders import AGENT, BEGAN, USER, Log, performance, simulated
from tests.shared import ROOT, shared


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return made(tmp_path / "workspace")


def cells(found: Replication, table: str) -> dict[tuple[str, str], Cell]:
    (one,) = [t for t in found.tables if t.name == table]
    return {(cell.row, cell.column): cell for cell in one.cells}


@pytest.mark.parametrize("name", PAPERS)
def test_every_published_row_has_a_figure_or_nothing_for_every_column(name: str) -> None:
    paper = load(name)
    assert paper.title and paper.source and paper.records
    for table in paper.tables:
        assert table.place and table.about
        assert {len(row) for row in table.rows.values()} == {len(table.columns)}


@pytest.mark.parametrize(
    ("paper", "table", "row", "column", "figure"),
    [
        ("co-gym", "Table 2", "Collaborative Agent · GPT-4-turbo", "Related Work · initiative_entropy", 0.00),
        ("co-gym", "Table 2", "Collaborative Agent · Llama-3.1-70B", "Related Work · halting_messages", 0.03),
        ("co-gym", "Table 2", "Fully Autonomous Agent · GPT-4o", "Travel Planning · collab_score", None),
        ("co-gym", "Table 3", "win_rate", "Related Work", 66),
        ("co-gym", "Table 4", "SA.2", "simulated", 26),
        ("co-gym", "Table 5", "Fleiss' κ", "confirmation", 0.229),
        ("rehac", "Table 5", "HotpotQA · Prompt", "reward", 29.26),
        ("rehac", "Table 3", "InterCode (sim)", "train trajectories", 2071),
        ("collab-overcooked", "Table 2", "DeepSeek-V3", "Level 6 · progress_completeness", 33.44),
        ("collab-overcooked", "Table 2", "Qwen2.5-32B-Instruct", "Level 5 · success_rate", 2.18),
        ("collab-overcooked", "Table 3", "Level 6", "collaborative actions", 17),
        ("coblock", "Errors", "goal-dependent", "neglected_own_goal", 55.6),
    ],
)
def test_figures_stand_where_the_paper_prints_them(
    paper: str, table: str, row: str, column: str, figure: float | None
) -> None:
    assert load(paper).table(table).figure(row, column) == figure


def test_a_paper_that_is_not_known_is_wrong_use(store: Store) -> None:
    with pytest.raises(UsageError, match="expected one of co-gym, rehac"):
        replicate(store, "cogym")


@pytest.mark.parametrize("name", PAPERS)
def test_an_empty_workspace_has_every_published_cell_without_a_record(store: Store, name: str) -> None:
    found = replicate(store, name)
    published = [cell for table in found.tables for cell in table.cells]
    assert published and not any(cell.has_records for cell in published)
    assert {cell.here.reason for cell in published} <= {
        "no record here",
        "no unit was rated by a judge and by people",
    }
    assert not found.left_out


@pytest.mark.slow
def test_rehacs_rows_come_out_to_the_printed_digits_on_the_published_records(store: Store) -> None:
    take(store, shared("rehac"))
    found = replicate(store, "rehac")
    five = cells(found, "Table 5")
    checked = 0
    for (row, column), cell in five.items():
        if row.startswith("StrategyQA") and row.endswith(("Agent-only", "Human-only", "Ours")):
            assert round(cell.here.value or 0, 2) == cell.published, (row, column)
            checked += 1
    assert checked == 9
    random = five["StrategyQA · Random", "task_reward"]
    assert random.published == 65.67
    assert random.here.value == pytest.approx(63.4375)
    three = cells(found, "Table 3")
    for column in ("train questions", "train trajectories", "test questions"):
        cell = three["StrategyQA (sim)", column]
        assert cell.here.value == cell.published
    (two,) = [t for t in found.tables if t.name == "Table 2"]
    assert remarks(two)[-1] == "15 of its 24 figures have no record here."
    advantages = cells(found, "Advantages")
    for definition in ("released", "paper"):
        assert advantages[f"StrategyQA (sim) · {definition}", "human_better"].here.value == 457


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1, 100])
def test_trees_of_which_no_question_counts_are_cells_without_a_value(
    store: Store, tmp_path: Path, scale: int
) -> None:
    """Of a tree that was read twice nothing was said, and rewards in per cent ended the command."""
    nodes = games.tree(games.luck, 3, 2, seed=1)
    if scale > 1:
        nodes = {key: re.sub(r"(\d+\.\d+)\)$", "66.7)", step) for key, step in nodes.items()}
    for name in ("a", "b")[: 2 if scale == 1 else 1]:
        take(store, games.write(tmp_path / f"hotpotqa_test_tree_{name}.jsonl", nodes))
    found = replicate(store, "rehac")
    cell = cells(found, "Table 5")["HotpotQA · Random", "reward"]
    assert cell.here.value is None and "the task reward of each choice once" in str(cell.here.reason)
    assert sum(len(one.records) for one in cell.here.left_out) == 12 * (2 if scale == 1 else 1)


def test_runs_of_models_that_the_paper_lacks_have_rows_of_their_own(store: Store, tmp_path: Path) -> None:
    logs = ROOT / "data/overcooked"
    renamed = tmp_path / "logs" / "gpt-4o" / "poached_pear"
    renamed.mkdir(parents=True)
    source = logs / "logs/model_a/poached_pear/experiment_2026-01-12_10-00-00_poached_pear.json"
    (renamed / source.name).write_text(source.read_text())
    take(store, tmp_path / "logs", logs / "logs/model_b")
    found = replicate(store, "collab-overcooked")
    assert [len(left.records) for left in found.left_out] == [1, 2]
    assert "--reference DIR" in found.left_out[0].reason
    ingest(store, [tmp_path / "logs"], ReadOptions(), reference=logs / "reference")
    found = replicate(store, "collab-overcooked")
    two = cells(found, "Table 2")
    cell = two["GPT-4o", "Level 1 · success_rate"]
    assert (cell.published, cell.here.value, cell.here.n) == (94, 100, 1)
    assert two["model_b (not in the paper)", "Level 3 · success_rate"].published is None
    actions = cells(found, "Table 3")["Level 1", "collaborative actions"]
    assert (actions.published, actions.here.value) == (2, 2)
    confusion = cells(found, "Figure 5")
    assert confusion["GPT-4o", "both right"].here.note == "1 of 1"
    assert confusion["model_b (not in the paper)", "answer right"].here.value == 50


@pytest.mark.long
def test_a_level_is_the_mean_of_its_tasks_and_not_of_its_runs(
    store: Store, tmp_path: Path, shared: Path
) -> None:
    """Two runs of an egg that half of the answers failed, one of a mushroom that all went well, and one of a
    potato of which nobody spoke: RC .5, 1 and none, SR 0, 1 and 0.
    """
    given = shared / "data" / "overcooked"
    runs = (("egg_bad_response", "egg"), ("egg_bad_response", "egg"), ("egg_ok", "mushroom"))
    for number, (source, food) in enumerate((*runs, ("noformat", "sweet_potato"))):
        (log,) = (given / "logs" / source).rglob("*.json")
        folder = tmp_path / "logs" / "gpt-4o" / f"boiled_{food}"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"experiment_2026-11-21_06-20-0{number}_boiled_{food}.json"
        (folder / name).write_text(log.read_text().replace("egg", food))
    for foods, expected in (("egg mushroom", (75, 50)), ("egg mushroom sweet_potato", (50, 100 / 3))):
        paths = [tmp_path / "logs" / "gpt-4o" / f"boiled_{food}" for food in foods.split()]
        ingest(store, paths, ReadOptions(), reference=given / "reference")
        found = replicate(store, "collab-overcooked")
        row = "GPT-4o"
        responding = cells(found, "Figures 3 and 4")[row, "Level 1 · responding_capability, released"].here
        success = cells(found, "Table 2")[row, "Level 1 · success_rate"].here
        assert (responding.value, success.value) == pytest.approx(expected)
        assert success.n == len(runs) + foods.count("potato")
        assert (responding.note or "").startswith("1 of 3 tasks count 0: the chef opened no dialogue") == (
            "potato" in foods
        )


@pytest.mark.long
def test_a_task_whose_reference_has_nothing_for_who_was_asked_counts_as_nothing_with_that_reason(
    store: Store, tmp_path: Path, shared: Path
) -> None:
    """The released code counts each dialogue that the chef opened."""
    (log,) = (shared / "data" / "overcooked" / "logs" / "egg_ok").rglob("*.json")
    reference = tmp_path / "reference"
    shutil.copytree(shared / "data" / "overcooked" / "reference", reference)
    alone = {"reference_1": {"agent_0": ["deliver_soup()"], "agent_1": []}}
    (reference / "1_boiled_mushroom_ref.txt").write_text(json.dumps(alone))
    for food in ("egg", "mushroom"):
        folder = tmp_path / "logs" / "gpt-4o" / f"boiled_{food}"
        folder.mkdir(parents=True)
        name = f"experiment_2026-11-21_06-20-01_boiled_{food}.json"
        (folder / name).write_text(log.read_text().replace("egg", food))
    ingest(store, [tmp_path / "logs"], ReadOptions(), reference=reference)
    found = cells(replicate(store, "collab-overcooked"), "Figures 3 and 4")
    asked = found["GPT-4o", "Level 1 · initiating_capability, released"].here
    note = "1 of 2 tasks count 0: the reference has no action for who was asked"
    assert (asked.value, (asked.note or "")[: len(note)]) == (50, note)


@pytest.mark.long
def test_tasks_without_a_reference_have_no_capability_and_count_for_none(
    store: Store, tmp_path: Path, shared: Path
) -> None:
    (log,) = (shared / "data/overcooked/logs/egg_bad_response").rglob("*.json")
    folder = tmp_path / "logs" / "gpt-4o" / "boiled_egg"
    folder.mkdir(parents=True)
    shutil.copy(log, folder / "experiment_2026-11-21_06-20-01_boiled_egg.json")
    ingest(store, [folder], ReadOptions(), reference=shared / "data/overcooked/recipe")
    here = cells(replicate(store, "collab-overcooked"), "Figures 3 and 4")
    responding = here["GPT-4o", "Level 1 · responding_capability, released"].here
    assert (responding.value, responding.note) == (None, None)
    assert responding.reason and "reference" in responding.reason


def session(
    folder: Path, number: int, text: str, score: float, model: str = "gpt-4o", **files: object
) -> None:
    log = Log(began=BEGAN + timedelta(hours=number)).say(AGENT, "One?").say(USER, "Two")
    if text:
        log.write(AGENT, text)
    info = {f"{AGENT}/info.json": {"lm": model, "token_usage": {}}}
    log.finish().folder(
        folder / f"env_travel_planning_{number}",
        performance(text, performance_rating=score) | info | simulated() | files,
    )


@pytest.mark.slow
def test_a_cell_says_its_definition_n_and_which_records_it_leaves_out_and_why(
    store: Store, tmp_path: Path
) -> None:
    arm = tmp_path / "collab"
    session(arm, 0, "Plan", 0.5)
    session(arm, 1, "Plan", 1.0, "openai/gpt-4o-2024-08-06")
    session(arm, 2, "", 0)
    session(arm, 3, "Plan", 1.0, "gpt-4o-mini")
    take(store, arm)
    labels = [verdict(f"env_travel_planning_{n}", seq, "initiative", "yes") for n in (0,) for seq in (2, 3)]
    labels += [verdict("env_travel_planning_1", seq, "initiative", "no") for seq in (2, 3)]
    rate(store, labels)
    row = "Collaborative Agent · GPT-4o"
    two = cells(replicate(store, "co-gym"), "Table 2")
    quality = two[row, "Travel Planning · task_performance"]
    assert (quality.published, quality.here.value, quality.here.n) == (0.641, 0.75, 2)
    (left,) = quality.here.left_out
    assert (left.reason, left.records) == ("nothing was delivered", ("env_travel_planning_2",))
    assert quality.definition == "mean of the delivered"
    entropy = two[row, "Travel Planning · initiative_entropy"]
    assert entropy.here.n == 2 and entropy.here.value == 0.5
    assert entropy.here.note == "nobody took the initiative in 1 of 3: counted as 0"
    assert entropy.definition.endswith("0 where nobody takes the initiative; rated by ann")
    paper = cells(replicate(store, "co-gym", definition="paper"), "Table 2")[row, entropy.column]
    assert (paper.here.value, paper.here.n) == (1, 1)
    assert two["Collaborative Agent · model gpt-4o-mini", "Travel Planning · delivery_rate"].published is None


@pytest.mark.slow
def test_real_and_simulated_users_stand_side_by_side(store: Store, tmp_path: Path) -> None:
    session(tmp_path / "collab", 0, "Plan", 0.5)
    log = Log(team=("agent", "user_7")).say("agent", "Hello").write("agent", "Plan")
    fields = {"modelName": "gpt-4o", "task": "travel_planning"}
    log.released(tmp_path / "cogym-real" / "a.json", **fields, outcomeRating=4, agentRating=5)
    take(store, tmp_path / "collab", tmp_path / "cogym-real")
    give(store, [])
    found = replicate(store, "co-gym")
    three = cells(found, "Table 3")
    human = three["collab_score human", "Travel Planning"]
    assert (human.published, human.here.value) == (0.788, 0.8)
    beside = three["collab_score automatic", "Travel Planning · simulated"]
    assert (beside.published, beside.here.value) == (None, 0.5)
    six = cells(found, "Table 6")
    assert (six["5", "real"].here.value, six["4", "real"].here.value) == (100, 0)
    assert six["5", "simulated"].here.left_out[0].records == ("env_travel_planning_0",)


@pytest.mark.slow
def test_failures_stand_by_setting_with_the_share_of_each_source(store: Store, tmp_path: Path) -> None:
    session(tmp_path / "collab", 0, "Plan", 0.5)
    session(tmp_path / "collab", 1, "Plan", 0.5)
    take(store, tmp_path / "collab")
    given = [
        {**verdict("env_travel_planning_0", None, "failures", "present", code="C.1"), "cites": [2]},
        {
            **verdict("env_travel_planning_0", None, "failures", "present", code="SA.1"),
            "cites": [2],
            "error_source": "both",
        },
    ]
    assert rate(store, given).imported == 2
    found = replicate(store, "co-gym")
    mode = cells(found, "Table 4")["C.1", "simulated"]
    assert (mode.published, mode.here.value, mode.here.n) == (24, 100, 1)
    assert [(left.reason, left.records) for left in mode.here.left_out] == [
        ("not rated", ("env_travel_planning_1",))
    ]
    sources = cells(found, "Table 4, error source")
    # C.1 is usually the model's; of SA.1 the rater said both, whatever is usual.
    shares = [sources[name, "simulated"].here.value for name in ("model", "scaffolding", "both")]
    assert shares == [100, 0, 100]


@pytest.mark.slow
def test_games_stand_by_type_and_setting_and_copies_in_no_cell(store: Store) -> None:
    take(store, ROOT / "data/coblock")
    found = replicate(store, "coblock")
    figures = cells(found, "Figures 6 and 7")
    assert figures["human-machine · goal-dependent", "success_rate"].here.value == 50
    errors = cells(found, "Errors")
    assert errors["goal-dependent", "no initiative"].here.reason == "no record here"
    neglected = errors["independent", "neglected_own_goal"]
    assert (neglected.here.value, neglected.here.n) == (100, 1)
    assert [left.reason for left in found.left_out] == ["a shorter copy of record 22"]


@pytest.mark.slow
def test_the_table_for_reading_shows_what_has_a_value_and_says_the_rest_below(
    store: Store, tmp_path: Path
) -> None:
    session(tmp_path / "collab", 0, "", 0)
    take(store, tmp_path / "collab")
    (two,) = [t for t in replicate(store, "co-gym").tables if t.name == "Table 2"]
    assert [line[:4] for line in lines(two)] == [
        ["Collaborative Agent · GPT-4o", "Travel Planning · delivery_rate", "0.745", "0"],
        ["Collaborative Agent · GPT-4o", "Travel Planning · collab_score", "0.478", "0"],
    ]
    assert "1 cell has records but no value (1: nothing was delivered)." in remarks(two)
    assert remarks(two)[-1] == "162 of its 168 figures have no record here."


@pytest.mark.slow
def test_the_command_prints_every_table_or_one_document(tmp_path: Path, coaudit: Coaudit) -> None:
    assert coaudit("ingest", str(ROOT / "data/rehac")).status == 0
    shown = coaudit("replicate", "rehac")
    assert shown.status == 0 and "Table 5 (appendix A.6)" in shown.out
    document = coaudit("replicate", "rehac", "--json").json
    assert document["paper"] == "rehac" and len(document["tables"]) == 6
    cell = next(c for c in document["tables"][3]["cells"] if c["row"] == "StrategyQA · Human-only")
    assert set(cell) == {
        "row", "column", "published", "value", "low", "high", "n", "definition", "reason", "note", "left_out",
    }  # fmt: skip
    assert "unknown paper" in coaudit("replicate", "nothing", status=2).err
