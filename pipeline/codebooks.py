"""Where codebooks come from: the ones that ship with coaudit, and the workspace's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from ..schemas import Codebook, content_hash, toml
from ..schemas.text import rule_of
from .errors import CoauditError, UsageError

PROCESS = ("initiative", "confirmation", "halting")
"""The codebooks of the process, which are judged where none is named."""


class CodebookError(CoauditError, ValueError):
    """A codebook that is not there, or a file that is not one; the message says what would be right."""


class UnknownCodebookError(CodebookError, UsageError):
    """A name that no codebook has; the message names the choices."""


def names(folder: Path | None = None) -> list[str]:
    """The codebooks there are, the workspace's own (`folder/*.toml`) included, in alphabetical order."""
    return sorted({path.removesuffix(".toml") for path in [*_shipped_files(), *_own_files(folder)]})


def load(name: str, folder: Path | None = None) -> Codebook:
    """The codebook of that name; the workspace's own comes before a shipped one.

    Raises CodebookError for an unknown name (naming the choices) or a file that is not a codebook.
    """
    if folder is not None and f"{name}.toml" in _own_files(folder):
        return read(folder / f"{name}.toml")
    if f"{name}.toml" in _shipped_files():
        return parse(
            (resources.files("coaudit.schemas.codebooks") / f"{name}.toml").read_bytes(), f"{name}.toml"
        )
    raise UnknownCodebookError(f"unknown codebook {name!r}, expected one of {', '.join(names(folder))}")


def without_units(book: Codebook, where: Iterable[tuple[str, str]] = ()) -> str:
    """A sentence that the store holds nothing to rate, with what it is limited to."""
    limits = [f"it is asked of sessions with {book.scope} only"] if book.applies_to else []
    limits += [f"--where {name}={value}" for name, value in where]
    why = f" ({'; '.join(limits)})" if limits else ""
    return f"codebook {book.name!r}: the store holds no unit of it{why}"


def titles(rows: Iterable[tuple[str | None, str]]) -> dict[tuple[str | None, str], str]:
    """(Codebook, code) -> its name in a table: the code, behind its codebook where several have it."""
    codes = set(rows)
    often = Counter(code for _, code in codes)
    return {(book, code): code if often[code] == 1 else f"{book} / {code}" for book, code in codes}


def state(folder: Path | None = None) -> str:
    """A hash of every codebook's text: it changes when one of them does."""
    resource_folder = resources.files("coaudit.schemas.codebooks")
    texts = {name: (resource_folder / name).read_bytes() for name in _shipped_files()}
    if folder is not None:
        texts |= {name: (folder / name).read_bytes() for name in _own_files(folder)}
    return content_hash(sorted((name, text.decode("utf-8", "replace")) for name, text in texts.items()))


def read(path: Path) -> Codebook:
    """The codebook in a file."""
    return parse(path.read_bytes(), str(path))


@lru_cache(maxsize=64)
def parse(content: bytes, source: str) -> Codebook:
    """The codebook in a TOML document; CodebookError lists every rule that it breaks, on one line."""
    try:
        return Codebook.model_validate(toml.parse(content))
    except ValidationError as error:
        rules = (f"{'.'.join(map(str, e['loc'])) or 'codebook'}: {rule_of(e)}" for e in error.errors())
        raise CodebookError(f"{source}: {'; '.join(rules)}") from error
    except ValueError as error:
        raise CodebookError(f"{source}: {error}") from error


def _shipped_files() -> set[str]:
    files = resources.files("coaudit.schemas.codebooks").iterdir()
    return {entry.name for entry in files if entry.name.endswith(".toml")}


def _own_files(folder: Path | None) -> set[str]:
    """The names of a folder's files; to read a pipe may never end."""
    files = folder.glob("*.toml") if folder is not None and folder.is_dir() else ()
    return {path.name for path in files if path.is_file()}
