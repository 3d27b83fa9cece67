"""What words, flags and codes in logs say of how an action ended."""

from __future__ import annotations

import re

from .names import snake_case
from .survey import PathSummary

ENDINGS = ("status", "outcome", "state", "success", "ok", "result")
"""Names of fields that say how something ended."""
MEANINGS: dict[str, str] = {
    **dict.fromkeys(("ok", "okay", "success", "successful", "succeeded"), "succeeded"),
    **dict.fromkeys(("completed", "done", "passed"), "succeeded"),
    **dict.fromkeys(("error", "errored", "fail", "failed", "failure", "exception"), "failed"),
    **dict.fromkeys(("timeout", "timed out", "crashed", "aborted", "invalid"), "failed"),
    **dict.fromkeys(("skipped", "cancelled", "canceled", "unknown", "n a", "partial"), "unknown"),
}
"""Word -> how something ended. Words that may say more, such as `no error` or `running`, are not among
them."""
FLAGS = ("success", "ok")
"""Names of flags that are true, or 1, where something succeeded."""
TRUTH = {"true": "succeeded", "false": "failed", "1": "succeeded", "0": "failed"}
FLAWS = ("error", "is_error", "has_error", "failed", "errored")
"""Names of flags that are true where something failed; `error` may also be a text, and null elsewhere."""
FLAWED = {"true": "failed", "false": "succeeded", "1": "failed", "0": "succeeded"}
CODES = ("exit_code", "exitcode", "return_code", "returncode", "exit_status")
"""Names of a program's exit code: 0 where nothing failed."""
EXITS = {"0": "succeeded", "*": "failed"}
MOST = 255
"""The greatest exit code; a negative one may stand for none."""
HTTP_CODES = (
    *("status_code", "http_status", "http_status_code", "http_code", "statuscode", "response_code"),
    *("response_status", "status", "code"),
)
"""Names of the status code of an HTTP server's answer."""
HTTP_MEANINGS = {"1": "unknown", "2": "succeeded", "3": "succeeded", "4": "failed", "5": "failed"}
"""First of the three digits of an HTTP status code -> its meaning."""
_HARMLESS = re.compile(
    r"(none|no|nothing|null|nil|nan|n/?a|undefined|unknown|ok(ay)?|true|false)\W*$|\W*$|.*\b0\W*$|success|warn"
    r"|(no|0|without)( \w+)? (error|issue|problem|warning|failure|exception)",
    re.IGNORECASE,
)
"""Beginnings of an error's text that may say that there was none: `no route` says that there was one."""


def words(field: PathSummary) -> dict[str, str]:
    """Word of a field -> its meaning; empty where one of them is not known. An empty text says nothing."""
    if field.has_more_values or not field.has_only("text"):
        return {}
    values = sorted(value for value in field.values if value)
    return _all_or_none(
        {value: MEANINGS.get(" ".join(re.findall(r"[a-z]+", value.lower()))) for value in values}
    )


def flags(field: PathSummary) -> dict[str, str]:
    """Value of a flag of success -> its meaning; numbers only under a name of FLAGS. Empty where a value is
    no flag's."""
    numbers = snake_case(field.key) in FLAGS
    return _truths(field, TRUTH) if numbers or not field.kinds["number"] else {}


def flaws(field: PathSummary) -> dict[str, str]:
    """Value of a flag of failure -> its meaning; empty where a value is no flag's."""
    return _truths(field, FLAWED) if snake_case(field.key) in FLAWS else {}


def codes(field: PathSummary) -> dict[str, str]:
    """Exit code -> its meaning, `*` for all but 0; empty where values are no exit codes, or none is 0."""
    if field.has_more_values or snake_case(field.key) not in CODES or not field.has_only("number", "text"):
        return {}
    values = {value for value in field.values if value}
    exits = all(value.isdecimal() and int(value) <= MOST for value in values)
    return EXITS if exits and "0" in values else {}


def http_codes(field: PathSummary) -> dict[str, str]:
    """Each HTTP status code that was seen -> its meaning; empty where values are no such codes."""
    if (
        field.has_more_values
        or snake_case(field.key) not in HTTP_CODES
        or not field.has_only("number", "text")
    ):
        return {}
    values = sorted(value for value in field.values if value)
    return {value: HTTP_MEANINGS[value[0]] for value in values} if all(map(is_http_code, values)) else {}


def is_http_code(value: str) -> bool:
    return re.fullmatch(r"[1-5]\d\d", value) is not None


def is_error(field: PathSummary) -> bool:
    """Whether a field has the text of an error, and null or nothing where there was none."""
    if field.has_more_values or snake_case(field.key) != FLAWS[0] or not field.has_only("text"):
        return False
    return not any(_HARMLESS.match(value.strip()) for value in field.values if value)


def _truths(field: PathSummary, meanings: dict[str, str]) -> dict[str, str]:
    if field.has_more_values or not field.has_only("true or false", "text", "number"):
        return {}
    as_json = field.has_only("true or false")
    values = {value.lower() if as_json else value for value in field.values if value}
    return _all_or_none({value: meanings.get(value.lower()) for value in sorted(values)})


def _all_or_none(candidates: dict[str, str | None]) -> dict[str, str]:
    """The meanings, or none where one is not known."""
    meanings = {value: meaning for value, meaning in candidates.items() if meaning}
    return meanings if len(meanings) == len(candidates) else {}
