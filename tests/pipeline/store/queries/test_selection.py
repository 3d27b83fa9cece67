"""Which trajectories a selection names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coaudit.dashboards import queries
from coaudit.pipeline.analyze.metrics import metrics
from coaudit.pipeline.report.tables import of_metric
from coaudit.pipeline.store import Selection
from coaudit.pipeline.store.queries.selection import NONE
from tests.pipeline.stores import made, take


@pytest.mark.long
def test_of_the_tags_of_one_key_any_is_wanted_and_of_other_keys_all(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "Hi"}]
    lines = [
        {"id": name, "messages": talk, "tags": {"v": name[0], 'la"b': name[1]}}
        for name in ("1x", "1y", "2x", "2y", "3x")
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    store = made(tmp_path / "workspace")
    take(store, path)
    for tags, names in {
        ("v=1", "v=2"): ["1x", "1y", "2x", "2y"],
        ("v=1", 'la"b=x'): ["1x"],
        ("v=1", 'la"b=x', "v=3"): ["1x", "3x"],
        ("w=1",): [],
    }.items():
        where, values = Selection(tags=tags).where()
        query = f"SELECT native_id FROM trajectories t WHERE {where} ORDER BY native_id"
        with store.reading() as connection:
            assert [row[0] for row in connection.execute(query, values).fetchall()] == names


def test_a_selection_can_ask_for_what_the_logs_do_not_say_and_numbers_lead_there(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    heads: list[dict[str, Any]] = [
        {"task": "write", "tags": {"v": "1"}},
        {"tags": {"v": "2"}},
        {"task": "write"},
        *[{"task": "", "tags": {"v": ""}}] * 2,
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text(
        "".join(json.dumps({"id": f"s{i}", "messages": said} | h) + "\n" for i, h in enumerate(heads))
    )
    store = made(tmp_path / "workspace")
    take(store, path)

    def there(only: Selection) -> list[str]:
        where, values = only.where()
        query = f"SELECT native_id FROM trajectories t WHERE {where} ORDER BY native_id"
        with store.reading() as connection:
            return [row[0] for row in connection.execute(query, values).fetchall()]

    assert there(Selection(task=(NONE,))) == ["s1"]
    assert there(Selection(task=(NONE, "write"))) == ["s0", "s1", "s2"]
    assert there(Selection(tags=(f"v={NONE}", "v=2"))) == ["s1", "s2"]
    for by in ("task", "v"):
        for row in metrics(store, by=[by], names=("events",)):
            (asked,) = of_metric(row).of
            name, value = asked
            only = Selection(tags=(value,)) if name == "tags" else Selection(task=(value,))
            assert len(there(only)) == row.n, asked


@pytest.mark.long
@pytest.mark.parametrize("key", ['a "quoted" \'one', "back\\slash\\", "*", "", "a/b~c", "$.a[0]"])
def test_a_tag_of_any_name_is_a_choice_a_filter_and_a_group(tmp_path: Path, key: str) -> None:
    talk = [{"role": "user", "content": "Hi"}]
    path = tmp_path / "runs.jsonl"
    lines = [{"id": value, "messages": talk, "tags": {"plain": "p", key: value}} for value in "xy"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    store = made(tmp_path / "workspace")
    take(store, path)
    assert set(queries.choices(store)["tags"]) == {"plain=p", f"{key}=x", f"{key}=y"}
    rows = metrics(store, by=[key], only=Selection(tags=(f"{key}=x",)))
    assert {row.group[key] for row in rows if row.group} == {"x"}
