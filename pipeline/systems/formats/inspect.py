"""Inspect's evaluation logs, `.eval` or JSON, read by inspect_ai itself: a trajectory each sample.

`messages` become events (conversation.py), `scores` outcomes, where C, I, P and N are 1, 0, 0.5 and 0 as
Inspect's own metrics have them; `success` is the one score where it is 1 or 0. The condition is the solver
where one was named; the instance is the sample's id, so that the epochs of one sample can be paired. The user
of an evaluation is a data set, so the setting is simulated unless the command line says otherwise.

Identity: the sample's own uuid, which Inspect gives to each run of a sample.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ....schemas import Quarantined, Trajectory
from ....schemas.extras import pip_command
from ..base import ReadOptions, quarantine_failure
from . import contents, conversation
from .conversation import Answer, Call, ChatMessage, Talk
from .rules import rules

SYSTEM = "inspect"
LOOK = 4096
MARKS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}


def recognises(path: Path) -> bool:
    """An .eval file, or a JSON file that begins as Inspect's logs do."""
    if not path.is_file():
        return False
    if path.suffix == ".eval":
        return zipfile.is_zipfile(path)
    if path.suffix != ".json":
        return False
    with path.open("rb") as file:
        head = file.read(LOOK)
    return b'"eval"' in head and (b'"run_id"' in head or b'"task_id"' in head)


def read(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The samples of a log."""
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        reason = f"an Inspect log; install inspect_ai to read it: {pip_command('inspect')} ({error})"
        yield Quarantined(source=str(path), reason=reason)
        return
    # Inspect raises whatever its readers meet in a broken file: zip, JSON, pydantic and its own errors.
    try:
        whole = path.suffix != ".eval"
        log = read_eval_log(str(path), header_only=not whole, resolve_attachments=whole)
        for sample in (log.samples or []) if whole else _samples(path):
            yield quarantine_failure(partial(_trajectory, sample, log.eval, path, options), str(path))
    except Exception as error:
        reason = f"inspect_ai cannot read it: {type(error).__name__}: {error!s:.300}"
        yield Quarantined(source=str(path), reason=reason)


def _samples(path: Path) -> Iterator[Any]:
    """The samples of an .eval file, one held at a time."""
    from inspect_ai.log import read_eval_log_sample, read_eval_log_sample_summaries

    for summary in read_eval_log_sample_summaries(str(path)):
        yield read_eval_log_sample(str(path), summary.id, summary.epoch, resolve_attachments=True)


def _trajectory(sample: Any, spec: Any, path: Path, options: ReadOptions) -> Trajectory | Quarantined:
    talk = Talk(rules(options.map))
    for message in sample.messages:
        talk.add_message(_message(message))
    if not talk.events:
        return Quarantined(source=str(path), reason=f"sample {sample.id}: no messages in it")
    for model, usage in sample.model_usage.items():
        names = [name for name, own in talk.models.items() if own in (model, model.partition("/")[2])]
        if names:
            talk.add_tokens(names[0], usage.input_tokens, usage.output_tokens)
    scores = {name: _score(score.value) for name, score in (sample.scores or {}).items()}
    if len(scores) == 1 and (only := next(iter(scores.values()))) in (0.0, 1.0):
        scores["success"] = only
    tags = {"epoch": str(sample.epoch), "eval_id": spec.eval_id}
    if sample.limit:
        tags["limit"] = str(sample.limit.type)
    if sample.error:
        tags["error"] = sample.error.message[:200]
    return talk.trajectory(
        sample.uuid or f"{spec.eval_id}/{sample.id}/{sample.epoch}",
        str(path),
        options,
        system=SYSTEM,
        setting="simulated",
        condition=spec.solver,
        task=spec.task,
        instance=str(sample.id),
        agent_model=spec.model,
        tags=tags,
        outcomes=conversation.outcomes(scores),
    )


def _message(message: Any) -> ChatMessage:
    content = message.content
    parts = content if isinstance(content, str) else [p.model_dump(mode="json") for p in content]
    result = ChatMessage(message.role, model=getattr(message, "model", None))
    if message.role == "tool":
        error = message.error
        why = f"{error.type}: {error.message}" if error else None
        result.answers = [Answer(contents.plain_text(parts), message.tool_call_id, error is not None, why)]
        return result
    result.text = contents.plain_text(parts) or None
    calls = getattr(message, "tool_calls", None) or []
    result.calls = [Call(c.function, c.arguments, c.id, c.parse_error) for c in calls]
    return result


def _score(value: Any) -> Any:
    return MARKS.get(value, value) if isinstance(value, str) else value
