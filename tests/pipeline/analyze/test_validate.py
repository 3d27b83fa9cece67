"""The page on a judge: what its counts are of."""

from pathlib import Path

import pytest

from coaudit.pipeline.analyze import validate
from coaudit.pipeline.store import Store
from tests.pipeline.stores import made, rate, take, verdict
from tests.pipeline.systems.cogym.folders import AGENT, USER, Log


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Four utterances: two people differ on the first two, the judge is unclear on the last."""
    log = Log()
    for number in range(4):
        log.say((AGENT, USER)[number % 2], f"Message {number}")
    found = made(tmp_path / "workspace")
    take(found, log.folder(tmp_path / "logs" / "env_0"))
    said = {"ann": ("yes", "no", "yes", "no"), "bob": ("no", "yes", "yes", "no")}
    judged = ("yes", "yes", "yes", "unclear")
    lines = [
        verdict("env_0", seq, "initiative", label, rater=rater, rater_kind=kind)
        for rater, kind, labels in (
            *((name, "human", labels) for name, labels in said.items()),
            ("judge", "llm", judged),
        )
        for seq, label in enumerate(labels, start=2)
    ]
    assert rate(found, lines).imported == 12
    return found


def test_units_on_which_people_differ_count_among_those_that_sensitivity_is_of(store: Store) -> None:
    (code,) = validate.validate(store, "judge")["codes"]
    # Half yes, half no on two units, yes on the third: 2 of 2 people's yes were found, 0 of 1 no.
    assert code["confusion"]["counts"] == [[2, 0], [1, 0]]
    assert code["n_both"] == 3
    assert code["errors"] == [], "on a tie nobody is wrong"
    (row,) = validate.summary(validate.validate(store, "judge")).rows
    assert row[1] == "3"
