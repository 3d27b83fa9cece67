"""CoBlock's figures 6 and 7 and the errors of its section 4.4."""

from __future__ import annotations

from collections.abc import Iterator

from ....annotation.statistics.intervals import wilson
from ....schemas import Trajectory
from ....schemas.trajectory import COPY, recorded
from ...systems import coblock
from ...systems.coblock import faults
from .cells import Estimate, LeftOut, Paper, Replicated, by_reason, replicated
from .records import Record, Records, grouped

SYSTEM = coblock.SYSTEM.name
PER_CENT = 100
METRICS = ("success_rate", "workload_balance", "timesteps")
WORDS = {
    "success_rate": "every block of the target stands, by replay, per cent; extra blocks do not matter",
    "workload_balance": "Eq. 3 with places and breaks as actions, optimal split on the target's blocks",
    "timesteps": "every action, messages and waits included",
    "neglected_own_goal": "per cent of failed games; the paper's authors judged by hand, here a rule does",
    "no initiative": "judged by hand in the paper; no rule tells it",
    "stopped_early": "per cent of games; here whoever stopped while a block they held was missing",
}


def tables(records: Records, paper: Paper) -> Iterator[Replicated]:
    """What figures draw, and the errors that the text counts."""
    first, second = paper.tables
    yield replicated(first, dict(_figures(records)), WORDS)
    yield replicated(second, dict(_errors(records)), WORDS)


def left_out(records: Records, paper: Paper) -> tuple[LeftOut, ...]:
    """Games that say of no type, and copies of other records."""
    return by_reason((r.native_id, why) for r in records.all if (why := _why(r)) is not None)


def _why(record: Record) -> str | None:
    if copy := record.tags.get(COPY):
        return f"a shorter copy of record {copy}"
    return None if _type(record) else "its type is not known: the export lacks goals or inventories"


def _type(record: Record) -> str | None:
    """As the log's content says (`task_type`)."""
    return record.tags.get("task_type") if COPY not in record.tags else None


def _row(record: Record) -> str | None:
    kind = _type(record)
    return kind and f"{'human-machine' if record.people else 'machine-machine'} · {kind}"


def _figures(records: Records) -> Iterator[tuple[tuple[str, str], Estimate]]:
    for row, runs in grouped(records.all, _row).items():
        for metric in METRICS:
            factor = PER_CENT if metric == "success_rate" else 1
            yield (row, metric), records.measured(runs, metric).times(factor)


def _errors(records: Records) -> Iterator[tuple[tuple[str, str], Estimate]]:
    for kind, runs in grouped(records.all, _type).items():
        games = records.loaded(runs)
        failures = [game for game in games if recorded(game, "success").value == 0]
        neglected = [bool(list(faults.neglected_own_goal(game))) for game in failures]
        yield (kind, "neglected_own_goal"), _share(neglected, "no game of this type failed")
        yield (kind, "stopped_early"), _share([_stops_early(game) for game in games], "no game of this type")


def _stops_early(game: Trajectory) -> bool:
    return any(True for _ in faults.stopped_early(game))


def _share(present: list[bool], none: str) -> Estimate:
    if not present:
        return Estimate(None, reason=none)
    low, high, *_ = wilson(sum(present), len(present))
    return Estimate(sum(present) / len(present), len(present), low, high).times(PER_CENT)
