"""What the ledger of pulls knows of them."""

from __future__ import annotations

from pathlib import Path

from coaudit.pipeline.annotate.pull import last_pull
from coaudit.pipeline.store.ledgers.ledger import Ledger
from coaudit.schemas import canonical_json


def test_a_damaged_record_is_of_a_pull_that_never_ended(tmp_path: Path) -> None:
    received = Ledger(tmp_path / "received")
    kept = {
        "mark": "2026-11-27T10:00:00Z",
        "project": 3,
        "pulled": "2026-11-27T10:00:01Z",
        "server": "http://a",
    }
    torn = ['{"mark":"2026-11-27T11:00:00Z","proj', '{"mark":null}']
    no_times = [canonical_json(kept | {name: "2026-1x-27"}) for name in ("mark", "pulled")]
    no_field = canonical_json(kept).replace("pulled", "pulked")
    received.append([canonical_json(kept), *torn, *no_times, no_field])
    assert last_pull(received, "http://a", 3) == kept
    assert last_pull(received, "http://b", 3) is None
