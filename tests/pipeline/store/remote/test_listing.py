"""A list in spans is the whole list, whatever the mirror knew and whatever order the object store has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from coaudit.pipeline.store.remote import listing as rooms
from coaudit.pipeline.store.remote.bucket import Entry
from coaudit.pipeline.store.remote.listing import listing

THERE = [f"n{number:02d}" for number in range(50)]


class Names:
    """A bucket of one folder that holds names, by pages of five."""

    def __init__(self, there: Sequence[str], url: str = "s3://bucket/study") -> None:
        self.there = [f"ratings/{name}" for name in there]
        self.url, self.scheme = url, url.partition("://")[0]
        self.side_by_side = ThreadPoolExecutor(4)
        self.asked: list[str | None] = []
        self.given = 0

    def names(self, folder: str, after: str | None = None) -> Iterator[tuple[str, Entry]]:
        self.asked.append(after)
        for name in self.there:
            if after is None or name > after:
                self.given += 1
                yield name, Entry("tag", 1)

    def entries(self, folder: str) -> dict[str, Entry]:
        return dict(self.names(folder))


@pytest.fixture(autouse=True)
def _short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "PAGE", 5)
    monkeypatch.setattr(rooms, "SIDE_BY_SIDE", 4)


@pytest.mark.parametrize("known", [[], THERE[:1], THERE[:37], THERE[::2], THERE, [*THERE, "n99"]])
@pytest.mark.parametrize("new", [[], ["a", "n00x", "n24x", "n25x", "z"]])
def test_every_name_is_listed_wherever_it_stands(known: list[str], new: list[str]) -> None:
    bucket: Any = Names(sorted({*THERE, *new}))
    there = listing(bucket, {"ratings": known})
    assert sorted(there) == bucket.there


def test_what_is_gone_is_not_listed_though_a_span_ends_with_it() -> None:
    bucket: Any = Names([name for name in THERE if name not in ("n14", "n29", "n44")])
    assert sorted(listing(bucket, {"ratings": THERE})) == bucket.there


def test_a_list_that_is_known_is_asked_for_in_spans_that_do_not_overlap() -> None:
    bucket: Any = Names(THERE)
    listing(bucket, {"ratings": THERE})
    assert set(bucket.asked) == {None, "ratings/n14", "ratings/n29", "ratings/n44"}
    assert bucket.given == len(THERE)


@pytest.mark.parametrize("url", ["az://container/study", "s3://bucket--use1-az4--x-s3/study"])
def test_where_lists_have_no_order_or_no_beginning_they_are_asked_for_whole(url: str) -> None:
    bucket: Any = Names(THERE[::-1], url)
    assert sorted(listing(bucket, {"ratings": THERE})) == sorted(bucket.there)
    assert bucket.asked == [None]


class Deaf(Names):
    """A bucket that takes no notice of where a list is to begin."""

    def names(self, folder: str, after: str | None = None) -> Iterator[tuple[str, Entry]]:
        yield from super().names(folder)


@pytest.mark.parametrize("bucket", [Names([*THERE[10:], *THERE[:10]]), Deaf(THERE)])
def test_a_list_in_another_order_than_that_of_names_is_listed_again_whole(bucket: Any) -> None:
    assert sorted(listing(bucket, {"ratings": THERE})) == sorted(bucket.there)
