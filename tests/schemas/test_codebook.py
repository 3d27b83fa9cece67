"""The codebooks that ship with coaudit, and what is said about a codebook that is wrong."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from coaudit.pipeline import codebooks
from coaudit.schemas import UNCLEAR, Codebook

LABELS = {
    "collaborative_errors": ("present", "absent"),
    "dilemmas": ("present", "absent"),
    "confirmation": ("yes", "no"),
    "decisive_step": ("yes", "no"),
    "failures": ("present", "absent"),
    "halting": ("yes", "no"),
    "initiative": ("yes", "no"),
    "mast": ("present", "absent"),
    "responsible_agent": ("yes", "no"),
    "related_work_quality": ("1", "2", "3", "4", "5"),
    "team_faults": ("present", "absent"),
    "trail": ("present", "absent"),
    "trail_step": ("yes", "no"),
}
UNITS = {
    "collaborative_errors": "trajectory",
    "dilemmas": "trajectory",
    "confirmation": "question_reply",
    "decisive_step": "step",
    "mast": "trajectory",
    "trail": "trajectory",
    "trail_step": "step",
    "responsible_agent": "participant",
    "failures": "trajectory",
    "halting": "human_message",
    "initiative": "utterance",
    "related_work_quality": "trajectory",
    "team_faults": "trajectory",
}
MODES = {"C": 7, "SA": 6, "PL": 6, "EA": 4, "P": 3}
"""Category -> number of its modes: table 4 of arXiv 2412.15701."""
PROCESS = ("initiative", "confirmation", "halting")
MODE_NAMES = [f"{category}.{number + 1}" for category, count in MODES.items() for number in range(count)]

POLITE = """
# A comment.
name = "polite"
title = "Politeness"
unit = "utterance"
labels = ["yes", "no"]
question = "Is it polite?"

[[categories]]
category = "T"
name = "Tone"
definition = "How it is said."

[[codes]]
code = "polite"
name = "Polite"
category = "T"
definition = "It says please."
counts = ["Please."]

[[codes.examples]]
text = "Please sit down."
label = "yes"
"""
POLITE_REARRANGED = """
question   = 'Is it polite?'
unit = "utterance"
labels = [
  "yes",  # the positive label comes first
  "no",
]
title = "Politeness"
name = "polite"

[[codes]]
counts = ["Please."]
definition = '''It says please.'''
category = "T"
name = "Polite"
code = "polite"
examples = [{ label = "yes", text = "Please sit down." }]

