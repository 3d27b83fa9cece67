"""What is looked into for logs, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from coaudit.pipeline.ingest.discover import discover


@pytest.mark.skipif(not Path("/proc/kmsg").is_file(), reason="no /proc here")
def test_a_link_to_a_file_of_the_kernel_without_an_end_is_refused_and_not_opened(tmp_path: Path) -> None:
    """To read /proc/kmsg waits for ever."""
    (tmp_path / "logs.jsonl").symlink_to("/proc/kmsg")
    (tmp_path / "kmsg").write_text("a log of this name is one like any other")
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    refusals: list[tuple[str, str | None]] = []
    opened: list[Path] = []

    def recognise(path: Path, system: str) -> None:
        opened.append(path)

    def refused(path: Path, error: OSError) -> None:
        refusals.append((path.name, error.strerror))

    assert not list(discover(tmp_path, refused=refused, recognise=recognise))
    assert refusals == [("logs.jsonl", "a link to /proc/kmsg, which has no end")]
    assert set(opened) == {tmp_path, tmp_path / "kmsg", tmp_path / "gone.jsonl"}
