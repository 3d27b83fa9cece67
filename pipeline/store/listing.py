"""What lies in the folders of an object store, listed in spans side by side.

A list comes by pages of a thousand names, each of which says where the next begins: a hundred thousand are a
hundred requests one after the other. Names that a mirror has cut the list into spans that need not wait for
each other. All of it is listed still: a machine whose clock is behind, or a run that began long ago, writes
names that stand before others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from .bucket import SIDE_BY_SIDE, Bucket, Listed

PAGE = 1000
"""Names that an object store gives at a time."""
ORDERED = ("s3", "gs")
"""Where a list can begin behind a name, and is in their order; elsewhere that is the client's work."""
UNORDERED = "--x-s3"
"""In the names of S3's directory buckets, whose lists have no order."""


class Span(NamedTuple):
    """Part of a folder: the names behind one, up to another."""

    folder: str
    after: str | None
    last: str | None


def listing(bucket: Bucket, names_by_folder: Mapping[str, Sequence[str]]) -> dict[str, Listed]:
    """The objects of folders; `known` are names of each in order, none of a folder that is new."""
    in_order = bucket.scheme in ORDERED and UNORDERED not in bucket.url
    spans = [
        span
        for folder, names in names_by_folder.items()
        for span in _spans(folder, names if in_order else ())
    ]
    parts = bucket.side_by_side.map(lambda span: _list_span(bucket, span), spans)
    objects = {name: entry for part in parts for name, entry in part.items()}
    # What a list in another order would have passed over is most likely known: then nothing is sure.
    doubtful = [
        folder
        for folder, names in names_by_folder.items()
        if any(f"{folder}/{n}" not in objects for n in names)
    ]
    for entries in bucket.side_by_side.map(bucket.listed, doubtful):
        objects |= entries
    return objects


def _spans(folder: str, names: Sequence[str]) -> Iterator[Span]:
    """Spans of whole pages, as many as are listed at once; the last one has no end."""
    pages = -(-len(names) // PAGE)
    each = PAGE * max(1, -(-pages // SIDE_BY_SIDE))
    cuts = [f"{folder}/{names[number]}" for number in range(each - 1, len(names), each)]
    for after, last in pairwise([None, *cuts, None]):
        yield Span(folder, after, last)


def _list_span(bucket: Bucket, span: Span) -> dict[str, Listed]:
    entries: dict[str, Listed] = {}
    for name, entry in bucket.names(span.folder, span.after):
        if span.last is not None and name > span.last:
            break
        entries[name] = entry
        if name == span.last:
            break
    return entries
