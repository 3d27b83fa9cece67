"""What a newcomer is told of a wrong file, an empty one, and a page in one piece."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Coaudit


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("empty.jsonl", b"", "the file is empty"),
        ("bin.dat", b"\x00\x01\x88" * 500, "a binary file, and not of a format that is read"),
        ("broken.json", b'{"a": 1', "not JSON"),
        ("folder/empty.json", b"", "the folder is empty"),
    ],
)
def test_what_cannot_be_mapped_is_refused_with_the_reason(
    tmp_path: Path, coaudit: Coaudit, name: str, content: bytes, why: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    refused = coaudit("map", tmp_path / name.partition("/")[0], status=1)
    assert why in refused.err and len(refused.err.splitlines()) == 1


def test_a_folder_without_files_is_said_to_be_empty_by_map_and_ingest(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    (tmp_path / "logs").mkdir()
    assert "no file in it" in coaudit("map", tmp_path / "logs", status=1).err
    assert "the folder is empty" in coaudit("ingest", tmp_path / "logs", status=1).err


def test_a_page_without_turns_is_nobodys_and_how_to_cut_it_is_said(tmp_path: Path, coaudit: Coaudit) -> None:
    path = tmp_path / "page.txt"
    path.write_text("Plain words, and no turns in them.\n", encoding="utf-8")
    told = coaudit("map", path, "--out", tmp_path / "map.toml")
    assert "not understood: no list of turns" in told.err and "[turns]" in told.err
    advice = coaudit("ingest", path, status=1).err
    assert "no logs of a known system in it: it looks like 1 record of text" in advice
    assert f"`coaudit map {path} --out map.toml`" in advice


def test_a_report_is_not_written_under_an_ending_that_it_is_not(tmp_path: Path, coaudit: Coaudit) -> None:
    refused = coaudit("report", "--out", tmp_path / "report.pdf", status=2)
    assert "no report has the ending .pdf" in refused.err and not (tmp_path / "report.pdf").exists()


def test_a_draft_of_lists_within_lists_says_how_they_are_read(tmp_path: Path, coaudit: Coaudit) -> None:
    long = "The answer depends on many things, as we will see below, and on some more."
    lines = [
        f'{{"question": {n}, "choices": [{{"turns": ["One {n}. {long}", "Two {n}. {long}"]}}]}}\n'
        for n in range(5)
    ]
    path, out = tmp_path / "answers.jsonl", tmp_path / "map.toml"
    path.write_text("".join(lines), encoding="utf-8")
    told = coaudit("map", path, "--out", out).err
    refusal = "which ingest refuses until what is not understood is in it (event: needs actor or role)"
    assert f"{out}: the draft, {refusal}; next: " in told
    assert "event: needs actor or role" in coaudit("ingest", path, "--map", out, status=1).err
    out.write_text(
        '[constants]\nrole = "agent"\n[event]\ntext = "choices[0].turns[].text"\n', encoding="utf-8"
    )
    assert '[event] text = "choices[0].turns[].text"' in told
    (first, *_) = coaudit("ingest", path, "--map", out, "--dry-run", "--json").json["trajectories"]
    assert [event["text"][:6] for event in first["events"]] == ["One 0.", "Two 0."]


def test_what_is_wrong_in_a_folder_is_said_with_the_name_of_the_file(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    path = tmp_path / "logs" / "sub" / "broken.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"a":', encoding="utf-8")
    assert "sub/broken.json: not JSON" in coaudit("map", tmp_path / "logs", status=1).err
    assert coaudit("map", path, status=1).err.count("broken.json") == 1
