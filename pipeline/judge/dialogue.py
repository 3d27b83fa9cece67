"""The lexical rules over whole tables: one query a codebook gives the messages as columns of texts.

No trajectory is loaded and no unit is built: the tables have the units, their hashes and their messages.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic_core import to_json

from ...judges.rules import Rules
from ...judges.rules.lexical import NAME, VERSION
from ...schemas import UNCLEAR, Codebook, Verdict
from ..store import Store, constant, execute, write_out
from ..store.connection import cores
from ..store.memory import spill_folder
from ..store.queries.aside import batches
from .local import turn, units_of
from .scope import Say, Scope, Summary

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 20_000
"""Units that are in memory at a time."""
MEMORY = "150MB"
"""DuckDB's memory for the query that joins units with their texts."""
BYTES = 16 * 1024 * 1024
"""Bytes of texts rated at a time: the rules hold several copies, and Arrow's texts end at 2 GB."""
THREADS = 4
"""At most so many threads rate: each holds its batch in memory."""
UTTERANCES = """
    SELECT u.trajectory_id, u.event, u.hash, coalesce(utterance.text, '') AS text
    FROM wanted u JOIN events utterance
        ON utterance.trajectory_id = u.trajectory_id AND utterance.seq = u.event
    JOIN trajectories t ON t.id = u.trajectory_id
    WHERE u.is_left AND NOT utterance.live_only
"""
QUESTIONS = """
    SELECT u.trajectory_id, u.event, u.hash, coalesce(utterance.text, '') AS text,
        reply.seq AS reply, coalesce(reply.text, '') AS replied
    FROM wanted u JOIN events utterance
        ON utterance.trajectory_id = u.trajectory_id AND utterance.seq = u.event
    JOIN (
        SELECT trajectory_id, event, lead(event) OVER (PARTITION BY trajectory_id ORDER BY event) AS next
        FROM units WHERE kind = 'utterance'
    ) n ON n.trajectory_id = u.trajectory_id AND n.event = u.event
    JOIN events reply ON reply.trajectory_id = u.trajectory_id AND reply.seq = n.next
    JOIN trajectories t ON t.id = u.trajectory_id
    WHERE u.is_left AND NOT utterance.live_only AND NOT reply.live_only
"""
"""A question's reply is the utterance after it (pipeline/units.py)."""


def judge_dialogue(store: Store, scope: Scope, rule_sets: Sequence[Rules], say: Say) -> Summary:
    """Rate with the rules of each codebook."""
    summary = Summary()
    with turn(store, NAME, summary, say) as ledger, tempfile.TemporaryDirectory(dir=spill_folder()) as folder:
        for rules in rule_sets:
            file = Path(folder) / f"{rules.codebook.name}.parquet"
            summary.already += _write(store, scope.less(summary.rated), rules.codebook, file)
            if not file.exists():
                continue
            for lines, count in _ledger_lines(rules, _read(file)):
                ledger.write_text(lines)
                ledger.flush()
                summary.rated += count
            _release()
    return summary


def _release() -> None:
    """Free the memory that Arrow keeps of batches that are rated."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def _ledger_lines(rules: Rules, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[memoryview, int]]:
    """The ledger's lines of each batch, in order, and their number. Threads rate in parallel: Arrow releases
    the GIL while it searches texts."""
    threads = min(cores(), THREADS)
    rating: deque[Future[tuple[memoryview, int]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for batch in batches:
            rating.append(pool.submit(_lines, rules, batch))
            if len(rating) > threads:
                yield rating.popleft().result()
        while rating:
            yield rating.popleft().result()


def _write(store: Store, scope: Scope, book: Codebook, file: Path) -> int:
    """Write the messages of a codebook's unrated units to a Parquet file, in the order in which trajectories
    began; returns how many units are rated already. Without unrated units there is no file.

    The rating then reads the file, so that the database is not open meanwhile.
    """
    units, parameters = units_of(book, (NAME, VERSION), scope)
    limit = "" if scope.limit is None else f"LIMIT {max(0, scope.limit)}"
    query = f"""
        COPY (
            {QUESTIONS if book.unit == "question_reply" else UTTERANCES}
            ORDER BY t.started, t.native_id, t.id, u.event {limit}
        ) TO {constant(str(file))} (FORMAT parquet, ROW_GROUP_SIZE {AT_ONCE})
    """
    with store.reading(synced=True) as connection:
        execute(connection, f"CREATE OR REPLACE TEMP TABLE wanted AS {units}", parameters)
        counts = "SELECT count(*) FILTER (is_left), count(*) FILTER (NOT is_left) FROM wanted"
        ((rest, already),) = connection.execute(counts).fetchall()
        if rest:
            write_out(connection, query, MEMORY)
        connection.execute("DROP TABLE wanted")
    return int(already)


def _read(file: Path) -> Iterator[pa.RecordBatch]:
    """The file's units, some at a time."""
    for batch in batches(file, AT_ONCE):
        yield from _parts(batch)


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    half = batch.num_rows // 2
    if batch.nbytes <= BYTES or not half:
        yield batch
        return
    yield from _parts(batch.slice(0, half))
    yield from _parts(batch.slice(half))


def _lines(rules: Rules, batch: pa.RecordBatch) -> tuple[memoryview, int]:
    """The ledger's lines of a batch, and their number; fields that all ratings share are serialised once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    book = rules.codebook
    template = rules.maker.rating_at(("", None, None), Verdict(book.codes[0].code, UNCLEAR))
    fields = template.model_dump_json(exclude_defaults=True, exclude={"trajectory", "label"})
    columns = ["text", "replied"] if book.unit == "question_reply" else ["text"]
    labels = rules.labels([batch[name] for name in columns])
    event = batch["event"].cast("string")
    cites = [event] if len(columns) == 1 else [event, ",", batch["reply"].cast("string")]
    parts = [
        *('{"trajectory":', _json_strings(batch["trajectory_id"]), ',"event":', event),
        *(',"unit_hash":', _json_strings(batch["hash"]), f",{fields[1:-1]}"),
        *(',"label":', _json_strings(pa.array(labels, "string")), ',"cites":[', *cites, "]}\n"),
    ]
    lines = pc.binary_join_element_wise(*parts, "")
    offsets, text = lines.buffers()[1:]
    first, last = (memoryview(offsets).cast("i")[place] for place in (0, len(lines)))
    return memoryview(text)[first:last], len(lines)


def _json_strings(texts: pa.StringArray) -> pa.StringArray:
    """Texts as JSON string literals; each distinct text is encoded once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pc.dictionary_encode(texts)
    literals = [to_json(word).decode() for word in words.dictionary.to_pylist()]
    return pa.array(literals, "string").take(words.indices)
