"""A unit: what is rated as one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import get_args

from .base import Model, canonical_json, quoted
from .codebook import UnitKind
from .trajectory import Event, Participant


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
    transcript: tuple[Event, ...] = ()
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
    return said_hash(kind, [said(e) for e in events if not e.live_only])


_OPENED = {kind: hashlib.blake2b(f'["{kind}",['.encode(), digest_size=16) for kind in get_args(UnitKind)}
"""Kind -> the hash of its units before anything is said: a copy is made much faster than a new one."""


def said_hash(kind: UnitKind, parts: Sequence[bytes]) -> str:
    """`unit_hash` from what `said` gives of each event, for whoever cuts many units from the same events."""
    made = _OPENED[kind].copy()
    made.update((parts[0] if len(parts) == 1 else b",".join(parts)) + b"]]")
    return made.hexdigest()[:16]


_name = lru_cache(maxsize=512)(quoted)
"""Names come again and again."""


def said(event: Event, arguments: str | None = None) -> bytes:
    """Canonical JSON of who did what; `arguments` are its action's as canonical JSON, where known."""
    own = vars(
        event
    )  # which takes half as long as a model's attributes, and all that is ingested comes by here
    action, text = own["action"], own["text"]
    words = "null" if text is None else quoted(text)
    done = "null"
    if action is not None:
        raw = "null" if action.raw is None else quoted(action.raw)
        arguments = canonical_json(action.arguments) if arguments is None else arguments
        done = f'{{"arguments":{arguments},"name":{_name(action.name)},"raw":{raw}}}'
    made = f'[{own["seq"]},{_name(own["actor"])},"{own["kind"]}",{words},{done}]'
    return made.encode("utf-8", "surrogatepass")
