"""Words of a log stay words, in HTML and in Streamlit's Markdown."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from coaudit.dashboards.drawing import lists, markup
from coaudit.pipeline.report import Number, Report, Table
from coaudit.pipeline.report.html import html
from coaudit.pipeline.report.text import markdown

TICKS = "Also rated by a`b, <script>, c``d. Run `coaudit report --full` or `--tag version=…`."


def test_only_commands_of_a_note_are_code_whatever_ticks_the_names_in_it_have() -> None:
    note = markup.sentence(TICKS)
    assert re.findall("<code>(.*?)</code>", note) == ["coaudit report --full", "--tag version=…"]
    assert "a`b, &lt;script&gt;, c``d" in note
    report = Report("now", "", (), (Table("t", "", TICKS, ("a",), (("b",),)),), ())
    assert re.findall("<code>(.*?)</code>", html(report)) == ["coaudit report --full", "--tag version=…"]
    assert "a\\`b, &lt;script&gt;, c\\`\\`d" in markdown(report) and "`coaudit report --full`" in markdown(
        report
    )


def test_a_name_that_begins_like_a_command_ends_no_paragraph_and_takes_in_nothing_behind_it() -> None:
    evil = "`coaudit \n\n<img src=x onerror=alert(1)>\n\n`"
    text = f"Rated by `coaudit, ben, {evil}. Run `coaudit report --full`."
    assert re.findall("<code>(.*?)</code>", markup.sentence(text)) == ["coaudit report --full"]
    report = Report("now", "", (), (Table("t", "", text, ("a",), (("b",),)),), ())
    assert "<img" not in markdown(report) and "`coaudit report --full`" in markdown(report)


def test_a_name_that_turns_what_follows_around_is_seen_and_turns_nothing() -> None:
    name = "\u202eevil\u2066"
    row = {"native_id": name, "condition": name, "id": "t1"}
    table = Table("t", "", "", (name,), ((name,),), heads=1)
    shown = [markup.sentence(name), markup.link("a", name), markup.facts(((name, name),))]
    shown += [
        markup.drawn(table, lambda cell: None, name),
        markup.grid(table, lambda cell: None, {name: name}),
    ]
    shown += [lists.listed([row], lambda row: "a")]
    assert not [one for one in shown if "\u202e" in one or "\u2066" in one]
    assert all("\\u202eevil\\u2066" in one for one in shown)


def test_a_command_is_one_span_of_code_whatever_ticks_it_has() -> None:
    assert markup.code("coaudit judge") == "`coaudit judge`"
    assert markup.code("coaudit judge --rater 'a  \u202eb'") == "`coaudit judge --rater 'a  \\u202eb'`"
    assert markup.code("coaudit judge --rater 'a`b\n\n``c'") == "``` coaudit judge --rater 'a`b ``c' ```"


def test_a_long_name_at_the_head_of_a_column_is_cut_and_told_where_one_points_at_it() -> None:
    name = "arm " * 80
    for shown in (
        markup.drawn(Table("t", "T", "", ("Code", name), (("a", "b"),)), lambda cell: None),
        markup.grid(Table("t", "T", "", ("Code", name), (("a", "b"),)), lambda cell: None, {}),
    ):
        head = re.search(r'<th scope="col"[^>]*title="(arm [^"]*)"[^>]*>(?:<span>)?(arm [^<]*)<', shown)
        assert head and head[1] == name and len(head[2]) == markup.HEAD and head[2].endswith("…")


def test_a_command_in_a_reason_stands_as_code() -> None:
    cell = Number(None, reason="no ratings: run `coaudit judge --codebook halting`")
    shown = markup.drawn(Table("t", "T", "", ("Code", "CA"), (("a", cell),)), lambda cell: None)
    assert "run <code>coaudit judge --codebook halting</code>" in shown


def test_models_of_two_providers_have_their_names_whole_in_a_list() -> None:
    models = ["a/gpt-x", "b/gpt-x", "meta/llama", "plain", None]
    rows = [{"id": str(i), "native_id": f"run {i}", "agent_model": name} for i, name in enumerate(models)]
    html = lists.listed(rows, lambda row: "x")
    assert re.findall('<td class="head">([^<]+)</td>', html) == ["a/gpt-x", "b/gpt-x", "llama", "plain", "–"]


def test_models_that_differ_in_the_middle_and_those_in_a_folder_keep_their_names_in_a_list() -> None:
    long = [f"lab/{'planner-' * 4}{n}{'-instruct' * 3}" for n in (1, 2)]
    assert lists._models({*long, "a/x"}) == {**{name: name for name in long}, "a/x": "x"}
    paths = ["/models/x/final", "hosted_vllm//models/y/final", "lab/final"]
    assert lists._models({*paths}) == {**{name: name for name in paths[:2]}, "lab/final": "final"}
    assert lists._models({"gpt", "openai/gpt", "lab/"}) == {
        name: name for name in ("gpt", "openai/gpt", "lab/")
    }


@pytest.mark.parametrize(
    "text, html",
    [
        (
            "by \u0646\u0648\u0631, 4 of \u0645: 5",
            "by <bdi>\u0646\u0648\u0631</bdi>, 4 of <bdi>\u0645</bdi>: 5",
        ),
        ("\u0646 2 \u0648 9 <b>", "<bdi>\u0646 2 \u0648</bdi> 9 &lt;b&gt;"),
        ("run `coaudit judge`, caf\u00e9 9", "run <code>coaudit judge</code>, caf\u00e9 9"),
    ],
)
def test_a_name_from_right_to_left_in_a_note_moves_no_number_behind_it(text: str, html: str) -> None:
    assert markup.sentence(text) == f'<div class="ca-note">{html}</div>'


def test_only_unions_of_codes_are_bold() -> None:
    one, two = Number(0.5, n=4), Number(0.25, n=2)
    codes = Table("t", "", "", ("Code", "Mode", "All"), (("C", "any", one), ("C.1", "x", two)), heads=2)
    confusion = Table("c", "", "", ("People", "Judge: yes"), (("yes", one), ("no", two)))
    shaded = (replace(table, shaded=True) for table in (codes, confusion))
    assert [markup.drawn(table, lambda cell: None).count("total") for table in shaded] == [1, 0]
