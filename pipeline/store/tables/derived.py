"""What is computed from the tables and kept beside them, so that reading it takes no time.

`counted` holds the ratings that count, `processed` how far each rater got with the units of the process
codebooks, `measured` every measure of every trajectory. All are refreshed in the transaction that changed
what they rest on, for the trajectories that it touched, and written in the order of trajectories, so that
reading those of one trajectory is cheap.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..connection import AMONG, constants, delete, execute, texts
from ..memory import release_memory

OVERDUE = 60.0
"""Seconds after which another process derives what a killed one left underived."""
TOGETHER, RATED_TOGETHER = 10_000, 2500
"""So many trajectories' rows are sorted together, and so many trajectories' ratings."""
PARTS = 16
"""The most parts that all rows are sorted in: each part takes a scan of everything."""
MANY = 2000
"""From so many trajectories on, everything is computed anew."""
NAMED = {"counting": MANY, "processing": 100, "measuring": 100}
"""View -> up to so many trajectories are constants of its query, each compared with each row by every scan;
more are selected from the whole view. On a lake 1,000 constants made `measuring` take 3.5 s, not 0.2."""
_Version = tuple[str, str, str | None]
"""Codebook, rater that was asked, version that answered."""
_Rater = tuple[str, str, str | None, str, bool]
"""A version, the name it goes by, and whether it has the last word on some unit."""
_OF_UNITS = "actor, opening, positive, unit_kind, category, asked, is_last"
"""Columns that `counting` has beyond those of `ratings`."""


def refresh(connection: Any, trajectories: Collection[str] | None = None) -> None:
    """Compute anew what is kept of these trajectories, or of all (None)."""
    if trajectories is not None and not trajectories:
        return
    before = _raters(connection)
    _count(connection, trajectories)
    raters = _raters(connection)
    if trajectories is not None and _any_of_several(connection, _lasting(raters) - _lasting(before)):
        # A version that has the last word somewhere again counts again everywhere.
        _count(connection, None)
        raters = _raters(connection)
    _leave_out(connection, {one[:3] for one in raters} - _lasting(raters))
    _name_versions(connection)
    # A rater who is new to a codebook has rated no other trajectory yet: those count as missing from now on.
    # The same holds of a version that now goes by the name of another.
    affected_ids = trajectories if _names(_raters(connection)) == _names(before) else None
    _fill(connection, "processed", "processing", affected_ids)
    _fill(connection, "measured", "measuring", affected_ids)


def _count(connection: Any, trajectories: Collection[str] | None) -> None:
    """Fill `counted`. Its rows are as wide as ratings, so they are sorted in parts, and which ones count is
    asked of the few columns that it rests on, which takes half the time."""
    if trajectories is not None and len(trajectories) < MANY:
        _fill(connection, "counted", "counting", trajectories)
        return
    connection.execute("DELETE FROM counted")
    for within in _parts(connection, RATED_TOGETHER):
        connection.execute(f"""
            INSERT INTO counted BY NAME
            SELECT r.*, c.* EXCLUDE (trajectory_id, ledger, line)
            FROM (FROM ratings WHERE {within}) r
            JOIN (SELECT trajectory_id, ledger, line, {_OF_UNITS} FROM counting WHERE {within}) c
                USING (trajectory_id, ledger, line)
            ORDER BY r.trajectory_id
        """)
        release_memory(connection)


def _fill(connection: Any, table: str, view: str, trajectories: Collection[str] | None) -> None:
    if trajectories is None or len(trajectories) >= MANY:
        connection.execute(f"DELETE FROM {table}")
        for within in _parts(connection, TOGETHER):
            connection.execute(f"INSERT INTO {table} FROM {view} WHERE {within} ORDER BY trajectory_id")
            release_memory(connection)
        return
    delete(connection, table, "trajectory_id", trajectories)
    insertion = f"INSERT INTO {table} FROM {view} WHERE trajectory_id {{}} ORDER BY trajectory_id"
    if len(trajectories) <= NAMED[view]:
        connection.execute(insertion.format(f"IN ({constants(sorted(trajectories))})"))
    else:
        execute(connection, insertion.format(AMONG), [texts(sorted(trajectories))])


def _parts(connection: Any, together: int) -> list[str]:
    """SQL conditions that split all rows into parts, in their order, each of about so many trajectories."""
    firsts = connection.execute(f"""
        SELECT min(id)
        FROM (
            SELECT id, (row_number() OVER (ORDER BY id) - 1)
                // greatest({together}, ceil(count(*) OVER () / {PARTS})::BIGINT) AS part
            FROM trajectories
        ) GROUP BY part HAVING part > 0 ORDER BY part
    """).fetchall()
    ends = [constants(first) for first in firsts]
    begin = ["true", *(f"trajectory_id >= {end}" for end in ends)]
    end = [*(f"trajectory_id < {end}" for end in ends), "true"]
    return [f"{first} AND {last}" for first, last in zip(begin, end, strict=True)]


def _any_of_several(connection: Any, versions: Collection[_Version]) -> bool:
    """Whether one of these versions is of a judge with several. Asked only where any is new: it reads all
    ratings."""
    if not versions:
        return False
    several = set(connection.execute("SELECT codebook, rater FROM several_versions").fetchall())
    return any((codebook, judge) in several for codebook, judge, _ in versions)


def _leave_out(connection: Any, versions: Collection[_Version]) -> None:
    """Delete the ratings of versions whose every unit another version has rated since. Of any other version
    all ratings count: those left would be of what the newer one was not asked about, such as the easy units
    beside disputed ones."""
    for version in versions:
        execute(connection, _VERSION_OUT, version)


_VERSION_OUT = """
    DELETE FROM counted WHERE codebook = ? AND asked = ? AND rater_version IS NOT DISTINCT FROM ?::VARCHAR
        AND NOT is_last
"""


def _name_versions(connection: Any) -> None:
    """Set the names that raters go by (view `version_names`); only a look where each rater has one version,
    as is usual."""
    versions = connection.execute(
        "SELECT codebook, asked, rater_version, rater FROM counted WHERE rater_kind <> 'human' GROUP BY ALL"
    ).fetchall()
    if len({(codebook, judge) for codebook, judge, _, _ in versions}) == len(versions) and all(
        judge == name for _, judge, _, name in versions
    ):
        return
    connection.execute("""
        UPDATE counted SET rater = n.shown FROM version_names n
        WHERE counted.codebook = n.codebook AND counted.asked = n.asked AND counted.rater_kind <> 'human'
            AND counted.rater_version IS NOT DISTINCT FROM n.rater_version AND counted.rater <> n.shown
    """)


def _raters(connection: Any) -> set[_Rater]:
    query = "SELECT DISTINCT codebook, asked, rater_version, rater, is_last FROM counted"
    return set(connection.execute(query).fetchall())


def _names(raters: Collection[_Rater]) -> set[tuple[_Version, str]]:
    return {(one[:3], one[3]) for one in raters}


def _lasting(raters: Collection[_Rater]) -> set[_Version]:
    """The versions that have the last word on some unit."""
    return {one[:3] for one in raters if one[4]}
