"""The database made anew from logs and ledgers, and brought up to what the ledger of sources holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from os.path import exists
from pathlib import Path
from typing import Any

import duckdb

from ...schemas import Quarantined
from ...schemas.text import count_of
from ..errors import StoreError
from ..store import ALERTS, Store, dictionaries, execute, insert
from ..store.ledgers.sync import ledger_offsets, note_offsets
from . import forgetting, serving
from . import sources as provenance
from .intake import Intake
from .measure import read_references
from .refusals import opened
from .result import IngestResult, Progress
from .sources import Source
from .workers import Readers

GONE = "the log is gone; its ratings are kept"


def rebuild(store: Store, progress: Progress | None = None, *, unless_made: bool = False) -> IngestResult:
    """Make the database anew from the ledgers; a log that is gone is named, and its ratings are kept.

    The tables are made beside the old ones. What others write into the old ones meanwhile is read once more;
    then, while nobody writes, the new ones take their place. With `unless_made`, nothing is done where
    another process has made some since.
    """
    store.admit_writes()
    store.refuse_newer()
    with store.tables.locks.exclusive("rebuild", lambda holder: None):
        if unless_made and store.has_tables():
            return IngestResult()
        return _replace(store, progress)


def catch_up(store: Store, progress: Progress | None = None) -> IngestResult:
    """Read the sources that the ledger holds beyond the database."""
    ledger = store.workspace.sources
    with store.reading(synced=True) as connection:
        before = ledger_offsets(connection)
    ends = ledger.ends(before)
    sources, bad_lines = provenance.read_ledger(store.workspace, before)
    result = _fill(store, sources, progress)
    with store.writing() as connection:
        now = ledger_offsets(connection)
        first = {n for n in ends if now.get(n, 0) == before.get(n, 0)}  # else another process has said so
        items = [(Path(item.source).name, item) for item in bad_lines]
        rows = [{**item.model_dump(), "read_from": name} for name, item in items if name in first]
        insert(connection, "quarantine", rows)
        note_offsets(connection, {n: end for n, end in ends.items() if now.get(n, 0) <= end})
    result.quarantined.extend(bad_lines)
    return result


def _replace(store: Store, progress: Progress | None) -> IngestResult:
    aside = store.replacement()
    try:
        result = _fill_new(aside, progress)
        with store.tables.exclude_writers():
            store.workspace.pull(at_once=True)  # what other machines stored since, whose tables these are too
            if (standing := aside.standing()) and standing.lacks_sources:
                result.quarantined.extend(catch_up(aside).quarantined)
            if store.is_shared:
                _keep_scrapes(store, aside)
            _keep_refused(store, aside)
            _keep_marks(store, aside)
            if sources := _changed_sources(store, aside):
                _fill(aside, sources, None)  # what is wrong with them was said above
            _name_overwritten(store, aside, result)
            store.tables.replace()
        return result
    finally:
        aside.tables.clear()


def _keep_scrapes(store: Store, aside: Store) -> None:
    """Take over the scrapes of model servers, which lie on the machine that made them, and else only in the
    tables."""
    if not store.is_made:
        return
    with store.reading_any_version() as connection:
        try:
            scrapes = dictionaries(connection, "SELECT * FROM serving")
        except (duckdb.CatalogException, duckdb.BinderException):  # tables from before there were scrapes
            return
    with aside.writing() as connection:
        serving.keep(connection, scrapes)


def _keep_refused(store: Store, aside: Store) -> None:
    """Take over what was wrong with sources that gave nothing: no ledger holds it."""
    query = """
        SELECT source, line, reason, read_from FROM quarantine
        WHERE starts_with(read_from, '/') AND reason <> ?
    """
    wrong = _old_rows(store, query, GONE)
    with aside.writing() as connection:
        query = "SELECT path FROM sources UNION SELECT read_from FROM quarantine"
        there = {path for (path,) in connection.execute(query).fetchall()}
        insert(connection, "quarantine", [row for row in wrong if opened(row["read_from"]) not in there])


def _keep_marks(store: Store, aside: Store) -> None:
    """Take over how far a follower's alerts have got in the sessions that are there still."""
    marks = _old_rows(store, "SELECT * FROM meta WHERE starts_with(key, ?)", ALERTS)
    with aside.writing() as connection:
        ids = {key for (key,) in connection.execute("SELECT id FROM trajectories").fetchall()}
        insert(connection, "meta", [row for row in marks if row["key"].removeprefix(ALERTS) in ids])


def _old_rows(store: Store, query: str, parameter: str) -> list[dict[str, Any]]:
    """Rows of the old tables; none where there are no such tables."""
    try:
        if not store.is_made:
            return []
        with store.reading_any_version() as connection:
            return dictionaries(connection, query, [parameter])
    except (StoreError, duckdb.Error):  # an old database that cannot be read is what a rebuild is for
        return []


def _fill_new(aside: Store, progress: Progress | None) -> IngestResult:
    """Fill a database that does not exist yet."""
    with aside.writing():
        pass
    if aside.workspace.sources.exists():
        return catch_up(aside, progress)
    return _fill(aside, (), progress)


