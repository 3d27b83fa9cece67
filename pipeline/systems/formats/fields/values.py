"""Logged values as texts, names, numbers and times."""

from __future__ import annotations

import re
from collections.abc import Hashable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from .....schemas import canonical_json
from . import contents

SECONDS = re.compile(r"\d{9,10}(?:\.\d+)?|\d{12,13}")
"""A text that is a time in seconds or milliseconds since 1970."""
MICROSECONDS = re.compile(r"\d{15,16}|\d{18,19}")
"""A text that is a time in micro- or nanoseconds since 1970, as OTLP writes it. Only spans are read so: the
id of a session of `[event]` is a hash of its first event's time, which stands there as logged."""
MILLISECONDS = 1e11
"""A time above it (the year 5138 in seconds) counts milliseconds since 1970, or micro- or nanoseconds."""
UTC_ZONE = " UTC"
"""How BigQuery and Ruby end a time in place of an offset, and Go one behind it."""
ZERO_ZONE = re.compile(r"\b(?:UTC|GMT)\b")
"""The names of the zone without an offset."""
ENDLESS = 1e25
"""What no clock counts up to, whatever its unit."""


def is_name(value: Any) -> bool:
    """Whether a value can be somebody's name."""
    return isinstance(value, (str, int, float)) and value != ""


def utterance(value: Any) -> str | None:
    """What was said, as a text: of a list of parts their texts, of an object its JSON."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, list):
        return contents.plain_text(value)
    return canonical_json(value) if isinstance(value, dict) else expect_text(value, "text")


def seconds_of(value: Any) -> float | None:
    """Seconds since 1970; None where a value is no time."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not -ENDLESS < value < ENDLESS:
            return None
        while abs(value) > MILLISECONDS:
            value /= 1000
        return float(value)
    if isinstance(value, str) and SECONDS.fullmatch(value):
        return seconds_of(float(value))
    if isinstance(value, dict):
        return None if (date := _date_in(value)) is None else seconds_of(date)
    try:
        when = datetime.fromisoformat(with_offset(value))
    except (TypeError, ValueError):
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def with_offset(value: Any) -> Any:
    """A time that ends in UTC_ZONE with an offset in its place; any other value unchanged."""
    if type(value) is not str or not value.endswith(UTC_ZONE):
        return value
    local = value.removesuffix(UTC_ZONE).removesuffix(" +0000")
    for time in (f"{local}+00:00", local):
        with suppress(ValueError):
            datetime.fromisoformat(time)
            return time
    return value


def _date_in(value: dict[str, Any]) -> Any:
    """The time in an object in which MongoDB exports one: ISO 8601, or milliseconds; None in any other
    object."""
    date = value.get("$date")
    return date.get("$numberLong") if isinstance(date, dict) else date


def is_encoding(name: str) -> bool:
    """Whether Python knows an encoding of texts under that name."""
    try:
        return isinstance("".encode(name), bytes)
    except (LookupError, ValueError):
        return False


def is_time_format(text: str) -> bool:
    """Whether `strptime` can read a day with it."""
    day = datetime(2001, 2, 3, 4, 5, tzinfo=UTC)
    try:
        return datetime.strptime(day.strftime(text), text).date() == day.date()
    except (ValueError, re.error):
        return False


def iso_of(value: Any, time_format: str) -> Any:
    """ISO 8601 of a text, or a number (20240131), that is a time in `time_format`. An empty text, a text that
    is a time already, a number of a time's length (SECONDS, MICROSECONDS), and a value of any other kind are
    returned unchanged; ValueError for other texts and numbers."""
    if not isinstance(value, (str, int, float)) or isinstance(value, bool) or value != value:
        return value
    text = str(value).strip()
    # A column of whole numbers with an empty cell holds 20240131.0.
    whole = [str(int(value))] if isinstance(value, float) and value.is_integer() else []
    for one in (text, *whole):
        with suppress(ValueError):
            time = datetime.strptime(one, time_format)
            if time.tzinfo is None and "%Z" in time_format:
                # It reads the name of UTC or of this machine's zone, and keeps nothing of it.
                time = time.replace(tzinfo=UTC) if ZERO_ZONE.search(one) else time.astimezone()
            return time.isoformat()
    if isinstance(value, str) and (not text or seconds_of(text) is not None):
        return text or value
    # Without that length 20241331 would be a day in 1970.
    counts = () if isinstance(value, str) else (text, f"{value:.0f}" if isinstance(value, float) else text)
    if any(SECONDS.fullmatch(one) or MICROSECONDS.fullmatch(one) for one in counts):
        return value
    raise ValueError(
        f"time: {describe(value[:40] if isinstance(value, str) else value)} is not written as {time_format!r}"
    )


def as_hashable(value: Any) -> Hashable:
    """A hashable value that is equal for equal values."""
    if isinstance(value, list):
        return tuple(map(as_hashable, value))
    if not isinstance(value, dict):
        return value  # type: ignore[no-any-return]
    try:
        return frozenset(value.items())
    except TypeError:  # a list or an object in it
        return frozenset((key, as_hashable(one)) for key, one in value.items())


def describe(value: Any) -> str:
    """A value as the message of an error names it."""
    names = {type(None): "nothing", dict: "an object", list: "a list", bool: "true or false"}
    return names.get(type(value), repr(value)[:60])


def expect_text(value: Any, where: str) -> str | None:
    """A text or a number as a text; ValueError, with `where` it stands, for anything else."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, (int, float)):
        return tag(value)
    raise ValueError(f"{where}: expected a text, got {describe(value)}")


def tag(value: Any) -> str:
    """Any value as a text; true, false, lists and objects as JSON has them."""
    if isinstance(value, (dict, list)):
        return canonical_json(value)
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def moment(value: Any) -> str | None:
    """A time as ISO 8601, as `logged_time` reads it, with an offset in place of UTC_ZONE."""
    return with_offset(logged_time(value))  # type: ignore[no-any-return]


def logged_time(value: Any) -> str | None:
    """A time as ISO 8601: of a number, or a text that is one (SECONDS), in seconds or milliseconds since
    1970; any other text unchanged; of MongoDB's object the time in it; None for NaN, an empty cell.
    ValueError for any other value."""
    if value is None or value != value:
        return None
    if type(value) is str and ("-" in value or not SECONDS.fullmatch(value)):
        return value
    if isinstance(value, dict) and isinstance(date := _date_in(value), (str, int)):
        return logged_time(date)
    seconds = seconds_of(value)
    if seconds is None:
        raise ValueError(f"time: expected a text or a number, got {describe(value)}")
    return datetime.fromtimestamp(seconds, UTC).isoformat()
