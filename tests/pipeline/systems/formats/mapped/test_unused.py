"""Paths of a mapping that lead nowhere are named."""

from __future__ import annotations

from pathlib import Path

from coaudit.pipeline.systems.formats.mapped.unused import LOOK, unused_paths
from tests.conftest import Coaudit
from tests.pipeline.systems.formats.logs import write_lines

MAP = """
[trajectory]
native_id = ["$file", "id"]
condition = "arm"
[tags]
group = "meta.group"
[outcomes]
satisfaction = "stars"
[scores]
at = "marks"
name = "name"
value = ["value", "label"]
[event]
role = "log[].role"
text = ["log[].en", "log[].de"]
arguments = ["log[].args", "log[].target"]
time = "day"
[[kinds]]
where = { "log[].tool" = "ask" }
kind = "message"
[filter]
skip = [{ "log[].role" = "heartbeat" }]
"""
SESSION = {
    "id": 1,
    "arm": None,
    "meta": '{"group": "a"}',
    "stars": 4,
    "day": "2026-01-02",
    "marks": [{"name": "quality", "label": "B"}],
    "log": [{"role": "user", "de": "Ulm?"}, {"role": "agent", "tool": "ask", "args": {}, "target": 1}],
}


def test_a_mapping_whose_paths_all_lead_somewhere_is_not_remarked_upon(tmp_path: Path) -> None:
    assert unused_paths([write_lines(tmp_path / "a.jsonl", {"id": 0}, SESSION)], MAP) is None


def test_each_path_at_which_no_record_has_a_field_is_named_with_its_key(tmp_path: Path) -> None:
    wrong = MAP
    for right, typo in (
        ('"arm"', '"armm"'),
        ("meta.group", "meta.grp"),
        ('"stars"', '"sterne"'),
        ("log[].target", "log[].goal"),
        ("log[].tool", "log[].toool"),
        ('"day"', '"days"'),
        ('"label"', '"word"'),
    ):
        wrong = wrong.replace(right, typo)
    assert unused_paths([write_lines(tmp_path / "a.jsonl", SESSION, SESSION)], wrong) == (
        "none of the 2 records has a field where the mapping looks for event.arguments ('log[].goal'), "
        "event.time ('days'), kinds[0].where ('log[].toool'), outcomes.satisfaction ('sterne'), "
        "scores.value ('value'), scores.value ('word'), tags.group ('meta.grp'), "
        "trajectory.condition ('armm')"
    )


def test_of_many_records_the_first_are_looked_at(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", *[{**SESSION, "id": n} for n in range(LOOK + 1)])
    sentence = unused_paths([path], MAP.replace('"arm"', '"armm"'))
    assert sentence is not None and sentence.startswith(f"none of the first {LOOK} records has a field")


def test_ingest_and_its_dry_run_name_paths_that_lead_nowhere(coaudit: Coaudit, tmp_path: Path) -> None:
    log = write_lines(tmp_path / "a.jsonl", SESSION)
    rules = tmp_path / "m.toml"
    rules.write_text(MAP.replace('"stars"', '"sterne"'), encoding="utf-8")
    for more in (["--dry-run"], []):
        result = coaudit("ingest", str(log), "--map", str(rules), *more)
        assert "looks for outcomes.satisfaction ('sterne')" in result.err
