"""Inspect's evaluation logs, `.eval` or JSON, read by inspect_ai itself: a trajectory each sample.

`messages` become events (conversation.py) with the times that `events` has for them, `scores` outcomes,
where C, I, P and N are 1, 0, 0.5 and 0 as Inspect's own metrics have them, and so are yes and no, true and
false, and numbers in texts; `success` is the one score where it is 1 or 0. A score of several values is an
outcome each, `SCORER/KEY`. An agent that is a tool of another is seen by its answer alone. The condition is
the solver where one was named; the instance is the sample's id, so that the epochs of one sample can be
paired. The user of an evaluation is a data set, so the setting is simulated unless the command line says
otherwise.

Identity: the sample's own uuid, which Inspect gives to each run of a sample.
"""

from __future__ import annotations

import json
import math
import re
import tempfile
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

from ....schemas import Quarantined, Trajectory
from ....schemas.extras import pip_command
from ..base import ReadOptions, json_file, quarantine_failure
from .fields import contents
from .fields.rules import Rules, rules
from .messages import conversation
from .messages.conversation import Answer, Call, ChatMessage, Talk

SYSTEM = "inspect"
LOOK = 4096
MARKS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_SCAFFOLD = re.compile(
    # react, basic_agent; handoff
    r"\s*(?:Please proceed to the next step using your best judgement\."
    r"(?: If you believe you have completed the task, please call the `[^`\n]+` tool "
    r"with your final answer\.)?"
    r"|The [^\n]{1,100} agent has completed its work\.)\s*"
)
"""What Inspect's agents tell a model under the user's role."""
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


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
        is_empty = True
        for sample in (log.samples or []) if whole else _samples(path):
            is_empty = False
            if isinstance(sample, Quarantined):
                yield sample
            else:
                yield quarantine_failure(partial(_trajectory, sample, log.eval, path, options), str(path))
        if is_empty:
            yield Quarantined(source=str(path), reason=f"no samples in it (its status is {log.status!r})")
    except Exception as error:
        apart = list(_read_apart(path, options)) if path.suffix != ".eval" else []
        if any(isinstance(one, Trajectory) for one in apart):
            yield from apart
            return
        reason = f"inspect_ai cannot read it: {type(error).__name__}: {error!s:.300}"
        yield Quarantined(source=str(path), reason=reason)


def _read_apart(path: Path, options: ReadOptions) -> Iterator[Trajectory | Quarantined]:
    """The samples of a JSON log that inspect_ai cannot read as a whole, each read as a log of its own: one
    that is broken costs itself alone."""
    from inspect_ai.log import read_eval_log

    log = json_file(path)
    samples = log.get("samples") if isinstance(log, dict) else None
    for number, sample in enumerate(samples if isinstance(samples, list) else []):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / path.name
            copy.write_text(json.dumps({**cast("dict[str, Any]", log), "samples": [sample]}), "utf-8")
            alone = quarantine_failure(partial(read_eval_log, str(copy), resolve_attachments=True), str(path))
        if isinstance(alone, Quarantined):
            name = sample.get("id", number) if isinstance(sample, dict) else number
            reason = f"sample {name}: {alone.reason}"
            yield alone.model_copy(update={"reason": reason})
            continue
        for one in alone.samples or []:
            yield quarantine_failure(partial(_trajectory, one, alone.eval, path, options), str(path))


def _samples(path: Path) -> Iterator[Any]:
    """The samples of an .eval file, one held at a time; one that is broken costs itself alone."""
    from inspect_ai.log import read_eval_log_sample, read_eval_log_sample_summaries

    for one in read_eval_log_sample_summaries(str(path)):
        load = partial(read_eval_log_sample, str(path), one.id, one.epoch, resolve_attachments=True)
        sample = quarantine_failure(load, str(path))
        if isinstance(sample, Quarantined):
            reason = f"sample {one.id}, epoch {one.epoch}: {sample.reason}"
            sample = sample.model_copy(update={"reason": reason})
        yield sample


def _trajectory(sample: Any, spec: Any, path: Path, options: ReadOptions) -> Trajectory | Quarantined:
    talk = Talk(rules(options.map))
    times = _times(sample)
    for message in sample.messages:
        talk.add_message(_message(message, times, talk.rules))
    if not talk.events:
        return Quarantined(source=str(path), reason=f"sample {sample.id}: no messages in it")
    _add_tokens(talk, sample.model_usage, spec.model)
    scores = dict(_scores(sample.scores or {}))
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


def _times(sample: Any) -> dict[str, str]:
    """Id of a message -> when its model had written it, or when a model was first given it; messages of old
    logs have no id, and no time."""
    times: dict[str | None, str] = {}
    for event in sample.events:
        if event.event == "model":
            for message in event.input:
                times.setdefault(message.id, event.timestamp.isoformat())
            end = (event.completed or event.timestamp).isoformat()
            times |= {choice.message.id: end for choice in event.output.choices}
    return {name: time for name, time in times.items() if name is not None}


def _add_tokens(talk: Talk, usages: dict[str, Any], model_of_agent: str) -> None:
    """Add what each model used to whoever answered as that model. A provider may answer under another name
    than it was asked by: what the evaluated model used is the only agent's."""
    agents = [name for name, kind in talk.kinds.items() if kind == "agent"]
    for model, usage in usages.items():
        names = [name for name, own in talk.models.items() if {model, model.partition("/")[2]} & {*own}]
        if not names and model == model_of_agent and len(agents) == 1:
            names = agents
        if names:
            talk.add_tokens(names[0], _prompt_tokens(usage), usage.output_tokens)


def _prompt_tokens(usage: Any) -> int:
    """All that a model read. Old logs of some providers count what came from a cache among the input, so that
    input and output are the total."""
    cached = int((usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0))
    has_all = usage.total_tokens == usage.input_tokens + usage.output_tokens
    return int(usage.input_tokens) + (0 if has_all else cached)


def _message(message: Any, times: dict[str, str], marks: Rules) -> ChatMessage:
    content = message.content
    parts = content if isinstance(content, str) else [p.model_dump(mode="json") for p in content]
    model = getattr(message, "model", None)
    result = ChatMessage(message.role, time=times.get(message.id), model=model)
    if message.role == "tool":
        text, error = contents.plain_text(parts), message.error
        why = f"{error.type}: {error.message}" if error else None
        # A shell's or an interpreter's failure is no error of the tool, and stands in what it printed.
        has_failed = error is not None or marks.status(text, message.function) == "failed"
        result.answers = [Answer(text, message.tool_call_id, has_failed, why)]
        return result
    result.text = contents.plain_text(parts) or None
    if message.role == "user" and _SCAFFOLD.fullmatch(result.text or ""):
        result.role = "system"
    calls = getattr(message, "tool_calls", None) or []
    result.calls = [Call(c.function, c.arguments, c.id, c.parse_error) for c in calls]
    return result


def _scores(scores: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(name, value) of each score, and of each value in one that has several."""
    for name, score in scores.items():
        if isinstance(score.value, dict):
            yield from ((f"{name}/{key}", _number(value)) for key, value in score.value.items())
        else:
            yield name, _number(score.value)


def _number(value: Any) -> Any:
    """The number that a text stands for in Inspect's own metrics; any other value as it is."""
    if not isinstance(value, str):
        return value
    if (mark := MARKS.get(value, WORDS.get(value.lower()))) is not None:
        return mark
    try:
        number = float(value)
    except ValueError:
        return value
    return number if math.isfinite(number) else value
