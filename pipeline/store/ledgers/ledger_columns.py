"""Lines of a ledger of ratings as columns of the table: many at once, without an object for each.

The types are those of `Rating`, checked in C; what it checks beyond them is checked here by column. Where any
line is in doubt, the lines are read one by one (ledger.py), which says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, NotRequired, Required

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ....schemas import Rating, canonical_json
from ....schemas.rating import kind_of_name

Columns = dict[str, Sequence[Any]]
"""Name of a column of the table `ratings` -> its values; all columns are of one length."""
_ALWAYS = ("repeat", "retracted", "cites")
"""Columns that are never null: what lacks them has their default."""
_JSON = ("parameters", "external")


def columns(lines: Sequence[bytes], ledgers: Sequence[str], numbers: Sequence[int]) -> Columns | None:
    """The ratings in these lines as columns; None where any of the lines may be no rating.

    A column that no rating has is left out.
    """
    if not all(line.startswith(b"{") and line.endswith(b"}") for line in map(bytes.strip, lines)):
        return None  # half objects and two objects in a line could add up to the number of lines
    try:
        rows = _adapter().validate_json(b"[" + b",".join(lines) + b"]")
    except ValidationError:
        return None
    if len(rows) != len(lines) or not all(map(_has_one_answer, rows)) or not _named_rightly(rows):
        return None
    fields = set(_ALWAYS).union(*rows)
    values: Columns = {name: [row.get(name, default) for row in rows] for name, default in _defaults(fields)}
    for name in fields.intersection(_JSON):
        values[name] = [canonical_json(value) if value else None for value in values[name]]
    return {"ledger": ledgers, "line": numbers, "trajectory_id": values.pop("trajectory"), **values}


def _defaults(fields: set[str]) -> list[tuple[str, Any]]:
    model_fields = Rating.model_fields
    return [
        (
            name,
            None
            if model_fields[name].is_required()
            else model_fields[name].get_default(call_default_factory=True),
        )
        for name in model_fields
        if name in fields
    ]


def _has_one_answer(row: Mapping[str, Any]) -> bool:
    count = (row.get("label") is not None) + (row.get("error") is not None) + row.get("retracted", False)
    return bool(count == 1)


def _named_rightly(rows: Sequence[Mapping[str, Any]]) -> bool:
    raters = {(row["rater"], row["rater_kind"]) for row in rows}
    return all(name.strip() and kind_of_name(name) in (None, kind) for name, kind in raters)


@cache
def _adapter() -> TypeAdapter[list[dict[str, Any]]]:
    """Validates lists of ratings as dictionaries: the fields of `Rating`, and no others."""
    fields = {
        name: (Required if field.is_required() else NotRequired)[
            Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        ]
        for name, field in Rating.model_fields.items()
    }
    make_type: Any = TypedDict  # for type checkers its fields would have to be written out
    row = make_type("row", fields)
    row.__pydantic_config__ = ConfigDict(extra="forbid")
    return TypeAdapter(list[row])  # type: ignore[valid-type]
