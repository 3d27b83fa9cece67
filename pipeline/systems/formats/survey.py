"""What is in anybody's logs: files and their records, and every path with its kinds, counts and values."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ....schemas import Quarantined
from ..base import ending, json_file, walk
from . import dialects, inputs, turns
from .mapping import Input
from .numbered import gathered, stem_in
from .paths import escaped, unpacked
from .sides import apart, sides_in

FILES = 200
"""So many files of a folder are looked into."""
RECORDS = 1000
"""So many records in all."""
ITEMS = 300
"""So many items of a list."""
DEPTH = 7
KEYS = 80
"""An object with more keys over the records than that has names of things for keys."""
VALUES = 60
"""So many different values of a path are counted."""
SHORT = 80
"""Characters of a value that may be a name or a label."""
MANY_ODD = 8
"""More files of other things are not listed one by one in a draft."""
FOREIGN = 0.2
"""A text of which more is not ASCII is in no Western language."""
HEAD = 1024 * 1024
"""Bytes of a file that tell how it is encoded."""
CONTAINER = 2
"""A list of so many objects under one key of a JSON object may be the records."""
BINARY = (
    ".png",
    ".jpg",
    ".jpeg",
    ".gif",
    ".pdf",
    ".zip",
    ".gz",
    ".zst",
    ".whl",
    ".pyc",
    ".db",
    ".sqlite",
    ".duckdb",
)


@dataclass
class PathSeen:
    """What stands at one path."""

    path: str
    count: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    values: Counter[str] = field(default_factory=Counter)
    """Of short texts, numbers and truths, up to VALUES different ones."""
    more: bool = False
    """Whether there are more values than are counted."""
    characters: int = 0
    texts: list[str] = field(default_factory=list)
    """Some of its texts, cut."""
    lengths: list[int] = field(default_factory=list)
    """Of lists."""

    @property
    def key(self) -> str:
        """The last key of the path."""
        return self.path.rpartition(".")[2].replace("\\", "")

    @property
    def mean_length(self) -> float:
        """Characters of a text, on average."""
        n = self.kinds["text"]
        return self.characters / n if n else 0.0

    def only(self, *kinds: str) -> bool:
        """Whether nothing but these kinds, and null, stand there."""
        return set(self.kinds) <= {*kinds, "null"} and any(self.kinds[kind] for kind in kinds)


@dataclass
class Survey:
    """What was looked into, and what was seen there."""

    root: Path
    files: list[Path] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)
    """Files that were not looked into: of another shape than most, or beyond FILES."""
    odd: list[str] = field(default_factory=list)
    """Names of files that end like the others and hold other things."""
    format: str | None = None
    encoding: str | None = None
    """How texts may be encoded that are not UTF-8."""
    sessions: str | list[str] | None = None
    """Where the records of a JSON object are."""
    aside: list[str] = field(default_factory=list)
    """Where others are, in fields of their own."""
    sides: list[str] | None = None
    """What the names of fields end in, where a record holds several sessions."""
    numbered: str | None = None
    """What the names of turns begin with that have numbers."""
    records: list[dict[str, Any]] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)
    """Of each record, which of the files it is of."""
    per_file: bool = False
    """Whether each file is one record."""
    paths: dict[str, PathSeen] = field(default_factory=dict)
    wrong: list[Quarantined] = field(default_factory=list)


def survey(root: Path) -> Survey:
    """Look into a file, or into the files of a folder that most are alike."""
    files = [path for path in walk(root) if _readable(path)]
    logs = Survey(root)
    if not files:
        return logs
    forms = Counter(_group(path) for path in files)
    main_group = max(
        forms,
        key=lambda group: (
            not group.about,
            group.form in ("json", "jsonl", "csv", "parquet", "excel"),
            forms[group],
        ),
    )
    alike = [path for path in files if _group(path) == main_group]
    logs.files, logs.others = alike[:FILES], alike[FILES:] + [p for p in files if _group(p) != main_group]
    logs.format = main_group.form
    if main_group.form == "json":
        logs.files, odd_files = _alike(logs.files)
        logs.others += odd_files
        logs.odd = [path.name for path in odd_files]
    if main_group.form == "json":
        logs.sessions, logs.aside = _container(logs.files[0])
    logs.encoding = _encoding(logs.files) if main_group.form in ("csv", "text", "json", "jsonl") else None
    layout = Input(format=logs.format, sessions=logs.sessions, encoding=logs.encoding)  # type: ignore[arg-type]
    for number, path in enumerate(logs.files):
        some = list(itertools.islice(_records(path, layout, logs), max(1, RECORDS // len(logs.files))))
        logs.records += some
        logs.origins += [number] * len(some)
    whole = main_group.form in ("json", "text")
    logs.per_file = whole and len(set(logs.origins)) == len(logs.origins) and logs.sessions is None
    logs.numbered = stem = stem_in(logs.records)
    if stem:
        logs.records = [gathered(record, stem) for record in logs.records]
    logs.sides = sides_in(logs.records)
    if logs.sides:
        parts = [list(apart(record, logs.sides, n)) for n, record in enumerate(logs.records, 1)]
        logs.origins = [file for file, many in zip(logs.origins, parts, strict=True) for _ in many]
        logs.records = list(itertools.chain(*parts))
    for record in logs.records:
        _look(logs.paths, record, "", 0)
    _drop_names(logs.paths)
    return logs


def _encoding(files: list[Path]) -> str | None:
    """The encoding of Western Windows, where no file with more than ASCII in it is UTF-8; else none."""
    heads = [_head(path) for path in files]
    beyond = [one for one in heads if not one.isascii() and b"\0" not in one]
    return "cp1252" if beyond and all(map(_is_western, beyond)) else None


def _head(path: Path) -> bytes:
    with suppress(OSError), path.open("rb") as file:  # whoever reads its records says what is wrong
        return file.read(HEAD)
    return b""


def _is_western(head: bytes) -> bool:
    """Whether it reads like Windows' Western encoding: most of what is not ASCII is no UTF-8, and there is
    little of it."""
    as_utf8 = head.decode("utf-8", "replace")
    replacements = as_utf8.count("\ufffd")
    whole = len(as_utf8) - len(as_utf8.encode("ascii", "ignore")) - replacements
    beyond = len(head) - len(head.decode("ascii", "ignore"))
    if replacements <= whole or beyond > FOREIGN * len(head):
        return False
    with suppress(UnicodeDecodeError):
        return bool(head.decode("cp1252"))
    return False


def _alike(files: list[Path]) -> tuple[list[Path], list[Path]]:
    """(files with keys that most records have, those with none of them, under names of their own)."""
    if len(files) < 3:
        return files, []
    keys = {path: _keys(json_file(path)) for path in files}
    counts = Counter(key for many in keys.values() for own in many for key in own)
    total = sum(len(many) for many in keys.values())
    usual = {key for key, count in counts.items() if count > total / 2}
    odd = [path for path, many in keys.items() if many and not usual & set().union(*many)] if usual else []
    names = {path.name for path in files if path not in odd}
    odd = [path for path in odd if path.name not in names]
    return ([path for path in files if path not in odd], odd) if len(odd) <= MANY_ODD else (files, [])


def _keys(value: Any) -> list[set[str]]:
    """The keys of an object, or of the first objects in a list."""
    items = value[:20] if isinstance(value, list) else [value]
    return [set(one) for one in items if isinstance(one, dict)]


def patterns(files: list[Path]) -> list[str]:
    """What the names of several files have in common, each of which fits one of these."""
    plain = [path for path in files if ending(path) == path.suffix]
    result = [f"*{common_end(plain)}"] if plain else []
    for path in files:
        if not result or not inputs.fits_name(path.name, result):
            rotated = ending(path) != path.suffix
            end = f"{ending(path)}[.-][0-9]*" if rotated else path.suffix
            result.append(f"*{end}" if end else path.name)
    return result


def common_end(files: list[Path]) -> str:
    """What the names of several files end in, from a dot on: `.traj.json`."""
    ends = {"".join(path.suffixes[-2:]) for path in files if len(path.suffixes) > 1}
    double = len(ends) == 1 and all(path.name.endswith(next(iter(ends))) for path in files)
    end = next(iter(ends)) if double else files[0].suffix
    return end if end.count(".") < 2 or not any(c.isdigit() for c in end) else files[0].suffix


def _records(path: Path, layout: Input, logs: Survey) -> Iterator[dict[str, Any]]:
    try:
        for _, value in inputs.records(path, layout):
            if isinstance(value, Quarantined):
                logs.wrong.append(value)
            elif isinstance(value, dict):
                yield value
            else:
                reason = f"expected a JSON object, got {type(value).__name__}"
                logs.wrong.append(Quarantined(source=str(path), reason=reason))
    except OSError as error:
        logs.wrong.append(Quarantined(source=str(path), reason=f"cannot be read: {error.strerror or error}"))


def _readable(path: Path) -> bool:
    hidden = path.name.startswith(".") or path.suffix.lower() in BINARY
    return path.is_file() and not hidden and path.stat().st_size > 0


class _Group(NamedTuple):
    """What files that are read alike have in common."""

    form: str
    about: bool
    """Whether they tell of the others, by their names."""
    end: str
    """Of JSON, how their names end."""


def _group(path: Path) -> _Group:
    form = inputs.format_of(path) or "text"
    about = path.stem.lower() in ("readme", "license", "changelog", "notice")
    return _Group(form, about, common_end([path]) if form == "json" else "")


def _container(path: Path) -> tuple[str | list[str] | None, list[str]]:
    """The key of a JSON object under which its records are: a list of objects that hold lists or are many.
    Several keys where such records are divided among them, as into those to train with and to test with. Then
    the keys of records with fields of their own."""
    value = json_file(path)
    if not isinstance(value, dict):
        return None, []
    if _is_by_name(value):
        return inputs.ALL, []
    holding = [key for key, inside in value.items() if _are_sessions(inside)]
    best = max(holding, key=lambda key: (_size(value[key]), escaped(key)), default=None)
    if best is None or _size(value[best]) < CONTAINER:
        return None, []
    keys = {key: set[str]().union(*_keys(_items(value[key]))) for key in holding}
    alike = [key for key, own in keys.items() if 2 * len(own & keys[best]) > len(own | keys[best])]
    others = [escaped(key) for key in holding if key not in alike]
    return [escaped(key) for key in alike] if len(alike) > 1 else escaped(best), others


def _items(inside: Any) -> Any:
    """A list, and of objects by name the objects."""
    return list(inside.values()) if isinstance(inside, dict) else inside


def _size(inside: Any) -> int:
    return len(inside) if isinstance(inside, (list, dict)) else 0


def _are_sessions(inside: Any) -> bool:
    """Whether most items of a list, or all of an object by name, are objects and most of them have turns."""
    items = _items(inside)
    objects = [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []
    if not objects or (isinstance(inside, dict) and len(objects) < len(items)):
        return False
    return sum(map(_has_turns, objects)) > len(items) / 2 and not all(map(dialects.is_exchange, objects))


def _has_turns(value: dict[str, Any]) -> bool:
    """Whether an object has a list of turns, maybe in an object of its own; what a message says and calls is
    none, unless its lists hold messages."""
    if dialects.messages(value):
        return any(_is_list_of_turns(one) and all(map(dialects.messages, one)) for one in value.values())
    return any(map(_is_list_of_turns, _inside(value)))


def _is_by_name(value: dict[str, Any]) -> bool:
    """Whether an object's values are sessions: lists of turns, or objects with the same list of turns."""
    values = list(value.values())
    if len(values) < CONTAINER:
        return False
    if all(_is_list_of_turns(one) for one in values) and not any(map(_are_sessions, values)):
        return len({frozenset(one[0]) for one in values}) <= len(values) / 2 + 1
    keys = [
        {key for key, inner in one.items() if _is_list_of_turns(inner)}
        for one in values
        if isinstance(one, dict)
    ]
    return len(keys) == len(values) and bool(set.intersection(*keys))


