"""Patterns of mappings on texts for which regular expressions take for ever."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from coaudit.pipeline.ingest import labels
from coaudit.pipeline.systems.formats.fields import expressions, paths
from coaudit.pipeline.systems.formats.fields.mapping import Turns
from coaudit.pipeline.systems.formats.messages import turns
from tests.pipeline.systems.formats.logs import outline, read, write_lines

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
    paths.expression.cache_clear()


def test_a_pattern_within_its_limit_does_what_pythons_does() -> None:
    words = expressions.Expression(r"(?P<word>\w+)")
    assert [match["word"] for match in words.matches("one two")] == ["one", "two"]
    assert words.sub("x", "one two") == "x x" and "word" in words.groupindex
    assert words.match(" one") is None and words.search(" one")


@pytest.mark.parametrize(
    "pattern", ["a{e}", "a{i}", "(a){s<=1}", "{d<=1}", "[{a]{e}", r"a\{2}", "a{,2}$", "a{2,}"]
)
def test_braces_mean_what_they_mean_in_python(pattern: str) -> None:
    texts = ["a", "aa", "b", "", "a{e}", "a{i}", "a{s<=1}", "{d<=1}", "{{e}", "a{2}"]
    pythons = [re.compile(pattern).search(text) for text in texts]
    ours = [expressions.Expression(pattern).search(text) for text in texts]
    assert [one and one.span() for one in ours] == [one and one.span() for one in pythons]
    assert expressions.Expression(r"^\N{DIGIT ONE}\p{Lu}$").search("1A")


def test_a_match_that_takes_too_much_memory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(text: str, timeout: float) -> None:
        raise MemoryError  # as of `(?R)`, after half a GiB

    pattern = expressions.Expression("a")
    monkeypatch.setattr(pattern, "_compiled", SimpleNamespace(search=search))
    with pytest.raises(ValueError, match="takes too much memory"):
        pattern.search("a")


def test_the_limit_of_a_pattern_that_cuts_texts_into_turns_gets_shorter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expressions, "LEAST", 0.05)
    cut = Turns(pattern=PAIRS)
    for limit in ("0.2", "0.1"):
        with pytest.raises(ValueError, match=f"takes more than {limit} seconds"):
            list(turns.turns_of_text(HOSTILE, cut))


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


@pytest.mark.parametrize("how", ["turns", "filter", "growing"])
def test_a_pattern_without_an_end_costs_its_record_and_not_those_behind_it(tmp_path: Path, how: str) -> None:
    lines = ["A: one", HOSTILE, "A: two"]
    talks = [[{"role": "user", "content": text}, {"role": "assistant", "content": "Yes."}] for text in lines]
    log = write_lines(
        tmp_path / "a.jsonl",
        *(
            {"id": name, "text": text, "messages": talk}
            for name, text, talk in zip("rst", lines, talks, strict=True)
        ),
    )
    head = '[constants]\nsystem = "x"\n[trajectory]\nnative_id = "id"\n'
    if how == "turns":
        head += f"[turns]\nat = 'text'\npattern = '(?P<who>^A): |{PAIRS}'\n"
        head += '[event]\nrole = "text[].who"\ntext = "text[].text"\n[roles]\nA = "human"\n'
    else:
        head += '[messages]\nat = "messages"\n' + ("growing = true\n" if how == "growing" else "")
        head += f"[filter]\nskip = [{{ 'messages[].content' = '~{PAIRS}' }}]\n"
    runs, wrong = read("mapped", log, map=head)
    assert [run.native_id for run in runs] == ["r", "t"]
    assert [(one.line, "takes more than" in one.reason) for one in wrong] == [(2, True)]


def test_a_pattern_is_asked_once_of_each_call_that_may_continue_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time its limit may be lower, and what fails then is no record's."""
    texts: list[str] = []
    search = expressions.Expression.search

    def counted(self: expressions.Expression, text: str) -> expressions.Match | None:
        texts.append(text)
        return search(self, text)

    monkeypatch.setattr(expressions.Expression, "search", counted)
    calls = ({"id": n, "messages": [{"role": "user", "content": n}]} for n in ("one", "two"))
    how = '[trajectory]\nnative_id = "id"\n[messages]\nat = "messages"\ngrowing = true\n'
    runs, _ = read(
        "mapped",
        write_lines(tmp_path / "a.jsonl", *calls),
        map=how + "[filter]\nskip = [{ 'messages[].content' = '~^none$' }]\n",
    )
    assert [run.native_id for run in runs] == ["one", "two"]
    assert texts == ["one", "two"]
