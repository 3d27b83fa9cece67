"""The client in front of a stream: questions go out in blocks, replies come back to who asked."""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import math
import sys
from collections import deque
from contextlib import AbstractAsyncContextManager, ExitStack, redirect_stdout
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ....schemas.extras import pip_command
from ...errors import JudgeError
from .. import select
from ..engine import Engine, weights
from ..openai import Endpoint, OpenAIClient
from ..protocol import Client, Fatal, Offer, Parameters, Question, Reply
from .connection import Connection, failure_reason
from .rows import KEY, PADDING, QUESTION, Row, answer_of, question_document

if TYPE_CHECKING:
    from .stages import OfEndpoint, OfModel
    from .stream import Stream

MOMENT = 0.02
"""Seconds in which questions gather to a block."""
SMALLEST, LARGEST = 8, 256
"""Fewest and most questions in a block: as a worker has a few blocks in hand, a lost one costs little."""
SPARE = 64
"""Blocks beyond those that are needed, for what has to be asked again."""
ENDING_SECONDS = 30.0


_HINTS = {
    "ray": f"{pip_command('ray')} on every machine of the cluster",
    "vllm": f"{pip_command('ray', 'vllm')} on every machine, or name an endpoint: --api-base",
}


@dataclass
class PendingQuestion:
    """A question that is on its way."""

    question: Question
    reply: asyncio.Future[Reply]
    block: int = -1


@dataclass
class Blocks:
    """The blocks that are in flight, and how many of their questions are unanswered."""

    size: int = SMALLEST
    unanswered: dict[int, int] = field(default_factory=dict)

    def count_answer(self, number: int) -> bool:
        """Count an answer; whether it was its block's last."""
        rest = self.unanswered.get(number, 0) - 1
        if rest > 0:
            self.unanswered[number] = rest
            return False
        return self.unanswered.pop(number, None) is not None


