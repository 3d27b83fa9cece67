"""Made-up ratings of whatever a store holds, the same ones every time: two people, a judge and rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from coaudit.pipeline.store import Store, dictionaries

RATERS = {"ann_a": "human", "ann_b": "human", "judge-large": "llm", "rules": "rule"}
UNITS = """
    SELECT u.trajectory_id, u.event, b.name AS codebook, b.code,
        coalesce(b.positive, b.labels[1]) AS positive, b.labels, t.n_events,
        (SELECT list(e.seq ORDER BY e.seq) FROM events e JOIN participants p
            ON p.trajectory_id = e.trajectory_id AND p.name = e.actor AND p.kind = 'agent'
         WHERE e.trajectory_id = t.id) AS agent_events
    FROM units u JOIN codebooks b ON b.unit = u.kind JOIN trajectories t ON t.id = u.trajectory_id
    WHERE NOT u.opening ORDER BY ALL
"""


def lines(store: Store, raters: dict[str, str] = RATERS) -> Iterator[str]:
    """Ratings in the form that `ratings import` reads."""
    with store.reading() as connection:
        units = dictionaries(connection, UNITS)
    for unit in units:
        for rater, kind in raters.items():
            if kind != "rule" or unit["codebook"] != "failures":
                yield json.dumps(_rating(unit, rater, kind))


def _rating(unit: dict[str, Any], rater: str, kind: str) -> dict[str, Any]:
    """Raters mostly agree with a truth that depends on the unit alone; about one in eight differs."""
    truth = _draw("truth", unit) < (0.2 if unit["codebook"] == "failures" else 0.5)
    present = truth != (_draw(rater, unit) < 0.12)
    other = next(label for label in unit["labels"] if label != unit["positive"])
    given: dict[str, Any] = {
        "trajectory": unit["trajectory_id"],
        "codebook": unit["codebook"],
        "code": unit["code"],
        "rater": rater,
        "rater_kind": kind,
        "created": f"2026-06-{3 + int(20 * _draw('day', unit)):02d}T10:00:00+00:00",
    }
    if unit["event"] is not None:
        given["event"] = unit["event"]
    if kind == "llm" and _draw("error", unit) < 0.03:
        return given | {"error": "answer outside the codebook: 'maybe so'"}
    given["label"] = unit["positive"] if present else other
    if kind == "llm":
        given |= _made_by_judge(unit, present)
    if kind == "human":
        given["external"] = {"url": "http://127.0.0.1:8080/projects/1/data?task=7", "task": 7}
    if present and unit["event"] is None:
        seqs = unit["agent_events"] or [0]
        given |= {
            "cites": [seqs[int(_draw("cite", unit) * len(seqs))]],
            "rationale": f"{rater}: the agent went on without saying what it was doing.",
            "error_source": ("model", "scaffolding", "both")[int(3 * _draw("source", unit))],
        }
    return given


def _made_by_judge(unit: dict[str, Any], present: bool) -> dict[str, Any]:
    return {
        "probability": round(0.55 + 0.44 * _draw("probability", unit), 3),
        "rater_version": "3f1c9a7be210",
        "model": "Qwen2.5-72B-Instruct",
        "prompt_hash": blake2b(str(unit["code"]).encode(), digest_size=6).hexdigest(),
        "prompt_tokens": 900,
        "cached_tokens": 700,
        "completion_tokens": 40,
        "cost_usd": 0.0004,
        "seconds": 0.8,
    }


def _draw(salt: str, unit: dict[str, Any]) -> float:
    key = f"{salt}|{unit['trajectory_id']}|{unit['event']}|{unit['code']}"
    return int.from_bytes(blake2b(key.encode(), digest_size=4).digest()) / 2**32
