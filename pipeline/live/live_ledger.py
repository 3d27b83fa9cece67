"""The ledger of a follower's ratings, never ahead of the store: else every reader would have to load it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import duckdb

from coaudit.pipeline.errors import StoreError
from coaudit.pipeline.ledger import RatingLedger
from coaudit.pipeline.live.sink import Sink
from coaudit.schemas.rating import Rating


class LiveLedger:
    """Takes ratings from any thread; they are on disk within the transaction that loads them.

    A kill loses what was answered since the last transaction; a follower that ends for any other reason
    has it on disk (`close`).
    """

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self._fresh: list[Rating] = []
        self._lock = threading.Lock()
        self._ledger: RatingLedger | None = None

    @property
    def waits(self) -> bool:
        """Whether there are ratings that no transaction has taken yet."""
        return bool(self._fresh)

    def write(self, ratings: Sequence[Rating]) -> None:
        """Have the next transaction take these."""
        with self._lock:
            if ratings and not self._fresh:
                self.sink.also(self._load)
            self._fresh += ratings

    def close(self) -> None:
        """Have on disk what no transaction took, and close the file."""
        self._append()
        if self._ledger is not None:
            self._ledger.close()

    def _load(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._append()

    def _append(self) -> None:
        with self._lock:
            fresh, self._fresh = self._fresh, []
        if not fresh:
            return
        folder = self.sink.store.workspace.ratings
        self._ledger = self._ledger or RatingLedger(folder)
        try:
            self._ledger.append(fresh)
        except OSError as error:
            why = f"{self._ledger.path}: cannot write the ledger: {error.strerror}; follow again to go on"
            raise StoreError(why) from error
