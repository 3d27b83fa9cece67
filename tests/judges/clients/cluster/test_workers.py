"""What workers make of rows: vLLM's parameters from a question, a reply from vLLM's output."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from coaudit.judges.clients import Message, Parameters, Question, Reply
from coaudit.judges.clients.cluster.rows import (
    KEY,
    PADDING,
    QUESTION,
    REPLY,
    question_document,
    reply_of,
)
from coaudit.judges.clients.cluster.tables import QUESTIONS
from coaudit.judges.clients.cluster.workers import Prompts
from coaudit.judges.clients.protocol import Form, Rejected, Token

CHOICE = Question((Message("user", "Rate it."),), Form(("yes", "no"), {}, 8))


class Letters:
    """A tokenizer whose tokens are letters; its template refuses some text, as templates may."""

    def apply_chat_template(
        self, conversations: list[list[dict[str, str]]], **options: Any
    ) -> list[list[int]]:
        assert options["add_generation_prompt"] and options["tokenize"]
        said = [messages[0]["content"] for messages in conversations]
        if any("{{" in text for text in said):
            raise ValueError("unexpected '{{'")
        return [[ord(letter) for letter in text] for text in said]


@pytest.fixture
def prompts() -> Prompts:
    return Prompts("m", Parameters(temperature=0.5, seed=3))


def row(question: Question, key: int = 7) -> dict[str, Any]:
    """A question on its way."""
    return {KEY: key, QUESTION: question_document(question)}


def made(prompts: Prompts, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows that vLLM's stage has."""
    given = prompts.rows(pa.Table.from_pylist(list(rows), schema=QUESTIONS), Letters()).to_pylist()
    return [{**one, **prompts.sampling(one)} for one in given]


def test_choices_are_held_to_and_weighed(prompts: Prompts) -> None:
    (one,) = made(prompts, row(CHOICE))
    assert one[KEY] == 7 and one["tokenized_prompt"] == [ord(letter) for letter in "Rate it."]
    assert one["sampling_params"] == {
        "temperature": 0.5,
        "seed": 3,
        "max_tokens": 8,
        "logprobs": 5,
        "structured_outputs": {"choice": ["yes", "no"], "json": None},
    }


def test_a_schema_is_held_to_as_json(prompts: Prompts) -> None:
    form = Form((), {"type": "object"}, 200)
    sampling = made(prompts, row(Question(CHOICE.messages, form)))[0]["sampling_params"]
    assert sampling["structured_outputs"] == {"choice": None, "json": '{"type": "object"}'}
    assert (sampling["logprobs"], sampling["max_tokens"]) == (None, 200)


def test_rows_that_fill_a_block_ask_nothing_and_stay_in_their_places(prompts: Prompts) -> None:
    filling = {KEY: PADDING, QUESTION: ""}
    rows = made(prompts, filling, row(CHOICE, 1), filling, row(CHOICE, 2), filling)
    assert [one[KEY] for one in rows] == [PADDING, 1, PADDING, 2, PADDING]
    assert [len(one["tokenized_prompt"]) for one in rows] == [1, 8, 1, 8, 1]
    assert {one["sampling_params"]["max_tokens"] for one in rows if one[KEY] == PADDING} == {1}
    assert [one[KEY] for one in made(prompts, filling)] == [PADDING] and made(prompts) == []


def test_a_question_that_makes_no_prompt_costs_itself_only(prompts: Prompts) -> None:
    bad = Question((Message("user", "{{"),), CHOICE.form)
    rows = made(prompts, row(CHOICE, 1), row(bad, 2), row(CHOICE, 3))
    assert [one["tokenized_prompt"] == [0] for one in rows] == [False, True, False]
    said = reply_of(prompts.reply(rows[1])[REPLY])
    assert isinstance(said, Rejected) and "unexpected '{{'" in str(said)


OUTPUT = {
    KEY: 7,
    "refused": "",
    "most": 8,
    "generated_text": "yes",
    "generated_tokens": [121, 0],
    "num_generated_tokens": 2,
    "num_input_tokens": 40,
}


YES, NO = {"logprob": -0.25, "decoded_token": "y"}, {"logprob": -1.5, "decoded_token": "n"}


# As a worker holds them, and as Arrow gives them back: every token's column in every record, or pairs.
@pytest.mark.parametrize(
    "logprobs", [[{121: YES, 110: NO}], [{"121": YES, "110": NO, "9": None}], [[(121, YES), (110, NO)]]]
)
def test_tokens_come_with_their_rivals(prompts: Prompts, logprobs: list[Any]) -> None:
    reply = reply_of(prompts.reply({**OUTPUT, "logprobs": logprobs})[REPLY])
    assert reply == Reply(
        text="yes",
        model="m",
        finish="stop",
        tokens=(Token("y", -0.25, (("y", -0.25), ("n", -1.5))),),
        prompt_tokens=40,
        completion_tokens=2,
    )


def test_an_answer_that_took_all_it_might_was_cut_off(prompts: Prompts) -> None:
    reply = json.loads(prompts.reply({**OUTPUT, "most": 2, "logprobs": None})[REPLY])
    assert (reply["finish"], reply["tokens"]) == ("length", [])
