"""Checks a codebook file; a problem is named together with what would be right."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from ...judges.llm.answers import answer_of
from ...judges.llm.context import estimate
from ...judges.llm.prompts import rubric
from ...schemas import Code, Codebook, Model, toml
from ...schemas.codebook import Category, ContextKind, Example, Level, UnitKind, Views
from ...schemas.text import rule_of
from ..errors import SourceError

_HELP = {
    "name": "lower case letters, digits and _, beginning with a letter; the file's name without .toml",
    "title": "a text",
    "unit": f"what is rated as one: one of {', '.join(get_args(UnitKind))}",
    "context": f"one of {', '.join(get_args(ContextKind))}",
    "views": f"one of {', '.join(get_args(Views))}",
    "level": f"one of {', '.join(get_args(Level))}",
    "labels": 'a list of two texts or more, such as ["yes", "no"]',
    "question": "one sentence that asks about a unit",
    "applies_to": 'which sessions it is for, such as {task = "lesson"}: fields or tags with their values',
    "made_for": 'systems whose sessions it is proposed for, such as ["rehac"]',
    "codes": "one [[codes]] table or more, each with code, name and definition",
}
_LONG = 20_000
"""Tokens of a prompt that many models' contexts do not hold."""


_NEGATIONS = ("no", "not", "none", "absent", "false", "0", "never")
"""First labels of two that hardly say that the code is there."""


def check(file: Path) -> tuple[list[str], list[str]]:
    """The problems of a file (none: it is a codebook), and notes on what could be better."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise SourceError(f"{file}: cannot be read: {error.strerror}") from error
    try:
        document = toml.parse(content)
    except ValueError as error:
        return [f"{file}: {error}"], []
    problems = []
    book = None
    try:
        book = Codebook.model_validate(document)
    except ValidationError as error:
        problems = [_problem(file, result) for result in error.errors()]
    if isinstance(document.get("name"), str) and document["name"] != file.stem:
        problems.append(f"{file}: name: is {document['name']!r}, must be {file.stem!r} as the file is called")
    return problems, _notes(file, book) if book and not problems else []


def _problem(file: Path, result: Any) -> str:
    path = [str(part) for part in result["loc"]]
    place = ".".join(path) or "codebook"
    field = path[-1] if path else ""
    if result["type"] == "extra_forbidden":
        return f"{file}: {place}: is not known here, expected {', '.join(_fields(path))}"
    message = rule_of(result)
    help_ = f" (expected {_HELP[field]})" if field in _HELP and len(path) == 1 else ""
    if result["type"] == "missing":
        return f"{file}: {place}: is missing{help_}"
    value = f", got {str(result['input'])[:60]!r}" if path and result["type"] != "value_error" else ""
    return f"{file}: {place}: {message}{value}{help_}"


def _fields(path: list[str]) -> list[str]:
    shapes: dict[str, type[Model]] = {"codes": Code, "categories": Category, "examples": Example}
    shape: type[Model] = next((shapes[part] for part in reversed(path[:-1]) if part in shapes), Codebook)
    return list(shape.model_fields)


def _notes(file: Path, book: Codebook) -> list[str]:
    notes = []
    if book.binary and book.positive.lower() in _NEGATIONS:
        first = f"the first of two labels is the one that is counted, and that is {book.positive!r}"
        notes.append(f"{file}: note: {first}: rates will be of it")
    if book.unit == "trajectory" and book.context == "none":
        notes.append(
            f"{file}: note: it asks about what the team ended with, where the log holds that: with context = "
            '"transcript" about the whole log'
        )
    for code in book.codes:
        if not code.examples:
            notes.append(f"{file}: note: code {code.code} has no examples; raters agree better with some")
        missing = set(book.labels) - {example.label for example in code.examples}
        if code.examples and book.binary and missing:
            notes.append(f"{file}: note: code {code.code} has no example of {', '.join(sorted(missing))}")
    tokens = estimate(rubric(book, answer_of(book)))
    if tokens > _LONG:
        notes.append(f"{file}: note: its prompt takes about {tokens} tokens before anything is rated")
    return notes
