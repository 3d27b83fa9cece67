"""A unit: what is rated as one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import get_args

from pydantic_core import to_json

from .base import Model, canonical_json, quoted
from .codebook import UnitKind
from .event import Event, EventColumns, EventTuple
from .trajectory import Participant


class Unit(Model):
    """What is rated as one, addressed by its first event (None: the whole trajectory).

    `events` are what is rated; a judge that needs more looks into `transcript`, which holds every
    event of the trajectory and is empty where the codebook's context is `none`.
    """

    trajectory_id: str
    kind: UnitKind
    event: int | None
    events: tuple[Event, ...]
    participants: tuple[Participant, ...]
    transcript: EventTuple = ()
    task: str | None = None

    @cached_property
    def hash(self) -> str:
        """Content hash of what is rated; a rating whose unit has changed since does not count."""
        return unit_hash(self.kind, self.events)

    def preceding(self) -> tuple[Event, ...]:
        """The transcript before this unit, never its future. Empty for a whole trajectory."""
        if self.event is None:
            return ()
        return tuple(e for e in self.transcript if e.seq < self.event)


def unit_hash(kind: UnitKind, events: tuple[Event, ...]) -> str:
    """16 hexadecimal digits over who did what in the unit, in order; live-only events aside.

    Time, status and states are left out: a message stays the message it was.
    """
    columns = EventColumns.of(event for event in events if not event.live_only)
    words = all_said(columns, arguments_json(columns))
    return said_hashes(kind, words, [range(len(words))])[0]


_HASHERS = {kind: hashlib.blake2b(f'["{kind}",['.encode(), digest_size=16) for kind in get_args(UnitKind)}
"""Kind -> the hash of its units before anything is said: a copy is made much faster than a new one."""


def said_hashes(kind: UnitKind, words: Sequence[bytes], units: Iterable[Sequence[int]]) -> list[str]:
    """`unit_hash` of each unit of a kind that is cut from the same events, by the places of its events among
    the `words` that `all_said` gives."""
    new_hasher, hashes = _HASHERS[kind].copy, []
    for places in units:
        hasher = new_hasher()
        if len(places) == 1:
            hasher.update(words[places[0]])
        else:
            hasher.update(b",".join([words[place] for place in places]))
        hasher.update(b"]]")
        hashes.append(hasher.hexdigest()[:16])
    return hashes


_name = lru_cache(maxsize=512)(quoted)
"""Names come again and again."""


def arguments_json(events: EventColumns) -> list[str | None]:
    """The arguments of each action as canonical JSON; TypeError for what has none."""
    return [
        None if arguments is None else canonical_json(arguments) if arguments else "{}"
        for arguments in events.arguments
    ]


def all_said(events: EventColumns, arguments: Sequence[str | None]) -> list[bytes]:
    """Canonical JSON of who did what, of each event; `arguments` as `arguments_json` gives them."""
    nothing = [None] * len(events)
    heads = list(zip(events.seq, events.actor, events.kind, events.text, nothing, strict=True))
    try:
        words = list(map(to_json, heads))
    except ValueError:  # half a character, which is no UTF-8
        words = [canonical_json(head).encode("utf-8", "surrogatepass") for head in heads]
    for place, name in enumerate(events.action):
        if name is not None:
            raw = events.raw[place]
            raw_json = "null" if raw is None else quoted(raw)
            action = f'{{"arguments":{arguments[place]},"name":{_name(name)},"raw":{raw_json}}}]'
            words[place] = words[place][: -len(b"null]")] + action.encode("utf-8", "surrogatepass")
    return words
