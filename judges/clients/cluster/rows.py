"""Questions and replies as rows: what travels between this process and Ray's workers.

A row holds a number and a document; every row of a dataset has the same columns, whatever is asked.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from ...errors import JudgeError
from ..dialect import rejection
from ..protocol import (
    ContextTooSmall,
    Fatal,
    Form,
    Message,
    Overloaded,
    Question,
    Refused,
    Rejected,
    Reply,
    Token,
    Transient,
    UnknownModel,
    Unreachable,
)

Row = dict[str, Any]
KEY, QUESTION, REPLY = "key", "question", "reply"
PROMPT, SAMPLING = "tokenized_prompt", "sampling_params"
"""As vLLM's stage calls them."""
PADDING = -1
"""Key of a row that is there to fill a block."""
_ERRORS: dict[str, type[JudgeError]] = {
    kind.__name__: kind
    for kind in (ContextTooSmall, Fatal, Overloaded, Refused, Rejected, Transient, UnknownModel, Unreachable)
}


def question_document(question: Question) -> str:
    """A question as JSON."""
    form = question.form
    document = {
        "messages": [message.document() for message in question.messages],
        "choices": form.choices,
        "schema": dict(form.schema),
        "max_tokens": form.max_tokens,
    }
    return json.dumps(document, separators=(",", ":"))


def question_of(document: str) -> Question:
    """The question that a document holds."""
    read = json.loads(document)
    messages = tuple(Message(m["role"], m["content"]) for m in read["messages"])
    return Question(messages, Form(tuple(read["choices"]), read["schema"], read["max_tokens"]))


def reply_document(reply: Reply | JudgeError) -> str:
    """A reply, or why there is none, as JSON."""
    if isinstance(reply, Reply):
        return json.dumps(asdict(reply), separators=(",", ":"))
    detail = getattr(reply, "limit", None) or getattr(reply, "after", None)
    return json.dumps({"error": type(reply).__name__, "message": str(reply), "detail": detail})


def answer_of(row: Row) -> Reply | JudgeError:
    """A row's reply, or why vLLM rejected that row; the others go on.

    Ray passes on the text of vLLM's error, not its cause, and some errors have no text.
    """
    if reason := str(row.get("__inference_error__") or ""):
        message = f"{reason}no reason given; --engine vllm logs it" if reason.endswith(": ") else reason
        return rejection(400, reason.encode(), message[:300])
    return reply_of(row[REPLY])


def reply_of(document: str) -> Reply | JudgeError:
    """The reply that a document holds, or the error."""
    read = json.loads(document)
    if "error" not in read:
        tokens = tuple(
            Token(text, logprob, tuple((word, value) for word, value in rivals))
            for text, logprob, rivals in (token.values() for token in read.pop("tokens"))
        )
        return Reply(tokens=tokens, left_out=tuple(read.pop("left_out")), **read)
    kind, message = _ERRORS.get(read["error"], Rejected), read["message"]
    if issubclass(kind, ContextTooSmall | Overloaded):
        return kind(message, read["detail"])
    return kind(message)