class RayClient:
    """Asks through Ray; it starts when there is something to ask."""

    def __init__(self, engine: Engine, model: str, parameters: Parameters, endpoint: Endpoint | None) -> None:
        self.engine = engine
        self.model = model
        self.parameters = parameters
        self.endpoint = endpoint
        self.connection = Connection(engine)
        self._keys = itertools.count()
        self._open: dict[int, PendingQuestion] = {}
        self._waiting: deque[int] = deque()
        self._blocks = Blocks()
        self._wake = asyncio.Event()
        self._stage: OfEndpoint | OfModel | None = None
        self._stream: Stream | None = None
        self._feeding: asyncio.Task[None] | None = None
        self._failed: Fatal | None = None
        self._over = False
        self._output = ExitStack()

    async def __aenter__(self) -> RayClient:
        self._output.enter_context(
            redirect_stdout(sys.stderr)
        )  # Ray prints some warnings whatever it is told
        return self

    async def __aexit__(self, *_: object) -> None:
        with self._output:
            if self._feeding is not None:
                self._feeding.cancel()
            if self._stream is not None:
                self._stream.close()
                await asyncio.to_thread(self._stream.join, ENDING_SECONDS)
            await asyncio.to_thread(self.connection.close)

    async def offer(self) -> Offer:
        """What the endpoint says of itself; of a model that the workers load, the context it is given."""
        if self.endpoint is None:
            length = self.engine.arguments.get("max_model_len")
            return Offer(context=length if isinstance(length, int) else None)
        async with OpenAIClient(self.endpoint, self.parameters) as client:
            return await client.offer()

    async def start(self, questions: int) -> Offer:
        """Have Ray run, with a dataset for about so many questions; Fatal where it does not."""
        await asyncio.to_thread(self.connection.open)
        try:
            self._stage = self._make_stage()
            self._begin(questions)
        except Exception as error:  # Ray has many
            raise Fatal(failure_reason(error)) from error
        self._feeding = asyncio.create_task(self._feed())
        self._feeding.add_done_callback(self._end_feeding)
        return await self.offer()

    async def __call__(self, question: Question) -> Reply:
        """The answer to a question; Fatal once the dataset has failed."""
        if self._failed is not None:
            raise self._failed
        key = next(self._keys)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._open[key] = PendingQuestion(question, future)
        self._waiting.append(key)
        self._wake.set()
        try:
            return await future
        finally:
            self._open.pop(key, None)

    def _make_stage(self) -> OfEndpoint | OfModel:
        from . import stages

        gpus, cpus = stages.resources("GPU"), stages.resources("CPU")
        if self.endpoint is not None:
            return stages.OfEndpoint(self.endpoint, self.parameters, self.engine.workers or max(1, cpus - 1))
        most = max(1, gpus // stages.parallel(self.engine.arguments))
        workers = self.engine.workers or most
        return stages.OfModel(self.model, self.engine.arguments, self.parameters, workers, gpus > 0)

    def _begin(self, questions: int) -> None:
        from .stream import Stream

        assert self._stage is not None
        stage, loop = self._stage, asyncio.get_running_loop()
        size = math.ceil(questions / (4 * self._at_work))
        size = min(LARGEST, max(SMALLEST, size))
        self._blocks, self._over = Blocks(size), False
        self._stream = Stream(
            lambda source: stage(source, size),
            2 * math.ceil(questions / size) + SPARE,
            lambda rows: _tell(loop, self._take_replies, rows),
            lambda error: _tell(loop, self._end_stream, error),
        )
        self._stream.start()

    @property
    def _at_work(self) -> int:
        """Blocks that all workers have in hand."""
        from .stages import CONCURRENT

        assert self._stage is not None
        return CONCURRENT * self._stage.workers

    async def _feed(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(MOMENT)
            self._wake.clear()
            if self._over and self._waiting:
                self._begin(max(len(self._waiting), 2 * self._blocks.size * SPARE))
            assert self._stream is not None
            while self._waiting and not self._over and not self._stream.is_full and self._is_due():
                self._send(self._stream)

    def _end_feeding(self, task: asyncio.Task[None]) -> None:
        """No question may wait for a task that has failed."""
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            self._end_stream(error)

    def _is_due(self) -> bool:
        """Whether a block is full, or workers would be idle without it."""
        return len(self._waiting) >= self._blocks.size or len(self._blocks.unanswered) < self._at_work // 2

    def _send(self, stream: Stream) -> None:
        keys = [self._waiting.popleft() for _ in range(min(self._blocks.size, len(self._waiting)))]
        keys = [key for key in keys if key in self._open]
        if not keys:
            return
        rows = [{KEY: key, QUESTION: question_document(self._open[key].question)} for key in keys]
        if self._stage is not None and self._stage.pads_blocks:
            rows += [{KEY: PADDING, QUESTION: ""}] * (self._blocks.size - len(rows))
        number = stream.put(rows)
        self._blocks.unanswered[number] = len(keys)
        for key in keys:
            self._open[key].block = number

    def _take_replies(self, rows: list[Row]) -> None:
        for row in rows:
            if (waiting := self._open.get(row[KEY])) is None or waiting.reply.done():
                continue
            answer = answer_of(row)
            if isinstance(answer, JudgeError):
                waiting.reply.set_exception(answer)
            else:
                waiting.reply.set_result(answer)
            if self._stream is not None and self._blocks.count_answer(waiting.block):
                self._stream.drop(waiting.block)
        self._wake.set()

    def _end_stream(self, error: Exception | None) -> None:
        """The dataset failed, or has used up its tickets: then the open questions go into another."""
        keys = [key for key, waiting in self._open.items() if not waiting.reply.done()]
        if error is None:
            self._waiting, self._over = deque(keys), True
            self._wake.set()
            return
        self._failed = Fatal(failure_reason(error))
        for key in keys:
            self._open[key].reply.set_exception(self._failed)


def client(engine: Engine, model: str, parameters: Parameters) -> AbstractAsyncContextManager[Client]:
    """A client on Ray; JudgeError where something is missing."""
    for module in ("ray",) if engine.api_base else ("ray", "vllm"):
        if importlib.util.find_spec(module) is None:
            raise JudgeError(f"engine 'ray' needs {module}, which is not installed here: {_HINTS[module]}")
    endpoint = None
    if engine.api_base is not None:
        endpoint = select.endpoint(model, engine.api_base, engine.timeout)
        if endpoint is None:
            raise JudgeError(f"engine 'ray' asks endpoints of OpenAI's protocol: openai/NAME, not {model!r}")
    return RayClient(engine, weights(model), parameters, endpoint)


def _tell(loop: asyncio.AbstractEventLoop, listener: Any, news: Any) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(listener, news)
