"""A follower's ratings: on disk at once, in the store with the next transaction or the next reader."""

from __future__ import annotations

import os
import time
from pathlib import Path

from coaudit.pipeline.follow.ledger import LiveLedger
from coaudit.pipeline.follow.sink import Sink
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.store.ledgers import ledger
from coaudit.schemas import Rating


def given(label: str = "yes") -> Rating:
    return Rating(
        trajectory="t",
        event=1,
        codebook="initiative",
        codebook_version="1",
        code="initiative",
        rater="model",
        rater_kind="llm",
        rater_version="1",
        label=label,
        created=ledger.now(),
    )


def loaded(store: Store) -> int:
    with store.reading() as connection:
        return len(connection.execute("SELECT 1 FROM ratings").fetchall())


def test_what_was_answered_is_written_at_once_and_loaded_with_the_next_transaction(
    workspace: Path,
) -> None:
    store = Store(Workspace(workspace))
    sink = Sink(store)
    sink.open()
    written = LiveLedger(sink)
    written.write([given()])
    (path,) = ledger.files(store.workspace.ratings)
    assert path.read_text(encoding="utf-8").endswith("}\n"), "a kill at this point loses nothing"
    assert loaded(store) == 0, "the follower is about to load it"
    sink.flush()
    assert loaded(store) == 1 and not written.waits
    written.close()


def test_what_a_killed_follower_left_is_loaded_by_the_next_reader(workspace: Path) -> None:
    store = Store(Workspace(workspace))
    sink = Sink(store)
    sink.open()
    killed = LiveLedger(sink)
    killed.write([given()])
    (path,) = ledger.files(store.workspace.ratings)
    past = time.time() - ledger.SOON - 1
    os.utime(path, (past, past))
    assert loaded(store) == 1
    killed.close()
