"""Whether a log is new, the same, or a session that has grown: what should be stored of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

import duckdb

from ...schemas import Trajectory, content_hash
from ..store import Store, dictionaries, execute, rows
from ..store.columns import digest
from ..systems import ReadOptions, merge
from .result import Ingested

SUFFIX = 7
"""Characters of what tells two trajectories of one id apart: a hyphen, then the beginning of a hash."""


def settled(
    store: Store,
    connection: duckdb.DuckDBPyConnection,
    trajectory: Trajectory,
    options: ReadOptions,
    result: Ingested,
    contents: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, Trajectory | None]:
    """Its id, and the trajectory as it should be stored; None where the store has it, or a longer copy of it.

    Two logs with one id of which neither continues the other are two trajectories: the later one gets a
    suffix made from the first event in which they differ. So are two that say the same without any times, in
    files of other contents to which other conditions were given: two runs of one policy. `contents` are the
    hashes of the sources of this run by path.
    """
    while True:
        head = dictionaries(connection, "SELECT * FROM trajectories WHERE id = ?", [trajectory.id])
        if not head:
            same = _same_session(store, connection, trajectory)
            if same is None:
                return trajectory.id, trajectory
            trajectory = trajectory.model_copy(update={"id": same})
            continue
        if head[0]["digest"] == digest(trajectory):
            if options.condition in (None, head[0]["condition"]):
                return trajectory.id, None
            if head[0]["started"] is None and _apart(connection, head[0]["source"], trajectory, contents):
                arm = content_hash(options.condition)[:6]
                trajectory = trajectory.model_copy(update={"id": f"{trajectory.id.partition('-')[0]}-{arm}"})
                continue
        stored = store.load(connection, [trajectory.id])[0]
        if together := merge.settled(stored, trajectory):
            return trajectory.id, None if digest(together) == head[0]["digest"] else together
        old, new = rows.event_digests(stored.events), rows.event_digests(trajectory.events)
        if new == old[: len(new)] and len(new) < len(old):
            return trajectory.id, None
        if old == new[: len(old)]:
            updated = _updated(stored, trajectory, options)
            same = head[0]["digest"] == digest(updated) and updated.condition == head[0]["condition"]
            return trajectory.id, None if same else updated
        differs = next(i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
        shared = (
            f"same session as {stored.source} up to event {differs}, then another"
            if differs
            else f"has the id of a session of {stored.source} whose first event, or its time, is another"
        )
        result.notes.append(f"{trajectory.source}: {shared}; kept as a trajectory of its own")
        renamed = f"{trajectory.id.partition('-')[0]}-{new[differs][:6]}"
        if renamed == trajectory.id:
            return trajectory.id, None
        trajectory = trajectory.model_copy(update={"id": renamed})


def with_suffixes(ids: Collection[str]) -> dict[str, str]:
    """Id as it is read -> the one with a suffix, of those that a source gave, where it did not give both."""
    named = {key[:-SUFFIX]: key for key in ids if key[-SUFFIX:].startswith("-")}
    return {key: suffixed for key, suffixed in named.items() if key not in ids}


def _apart(
    connection: duckdb.DuckDBPyConnection, before: str, trajectory: Trajectory, contents: Mapping[str, str]
) -> bool:
    """Whether a trajectory comes from a source of another content than the one that it was stored from."""
    stored, own = content_of(connection, before, contents), contents.get(trajectory.source)
    return before != trajectory.source and None not in (stored, own) and stored != own


def content_of(connection: duckdb.DuckDBPyConnection, path: str, contents: Mapping[str, str]) -> str | None:
    """Hash of what a source held when it was last noted; of one that is not noted yet, in this run."""
    query = "SELECT content_hash FROM sources WHERE path = ? ORDER BY ingested DESC LIMIT 1"
    noted = execute(connection, query, [path]).fetchall()
    return noted[0][0] if noted else contents.get(path)


def _same_session(store: Store, connection: duckdb.DuckDBPyConnection, trajectory: Trajectory) -> str | None:
    """The id of a stored trajectory that is the same session, of which one was heard and one logged.

    The id of a session without an opening query rests on when it began, by two clocks; that of one joined
    late on when it was joined.
    """
    query = """
        SELECT t.id FROM trajectories t
        WHERE t.native_id = ? AND t.system = ?
            AND (? OR EXISTS (SELECT 1 FROM outcomes o WHERE o.trajectory_id = t.id AND o.name = ?))
        ORDER BY t.id
    """
    given = [trajectory.native_id, trajectory.system, merge.was_heard(trajectory), merge.HEARD]
    ids = [row[0] for row in execute(connection, query, given).fetchall()]
    others = store.load(connection, ids) if ids else []
    alike = [one for one in others if merge.same_start(one, trajectory) and merge.agree(one, trajectory)]
    return min(alike, key=lambda one: merge.apart(one, trajectory)).id if alike else None


def _updated(stored: Trajectory, read: Trajectory, options: ReadOptions) -> Trajectory:
    """What was read, with what is known from elsewhere: the first source, and what only live traffic told."""
    live = [event for event in stored.events if event.live_only]
    events = sorted([*read.events, *live], key=lambda event: (event.seq, event.sub))
    kept: dict[str, object] = {
        "source": stored.source,
        "events": tuple(events),
        "hidden": read.hidden or stored.hidden,
    }
    for name in ("condition", "agent"):
        if getattr(options, name) is None:
            kept[name] = getattr(stored, name) or getattr(read, name)
    if options.setting is None and read.setting is None:
        kept["setting"] = stored.setting
    if not options.tags:
        kept["tags"] = read.tags | stored.tags
    return read.model_copy(update=kept)
