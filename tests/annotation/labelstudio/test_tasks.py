"""What a task shows of a trajectory."""

from __future__ import annotations

import json
from pathlib import Path

from coaudit.annotation.labelstudio import answers, config, tasks
from coaudit.pipeline import codebooks
from coaudit.pipeline.cli.sample_audit import samples
from coaudit.pipeline.ingest.run import ingest
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.systems import ReadOptions
from tests.judges.teams import team


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


def test_lines_say_how_long_after_the_start_an_event_came_and_quotations_leave_it_out() -> None:
    times = ["2026-11-21T10:00:00Z", "2026-11-21T10:00:20Z", "2026-11-21T10:05:00Z"]
    log = team(("human", "One?"), ("agent", "Two."), ("agent", "Three."))
    events = [e.model_copy(update={"time": time}) for e, time in zip(log.events[1:], times, strict=True)]
    shown = [line.text for line in tasks.lines(log.model_copy(update={"events": tuple(events)}))]
    assert shown == ["[1] One?", "[2] Two.", "[3, 5 min after the start] Three."]
    book = codebooks.load("failures")
    mark = {"start": "2", "end": "2", "text": shown[2], "paragraphlabels": ["C.1 Silent start"]}
    given = [
        {"from_name": "evidence", "type": "paragraphlabels", "id": "x", "value": mark},
        {"from_name": "read", "type": "choices", "value": {"choices": [config.READ_TO_THE_END]}},
    ]
    verdicts = answers.read(book, {"result": given}, [1, 2, 3]).verdicts
    assert [(one.cites, one.quote) for one in verdicts if one.code == "C.1"] == [((3,), "Three.")]
