"""Action strings are understood as Co-Gym's own patterns understand them, however long they are."""

from __future__ import annotations

import random
import re
import time

import pytest

from coaudit.pipeline.systems.cogym.actions import SIGNATURES, parse

LONG = 200_000
"""Characters; a pattern that goes back over all of them for each would take a minute."""


def test_arguments_are_those_of_the_greedy_patterns_of_co_gym() -> None:
    pieces = ["origin=", ", destination=", ", date=", ")", "(", "a", "\n", "x=", ", y=", ", button=", " "]
    chance = random.Random(3)
    for _ in range(3000):
        name = chance.choice(["FLIGHT_SEARCH", "CLICK", "FINISH", "SCREENSHOT"])
        logged = f"{name}({''.join(chance.choices(pieces, k=chance.randint(0, 7)))})"
        expected = None
        for keys in SIGNATURES[name]:
            pattern = rf"{name}\({', '.join(f'{key}=(.*)' for key in keys)}\)"
            match = re.fullmatch(pattern, logged, re.DOTALL)
            if match and expected is None:
                expected = dict(zip(keys, match.groups(), strict=True))
        action = parse(logged)
        if expected is not None:
            assert (action.name, action.arguments, action.raw) == (name, expected, None)


@pytest.mark.parametrize(
    "piece", ["FLIGHT_SEARCH(origin=", ", destination=", "AB_", "AB(", "\\(A", ", a=", "[[1]("]
)
@pytest.mark.parametrize("before", ["", "FLIGHT_SEARCH(origin=", "EDITOR_UPDATE(text="])
def test_no_text_keeps_its_reader_busy(piece: str, before: str) -> None:
    began = time.process_time()
    for end in ("", ")"):
        parse(before + piece * (LONG // len(piece)) + end)
    assert time.process_time() - began < 5
