"""Sharing a sample out among annotators."""

from __future__ import annotations

from coaudit.pipeline.annotate.assign import annotator_shares
from coaudit.pipeline.store.ledgers.samples import Design, Sample, SampledUnit


def sample(*units: SampledUnit, annotators: int = 2, unit: str = "unit") -> Sample:
    design = Design(
        name="s",
        codebooks={"initiative": "1"},
        method="simple",
        unit=unit,
        size=len(units),
        seed=0,
        overlap=0.5,
        annotators=annotators,
        created="2026-01-01T00:00:00.000+00:00",
        coaudit="1",
    )
    return Sample(design=design, units=units)


def unit(event: int, overlap: int = 1, trajectory: str = "t") -> SampledUnit:
    return SampledUnit(
        codebook="initiative", trajectory=trajectory, event=event, unit_hash="h", overlap=overlap
    )


def test_every_unit_goes_to_as_many_annotators_as_it_wants_and_loads_differ_by_one_at_most() -> None:
    units = [unit(n, overlap=1 + n % 2) for n in range(21)]
    for annotators in (2, 3, 5):
        shares = annotator_shares(sample(*units, annotators=annotators), units)
        assert [sum(one in share for share in shares) for one in units] == [one.overlap for one in units]
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
        assert all([units.index(one) for one in share] == sorted(map(units.index, share)) for share in shares)


def test_a_sample_is_shared_out_the_same_way_every_time() -> None:
    units = [unit(n) for n in range(20)]
    shares = annotator_shares(sample(*units), units)
    assert shares == annotator_shares(sample(*units), units)
    assert [one.event for one in shares[0]] not in ([*range(0, 20, 2)], [*range(1, 20, 2)]), "not by turns"


def test_a_trajectory_drawn_whole_goes_whole_to_an_annotator() -> None:
    units = [unit(n, trajectory=f"t{k}") for n in range(3) for k in range(4)]
    shares = annotator_shares(sample(*units, unit="trajectory"), units)
    assert [len(share) for share in shares] == [6, 6]
    assert not {one.trajectory for one in shares[0]} & {one.trajectory for one in shares[1]}
