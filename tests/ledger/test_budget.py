"""The write budget: never above GitHub's limits, and close to them."""

import asyncio
import itertools
import random
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis.asyncio

from ledger.budget import A_MINUTE, AN_HOUR, Budgets
from ledger.records import Granted, Wait
from ledger.timing import LedgerTiming


def scaled(
    client: redis.asyncio.Redis, timing: LedgerTiming, scale: float, interval: float = 0
) -> Budgets:
    """A budget whose minute lasts 60 / ``scale`` seconds."""
    interval_span = timedelta(seconds=interval)
    return Budgets(client, replace(timing, pacing_scale=scale, write_interval=interval_span))


async def spend_for(
    budgets: Budgets, client: redis.asyncio.Redis, seconds: float, workers: int = 8
) -> list[float]:
    """The server's times of the grants that so many workers got, in seconds."""
    end = time.monotonic() + seconds
    grants: set[bytes] = set()

    async def work() -> None:
        while time.monotonic() < end:
            match await budgets.spend("1"):
                case Granted():
                    pass
                case Wait(delay):
                    await asyncio.sleep(min(delay.total_seconds(), end - time.monotonic()))

    async def watch() -> None:
        while time.monotonic() < end:
            found: Any = await client.zrange("budget:1", 0, -1)
            grants.update(found)
            await asyncio.sleep(0.2)

    await asyncio.gather(watch(), *(work() for _ in range(workers)))
    return sorted(int(grant) / 1_000_000 for grant in grants)


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
    client: redis.asyncio.Redis, timing: LedgerTiming
) -> None:
    """With a minute of 0.6 seconds: never more than 80 in it.

    Each window takes its length, the margin, and as long as eight workers need to wake up and ask;
    that last part is the same in a minute of sixty seconds, which gives over 97 % of the limit.
    """
    minute = 0.6
    budgets = scaled(client, timing, scale=60 / minute)
    grants = await spend_for(budgets, client, 2.0)
    assert busiest(arrivals(grants, minute), minute) <= A_MINUTE
    steady = grants[A_MINUTE - 1 :]
    a_window = A_MINUTE * (steady[-1] - steady[0]) / (len(steady) - 1)
    waking = a_window - minute * 1.015
    assert waking < 0.3
    assert A_MINUTE / (60 * 1.015 + waking) >= 0.97 * A_MINUTE / 60


async def test_eight_workers_keep_below_the_hour(
    client: redis.asyncio.Redis, timing: LedgerTiming
) -> None:
    """With an hour of 0.6 seconds (a minute of a hundredth): never more than 500 in it."""
    hour = 0.6
    grants = await spend_for(scaled(client, timing, scale=3600 / hour), client, 1.5)
    assert busiest(arrivals(grants, hour), hour) <= AN_HOUR
    assert len(grants) > AN_HOUR


async def test_the_interval_is_kept(client: redis.asyncio.Redis, timing: LedgerTiming) -> None:
    """Between the writes of all workers together."""
    budgets = scaled(client, timing, scale=1, interval=0.05)
    grants = await spend_for(budgets, client, 0.55)
    assert 5 <= len(grants) <= 12
    assert min(b - a for a, b in itertools.pairwise(grants)) >= 0.0499


async def test_a_wait_tells_how_long(client: redis.asyncio.Redis, timing: LedgerTiming) -> None:
    """The rest of the interval; another installation is not concerned."""
    budgets = scaled(client, timing, scale=1, interval=1)
    assert isinstance(await budgets.spend("1"), Granted)
    wait = await budgets.spend("1")
    assert isinstance(wait, Wait)
    assert timedelta(seconds=0.9) < wait.delay <= timedelta(seconds=1)
    assert isinstance(await budgets.spend("2"), Granted)


async def test_a_spent_minute_tells_how_long(
    client: redis.asyncio.Redis, timing: LedgerTiming
) -> None:
    """Until the first of the eighty is older than a minute and its margin."""
    budgets = scaled(client, timing, scale=1)
    for _ in range(A_MINUTE):
        assert isinstance(await budgets.spend("1"), Granted)
    wait = await budgets.spend("1")
    assert isinstance(wait, Wait)
    assert timedelta(seconds=60) < wait.delay <= timedelta(seconds=60.9)


async def test_blocked_until(client: redis.asyncio.Redis, timing: LedgerTiming) -> None:
    """Nobody writes before the time GitHub named; an earlier one does not shorten it."""
    budgets = scaled(client, timing, scale=1)
    now = datetime.now(UTC)
    await budgets.block("1", now + timedelta(milliseconds=150))
    await budgets.block("1", now + timedelta(milliseconds=50))
    wait = await budgets.spend("1")
    assert isinstance(wait, Wait)
    assert timedelta(milliseconds=100) < wait.delay <= timedelta(milliseconds=150)
    await asyncio.sleep(0.16)
    assert isinstance(await budgets.spend("1"), Granted)


@pytest.mark.parametrize(
    "moment", [datetime(1970, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)]
)
async def test_a_time_that_is_over_blocks_nobody(
    client: redis.asyncio.Redis, timing: LedgerTiming, moment: datetime
) -> None:
    """A header may be wrong."""
    budgets = scaled(client, timing, scale=1)
    await budgets.block("1", moment)
    assert isinstance(await budgets.spend("1"), Granted)
