"""What a study shows of its machines."""

from __future__ import annotations

from pathlib import Path

from coaudit.pipeline.cli import study
from coaudit.pipeline.store.ledgers import ledger


def test_a_file_is_counted_for_the_machine_that_wrote_it_and_a_sample_for_none(tmp_path: Path) -> None:
    name = ledger.new_name(tmp_path)
    machine = name.split("-")[1]
    for end in (".jsonl", ".live.jsonl", ".000001.jsonl"):
        assert study._machine(tmp_path / f"{name}{end}") == machine
    assert study._machine(tmp_path / "pilot-one-two-three.jsonl") == "unknown"
