"""Claims in an object store: objects that only one can create, and a heartbeat that says who lives."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from hashlib import blake2b

from ..errors import StoreError
from .remote import SIDE_BY_SIDE, Remote

LEASE = 60.0
"""Seconds without a heartbeat after which a claim is taken to be nobody's."""
BEAT = 10.0


class ObjectClaims:
    """Claims as objects that only one can create: `claims/HASH.N`, the next N where a holder is gone."""

    def __init__(self, remote: Remote, *, lease: float = LEASE, beat: float = BEAT) -> None:
        self.remote = remote
        self.lease = lease
        self._me = secrets.token_hex(8)
        self._held: dict[str, list[str]] = {}
        """Name -> the objects that say so, and those of holders before."""
        self._stopping = threading.Event()
        self._beating: threading.Thread | None = None
        self._pace = beat

    def take(self, names: Sequence[str]) -> set[str]:
        now = self._beat()
        beats = {name.removeprefix("writers/"): at for name, at in self.remote.times("writers")}
        there: dict[str, list[str]] = {}
        for name, _ in self.remote.times("claims"):
            there.setdefault(name.removeprefix("claims/").partition(".")[0], []).append(name)
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            taken = pool.map(lambda name: self._take(name, there.get(_hashed(name), []), beats, now), names)
            return {name for name, mine in zip(names, taken, strict=True) if mine}

    def release(self, names: Collection[str]) -> None:
        objects = [one for name in names for one in self._held.pop(name, [])]
        if objects:
            self.remote.delete(objects)

    def close(self) -> None:
        self._stopping.set()
        if self._beating:
            self._beating.join()
        self.release(list(self._held))
        self.remote.delete([f"writers/{self._me}"])

    def _take(self, name: str, before: Sequence[str], beats: dict[str, datetime], now: datetime) -> bool:
        before = sorted(before, key=_turn)
        if before and self._is_held(before[-1], beats, now):
            return False
        mine = f"claims/{_hashed(name)}.{_turn(before[-1]) + 1 if before else 0}"
        if not self.remote.create(mine, self._me.encode()):
            return False
        self._held[name] = [*before, mine]
        return True

    def _is_held(self, claim: str, beats: dict[str, datetime], now: datetime) -> bool:
        holder = self.remote.read(claim)
        if holder is None:
            return True  # given back this very moment: the next look sees
        last = beats.get(holder.decode("ascii", "replace"))
        return last is not None and (now - last).total_seconds() < self.lease

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


def _hashed(name: str) -> str:
    return blake2b(name.encode(), digest_size=12).hexdigest()


def _turn(claim: str) -> int:
    number = claim.rpartition(".")[2]
    return int(number) if number.isdigit() else 0
