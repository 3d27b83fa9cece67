"""What workers make of rows: vLLM's parameters from a question, a reply from vLLM's output."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coaudit.judges.clients import Message, Parameters, Question, Reply
from coaudit.judges.clients.cluster import workers
from coaudit.judges.clients.cluster.rows import KEY, PADDING, QUESTION, REPLY, question_document, reply_of
from coaudit.judges.clients.cluster.workers import Prompts
from coaudit.judges.clients.protocol import Form, Rejected, Token

CHOICE = Question((Message("user", "Rate it."),), Form(("yes", "no"), {}, 8))


class Letters:
    """A tokenizer whose tokens are letters; its template refuses some text, as templates may."""

    def apply_chat_template(self, messages: list[dict[str, str]], **options: Any) -> list[int]:
        assert options["add_generation_prompt"] and options["tokenize"]
        if "{{" in messages[0]["content"]:
            raise ValueError("unexpected '{{'")
        return [ord(letter) for letter in messages[0]["content"]]


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch) -> Prompts:
    monkeypatch.setattr(workers, "_tokenizer", lambda model, loading: Letters())
    return Prompts("m", Parameters(temperature=0.5, seed=3))


def row(question: Question, key: int = 7) -> dict[str, Any]:
    """A question on its way."""
    return {KEY: key, QUESTION: question_document(question)}


def test_choices_are_held_to_and_weighed(prompts: Prompts) -> None:
    made = prompts.row(row(CHOICE))
    assert made[KEY] == 7 and made["tokenized_prompt"] == [ord(letter) for letter in "Rate it."]
    assert made["sampling_params"] == {
        "temperature": 0.5,
        "seed": 3,
        "max_tokens": 8,
        "logprobs": 5,
        "structured_outputs": {"choice": ["yes", "no"], "json": None},
    }


def test_a_schema_is_held_to_as_json(prompts: Prompts) -> None:
    form = Form((), {"type": "object"}, 200)
    made = prompts.row(row(Question(CHOICE.messages, form)))["sampling_params"]
    assert made["structured_outputs"] == {"choice": None, "json": '{"type": "object"}'}
    assert (made["logprobs"], made["max_tokens"]) == (None, 200)


def test_every_row_has_the_same_columns_a_filling_one_too(prompts: Prompts) -> None:
    kinds = [prompts.row(row(CHOICE)), prompts.row({KEY: PADDING, QUESTION: ""})]
    assert kinds[0].keys() == kinds[1].keys()
    assert kinds[1][KEY] == PADDING and kinds[1]["sampling_params"]["max_tokens"] == 1


def test_a_question_that_makes_no_prompt_costs_itself_only(prompts: Prompts) -> None:
    bad = prompts.row(row(Question((Message("user", "{{"),), CHOICE.form)))
    assert bad["tokenized_prompt"] == [0]
    said = reply_of(prompts.reply(bad)[REPLY])
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
