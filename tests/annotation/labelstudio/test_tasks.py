"""What a task shows of a trajectory."""

from __future__ import annotations

import json
from pathlib import Path

from coaudit.annotation.labelstudio import tasks
from coaudit.pipeline.cli.sample_audit import samples
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.systems import ReadOptions


def test_people_are_no_more_told_what_a_reward_was_than_models_are(tmp_path: Path) -> None:
    store = Store(Workspace(tmp_path / "workspace"))
    ingest(store, [samples() / "rehac"], ReadOptions())
    with store.reading() as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM trajectories").fetchall()]
        logs = store.load(connection, ids, states=True)
    assert any("reward = " in json.dumps(log.states) for log in logs)
    for log in logs:
        shown = [line.text for line in tasks.lines(log)]
        assert not any("reward = " in text for text in [*shown, tasks.final_state(log)])
        observations = [s["observation"] for s in log.states.values() if isinstance(s, dict)]
        for text in (str(one).strip() for one in observations if one):
            assert "reward = " in text or any(text in line for line in shown)
