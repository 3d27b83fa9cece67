"""The grammar of Co-Gym's action strings.

Source: the regular expressions of collaborative-gym at 1e3b02e; values are kept raw, quotes included.
"""

from __future__ import annotations

import re

from ....schemas import Action
from ....schemas.event import EventKind

COLLABORATIVE: dict[str, EventKind] = {
    "SEND_TEAMMATE_MESSAGE": "message",
    "WAIT_TEAMMATE_CONTINUE": "wait",
    "REQUEST_TEAMMATE_CONFIRM": "confirm_request",
    "ACCEPT_CONFIRMATION": "confirm_accept",
    "REJECT_CONFIRMATION": "confirm_reject",
    "PUT_AGENT_ASLEEP": "control",
    "WAKE_AGENT_UP": "control",
}
# A name with several signatures lists the longest first: greedy groups would swallow the missing one.
SIGNATURES: dict[str, tuple[tuple[str, ...], ...]] = {
    "SEND_TEAMMATE_MESSAGE": (("message",),),
    "WAIT_TEAMMATE_CONTINUE": ((),),
    "REQUEST_TEAMMATE_CONFIRM": (("request_id", "pending_action"),),
    "ACCEPT_CONFIRMATION": (("request_id",),),
    "REJECT_CONFIRMATION": (("request_id",),),
    "PUT_AGENT_ASLEEP": ((),),
    "WAKE_AGENT_UP": ((),),
    "FLIGHT_SEARCH": (("origin", "destination", "date"),),
    "ACCOMMODATION_SEARCH": (("city",),),
    "RESTAURANT_SEARCH": (("city",),),
    "ATTRACTION_SEARCH": (("city",),),
    "DISTANCE_MATRIX": (("origins", "destinations", "mode"), ("origins", "destinations")),
    "BUSINESS_SEARCH": (("term", "location", "limit"),),
    "INTERNET_SEARCH": (("query",),),
    "SEARCH_ARXIV": (("query",),),
    "ADD_PAPER_TO_LIBRARY": (("titles", "links"),),
    "DROP_PAPER_FROM_LIBRARY": (("title",),),
    "LIBRARY_TO_DRAFT": (("example",),),
    "POLISH_DRAFT_WITH_LIBRARY": (("polishing_request",),),
    "EXECUTE_JUPYTER_CELL": (("code",),),
    "EDITOR_UPDATE": (("text",),),
    "CLICK": (("x", "y", "button"), ("x", "y")),
    "TYPE": (("text",),),
    "KEY": (("key",),),
    "SCROLL": (("direction", "amount"),),
    "MOVE_TO": (("x", "y"),),
    "SCREENSHOT": ((),),
    "FINISH": ((),),
}


_NAME = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*)\s*\(")
_CALL = re.compile(r"(?<![A-Z_])_*+(?P<name>[A-Z][A-Z_]++)\(")
"""Where `[A-Z][A-Z_]+\\(` begins first; looked for in a time that grows with the text and not its square."""
_ARGUMENT = re.compile(r"(?:^|, )([a-z_][a-z0-9_]*)=", re.DOTALL)


def parse(text: str) -> Action:
    """The action in a logged string, the way Co-Gym's environment finds it.

    A string that only matches after Co-Gym's lenient clean-up, or that names no known action, keeps its
    `raw` form; one without any call is named `UNPARSED`.
    """
    # The environment drops a trailing thought before it looks for an action; messages never reach it.
    if "\nThought:" in text and text.partition("(")[0] not in COLLABORATIVE:
        return _lenient(text) or _exact(text) or _foreign(text)
    return _exact(text) or _lenient(text) or _foreign(text)


def _exact(text: str) -> Action | None:
    name = text.partition("(")[0]
    for parameters in SIGNATURES.get(name, ()):
        values = _values(text, parameters) if text.endswith(")") else None
        if values is not None:
            return Action(name=name, arguments=dict(zip(parameters, values, strict=True)))
    return None


def _values(text: str, parameters: tuple[str, ...]) -> list[str] | None:
    """What `NAME\\(a=(.*), b=(.*)\\)` finds: groups are greedy, so the last mark of each parameter counts."""
    inside = text[text.index("(") + 1 : -1]
    if not parameters:
        return None if inside else []
    values: list[str] = []
    end = len(inside)
    for parameter in reversed(parameters[1:]):
        start = inside.rfind(f", {parameter}=", 0, end)
        if start < 0:
            return None
        values.insert(0, inside[start + len(parameter) + 3 : end])
        end = start
    first = f"{parameters[0]}="
    return [inside[len(first) : end], *values] if inside.startswith(first, 0, end) else None


def _lenient(text: str) -> Action | None:
    plain = text.partition("\nThought:")[0].replace("\\(", "(")
    call, end = _CALL.search(plain), plain.rfind(")") + 1
    result = _exact(plain[call.start("name") : end]) if call and call.end() < end else None
    return result and result.model_copy(update={"raw": text})


def _foreign(text: str) -> Action:
    name = _NAME.match(text)
    if name is None:
        return Action(name="UNPARSED", raw=text)
    inside = text[name.end() :].rstrip().removesuffix(")")
    starts = list(_ARGUMENT.finditer(inside))
    ends = [m.start() for m in starts[1:]] + [len(inside)]
    arguments = {m[1]: inside[m.end() : end] for m, end in zip(starts, ends, strict=False)}
    rebuilt = f"{name[1]}({', '.join(f'{k}={v}' for k, v in arguments.items())})"
    return Action(name=name[1], arguments=dict(arguments), raw=None if rebuilt == text else text)


def start_arguments(text: str) -> dict[str, str]:
    """`task_description` and, where there is one, `query` of a START string.

    The description itself has commas and parentheses, so the query begins at the LAST ", query=".
    """
    inside = text.removeprefix("START(task_description=").removesuffix(")")
    description, mark, query = inside.rpartition(", query=")
    return {"task_description": description, "query": query} if mark else {"task_description": inside}
