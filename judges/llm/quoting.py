"""Text of others inside a prompt: between markers that nobody can guess, with every line prefixed.

A message that says `[7] agent: ...`, `Answer: no` or the end marker stays text: its lines begin with
`| `, the marker holds a nonce made with a workspace's secret, and the special tokens of chat templates
are broken up. The nonce is the same for a trajectory, so that prompts, prefixes and hashes hold.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

from ...schemas import Event, Participant
from ...schemas.changes import RESULT, Change
from ...schemas.results import AGAIN, BRIEFING, GONE, NEWS, FullEvent
from ...schemas.text import INVISIBLE

_TEMPLATE = re.compile(
    r"<(?=\|)|<(?=｜)|<(?=/?[A-Za-z_][\w.:-]{0,40}>)|<(?=</?SYS>>)|\[(?=/?g?[A-Z][A-Z_ ]{1,40}\])"
    r"|\[(?=\|[a-z]+\|\])|\[(?=e~\[)|\](?=~!?b[\[\]]|![pd]~\[|<\][a-z ]+\[>\[)"
)
"""Where a chat template's token may begin: <|im_start|>, </s>, <tool_call>, [INST], [gMASK],
[|user|] of EXAONE, ]~b] and [e~[ of MiniMax."""
REPETITION = 160
"""Characters from which an argument that stands in the event's text is not shown again: a Co-Gym session
opens with its task in the text and in two arguments."""
_ENDS = 40
"""Characters of either end of such an argument: they tell which part of the text it is."""
_HEADINGS = {
    BRIEFING: "(told to an agent:)",
    NEWS: "(told to an agent from here on:)",
    GONE: "(no longer told to an agent:)",
}
_BREAK = "\u200b"
_CONTROL = re.compile(f"[{INVISIBLE}]")
_SPACE = re.compile(r"\s+")
_MARKS = str.maketrans({"“": '"', "”": '"', "„": '"', "’": "'", "‘": "'", _BREAK: "", "|": " "})


def nonce(secret: bytes, trajectory: str) -> str:
    """16 hexadecimal digits for a trajectory that only the workspace's secret can make."""
    return hmac.new(secret, trajectory.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:16]


def block(title: str, text: str, mark: str) -> str:
    """A text of others between its markers."""
    return f"<<{title} {mark}>>\n{lines(text)}\n<<end of {title} {mark}>>"


def display_names(participants: Iterable[Participant]) -> dict[str, str]:
    """Name -> what a prompt calls the participant: human_1, agent_1, agent_2 … in the log's order."""
    counts: Counter[str] = Counter()
    names = {}
    for participant in participants:
        counts[participant.kind] += 1
        names[participant.name] = f"{participant.kind}_{counts[participant.kind]}"
    return names


def transcript(events: Iterable[Event], participants: Iterable[Participant], mark: str) -> str:
    """Events between their markers, one after the other with their numbers, after who is who."""
    names = display_names(participants)
    items = list(events)
    legend = who_is_who(dict.fromkeys(event.actor for event in items), names)
    parts = [*legend, *(event_lines(event, names.get(event.actor, "unknown")) for event in items)]
    return "\n".join([f"<<transcript {mark}>>", *parts, f"<<end of transcript {mark}>>"])


def who_is_who(actors: Iterable[str], names: Mapping[str, str]) -> list[str]:
    """Lines with the names of those actors whose name says more than their kind."""
    return [
        f"{names[name]} goes by this name:\n{lines(name)}"
        for name in actors
        if name in names and names[name].rpartition("_")[0] != name
    ]


def event_lines(event: Event, who: str) -> str:
    """An event: number, actor and kind in a line of our own words, all that was said or done quoted below,
    and what came before it from others above."""
    more = event if isinstance(event, FullEvent) else None
    head = f"[{event.seq}] {who}: {event.kind}" + (" (failed)" if event.status == "failed" else "")
    parts = before(event)
    parts.append(f"{head}, {more.after}" if more and more.after else head)
    if event.text:
        parts.append(lines(event.text))
    if event.action:
        parts.append(lines(event.action.name))
        if event.action.arguments:
            parts.append(lines(_arguments(event.action.arguments, event.text or "")))
        elif event.action.raw:
            parts.append(lines(event.action.raw))
    if event.error:
        parts.append(lines(f"error: {event.error}"))
    if more and more.result is not None:
        parts += _result(more.result) or ["(after it, the state is as it was)"]
    return "\n".join(parts)


def before(event: Event) -> list[str]:
    """Lines with what the environment said before an event, and what agents were told."""
    parts = _notices(event)
    for one in event.briefings if isinstance(event, FullEvent) else ():
        if one.path == AGAIN:
            parts += [f"(told to an agent again, as from event {one.text} on:)", lines(one.view)]
            continue
        is_rest = one.view == "public"  # how many more there are, which nobody was told
        words = lines(one.text if is_rest else f"{one.view}: {one.text}")
        parts += [_HEADINGS.get(one.path, _HEADINGS[BRIEFING]), words]
    return parts


def lines(text: str) -> str:
    """Every line of a text behind `| `, template tokens and control characters made harmless."""
    safe = _TEMPLATE.sub(lambda match: match[0] + _BREAK, _CONTROL.sub("\ufffd", text))
    safe = safe.encode("utf-8", "replace").decode("utf-8")
    return "\n".join(f"| {line}" for line in safe.splitlines() or [""])


def occurs(quote: str, event: Event) -> bool:
    """Whether a quotation stands in an event: case, space and quotation marks aside, `...` skips."""
    text = plain(event_lines(event, ""))
    position = 0
    for phrase in phrases(quote):
        result = text.find(phrase, position)
        if result < 0:
            return False
        position = result + len(phrase)
    return True


def phrases(quote: str) -> list[str]:
    """What a quotation quotes, between its gaps; nothing where it is only gaps and stops."""
    parts = (plain(part).strip(" .,;:\"'") for part in re.split(r"\.{3,}|…|\[\s*\]", quote))
    return [part for part in parts if part]


def plain(text: str) -> str:
    """Text as quotations are compared."""
    normal_form = unicodedata.normalize("NFKC", text.translate(_MARKS)).casefold()
    return _SPACE.sub(" ", normal_form).strip()


def _arguments(arguments: Mapping[str, object], text: str) -> str:
    """Arguments, a line each; of a long part of the event's text both ends."""
    return "\n".join(f"{key}={_value(value, text)}" for key, value in arguments.items())


def _value(value: object, text: str) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if len(value) < REPETITION or value not in text:
        return value
    if value == text:
        return "(the text above)"
    between = f"[... {len(value) - 2 * _ENDS} characters that stand in the text above ...]"
    return f"{value[:_ENDS]} {between} {value[-_ENDS:]}"


def _result(changes: Iterable[Change]) -> list[str]:
    """What came back from an event, and what it changed, without what its text and arguments say."""
    parts = []
    for change in changes:
        has_come_back = change.path == RESULT
        parts.append("(what came back:)" if has_come_back else "(after it, in the state:)")
        parts.append(lines(change.text if has_come_back else f"{change.path}: {change.text}"))
    return parts


def _notices(event: Event) -> list[str]:
    return [line for notice in event.notices for line in ("(the environment:)", lines(notice.text))]