def _inside(value: dict[str, Any]) -> Iterator[Any]:
    """The values of an object and of the objects in it."""
    for one in value.values():
        yield one
        if isinstance(one, dict):
            yield from one.values()


def _is_list_of_turns(value: Any) -> bool:
    """A list of objects that have a text: what could be said, not a message's parts or tool calls."""
    value = unpacked(value) if isinstance(value, str) else value
    if not isinstance(value, list) or not value or not all(isinstance(one, dict) for one in value):
        return False
    parts = all("type" in one and ("text" in one or "function" in one) and "role" not in one for one in value)
    return not parts and any(isinstance(inner, str) for one in value for inner in one.values())


def _look(paths: dict[str, PathSeen], value: Any, path: str, depth: int) -> None:
    """Count a value and what is in it."""
    if path:
        entry = paths.setdefault(path, PathSeen(path))
        entry.count += 1
        value = _count_value(entry, value)
    if depth > DEPTH:
        return
    if isinstance(value, dict):
        columns = turns.columns_of(value) if path else {}
        if (columns and max(map(len, columns.values())) > 1) or (
            path and (dialects.thread(value) or turns.branch(value))
        ):
            _look_into_list(paths, turns.listed(value), path, depth)
            return
        for key, inside in value.items():
            if isinstance(key, str) and key:
                _look(paths, inside, f"{path}.{escaped(key)}" if path else escaped(key), depth + 1)
    elif isinstance(value, list):
        _look_into_list(paths, turns.listed(value), path, depth)


