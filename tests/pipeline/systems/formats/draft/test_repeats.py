"""Conversations that several records tell, as exports of annotations have them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from coaudit.pipeline.systems.formats.draft.drafting import draft
from coaudit.pipeline.systems.formats.draft.unclear import open_questions
from tests.pipeline.systems.formats.shapes import as_json, as_lines, sentence

TALKS = range(8)


def _told(path: Path) -> list[str]:
    made = draft(path)
    return [one for one in open_questions(made.survey, made.guess) if "word for word" in one]


def _talk(talk: int, turns: int = 4) -> list[dict[str, str]]:
    return [{"speaker": ("user", "bot")[n % 2], "text": f"{sentence(n)} {talk}"} for n in range(turns)]


def _rated(fields: Iterable[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    return [
        {"task": f"{talk}-{rater}", "rater": rater, "good": talk % 2, **own}
        for talk, own in fields
        for rater in ("ann", "bob")
    ]


def test_a_talk_that_several_raters_have_is_said_to_count_for_each_with_the_field_that_tells_talks(
    tmp_path: Path,
) -> None:
    shapes: dict[str, list[dict[str, Any]]] = {
        "meta.id": [{"dialogue": _talk(n), "meta": {"id": f"d{n}"}} for n in TALKS],
        "item_id": [{"prompt": f"{sentence(n)} {n}", "response": sentence(1), "item_id": n} for n in TALKS],
        "conversation_id": [
            {"context": f"User: {sentence(n)} {n}\nBot: {sentence(1)}", "conversation_id": f"c{n}"}
            for n in TALKS
        ],
    }
    for name, own in shapes.items():
        (told,) = _told(as_lines(tmp_path / f"{name}.jsonl", _rated(enumerate(own))))
        assert told.startswith("8 of 16 records") and f'native_id = ["{name}"]' in told


def test_pairs_that_several_judge_are_told_with_their_side(tmp_path: Path) -> None:
    pairs = [
        {"question_id": n, "winner": "model_a", "model_a": "m1", "model_b": "m2"}
        | {f"conversation_{side}": _chat(f"{n}{side}") for side in "ab"}
        for n in TALKS
    ]
    (told,) = _told(as_json(tmp_path / "pairs.json", [{**one, "judge": j} for one in pairs for j in "xy"]))
    assert told.startswith("16 of 32 records") and 'native_id = ["question_id", "side"]' in told


def _chat(end: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[n % 2], "content": f"{sentence(n)} {end}"} for n in range(4)]


def test_what_was_said_so_far_and_comes_with_each_state_is_told(tmp_path: Path) -> None:
    states = [
        {"id": f"{talk}-{n}", "history": _talk(talk, n), "seen": n} for talk in range(3) for n in (2, 3, 4, 6)
    ]
    (told,) = _told(as_json(tmp_path / "states.json", states))
    assert told.startswith("9 of 12 records") and "as far as it went" in told


def test_talks_of_their_own_are_not_told(tmp_path: Path) -> None:
    """Neither many that begin alike, nor records of which the last of an id counts."""
    alike = [
        {"id": n, "turns": [{"speaker": "bot", "text": sentence(0)}, *_talk(n)][: 1 + n]} for n in range(20)
    ]
    rounds = [
        {"id": f"r{n}", "rounds": [{"question": f"{sentence(k)} {n}", "answer": sentence(k)} for k in (0, 1)]}
        for n in range(20)
    ]
    for name, rows in (("alike", alike), ("rounds", rounds)):
        assert _told(as_lines(tmp_path / f"{name}.jsonl", rows)) == []
