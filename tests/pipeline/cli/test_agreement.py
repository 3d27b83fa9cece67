"""What commands say where the sessions that `--where` names have nothing of what is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from coaudit.pipeline.cli import agreement
from tests.conftest import Coaudit
from tests.judges.teams import team
from tests.pipeline.stores import holding, rate, rows, verdict


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        (["agreement"], 0, "by two raters in these sessions yet: `coaudit judge --where 'task=a b'` asks"),
        (["rates"], 0, "`coaudit sample --codebook NAME --where 'task=a b'` draws"),
        (["compare", "--by", "condition"], 0, "all these trajectories have one condition"),
        (["validate"], 2, "no labels by people on these codebooks in these sessions (gold"),
        (["interventions"], 0, "none of these sessions is of ReHAC"),
    ],
)
def test_what_some_sessions_lack_is_not_said_of_the_workspace(
    workspace: Path, coaudit: Coaudit, command: list[str], status: int, words: str
) -> None:
    talk = team(("human", "Hi"), ("agent", "Ho"))
    holding(workspace, [talk.model_copy(update={"id": "a", "native_id": "a", "task": "a b"})])
    assert words in coaudit(*command, "--where", "task=a b", status=status).err


def test_what_two_groups_have_the_same_is_one_line_behind_the_others(
    workspace: Path, coaudit: Coaudit
) -> None:
    words = {"a": ("Ho",), "b": ("Ho", "Hm"), "c": ("Ho",), "d": ("Ho", "Hm", "Ha")}
    talks = [
        team(("human", "Hi"), *(("agent", word) for word in said)).model_copy(
            update={"id": name, "native_id": name, "condition": "slow" if name in "ab" else "fast"}
        )
        for name, said in words.items()
    ]
    holding(workspace, talks)
    lines = coaudit("compare", "--by", "condition").out.splitlines()
    assert lines[-1].startswith("nothing to test, the same in fast and slow: ")
    assert lines[-1].endswith(", messages of human 1") and "messages of human" not in "".join(lines[:-1])
    assert any(line.startswith("messages of agent: 2.000 (fast) against 1.500 (slow)") for line in lines)


def test_a_codebook_that_changed_is_not_said_to_be_unrated(workspace: Path, coaudit: Coaudit) -> None:
    """Nor is every codebook, where another one is rated."""
    store = holding(workspace, [team(("human", "Hi"), ("agent", "Ho"))])
    book = workspace / "codebooks" / "mine.toml"
    book.parent.mkdir(exist_ok=True)
    text = """
        name = "mine"
        title = "Mine"
        unit = "trajectory"
        labels = ["yes", "no"]
        question = "Is it so?"
        [[codes]]
        code = "m"
        name = "Mine"
        definition = "It is."
    """
    book.write_text(text)
    (trajectory,) = [row["id"] for row in rows(store, "SELECT id FROM trajectories")]
    assert rate(store, [verdict(trajectory, None, "mine", "yes", code="m", rater="ann")]).imported == 1
    book.write_text(text.replace("It is.", "It was."))
    told = coaudit("rates", "--codebook", "mine").err
    assert "mine: 1 rating on another version of it does not count" in told
    assert "no rating with mine counts yet: " in told


def test_what_two_groups_have_the_same_keeps_its_codebook_basis_and_doubts() -> None:
    """One system of two had rows, codes of two codebooks were of one name, and equal means of too few were
    called the same."""
    head = {"system": "desk", "groups": ["a", "b"], "effect": 0.0, "low": None, "first": 0.0, "second": 0.0}
    alike = "nothing to test: all values are the same"
    tail = "0.000 (a) against 0.000 (b), difference +0.000, n=2 + 2: no test, "
    few = f"desk: turns: {tail}too few to decide: 1 independent, 2 needed."
    rows = [
        {**head, "reason": alike, "subject": subject, "statement": f"desk: {subject}: {tail}{alike}."}
        for subject in (f"late of {book} (judge) [judge only: raw]" for book in ("mine", "yours"))
    ]
    doubt = head | {"reason": "too few to decide: 1 independent, 2 needed", "statement": few}
    assert list(agreement._statements([*rows, doubt])) == [
        few,
        "desk: nothing to test, the same in a and b: late of mine (judge) [judge only: raw] 0.000, "
        "late of yours (judge) [judge only: raw] 0.000",
    ]
