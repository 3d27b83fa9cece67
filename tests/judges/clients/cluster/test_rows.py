"""Questions and replies survive the way to a worker and back."""

from __future__ import annotations

import pytest

from coaudit.judges import JudgeError
from coaudit.judges.clients import Message, Question, Reply
from coaudit.judges.clients.cluster.rows import (
    KEY,
    REPLY,
    answer_of,
    question_document,
    question_of,
    reply_document,
    reply_of,
)
from coaudit.judges.clients.protocol import (
    ContextTooSmall,
    Form,
    Overloaded,
    Rejected,
    Token,
    Transient,
    UnknownModel,
)


@pytest.mark.parametrize(
    "form",
    [
        Form(("yes", "no"), {}, 8),
        Form((), {"type": "object", "properties": {"é": {"enum": [1, None]}}}, 300),
    ],
)
def test_a_question_comes_back_as_it_was(form: Form) -> None:
    said = (Message("system", "Rate.\n"), Message("user", 'a "quote" \ud800 <<mark>>'))
    assert question_of(question_document(Question(said, form))) == Question(said, form)


def test_a_reply_comes_back_with_its_tokens() -> None:
    reply = Reply(
        text="yes",
        model="m",
        finish="stop",
        tokens=(Token("yes", -0.1, (("yes", -0.1), ("no", -2.5))), Token("", -0.0)),
        prompt_tokens=12,
        cached_tokens=8,
        completion_tokens=1,
        cost_usd=0.5,
    )
    assert reply_of(reply_document(reply)) == reply


@pytest.mark.parametrize(
    "error",
    [
        Transient("the connection broke"),
        Rejected("status 400: no"),
        UnknownModel("no model 'x', it offers y"),
        Overloaded("status 429", 2.5),
        Overloaded("status 429", None),
        ContextTooSmall("too long", 4096),
    ],
)
def test_an_error_comes_back_as_its_kind_with_what_it_knows(error: JudgeError) -> None:
    back = reply_of(reply_document(error))
    assert (type(back), str(back)) == (type(error), str(error))
    for name in ("after", "limit"):
        assert getattr(back, name, None) == getattr(error, name, None)


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("ValueError: no such choice", "status 400: ValueError: no such choice"),
        (
            "EngineGenerateError: ",
            "status 400: EngineGenerateError: no reason given; --engine vllm logs it",
        ),
    ],
)
def test_a_row_that_vllm_rejects_says_why_or_where_to_look(reason: str, message: str) -> None:
    error = answer_of({KEY: 1, "__inference_error__": reason})
    assert isinstance(error, Rejected) and str(error) == message


def test_a_row_without_an_error_is_its_reply() -> None:
    reply = Reply("yes", "judge")
    row = {KEY: 1, "__inference_error__": "", REPLY: reply_document(reply)}
    assert answer_of(row) == reply
