"""What who rates must know of a task and its log does not say reaches models and people alike."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from coaudit.judges.llm import Case, LLMJudge
from coaudit.pipeline import codebooks
from coaudit.pipeline.annotate import draw, push
from coaudit.pipeline.cli.sample_audit import samples
from coaudit.pipeline.ingest.rebuild import rebuild
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.judge.background import Backgrounds
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.systems import ReadOptions
from coaudit.pipeline.units import cut

KITCHEN = samples() / "overcooked"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The sample runs of Collab-Overcooked, without references."""
    made = Store(Workspace(tmp_path / "workspace"))
    ingest(made, [KITCHEN / "logs"], ReadOptions())
    return made


def _prompts(store: Store, name: str) -> Iterator[str]:
    book = codebooks.load(name)
    judge, backgrounds = LLMJudge(book, book.context), Backgrounds(store)
    with store.reading() as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM trajectories").fetchall()]
        logs = store.load(connection, ids, states=True)
    for log in logs:
        for unit in cut(log, book):
            case = Case(unit, "M", background=backgrounds.of(log))
            yield judge.whole(case).question.messages[1].content


def _measures(store: Store) -> list[tuple[object, ...]]:
    query = """
        SELECT metric, trajectory_id, definition, participant, value FROM computed
        WHERE reason IS NULL ORDER BY ALL
    """
    with store.reading() as connection:
        return list(connection.execute(query).fetchall())


def test_a_judge_of_requests_is_told_the_recipe_and_how_maps_are_read(store: Store) -> None:
    assert all(
        "0 the chef" in prompt and "order's recipe" not in prompt for prompt in _prompts(store, "failures")
    )
    ingest(store, [], ReadOptions(), reference=KITCHEN / "recipe")
    recipes = [path.read_text().strip().splitlines() for path in (KITCHEN / "recipe").iterdir()]
    for prompt in _prompts(store, "collaborative_errors"):
        before, _, transcript = prompt.partition("<<transcript M>>")
        assert any("\n".join(f"| {line}" for line in recipe) in before for recipe in recipes)
        assert "Order: " in transcript


def test_a_judge_that_sees_one_unit_alone_sees_no_background(store: Store) -> None:
    assert not any("background" in prompt for prompt in _prompts(store, "initiative"))


def test_people_are_told_the_same_before_the_log_begins(store: Store, tmp_path: Path) -> None:
    ingest(store, [], ReadOptions(), reference=KITCHEN)
    sample = draw.draw(store, draw.Wish(("collaborative_errors",), "pilot", size=2))
    paths, _ = push.export(store, sample, tmp_path / "out")
    (path,) = (one for one in paths if one.suffix == ".json")
    for task in json.loads(path.read_text()):
        _, first, second = task["data"]["transcript"][:3]
        assert first["author"] == "Background" and "The order's recipe:" in first["text"]
        assert "Order: " in second["text"]
        assert len(task["data"]["seqs"]) == len(task["data"]["transcript"])


def test_recipes_that_come_after_reference_actions_leave_these_and_their_figures(store: Store) -> None:
    ingest(store, [], ReadOptions(), reference=KITCHEN / "reference")
    before = _measures(store)
    ingest(store, [], ReadOptions(), reference=KITCHEN / "recipe")
    assert _measures(store) == before
    assert "tes" in {row[0] for row in before}


def test_of_two_recipes_the_one_read_last_counts_before_and_after_a_rebuild(
    store: Store, tmp_path: Path
) -> None:
    """A folder that was read again counted from its first time on after a rebuild: every prompt on its
    orders was another, and so were figures."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "3_leek_soup.txt").write_text(f"NAME:\nLeek soup {name}\n")
    for name in ("one", "two", "one"):
        ingest(store, [], ReadOptions(), reference=tmp_path / name)

    def recipes() -> set[str]:
        return {name for name in ("one", "two") for p in _prompts(store, "failures") if f"soup {name}" in p}

    assert recipes() == {"one"}
    rebuild(store)
    assert recipes() == {"one"}


def test_what_a_folder_no_longer_has_is_gone_at_once_and_after_a_rebuild(
    store: Store, tmp_path: Path
) -> None:
    for name in ("recipe", "reference"):
        shutil.copytree(KITCHEN / name, tmp_path / "kitchen", dirs_exist_ok=True)
    ingest(store, [], ReadOptions(), reference=tmp_path / "kitchen")
    for path in (tmp_path / "kitchen").glob("3_*"):
        path.unlink()
    ingest(store, [], ReadOptions(), reference=tmp_path / "kitchen")

    def about() -> tuple[int, list[tuple[object, ...]]]:
        return sum("The order's recipe" in one for one in _prompts(store, "failures")), _measures(store)

    before = about()
    assert 0 < before[0] < len([*_prompts(store, "failures")])
    rebuild(store)
    assert about() == before
