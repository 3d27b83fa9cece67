"""What Ray's workers do with rows: ask an endpoint, or make prompts for vLLM and replies of its outputs.

Ray ships this code by name, so that coaudit is installed wherever a worker runs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...errors import JudgeError
from ..dialect import TOP_LOGPROBS
from ..openai import Endpoint, OpenAIClient
from ..protocol import Form, Parameters, Question, Rejected, Reply, Token
from .rows import (
    KEY,
    PADDING,
    PROMPT,
    QUESTION,
    REPLY,
    SAMPLING,
    Row,
    question_of,
    reply_document,
)
from .tables import PROMPTS

_NOTHING, _NO_FORM = [0], Form(("0",), {}, 1)
"""The prompt of a row that asks nothing, and how it is answered."""


class Asking:
    """A worker that asks an endpoint: a block of questions in, their replies out."""

    def __init__(self, endpoint: Endpoint, parameters: Parameters) -> None:
        self.endpoint = endpoint
        self.parameters = parameters
        self._stack = AsyncExitStack()
        self._client: OpenAIClient | None = None

    async def __call__(self, batch: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Ask them side by side; one that fails has its reason in place of a reply."""
        if self._client is None:
            client = OpenAIClient(self.endpoint, self.parameters)
            self._client = await self._stack.enter_async_context(client)
        documents = [str(document) for document in batch[QUESTION]]
        replies = await asyncio.gather(*(self._reply(document) for document in documents))
        yield {KEY: batch[KEY], REPLY: replies}

    async def _reply(self, document: str) -> str:
        assert self._client is not None
        try:
            return reply_document(await self._client(question_of(document)))
        except JudgeError as error:
            return reply_document(error)


class Prompting:
    """A worker that makes prompts: a block of questions in, as many rows for vLLM out."""

    def __init__(self, prompts: Prompts) -> None:
        from transformers import AutoTokenizer

        self.prompts = prompts
        self._tokenizer = AutoTokenizer.from_pretrained(prompts.model, **prompts.loading)

    def __call__(self, questions: pa.Table) -> pa.Table:
        """Their rows, in the same order."""
        return self.prompts.rows(questions, self._tokenizer)


@dataclass(frozen=True)
class Prompts:
    """Between questions and vLLM's rows; the prompt is the one that vLLM's own server makes."""

    model: str
    parameters: Parameters
    template: str | None = None
    """A chat template in place of the model's own, or a file that holds one."""
    template_options: Mapping[str, Any] = field(default_factory=dict)
    loading: Mapping[str, Any] = field(default_factory=dict)
    """How the tokenizer is loaded."""

    def rows(self, questions: pa.Table, tokenizer: Any) -> pa.Table:
        """Questions -> the tokens of their prompts and how to sample. One that makes no prompt says why."""
        keys = questions[KEY].to_pylist()
        by_key = {
            key: question_of(document)
            for key, document in zip(keys, questions[QUESTION].to_pylist(), strict=True)
            if key != PADDING
        }
        prompts = dict(zip(by_key, self._tokenized(tokenizer, list(by_key.values())), strict=True))
        rows = []
        for key in keys:
            tokens = prompts.get(key, _NOTHING)
            if isinstance(tokens, Exception):
                rows.append(self._row(key, _NOTHING, _NO_FORM, f"no prompt: {tokens!r}"))
            else:
                rows.append(self._row(key, tokens, by_key[key].form if key in by_key else _NO_FORM, ""))
        return pa.Table.from_pylist(rows, schema=PROMPTS)

    @staticmethod
    def sampling(row: Row) -> Row:
        """What vLLM's stage takes out of a row of `rows`."""
        return {SAMPLING: json.loads(row[SAMPLING])}

    def reply(self, row: Row) -> Row:
        """What vLLM made of a row -> the reply."""
        if row["refused"]:
            return {KEY: row[KEY], REPLY: reply_document(Rejected(row["refused"]))}
        n_tokens = int(row["num_generated_tokens"])
        reply = Reply(
            text=row["generated_text"],
            model=self.model,
            finish="length" if n_tokens >= int(row["most"]) else "stop",
            tokens=_tokens(row),
            prompt_tokens=int(row["num_input_tokens"]),
            completion_tokens=n_tokens,
        )
        return {KEY: row[KEY], REPLY: reply_document(reply)}

    def _row(self, key: int, tokens: list[int], form: Form, refused: str) -> Row:
        return {
            KEY: key,
            PROMPT: tokens,
            SAMPLING: json.dumps(self._sampling(form)),
            "most": form.max_tokens,  # vLLM's stage takes the sampling parameters out of the row
            "refused": refused,
        }

    def _tokenized(
        self, tokenizer: Any, questions: Sequence[Question]
    ) -> Sequence[Sequence[int] | Exception]:
        """The prompts of all, which the tokenizer makes on all cores at once; one by one where it cannot."""
        try:
            return self._tokens(tokenizer, questions)
        except Exception as error:  # whatever a template raises concerns one question alone
            if len(questions) == 1:
                return [error]
            return [self._tokenized(tokenizer, [question])[0] for question in questions]

    def _tokens(self, tokenizer: Any, questions: Sequence[Question]) -> list[list[int]]:
        if not questions:
            return []
        template = self.template
        if template and "{" not in template:
            template = Path(template).read_text(encoding="utf-8")
        tokens: list[list[int]] = tokenizer.apply_chat_template(
            [[message.document() for message in question.messages] for question in questions],
            chat_template=template,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=False,
            **self.template_options,
        )
        return tokens

    def _sampling(self, form: Form) -> dict[str, Any]:
        choices = list(form.choices) or None
        return {
            "temperature": float(self.parameters.temperature),
            "seed": self.parameters.seed,
            "max_tokens": form.max_tokens,
            "logprobs": TOP_LOGPROBS if choices and self.parameters.logprobs else None,
            "structured_outputs": {"choice": choices, "json": None if choices else json.dumps(form.schema)},
            **self.parameters.extra,
        }


def _tokens(row: Row) -> tuple[Token, ...]:
    """An answer's tokens with their rivals. Arrow makes one record of all tokens' columns: most are null."""
    items = []
    for token, rivals in zip(row["generated_tokens"], _as_list(row.get("logprobs")), strict=False):
        pairs = rivals.items() if isinstance(rivals, Mapping) else rivals
        by_id = {int(name): rival for name, rival in pairs if rival is not None}
        ranking = tuple((str(r["decoded_token"]), float(r["logprob"])) for r in by_id.values())
        if (choice := by_id.get(int(token))) is not None:
            items.append(Token(str(choice["decoded_token"]), float(choice["logprob"]), ranking))
    return tuple(items)


def _as_list(logprobs: Any) -> list[Any]:
    return [] if logprobs is None else list(logprobs)
