"""TOML of others: a document is read whole or refused in one way, whatever is wrong with it."""

from __future__ import annotations

import pytest

from coaudit.schemas import toml

DAMAGED = {
    "no TOML": b"a = ",
    "bytes that are no text": b'a = "\xff"',
    "an integer of 5,000 digits": b"a = " + b"9" * 5000,
    "an integer that cannot be written": b"a = [{b = 0x" + b"f" * 5000 + b"}]",
    "5,000 lists within each other": b"a = " + b"[" * 5000,
    "5,000 tables within each other": b".".join([b"a"] * 5000) + b" = 1",
    "a day that is none": b"a = 2026-02-30",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_what_is_damaged_is_one_error_that_says_why(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"^not TOML: \S") as error:
        toml.parse(content)
    assert len(str(error.value)) < 300


def test_what_is_toml_is_read_from_bytes_and_from_text_alike() -> None:
    text = f'a = "ä"\r\nb = [{{c = {2**63 - 1}}}]\nd = {"[" * 90}{"]" * 90}\n'
    read = toml.parse(text)
    assert read == toml.parse(text.encode())
    assert read["a"] == "ä" and read["b"] == [{"c": 2**63 - 1}]


def test_the_mark_that_an_editor_sets_before_a_text_is_none_of_it() -> None:
    assert toml.parse("\ufeffa = 1") == toml.parse(b"\xef\xbb\xbfa = 1") == {"a": 1}
