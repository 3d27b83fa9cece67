"""Labels in tables and JSON through a mapping file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from openpyxl import Workbook

from coaudit.pipeline.errors import SourceError
from coaudit.pipeline.ingest.imports import ratings
from coaudit.pipeline.ingest.labels import LoggedLabel, parse, read
from coaudit.pipeline.systems.formats.files import sheets
from coaudit.schemas import Quarantined
from tests.conftest import Coaudit
from tests.pipeline.stores import made

MAP = """
[constants]
codebook = "failures"
rater_kind = "human"
[rating]
trajectory = "id"
code = "mode"
[raters]
ann = "ann_says"
bob = "bob_says"
[labels]
true = "present"
false = "absent"
x = "present"
n = ""
[patterns]
code = '^[A-Z]\\.\\d'
"""


def said(path: Path, mapping: str) -> list[dict[str, object]]:
    return [item.values for item in read(path, parse(mapping, "m.toml")) if isinstance(item, LoggedLabel)]


def test_a_column_a_rater_is_a_label_each_and_an_empty_cell_none(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("id,mode,ann_says,bob_says\ns1,C.1 Late,x,n\ns2,C.1 Late,,x\n", encoding="utf-8")
    base = {"codebook": "failures", "rater_kind": "human", "code": "C.1", "label": "present"}
    assert said(path, MAP) == [
        {**base, "trajectory": "s1", "rater": "ann"},
        {**base, "trajectory": "s2", "rater": "bob"},
    ]


def test_the_format_of_a_table_parted_by_tabs_may_be_called_tsv(tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text("id\tmode\tann_says\tbob_says\ns1\tC.1 Late, often\tx\t\n", encoding="utf-8")
    (one,) = said(path, f'[input]\nformat = "tsv"\n{MAP}')
    assert one["rater"] == "ann"


def test_a_column_that_the_file_lacks_is_named_with_those_that_it_has(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("id,mode,ann_says,Bob_says\ns1,C.1 Late,x,n\ns2,C.1 Late,,x\n", encoding="utf-8")
    items = list(read(path, parse(MAP, "m.toml")))
    assert [item.values["rater"] for item in items if isinstance(item, LoggedLabel)] == ["ann"]
    (wrong,) = [item.reason for item in items if isinstance(item, Quarantined)]
    assert wrong == (
        "raters.bob: none of 2 records has anything at 'bob_says'; "
        "they have 'id', 'mode', 'ann_says', 'Bob_says'"
    )
    path.write_text("id^mode^ann_says^bob_says\ns1^C.1 Late^x^n\n", encoding="utf-8")
    reasons = [item.reason for item in read(path, parse(MAP, "m.toml")) if isinstance(item, Quarantined)]
    assert [reason.split(":")[0] for reason in reasons] == [
        *("rating.trajectory", "rating.code", "raters.ann", "raters.bob")
    ]


def test_a_table_of_labels_without_a_mapping_is_told_once_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("trajectory,code,label\n" + "s1,C.1,yes\n" * 5)
    store = made(tmp_path / "workspace")
    (wrong,) = ratings(store, path).quarantined
    assert wrong.reason == (
        "none of its 6 lines is JSON; a table of labels is read with --map (docs/labels.md)"
    )
    path.write_text("trajectory,code,label\ns1,C.1,yes\n")
    (wrong,) = ratings(store, path).quarantined
    assert wrong.reason.startswith("none of its 2 lines is JSON; a table")
    path.write_text("one\n" * 5 + '{"trajectory": "s1"}\n')
    assert len(ratings(store, path).quarantined) == 6, "what stands beside a line of JSON is told by itself"


def test_labels_in_another_encoding_are_read_as_the_mapping_says(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes("id,mode,ann_says,bob_says\nKöln,C.1 Late,x,n\n".encode("cp1252"))
    (wrong,) = read(path, parse(MAP, "m.toml"))
    assert isinstance(wrong, Quarantined) and wrong.reason.startswith("not UTF-8 (byte 0xf6 at ")
    assert {one["trajectory"] for one in said(path, f'{MAP}[input]\nencoding = "cp1252"\n')} == {"Köln"}
    with pytest.raises(SourceError, match="expected one such as cp1252 or utf-16, got 'nope'"):
        parse(f'{MAP}[input]\nencoding = "nope"\n', "m.toml")


def test_the_sheets_of_a_workbook_are_read_as_tables(tmp_path: Path) -> None:
    path = tmp_path / "labels.xlsx"
    book = Workbook()
    book.remove(book.active)
    for title, rows in (("first", [["s1", "C.1 Late", "x", "n"]]), ("second", [[7, "C.1 Late", None, True]])):
        sheet = book.create_sheet(title)
        for row in [["id", "mode", "ann_says", "bob_says"], *rows]:
            sheet.append(row)
    book.save(path)
    there = [(one["trajectory"], one["rater"], one["label"]) for one in said(path, MAP)]
    assert there == [("s1", "ann", "present"), ("7", "bob", "present")]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"no spreadsheet"])
def test_a_workbook_that_is_none_is_quarantined(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "labels.xlsx"
    path.write_bytes(content)
    (wrong,) = read(path, parse(MAP, "m.toml"))
    assert isinstance(wrong, Quarantined) and wrong.source == str(path)


def test_a_workbook_that_unpacks_beyond_bounds_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "labels.xlsx"
    book = Workbook()
    book.active.append(["id", "mode", "ann_says", "bob_says"])
    book.save(path)
    monkeypatch.setattr(sheets, "MAX_BYTES", 1000)
    (wrong,) = read(path, parse(MAP, "m.toml"))
    assert isinstance(wrong, Quarantined) and "unpacked" in wrong.reason


def test_a_column_a_code_and_truths_of_json(tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    path.write_text(json.dumps([{"id": 7, "late": True, "rude": False, "by": "ann"}]), encoding="utf-8")
    mapping = MAP.replace('code = "mode"\n', 'rater = "by"\n')
    mapping = (
        mapping[: mapping.index("[raters]")]
        + '[codes]\nC1 = "late"\nC2 = "rude"\n[labels]\ntrue = "present"\n'
    )
    assert [(one["trajectory"], one["code"], one["rater"], one["label"]) for one in said(path, mapping)] == [
        ("7", "C1", "ann", "present"),
        ("7", "C2", "ann", "false"),
    ]


def test_an_empty_text_may_mean_a_label(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"id": "s", "mode": "C.1", "ann_says": "", "bob_says": null}\n', encoding="utf-8")
    mapping = MAP.replace('n = ""', '"" = "absent"')
    assert [(one["rater"], one["label"]) for one in said(path, mapping)] == [("ann", "absent")]
    assert not said(path, MAP)


def test_labels_in_a_list_of_each_record(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    errors = [{"at": "3", "kind": "C.1"}, {"at": 4.0, "kind": "C.2"}]
    path.write_text(
        json.dumps({"id": "s1", "errors": errors}) + '\n{"id": "s2", "errors": 5}\n', encoding="utf-8"
    )
    mapping = """
        [constants]
        codebook = "steps"
        rater = "ann"
        label = "yes"
        [rating]
        trajectory = "id"
        event = "errors[].at"
        code = "errors[].kind"
    """
    assert [(one["trajectory"], one["event"], one["code"]) for one in said(path, mapping)] == [
        ("s1", 3, "C.1"),
        ("s1", 4, "C.2"),
    ]
    wrong = [item for item in read(path, parse(mapping, "m")) if isinstance(item, Quarantined)]
    assert [(item.line, item.reason) for item in wrong] == [(2, "errors: expected a list of labels")]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('codebook = "failures"', "", "constants.codebook: missing"),
        ('code = "mode"', "", "rating.code: missing"),
        (
            "[labels]",
            '[codes]\n"C.1" = "late"\n[labels]',
            "a rater's labels ([raters]) or a code's ([codes])",
        ),
        ('[raters]\nann = "ann_says"\nbob = "bob_says"', "", "rating.rater: missing"),
        ('[raters]\nann = "ann_says"\nbob = "bob_says"', 'rater = "by"', "rating.label: missing"),
        ('trajectory = "id"', "", "rating.trajectory: Field required"),
        ('trajectory = "id"', 'trajectory = "a[].b[].c"', "rating.trajectory: labels are in one list"),
        ("\\d", "(", "no regular expression"),
        ("[labels]", "[labels", "not TOML"),
        ("[rating]", "[event]", "a mapping of logs, for `ingest`: a mapping of labels has a table [rating]"),
        ("[rating]", "[rated]", "no mapping of labels: a mapping of labels has a table [rating]"),
    ],
)
def test_a_mapping_that_is_none_is_refused_with_its_place(old: str, new: str, why: str) -> None:
    with pytest.raises(SourceError, match=r"m\.toml: ") as error:
        parse(MAP.replace(old, new), "m.toml")
    assert why in str(error.value)


def test_labels_of_a_spreadsheet_are_checked_like_any_rating(tmp_path: Path, coaudit: Coaudit) -> None:
    log = tmp_path / "log.jsonl"
    turns = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "Done."}]
    log.write_text(json.dumps({"id": "s1", "messages": turns}) + "\n", encoding="utf-8")
    coaudit("ingest", log)
    mapping, labels = tmp_path / "map.toml", tmp_path / "labels.csv"
    mapping.write_text(MAP.replace("\\\\", "\\"), encoding="utf-8")
    labels.write_text(
        "id,mode,ann_says,bob_says\ns1,C.1,x,x\nnone,C.1,x,\ns1,Z.9,x,\ns1,C.1,,maybe\n", encoding="utf-8"
    )
    document = coaudit("ratings", "import", labels, "--map", mapping, "--json").json
    assert document["imported"] == 2
    assert [(item["line"], item["reason"][:40]) for item in document["quarantined"]] == [
        (3, "no trajectory 'none' in the workspace"),
        (4, "codebook 'failures' has no code 'Z.9', e"),
        (5, "label must be one of present, absent, un"),
    ]


def test_names_and_values_are_meant_whether_an_accented_letter_has_one_character_or_two(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    one, two = "\u00e9", "\u0065\u0301"
    log, mapping, labels = tmp_path / "log.jsonl", tmp_path / "map.toml", tmp_path / "labels.csv"
    turns = [{"role": "user", "content": "Go.", "name": one}, {"role": "assistant", "content": "Done."}]
    log.write_text(json.dumps({"id": one, "messages": turns}) + "\n", encoding="utf-8")
    coaudit("ingest", log)
    fields = 'trajectory = "id"\nparticipant = "who"\nlabel = "said"\n'
    mapping.write_text(
        '[constants]\ncodebook = "responsible_agent"\ncode = "decisive"\nrater = "ann"\n'
        f'[rating]\n{fields}[labels]\n"{one}" = "yes"\n',
        encoding="utf-8",
    )
    labels.write_text(f"id,who,said\n{two},{two},{two}\n", encoding="utf-8")
    assert coaudit("ratings", "import", labels, "--map", mapping, "--json").json["imported"] == 1


def test_of_trajectories_whose_names_only_look_alike_each_has_its_own(
    tmp_path: Path, coaudit: Coaudit
) -> None:
    log, outcomes = tmp_path / "log.jsonl", tmp_path / "outcomes.jsonl"
    names = ("\u00e9", "\u0065\u0301")
    turns = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "Done."}]
    talks = (turns, [*turns, turns[0]])
    lines = [json.dumps({"id": one, "messages": talk}) for one, talk in zip(names, talks, strict=True)]
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    coaudit("ingest", log)
    outcomes.write_text(
        "".join(json.dumps({"trajectory": one, "name": "ease", "value": 4}) + "\n" for one in names),
        encoding="utf-8",
    )
    assert coaudit("outcomes", "import", outcomes, "--json").json["imported"] == 2


LONG = """
[constants]
codebook = "steps"
code = "C.1"
[rating]
trajectory = "id"
event = "at"
rater = "by"
label = "said"
"""


def table(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(("id,at,by,said", *rows)) + "\n", encoding="utf-8")
    return path


def test_names_in_a_table_stay_as_they_are_written(tmp_path: Path) -> None:
    path = table(tmp_path / "labels.csv", "1.1,3,7,1", "1.10,4,7,0")
    assert [(one["trajectory"], one["event"], one["rater"]) for one in said(path, LONG)] == [
        ("1.1", 3, "7"),
        ("1.10", 4, "7"),
    ]


def test_whole_numbers_beside_an_empty_cell_are_those_without_a_point(tmp_path: Path) -> None:
    path = table(tmp_path / "labels.csv", "s1,3.0,7.0,1.0", "s1,,,")
    assert [(one["event"], one["rater"]) for one in said(path, LONG)] == [(3, "7")]
    path = tmp_path / "labels.jsonl"
    path.write_text('{"id": "s1", "at": 3.0, "by": 7.0, "said": 1.0}\n')
    assert [(one["event"], one["rater"], one["label"]) for one in said(path, LONG)] == [(3, "7", "1")]


@pytest.mark.parametrize(
    ("cell", "key"),
    [("True", "True"), ("TRUE", "true"), ("1.0", "1.0"), ("1.0", "1"), (" X ", "x"), ("x", "X")],
)
def test_a_value_means_a_label_however_it_is_written(cell: str, key: str, tmp_path: Path) -> None:
    path = table(tmp_path / "labels.csv", f"s1,1,ann,{cell}")
    (one,) = said(path, f'{LONG}[labels]\n"{key}" = "present"\n')
    assert one["label"] == "present"


def test_values_that_differ_in_case_alone_may_mean_different_labels(tmp_path: Path) -> None:
    path = table(tmp_path / "labels.csv", "s1,1,ann,x", "s1,2,ann,X", "s1,3,ann,3.07", "s1,4,ann, X")
    labels = '[labels]\nx = "absent"\nX = "present"\n37 = "unclear"\n'
    assert [one["label"] for one in said(path, LONG + labels)] == ["absent", "present", "3.07", "present"]


def test_a_label_that_its_pattern_does_not_fit_is_not_passed_over(tmp_path: Path) -> None:
    path = table(tmp_path / "labels.csv", "s1,1,ann,yes (sure)", "s1,2,ann,Not sure", "s1,3,ann,")
    labels = [one["label"] for one in said(path, f"{LONG}[patterns]\nlabel = '^(yes|no)\\b'\n")]
    assert labels == ["yes", "Not sure"]


def test_a_column_with_a_dot_in_its_name_is_told_how_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("Input.id,at,by,said\ns1,1,ann,yes\n")
    *_, wrong = read(path, parse(LONG.replace('"id"', '"Input.id"'), "m.toml"))
    assert isinstance(wrong, Quarantined)
    assert wrong.reason.endswith(r"anything at 'Input.id'; a column of that name is written Input\.id")
    assert said(path, LONG.replace('"id"', r"'Input\.id'"))[0]["trajectory"] == "s1"


def test_the_items_of_a_list_may_be_the_codes(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"id": "s1", "label": ["C.1", "P.3"]}\n{"id": "s2", "label": []}\n{"id": "s3"}\n')
    mapping = """
        [constants]
        codebook = "failures"
        rater = "ann"
        label = "present"
        [rating]
        trajectory = "id"
        code = "label[]"
    """
    assert [(one["trajectory"], one["code"]) for one in said(path, mapping)] == [("s1", "C.1"), ("s1", "P.3")]
    assert not [one for one in read(path, parse(mapping, "m.toml")) if isinstance(one, Quarantined)]
    path.write_text('{"id": "s1"}\n{"id": "s2", "label": "C.1"}\n')
    assert [str(one).partition(": ")[2] for one in read(path, parse(mapping, "m.toml"))] == [
        "label: expected a list of labels",
        "rating.code: none of 2 records has anything at 'label[]'; they have 'id', 'label'",
    ]


def test_labels_that_somebody_discarded_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(
        "id,at,by,said,status\ns1,1,ann,yes,Approved\ns1,2,ann,no,Rejected\ns1,3,bob,no,1\n", encoding="utf-8"
    )
    chosen = f'{LONG}[filter]\nkeep = [{{ status = "Approved" }}, {{ status = "~^\\\\d" }}]\n'
    assert [one["event"] for one in said(path, chosen)] == [1, 3]
    without = f'{LONG}[filter]\nskip = [{{ status = ["Rejected", "1"], by = "ann" }}]\n'
    assert [one["event"] for one in said(path, without)] == [1, 3]
    records = [
        {"id": "s1", "all": [{"who": "u1", "say": "yes", "status": "submitted"}, {"who": "u2", "say": "no"}]}
    ]
    path = tmp_path / "labels.json"
    path.write_text(json.dumps(records))
    mapping = """
        [constants]
        codebook = "failures"
        code = "C.1"
        [rating]
        trajectory = "id"
        label = "all[].say"
        rater = "all[].who"
        [filter]
        keep = [{ "all[].status" = "submitted" }]
    """
    assert [one["rater"] for one in said(path, mapping)] == ["u1"]


def test_a_filter_finds_a_number_of_a_table_as_a_text_also_beside_an_empty_cell(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("id,at,by,said,state\ns1,1,ann,yes,1\ns1,2,ann,no,2\ns1,3,ann,no,\n", encoding="utf-8")
    without = f'{LONG}[filter]\nskip = [{{ state = "2" }}]\n'
    assert [one["event"] for one in said(path, without)] == [1, 3]


def test_items_of_a_list_are_codes_or_have_fields_and_not_both() -> None:
    codes = 'code = "all[]"\nlabel = "all[].said"'
    both = LONG.replace('code = "C.1"\n', "").replace('label = "said"', codes)
    with pytest.raises(SourceError, match=r"items of all are values \(all\[\]\) or have fields"):
        parse(both, "m.toml")


def test_a_filter_that_takes_nothing_or_looks_nowhere_is_told(tmp_path: Path) -> None:
    path = table(tmp_path / "labels.csv", "s1,1,ann,yes")
    (wrong,) = read(path, parse(f'{LONG}[filter]\nkeep = [{{ by = "bob" }}]\n', "m.toml"))
    assert isinstance(wrong, Quarantined) and wrong.reason == "filter: takes no label of 1 record"
    *_, wrong = read(path, parse(f'{LONG}[filter]\nskip = [{{ state = "draft" }}]\n', "m.toml"))
    assert isinstance(wrong, Quarantined)
    assert wrong.reason.startswith("filter: none of 1 record has anything at 'state'; they have 'id'")
    with pytest.raises(SourceError, match="no regular expression"):
        parse(f'{LONG}[filter]\nkeep = [{{ by = "~(" }}]\n', "m.toml")
