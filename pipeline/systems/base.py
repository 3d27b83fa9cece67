"""What all readers share: the `System` that each fills in, and how files are read line by line.

A reader never raises for what is inside a source: it yields what it could read, and a `Quarantined` with an
address for every piece that it could not.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import ConfigDict, Field
from pydantic_core import from_json

from ...schemas import Finding, JsonValue, Measure, Model, Quarantined, Trajectory
from ...schemas.trajectory import Setting

MAX_LINE = 64 * 1024 * 1024
"""Bytes; a longer line is quarantined without being held in memory."""

BUFFER = 1024 * 1024
"""Bytes of a file that are read at once: with lines of some kilobytes much faster than Python's default."""

CUT_OFF = " (the last line is cut off)"
"""Ends the reason by which a last line without its end is quarantined."""

LOOK_AHEAD = 1024 * 1024
"""Bytes that are read at a time while the end of a line is looked for."""


class ReadOptions(Model):
    """What a person adds to what the logs say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    setting: Setting | None = None
    condition: str | None = None
    agent: str | None = None
    tags: dict[str, str] = Field(default_factory=dict)
    max_steps: int | None = Field(default=None, gt=0)
    """Co-Gym: how many logged records a party may have."""
    map: str | None = None
    """Text of a mapping file for logs of no known system; the text, so that a rebuild needs no file."""

    def head_fields(self) -> dict[str, object]:
        """The fields of a trajectory's head that hold whatever its log says."""
        return self.model_dump(include={"setting", "condition", "agent", "tags"})


References = Mapping[str, Model]
"""Task -> what the runs on it are measured against, as the system's own type."""


@dataclass(frozen=True)
class TimeLimit:
    """How long a run may take: `gamma` times its task's optimal steps, `optimal` in place of known ones."""

    gamma: float = 1.5
    optimal: Mapping[str, int] = dataclasses.field(default_factory=dict)


LIMIT = TimeLimit()
OF_ONE = {"delivery_rate": "delivered", "success_rate": "success", "win_rate": "won"}
"""A rate over many trajectories -> the 0/1 metric of one trajectory that it is the mean of."""


@dataclass(frozen=True)
class Span:
    """A part of a file in whole lines: bytes `start` to `end`; `line` is the number of the first."""

    start: int
    end: int
    line: int
    runs: tuple[tuple[int, int, int], ...] | None = None
    """Only these lines of it, as (number of the first, byte at which it begins, how many); None: all."""


def _one_whole(path: Path, options: ReadOptions) -> bool:
    return False


def _no_parts(path: Path, options: ReadOptions, size: int) -> Iterator[Span]:
    return iter(())


def _nothing_beside(path: Path) -> Iterable[Path]:
    return ()


def _no_measures(trajectory: Trajectory, references: References, limit: TimeLimit) -> Iterator[Measure]:
    return iter(())


def _no_background(trajectory: Trajectory, references: References) -> str | None:
    return None


def _no_references(folder: Path) -> tuple[Mapping[str, Model], list[Quarantined]]:
    return {}, []


def _no_reference(path: Path) -> bool:
    return False


def _no_labels(path: Path) -> Iterator[Label | Quarantined]:
    return iter(())


@dataclass(frozen=True)
class Label:
    """A label that came with a published set: the fields of `ratings import` (rater, codebook, code ...)."""

    fields: dict[str, JsonValue]
    rest: str | None = None
    """The label of every other unit of the trajectory."""


