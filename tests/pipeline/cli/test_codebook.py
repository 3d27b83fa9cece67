"""A damaged TOML file: every command goes on without it, or names it and what is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import ROOT, Coaudit
from tests.schemas.test_toml import DAMAGED

BLOCKING = [DAMAGED["an integer of 5,000 digits"], DAMAGED["5,000 lists within each other"]]


@pytest.mark.long
@pytest.mark.parametrize("damage", BLOCKING)
def test_a_damaged_codebook_blocks_no_command_that_does_not_ask_for_it(
    coaudit: Coaudit, workspace: Path, damage: bytes
) -> None:
    coaudit("ingest", ROOT / "data" / "coblock")
    (workspace / "codebooks").mkdir()
    (workspace / "codebooks" / "x.toml").write_bytes(damage)
    for command in (
        ("metrics",),
        ("judge", "--rater", "rules"),
        ("trajectory", "list"),
        ("codebook", "list"),
        ("rebuild",),
    ):
        coaudit(*command)
    assert "x.toml: not TOML: " in coaudit("quarantine", "list").out
    assert "x.toml: not TOML: " in coaudit("codebook", "show", "x", status=2).err


@pytest.mark.parametrize("damage", BLOCKING)
def test_a_damaged_file_that_is_asked_for_is_named_with_the_reason(
    coaudit: Coaudit, workspace: Path, tmp_path: Path, damage: bytes
) -> None:
    file = tmp_path / "x.toml"
    file.write_bytes(damage)
    log = tmp_path / "log.jsonl"
    log.write_text("{}\n")
    assert "x.toml: not TOML: " in coaudit("codebook", "check", file, status=1).out
    assert "x.toml: not TOML: " in coaudit("ingest", log, "--map", file, status=1).err
    coaudit("ingest", ROOT / "data" / "coblock")
    model = ("judge", "--model", "m", "--engine", "vllm", "--engine-args", file)
    assert "x.toml: not TOML: " in coaudit(*model, status=2).err
    (workspace / "coaudit.toml").write_bytes(damage)
    assert "coaudit.toml: not TOML: " in coaudit("metrics", status=1).err


OWN = """
name = "own"
title = "Own"
unit = "utterance"
labels = ["yes", "no"]
question = '''Is it so?
Read all of it.'''
guidance = ""

[[codes]]
code = "M"
name = "Mode"
definition = '''
The first line.
The second line.
'''
"""


def test_texts_of_several_lines_are_shown_as_such(coaudit: Coaudit, workspace: Path) -> None:
    (workspace / "codebooks").mkdir(parents=True)
    (workspace / "codebooks" / "own.toml").write_text(OWN)
    out = coaudit("codebook", "show", "own").out
    assert "\nIs it so?\nRead all of it.\n" in out
    assert "\nM  Mode\n    The first line.\n    The second line.\n" in out


def test_a_codebook_is_shown_with_what_counts_and_its_examples(coaudit: Coaudit) -> None:
    out = coaudit("codebook", "show", "confirmation").out
    assert "\n    counts: A refusal, also a refusal for now" in out
    assert "\n    does not count: A question for a fact" in out
    assert "\n    no: How many children will attend? → Twenty-three. (A good answer" in out


def test_all_that_is_wrong_with_a_codebook_is_one_message_on_one_line(
    coaudit: Coaudit, workspace: Path
) -> None:
    (workspace / "codebooks").mkdir(parents=True)
    (workspace / "codebooks" / "own.toml").write_text(OWN.replace('"Own"', "3").replace("utterance", "word"))
    err = coaudit("codebook", "list").err
    assert err.count("\n") == 1 and "\\n" not in err
    assert "own.toml: title: Input should be a valid string; unit: " in err


def test_a_pipe_or_folder_among_codebooks_is_none_of_them(coaudit: Coaudit, workspace: Path) -> None:
    (workspace / "codebooks" / "x.toml").mkdir(parents=True)
    os.mkfifo(workspace / "codebooks" / "y.toml")
    listed = coaudit("codebook", "list")
    assert listed.err == "" and "initiative" in listed.out
