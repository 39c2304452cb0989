"""A worker that dies at every single call of its way, one story each: the watch, and the review."""

import pytest

from tests.simulation.invariants import nothing_more, writes
from tests.simulation.points import DiesAt, Killed
from tests.simulation.reviews import review_file
from tests.simulation.test_watch import FEED, PAGE, WATCH, put, watching
from tests.simulation.world import REPOSITORY, World, world
from triage.contract import Status
from triage.identifiers import JobKey


async def _dies(w: World, instant: int) -> bool:
    """The due window, whose worker dies there; then the clock goes on. False where it ended
    before."""
    await w.tick()
    faults = DiesAt(left=instant)
    try:
        await w.tick(faults=faults)
    except Killed:
        await w.settle()
    return faults.died


@pytest.mark.parametrize("third", range(3))
async def test_watch_that_dies_at_every_instant(third: int) -> None:
    """One section of the run in the window's file, which the ledger has too; each resource fetched
    at most twice; nothing on GitHub."""
    instant = third + 1
    while await _watch(instant):
        instant += 3
    assert instant > 30


async def _watch(instant: int) -> bool:
    async with world([], policy=watching(FEED, PAGE), job=WATCH) as w:
        put(w, "1.0")
        await w.run()
        put(w, "1.1", "1.0")
        w.move(days=1)
        await w.install()
        died = await _dies(w, instant)
        runs = await w.runs()
        assert [run.status for run in runs] == [Status.COMPLETED] * 2, instant
        assert len(w.artifacts.files) == 2
        path, text = list(w.artifacts.files.items())[-1]
        assert text.count("## Run `") == 1
        assert "Something is new there" in text
        kept = await w.ledger.repositories.report(path)
        assert kept is not None
        assert kept.text == text
        assert len(w.web.asked) <= 2 + 2 * 2
        assert len(w.agent.trees) <= 2
        assert writes(w) == []
        return died


@pytest.mark.parametrize("third", range(3))
async def test_review_that_dies_at_every_instant(third: int) -> None:
    """One page, edited once; the model is asked twice at most; what is remembered fits the plan."""
    instant = third + 1
    while await _review(instant):
        instant += 3
    assert instant > 40


async def _review(instant: int) -> bool:
    async with world([], policy=review_file(), job=JobKey.REVIEW) as w:
        w.github.put_file(REPOSITORY, "a.py", "FAULT: it divides by zero\n")
        await w.run()
        w.github.put_file(REPOSITORY, "b.py", "FAULT: it leaks a file\n")
        w.move(days=1)
        await w.install()
        died = await _dies(w, instant)
        assert [run.status for run in await w.runs()] == [Status.COMPLETED] * 2, instant
        assert "1 new, 1 still there" in w.summaries()[0]
        assert len(w.agent.trees) <= 3
        await nothing_more(w)
        return died
