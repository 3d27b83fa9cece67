"""The doctor: what it says of an environment that is not this one."""

from __future__ import annotations

from pathlib import Path

import pytest

from coaudit.annotation.labelstudio import server
from coaudit.pipeline.cli import doctor
from coaudit.pipeline.store import Store, Workspace


@pytest.mark.parametrize(
    ("program", "state", "said"),
    [
        ("echo 0.19.1", "ok", "0.19.1 at COAUDIT_VLLM_PYTHON="),
        ("echo No package metadata was found for vllm >&2; exit 1", "missing", "no vllm there (No package"),
        (None, "missing", "cannot be run: No such file or directory"),
    ],
)
def test_the_doctor_asks_the_python_that_is_to_have_vllm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None, state: str, said: str
) -> None:
    python = tmp_path / "python"
    if program:
        python.write_text(f"#!/bin/sh\n{program}\n")
        python.chmod(0o755)
    monkeypatch.setenv("COAUDIT_VLLM_PYTHON", str(python))
    result = doctor._vllm()
    assert result.state == state
    assert said in result.detail and str(python) in result.detail


def test_label_studio_is_looked_for_where_the_command_that_starts_it_puts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was missing for good, for no environment of ours has it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = doctor._label_studio()
    assert before.state == "ok" and "installed when first needed" in before.detail
    program = server.program(server.default_environment())
    program.parent.mkdir(parents=True)
    program.touch()
    assert doctor._label_studio().detail == str(program)


def test_the_doctor_says_how_much_was_recorded_of_what_is_followed(tmp_path: Path) -> None:
    """Scrapes of a model server grow by tens of megabytes a day, and nothing told of them."""
    workspace = Workspace(tmp_path)
    assert list(doctor._recordings(workspace)) == []
    for name, size in {"live/host-6379-0/1.jsonl": 3 << 20, "serving/1.jsonl": 5, "copies/x": 9}.items():
        path = workspace.raw / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b" " * size)
    assert list(doctor._recordings(workspace)) == [("raw/live", 3 << 20), ("raw/serving", 5)]
    assert ("recordings", "ok", "raw/live 3 MiB, raw/serving 0 MiB") in [
        one[:3] for one in doctor._workspace(Store(workspace, read_only=True))
    ]
