"""Options of an engine: how they are written, what is refused, and how vLLM's command line gets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from coaudit.judges import JudgeError
from coaudit.judges.clients.arguments import arguments, command_line


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("x=2", 2),
        ("x=0.9", 0.9),
        ("x=true", True),
        ("x=awq", "awq"),
        ("x=", ""),
        ("x='2'", "2"),
        ("x=[1, 2]", [1, 2]),
        ('x={"a": 1}', {"a": 1}),
        ("x={a = 1}", {"a": 1}),
        ("x=a=b", "a=b"),
    ],
)
def test_a_value_is_json_or_toml_where_it_is_either_and_else_a_string(given: str, value: object) -> None:
    assert arguments([given]) == {"x": value}


def test_names_may_have_dashes_and_later_options_win() -> None:
    given = ["--max-model-len=8192", '{"max-model-len": 4096, "dtype": "float16"}', "dtype=bfloat16"]
    assert arguments(given) == {"max_model_len": 4096, "dtype": "bfloat16"}


def test_a_file_of_options_is_read_as_toml_or_json(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("tensor_parallel_size = 2\n", encoding="utf-8")
    (tmp_path / "b.json").write_text('{"quantization": "awq"}', encoding="utf-8")
    given = [str(tmp_path / "a.toml"), str(tmp_path / "b.json")]
    assert arguments(given) == {"tensor_parallel_size": 2, "quantization": "awq"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("port=80", "port is not to be set: a free one is taken"),
        ("--host=0.0.0.0", "host is not to be set: the server listens on 127.0.0.1"),
        ('{"api-key": "x"}', "api-key is not to be set: one is made up"),
        ("served-model-name=x", "--model names it"),
        ("ssl-keyfile=x", "the server is asked on this machine alone"),
        ("nothing", "takes name=value, a JSON object, or a .toml or .json file; got 'nothing'"),
        ("{broken", "not JSON"),
        ("[1]=2", "is no name of an option"),
        ("no such file.toml", "cannot be read"),
    ],
)
def test_what_coaudit_sets_itself_and_what_is_no_option_is_refused(given: str, said: str) -> None:
    with pytest.raises(JudgeError) as refused:
        arguments([given])
    assert said in str(refused.value)


def test_a_json_file_that_holds_no_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(JudgeError, match="expected an object of options, got list"):
        arguments([str(tmp_path / "list.json")])


def test_switches_are_named_or_negated_and_structures_are_json() -> None:
    options = {
        "max_model_len": 8192,
        "enforce_eager": True,
        "enable_prefix_caching": False,
        "quantization": None,
        "limit": {"image": 0},
    }
    assert command_line(options) == [
        "--max-model-len",
        "8192",
        "--enforce-eager",
        "--no-enable-prefix-caching",
        "--limit",
        '{"image": 0}',
    ]
