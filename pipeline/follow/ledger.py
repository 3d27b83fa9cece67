"""The ledger of a follower's ratings: written at once, so that a kill loses none, and loaded soon after."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import duckdb

from ...schemas import Rating
from ..errors import WriteError
from ..store.ledgers.ledger import RatingLedger
from .sink import Sink


class LiveLedger:
    """Takes ratings from any thread; the next transaction has them on disk and in the store.

    Readers leave this ledger to it (`ledger.is_unattended`): else each of them would load it, as a writer.
    """

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.waits = False
        """Whether there are ratings that no transaction has taken yet."""
        self._lock = threading.Lock()
        self._ledger: RatingLedger | None = None

    def write(self, ratings: Sequence[Rating]) -> None:
        """Write these ratings, and have the next transaction load them."""
        if not ratings:
            return
        with self._lock, self._explain_errors():
            self._ledger = self._ledger or self.sink.store.workspace.new_ratings(live=True)
            self._ledger.write(ratings)
            if not self.waits:
                self.waits = True
                self.sink.add_work(self._load)

    def close(self) -> None:
        """Close the file."""
        if self._ledger is not None:
            with self._explain_errors():
                self._ledger.flush()
                self._ledger.close()

    def _load(self, connection: duckdb.DuckDBPyConnection) -> None:
        with self._lock, self._explain_errors():
            self.waits = False
            if self._ledger is not None:
                self._ledger.flush()

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            path = self._ledger.path if self._ledger else self.sink.store.workspace.ratings
            raise WriteError(f"{path}: cannot write the ledger: {error.strerror}") from error