[[categories]]
definition = "How it is said."
name = "Tone"
category = "T"
"""


def polite(old: str = "", new: str = "") -> Codebook:
    return codebooks.parse(edited(old, new), "polite.toml")


def edited(old: str, new: str) -> bytes:
    assert old in POLITE
    return POLITE.replace(old, new, 1).encode() if old else POLITE.encode()


def test_every_documented_codebook_ships_and_no_other() -> None:
    assert codebooks.names() == sorted(LABELS)


@pytest.mark.parametrize("name", LABELS)
def test_a_shipped_codebook_has_the_name_of_its_file_and_the_documented_labels_and_unit(name: str) -> None:
    codebook = codebooks.load(name)
    assert (codebook.name, codebook.labels, codebook.unit) == (name, LABELS[name], UNITS[name])


@pytest.mark.parametrize("name", LABELS)
def test_unclear_is_permitted_in_a_shipped_codebook_but_is_none_of_its_labels(name: str) -> None:
    codebook = codebooks.load(name)
    assert UNCLEAR not in codebook.labels
    assert codebook.answers == (*codebook.labels, UNCLEAR)


@pytest.mark.parametrize("name", LABELS)
def test_every_example_in_a_shipped_codebook_has_a_declared_label_and_a_reason(name: str) -> None:
    codebook = codebooks.load(name)
    for code in codebook.codes:
        for example in code.examples:
            assert example.label in codebook.labels, f"{code.code}: {example.text}"
            assert example.why, f"{code.code}: {example.text}"


@pytest.mark.parametrize("name", LABELS)
def test_every_code_in_a_shipped_codebook_says_what_counts_and_what_does_not(name: str) -> None:
    for code in codebooks.load(name).codes:
        assert code.counts and code.does_not_count, code.code


@pytest.mark.parametrize("name", LABELS)
def test_a_shipped_codebook_says_which_publication_it_follows(name: str) -> None:
    origin = codebooks.load(name).origin or ""
    assert any(
        paper in origin
        for paper in ("2412.15701", "arXiv 25", "ReHAC paper", "Collab-Overcooked paper", "CoBlock paper")
    )


@pytest.mark.parametrize("name", PROCESS)
def test_a_process_codebook_has_one_code_of_its_own_name_and_examples_of_both_labels(name: str) -> None:
    (code,) = codebooks.load(name).codes
    assert code.code == name
    assert len(code.examples) >= 8
    assert {example.label for example in code.examples} == {"yes", "no"}


@pytest.mark.parametrize("name", PROCESS)
def test_no_example_is_given_twice(name: str) -> None:
    (code,) = codebooks.load(name).codes
    assert len({(example.text, example.reply) for example in code.examples}) == len(code.examples)


def test_only_examples_of_confirmation_have_a_reply() -> None:
    for name in LABELS:
        for code in codebooks.load(name).codes:
            for example in code.examples:
                assert (example.reply is not None) == (name == "confirmation"), example.text


def test_the_failure_codebook_has_the_26_modes_in_their_order() -> None:
    assert [code.code for code in codebooks.load("failures").codes] == MODE_NAMES
    assert len(MODE_NAMES) == 26


def test_the_failure_codebook_has_the_five_categories_and_each_mode_is_in_its_own() -> None:
    failures = codebooks.load("failures")
    assert [category.category for category in failures.categories] == list(MODES)
    for code in failures.codes:
        assert code.category == code.code.partition(".")[0]


def test_every_failure_mode_has_an_own_name_and_its_usual_source() -> None:
    failures = codebooks.load("failures")
    assert len({code.name for code in failures.codes}) == 26
    assert all(code.error_source for code in failures.codes)


def test_the_usual_source_is_both_where_table_4_has_two_icons() -> None:
    both = [code.code for code in codebooks.load("failures").codes if code.error_source == "both"]
    assert both == ["C.2", "C.4", "C.5", "SA.2", "SA.4", "SA.6", "PL.1", "PL.2", "P.3"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C.1", "C.2"),
        ("C.1", "C.3"),
        ("C.3", "C.5"),
        ("C.2", "SA.5"),
        ("C.6", "P.2"),
        ("C.7", "PL.5"),
        ("C.2", "C.6"),
        ("SA.1", "SA.2"),
        ("SA.1", "SA.4"),
        ("SA.1", "SA.6"),
        ("SA.4", "SA.6"),
        ("SA.2", "PL.2"),
        ("SA.3", "PL.6"),
        ("EA.1", "EA.2"),
        ("EA.3", "EA.4"),
    ],
)
def test_two_neighbouring_modes_name_their_border_on_both_sides(one: str, other: str) -> None:
    failures = codebooks.load("failures")
    assert other in " ".join(failures.code(one).does_not_count)
    assert one in " ".join(failures.code(other).does_not_count)


def test_a_failure_mode_is_judged_with_the_whole_transcript() -> None:
    assert codebooks.load("failures").context == "transcript"


def test_the_quality_of_a_related_work_section_is_ordinal_from_worst_to_best() -> None:
    quality = codebooks.load("related_work_quality")
    assert quality.level == "ordinal"
    assert [code.code for code in quality.codes] == ["quality"]
    assert [text.partition(":")[0] for text in quality.codes[0].counts] == list(quality.labels)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Politeness", "Courtesy"),
        ("Is it polite?", "Is it rude?"),
        ("It says please.", "It says please!"),
        ("How it is said.", "How it sounds."),
        ('["Please."]', '["Please.", "Thanks."]'),
        ("sit down", "stand up"),
        ('["yes", "no"]', '["yes", "no", "rude"]'),
        ('"It says please."', '"It says please."\nerror_source = "model"'),
    ],
)
def test_a_version_changes_when_any_text_changes(old: str, new: str) -> None:
    assert polite(old, new).version != polite().version


@pytest.mark.parametrize("deep", [False, True])
def test_a_copy_with_another_text_has_a_version_of_its_own(deep: bool) -> None:
    book = polite()
    first = book.version
    assert book.model_copy(update={"context": "transcript"}, deep=deep).version != first
    assert book.model_copy(deep=deep).version == first == book.version


def test_a_version_does_not_change_with_comments_layout_or_the_order_of_keys() -> None:
    rearranged = codebooks.parse(POLITE_REARRANGED.encode(), "rearranged.toml")
    assert rearranged == polite()
    assert rearranged.version == polite().version


def test_the_shipped_codebooks_have_different_versions() -> None:
    assert len({codebooks.load(name).version for name in LABELS}) == len(LABELS)


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        (
            "[[codes]]",
            '[[codes]]\ncode = "polite"\nname = "Again"\ndefinition = "Twice."\n\n[[codes]]',
            "codebook",
            "codes must differ, got polite, polite",
        ),
        (
            'category = "T"\ndefinition',
            'category = "X"\ndefinition',
            "code polite",
            "category 'X' is not declared, have ['T']",
        ),
        ('label = "yes"', 'label = "maybe"', "codebook", "label must be one of yes, no, unclear"),
        (
            'labels = ["yes", "no"]',
            'level = "ordinal"\nlabels = ["3", "2", "1"]',
            "codebook",
            "ordinal labels must ascend, got 3, 2, 1",
        ),
        (
            'labels = ["yes", "no"]',
            'level = "ordinal"\nlabels = ["1", "1.0"]',
            "codebook",
            "ordinal labels must ascend, got 1, 1.0",
        ),
        (
            'labels = ["yes", "no"]',
            'level = "interval"\nlabels = ["1", "2", "inf"]',
            "codebook",
            "interval labels must be numbers, got 1, 2, inf",
        ),
        ('["yes", "no"]', '["yes", "Yes"]', "codebook", "labels must differ, case aside, got yes, Yes"),
        ('["yes", "no"]', '["yes"]', "labels", "at least 2 items"),
        ('definition = "It says please."\n', "", "codes.0.definition", "Field required"),
        ("counts =", "count =", "codes.0.count", "Extra inputs are not permitted"),
        ('unit = "utterance"', 'unit = "sentence"', "unit", "'question_reply'"),
        ('name = "polite"', 'name = "Very polite"', "name", "match pattern"),
        ('name = "polite"', "name = polite", "line 3", "not TOML"),
    ],
    ids=[
        "a code twice",
        "a category that is not declared",
        "an example's label that is not declared",
        "descending ordinal labels",
        "two ordinal labels of one number",
        "a label without end",
        "two labels that differ in case only",
        "a single label",
        "no definition",
        "an unknown key",
        "an unknown unit",
        "a name with a space",
        "no TOML",
    ],
)
def test_an_error_in_a_codebook_names_the_file_the_place_and_the_rule(
    old: str, new: str, place: str, rule: str
) -> None:
    with pytest.raises(codebooks.CodebookError) as error:
        polite(old, new)
    message = str(error.value)
    assert message.startswith("polite.toml: ")
    assert place in message and rule in message


def test_all_errors_in_a_codebook_are_named_at_once() -> None:
    broken = edited('title = "Politeness"\nunit = "utterance"', 'unit = "sentence"')
    with pytest.raises(codebooks.CodebookError) as error:
        codebooks.parse(broken, "polite.toml")
    source, _, rules = str(error.value).partition(": ")
    assert source == "polite.toml"
    assert [rule.split(": ")[0] for rule in rules.split("; ")] == ["title", "unit"]


def test_bytes_that_are_no_text_are_not_toml() -> None:
    with pytest.raises(codebooks.CodebookError, match=r"scan\.toml: not TOML"):
        codebooks.parse(b"\xff\xfe\x00", "scan.toml")


def test_an_unknown_codebook_is_an_error_that_names_the_choices() -> None:
    with pytest.raises(
        codebooks.CodebookError, match=r"'mood', expected one of collaborative_errors, confirmation"
    ):
        codebooks.load("mood")


def test_a_codebooks_scope_is_checked_and_is_no_part_of_its_version() -> None:
    shipped = codebooks.load("related_work_quality")
    assert shipped.applies_to == {"task": "related_work"}
    free = Codebook.model_validate({**shipped.model_dump(exclude={"version"}), "applies_to": {}})
    assert free.version == shipped.version
    for wrong, why in (
        ({"native_id": "x"}, "tells no trajectories apart"),
        ({"task": ""}, "a field and its"),
    ):
        with pytest.raises(ValidationError, match=why):
            Codebook.model_validate({**shipped.model_dump(exclude={"version"}), "applies_to": wrong})


def test_an_accented_letter_of_a_code_or_label_may_be_one_character_or_two() -> None:
    code = {"code": "\u00e9chec", "name": "x", "definition": "x"}
    fields = {"name": "own", "title": "x", "unit": "trajectory", "question": "x?", "codes": [code]}
    book = Codebook.model_validate({**fields, "labels": ["r\u00e9ussi", "non"]})
    assert book.label("R\u0065\u0301USSI") == "r\u00e9ussi"
    assert book.code("\u0065\u0301chec").code == "\u00e9chec"
    with pytest.raises(ValidationError, match="labels must differ"):
        Codebook.model_validate({**fields, "labels": ["r\u00e9ussi", "r\u0065\u0301ussi"]})
    twins = [code, code | {"code": "\u0065\u0301chec"}]
    with pytest.raises(ValidationError, match="codes must differ"):
        Codebook.model_validate({**fields, "labels": ["yes", "no"], "codes": twins})


def test_a_label_that_is_a_number_is_meant_however_it_is_written() -> None:
    book = codebooks.load("related_work_quality")
    assert {book.label(answer) for answer in ("4", " 4.0 ", "4,0", "4e0")} == {"4"}
    assert book.label("Unclear") == "unclear"
    for answer in ("4.5", "nan", "four", "true", "1,000"):
        with pytest.raises(ValueError, match="label must be one of 1, 2, 3, 4, 5, unclear"):
            book.label(answer)


@pytest.mark.parametrize("level", ["ordinal", "interval", "nominal"])
def test_unclear_is_no_place_on_a_scale_but_may_be_one_of_several_labels(level: str) -> None:
    """It was a rank above the last, and `compare` ended with a traceback."""
    content = codebooks.load("related_work_quality").model_dump(exclude={"version"})
    book = Codebook.model_validate({**content, "level": level, "labels": [*content["labels"], "Unclear"]})
    assert book.labels == (*content["labels"], *(["Unclear"] if level == "nominal" else []))
    assert book.label("UNCLEAR") == ("Unclear" if level == "nominal" else UNCLEAR)
