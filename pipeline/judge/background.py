"""What models and people who rate must know of a trajectory's task, and its log does not say."""

from __future__ import annotations

from ...schemas import Trajectory
from ..store import Store
from ..store.queries.trajectories import reference_rows
from ..systems import registry


class Backgrounds:
    """The backgrounds of trajectories, by the references that the store has."""

    def __init__(self, store: Store) -> None:
        with store.reading() as connection:
            self._references = registry.parsed_references(reference_rows(connection))

    def of(self, trajectory: Trajectory) -> str | None:
        """The background of one trajectory."""
        return registry.background(trajectory, self._references)
