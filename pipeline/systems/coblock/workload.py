"""CoBlock's workload balance: two agents' actions against the optimal split of the work (Algorithm 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Reading = Literal["target", "literal"]


@dataclass(frozen=True, slots=True)
class Split:
    """How many blocks only either agent can place, how many both can, and the optimal shares."""

    only_a: int
    only_b: int
    both: int
    neither: int = 0

    @property
    def optimal(self) -> tuple[int, int]:
        """Unique blocks to their owners, each shared one to who has less so far, on a tie to the first."""
        a, b = self.only_a, self.only_b
        for _ in range(self.both):
            if a <= b:
                a += 1
            else:
                b += 1
        return a, b


def split(inventory_a: Counter[str], inventory_b: Counter[str], colours: Iterable[str]) -> Split:
    """The target reading: a block of the target is unique where one agent alone holds its colour."""
    owners = Counter((inventory_a[c] > 0, inventory_b[c] > 0) for c in colours)
    return Split(owners[True, False], owners[False, True], owners[True, True], owners[False, False])


def literal_split(inventory_a: Counter[str], inventory_b: Counter[str]) -> Split:
    """The algorithm to the letter: shared blocks are the multiset intersection of the inventories."""
    both = inventory_a & inventory_b
    return Split((inventory_a - both).total(), (inventory_b - both).total(), both.total())


def balance(counts: tuple[int, int], optimal: tuple[int, int]) -> tuple[float | None, str | None]:
    """γ = a·b / (a² + b²) with a = Na·(N*b / N*a), b = Nb, or None with the reason.

    0.5 is the best, 0 where one did nothing; undefined where nobody did anything or the optimal split leaves
    either without a task, for a share of nothing can't be normalised, whoever is named first.
    """
    if not all(optimal):
        return None, f"the optimal split gives the {'second' if optimal[0] else 'first'} agent nothing to do"
    a, b = counts[0] * optimal[1] / optimal[0], float(counts[1])
    if not a and not b:
        return None, "neither agent did anything that counts"
    return a * b / (a * a + b * b), None
