"""The write budget: never above GitHub's limits, and close to them."""

import asyncio
import itertools
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ledger.budget import A_MINUTE, AN_HOUR, Budgets
from ledger.records import Granted, Wait
from ledger.timing import LedgerTiming
from tests.ledger.places import Place
from tests.simulation.memory.budgets import MemoryBudgets


def scaled(
    place: Place, timing: LedgerTiming, scale: float, interval: float = 0
) -> Budgets | MemoryBudgets:
    """A budget whose minute lasts 60 / ``scale`` seconds."""
    interval_span = timedelta(seconds=interval)
    return place.open(replace(timing, pacing_scale=scale, write_interval=interval_span)).budgets


async def spend(
    budgets: Budgets | MemoryBudgets, place: Place, enough: int, workers: int = 8
) -> list[float]:
    """The server's times of the grants that so many workers got until they had enough of them, in
    seconds."""
    given = itertools.count(1)
    grants: set[tuple[int, int]] = set()

    async def work() -> None:
        while len(grants) < enough:
            match await budgets.spend("1"):
                case Granted():
                    if next(given) % 10 == 0:
                        grants.update(await place.newest_grants("1"))
                case Wait(delay):
                    await place.pass_time(delay.total_seconds())

    await asyncio.wait_for(asyncio.gather(*(work() for _ in range(workers))), 30)
    return sorted(grant / 1_000_000 for grant, _ in grants)


def arrivals(grants: list[float], window: float) -> list[float]:
    """When GitHub sees the requests: each as much later as the margin allows, or less."""
    return sorted(grant + random.uniform(0, window * 0.015) for grant in grants)


def busiest(arrivals: list[float], window: float) -> int:
    """The most arrivals in any window of this length."""
    return max(
        sum(first <= other < first + window for other in arrivals[number:])
        for number, first in enumerate(arrivals)
    )


async def test_eight_workers_keep_below_the_minute_and_near_it(
    place: Place, timing: LedgerTiming
) -> None:
    """With a minute of 0.6 seconds: never more than 80 in it.

    Each window takes its length, the margin, and as long as eight workers need to wake up and ask;
    that last part is the same in a minute of sixty seconds, which gives over 97 % of the limit.
    """
    minute = 0.6
    budgets = scaled(place, timing, scale=60 / minute)
    grants = await spend(budgets, place, 3 * A_MINUTE)
    assert busiest(arrivals(grants, minute), minute) <= A_MINUTE
    steady = grants[A_MINUTE - 1 :]
    a_window = A_MINUTE * (steady[-1] - steady[0]) / (len(steady) - 1)
    waking = a_window - minute * 1.015
    assert waking < 0.3
    assert A_MINUTE / (60 * 1.015 + waking) >= 0.97 * A_MINUTE / 60


async def test_eight_workers_keep_below_the_hour(place: Place, timing: LedgerTiming) -> None:
    """With an hour of 0.6 seconds (a minute of a hundredth): never more than 500 in it."""
    hour = 0.6
    grants = await spend(scaled(place, timing, scale=3600 / hour), place, 3 * AN_HOUR)
    assert busiest(arrivals(grants, hour), hour) <= AN_HOUR
    assert len(grants) >= 3 * AN_HOUR


async def test_the_interval_is_kept(place: Place, timing: LedgerTiming) -> None:
    """Between the writes of all workers together."""
    budgets = scaled(place, timing, scale=1, interval=0.05)
    grants = await spend(budgets, place, 10)
    assert len(grants) >= 10
    assert min(b - a for a, b in itertools.pairwise(grants)) >= 0.0499


async def test_a_wait_tells_how_long(place: Place, timing: LedgerTiming) -> None:
    """The rest of the interval; another installation is not concerned."""
    budgets = scaled(place, timing, scale=1, interval=1)
    assert isinstance(await budgets.spend("1"), Granted)
    wait = await budgets.spend("1")
    assert isinstance(wait, Wait)
    assert timedelta(seconds=0.9) < wait.delay <= timedelta(seconds=1)
    assert isinstance(await budgets.spend("2"), Granted)


async def test_a_spent_minute_tells_how_long(place: Place, timing: LedgerTiming) -> None:
    """Until the first of the eighty is older than a minute and its margin."""
    budgets = scaled(place, timing, scale=1)
    for _ in range(A_MINUTE):
        assert isinstance(await budgets.spend("1"), Granted)
    wait = await budgets.spend("1")
    assert isinstance(wait, Wait)
    assert timedelta(seconds=60) < wait.delay <= timedelta(seconds=60.9)


async def test_blocked_until(place: Place, timing: LedgerTiming) -> None:
    """Nobody writes before the time GitHub named; an earlier one does not shorten it."""
    budgets = scaled(place, timing, scale=1)
    now = await place.now()
    await budgets.block("1", now + timedelta(milliseconds=150))
    await budgets.block("1", now + timedelta(milliseconds=50))
    wait = await budgets.spend("1")
    assert isinstance(wait, Wait)
    assert timedelta(milliseconds=100) < wait.delay <= timedelta(milliseconds=150)
    await place.pass_time(0.16)
    assert isinstance(await budgets.spend("1"), Granted)


@pytest.mark.parametrize(
    "moment", [datetime(1970, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)]
)
async def test_a_time_that_is_over_blocks_nobody(
    place: Place, timing: LedgerTiming, moment: datetime
) -> None:
    """A header may be wrong."""
    budgets = scaled(place, timing, scale=1)
    await budgets.block("1", moment)
    assert isinstance(await budgets.spend("1"), Granted)
