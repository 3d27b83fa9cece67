"""Two versions of a judge in the page of `validate`: in words, corrected over codes, refused where absent."""

from pathlib import Path

import pytest

from coaudit.pipeline.analyze import validate
from coaudit.pipeline.errors import UsageError
from coaudit.pipeline.store import Store
from tests.pipeline.stores import made, rate, take, verdict
from tests.pipeline.systems.cogym.folders import AGENT, USER, Log

RUNS = 12


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Twelve runs of two codes: the later judge, and ann, find one in ten runs more, the other in two."""
    found = made(tmp_path / "workspace")
    lines = []
    for number in range(RUNS):
        log = Log()
        log.say(AGENT, "Message")
        log.say(USER, "Another")
        take(found, log.folder(tmp_path / "logs" / f"env_{number}"))
        for code, new in (("1.1", 10), ("1.2", 2)):
            for rater, kind, some in (("old", "llm", 0), ("judge", "llm", new), ("ann", "human", new)):
                label = "present" if number < some else "absent"
                lines.append(
                    verdict(f"env_{number}", None, "mast", label, code=code, rater=rater, rater_kind=kind)
                )
    assert rate(found, lines).imported == 72
    return found


@pytest.mark.long
def test_drift_is_said_in_words_with_p_values_corrected_over_codes(store: Store) -> None:
    page = validate.validate(store, "judge", previous="old")
    first, second = (code["drift"] for code in page["codes"])
    assert (first["changed"]["value"], first["rate"]["effect"]) == (10 / 12, 10 / 12)
    # 2·.5¹⁰, one test in the family: the other code's two units could not decide.
    assert first["rate"]["p_value"] == first["rate"]["p_adjusted"] == pytest.approx(2 * 0.5**10)
    assert (first["rate"]["family"], second["rate"]["family"]) == (1, None)
    assert second["rate"]["p_value"] is None
    for text in ("\n".join(validate.lines(page)), "\n".join(validate.summary(page).foot)):
        assert "since old: changed 0.833" in text
        assert "rate of 'present': 0.833 (judge) against 0.000 (old), difference +0.833" in text
        assert "agreement with people: 1.000 (judge) against 0.167 (old)" in text
        assert "no test, too few to decide: 2 units with a difference cannot reach .05" in text


@pytest.mark.long
def test_an_earlier_version_that_nobody_knows_is_refused_by_name(store: Store) -> None:
    for name in ("older", "judge"):
        with pytest.raises(UsageError, match=f"'{name}' is no other judge of these, expected one of old$"):
            validate.validate(store, "judge", previous=name)


@pytest.mark.long
def test_a_margin_that_is_no_share_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="--margin must lie in"):
        validate.validate(store, "judge", margin=1.5)


@pytest.mark.long
def test_a_version_is_all_that_it_said_though_another_has_rated_the_same_units_since(store: Store) -> None:
    lines = [
        verdict(f"env_{number}", None, "mast", label, code="1.1", rater="j", rater_kind="llm") | made_by
        for made_by, positive in (({"rater_version": "v1"}, 1), ({"rater_version": "v2"}, 9))
        for number in range(RUNS)
        for label in ("absent" if number >= positive else "present",)
    ]
    # The earlier version thought better of its last run before the later one came: of one file the last word.
    lines.insert(RUNS, lines[RUNS - 1] | {"label": "present"})
    assert rate(store, lines).imported == 2 * RUNS
    (code,) = (c for c in validate.validate(store, "j", previous="j (v1)")["codes"] if c["code"] == "1.1")
    found = code["drift"]
    assert (found["n"], found["only_old"], found["only_new"]) == (RUNS, 0, 0)
    assert (found["rate"]["first"], found["rate"]["second"]) == (9 / 12, 2 / 12)
    with pytest.raises(UsageError, match=r"expected one of j \(v1\), judge, old$"):
        validate.validate(store, "j", previous="j (v0)")
