"""How what was done ended, in whatever words, flags and codes logs have for it."""

from __future__ import annotations

import re

from .guess_names import spelled
from .survey import PathSeen

ENDINGS = ("status", "outcome", "state", "success", "ok", "result")
"""What a field is called that says how something ended."""
MEANINGS: dict[str, str] = {
    **dict.fromkeys(("ok", "okay", "success", "successful", "succeeded"), "succeeded"),
    **dict.fromkeys(("completed", "done", "passed"), "succeeded"),
    **dict.fromkeys(("error", "errored", "fail", "failed", "failure", "exception"), "failed"),
    **dict.fromkeys(("timeout", "timed out", "crashed", "aborted", "invalid"), "failed"),
    **dict.fromkeys(("skipped", "cancelled", "canceled", "unknown", "n a", "partial"), "unknown"),
}
"""What is said of how something ended, and nothing else: `no error` and `running` are no words of these."""
FLAGS = ("success", "ok")
"""What a flag is called that is true, or 1, where something succeeded."""
TRUTH = {"true": "succeeded", "false": "failed", "1": "succeeded", "0": "failed"}
FLAWS = ("error", "is_error", "has_error", "failed", "errored")
"""What a flag is called that is true where something failed; or `error` is a text, and null elsewhere."""
FLAWED = {"true": "failed", "false": "succeeded", "1": "failed", "0": "succeeded"}
CODES = ("exit_code", "exitcode", "return_code", "returncode", "exit_status")
"""What the number is called with which a program ends: 0 where nothing failed."""
EXITS = {"0": "succeeded", "*": "failed"}
MOST = 255
"""The greatest exit code; a negative one may stand for none."""
ANSWERS = (
    *("status_code", "http_status", "http_status_code", "http_code", "statuscode", "response_code"),
    *("response_status", "status", "code"),
)
"""What the number is called with which a server of HTTP answers."""
CLASSES = {"1": "unknown", "2": "succeeded", "3": "succeeded", "4": "failed", "5": "failed"}
"""What it means, by its first of three digits."""
_HARMLESS = re.compile(
    r"(none|no|nothing|null|nil|nan|n/?a|undefined|unknown|ok(ay)?|true|false)\W*$|\W*$|.*\b0\W*$|success|warn"
    r"|(no|0|without)( \w+)? (error|issue|problem|warning|failure|exception)",
    re.IGNORECASE,
)
"""How a text of an error begins that may say that there was none: `no route` says that there was one."""


def words(field: PathSeen) -> dict[str, str]:
    """Word -> what it means; none where one of them means nothing that is known."""
    if field.more or not field.only("text"):
        return {}
    meanings = {
        value: MEANINGS.get(" ".join(re.findall(r"[a-z]+", value.lower()))) for value in sorted(field.values)
    }
    return _if_all(meanings)


def flags(field: PathSeen) -> dict[str, str]:
    """True, TRUE or 1, and their opposites, with what they mean."""
    numbers = spelled(field.key) in FLAGS
    return _truths(field, TRUTH) if numbers or not field.kinds["number"] else {}


def flaws(field: PathSeen) -> dict[str, str]:
    return _truths(field, FLAWED) if spelled(field.key) in FLAWS else {}


def codes(field: PathSeen) -> dict[str, str]:
    """Of exit codes."""
    if field.more or spelled(field.key) not in CODES or not field.only("number", "text"):
        return {}
    exits = all(value.isdecimal() and int(value) <= MOST for value in field.values)
    return EXITS if exits and "0" in field.values else {}


def answers(field: PathSeen) -> dict[str, str]:
    """Of status codes of HTTP, those that were seen."""
    if field.more or spelled(field.key) not in ANSWERS or not field.only("number", "text"):
        return {}
    values = sorted(value for value in field.values if value)
    return {value: CLASSES[value[0]] for value in values} if all(map(is_answer, values)) else {}


def is_answer(value: str) -> bool:
    return re.fullmatch(r"[1-5]\d\d", value) is not None


def is_error(field: PathSeen) -> bool:
    """Whether it says what went wrong, and null or nothing elsewhere."""
    if field.more or spelled(field.key) != FLAWS[0] or not field.only("text"):
        return False
    return not any(_HARMLESS.match(value.strip()) for value in field.values if value)


def _truths(field: PathSeen, meanings: dict[str, str]) -> dict[str, str]:
    if field.more or not field.only("true or false", "text", "number"):
        return {}
    as_json = field.only("true or false")
    values = {value.lower() if as_json else value for value in field.values if value}
    return _if_all({value: meanings.get(value.lower()) for value in sorted(values)})


def _if_all(candidates: dict[str, str | None]) -> dict[str, str]:
    meanings = {value: meaning for value, meaning in candidates.items() if meaning}
    return meanings if len(meanings) == len(candidates) else {}
