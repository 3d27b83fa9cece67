"""Failure modes found: how often each is present by group and rater, with whom, and in which trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...annotation.statistics.estimate import UNIT, Estimate, Totals, estimate
from ...annotation.statistics.intervals import Floats
from ...schemas import GOLD
from .. import codebooks
from ..store import Selection, Store, dictionaries, execute, rows_with_arrays
from ..store.queries.groupings import keys_of
from .designs import Designs, follows_samples
from .totals import CLUSTER

FAILURES = "failures"
ORDER = ("human", "llm", "model", "rule")
"""Whose findings are shown first of those who rated as much, after gold."""

UNEVEN = 1.25
"""Samples are uneven where one trajectory was more than so many times as likely to be drawn as another:
smaller ratios come of rounding the strata's sizes."""


@dataclass(frozen=True)
class Share:
    """In how many of `n` trajectories a code (or category) is present, runs of an instance being alike."""

    code: str
    category: str | None
    """Of a code, empty where its codebook has none; None of a category itself."""
    rater: str
    group: tuple[str, ...]
    present: int
    n: int
    missing: int
    """Unclear or failed to answer."""
    estimate: Estimate

    @property
    def rate(self) -> float | None:
        return self.estimate.value

    @property
    def interval(self) -> tuple[float | None, float | None]:
        return self.estimate.low, self.estimate.high


def shares(
    store: Store, *, by: Sequence[str] = (), codebook: str = FAILURES, only: Selection | None = None
) -> list[Share]:
    """Every code and category of a trajectory codebook: by rater and group, in the codebook's order."""
    with store.reading() as connection:
        keys = keys_of(connection, by)
        names = "".join(
            f", coalesce({expression}, '–')::VARCHAR AS key_{i}" for i, (_, expression) in enumerate(keys)
        )
        where, values = (only or Selection()).where()
        cluster = "hash(t.id)" if "instance" in by else CLUSTER
        query = f"""
            WITH per_cluster AS (
                SELECT f.code, f.category, f.rater{names}, {cluster} AS cluster,
                    coalesce(sum(f.present), 0)::BIGINT AS y, count(f.present) AS x,
                    count(*) - count(f.present) AS missing
                FROM (
                    SELECT trajectory_id, codebook, code, coalesce(category, '') AS category, rater, present
                    FROM findings
                    UNION ALL
                    SELECT trajectory_id, codebook, code, NULL, rater, present FROM category_findings
                ) f JOIN trajectories t ON t.id = f.trajectory_id
                WHERE f.codebook = ? AND {where}
                GROUP BY ALL
            )
            SELECT * EXCLUDE (cluster, y, x, missing), sum(missing)::BIGINT AS missing,
                coalesce(list(y ORDER BY cluster) FILTER (x > 0), []) AS y,
                coalesce(list(x ORDER BY cluster) FILTER (x > 0), []) AS x
            FROM per_cluster GROUP BY ALL ORDER BY ALL
        """
        rows = rows_with_arrays(connection, query, [codebook, *values])
    return [_share(row, len(keys)) for row in rows]


def _share(row: dict[str, Any], keys: int) -> Share:
    present, answers = (np.array(row[name], dtype=np.float64) for name in ("y", "x"))
    n, clusters = int(answers.sum()), len(answers)
    sample = Totals(
        numerator=present,
        denominator=answers,
        n=n,
        names=np.arange(clusters),
        strata=np.zeros(clusters, dtype=np.int64),
        fraction=np.zeros(clusters),
        size=float(n),
        yes_no=True,
        bounds=UNIT,
    )
    return Share(
        row["code"],
        row["category"],
        row["rater"],
        tuple(row[f"key_{i}"] for i in range(keys)),
        int(present.sum()),
        n,
        row["missing"],
        estimate(sample),
    )


def books(store: Store, only: Selection | None = None) -> list[str]:
    """Codebooks of trajectories whose codes somebody found present or absent; FAILURES in front."""
    where, values = (only or Selection()).where()
    query = f"""
        SELECT DISTINCT f.codebook FROM findings f JOIN trajectories t ON t.id = f.trajectory_id
        WHERE (f.present IS NOT NULL OR f.codebook = ?) AND {where}
    """
    with store.reading() as connection:
        names = {str(name) for (name,) in execute(connection, query, [FAILURES, *values]).fetchall()}
    names &= {*codebooks.names(store.workspace.codebooks)}
    return sorted(names, key=lambda name: (name != FAILURES, name))