@dataclass(frozen=True)
class System:
    """All that coaudit knows of one system: filled in by its own folder, listed in registry.py."""

    name: str
    """As `--system` takes it."""
    recognises: Callable[[Path], bool]
    """Whether a file or folder is one of this system's sources, from a short look inside."""
    read: Callable[[Path, ReadOptions], Iterator[Trajectory | Quarantined]]
    """The trajectories of one source, and what could not be read of it."""
    read_span: Callable[[Path, ReadOptions, Span], Iterator[Trajectory | Quarantined]] | None = None
    """The same for a part of a file (see `lines_apart`, `sessions_apart`)."""
    lines_apart: Callable[[Path, ReadOptions], bool] = _one_whole
    """Whether each line of a source can be read without the others, so that several readers may share it."""
    sessions_apart: Callable[[Path, ReadOptions, int], Iterator[Span]] = _no_parts
    """For other sources: parts of about so many bytes, with whole sessions in each."""
    beside: Callable[[Path], Iterable[Path]] = _nothing_beside
    """Files outside a source on which its reading depends."""
    link_names: frozenset[str] = frozenset()
    """Names of the files in a source's folder that are read even where they are symbolic links."""
    written_whole: bool = False
    """Whether its files are finished once written: what one holds now replaces all that it held. Files of
    other systems grow, or begin anew under a name that was there before."""
    named_late: bool = False
    """Whether what names a session may come after what was said in it, as the span does that ends last."""
    models_by_place: bool = False
    """Whether who is which model is told by the folder that a log lies in, and not by the log."""
    on_request: bool = False
    """Read only where `--system` names it: its files look like another system's, or like any."""
    measures: Callable[[Trajectory, References, TimeLimit], Iterator[Measure]] = _no_measures
    """What a trajectory measures beyond the metrics that SQL computes for any team."""
    findings: Mapping[str, Callable[[Trajectory, References], Iterable[Finding] | None]] = dataclasses.field(
        default_factory=dict
    )
    """Codebook -> its detector, which needs the trajectory and not a unit alone; None where it can't tell."""
    background: Callable[[Trajectory, References], str | None] = _no_background
    """What models and people who rate must know of a trajectory's task, and its log does not say."""
    reference: type[Model] | None = None
    """The type of what `read_references` finds."""
    read_references: Callable[[Path], tuple[Mapping[str, Model], list[Quarantined]]] = _no_references
    """Task -> reference from all files below a folder, and the files that could not be read."""
    is_reference: Callable[[Path], bool] = _no_reference
    """Whether a file is one that `read_references` understands, from a short look inside."""
    labels: Callable[[Path], Iterator[Label | Quarantined]] = _no_labels
    """The labels that came with a source."""


def quarantine_failure(make: Callable[[], Item], source: str, line: int | None = None) -> Item | Quarantined:
    """What `make` returns; where it raises, a `Quarantined` with the address and the reason. OSError passes
    through.

    A bulkhead: an error that nobody foresaw costs its own trajectory and no other's.
    """
    try:
        return make()
    except OSError:
        raise
    except Exception as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        reason = " ".join(str(error).split())[:300]
        return Quarantined(source=source, line=line, reason=f"cannot be read: {kind}{reason}")


def items_until_failure(
    items: Iterable[Item], source: str, line: int | None = None
) -> Iterator[Item | Quarantined]:
    """The items made of one record or session; where making one fails, a `Quarantined` comes last, in its
    place."""
    rest = iter(items)
    while (item := quarantine_failure(lambda: next(rest, None), source, line)) is not None:
        yield item
        if isinstance(item, Quarantined) and item.reason.startswith("cannot be read: "):
            return


def walk(root: Path) -> Iterator[Path]:
    """`root` itself, then all below it in sorted order; links to folders are not followed."""
    yield root
    waiting = [root] if root.is_dir() else []
    while waiting:  # os.walk calls itself for each level before Python 3.12
        folder = waiting.pop()
        with suppress(OSError), os.scandir(folder) as entries:
            inside = sorted((not _is_folder(entry), entry.name, entry.is_symlink()) for entry in entries)
            yield from (folder / name for _, name, _ in inside)
            waiting += [
                folder / name for is_file, name, is_link in reversed(inside) if not (is_file or is_link)
            ]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder or a link to one; False for a link in a circle, or to where access is denied."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def folder_of(path: Path) -> Path:
    """The folder that a log lies in; of a log unpacked from its own .gz or .zst, the one with the archive."""
    above = path.absolute().parent
    return above.parent if above.name in (f"{path.name}.gz", f"{path.name}.zst") else above


def ending(path: Path) -> str:
    """A file's extension, without what a rotation puts behind it: `.jsonl` of `app.jsonl.1`."""
    match = _ROTATION.search(path.name)
    return match[1] if match else path.suffix


def json_lines(
    path: Path, *, name: str | None = None, span: Span | None = None
) -> Iterator[tuple[int, JsonValue | Quarantined]]:
    """Each non-empty line of a JSON Lines file or a part of it as (1-based number, value or what is wrong).

    Lines over MAX_LINE, that are not UTF-8, not JSON, cut off, or nested too deeply are quarantined.
    """
    source = name or str(path)
    for number, line in numbered_lines(path, span):
        yield number, parse_json(line, source, number)


