"""Shares of failure modes and of their categories."""

from pathlib import Path

from coaudit.pipeline.analyze import failures, rates
from coaudit.pipeline.report import modes
from coaudit.pipeline.store import Store
from tests.pipeline.analyze.test_agreement import sampled
from tests.pipeline.stores import made, rate, take, verdict, write_lines


def _take_sessions(store: Store, folder: Path, number: int) -> None:
    """Sessions `s0`, `s1` ... in which an agent says a word."""
    team = [{"name": "Bot", "kind": "agent"}]
    heads = [{"type": "trajectory", "native_id": f"s{n}", "participants": team} for n in range(number)]
    said = {"type": "event", "actor": "Bot", "kind": "message", "text": "hello"}
    lines = [line for head in heads for line in (head, {**said, "trajectory": head["native_id"]})]
    take(store, write_lines(folder / "log.jsonl", lines))


def test_a_category_of_which_one_mode_alone_was_looked_for_has_no_share(tmp_path: Path) -> None:
    """One mode is found in 1 of 4, nobody looked for the others: the union is not in 1 of 1."""
    store = made(tmp_path / "workspace")
    _take_sessions(store, tmp_path, 4)
    found = {"code": "C.1", "rater": "judge", "rater_kind": "llm"}
    rate(store, [verdict(f"s{n}", None, "failures", "absent" if n else "present", **found) for n in range(4)])
    shares = {share.code: (share.rate, share.n, share.missing) for share in failures.shares(store)}
    assert shares == {"C": (None, 0, 4), "C.1": (0.25, 4, 0)}
    assert [row.code for row in rates.rates(store)] == ["C.1"]


def test_gold_that_settled_a_few_is_not_shown_for_the_failures_of_all(tmp_path: Path) -> None:
    """The report said where the four disputed sessions failed, in place of all that a judge had read."""
    store = made(tmp_path / "workspace")
    _take_sessions(store, tmp_path, 4)
    judge, gold = ({"code": "C.1", "rater": name} for name in ("judge", "gold"))
    rate(store, [verdict(f"s{n}", None, "failures", "present", **judge, rater_kind="llm") for n in range(4)])
    rate(store, [verdict("s0", None, "failures", "absent", **gold, rater_kind="human")])
    assert [row["rater"] for row in failures.raters(store)] == ["judge", "gold"]
    rate(
        store,
        [verdict(f"s{n}", None, "failures", "absent", **gold, rater_kind="human") for n in range(1, 4)],
    )
    assert [row["rater"] for row in failures.raters(store)] == ["gold", "judge"]


def test_shares_of_a_sample_that_took_some_trajectories_likelier_say_so(tmp_path: Path) -> None:
    """Of such a sample Table 4 gave a person's share, with its interval, as if it were the corpus'."""
    store = made(tmp_path / "workspace")
    _take_sessions(store, tmp_path, 8)
    for rater, kind, taken in (
        ("ann", "human", (0, 1, 4)),
        ("bob", "human", (2, 5)),
        ("judge", "llm", range(8)),
    ):
        of = {"code": "C.1", "rater": rater, "rater_kind": kind}
        rate(
            store, [verdict(f"s{n}", None, "failures", "present" if n < 2 else "absent", **of) for n in taken]
        )
    chances = {n: 0.8 if n < 2 else 0.25 for n in range(8)}
    sampled(store, "drawn", {n: chances[n] for n in (0, 1, 4)}, chances, "failures", "trajectory")
    assert [who for who in ("ann", "bob", "judge") if failures.is_uneven(store, who)] == ["ann"]
    told = "took some trajectories likelier than others"
    assert told in modes.failures(store, rater="ann").caption
    assert told not in modes.failures(store, rater="bob").caption


OWN = """
name = "mine"
title = "How it went wrong"
unit = "trajectory"
level = "nominal"
labels = ["yes", "no"]
question = "Did it?"
codes = [
    { code = "late", name = "Late", definition = "It was late." },
    { code = "rude", name = "Rude", definition = "It was rude." },
]
"""


def test_other_codebooks_of_trajectories_have_the_table_of_failures(tmp_path: Path) -> None:
    """With and without categories; of what is rated on a scale there is none."""
    store = made(tmp_path / "workspace")
    store.workspace.codebooks.mkdir(parents=True, exist_ok=True)
    (store.workspace.codebooks / "mine.toml").write_text(OWN)
    store.sync()
    _take_sessions(store, tmp_path, 4)
    assert failures.books(store) == []
    ratings = [
        *(verdict(f"s{n}", None, "mine", "no" if n else "yes", code="late") for n in range(4)),
        *(verdict(f"s{n}", None, "mast", "absent" if n else "present", code="1.1") for n in range(2)),
        verdict("s0", None, "related_work_quality", "3", code="quality"),
    ]
    assert rate(store, ratings).imported == len(ratings)
    assert failures.books(store) == ["mast", "mine"]
    table = modes.failures(store, codebook="mine")
    assert (table.title, table.columns[:2], table.heads) == ("How it went wrong", ("Code", "Name"), 2)
    assert "category" not in table.caption
    late, rude = table.rows
    assert late[:2] == ("late", "Late") and (late[2].value, late[2].n) == (0.25, 4)  # type: ignore[union-attr]
    assert {("codebook", "mine"), ("code", "late")} <= set(late[2].of)  # type: ignore[union-attr]
    assert rude == ("rude", "Rude", "")
    mast = {str(row[0]): row for row in modes.failures(store, codebook="mast").rows}
    assert mast["1.1"][2].value == 0.5 and mast["1"][2].value is None  # type: ignore[union-attr]
    assert {share.code: share.category for share in failures.shares(store, codebook="mine")} == {"late": ""}
    rate(store, [verdict("s0", None, "failures", "present", code="C.1")])
    assert failures.books(store) == ["failures", "mast", "mine"]


def test_a_code_named_like_its_category_keeps_a_rate_of_its_own(tmp_path: Path) -> None:
    """Its cell, and its corrected rate, were those of the category."""
    store = made(tmp_path / "workspace")
    store.workspace.codebooks.mkdir(parents=True, exist_ok=True)
    own = OWN.replace('definition = "It', 'category = "late", definition = "It')
    categories = 'categories = [{ category = "late", name = "Manners", definition = "d" }]\n'
    (store.workspace.codebooks / "mine.toml").write_text(own.replace("codes = [", categories + "codes = ["))
    store.sync()
    _take_sessions(store, tmp_path, 4)
    of = {"late": (0,), "rude": (0, 1, 2)}
    ratings = [
        verdict(
            f"s{n}", None, "mine", "yes" if n in of[code] else "no", code=code, rater=who, rater_kind=kind
        )
        for n in range(4)
        for code in of
        for who, kind in (("judge", "llm"), ("ann", "human"))
    ]
    assert rate(store, ratings).imported == len(ratings)
    rows = modes.failures(store, codebook="mine", rater="judge").rows
    assert [row[:2] for row in rows] == [("late", "Manners (any)"), ("late", "Late"), ("rude", "Rude")]
    assert [row[2].value for row in rows] == [0.75, 0.25, 0.75]  # type: ignore[union-attr]
    corrected = [row[2].corrected.value for row in rows]  # type: ignore[union-attr]
    assert corrected == [0.75, 0.25, 0.75]
