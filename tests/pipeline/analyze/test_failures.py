"""Shares of failure modes and of their categories."""

from pathlib import Path
from typing import Any

from coaudit.pipeline.analyze import failures, rates
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
