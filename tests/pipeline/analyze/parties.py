"""Sessions as process metrics see them."""

import numpy as np

from coaudit.pipeline.analyze.counts import BY_SHARE, Counts


def counts(
    units: object, answered: object, positives: object, parties: tuple[bool, ...] = (False, True)
) -> Counts:
    """Sessions of these parties (human or not), rated evenly."""
    n, k = (np.array(table, dtype=float).reshape(-1, len(parties)) for table in (answered, positives))
    held = np.array(units, dtype=float).reshape(-1, len(parties))
    member = np.ones(held.shape, dtype=bool)
    human = np.tile(parties, (len(held), 1))
    beyond, clusters = np.zeros(len(held), dtype=bool), np.arange(len(held))
    inclusion = np.full(len(held), np.nan)
    return Counts(
        held, n, k, n, k, n, k, member, human, ~beyond, clusters, beyond, inclusion, design=BY_SHARE
    )
