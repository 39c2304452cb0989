"""The crash matrix, whole: every cell, every reason for a cell that is impossible, and what the
table has no column for."""

import asyncio

import pytest

from tests.simulation.cells import play
from tests.simulation.invariants import check, nothing_more
from tests.simulation.matrix import (
    BOUNDARIES,
    CELLS,
    CELLS_OF_REVIEW,
    FAULTS,
    IMPOSSIBLE,
    IMPOSSIBLE_FOR_FIRST,
    IMPOSSIBLE_FOR_LATER,
    IMPOSSIBLE_FOR_REVIEW,
    Cell,
)
from tests.simulation.ways import REVIEW, REVIEW_AGAIN, TRIAGE
from tests.simulation.world import Faults, Killed, policy_file, world
from triage.contract import Status
from worker.ports import LeaseLost

pytestmark = pytest.mark.anyio


def test_every_cell_is_played_or_says_why_not() -> None:
    """Fourteen boundaries by ten faults, without a hole."""
    everywhere = {(row, fault) for row in range(len(BOUNDARIES)) for fault in FAULTS}
    assert len(everywhere) == 140
    assert everywhere - set(CELLS) == everywhere & (set(IMPOSSIBLE) - set(CELLS))
    assert len(CELLS) == 119


@pytest.mark.parametrize("cell", CELLS.values(), ids=str)
async def test_cell(cell: Cell) -> None:
    """The fault strikes; status, next action, and I1 to I7 after the next run and two more."""
    await play(cell)


def test_every_cell_of_a_review_is_played_or_says_why_not() -> None:
    """The same boundaries and faults, of which a review has fewer."""
    everywhere = {(row, fault) for row in range(len(BOUNDARIES)) for fault in FAULTS}
    assert everywhere - set(CELLS_OF_REVIEW) == set(IMPOSSIBLE_FOR_REVIEW) - set(CELLS_OF_REVIEW)
    assert len(CELLS_OF_REVIEW) == 81


FIRST = [cell for key, cell in CELLS_OF_REVIEW.items() if key not in IMPOSSIBLE_FOR_FIRST]

LATER = [cell for key, cell in CELLS_OF_REVIEW.items() if key not in IMPOSSIBLE_FOR_LATER]


@pytest.mark.parametrize("cell", FIRST, ids=str)
async def test_cell_of_a_review(cell: Cell) -> None:
    """The same of a review that makes its page."""
    await play(cell, REVIEW)


@pytest.mark.parametrize("cell", LATER, ids=str)
async def test_cell_of_a_review_that_edits(cell: Cell) -> None:
    """The same of the next night's, which edits the page in its place."""
    await play(cell, REVIEW_AGAIN)


async def test_answer_of_the_model_that_nobody_saved() -> None:
    """Row 3, a moment before its boundary: the worker dies with the answer. The model is asked
    again, on the same snapshot."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        faults = Faults()
        faults.kill_at("after agent.decide")
        with pytest.raises(Killed):
            await w.run(faults=faults)
        key = (await w.runs())[0].inputs.dedupe_key
        taken = await w.ledger.runs.snapshot(key)
        await w.lapse()
        assert (await w.run()).status is Status.COMPLETED
        assert len(w.agent.asked) == 2
        stands = await w.ledger.runs.snapshot(key)
        assert taken is not None
        assert stands is not None
        assert stands.observed_at == taken.observed_at
        await nothing_more(w)


@pytest.mark.parametrize("row", TRIAGE.points)
async def test_own_deadline(row: int) -> None:
    """A fault without a column: the attempt's own time is over at the boundary. Nothing new is sent
    after that; the next attempt goes on from what is saved, and ends it."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        point, when = TRIAGE.points[row]
        faults, sent = Faults(), [0]

        async def wait() -> None:
            await asyncio.sleep(w.timing.run.total_seconds())
            sent[0] = len(w.github.requests("POST", "/issues"))

        faults.at(point, wait, when)
        try:
            report = await w.run(faults=faults)
        except LeaseLost:
            report = None
        assert len(w.github.requests("POST", "/issues")) == sent[0], "it sent something after that"
        await check(w)
        if report is not None and row < 11:  # only what is read remains after that
            assert report.status in (Status.FAILED_BEFORE_WRITE, Status.FAILED_AFTER_WRITE)
        await w.lapse()
        await w.run()
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
        await nothing_more(w)
