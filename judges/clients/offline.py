"""Batches without an endpoint: vLLM in this process, or in the actors of a Ray cluster.

The asker has many questions waiting; those that came in within a moment are one batch. So a batch engine
is a client like any other, and the cache, the checks and the ledger around it are the same.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from ..errors import JudgeError
from .protocol import Client, ContextTooSmall, Offer, Parameters, Question, Reply, Token, Transient

MOMENT = 0.05
"""Seconds in which questions gather."""
LARGEST = 4096
"""Questions in a batch."""
TOP_LOGPROBS = 5
Answer = Callable[[Sequence[Question]], "Sequence[Reply | JudgeError]"]
"""Answers a batch, in its order; may block."""


class BatchClient:
    """Gathers questions and answers them in batches, in a thread, one batch at a time."""

    def __init__(self, start: Callable[[], tuple[Answer, int | None]]) -> None:
        self._start = start
        self._answer: Answer | None = None
        self._context: int | None = None
        self._waiting: list[tuple[Question, asyncio.Future[Reply]]] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Client:
        self._answer, self._context = await asyncio.to_thread(self._start)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
        self._answer = None

    async def offer(self) -> Offer:
        """The model is loaded by now; what is told is its context."""
        return Offer(context=self._context)

    async def __call__(self, question: Question) -> Reply:
        """The answer to one question, as a part of the next batch."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return await future

    async def _work(self) -> None:
        while self._waiting:
            await asyncio.sleep(MOMENT)
            batch, self._waiting = self._waiting[:LARGEST], self._waiting[LARGEST:]
            await self._settle(batch)

    async def _settle(self, batch: list[tuple[Question, asyncio.Future[Reply]]]) -> None:
        assert self._answer is not None
        try:
            replies = await asyncio.to_thread(self._answer, [question for question, _ in batch])
        except Exception as error:  # whatever an engine raises concerns every question of its batch
            replies = [Transient(f"the engine failed: {error!r}")] * len(batch)
        for (_, future), reply in zip(batch, replies, strict=True):
            if future.done():
                continue
            if isinstance(reply, JudgeError):
                future.set_exception(reply)
            else:
                future.set_result(reply)


def vllm_client(model: str, parameters: Parameters) -> AbstractAsyncContextManager[Client]:
    """vLLM's offline engine in this process; the model's name is that of its weights."""
    _need("vllm", "vllm")
    return BatchClient(lambda: _started(_named(model), parameters))


def ray_client(model: str, parameters: Parameters) -> AbstractAsyncContextManager[Client]:
    """vLLM in Ray Data's actors, one a GPU of the cluster."""
    _need("ray", "ray")
    return BatchClient(lambda: (_RayAnswer(_named(model), parameters), None))


class VLLM:
    """A loaded model that answers batches."""

    def __init__(self, model: str, parameters: Parameters) -> None:
        from vllm import LLM

        self.llm = LLM(model=model, enable_prefix_caching=True)
        self.model = model
        self.parameters = parameters

    @property
    def context(self) -> int:
        """Tokens that the model takes."""
        return int(self.llm.llm_engine.model_config.max_model_len)

    def __call__(self, questions: Sequence[Question]) -> list[Reply | JudgeError]:
        """A reply for each question; one that is too long gets the error in its place."""
        fitting = {i: self._prompt(q) for i, q in enumerate(questions)}
        short = [i for i, tokens in fitting.items() if tokens is not None]
        outputs = self.llm.generate(
            [{"prompt_token_ids": fitting[i]} for i in short],
            [self._sampling(questions[i]) for i in short],
            use_tqdm=False,
        )
        replies: list[Reply | JudgeError] = [
            ContextTooSmall(f"longer than the model's {self.context} tokens", self.context) for _ in questions
        ]
        for i, output in zip(short, outputs, strict=True):
            replies[i] = self._reply(output)
        return replies

    def _prompt(self, question: Question) -> list[int] | None:
        messages = [message.document() for message in question.messages]
        tokens: list[int] = self.llm.get_tokenizer().apply_chat_template(
            messages, add_generation_prompt=True, tokenize=True, return_dict=False
        )
        return tokens if len(tokens) + question.form.max_tokens <= self.context else None

    def _sampling(self, question: Question) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        form = question.form
        shape: dict[str, Any] = (
            {"choice": list(form.choices)} if form.choices else {"json": dict(form.schema)}
        )
        return SamplingParams(
            temperature=self.parameters.temperature,
            seed=self.parameters.seed,
            max_tokens=form.max_tokens,
            logprobs=TOP_LOGPROBS if form.choices and self.parameters.logprobs else None,
            structured_outputs=StructuredOutputsParams(**shape),
        )

    def _reply(self, output: Any) -> Reply:
        said = output.outputs[0]
        return Reply(
            text=said.text,
            model=self.model,
            finish=said.finish_reason,
            tokens=_tokens(said),
            prompt_tokens=len(output.prompt_token_ids or ()),
            cached_tokens=output.num_cached_tokens or 0,
            completion_tokens=len(said.token_ids),
        )


class _RayAnswer:
    """Sends batches through Ray Data; the actors that hold the model live for one batch."""

    def __init__(self, model: str, parameters: Parameters) -> None:
        self.model = model
        self.parameters = parameters

    def __call__(self, questions: Sequence[Question]) -> list[Reply | JudgeError]:
        import ray

        gpus = int(ray.cluster_resources().get("GPU", 0)) if ray.is_initialized() else _gpus()
        rows = [{"index": i, "question": question} for i, question in enumerate(questions)]
        done = (
            ray.data.from_items(rows)
            .map_batches(
                _RayWorker,
                fn_constructor_args=(self.model, self.parameters),
                batch_size=256,
                concurrency=max(1, gpus),
                num_gpus=1 if gpus else 0,
            )
            .take_all()
        )
        replies: list[Reply | JudgeError] = [row["reply"] for row in sorted(done, key=lambda r: r["index"])]
        return replies


class _RayWorker:
    """An actor of Ray Data with the model loaded."""

    def __init__(self, model: str, parameters: Parameters) -> None:
        self.answer = VLLM(model, parameters)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {"index": batch["index"], "reply": self.answer(list(batch["question"]))}


def _started(model: str, parameters: Parameters) -> tuple[Answer, int | None]:
    loaded = VLLM(model, parameters)
    return loaded, loaded.context


def _gpus() -> int:
    import ray

    ray.init(logging_level="ERROR")
    return int(ray.cluster_resources().get("GPU", 0))


def _named(model: str) -> str:
    return model.removeprefix("hosted_vllm/").removeprefix("vllm/")


def _need(module: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise JudgeError(f"engine {extra!r} is not installed: pip install 'coaudit[{extra}]'")


def _tokens(said: Any) -> tuple[Token, ...]:
    items = []
    for token, rivals in zip(said.token_ids, said.logprobs or (), strict=False):
        ranked = tuple((str(r.decoded_token), float(r.logprob)) for r in rivals.values())
        chosen = rivals.get(token)
        if chosen is not None:
            items.append(Token(str(chosen.decoded_token), float(chosen.logprob), ranked))
    return tuple(items)
