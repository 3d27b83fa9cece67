"""Rating by what was said alone: it comes as columns of texts, from one query a codebook.

No trajectory is loaded and no unit is made: the tables know the units, their hashes and their messages.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic_core import to_json

from ...judges.rules import Rules
from ...judges.rules.lexical import NAME, VERSION
from ...schemas import UNCLEAR, Codebook, Verdict
from ..store import Store, execute, listed
from .local import turn, units_of
from .scope import Say, Scope, Summary

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 20_000
"""Units that are in memory at a time."""
BYTES = 16 * 1024 * 1024
"""Of their texts that are rated at a time: the rules hold several copies, and Arrow's texts end at 2 GB."""
SAID = """
    SELECT u.trajectory_id, u.event, u.hash, coalesce(said.text, '') AS text,
        NULL::INTEGER AS reply, '' AS replied
    FROM wanted u JOIN events said ON said.trajectory_id = u.trajectory_id AND said.seq = u.event
    JOIN trajectories t ON t.id = u.trajectory_id
    WHERE u.is_left AND NOT said.live_only
"""
ANSWERED = """
    SELECT u.trajectory_id, u.event, u.hash, coalesce(said.text, '') AS text,
        reply.seq AS reply, coalesce(reply.text, '') AS replied
    FROM wanted u JOIN events said ON said.trajectory_id = u.trajectory_id AND said.seq = u.event
    JOIN (
        SELECT trajectory_id, event, lead(event) OVER (PARTITION BY trajectory_id ORDER BY event) AS next
        FROM units WHERE kind = 'utterance'
    ) n ON n.trajectory_id = u.trajectory_id AND n.event = u.event
    JOIN events reply ON reply.trajectory_id = u.trajectory_id AND reply.seq = n.next
    JOIN trajectories t ON t.id = u.trajectory_id
    WHERE u.is_left AND NOT said.live_only AND NOT reply.live_only
"""
"""A question's reply is the utterance after it (pipeline/units.py)."""


def judge_dialogue(store: Store, scope: Scope, many: Sequence[Rules], say: Say) -> Summary:
    """Rate with the rules of each codebook."""
    summary = Summary()
    with turn(store, NAME, summary, say) as ledger:
        for rules in many:
            within = scope.less(summary.rated)
            left, already = _counted(store, within, rules.codebook)
            summary.already += already
            for batch in _said(store, within, rules.codebook) if left else ():
                ledger.write_lines(_lines(rules, batch))
                ledger.flush()
                summary.rated += batch.num_rows
    return summary


def _counted(store: Store, scope: Scope, book: Codebook) -> tuple[int, int]:
    """How many units are left, and how many are rated already."""
    units, parameters = units_of(book, (NAME, VERSION), scope)
    query = f"SELECT count(*) FILTER (is_left), count(*) FILTER (NOT is_left) FROM ({units})"
    with store.reading(synced=True) as connection:
        ((left, already),) = execute(connection, query, parameters).fetchall()
    return left, already


def _said(store: Store, scope: Scope, book: Codebook) -> Iterator[pa.RecordBatch]:
    """What was said in each unit that is left, in the order in which trajectories began.

    It goes through a file: the database is not open while somebody works on it.
    """
    from pyarrow import parquet

    units, parameters = units_of(book, (NAME, VERSION), scope)
    limit = "" if scope.limit is None else f"LIMIT {max(0, scope.limit)}"
    query = f"""
        WITH wanted AS ({units}) {ANSWERED if book.unit == "question_reply" else SAID}
        ORDER BY t.started, t.native_id, t.id, u.event {limit}
    """
    with tempfile.TemporaryDirectory(prefix="coaudit-") as folder:
        path = Path(folder) / "said.parquet"
        with store.reading(synced=True) as connection:
            execute(connection, f"COPY ({query}) TO {listed([str(path)])} (FORMAT parquet)", parameters)
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(AT_ONCE):
                yield from _parts(batch)


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    half = batch.num_rows // 2
    if batch.nbytes <= BYTES or not half:
        yield batch
        return
    yield from _parts(batch.slice(0, half))
    yield from _parts(batch.slice(half))


def _lines(rules: Rules, batch: pa.RecordBatch) -> Iterator[bytes]:
    """The ledger's lines: what the ratings share is checked and written out once."""
    book = rules.codebook
    shared = rules.maker.rating_at(("", None, None), Verdict(book.codes[0].code, UNCLEAR))
    same = shared.model_dump(mode="json", exclude_defaults=True, exclude={"trajectory", "label"})
    columns = ["text", "replied"] if book.unit == "question_reply" else ["text"]
    labels = rules.labels([batch[name] for name in columns])
    places = (batch[name].to_pylist() for name in ("trajectory_id", "event", "hash", "reply"))
    for trajectory, event, unit_hash, reply, label in zip(*places, labels, strict=True):
        cites = [event] if reply is None else [event, reply]
        place = {"trajectory": trajectory, "event": event, "unit_hash": unit_hash}
        yield to_json({**place, **same, "label": label, "cites": cites})
