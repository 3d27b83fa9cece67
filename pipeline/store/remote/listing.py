"""The objects in the folders of an object store, listed in spans side by side.

A list comes by pages of a thousand names, each of which says where the next begins: a hundred thousand are a
hundred requests one after the other. The names that a mirror has split a list into spans that need not wait
for each other. Everything is still listed: a machine whose clock is behind, or a run that began long ago,
writes names that stand before others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from .bucket import SIDE_BY_SIDE, Bucket, Entry

PAGE = 1000
"""Names that an object store gives at a time."""
ORDERED = ("s3", "gs")
"""Object stores whose lists are in order and can begin behind a name; elsewhere the client does that."""
UNORDERED = "--x-s3"
"""Part of the names of S3's directory buckets, whose lists have no order."""


class Span(NamedTuple):
    """A part of a folder: the names behind `after`, up to and including `last`."""

    folder: str
    after: str | None
    last: str | None


def listing(bucket: Bucket, names_by_folder: Mapping[str, Sequence[str]]) -> dict[str, Entry]:
    """The objects of folders. `names_by_folder` holds the names that are known of each, in order; () for a
    new folder."""
    in_order = bucket.scheme in ORDERED and UNORDERED not in bucket.url
    spans = [
        span
        for folder, names in names_by_folder.items()
        for span in _spans(folder, names if in_order else ())
    ]
    parts = bucket.side_by_side.map(lambda span: _list_span(bucket, span), spans)
    objects = {name: entry for part in parts for name, entry in part.items()}
    # A list in another order would most likely lack a known name: such a folder is listed again as a whole.
    doubtful = [
        folder
        for folder, names in names_by_folder.items()
        if any(f"{folder}/{n}" not in objects for n in names)
    ]
    for entries in bucket.side_by_side.map(bucket.entries, doubtful):
        objects |= entries
    return objects


def _spans(folder: str, names: Sequence[str]) -> Iterator[Span]:
    """Spans of whole pages, as many as are listed at once; the last one has no end."""
    pages = -(-len(names) // PAGE)
    each = PAGE * max(1, -(-pages // SIDE_BY_SIDE))
    cuts = [f"{folder}/{names[number]}" for number in range(each - 1, len(names), each)]
    for after, last in pairwise([None, *cuts, None]):
        yield Span(folder, after, last)


def _list_span(bucket: Bucket, span: Span) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for name, entry in bucket.names(span.folder, span.after):
        if span.last is not None and name > span.last:
            break
        entries[name] = entry
        if name == span.last:
            break
    return entries