def numbered_lines(path: Path, span: Span | None = None) -> Iterator[tuple[int, bytes | None]]:
    """Each non-empty line of a file as (1-based number, bytes); None for one longer than MAX_LINE."""
    if span and span.runs is not None:
        with path.open("rb") as file:  # small reads: the lines between these are another part's
            yield from _picked_lines(file, span.runs, span.end)
        return
    with path.open("rb", buffering=BUFFER) as file:
        if span:
            file.seek(span.start)
        for number, line in enumerate(_bounded_lines(file), start=span.line if span else 1):
            if line is None or not line.isspace():
                yield number, line
            if span and file.tell() >= span.end:
                return


def _picked_lines(
    file: BinaryIO, runs: Iterable[tuple[int, int, int]], end: int
) -> Iterator[tuple[int, bytes | None]]:
    for first, begin, count in runs:
        file.seek(begin)
        for number, line in enumerate(itertools.islice(_bounded_lines(file), count), start=first):
            if file.tell() > end:
                return  # it had no end yet when the parts were made, so it is in none of them
            yield number, line


def placed_lines(path: Path) -> Iterator[tuple[int, int, int, bytes | None]]:
    """Each non-empty line of a file as (1-based number, byte at which it begins, byte at which it ends,
    bytes)."""
    with path.open("rb", buffering=BUFFER) as file:
        begin = 0
        for number, line in enumerate(_bounded_lines(file), start=1):
            end = file.tell() if line is None else begin + len(line)
            if line is None or not line.isspace():
                yield number, begin, end, line
            begin = end


def line_spans(path: Path, size: int, start: int = 0, line: int = 1) -> Iterator[Span]:
    """A file from byte `start`, where line `line` begins, in parts of whole lines of about `size` bytes."""
    with path.open("rb") as file:
        file.seek(start)
        while block := file.read(size):
            lines = block.count(b"\n")
            while not block.endswith(b"\n") and (block := file.readline(LOOK_AHEAD)):
                lines += block.endswith(b"\n")
            yield Span(start, file.tell(), line)
            start, line = file.tell(), line + lines


SPOILT = 3
"""With more broken lines than this at its beginning, a file is not taken for JSON Lines."""


def first_lines(path: Path, count: int) -> list[JsonValue]:
    """The first values of a JSON Lines file, for a short look; empty where the first lines are not JSON."""
    items: list[JsonValue] = []
    bad = 0
    for _, value in json_lines(path):
        if isinstance(value, Quarantined):
            bad += 1
        else:
            items.append(value)
        if len(items) == count or bad > SPOILT:
            break
    return items


def json_file(path: Path) -> JsonValue | Quarantined:
    """The value of a whole JSON file, or what is wrong with it."""
    return parse_json(path.read_bytes(), str(path), None)


def parse_json(line: bytes | None, source: str, number: int | None) -> JsonValue | Quarantined:
    """The value of a line, or of a whole file (`number` None), or what is wrong with it."""
    if line is None:
        return Quarantined(source=source, line=number, reason=f"longer than {MAX_LINE // 2**20} MiB")
    line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        return json_value(line.rstrip())
    except ValueError as error:
        if line.startswith((b"\xff\xfe", b"\xfe\xff")):
            return Quarantined(source=source, line=number, reason="UTF-16 and not UTF-8: convert the file")
        whole = number is None or line.endswith(b"\n") or "trailing characters" in str(error)
        note = "" if whole else CUT_OFF
        place = str(error) if number is None else str(error).replace("at line 1 column", "at column")
        return Quarantined(source=source, line=number, reason=f"not JSON: {place}{note}")


def plain_json(text: bytes) -> JsonValue:
    """The value of JSON as the standard has it; ValueError for any other text, and for NaN and infinity."""
    value: JsonValue = from_json(text, allow_inf_nan=False, cache_strings="keys")
    return value


def json_value(text: str | bytes) -> JsonValue:
    """The value of JSON, with U+FFFD for unpaired surrogates; ValueError for any other text."""
    try:
        value: JsonValue = from_json(text, allow_inf_nan=True, cache_strings="keys")
    except ValueError:
        content = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        if b"\\u" in content and (result := _without_lone_surrogates(content)) is not None:
            return result
        raise
    return value


