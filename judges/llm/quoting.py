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
from collections.abc import Iterable, Mapping

from ...schemas import Event, Participant

_TEMPLATE = re.compile(
    r"<(?=\|)|<(?=｜)|<(?=/?s>)|<(?=/?(?:bos|eos|pad|unk|start_of_turn|end_of_turn|think)>)"
    r"|\[(?=/?INST\])|<(?=</?SYS>>)"
)
_BREAK = "\u200b"
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_SPACE = re.compile(r"\s+")
_PLAIN_NAME = re.compile(r"[\w .@+-]{1,60}")
_MARKS = str.maketrans({"“": '"', "”": '"', "„": '"', "’": "'", "‘": "'", _BREAK: "", "|": " "})


def nonce(secret: bytes, trajectory: str) -> str:
    """16 hexadecimal digits for a trajectory that only the workspace's secret can make."""
    return hmac.new(secret, trajectory.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:16]


def block(title: str, text: str, mark: str) -> str:
    """A text of others between its markers."""
    return f"<<{title} {mark}>>\n{lines(text)}\n<<end of {title} {mark}>>"


def transcript(events: Iterable[Event], participants: Iterable[Participant], mark: str) -> str:
    """Events between their markers, one after the other with their numbers."""
    kinds = {p.name: p.kind for p in participants}
    shown = "\n".join(event_lines(event, kinds.get(event.actor, "unknown")) for event in events)
    return f"<<transcript {mark}>>\n{shown}\n<<end of transcript {mark}>>"


def event_lines(event: Event, kind: str) -> str:
    """An event: its number, actor and kind in a line of our own, what was said or done quoted below."""
    head = f"[{event.seq}] {kind} {_name(event.actor)}: {event.kind}"
    if event.action:
        head += f" {_name(event.action.name)}"
    if event.status == "failed":
        head += " (failed)"
    parts = [head, *_notices(event)]
    if event.text:
        parts.append(lines(event.text))
    if event.action and event.action.arguments:
        parts.append(lines(_arguments(event.action.arguments)))
    elif event.action and event.action.raw:
        parts.append(lines(event.action.raw))
    if event.error:
        parts.append(lines(f"error: {event.error}"))
    return "\n".join(parts)


def lines(text: str) -> str:
    """Every line of a text behind `| `, template tokens and control characters made harmless."""
    safe = _TEMPLATE.sub(lambda match: match[0] + _BREAK, _CONTROL.sub("\ufffd", text))
    safe = safe.encode("utf-8", "replace").decode("utf-8")
    return "\n".join(f"| {line}" for line in safe.splitlines() or [""])


def occurs(quote: str, event: Event) -> bool:
    """Whether a quotation stands in an event: case, space and quotation marks aside, `...` skips."""
    text = plain(event_lines(event, ""))
    at = 0
    for part in re.split(r"\.{3,}|…|\[\s*\]", quote):
        wanted = plain(part).strip(" .,;:\"'")
        found = text.find(wanted, at)
        if found < 0:
            return False
        at = found + len(wanted)
    return True


def plain(text: str) -> str:
    """Text as quotations are compared."""
    folded = unicodedata.normalize("NFKC", text.translate(_MARKS)).casefold()
    return _SPACE.sub(" ", folded).strip()


def _arguments(arguments: Mapping[str, object]) -> str:
    return "\n".join(f"{_name(key)}={_value(value)}" for key, value in arguments.items())


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _notices(event: Event) -> list[str]:
    return [
        line for notice in event.notices for line in ("(before it, the environment:)", lines(notice.text))
    ]


def _name(name: str) -> str:
    """A name as it is where it is plain, else as JSON, so that it stays within its line."""
    return name if _PLAIN_NAME.fullmatch(name) else json.dumps(name[:60], ensure_ascii=True)
