"""Out of the store: tables as Parquet or CSV, trajectories as coaudit's own JSON Lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
from pydantic_core import to_jsonable_python

from ....schemas import Event
from ....schemas.base import compact_json
from ....schemas.event import EventColumns
from ....schemas.text import FORMULA, INVISIBLE, NUMBER, visible_json
from ...errors import StoreError, UsageError
from ...units import columns
from .. import disk
from ..connection import constant
from ..database import Store
from ..memory import write_out
from .stream import stream

TABLES = (
    "trajectories",
    "participants",
    "events",
    "states",
    "outcomes",
    "units",
    "ratings",
    "measures",
    "samples",
)
FORMATS = ("parquet", "csv", "jsonl")
AT_ONCE = 5_000
"""Events that are in memory at a time, unless a single trajectory has more."""
_ORDER = {"measures": " ORDER BY ALL"}
"""How tables are ordered whose rows come in no fixed order: two exports of one state are the same."""
_REQUIRED_FIELDS = {name for name, field in Event.model_fields.items() if field.is_required()}
_DEFAULTS: tuple[object, ...] = (None, 0, False, {}, ())
"""Values of the other fields that are left out of a line."""
MEMORY = "200MB"
"""Tables stream to their files: a larger workspace needs no more."""


def export(
    store: Store, out: Path, form: str, tables: tuple[str, ...] = TABLES, *, hidden: bool = False
) -> list[Path]:
    """Write the tables into the folder `out` (parquet, csv), or the trajectories into the file (jsonl).

    What only the human knew stays out, but for JSON Lines where `hidden` asks for it.
    """
    if form not in FORMATS:
        raise UsageError(f"--format must be one of {', '.join(FORMATS)}, got {form!r}")
    unknown = [name for name in tables if name not in TABLES]
    if unknown:
        raise UsageError(f"no table {unknown[0]!r}, expected one of {', '.join(TABLES)}")
    if form == "jsonl" and tables != TABLES:
        raise UsageError("--tables is for parquet and csv: jsonl has whole trajectories")
    if form != "jsonl" and hidden:
        raise UsageError(f"--hidden is for jsonl: {form} never has what only the human knew")
    try:
        if form == "jsonl":
            return [_trajectories(store, out, hidden)]
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{out}: cannot write: {error.strerror}") from error
    with store.reading() as connection:
        return [_table(connection, name, out / f"{name}.{form}", form) for name in tables]


def lines(store: Store, *, hidden: bool = False) -> Iterator[str]:
    """Every trajectory as lines of coaudit's own format: its head, then its states, events and outcomes."""
    left_out = {"events", "outcomes", "states", *(() if hidden else ("hidden",))}
    with store.reading() as connection:
        query = "SELECT id, n_events FROM trajectories ORDER BY started, id"
        sizes = connection.execute(query).fetchall()
    for batch in stream(store, sizes, AT_ONCE, states=True):
        for trajectory in batch:
            head = trajectory.model_dump(mode="json", exclude=left_out, exclude_defaults=True)
            yield _line("trajectory", head)
            for key, content in trajectory.states.items():
                yield _line("state", {"hash": key, "content": content})
            for event in _events(columns(trajectory)):
                yield _line("event", {"trajectory": trajectory.id, **event})
            for outcome in trajectory.outcomes:
                rest = outcome.model_dump(mode="json", exclude_defaults=True)
                yield _line("outcome", {"trajectory": trajectory.id, **rest})


def _events(events: EventColumns) -> Iterator[dict[str, object]]:
    """Each event without the fields that have their default, in the order of its fields."""
    for event in events.dictionaries():
        record = {
            name: value for name, value in event.items() if name in _REQUIRED_FIELDS or value not in _DEFAULTS
        }
        if (action := record.get("action")) is not None:
            record["action"] = {
                key: value for key, value in action.items() if key == "name" or value not in _DEFAULTS
            }
        if "notices" in record:
            record["notices"] = [notice.model_dump() for notice in event["notices"]]
        yield record


def _line(kind: str, rest: dict[str, object]) -> str:
    """A line of JSON; NaN and infinity, which JSON has not, are null."""
    line = compact_json({"type": kind, **rest})
    if "NaN" in line or "Infinity" in line:
        line = compact_json({"type": kind, **to_jsonable_python(rest, inf_nan_mode="null")})
    return f"{visible_json(line)}\n"


def _trajectories(store: Store, out: Path, hidden: bool) -> Path:
    out.parent.mkdir(parents=True, exist_ok=True)
    with disk.replace_file(out) as file:
        file.writelines(lines(store, hidden=hidden))
    return out


def _table(connection: duckdb.DuckDBPyConnection, name: str, path: Path, form: str) -> Path:
    column = _plain if form == "parquet" else _harmless
    description = connection.execute(f"DESCRIBE {name}").fetchall()
    expressions = ", ".join(column(n, kind) for n, kind, *_ in description if n != "hidden")
    target = constant(str(path.absolute()))
    rows = f"SELECT {expressions} FROM {name}{_ORDER.get(name, '')}"
    write_out(connection, f"COPY ({rows}) TO {target} (FORMAT {form})", MEMORY)
    return path


def _plain(name: str, kind: str) -> str:
    return f'"{name}"'


def _harmless(name: str, kind: str) -> str:
    """Text as `inert_cell` writes it."""
    if kind != "VARCHAR":
        return f'"{name}"'
    formula, number = constant(FORMULA), constant(NUMBER)
    runs = f"regexp_matches(cell, {formula}) AND NOT regexp_full_match(cell, {number})"
    cell = f"SELECT {_visible(name)} AS cell"
    return f"""(SELECT CASE WHEN {runs} THEN '''' || cell ELSE cell END FROM ({cell})) AS "{name}" """


def _visible(name: str) -> str:
    sign, text = constant(f"[{INVISIBLE}]"), constant(f"\r\n|[{INVISIBLE}]|[^{INVISIBLE}]+")
    escape = r"""CASE WHEN unicode(part) < 65536 THEN printf('\u%04x', unicode(part))
        ELSE printf('\u%04x\u%04x', 55232 + unicode(part) // 1024, 56320 + unicode(part) % 1024) END"""
    parts = f"""list_transform(regexp_extract_all("{name}", {text}),
        lambda part: CASE WHEN regexp_full_match(part, {sign}) THEN {escape} ELSE part END)"""
    return (
        f"""CASE WHEN regexp_matches("{name}", {sign}) THEN array_to_string({parts}, '') ELSE "{name}" END"""
    )