_ROTATION = re.compile(r"(\.[A-Za-z]\w*)[.-]\d[\d_T:.-]*$")
"""A number or date behind the extension, as logrotate and Python's handlers name the files they rotate."""
_LONE = re.compile("[\ud800-\udfff]")
_HALF = re.compile(r"(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""An unpaired surrogate as Python prints it, escaped; a whole character it prints as it is."""


def without_surrogates(text: str) -> str:
    """Text with U+FFFD for unpaired surrogates, which neither UTF-8 nor the store has."""
    return text if text.isascii() else _LONE.sub("\ufffd", text)


def without_halves(text: str) -> str:
    """Text that Python printed, with U+FFFD for unpaired surrogates."""
    return _HALF.sub("\\1\ufffd", text)


def python_literal(source: str | ast.expr) -> object:
    """The value of a literal that Python printed, or of a part of a parsed text; else ValueError.

    Python's parser raises errors of five kinds, among them TypeError for `{{"a": 1}}` of a template, which is
    a set of a dictionary.
    """
    try:
        value: object = ast.literal_eval(without_halves(source) if isinstance(source, str) else source)
        repr(value)  # fails for an integer, written in hexadecimal, of more digits than Python prints
    except SyntaxError as error:
        raise ValueError(f"not a Python literal: {error.msg}") from error
    except (ValueError, TypeError, MemoryError, RecursionError) as error:  # their message may hold an address
        raise ValueError("not a Python literal") from error
    return value


def _without_lone_surrogates(line: bytes) -> JsonValue:
    """The value of a line with U+FFFD for unpaired surrogates, which programs write that cut text by UTF-16;
    None where it still is no JSON."""
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
        value: JsonValue = from_json(without_surrogates(text).encode(), allow_inf_nan=True)
    except (ValueError, RecursionError):
        return None
    return value


def _bounded_lines(file: Iterable[bytes]) -> Iterator[bytes | None]:
    """Lines with their ends; None for one longer than MAX_LINE, which is skipped in pieces."""
    readline = file.readline  # type: ignore[attr-defined]
    while line := readline(MAX_LINE):
        if len(line) < MAX_LINE or line.endswith(b"\n"):
            yield line
            continue
        while (rest := readline(MAX_LINE)) and not rest.endswith(b"\n"):
            pass
        yield None


def checked_length(line: bytes, source: str, number: int) -> Quarantined | None:
    """What is wrong with a line that is to be read again and is too long for it."""
    item = parse_json(None, source, number) if len(line) > MAX_LINE else None
    return item if isinstance(item, Quarantined) else None


def only_object(
    value: JsonValue | Quarantined, source: str, line: int | None
) -> dict[str, JsonValue] | Quarantined:
    """`value` where it is a JSON object, else what is wrong with it."""
    if isinstance(value, (dict, Quarantined)):
        return value
    kind = "null" if value is None else type(value).__name__
    return Quarantined(source=source, line=line, reason=f"expected a JSON object, got {kind}")


Item = TypeVar("Item")
T = TypeVar("T", bound="str | int | float | bool | list[JsonValue] | dict[str, JsonValue]")


_NAMES = {dict: "an object", list: "a list", str: "a text", int: "a whole number", bool: "true or false"}


def expect(value: JsonValue, kind: type[T], where: str) -> T:
    """`value` as a `kind`, else ValueError; true and false are no numbers, 3.0 and "3" are whole ones."""
    if kind is int and isinstance(value, str) and value.isdecimal() and len(value) < 16:
        value = int(value)
    if kind is int and isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    actual = "null" if value is None else _NAMES.get(type(value), type(value).__name__)
    raise ValueError(f"{where}: expected {_NAMES.get(kind, kind.__name__)}, got {actual}")


def field(record: Mapping[str, JsonValue], key: str, kind: type[T], where: str = "") -> T:
    """`record[key]` as a `kind`, else ValueError; `where` says whose field it is."""
    place = f"{where}.{key}" if where else key
    if key not in record:
        raise ValueError(f"{place}: missing")
    return expect(record[key], kind, place)


def objects(record: Mapping[str, JsonValue], key: str, where: str = "") -> list[dict[str, JsonValue]]:
    """`record[key]` as a list of objects."""
    place = f"{where}.{key}" if where else key
    items = field(record, key, list, where)
    return [expect(item, dict, f"{place}[{number}]") for number, item in enumerate(items)]
