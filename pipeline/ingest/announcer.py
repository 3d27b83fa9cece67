"""Sources against what the store knows of them: which are read, from where on, and which are as they were."""

from __future__ import annotations

from ...schemas.text import count_of
from ..store import Store
from ..store.ledgers import ledger
from ..systems import ReadOptions, Span
from . import forgetting
from . import sources as provenance
from .intake import Intake
from .result import IngestResult
from .sources import KnownSource, Place, Source, known_sources, quarantined_sources


class Announcer:
    """Holds sources against what the store knew when the run began: `intake` is told what is to be read,
    `result` what is not."""

    def __init__(self, store: Store, result: IngestResult, intake: Intake) -> None:
        self._store = store
        self._result = result
        self._intake = intake
        self._sources = known_sources(store)
        self._wrong = quarantined_sources(store)
        self._ways = provenance.ways(store.workspace)
        self._exclusions = forgetting.read_exclusions(store.workspace)

    def is_new(self, place: Place) -> bool:
        """Whether a place was never read, nor taken out of what counts."""
        return place.name not in self._sources and place.name not in self._exclusions.sources

    def announce(self, place: Place, options: ReadOptions, *, copy: bool) -> None:
        """Have a source read as far as it is new; OSError where it cannot be opened."""
        source = source_of(place, options)
        if source.path in self._exclusions.sources:
            self._result.forgotten_sources.append(source.path)
            return
        before = self._as_read_now(source, place)
        if before and before.holds(source):
            self._leave(source, before, None)
            return
        growth = provenance.growth(before, source, place) if before else None
        if copy or self._store.is_shared:
            copy_path = provenance.copy_source(self._store.workspace, place, source.content_hash)
            source = source.model_copy(update={"copied": copy_path})
        if before and growth:
            self._leave(source, before, growth)
            self._intake.expect(source, place, growth, before.ids)
        else:
            self._intake.expect(source, place, before=before.ids if before else ())

    def _as_read_now(self, source: Source, place: Place) -> KnownSource | None:
        """The source as the store has it. What another way of reading gave is taken out, and the source is
        new, unless it gives nothing in the way that is asked for now."""
        before = self._sources.get(source.path)
        if before is None or self._ways.get(source.path, source.way) == source.way:
            return before
        if not provenance.gives_anything(place, source.options):
            return before
        effect = forgetting.replace(self._store, source.path, before.ids)
        self._result.notes.append(_replacement_note(source.path, effect))
        return None

    def _leave(self, source: Source, before: KnownSource, growth: Span | None) -> None:
        """Count what is not read again: all of a source, or what stands before its growth; a trajectory of
        several sources counts once. What was wrong with it is said again as long as it is so."""
        forgotten = self._exclusions.trajectories.intersection(before.ids)
        self._result.leave({*before.ids} - forgotten)
        self._result.forgotten |= forgotten
        wrong = self._wrong.get(source.path, [])
        self._result.quarantined += (
            [item for item in wrong if item.line and item.line < growth.line] if growth else wrong
        )


def source_of(place: Place, options: ReadOptions) -> Source:
    """A source as it is now; OSError where it cannot be opened."""
    content = provenance.content(place)
    return Source(
        path=place.name,
        system=place.system,
        content_hash=content,
        bytes=provenance.size(place) if place.path.is_file() else None,
        options=options,
        ingested=ledger.now(),
    )


def _replacement_note(path: str, effect: forgetting.Effect) -> str:
    count = count_of(len(effect.trajectories), "trajectory is", "trajectories are")
    return f"{path}: read in another way, {count} replaced{forgetting.kept_note(effect.ratings)}"