def raters(store: Store, codebook: str = FAILURES, only: Selection | None = None) -> list[dict[str, Any]]:
    """Who rated on a codebook (rater, kind, answers), the one to show first in front."""
    where, values = (only or Selection()).where()
    query = f"""
        SELECT rater, any_value(rater_kind) AS kind, count(label) AS answers,
            count(DISTINCT trajectory_id) AS trajectories
        FROM counted_ratings c JOIN trajectories t ON t.id = c.trajectory_id
        WHERE codebook = ? AND {where} GROUP BY rater
    """
    with store.reading() as connection:
        rows = dictionaries(connection, query, [codebook, *values])
    return sorted(rows, key=_first)


def _first(rater: dict[str, Any]) -> tuple[Any, ...]:
    """Sort key: who rated the most trajectories; of those gold, then whoever has the most answers, then by
    ORDER.

    Gold that settled a few disputes covers only those: its shares are not the corpus'.
    """
    kind = ORDER.index(rater["kind"]) if rater["kind"] in ORDER else len(ORDER)
    return (-rater["trajectories"], rater["rater"] != GOLD, -rater["answers"], kind, rater["rater"])


def is_uneven(store: Store, rater: str, codebook: str = FAILURES) -> bool:
    """Whether a rater rated what samples took, and these took some trajectories far more likely than others:
    its own shares are then not the corpus'."""
    with store.reading() as connection:
        return uneven_weights(Designs(connection), rater, codebook) is not None


def uneven_weights(designs: Designs, rater: str, codebook: str) -> Floats | None:
    """1/π (units,) where samples took some of what a rater rated far more likely than others, 0 of units that
    they did not take; None where no weights are wanted. The units are those of `rated_units`."""
    of_rater = designs.of(codebook, rater)
    if of_rater is None:
        return None
    design, is_asked = of_rater
    trajectories = execute(designs.connection, _TRAJECTORIES, []).fetchnumpy()["trajectory"]
    if not follows_samples(is_asked, design, trajectories):
        return None
    in_sample = ~np.isnan(design.inclusion)
    chances = design.inclusion[is_asked & in_sample]
    if not len(chances) or chances.max() <= UNEVEN * chances.min():
        return None
    return np.where(in_sample, 1 / np.where(in_sample, design.inclusion, 1.0), 0.0)


_TRAJECTORIES = "SELECT trajectory FROM rated_units ORDER BY place"


def code_pairs(
    store: Store, rater: str, *, codebook: str = FAILURES, only: Selection | None = None
) -> list[dict[str, Any]]:
    """Pairs of codes that one rater found in the same trajectories: code, other, shared, either."""
    where, values = (only or Selection()).where()
    query = f"""
        WITH f AS (
            SELECT f.trajectory_id, f.code FROM findings f JOIN trajectories t ON t.id = f.trajectory_id
            WHERE f.codebook = ? AND f.rater = ? AND f.present = 1 AND {where}
        ), alone AS (SELECT code, count(*) AS n FROM f GROUP BY code)
        SELECT a.code, b.code AS other, count(*) AS shared,
            any_value(x.n) + any_value(y.n) - count(*) AS either
        FROM f a JOIN f b ON b.trajectory_id = a.trajectory_id AND b.code > a.code
        JOIN alone x ON x.code = a.code JOIN alone y ON y.code = b.code
        GROUP BY a.code, b.code ORDER BY shared DESC, a.code, b.code
    """
    with store.reading() as connection:
        return dictionaries(connection, query, [codebook, rater, *values])


def sources(
    store: Store, rater: str, *, codebook: str = FAILURES, only: Selection | None = None
) -> list[dict[str, Any]]:
    """Where a rater put the cause of what it found: code, category (or the code), error_source, findings."""
    where, values = (only or Selection()).where()
    query = f"""
        SELECT f.code, coalesce(f.category, f.code) AS category,
            coalesce(f.error_source, 'not said') AS error_source, count(*) AS findings
        FROM findings f JOIN trajectories t ON t.id = f.trajectory_id
        WHERE f.codebook = ? AND f.rater = ? AND f.present = 1 AND {where}
        GROUP BY ALL ORDER BY ALL
    """
    with store.reading() as connection:
        return dictionaries(connection, query, [codebook, rater, *values])
