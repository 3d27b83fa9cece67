"""Patterns of mappings on texts for which regular expressions take for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from coaudit.pipeline.ingest import labels
from coaudit.pipeline.systems.formats import expressions
from tests.pipeline.systems.formats.files import outline, read, write_lines

HOSTILE = "a" * 60 + "!"
"""Fibonacci's 61st number of ways to part it into ones and twos."""
PAIRS = r"^(a|aa)+$"
RULES = {
    "actions": "[[actions]]\npattern = '{}'\nname = 'say'\n",
    "roles": "[[roles]]\nwhere = {{ text = '~{}' }}\nkind = 'agent'\n",
}


@pytest.fixture(autouse=True)
def _short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "SECONDS", 0.2)
    monkeypatch.setattr(expressions, "LEAST", 0.2)


def test_a_pattern_within_its_limit_does_what_pythons_does() -> None:
    words = expressions.Expression(r"(?P<word>\w+)")
    assert [match["word"] for match in words.matches("one two")] == ["one", "two"]
    assert words.sub("x", "one two") == "x x" and "word" in words.groupindex
    assert words.match(" one") is None and words.search(" one")


def test_what_pythons_engine_never_finishes_has_no_match_at_once() -> None:
    assert expressions.Expression(r"^(\w+\s?)*$").search("a" * 40 + "!") is None


@pytest.mark.parametrize("pattern", ["(", "a{99999999999999999999}", "(?P<a>x)(?P<a>"])
def test_what_is_no_expression_is_named(pattern: str) -> None:
    with pytest.raises(ValueError, match="no regular expression"):
        expressions.Expression(pattern)


def test_a_match_without_an_end_is_an_error_that_names_pattern_and_text() -> None:
    endless = expressions.Expression(PAIRS)
    for work in (endless.search, endless.match, endless.matches, lambda text: endless.sub("", text)):
        with pytest.raises(ValueError, match=r"takes more than 0\.2 seconds on a text of 61"):
            work(HOSTILE)
    assert endless.search("aaa")


@pytest.mark.parametrize("rule", RULES)
def test_a_text_on_which_a_pattern_has_no_end_costs_its_event_alone(tmp_path: Path, rule: str) -> None:
    talk = [("s", "user", "Go."), ("s", "agent", HOSTILE), ("s", "agent", "Gone!"), ("t", "user", "Bye.")]
    log = write_lines(tmp_path / "a.jsonl", *({"s": s, "role": role, "text": text} for s, role, text in talk))
    how = '[trajectory]\nnative_id = "s"\n[event]\nrole = "role"\ntext = "text"\n'
    known = "[[roles]]\nwhere = { role = '*' }\nkind = 'human'\n" if rule == "roles" else ""
    found, wrong = read("mapped", log, map=how + RULES[rule].format(PAIRS) + known)
    assert [[text for _, _, text in outline(run.events)] for run in found] == [["Go.", "Gone!"], ["Bye."]]
    assert [(one.line, one.reason.partition(" takes")[0]) for one in wrong] == [(2, f"the pattern {PAIRS!r}")]


def test_a_label_on_which_a_pattern_has_no_end_costs_its_record_alone(tmp_path: Path) -> None:
    rows = write_lines(tmp_path / "a.jsonl", {"t": "s", "mode": HOSTILE}, {"t": "s", "mode": "aaa"})
    mapping = labels.parse(
        '[constants]\ncodebook = "failures"\nrater_kind = "human"\nrater = "ann"\nlabel = "present"\n'
        f"[rating]\ntrajectory = 't'\ncode = 'mode'\n[patterns]\ncode = '{PAIRS}'\n",
        "labels.toml",
    )
    wrong, label = labels.read(rows, mapping)
    assert isinstance(label, labels.LoggedLabel) and label.line == 2
    assert not isinstance(wrong, labels.LoggedLabel) and wrong.line == 1
