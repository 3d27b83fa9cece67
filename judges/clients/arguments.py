"""What is passed on to an engine: options of vLLM's, as people write them.

An option is `name=value`, a JSON object, or a TOML or JSON file. Names are those of vLLM's command line,
with dashes or underscores; a value is read as JSON or TOML where it is either, else it is a string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...schemas import toml
from ..errors import JudgeError

Arguments = Mapping[str, Any]
"""Name of an option, with underscores -> its value."""
OURS = {
    "model": "--model names it",
    "served_model_name": "--model names it",
    "task_type": "judges generate",
    "runner": "judges generate",
    "convert": "judges generate",
    "host": "the server listens on 127.0.0.1",
    "port": "a free one is taken",
    "uds": "the server listens on 127.0.0.1",
    "api_key": "one is made up for each run",
    "config": "give its options",
    "root_path": "nothing stands before the server",
    "headless": "the server is what is asked",
}
"""Options that coaudit sets itself -> why."""
_SSL = re.compile(r"ssl_|enable_ssl")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def arguments(options: Sequence[str]) -> dict[str, Any]:
    """Options as one dictionary, later ones over earlier; JudgeError for what is none or not to be set."""
    result: dict[str, Any] = {}
    for item in options:
        for name, value in _parse_option(item).items():
            result[_name(str(name))] = value
    return result


def command_line(options: Arguments) -> list[str]:
    """Options as vLLM's command line takes them."""
    words: list[str] = []
    for name, value in options.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif value is not None:
            words += [f"--{flag}", _word(value)]
    return words


def _word(value: Any) -> str:
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def _parse_option(item: str) -> dict[str, Any]:
    text = item.strip()
    if text.startswith("{"):
        return _object(_json(text, "--engine-args"), "--engine-args")
    if text.endswith((".toml", ".json")) and "=" not in text:
        return _file(Path(text))
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise JudgeError(
            f"--engine-args takes name=value, a JSON object, or a .toml or .json file; got {item!r}"
        )
    return {name.strip().removeprefix("--"): _value(value.strip())}


def _file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise JudgeError(f"--engine-args: {path}: cannot be read: {error}") from error
    if path.suffix == ".json":
        return _object(_json(text, str(path)), str(path))
    try:
        return toml.parse(text)
    except ValueError as error:
        raise JudgeError(f"--engine-args: {path}: {error}") from error


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JudgeError(f"{where}: not JSON: {error}") from error


def _object(document: Any, where: str) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise JudgeError(f"{where}: expected an object of options, got {type(document).__name__}")
    return document


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return toml.parse(f"value = {text}")["value"]
    except ValueError:
        return text


def _name(option: str) -> str:
    name = option.replace("-", "_")
    if not _NAME.fullmatch(name):
        raise JudgeError(f"--engine-args: {option!r} is no name of an option")
    if name in OURS:
        raise JudgeError(f"--engine-args: {option} is not to be set: {OURS[name]}")
    if _SSL.match(name):
        raise JudgeError(
            f"--engine-args: {option} is not to be set: the server is asked on this machine alone"
        )
    return name
