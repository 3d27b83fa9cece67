"""Questions that were learnt from are known again, by text or by episodes, and no others are."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest

from coaudit.pipeline.advise.fingerprints import fingerprints, training_questions
from coaudit.pipeline.advise.states import Episode, episodes
from coaudit.schemas import Outcome, Trajectory
from tests.judges.teams import team
from tests.pipeline.advise.test_trees import episode


def question(name: str, text: str = "", said: str = "a") -> list[Episode]:
    ways = {"00": 0.0, "01": 0.5, "1": 1.0}
    return [
        replace(episode(bits, earned, name, [f"{said}{n}" for n in range(len(bits))]), text=text)
        for bits, earned in ways.items()
    ]


def names(seen: set[tuple[str, str]]) -> set[str]:
    return {name for _, name in seen}


def test_a_question_is_known_by_its_text_whatever_its_number() -> None:
    known = fingerprints([*question("1", "Is it?"), *question("2", "Was it?", "b")])
    assert names(
        training_questions([*question("9", "Is  it?", "c"), *question("8", "Will it?", "d")], known)
    ) == {"9"}


def test_a_question_of_a_tree_without_texts_is_known_by_its_episodes() -> None:
    known = fingerprints([*question("1", "Is it?"), *question("2", "Was it?", "b")])
    assert names(training_questions([*question("9", said="b"), *question("8", said="c")], known)) == {"9"}
    # Two of three of its episodes are enough, one is not.
    assert names(training_questions(question("9", said="b")[1:], known)) == {"9"}
    assert names(training_questions(question("9", said="b")[:1], known)) == set()


def test_a_text_that_all_questions_share_tells_none_of_them() -> None:
    known = fingerprints([*question("1", "Do it."), *question("2", "Do it.", "b")])
    assert (
        names(training_questions([*question("8", "Do it.", "c"), *question("9", "Do it.", "d")], known))
        == set()
    )
    assert names(
        training_questions([*question("8", "Do it.", "c"), *question("9", "Do it.", "a")], known)
    ) == {"9"}


def test_a_question_is_known_by_a_part_of_the_episodes_that_were_learnt_from() -> None:
    """Of trees of which half of the paths were tried, 43 of 99 questions passed for unseen."""
    draw = random.Random(1)
    whole: list[Episode] = []
    for number in range(40):
        for bits in ("".join(way) for way in product("01", repeat=5)):
            said = [f"{number} {bits[: n + 1]}" for n in range(5)]
            whole.append(episode(bits, 0.5, f"q{number}", said))
    part = [path for path in whole if draw.random() < 0.4]
    assert len(training_questions(part, fingerprints(whole))) >= 38
    assert len(training_questions(whole, fingerprints(part))) == 40
    others = {path.question for path in whole[: len(whole) // 2]}
    assert not training_questions(
        [path for path in part if path.question not in others],
        fingerprints(path for path in whole if path.question in others),
    )


def test_fingerprints_are_the_same_in_whatever_order_episodes_come() -> None:
    """A file that was learnt from the store had another version than one that was learnt from the logs."""
    several = [*question("1", "Is it?"), *question("2", "Was it?", "b"), *question("3", said="c")]
    assert fingerprints(several) == fingerprints(several[::-1])


@pytest.mark.parametrize(
    ("query", "instance", "others", "is_one"),
    [
        ("Please plan a trip to Rome for me.", None, 4, True),
        ("Please plan a trip to Rome for me.", "by its number", 4, False),
        ("Please solve the task in the file.", None, 3, False),
        ("Hello!", None, 4, False),
    ],
)
def test_runs_that_begin_with_the_same_words_are_of_one_question_where_logs_name_none(
    query: str, instance: str | None, others: int, is_one: bool
) -> None:
    """Each was a question of its own: runs of a task were held out from each other, and of tasks that an
    advisor had learnt from `evaluate` knew none, since their text was that of several questions. Words with
    which more than half begin are a form: a study of 60 sessions was one question, and taught nothing."""

    def run(number: int) -> Trajectory:
        asks = query + " " * number if number < 4 else f"Please write poem number {number}."
        made = team(("human", asks), ("agent", f"LOOK(at {number})"), key=f"t{number}")
        start, asked, *later = made.events
        return made.model_copy(
            update={
                "instance": instance and f"{instance} {number}",
                "events": (start, asked.model_copy(update={"status": None}), *later),
                "outcomes": (Outcome(name="success", value=1.0),),
            }
        )

    paths, left_out = episodes([run(number) for number in range(4 + others)])
    paths = paths[:4]
    assert left_out == 0 and len({path.question for path in paths}) == (1 if is_one else 4)
    if is_one:
        assert len(training_questions(paths[2:], fingerprints(paths[:2]))) == 1
