"""Trajectories as a model is shown them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...schemas import Trajectory
from ...schemas.codebook import Views
from ...schemas.results import with_results
from ..store import Store
from ..store.queries.stream import Size, stream
from .scope import HELD


def read(store: Store, sizes: Sequence[Size], views: Views) -> Iterator[list[Trajectory]]:
    """These trajectories, in this order: each event with what came of it in these views."""
    for trajectories in stream(store, sizes, HELD, states=True):
        yield [with_results(one, views) for one in trajectories]
