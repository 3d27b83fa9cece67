"""Claims in an object store: objects that only one process can create, and a heartbeat of those that live."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from hashlib import blake2b

from ...errors import StoreError
from .bucket import SIDE_BY_SIDE, Bucket, Stamp

LEASE = 60.0
"""Seconds without a heartbeat after which a claim is taken to be nobody's."""
BEAT = 10.0
ClaimObjects = dict[str, dict[str, Stamp]]
"""Hash of what is claimed -> the objects that claim it."""


class ObjectClaims:
    """Claims as objects that only one process can create: `claims/HASH.N`, with the next N where a holder is
    gone.

    A process that has created one looks again: an object of that hash that is new beside it, or has another
    tag by now, was created by somebody who saw another state, and then both give the claim up.
    """

    def __init__(self, remote: Bucket, *, lease: float = LEASE, beat: float = BEAT) -> None:
        self.remote = remote
        self.lease = lease
        self._me = secrets.token_hex(8)
        self._held_objects: dict[str, list[str]] = {}
        """Hash -> the object of this process's claim, and those of holders that are gone."""
        self._stopping = threading.Event()
        self._heartbeat: threading.Thread | None = None
        self._pace = beat

    def take(self, names: Sequence[str]) -> set[str]:
        is_first = self._heartbeat is None
        now = self._beat()
        beats = self.remote.stamps("writers")
        there = self._existing_claims()
        if is_first:
            self._clear(there, beats, now)
        by_hash = {_digest(name): name for name in names}
        return {by_hash[one] for one in self._claim(list(by_hash), there, beats, now)}

    def release(self, names: Collection[str]) -> None:
        self._give_back([_digest(name) for name in names])

    def close(self) -> None:
        self._stopping.set()
        if self._heartbeat:
            self._heartbeat.join()
        self._give_back(list(self._held_objects))
        self.remote.delete([f"writers/{self._me}"])

    def _existing_claims(self) -> ClaimObjects:
        claims: ClaimObjects = {}
        for name, entry in self.remote.stamps("claims").items():
            claims.setdefault(name.removeprefix("claims/").partition(".")[0], {})[name] = entry
        return claims

    def _claim(
        self, hashes: Sequence[str], there: ClaimObjects, beats: Mapping[str, Stamp], now: datetime
    ) -> list[str]:
        """Claim these hashes; returns those that are this process's from now on."""
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            claims = pool.map(lambda one: self._create_claim(there.get(one, {}), one, beats, now), hashes)
            mine = {one: name for one, name in zip(hashes, claims, strict=True) if name}
        if not mine:
            return []
        after = self._existing_claims()
        alone = {one for one in mine if _is_uncontested(mine[one], there.get(one, {}), after.get(one, {}))}
        self._held_objects |= {one: [*there.get(one, {}), mine[one]] for one in alone}
        if surplus := [name for one, name in mine.items() if one not in alone]:
            self.remote.delete(surplus)
        return list(alone)

    def _create_claim(
        self, before: Mapping[str, Stamp], digest: str, beats: Mapping[str, Stamp], now: datetime
    ) -> str | None:
        """Create the object that claims a hash; returns its name, None where another process holds it."""
        last = max(before, key=_turn, default=None)
        if last and self._is_held(last, beats, now):
            return None
        mine = f"claims/{digest}.{_turn(last) + 1 if last else 0}"
        return mine if self.remote.create(mine, self._me.encode()) else None

    def _is_held(self, claim: str, beats: Mapping[str, Stamp], now: datetime) -> bool:
        holder = self.remote.read(claim)
        if holder is None:
            return True  # given back this very moment: the next look sees
        last = beats.get(f"writers/{holder.decode('ascii', 'replace')}")
        return last is not None and self._is_fresh(last, now)

    def _is_fresh(self, entry: Stamp, now: datetime) -> bool:
        return (now - entry.at).total_seconds() < self.lease

    def _give_back(self, hashes: Collection[str]) -> None:
        objects = [name for one in hashes for name in self._held_objects.pop(one, [])]
        if objects:
            self.remote.delete(objects)

    def _clear(self, there: ClaimObjects, beats: Mapping[str, Stamp], now: datetime) -> None:
        """Delete what dead processes left: their claims are taken over and given back."""
        old = [
            one for one, claims in there.items() if not any(self._is_fresh(s, now) for s in claims.values())
        ]
        hashes = self._claim(old, there, beats, now)
        self._give_back(hashes)
        for one in hashes:
            del there[one]
        if names := [name for name, entry in beats.items() if not self._is_fresh(entry, now)]:
            self.remote.delete(names)

    def _beat(self) -> datetime:
        """Show that this process lives; returns the object store's own time."""
        if self._heartbeat is None:
            self._heartbeat = threading.Thread(target=self._keep_beating, daemon=True)
            self._heartbeat.start()
        return self.remote.touch(f"writers/{self._me}")

    def _keep_beating(self) -> None:
        while not self._stopping.wait(self._pace):
            with suppress(StoreError):  # the next one may get through before anybody takes over
                self.remote.touch(f"writers/{self._me}")


def _is_uncontested(mine: str, before: Mapping[str, Stamp], after: Mapping[str, Stamp]) -> bool:
    """Whether nobody else claimed meanwhile: each object beside one's own was there `before` and has not
    changed."""
    return all(
        other in before and before[other].tag == entry.tag for other, entry in after.items() if other != mine
    )


def _digest(name: str) -> str:
    return blake2b(name.encode(), digest_size=12).hexdigest()


def _turn(claim: str) -> int:
    number = claim.rpartition(".")[2]
    return int(number) if number.isdigit() else 0
