"""Blocks of rows as Arrow's tables, which have the same columns whatever is asked."""

from __future__ import annotations

import pyarrow as pa

from .rows import KEY, PROMPT, QUESTION, SAMPLING

QUESTIONS = pa.schema([(KEY, pa.int64()), (QUESTION, pa.string())])
PROMPTS = pa.schema(
    [
        (KEY, pa.int64()),
        (PROMPT, pa.list_(pa.int32())),
        (SAMPLING, pa.string()),
        ("most", pa.int64()),
        ("refused", pa.string()),
    ]
)
