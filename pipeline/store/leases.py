"""Claims in an object store: objects that only one can create, and a heartbeat that says who lives."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from hashlib import blake2b

from ..errors import StoreError
from .bucket import SIDE_BY_SIDE, Bucket, Seen

LEASE = 60.0
"""Seconds without a heartbeat after which a claim is taken to be nobody's."""
BEAT = 10.0
Made = dict[str, dict[str, Seen]]
"""Hash of what is claimed -> the objects that say so."""


class ObjectClaims:
    """Claims as objects that only one can create: `claims/HASH.N`, the next N where a holder is gone.

    Who has created one looks again: an object of that hash that was not there before, or is another by its
    tag, was created by somebody who saw less or more, and then the claim is not one.
    """

    def __init__(self, remote: Bucket, *, lease: float = LEASE, beat: float = BEAT) -> None:
        self.remote = remote
        self.lease = lease
        self._me = secrets.token_hex(8)
        self._held: dict[str, list[str]] = {}
        """Hash -> the objects that say so, and those of holders before."""
        self._stopping = threading.Event()
        self._beating: threading.Thread | None = None
        self._pace = beat

    def take(self, names: Sequence[str]) -> set[str]:
        is_first = self._beating is None
        now = self._beat()
        beats = self.remote.seen("writers")
        there = self._there()
        if is_first:
            self._clear(there, beats, now)
        by_hash = {_digest(name): name for name in names}
        return {by_hash[one] for one in self._claimed(list(by_hash), there, beats, now)}

    def release(self, names: Collection[str]) -> None:
        self._give_back([_digest(name) for name in names])

    def close(self) -> None:
        self._stopping.set()
        if self._beating:
            self._beating.join()
        self._give_back(list(self._held))
        self.remote.delete([f"writers/{self._me}"])

    def _there(self) -> Made:
        claims: Made = {}
        for name, entry in self.remote.seen("claims").items():
            claims.setdefault(name.removeprefix("claims/").partition(".")[0], {})[name] = entry
        return claims

    def _claimed(
        self, hashes: Sequence[str], there: Made, beats: Mapping[str, Seen], now: datetime
    ) -> list[str]:
        """Which of these hashes are this process's from now on."""
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            claims = pool.map(lambda one: self._made(there.get(one, {}), one, beats, now), hashes)
            mine = {one: name for one, name in zip(hashes, claims, strict=True) if name}
        if not mine:
            return []
        after = self._there()
        alone = {one for one in mine if _is_alone(mine[one], there.get(one, {}), after.get(one, {}))}
        self._held |= {one: [*there.get(one, {}), mine[one]] for one in alone}
        if surplus := [name for one, name in mine.items() if one not in alone]:
            self.remote.delete(surplus)
        return list(alone)

    def _made(
        self, before: Mapping[str, Seen], digest: str, beats: Mapping[str, Seen], now: datetime
    ) -> str | None:
        """The object that says that this process has claimed; None where another one has."""
        last = max(before, key=_turn, default=None)
        if last and self._is_held(last, beats, now):
            return None
        mine = f"claims/{digest}.{_turn(last) + 1 if last else 0}"
        return mine if self.remote.create(mine, self._me.encode()) else None

    def _is_held(self, claim: str, beats: Mapping[str, Seen], now: datetime) -> bool:
        holder = self.remote.read(claim)
        if holder is None:
            return True  # given back this very moment: the next look sees
        last = beats.get(f"writers/{holder.decode('ascii', 'replace')}")
        return last is not None and self._is_fresh(last, now)

    def _is_fresh(self, entry: Seen, now: datetime) -> bool:
        return (now - entry.at).total_seconds() < self.lease

    def _give_back(self, hashes: Collection[str]) -> None:
        objects = [name for one in hashes for name in self._held.pop(one, [])]
        if objects:
            self.remote.delete(objects)

    def _clear(self, there: Made, beats: Mapping[str, Seen], now: datetime) -> None:
        """Take away what dead processes left: their claims are taken over and given back."""
        old = [
            one for one, claims in there.items() if not any(self._is_fresh(s, now) for s in claims.values())
        ]
        hashes = self._claimed(old, there, beats, now)
        self._give_back(hashes)
        for one in hashes:
            del there[one]
        if names := [name for name, entry in beats.items() if not self._is_fresh(entry, now)]:
            self.remote.delete(names)

    def _beat(self) -> datetime:
        """Show that this process lives; the object store's own time."""
        if self._beating is None:
            self._beating = threading.Thread(target=self._keep_beating, daemon=True)
            self._beating.start()
        return self.remote.touch(f"writers/{self._me}")

    def _keep_beating(self) -> None:
        while not self._stopping.wait(self._pace):
            with suppress(StoreError):  # the next one may get through before anybody takes over
                self.remote.touch(f"writers/{self._me}")


def _is_alone(mine: str, before: Mapping[str, Seen], after: Mapping[str, Seen]) -> bool:
    """Whether all that is there beside the own object was there before, and is the same."""
    return all(
        other in before and before[other].tag == entry.tag for other, entry in after.items() if other != mine
    )


def _digest(name: str) -> str:
    return blake2b(name.encode(), digest_size=12).hexdigest()


def _turn(claim: str) -> int:
    number = claim.rpartition(".")[2]
    return int(number) if number.isdigit() else 0
