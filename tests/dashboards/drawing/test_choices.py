"""Boxes with names of others: what a name hides or turns around is written out, and its address stays."""

from __future__ import annotations

from urllib.parse import parse_qs, urlencode

import pytest
from streamlit.testing.v1 import AppTest

from coaudit.dashboards.drawing import choices
from coaudit.schemas.text import visible

TURNED = "arm \u202eenob\u202c"


def _boxes() -> None:
    import streamlit as st

    from coaudit.dashboards.drawing import choices
    from tests.dashboards.drawing.test_choices import TURNED

    names = st.session_state.get("names", ["plain", TURNED, ""])
    st.session_state["said"] = (
        choices.one(st, "One", names, key="one"),
        choices.some(st, "Some", names, key="some"),
    )


def _drawn(**asked: str | list[str]) -> AppTest:
    test = AppTest.from_function(_boxes)
    for key, value in asked.items():
        test.query_params[key] = value
    return test.run()


def test_a_name_that_turns_around_what_follows_is_written_out() -> None:
    test = _drawn()
    shown = ["plain", "arm \\u202eenob\\u202c", choices.EMPTY]
    assert test.selectbox[0].options == test.multiselect[0].options == shown


def test_a_link_to_a_name_without_a_letter_is_one_to_it_and_not_to_all() -> None:
    assert _drawn(one="", some=[""]).session_state["said"] == ("", [""])


@pytest.mark.parametrize("spelled", [TURNED, visible(TURNED)])
def test_an_address_has_the_name_or_what_is_shown_of_it(spelled: str) -> None:
    test = _drawn(one=spelled, some=["plain", spelled])
    assert test.session_state["said"] == (TURNED, ["plain", TURNED])
    said = parse_qs(urlencode(test.query_params, doseq=True))
    assert said == {"one": [visible(TURNED)], "some": ["plain", visible(TURNED)]}
    test.selectbox[0].set_value("plain").run()
    test.multiselect[0].set_value([]).run()
    assert test.session_state["said"] == ("plain", [])


def test_no_two_names_are_shown_alike() -> None:
    shown = choices.spellings([TURNED, "plain", visible(TURNED)])
    assert shown == {"plain": "plain", visible(TURNED): visible(TURNED), TURNED: f"{visible(TURNED)} (2)"}


ALIKE = [
    *(TURNED, visible(TURNED), f"{visible(TURNED)} (2)"),
    *("", " ", choices.EMPTY),
    *("\x00", "\\x00", "a\r\nb", "a b "),
]
"""Names of which several would be shown alike."""


@pytest.mark.parametrize("name", ALIKE)
def test_a_link_and_the_address_that_it_becomes_lead_to_one_name_and_no_other(name: str) -> None:
    def drawn(**asked: str | list[str]) -> AppTest:
        test = AppTest.from_function(_boxes)
        test.session_state["names"] = ["plain", *ALIKE]
        for key, value in asked.items():
            test.query_params[key] = value
        return test.run()

    linked = drawn(one=name, some=[name])
    assert linked.session_state["said"] == (name, [name])
    again = drawn(**parse_qs(urlencode(linked.query_params, doseq=True), keep_blank_values=True))
    assert again.session_state["said"] == (name, [name])
