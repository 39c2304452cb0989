"""Every ordered pair of faults at the same and at adjacent boundaries."""

from collections.abc import Mapping

import pytest

from tests.simulation.matrix import (
    BOUNDARIES,
    CELLS_OF_REVIEW,
    IMPOSSIBLE_FOR_FIRST,
    IMPOSSIBLE_FOR_LATER,
    ORDER_OF_REVIEW,
)
from tests.simulation.pairs import pairs, play_pair
from tests.simulation.ways import REVIEW, REVIEW_AGAIN, Way
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


@pytest.mark.parametrize("row", ORDER_OF_REVIEW)
@pytest.mark.parametrize(
    ("way", "impossible"),
    [(REVIEW, IMPOSSIBLE_FOR_FIRST), (REVIEW_AGAIN, IMPOSSIBLE_FOR_LATER)],
    ids=["first", "later"],
)
async def test_pairs_of_a_boundary_of_a_review(
    row: int, way: Way, impossible: Mapping[tuple[int, str], str]
) -> None:
    """The same of a review, that makes its page or edits it."""
    cells = [cell for key, cell in CELLS_OF_REVIEW.items() if key not in impossible]
    played = [pair for pair in pairs(cells, ORDER_OF_REVIEW) if pair.first.row == row]
    assert bool(played) is (row > 0 or not way.edits)
    for pair in played:
        told = await play_pair(pair, way)
        assert told.status.final or told.status is Status.NEEDS_REVIEW, pair
