"""Shares of failure modes and of their categories."""

from pathlib import Path
from typing import Any

from coaudit.pipeline.analyze import failures, rates
from coaudit.pipeline.report import modes
from tests.pipeline.analyze.test_agreement import sampled
from tests.pipeline.stores import made, rate, take, verdict, write_lines


def test_a_category_of_which_one_mode_alone_was_looked_for_has_no_share(tmp_path: Path) -> None:
    """One mode is found in 1 of 4, nobody looked for the others: the union is not in 1 of 1."""
    store = made(tmp_path / "workspace")
    lines: list[dict[str, Any]] = []
    for n in range(4):
        team = [{"name": "Bot", "kind": "agent"}]
        head = {"type": "trajectory", "native_id": f"s{n}", "participants": team}
        said = {"type": "event", "trajectory": f"s{n}", "actor": "Bot", "kind": "message", "text": "hello"}
        lines += [head, said]
    take(store, write_lines(tmp_path / "log.jsonl", lines))
    found = {"code": "C.1", "rater": "judge", "rater_kind": "llm"}
    rate(store, [verdict(f"s{n}", None, "failures", "absent" if n else "present", **found) for n in range(4)])
    shares = {share.code: (share.rate, share.n, share.missing) for share in failures.shares(store)}
    assert shares == {"C": (None, 0, 4), "C.1": (0.25, 4, 0)}
    assert [row.code for row in rates.rates(store)] == ["C.1"]


def test_gold_that_settled_a_few_is_not_shown_for_the_failures_of_all(tmp_path: Path) -> None:
    """The report said where the four disputed sessions failed, in place of all that a judge had read."""
    store = made(tmp_path / "workspace")
    team = [{"name": "Bot", "kind": "agent"}]
    heads = [{"type": "trajectory", "native_id": f"s{n}", "participants": team} for n in range(4)]
    said = {"type": "event", "actor": "Bot", "kind": "message", "text": "hello"}
    lines = [line for head in heads for line in (head, {**said, "trajectory": head["native_id"]})]
    take(store, write_lines(tmp_path / "log.jsonl", lines))
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
    team = [{"name": "Bot", "kind": "agent"}]
    heads = [{"type": "trajectory", "native_id": f"s{n}", "participants": team} for n in range(8)]
    said = {"type": "event", "actor": "Bot", "kind": "message", "text": "hello"}
    lines = [line for head in heads for line in (head, {**said, "trajectory": head["native_id"]})]
    take(store, write_lines(tmp_path / "log.jsonl", lines))
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
