"""What is in anybody's logs: files and their records, and every path with its kinds, counts and values."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .....schemas import Quarantined
from ...base import ending, json_file, walk
from ..fields.mapping import Input
from ..fields.paths import decode_json, escape_key
from ..fields.values import describe
from ..files import inputs, signatures
from ..files.event_files import event_files
from ..files.numbered import gather_turns, stem_in
from ..files.sides import name_winners, sides_in, split_sides
from ..messages import dialects, turns
from .rounds import rounds_in

FILES = 200
"""Most files of a folder that are looked into."""
RECORDS = 1000
"""Most records in all."""
ITEMS = 300
"""Most items of a list."""
DEPTH = 7
KEYS = 80
"""Most different keys of an object over all records; with more, they are names of things."""
JSON = "JSON in a text"
"""The kind of texts that hold a list or an object."""
VALUES = 60
"""Most different values of a path that are counted."""
SHORT = 80
"""Characters of a value that may be a name or a label."""
MANY_ODD = 8
"""Most files of other things that are set aside, each by its name; with more, all files are read alike."""
FOREIGN = 0.2
"""Share of bytes that are not ASCII above which a text is in no Western language."""
HEAD = 1024 * 1024
"""Bytes of a file that tell how it is encoded."""
TRACE = ("traceId", "trace_id")
"""Where a span names its trace."""
CONTAINER = 2
"""Fewest objects in a list under a key of a JSON object that may be the records."""
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
class PathSummary:
    """What stands at one path in the records."""

    path: str
    count: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    values: Counter[str] = field(default_factory=Counter)
    """Of short texts, numbers and truths, up to VALUES different ones."""
    has_more_values: bool = False
    """Whether there are more values than are counted."""
    characters: int = 0
    texts: list[str] = field(default_factory=list)
    """Some of its texts, cut."""
    lengths: list[int] = field(default_factory=list)
    """The lengths of lists."""

    @property
    def key(self) -> str:
        """The last key of the path."""
        return self.path.rpartition(".")[2].replace("\\", "")

    @property
    def mean_length(self) -> float:
        """Characters of a text, on average."""
        n = self.kinds["text"]
        return self.characters / n if n else 0.0

    def has_only(self, *kinds: str) -> bool:
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
    """Where other records of the object are, whose fields are not those of `records`."""
    sides: list[str] | None = None
    """What the names of fields end in, where a record holds several sessions."""
    numbered: str | None = None
    """What the names of turns begin with that have numbers."""
    records: list[dict[str, Any]] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)
    """Of each record, which of the files it is of."""
    most: int = RECORDS
    """Records of a file that are looked at."""
    per_file: bool = False
    """Whether each file is one record."""
    paths: dict[str, PathSummary] = field(default_factory=dict)
    wrong: list[Quarantined] = field(default_factory=list)

    @property
    def layout(self) -> Input:
        """How its files are read."""
        return Input(format=self.format, sessions=self.sessions, encoding=self.encoding)  # type: ignore[arg-type]

    def more_records(self) -> Iterator[dict[str, Any]]:
        """The records behind those that were looked at, as they are in the files."""
        for number, path in enumerate(self.files):
            if self.origins.count(number) >= self.most:
                values = (value for _, value in inputs.records(path, self.layout) if isinstance(value, dict))
                yield from itertools.islice(values, self.most, None)

    @property
    def reason(self) -> str:
        """What is wrong with the first file that could not be read, which one of a folder, and what it is
        instead; else empty."""
        if not self.wrong:
            return ""
        source = self.wrong[0].source
        name = source.removeprefix(f"{self.root}{os.sep}")
        return f"{'' if name == source else f'{name}: '}{self.wrong[0].reason}{signatures.hint(Path(source))}"


def survey_logs(root: Path, sessions: str | None = None) -> Survey:
    """Survey a file, or of a folder the main group of files that are alike; of JSON the records at
    `sessions`, if any are named."""
    folders = {path: len(files) for path in walk(root) if (files := event_files(path))}
    files = [path for path in walk(root) if path in folders or _is_readable(path, root, folders)]
    logs = Survey(root)
    if not files:
        return logs
    forms = Counter[_Group]()
    for path in files:
        forms[_group(path)] += folders.get(path, 1)
    main_group = max(
        forms,
        key=lambda group: (
            not group.is_about_others,
            group.form in ("json", "jsonl", "csv", "parquet", "excel"),
            forms[group],
        ),
    )
    alike = [path for path in files if _group(path) == main_group]
    logs.files, logs.others = alike[:FILES], alike[FILES:] + [p for p in files if _group(p) != main_group]
    logs.format = main_group.form
    if main_group.form == "json":
        logs.files, odd_files = _split_odd(logs.files)
        logs.others += odd_files
        logs.odd = [path.name for path in odd_files]
    if main_group.form == "json":
        logs.sessions, logs.aside = (sessions, []) if sessions else _container(logs.files[0])
    logs.encoding = _encoding(logs.files) if main_group.form in ("csv", "text", "json", "jsonl") else None
    logs.most = max(1, RECORDS // len(logs.files))
    for number, path in enumerate(logs.files):
        some = list(itertools.islice(_records(path, logs), logs.most))
        logs.records += some
        logs.origins += [number] * len(some)
    whole = main_group.form in ("json", "text")
    logs.per_file = whole and len(set(logs.origins)) == len(logs.origins) and logs.sessions is None
    sides = sides_in(logs.records)
    is_comparison = sides is not None and name_winners(logs.records, sides)
    has_rounds = bool(rounds_in(logs.records)) and not is_comparison
    logs.numbered = stem = None if has_rounds else stem_in(logs.records)
    if stem:
        logs.records = [gather_turns(record, stem) for record in logs.records]
    logs.sides = None if has_rounds else sides_in(logs.records)
    if logs.sides:
        parts = [list(split_sides(record, logs.sides, n)) for n, record in enumerate(logs.records, 1)]
        logs.origins = [file for file, many in zip(logs.origins, parts, strict=True) for _ in many]
        logs.records = list(itertools.chain(*parts))
    for record in logs.records:
        _add_value(logs.paths, record, "", 0)
    _drop_names(logs.paths)
    return logs


def _encoding(files: list[Path]) -> str | None:
    """The encoding of Western Windows, where no file with more than ASCII in it is UTF-8; else none."""
    heads = [_head(path) for path in files]
    beyond = [one for one in heads if not one.isascii() and b"\0" not in one]
    return "cp1252" if beyond and all(map(_is_western, beyond)) else None


def _head(path: Path) -> bytes:
    path = next(iter(event_files(path)), path)
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


def _split_odd(files: list[Path]) -> tuple[list[Path], list[Path]]:
    """(files with any of the keys that most records have, files with none of them). The latter are few, and
    no file of the former has their name."""
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
    """Patterns of names that together fit all of these files, the commonest ending first."""
    if events := {event_files(path)[0].name for path in files if path.is_dir()}:
        names = {path.name for path in files}
        starts = sorted({re.split(r"\d", name)[0] for name in events})
        return [*names] if len(names) == 1 else ["*", *(f"!{start}[0-9]*.json" for start in starts)]
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


def _records(path: Path, logs: Survey) -> Iterator[dict[str, Any]]:
    try:
        for _, value in inputs.records(path, logs.layout):
            if isinstance(value, Quarantined):
                logs.wrong.append(value)
            elif isinstance(value, dict):
                yield value
            else:
                reason = f"expected a JSON object, got {describe(value)}"
                logs.wrong.append(Quarantined(source=str(path), reason=reason))
    except OSError as error:
        logs.wrong.append(Quarantined(source=str(path), reason=f"cannot be read: {error.strerror or error}"))


def _is_readable(path: Path, root: Path, folders: Collection[Path] = ()) -> bool:
    """Whether it is a file to look into, and none of the events in one of the `folders`; of hidden ones only
    `root`, if somebody names it."""
    if path.parent in folders and path.suffix == ".json":
        return False
    is_hidden = path.name.startswith(".") and path != root
    return path.is_file() and not (is_hidden or path.suffix.lower() in BINARY) and path.stat().st_size > 0


class _Group(NamedTuple):
    """What files that are read alike have in common."""

    form: str
    is_about_others: bool
    """Whether they tell of the other files, as their names say: a readme, a licence."""
    end: str
    """Of JSON, how their names end; of folders with a file for each event, a slash."""


def _group(path: Path) -> _Group:
    form = inputs.format_of(path) or "text"
    about = path.stem.lower() in ("readme", "license", "changelog", "notice")
    end = "/" if path.is_dir() else common_end([path]) if form == "json" else ""
    return _Group(form, about, end)


def _container(path: Path) -> tuple[str | list[str] | None, list[str]]:
    """(key of a JSON object under which its records are, or several, or None; keys of records with other
    fields).

    Records are a list, or an object by name, of objects with turns. They are under several keys where records
    of the same fields are divided among them, as into those to train with and to test with. One record is
    enough where it alone has messages.
    """
    value = json_file(path)
    if not isinstance(value, dict):
        return None, []
    if _is_by_name(value):
        return inputs.ALL, []
    holding = [key for key, inside in value.items() if _are_sessions(inside)]
    best = max(holding, key=lambda key: (_size(value[key]), escape_key(key)), default=None)
    if best is None:
        return None, []
    is_alone = any(map(_has_messages, _items(value[best]))) and not _has_messages(value)
    if (_size(value[best]) < CONTAINER and not is_alone) or _repeat_talk(_items(value[best]), value):
        return None, []
    keys = {key: set[str]().union(*_keys(_items(value[key]))) for key in holding}
    alike = [key for key, own in keys.items() if 2 * len(own & keys[best]) > len(own | keys[best])]
    others = [escape_key(key) for key in holding if key not in alike]
    return [escape_key(key) for key in alike] if len(alike) > 1 else escape_key(best), others


def _items(inside: Any) -> Any:
    """The items of a list, or the values of an object."""
    return list(inside.values()) if isinstance(inside, dict) else inside


def _size(inside: Any) -> int:
    return len(inside) if isinstance(inside, (list, dict)) else 0


def _are_sessions(inside: Any) -> bool:
    """Whether most items of a list, or all of an object by name, are objects and most of them have turns."""
    items = _items(inside)
    objects = [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []
    if not objects or (isinstance(inside, dict) and len(objects) < len(items)):
        return False
    has_turns = sum(map(_has_turns, objects)) > len(items) / 2
    return has_turns and not all(map(dialects.is_exchange, objects)) and not _is_one_trace(objects)


def _is_one_trace(items: list[dict[str, Any]]) -> bool:
    """Whether all items are spans of the same trace, whose record is the object that they are in."""
    traces = [next((item[key] for key in TRACE if isinstance(item.get(key), str)), None) for item in items]
    have_parents = all(any("parent" in key.lower() for key in item) and "id" in item for item in items)
    return len(set(traces)) == 1 and traces[0] is not None and have_parents


def _has_turns(value: dict[str, Any]) -> bool:
    """Whether an object has a list of turns, maybe in an object of its own. The lists of a message, such as
    its parts and calls, are none, unless they hold messages."""
    if dialects.messages(value):
        return any(_is_list_of_turns(one) and all(map(dialects.messages, one)) for one in value.values())
    return any(_is_list_of_turns(one) or _is_thread(one) for one in _nested_values(value))


def _repeat_talk(items: list[Any], value: dict[str, Any]) -> bool:
    """Whether items are steps that repeat the conversation beside them, such as what a model was asked in
    each: lists under one key that begin as it does, each longer than the one before."""
    talks = [one for one in value.values() if _is_list_of_turns(one) and all(map(dialects.messages, one))]
    keys = {key for one in items[:1] for key, inside in one.items() if isinstance(inside, list) and inside}
    return any(
        all(isinstance(part, list) and part[:2] == talk[: len(part[:2])] for part in parts)
        and all(len(a) < len(b) for a, b in itertools.pairwise(parts))
        for talk in talks
        for parts in ([one.get(key) for one in items] for key in keys)
    )


def _is_thread(value: Any) -> bool:
    """Whether it is an object of messages by name."""
    return isinstance(value, dict) and bool(dialects.thread(value))


def _has_messages(value: Any) -> bool:
    """Whether an object has a list of messages, maybe in an object of its own."""
    lists = _nested_values(value) if isinstance(value, dict) else iter(())
    return any(
        isinstance(one, list) and _is_list_of_turns(one) and all(map(dialects.messages, one)) for one in lists
    )


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


def _nested_values(value: dict[str, Any]) -> Iterator[Any]:
    """The values of an object and of the objects in it."""
    for one in value.values():
        yield one
        if isinstance(one, dict):
            yield from one.values()


def _is_list_of_turns(value: Any) -> bool:
    """A list of objects that have a text: what could be said, not a message's parts or tool calls."""
    value = decode_json(value) if isinstance(value, str) else value
    if not isinstance(value, list) or not value or not all(isinstance(one, dict) for one in value):
        return False
    parts = all("type" in one and ("text" in one or "function" in one) and "role" not in one for one in value)
    return not parts and any(isinstance(inner, str) for one in value for inner in one.values())


