"""What charts show is what `metrics` says."""

from __future__ import annotations

from pathlib import Path

import pytest

from coaudit.dashboards import queries
from coaudit.pipeline.analyze.metrics import metrics
from coaudit.pipeline.store import Selection, Store, Workspace
from tests.pipeline.stores import made, take

pytestmark = pytest.mark.slow


def test_a_course_over_days_is_what_metrics_says_of_each_day(looked: Path) -> None:
    store = Store(Workspace(looked), read_only=True)
    names = ("error_rate", "initiative_entropy", "satisfaction")
    shown = queries.over_days(store, Selection(), names)
    said = metrics(store, by=("day", "condition"), names=names)
    assert {row.metric for row in said} >= {"error_rate", "initiative_entropy"}
    given = [row for row in said if row.value is not None and row.group and row.group["day"]]
    assert [(row["value"], row["low"], row["trajectories"]) for row in shown] == [
        (row.value, row.low, row.n) for row in given
    ]


def test_a_histogram_counts_the_trajectories_of_which_metrics_tells(looked: Path) -> None:
    store = Store(Workspace(looked), read_only=True)
    for name, rater in (("human_intervention_rate", None), ("initiative_entropy", "rules")):
        rows = queries.distribution(store, Selection(), "condition", name, 0.1, rater)
        each = metrics(store, per_trajectory=True, rater=rater)
        defined = [row for row in each if row.metric == name and row.value is not None]
        assert sum(row["trajectories"] for row in rows) == len(defined) > 0


def test_a_session_without_a_time_has_no_day(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text(
        '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]}\n'
    )
    store = made(tmp_path / "workspace")
    take(store, path)
    assert {row.group["day"] for row in metrics(store, by=("day",)) if row.group} == {None}
    assert queries.over_days(store, Selection(), ("events",)) == []
