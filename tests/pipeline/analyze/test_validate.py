"""The page on a judge: what its counts are of."""

from pathlib import Path

import pytest

from coaudit.pipeline.analyze import validate
from coaudit.pipeline.store import Store
from tests.pipeline.analyze.test_agreement import runs, said
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


@pytest.mark.long
def test_units_on_which_people_differ_count_among_those_that_sensitivity_is_of(store: Store) -> None:
    (code,) = validate.validate(store, "judge")["codes"]
    # Half yes, half no on two units, yes on the third: 2 of 2 people's yes were found, 0 of 1 no.
    assert code["confusion"]["counts"] == [[2, 0], [1, 0]]
    assert code["n_both"] == 3
    assert code["errors"] == [], "on a tie nobody is wrong"
    (row,) = validate.summary(validate.validate(store, "judge")).rows
    assert row[1] == "3"


@pytest.fixture
def pair(tmp_path: Path) -> Store:
    """Two sessions without a failure to a judge and three people; of another code the judge is unclear."""
    found = made(tmp_path / "workspace")
    raters = (("judge", "llm"), ("ann", "human"), ("bob", "human"), ("cay", "human"))
    lines = []
    for number in range(2):
        log = Log()
        log.say(AGENT, f"Message {number}")
        take(found, log.folder(tmp_path / "logs" / f"env_{number}"))
        for rater, kind in raters:
            other = "unclear" if rater == "judge" else "present"
            for code, label in (("1.1", "absent"), ("1.2", other)):
                about = {"code": code, "rater": rater, "rater_kind": kind}
                lines.append(verdict(f"env_{number}", None, "mast", label, **about))
    assert rate(found, lines).imported == 16
    return found


@pytest.mark.long
def test_two_units_show_nothing_and_an_unclear_judge_is_not_called_a_lack_of_labels(pair: Store) -> None:
    summary = validate.summary(validate.validate(pair, "judge"))
    assert [row[0] for row in summary.rows] == ["1.1"]
    assert summary.rows[0][-1] == "open (0.00)"
    assert any(
        line.endswith("open says nothing against the judge where units are few.") for line in summary.foot
    )
    assert summary.foot[0].startswith("one code has no unit that people and the judge both labelled: 1.2;")


def test_a_kappa_without_a_value_says_why(tmp_path: Path) -> None:
    # Of 24 sessions each is labelled by a person of its own: none has more than one unit with the judge.
    found = runs(tmp_path, 24)
    people = {(f"p{place:02}", "late"): "–" * place + "yn"[place % 2] for place in range(24)}
    said(found, "first", {("judge", "late"): "yynn" * 6, **people})
    page = validate.summary(validate.validate(found, "judge"))
    assert page.rows[0][2:4] == ("–", "–")
    assert any(line.startswith("kappa – (late): kappas of few units lie low") for line in page.foot)
    assert "people's own – (late): no unit with two ratings" in page.foot


def test_who_labels_what_the_judge_marked_alone_finds_nothing_that_it_missed(tmp_path: Path) -> None:
    """Without a sample. The judge had sensitivity 1.00 and specificity 0.00."""
    found = runs(tmp_path, 12)
    judged, marked = "yyyyyynnnnnn", "yyyynn––––––"
    said(found, "first", {("judge", "late"): judged, ("ann", "late"): marked})
    page = validate.validate(found, "judge")
    (code,) = (code for code in page["codes"] if code["n_both"])
    (late, _) = code["confusion"]["classes"]
    reason = "no human label among the units that the judge labelled 'absent'"
    for name in ("sensitivity", "specificity", "npv"):
        assert (late[name]["value"], late[name]["reason"]) == (None, reason)
    assert (late["ppv"]["value"], late["ppv"]["n"]) == (pytest.approx(4 / 6), 6)
    assert code["alternative_annotator_test"]["sensitivity"]["value"] is None
    summary = validate.summary(page)
    assert summary.rows[0][4:6] == ("–", "–")
    assert f"sensitivity – (late): {reason}" in summary.foot
    said(found, "first", {("ann", "late"): "––––––ynnnnn"})
    (code,) = (code for code in validate.validate(found, "judge")["codes"] if code["n_both"])
    assert code["confusion"]["classes"][0]["sensitivity"]["value"] == pytest.approx(4 / 5)


@pytest.mark.parametrize("book", ["kind", "scale"])
def test_of_several_labels_the_probability_of_the_label_given_is_held_against_people(
    tmp_path: Path, book: str
) -> None:
    """It was undefined, though judges say how sure they are of each label."""
    judge, ann = "1122233311", "1123233121"
    sure = [0.9, 0.9, 0.9, 0.6, 0.6, 0.6, 0.9, 0.6, 0.6, 0.9]
    store = runs(tmp_path, 10)
    said(store, book, {("ann", "late"): ann})
    lines = [
        verdict(
            f"env_{place}", None, book, label, code="late", rater="judge", rater_kind="llm", probability=p
        )
        for place, (label, p) in enumerate(zip(judge, sure, strict=True))
    ]
    assert rate(store, lines).imported == 10
    (code,) = validate.validate(store, "judge", [book])["codes"]
    bins = {round(row["predicted"], 3): row for row in code["calibration"]["bins"] if row["n"]}
    right = [one == other for one, other in zip(judge, ann, strict=True)]
    for p, row in bins.items():
        own = [ok for ok, chance in zip(right, sure, strict=True) if chance == p]
        assert (row["n"], row["observed"]) == (5, pytest.approx(sum(own) / 5))
    errors = [(p - ok) ** 2 for p, ok in zip(sure, right, strict=True)]
    assert code["calibration"]["brier"] == pytest.approx(sum(errors) / 10)


SETTLED = "settled labels (gold has more units than people labelled; not comparable with people's own)"


@pytest.mark.parametrize(
    ("partners", "words"),
    [
        ("pp", "a person (the mean over people)"),
        ("gg", SETTLED),
        ("pg", f"a person (the mean over people), of B {SETTLED}"),
    ],
)
def test_the_short_page_says_which_kappas_are_with_settled_labels(partners: str, words: str) -> None:
    raters = {"p": ("judge", "ann", "bob"), "g": ("judge", "gold")}
    codes = [
        {"code": name, "kappa": {"raters": raters[partner]}}
        for name, partner in zip("AB", partners, strict=True)
    ]
    assert validate._partners(codes) == words


def test_labels_that_began_from_one_that_was_shown_are_told(store: Store) -> None:
    """Whoever is shown a judge's label agrees with it: its page took such labels for blind ones."""
    assert not any("shown" in line for line in validate.summary(validate.validate(store, "judge")).foot)
    external = {"labelstudio": {"parent_prediction": 7}}
    lines = [
        verdict("env_0", 2, "initiative", "no", rater=rater, external=external) for rater in ("ann", "gold")
    ]
    assert rate(store, lines).imported >= 1
    page = validate.validate(store, "judge")
    told = (
        "labels that people began from a judge's, which they were shown: initiative 1 of 8; not blind to "
        "whoever made it, they agree with it more than others would."
    )
    assert told in validate.summary(page).foot
    assert f"  {told}" in validate.lines(page)
