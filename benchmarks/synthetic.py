"""A workspace of any size, made by SQL inside the store: trajectories, events, units, ratings and outcomes.

Nothing in it means anything; only its shape is that of Co-Gym sessions (40 events on average, two parties,
half of them messages). One trajectory has 2,000 events.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from coaudit.pipeline.ingest.measure import TEAMWORK
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.store.tables import derived

LONG = "t0000007"
STATEMENTS = (
    """
    CREATE TEMP TABLE t AS SELECT i, format('t{:07d}', i) AS id, (hash(i) % 1000000007)::BIGINT AS h,
        CASE WHEN i = 7 THEN 2000 ELSE 20 + (hash(i, 1) % 40)::INTEGER END AS n
    FROM range($n) r(i)
    """,
    """
    INSERT INTO trajectories SELECT id, 'env_' || i, '/synthetic/' || i, 'cogym',
        ['real', 'simulated'][1 + h % 2], ['collaborative', 'situational_planning', 'autonomous'][1 + h // 2 % 3],
        ['related_work', 'tabular_analysis', 'travel_planning'][1 + h // 8 % 3], (h // 64 % 100)::VARCHAR, 'basic',
        ['gpt-4o', 'llama-3.1-70b', 'claude-3.5-sonnet', 'gpt-4-turbo'][1 + h // 32 % 4],
        '{"wave":"' || h // 512 % 4 || '"}', NULL,
        strftime(TIMESTAMP '2026-01-01' + to_minutes((i * 5) % 500000), '%Y-%m-%dT%H:%M:%S'),
        strftime(TIMESTAMP '2026-01-01' + to_minutes((i * 5) % 500000 + 40), '%Y-%m-%dT%H:%M:%S'), n, id
    FROM t
    """,
    """
    INSERT INTO participants SELECT id, who, kind, CASE kind WHEN 'agent' THEN 'gpt-4o' END, false, 50000, 4000
    FROM t, (VALUES ('agent', 'agent'), ('user', 'human'), ('environment', 'environment')) p(who, kind)
    """,
    """
    CREATE TEMP TABLE e AS SELECT t.id, t.i, s AS seq, (hash(t.i, s) % 1000000007)::BIGINT AS h,
        CASE WHEN s = 0 THEN 'start' WHEN hash(t.i, s) % 2 = 0 THEN 'message' ELSE 'action' END AS kind,
        CASE WHEN s = 0 THEN 'environment' WHEN hash(t.i, s) % 3 = 0 THEN 'user' ELSE 'agent' END AS actor
    FROM t, unnest(range(t.n)) u(s)
    """,
    """
    INSERT INTO events SELECT id, seq, 0, false,
        strftime(TIMESTAMP '2026-01-01' + to_minutes((i * 5) % 500000 + seq // 2), '%Y-%m-%dT%H:%M:%S'), actor, kind,
        CASE WHEN kind = 'message' THEN 'Shall I go on with step ' || seq || ' of the plan as we said before?' END,
        CASE WHEN kind = 'action' THEN 'EDITOR_UPDATE' END,
        CASE WHEN kind = 'action' THEN '{"text":"Draft number ' || seq || ' with a few more words in it"}' END,
        NULL, CASE WHEN kind = 'action' THEN CASE WHEN h % 20 = 1 THEN 'failed' ELSE 'succeeded' END END,
        CASE WHEN kind = 'action' AND h % 20 = 1 THEN 'not allowed' END,
        '{"public":"s' || (i * 31 + seq) % 50000 || '"}', NULL
    FROM e
    """,
    "INSERT INTO states SELECT 's' || s, '{\"editor\":\"state ' || s || '\",\"items\":[1,2,3]}' FROM range(50000) r(s)",
    """
    INSERT INTO units
    SELECT id, 'trajectory', NULL, id, NULL, false FROM t UNION ALL
    SELECT id, 'utterance', seq, id || seq, actor, false FROM e WHERE kind = 'message' UNION ALL
    SELECT id, 'human_message', seq, id || seq, actor, false FROM e WHERE kind = 'message' AND actor = 'user' UNION ALL
    SELECT id, 'question_reply', seq, id || seq, actor, false FROM e
    WHERE kind = 'message' AND actor = 'agent' AND h % 4 = 0
    """,
    """
    INSERT INTO outcomes
    SELECT id, 'delivered', (h // 7 % 10 > 0)::INTEGER, NULL, NULL, NULL, NULL, false FROM t UNION ALL
    SELECT id, 'task_performance', h // 11 % 100 / 100.0, NULL, NULL, NULL, NULL, false FROM t UNION ALL
    SELECT id, 'outcome_rating', 1 + h // 13 % 5, NULL, NULL, NULL, NULL, true FROM t WHERE h % 2 = 0 UNION ALL
    SELECT id, 'satisfaction', 1 + h // 17 % 5, NULL, NULL, NULL, NULL, true FROM t WHERE h % 2 = 0 UNION ALL
    SELECT id, 'preferred', h // 19 % 2, NULL, 'autonomous', NULL, NULL, true FROM t WHERE h % 2 = 0
    """,
    """
    CREATE TEMP TABLE rated AS
    SELECT u.trajectory_id, u.event, u.hash, b.name, b.version, b.code, b.positive, b.labels, r.rater, r.kind,
        (hash(u.hash, b.code) % 1000000007)::BIGINT AS truth, (hash(u.hash, b.code, r.rater) % 1000000007)::BIGINT AS own
    FROM units u JOIN codebooks b ON b.unit = u.kind AND b.name IN ('initiative', 'confirmation', 'halting', 'failures')
    JOIN (VALUES ('judge', 'llm', 1), ('rules', 'rule', 1), ('ann_a', 'human', 300), ('ann_b', 'human', 300))
        r(rater, kind, every) ON hash(u.trajectory_id) % r.every = 0 AND NOT (r.kind = 'rule' AND b.name = 'failures')
    """,
    """
    INSERT INTO ratings SELECT 'synthetic.jsonl', row_number() OVER (), trajectory_id, event, hash, name, version,
        code, rater, kind, '1', 0, CASE WHEN (truth % 4 = 0) <> (own % 12 = 0) THEN positive ELSE
        list_filter(labels, lambda x: x <> positive)[1] END, NULL, false,
        CASE WHEN event IS NULL THEN [1 + own % 15] ELSE [] END, NULL,
        CASE WHEN event IS NULL THEN ['model', 'scaffolding', 'both'][1 + own % 3] END, 'because it says so',
        CASE WHEN kind = 'llm' THEN 0.5 + own % 50 / 100.0 END, NULL, NULL, NULL, NULL,
        CASE WHEN kind = 'llm' THEN 900 END, CASE WHEN kind = 'llm' THEN 700 END,
        CASE WHEN kind = 'llm' THEN 40 END, CASE WHEN kind = 'llm' THEN 0.0004 END, 0.5,
        strftime(TIMESTAMP '2026-06-01' + to_hours((own % 480)::INTEGER), '%Y-%m-%dT%H:%M:%S+00:00'), NULL
    FROM rated
    """,
)


def make(folder: Path, trajectories: int) -> Store:
    """A new workspace in `folder` with that many trajectories."""
    store = Store(Workspace(folder))
    folder.mkdir(parents=True)
    (folder / "sources.jsonl").touch()
    store.sync()
    with store.writing() as connection:
        for statement in STATEMENTS:
            connection.execute(statement, {"n": trajectories} if "$n" in statement else None)
        for table in ("events", "participants", "units"):
            connection.execute(f"CREATE TEMP VIEW incoming_{table} AS FROM main.{table}")
        connection.execute(f"INSERT INTO computed BY NAME {TEAMWORK}")
        derived.refresh(connection)
    return store


if __name__ == "__main__":
    began = time.perf_counter()
    made = make(Path(sys.argv[1]), int(sys.argv[2]))
    size = made.workspace.database.stat().st_size / 1e6
    print(f"{sys.argv[2]} trajectories in {time.perf_counter() - began:.0f} s, {size:.0f} MB")
