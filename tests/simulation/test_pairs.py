"""Every ordered pair of faults at the same and at adjacent boundaries."""

import pytest

from tests.simulation.matrix import BOUNDARIES
from tests.simulation.pairs import pairs, play_pair
from triage.contract import Status

pytestmark = pytest.mark.anyio

PAIRS = list(pairs())


def test_pairs_are_at_the_same_or_adjacent_boundaries() -> None:
    """Every possible fault meets every possible one, twenty times a hundred in all."""
    assert all(pair.second.row - pair.first.row in (0, 1) for pair in PAIRS)
    assert len(PAIRS) == len(set(PAIRS)) > 1900


@pytest.mark.parametrize("row", range(len(BOUNDARIES)))
async def test_pairs_of_a_boundary(row: int) -> None:
    """Each story ends in a run that is over, or that a person must decide; nothing is there twice,
    and nothing more happens."""
    both = 0
    for pair in PAIRS:
        if pair.first.row == row:
            told = await play_pair(pair)
            assert told.status.final or told.status is Status.NEEDS_REVIEW, pair
            both += told.both
    assert both > 0 or row == 0
