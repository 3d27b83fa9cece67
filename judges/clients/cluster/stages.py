"""From questions to replies on Ray: by vLLM in the workers, or by workers that ask an endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ray
from ray.data import ActorPoolStrategy, Dataset, TaskPoolStrategy

from ..arguments import Arguments
from ..openai import Endpoint
from ..protocol import Parameters
from .workers import Asking, Prompting, Prompts

CONCURRENT = 8
"""Blocks that a worker has in hand; the next is there when one is done."""
TOKENIZER = ("trust_remote_code", "revision", "tokenizer_revision")


@dataclass(frozen=True)
class OfEndpoint:
    """Workers that ask an endpoint; they take blocks of any size."""

    endpoint: Endpoint
    parameters: Parameters
    workers: int
    padded = False

    def __call__(self, questions: Dataset, block: int) -> Dataset:
        """The replies."""
        return questions.map_batches(
            Asking,
            fn_constructor_args=(self.endpoint, self.parameters),
            batch_size=None,
            compute=ActorPoolStrategy(
                size=self.workers,
                max_tasks_in_flight_per_actor=2 * CONCURRENT,
                max_concurrent_calls_per_actor=CONCURRENT,
            ),
            num_cpus=0.5,
        )


@dataclass(frozen=True)
class OfModel:
    """vLLM in the workers, through Ray's own processor; its blocks are full, or they would wait for more."""

    model: str
    arguments: Arguments
    parameters: Parameters
    workers: int
    gpus: bool
    padded = True

    def __call__(self, questions: Dataset, block: int) -> Dataset:
        """The replies."""
        from ray.data.llm import build_processor, vLLMEngineProcessorConfig

        prompts = self._prompts()
        beside = {"num_cpus": 0.25, "compute": TaskPoolStrategy(self.workers + 1)}
        prompt_rows = questions.map_batches(  # actors: a task would load the tokenizer again, for ten seconds
            Prompting,
            fn_constructor_args=(prompts,),
            batch_size=None,
            batch_format="pyarrow",
            compute=ActorPoolStrategy(size=self.workers),
            num_cpus=0.25,
        )
        config = vLLMEngineProcessorConfig(
            model_source=self.model,
            engine_kwargs=self._engine(),
            batch_size=block,
            concurrency=(self.workers, self.workers),
            max_concurrent_batches=CONCURRENT,
            should_continue_on_error=True,
            log_engine_metrics=False,
            placement_group_config=None if self.gpus else {"bundles": [{"CPU": 1}]},
            chat_template_stage=False,  # with the tokenizer's it would begin a prompt twice, see Prompts
            tokenize_stage=False,
            detokenize_stage=False,
        )
        processor = build_processor(
            config,
            preprocess=prompts.sampling,
            postprocess=prompts.reply,
            preprocess_map_kwargs=beside,
            postprocess_map_kwargs=beside,
        )
        replies: Dataset = processor(prompt_rows)
        return replies

    def _engine(self) -> dict[str, Any]:
        server = ("chat_template", "default_chat_template_kwargs")
        return {name: value for name, value in self.arguments.items() if name not in server}

    def _prompts(self) -> Prompts:
        arguments = self.arguments
        loading = {name: arguments[name] for name in TOKENIZER if name in arguments}
        if "tokenizer_revision" in loading:
            loading["revision"] = loading.pop("tokenizer_revision")
        return Prompts(
            self.model,
            self.parameters,
            arguments.get("chat_template"),
            arguments.get("default_chat_template_kwargs", {}),
            loading,
        )


def parallel(arguments: Arguments) -> int:
    """GPUs that one copy of the model takes."""
    return int(arguments.get("tensor_parallel_size", 1)) * int(arguments.get("pipeline_parallel_size", 1))


def resources(name: str) -> int:
    """How many of a resource the cluster has."""
    return int(ray.cluster_resources().get(name, 0))
