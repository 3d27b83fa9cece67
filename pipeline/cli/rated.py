"""The store of commands that compute from ratings."""

from __future__ import annotations

from collections.abc import Collection

import typer

from ...schemas.text import count_of
from ..ingest import imports
from ..judge import jury
from ..store import Store
from .console import say, store


def rated_store(ctx: typer.Context, names: Collection[str] = ()) -> Store:
    """The store, after saying which ratings are in none of its figures for their codebook's sake, and which
    juries' labels are not what their members say by now. `names`: of these codebooks only."""
    here = store(ctx)
    for name, which, n in imports.out_of_book(here):
        if name in (names or [name]):
            ratings, count = count_of(n, "rating", "ratings"), "does" if n == 1 else "do"
            say(f"{name}: {ratings} {which} {count} not count (`coaudit ratings uncounted`)")
    for old in jury.backlogs(here):
        if old.codebook in (names or [old.codebook]):
            labels, members = count_of(old.n, "label is", "labels are"), ",".join(old.members)
            say(
                f"{old.codebook}: {labels} not what the members of {old.rater} say by now: `coaudit judge "
                f"--rater {old.rater} --members {members} --codebook {old.codebook}`"
            )
    return here