def _add_value(paths: dict[str, PathSummary], value: Any, path: str, depth: int) -> None:
    """Count a value and what is in it."""
    if path:
        entry = paths.setdefault(path, PathSummary(path))
        entry.count += 1
        value = _count_value(entry, value)
    if depth > DEPTH:
        return
    if isinstance(value, dict):
        columns = turns.columns_of(value) if path else {}
        if (columns and max(map(len, columns.values())) > 1) or (
            path and (dialects.thread(value) or turns.branch(value))
        ):
            _add_items(paths, turns.as_events(value), path, depth)
            return
        for key, inside in value.items():
            if isinstance(key, str) and key:
                _add_value(paths, inside, f"{path}.{escape_key(key)}" if path else escape_key(key), depth + 1)
    elif isinstance(value, list):
        _add_items(paths, turns.as_events(value), path, depth)


def _add_items(paths: dict[str, PathSummary], items: list[Any], path: str, depth: int) -> None:
    paths[path].lengths.append(len(items))
    for item in items[:ITEMS]:
        if isinstance(item, dict):
            _add_value(paths, item, f"{path}[]", depth + 1)


def _count_value(entry: PathSummary, value: Any) -> Any:
    """Count a value at its path and return it, decoded where it is a text of JSON."""
    if isinstance(value, str):
        inside = turns.decode_value(value)
        if not isinstance(inside, str):
            entry.kinds[JSON] += 1
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
            entry.has_more_values = True
    elif isinstance(value, str):
        entry.has_more_values = True
    return value


def _kind(value: Any) -> str:
    names = {type(None): "null", bool: "true or false", int: "number", float: "number", str: "text"}
    return names.get(type(value), "list" if isinstance(value, list) else "object")


def _drop_names(paths: dict[str, PathSummary]) -> None:
    """Remove the paths below objects whose keys are names of things."""
    below: Counter[str] = Counter(path.rpartition(".")[0] for path in paths)
    for parent in [path for path, count in below.items() if count > KEYS and path]:
        for path in [path for path in paths if path.startswith(f"{parent}.")]:
            del paths[path]
