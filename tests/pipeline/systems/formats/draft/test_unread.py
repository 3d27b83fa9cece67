"""Sentences of a conversation that a draft leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coaudit.pipeline.systems.formats.draft.drafting import draft
from coaudit.pipeline.systems.formats.draft.unclear import open_questions
from tests.pipeline.systems.formats.shapes import as_lines, sentence


def _left_out(path: Path) -> list[str]:
    made = draft(path)
    return [one for one in open_questions(made.survey, made.guess) if "are left out, at" in one]


def _read(folder: Path, *rows: dict[str, Any]) -> list[str]:
    return _left_out(as_lines(folder / "log.jsonl", [*rows]))


def test_an_answer_beside_the_text_that_is_cut_into_turns_is_said_to_be_left_out(tmp_path: Path) -> None:
    talks = [f"User: {sentence(n)} {n}\nSystem: {sentence(1)}\nUser: {sentence(2)}" for n in range(4)]
    (told,) = _read(tmp_path, *({"context": one, "response": f"{sentence(3)} {one[:9]}"} for one in talks))
    assert told.startswith("sentences beside context are left out, at response:")


def test_what_was_said_before_rival_answers_and_answers_in_a_list_of_their_own_are_told(
    tmp_path: Path,
) -> None:
    rivals = [
        {
            "context": f"{sentence(n)} {n}\n",
            "responses": [{"model": m, "response": sentence(n)} for m in "ab"],
        }
        for n in range(4)
    ]
    assert "at context" in _read(tmp_path, *rivals)[0]
    lists = [
        {
            "id": n,
            **{
                key: [{"input_text": f"{sentence(k)} {key}", "turn_id": k + 1} for k in range(3)]
                for key in ("questions", "answers")
            },
        }
        for n in range(4)
    ]
    assert "beside questions are left out, at answers" in _read(tmp_path, *lists)[0]


def test_what_stands_in_the_conversation_too_is_not_left_out(tmp_path: Path) -> None:
    talks = [
        {
            "prompt": f"{sentence(0)} {n}",
            "turns": [{"speaker": s, "text": f"{sentence(k)} {n}"} for k, s in enumerate("ab")],
        }
        for n in range(4)
    ]
    assert _read(tmp_path, *talks) == []
    assert _read(tmp_path, *({**one, "reference_answer": sentence(3)} for one in talks)) == []


def test_how_many_more_are_left_out_than_are_named_is_told(tmp_path: Path) -> None:
    turns = [{"speaker": s, "text": sentence(k)} for k, s in enumerate("ab")]
    names = ("reply", "answer", "completion", "output", "context", "history", "prompt", "question", "query")
    talks = [{"turns": turns, **{name: f"{sentence(2)} {name} {n}" for name in names}} for n in range(4)]
    assert "question and 1 more: if" in _read(tmp_path, *talks)[0]