def _look_into_list(paths: dict[str, PathSeen], items: list[Any], path: str, depth: int) -> None:
    paths[path].lengths.append(len(items))
    for item in items[:ITEMS]:
        if isinstance(item, dict):
            _look(paths, item, f"{path}[]", depth + 1)


def _count_value(entry: PathSeen, value: Any) -> Any:
    """The value, with what a text holds as JSON in its place."""
    if isinstance(value, str):
        inside = turns.loaded(value)
        if not isinstance(inside, str):
            entry.kinds["JSON in a text"] += 1
            return inside
        entry.kinds["text"] += 1
        entry.characters += len(value)
        if len(entry.texts) < VALUES:
            entry.texts.append(value[:20_000])
    entry.kinds[_kind(value)] += not isinstance(value, str)
    if isinstance(value, (str, int, float)) and len(str(value)) <= SHORT:
        if str(value) in entry.values or len(entry.values) < VALUES:
            entry.values[str(value)] += 1
        else:
            entry.more = True
    elif isinstance(value, str):
        entry.more = True
    return value


def _kind(value: Any) -> str:
    names = {type(None): "null", bool: "true or false", int: "number", float: "number", str: "text"}
    return names.get(type(value), "list" if isinstance(value, list) else "object")


def _drop_names(paths: dict[str, PathSeen]) -> None:
    """Leave out what is below objects whose keys are names of things."""
    below: Counter[str] = Counter(path.rpartition(".")[0] for path in paths)
    for parent in [path for path, count in below.items() if count > KEYS and path]:
        for path in [path for path in paths if path.startswith(f"{parent}.")]:
            del paths[path]