def _changed_sources(store: Store, aside: Store) -> list[Source]:
    """The sources of trajectories that the old database has in a later state than the new one.

    A session that is followed grows without a new line in the ledger of sources.
    """
    try:
        old, new = _digests(store), _digests(aside)
        with store.reading(synced=True) as connection:
            owners = connection.execute("SELECT path, trajectory_ids FROM sources").fetchall()
    except (StoreError, duckdb.Error):  # an old database that cannot be read is what a rebuild is for
        return []
    keys = {key for key, digest in old.items() if new.get(key) != digest}
    paths = {path for path, ids in owners if keys & set(ids)}
    return [source for source in provenance.read_ledger(store.workspace)[0] if source.path in paths]


def _digests(store: Store) -> dict[str, str]:
    if not store.has_tables():
        return {}
    with store.reading(synced=True) as connection:
        return dict(connection.execute("SELECT id, digest FROM trajectories").fetchall())


def _fill(store: Store, sources: Sequence[Source], progress: Progress | None) -> IngestResult:
    """Read sources into a store, and the ledgers of ratings and outcomes after them."""
    result = IngestResult()
    exclusions = forgetting.read_exclusions(store.workspace)
    logs = [source for source in sources if not source.reference and source.path not in exclusions.sources]
    with Readers() as readers:
        readers.expect(sum(source.bytes or 0 for source in logs if source.copied or exists(source.path)))
        intake = Intake(store, result, readers, derives=False)
        for item in _references(store, (one for one in sources if one.reference)):
            intake.refuse(item, item.source)
        last = {source.path: source for source in logs}
        missing = [source for source in logs if _is_written_over(source, last[source.path])]
        logs = [source for source in logs if not _is_written_over(source, last[source.path])]
        places = [provenance.locate(store.workspace, source) for source in logs]
        there = {source.path for source, place in zip(logs, places, strict=True) if place}
        for source, place in zip(logs, places, strict=True):
            if place is not None:
                intake.expect(source, place, before=source.trajectory_ids, fresh=False)
            elif source.path not in there:  # else another line notes a copy
                missing.append(source)
        intake.run(progress)
    _name_lost(store, result, missing)
    with store.writing() as connection:
        result.quarantined += serving.replay(store, connection)
    store.sync(lags=True)
    intake.leave_out(forgetting.enforce(store).trajectories)
    return result


def _is_written_over(source: Source, last: Source) -> bool:
    """Whether a source has no copy, and a run of another condition was ingested from its path since."""
    conditions = {source.options.condition, last.options.condition} - {None}
    return not source.copied and source.content_hash != last.content_hash and len(conditions) == 2


def _name_lost(store: Store, result: IngestResult, sources: Sequence[Source]) -> None:
    """Quarantine the sources that are gone and are not there as such yet, except moved logs, whose sessions
    another source gives."""
    if not sources:
        return
    digests = _digests(store)
    with store.reading() as connection:
        query = "SELECT read_from FROM quarantine WHERE reason = ?"
        noted_paths = {path for (path,) in execute(connection, query, [GONE]).fetchall()}
    paths = {one.path for one in sources if not all(key in digests for key in one.trajectory_ids)}
    with Readers() as readers:
        intake = Intake(store, result, readers, derives=False)
        for path in sorted(paths - noted_paths):
            intake.refuse(Quarantined(source=path, reason=GONE), path)
        intake.run()


def _name_overwritten(store: Store, aside: Store, result: IngestResult) -> None:
    """Quarantine the logs that exist and no longer give all of a session of the old tables: another was
    written over it."""
    try:
        old = _sources(store)
    except (StoreError, duckdb.Error):  # an old database that cannot be read is what a rebuild is for
        return
    new, exclusions = _sources(aside), forgetting.read_exclusions(store.workspace)
    paths = {item.source for item in result.quarantined if item.reason == GONE} | exclusions.sources
    losses = Counter(old[key][0] for key in old.keys() - new.keys() - exclusions.trajectories)
    less = {key: n - new[key][1] for key, (_, n) in old.items() if key in new and n > new[key][1]}
    phrases = {source: count_of(n, "session", "sessions") for source, n in losses.items()}
    for key, n in less.items():
        source = old[key][0]
        events = f"{count_of(n, 'event', 'events')} of {key}"
        phrases[source] = f"{phrases[source]}, and {events}" if source in phrases else events
    items = [
        Quarantined(source=source, reason=f"no longer contains {what} that it gave before; ratings are kept")
        for source, what in sorted(phrases.items())
        if paths.isdisjoint({source, *map(str, Path(source).parents)})
    ]
    with aside.writing() as connection:
        insert(connection, "quarantine", [{**item.model_dump(), "read_from": item.source} for item in items])
    result.quarantined.extend(items)


def _sources(store: Store) -> dict[str, tuple[str, int]]:
    """Trajectory -> where it was read, and how many events it has."""
    if not store.has_tables():
        return {}
    with store.reading(synced=True) as connection:
        rows = connection.execute("SELECT id, source, n_events FROM trajectories").fetchall()
    return {key: (source, events) for key, source, events in rows}


def read_again(store: Store, names: Sequence[str], progress: Progress | None = None) -> IngestResult:
    """Read the noted sources that have these paths, or gave these trajectories, once more."""
    targets = set(names)
    sources = [
        source
        for source in provenance.read_ledger(store.workspace)[0]
        if source.path in targets or targets & set(source.trajectory_ids)
    ]
    return _fill(store, sources, progress)


def _references(store: Store, sources: Iterable[Source]) -> list[Quarantined]:
    unread: list[Quarantined] = []
    for source in sources:
        if place := provenance.locate(store.workspace, source):
            unread += read_references(store, place.path).unread
        else:
            unread.append(Quarantined(source=source.path, reason="the references are gone"))
    return unread
