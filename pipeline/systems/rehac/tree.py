"""A ReHAC tree file: one JSON object from stringified Python tuples to the steps of every choice.

A key is `(idx, 'bits')`, a bit a step: 0 the agent's, 1 the human's. A value is that one step's text, or,
where the episode ends, a stringified tuple `('text', em, f1)`. Literals are read with
`ast.literal_eval`, which runs nothing, and only up to a size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ....schemas import JsonValue
from ....schemas.trajectory import is_finite
from ..base import python_literal
from .text import ACTORS, Step, step

MAX_KEY = 200
MAX_LITERAL = 1024 * 1024
"""Characters; Python's parser takes some hundred times as many bytes."""
_NODE = re.compile(r"""\s*\{\s*"\(\d+, *'[01]*'\)"\s*:""")
Key = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Leaf:
    """An episode that ended: its steps from the root, and how it was scored."""

    idx: int
    bits: str
    steps: list[Step]
    em: float
    f1: float


def looks_like_one(head: str) -> bool:
    """Whether a file that begins so is a tree file."""
    return _NODE.match(head.removeprefix("\ufeff")) is not None


def leaves(value: Mapping[str, JsonValue]) -> Iterator[Leaf | str]:
    """Every episode of a tree in the order of the file, and what is wrong with each bad key."""
    nodes: dict[Key, tuple[str, str, tuple[float, float] | None]] = {}
    for text, node in value.items():
        try:
            key = _key(text)
            nodes[key] = (text, *_node(node))
        except ValueError as error:
            yield f"key {text[:80]!r}: {error}"
    parents = {(idx, bits[:-1]) for idx, bits in nodes}
    for (idx, bits), (text, _, scores) in nodes.items():
        if scores is None:
            if (idx, bits) not in parents:
                yield f"key {text!r}: the episode neither ends here nor goes on"
            continue
        missing = [bits[:n] for n in range(1, len(bits)) if (idx, bits[:n]) not in nodes]
        if missing:
            yield f"key {text!r}: the step before it, {(idx, missing[0])!r}, is missing"
        else:
            yield Leaf(idx, bits, [_step(nodes, idx, bits[:n]) for n in range(1, len(bits) + 1)], *scores)


def _step(nodes: Mapping[Key, tuple[str, str, tuple[float, float] | None]], idx: int, bits: str) -> Step:
    body = nodes[idx, bits][1]
    actor = ACTORS[int(bits[-1])]
    return step(actor, body, f" {actor}\n{body}")


def _key(text: str) -> Key:
    key = _literal(text, MAX_KEY)
    if not (isinstance(key, tuple) and len(key) == 2):
        raise ValueError("expected (idx, 'bits')")
    idx, bits = key
    if not isinstance(idx, int) or not isinstance(bits, str) or not re.fullmatch("[01]+", bits):
        raise ValueError("expected a whole number and a text of 0 and 1")
    return idx, bits


def _node(value: JsonValue) -> tuple[str, tuple[float, float] | None]:
    """A step's text, with em and f1 where the episode ends with it."""
    if not isinstance(value, str):
        raise ValueError(f"expected a text, got {type(value).__name__}")
    if not (value.startswith("(") and value.endswith(")")):
        return value, None
    parts = _literal(value, MAX_LITERAL)
    if not (isinstance(parts, tuple) and len(parts) == 3 and isinstance(parts[0], str)):
        raise ValueError("expected ('text', em, f1)")
    body, *scores = parts
    if not all(isinstance(score, (int, float)) and is_finite(score) for score in scores):
        raise ValueError(f"em and f1 must be finite numbers, got {scores!r:.80}")
    return body, (float(scores[0]), float(scores[1]))


def _literal(text: str, most: int) -> object:
    if len(text) > most:
        raise ValueError(f"longer than {most} characters")
    return python_literal(text)
