"""The grammar of Co-Gym's action strings.

Source: the regular expressions of collaborative-gym at 1e3b02e; values are kept raw, quotes included.
"""

from __future__ import annotations

import re

from ....schemas import Action
from ....schemas.trajectory import EventKind

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


def _pattern(name: str, parameters: tuple[str, ...]) -> re.Pattern[str]:
    inside = ", ".join(f"{parameter}=(.*)" for parameter in parameters)
    return re.compile(rf"{name}\({inside}\)", re.DOTALL)


_PATTERNS = {
    name: tuple((parameters, _pattern(name, parameters)) for parameters in signatures)
    for name, signatures in SIGNATURES.items()
}
_NAME = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*)\s*\(")
_CALL = re.compile(r"[A-Z][A-Z_]+\(.*\)", re.DOTALL)
_ARGUMENT = re.compile(r"(?:^|, )([a-z_][a-z0-9_]*)=", re.DOTALL)


def parse(logged: str) -> Action:
    """The action in a logged string, the way Co-Gym's environment finds it.

    A string that only matches after Co-Gym's lenient clean-up, or that names no known action, keeps its
    `raw` form; one without any call is named `UNPARSED`.
    """
    # The environment drops an afterthought before it looks for an action; messages it never sees.
    if "\nThought:" in logged and logged.partition("(")[0] not in COLLABORATIVE:
        return _lenient(logged) or _exact(logged) or _foreign(logged)
    return _exact(logged) or _lenient(logged) or _foreign(logged)


def _exact(logged: str) -> Action | None:
    name = logged.partition("(")[0]
    for parameters, pattern in _PATTERNS.get(name, ()):
        if match := pattern.fullmatch(logged):
            return Action(name=name, arguments=dict(zip(parameters, match.groups(), strict=True)))
    return None


def _lenient(logged: str) -> Action | None:
    call = _CALL.search(logged.partition("\nThought:")[0].replace("\\(", "("))
    result = _exact(call.group()) if call else None
    return result and result.model_copy(update={"raw": logged})


def _foreign(logged: str) -> Action:
    name = _NAME.match(logged)
    if name is None:
        return Action(name="UNPARSED", raw=logged)
    inside = logged[name.end() :].rstrip().removesuffix(")")
    starts = list(_ARGUMENT.finditer(inside))
    ends = [m.start() for m in starts[1:]] + [len(inside)]
    arguments = {m[1]: inside[m.end() : end] for m, end in zip(starts, ends, strict=False)}
    rebuilt = f"{name[1]}({', '.join(f'{k}={v}' for k, v in arguments.items())})"
    return Action(name=name[1], arguments=dict(arguments), raw=None if rebuilt == logged else logged)


def start_arguments(logged: str) -> dict[str, str]:
    """`task_description` and, where there is one, `query` of a START string.

    The description itself has commas and parentheses, so the query begins at the LAST ", query=".
    """
    inside = logged.removeprefix("START(task_description=").removesuffix(")")
    description, mark, query = inside.rpartition(", query=")
    return {"task_description": description, "query": query} if mark else {"task_description": inside}
