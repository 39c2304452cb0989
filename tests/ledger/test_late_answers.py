"""The write budget where GitHub answered late: it may have counted the request as late as that."""

from dataclasses import replace
from datetime import timedelta

from ledger.records import Granted, Wait
from ledger.timing import LedgerTiming
from tests.ledger.places import Place

SECOND = timedelta(seconds=1)


async def _wait_after(place: Place, timing: LedgerTiming, *, late: float, told: bool) -> timedelta:
    """The wait for the next write of an interval of one second, so long after the first."""
    hasty = replace(timing, pacing_scale=60, write_interval=SECOND)
    budgets = place.open(hasty).budgets
    granted = await budgets.spend("1")
    assert isinstance(granted, Granted)
    await place.pass_time(late)
    if told:
        await budgets.answered("1", granted)
    wait = await budgets.spend("1")
    assert isinstance(wait, Wait)
    return wait.delay


async def test_a_late_answer_makes_the_grant_younger(place: Place, timing: LedgerTiming) -> None:
    """By what it is late over what the longer windows cover: 15 ms of a minute of one second."""
    delay = await _wait_after(place, timing, late=0.5, told=True)
    assert timedelta(seconds=0.6) < delay <= SECOND


async def test_without_an_answer_the_grant_counts_from_its_own_time(
    place: Place, timing: LedgerTiming
) -> None:
    """A worker that died tells nothing."""
    assert await _wait_after(place, timing, late=0.5, told=False) <= SECOND / 2


async def test_a_grant_that_is_forgotten_does_not_come_back(
    place: Place, timing: LedgerTiming
) -> None:
    """Its hour is over."""
    budgets = place.open(replace(timing, pacing_scale=60, write_interval=SECOND)).budgets
    await budgets.answered("1", Granted(1, -1000.0))
    assert isinstance(await budgets.spend("1"), Granted)
