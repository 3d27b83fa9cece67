"""The shipped marks on texts made to take for ever, and what they say of common ones."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from coaudit.pipeline.systems.formats.fields import marks

LENGTH = 100_000
SPACE = " " * LENGTH


def test_words_of_a_person_are_what_stands_between_their_tags() -> None:
    heading = "The user has provided feedback on the results.\n"
    assert marks.spoken_words(f"{heading}<feedback>\n  No, blue. \n</feedback>") == ["No, blue."]
    two = f"{heading}<answer>a</answer> {heading}<answer>b</answer>\n{heading}\n<answer>c</answer>"
    assert marks.spoken_words(two) == ["a", "c"]
    assert marks.spoken_words("The user has provided <answer>write <feedback>, please</answer>") == [
        "write <feedback>, please"
    ]
    asked = "User has answered your questions: blue . You can now continue with the user's answers in mind.\n"
    assert marks.answered_words(asked, marks.ASKING) == "blue "
    assert marks.veto("The user denied the tool.\n<feedback> Not now </feedback>") == marks.Veto("Not now")
    assert marks.veto("The user denied the tool. <feedback> with reason: late") == marks.Veto("late")


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (marks.spoken_words, f"The user has provided\n<answer>{SPACE}x"),
        (marks.spoken_words, f"The user has provided{SPACE}x"),
        (marks.spoken_words, "The user has provided\n<answer>\n" * (LENGTH // 30)),
        (
            lambda text: marks.answered_words(text, marks.ASKING),
            f"User has answered your questions: a{SPACE}x",
        ),
        (marks.veto, "The user denied the tool.\n" + "<feedback>" * (LENGTH // 10)),
    ],
)
def test_a_tag_that_nothing_closes_costs_no_more_than_its_text(
    read: Callable[[str], object], text: str
) -> None:
    start = time.process_time()
    read(text)
    assert time.process_time() - start < 1
