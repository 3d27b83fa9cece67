"""What there is to rate."""

from __future__ import annotations

from pathlib import Path

from coaudit.pipeline import codebooks
from coaudit.pipeline.judge.scope import has_units
from tests.pipeline.analyze.test_compare import GRADE, session
from tests.pipeline.stores import made, take, write_lines


def test_a_codebook_that_is_asked_of_no_session_has_no_units_and_the_reason_is_told(tmp_path: Path) -> None:
    store = made(tmp_path / "workspace")
    take(store, write_lines(tmp_path / "log.jsonl", session(0, "a", {})))
    folder = store.workspace.codebooks
    folder.mkdir()
    scoped = GRADE.replace("[[codes]]", '[applies_to]\nsystm = "desk"\n[[codes]]')
    (folder / "grade.toml").write_text(GRADE, encoding="utf-8")
    (folder / "scoped.toml").write_text(scoped.replace('name = "grade"', 'name = "scoped"'), encoding="utf-8")
    take(store, write_lines(tmp_path / "more.jsonl", session(1, "a", {})))
    grade, other = (codebooks.load(name, folder) for name in ("grade", "scoped"))
    assert has_units(store, grade) and not has_units(store, other)
    assert codebooks.without_units(other, [("task", "b")]) == (
        "codebook 'scoped': the store holds no unit of it (it is asked of sessions with systm = desk only; "
        "--where task=b)"
    )
