"""The clock: what is due becomes a job, once, however many clocks there are."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.clock import BATCH, tick
from bot.enqueue import AGAIN_TICKS, Link, linked
from ledger.connection import connect_sync
from ledger.errors import LedgerUnavailableError
from ledger.records import Due, DueKind
from ledger.server import EmbeddedServer
from tests.bot.receiver import called, queued, worked_off
from triage.asks import Installed, Removed
from triage.identifiers import JobKey

NOON = datetime(2026, 9, 16, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
AGAIN = AGAIN_TICKS * MINUTE
RUN = "daily-issue-triage:R42:2026-09-16:p3f2a91c0"


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[Link]:
    """A ledger whose epoch stands."""
    async with linked(redis_url) as link:
        await link.ledger.epochs.ensure(first=True)
        yield link


async def test_each_kind_has_its_job(link: Link, redis_url: str) -> None:
    """With the arguments that the worker needs."""
    dues = [
        Due.window(JobKey.DAILY, 42),
        Due(DueKind.CONTINUE, RUN),
        Due(DueKind.SAMPLE, "a" * 64),
        Due(DueKind.VERIFY, "b" * 64),
        Due(DueKind.RECOVER, "R42:1"),
    ]
    for late, due in enumerate(dues):
        await link.ledger.due.add(due, NOON - timedelta(seconds=9 - late))
    assert await tick(link, NOON) == 5
    assert called(redis_url) == [
        ("worker.jobs.ensure_window", ("daily-issue-triage", 42, None)),
        ("worker.jobs.continue_run", (RUN,)),
        ("worker.jobs.sample", ("a" * 64,)),
        ("worker.jobs.verify", ("b" * 64,)),
        ("worker.jobs.recover", ("R42:1",)),
    ]


async def test_what_is_not_due_is_left(link: Link, redis_url: str) -> None:
    """To the second."""
    await link.ledger.due.add(Due.window(JobKey.DAILY, 42), NOON + timedelta(seconds=1))
    assert await tick(link, NOON) == 0
    assert await tick(link, NOON + timedelta(seconds=1)) == 1
    assert len(queued(redis_url)) == 1


async def test_two_clocks_enqueue_once(redis_url: str, link: Link) -> None:
    """At the same instant, over the same ledger."""
    for number in range(1, 31):
        await link.ledger.due.add(Due.window(JobKey.DAILY, number), NOON)
    async with linked(redis_url) as other:
        counts = await asyncio.gather(
            tick(link, NOON), tick(other, NOON), tick(link, NOON), tick(other, NOON)
        )
    assert sum(counts) == 30
    calls = Counter(args for _, args in called(redis_url))
    assert calls == {("daily-issue-triage", number, None): 1 for number in range(1, 31)}


async def test_a_clock_whose_reply_was_lost_enqueues_once(link: Link, redis_url: str) -> None:
    """It asks again within the same minute, after the job was done already: the id is known."""
    due = Due(DueKind.CONTINUE, RUN)
    await link.ledger.due.add(due, NOON)
    assert await tick(link, NOON) == 1
    worked_off(redis_url)
    await link.ledger.due.add(due, NOON)
    assert await tick(link, NOON + timedelta(seconds=30)) == 0
    assert await tick(link, NOON + AGAIN + MINUTE) == 1


async def test_what_a_crash_lost_comes_again(link: Link, redis_url: str) -> None:
    """Taken, enqueued and lost: after a few ticks it is due once more."""
    await link.ledger.due.add(Due(DueKind.CONTINUE, RUN), NOON)
    await tick(link, NOON)
    with connect_sync(redis_url) as client:
        client.delete(*client.keys("rq:*"))
    assert await tick(link, NOON + AGAIN - MINUTE) == 0
    assert await tick(link, NOON + AGAIN) == 1
    assert called(redis_url) == [("worker.jobs.continue_run", (RUN,))]


async def test_what_a_delivery_asks_for_comes_again(link: Link, redis_url: str) -> None:
    """Its job was lost with its worker: the ask is due once more, until it is done, for a day."""
    asks = (Installed(installation="5"), Removed(installation="5", whole=True))
    assert (await link.take("d-1", "", lambda _: asks, again_at=NOON + AGAIN)).is_new
    first = called(redis_url)
    assert [(name, args[1:]) for name, args in first] == [
        ("worker.jobs.handle", ("d-1", 0)),
        ("worker.jobs.handle", ("d-1", 1)),
    ]
    with connect_sync(redis_url) as client:
        client.delete(*client.keys("rq:*"))
    assert await tick(link, NOON + AGAIN - MINUTE) == 0
    assert await tick(link, NOON + AGAIN) == 2
    assert called(redis_url) == first
    worked_off(redis_url)
    await link.ledger.due.remove(Due.ask("d-1", 0))
    assert await tick(link, NOON + 2 * AGAIN) == 1
    worked_off(redis_url)
    with connect_sync(redis_url) as client:
        assert client.ttl("ask:d-1:1") == 86_400
        client.delete("ask:d-1:1")
    assert await tick(link, NOON + 3 * AGAIN) == 0
    assert await link.ledger.due.upcoming() == []


async def test_a_queue_that_is_behind_does_not_grow(link: Link, redis_url: str) -> None:
    """No worker comes for an hour: one job waits, not twelve."""
    await link.ledger.due.add(Due(DueKind.CONTINUE, RUN), NOON)
    for minutes in range(60):
        await tick(link, NOON + minutes * MINUTE)
    assert len(queued(redis_url)) == 1


async def test_more_than_a_batch(link: Link, redis_url: str) -> None:
    """An outage ends, and everything is due."""
    number = 2 * BATCH + 7
    for repository in range(1, number + 1):
        await link.ledger.due.add(Due.window(JobKey.DAILY, repository), NOON - MINUTE)
    assert await tick(link, NOON) == number
    assert len(queued(redis_url)) == number


async def test_a_lost_ledger_is_recovered(redis_url: str) -> None:
    """It has no epoch, so the installations are asked for; once while that waits, again where it
    came to nothing, and whatever falls due in it some day; not once an epoch stands."""
    async with linked(redis_url) as link:
        assert await tick(link, NOON) == 1
        assert await tick(link, NOON + MINUTE) == 0
        assert called(redis_url) == [("worker.jobs.recover", ("ledger",))]
        worked_off(redis_url)
        await link.ledger.due.add(Due.window(JobKey.DAILY, 42), NOON + timedelta(hours=20))
        assert await tick(link, NOON + 2 * MINUTE) == 1
        worked_off(redis_url)
        await link.ledger.epochs.ensure(first=False)
        assert await tick(link, NOON + 3 * MINUTE) == 0


async def test_redis_gone(tmp_path: Path) -> None:
    """The tick says so; the next one does what it could not."""
    with ExitStack() as first:
        server = first.enter_context(EmbeddedServer(tmp_path))
        async with linked(server.url) as link:
            await link.ledger.epochs.ensure(first=True)
            await link.ledger.due.add(Due(DueKind.CONTINUE, RUN), NOON)
            server.kill()
            with pytest.raises(LedgerUnavailableError):
                await tick(link, NOON)
            first.close()
            with EmbeddedServer(tmp_path):
                assert await tick(link, NOON) == 1


# --- The process --------------------------------------------------------------------------------


def start_clock(url: str, *, seconds: int = 1) -> "subprocess.Popen[str]":
    """A clock that ticks each second, or less often."""
    return subprocess.Popen(
        [sys.executable, "-m", "bot", "clock"],
        env={**os.environ, "REDIS_URL": url, "RETRIAGE_TICK_SECONDS": str(seconds)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def until(clock: "subprocess.Popen[str]", word: str) -> str:
    """Its next line that starts with a word; pytest's own limit ends the wait."""
    assert clock.stdout is not None
    told: list[str] = []
    for line in clock.stdout:
        told.append(line)
        if line.startswith(word):
            return line
    raise AssertionError(f"the clock ended without {word}: {''.join(told)}")


def test_two_clocks_through_an_outage(tmp_path: Path) -> None:
    """They enqueue once, say that Redis is gone, go on when it is back, and end when told."""
    with ExitStack() as stack, ExitStack() as first:
        server = first.enter_context(EmbeddedServer(tmp_path))
        url = server.url
        with connect_sync(url) as client:
            client.hset("epoch", "id", "an-epoch")
            client.zadd("window:due", {"start daily-issue-triage:R42": 0, f"continue {RUN}": 0})
        clocks = [stack.enter_context(start_clock(url)) for _ in range(2)]
        for clock in clocks:
            stack.callback(clock.kill)
        for clock in clocks:
            assert until(clock, "CLOCK-STARTED") == "CLOCK-STARTED seconds=1\n"
        wait_for_jobs(url, 2)
        server.kill()
        for clock in clocks:
            assert "reason=" in until(clock, "TICK-FAILED")
        first.close()
        again = stack.enter_context(EmbeddedServer(tmp_path))
        with connect_sync(again.url) as client:
            client.zadd("window:due", {"recover R42:1": 0})
        wait_for_jobs(url, 3)
        for clock in clocks:
            clock.send_signal(signal.SIGTERM)
        for clock in clocks:
            assert until(clock, "CLOCK-STOPPED")
            assert clock.wait(5) == 0
        assert sorted(name for name, _ in called(url)) == [
            "worker.jobs.continue_run",
            "worker.jobs.ensure_window",
            "worker.jobs.recover",
        ]


def test_a_clock_that_redis_has_forgotten_ends_cleanly(redis_url: str) -> None:
    """Its entry is gone, as it is where Redis was away since the clock's start, or was wiped."""
    with connect_sync(redis_url) as client, start_clock(redis_url, seconds=60) as clock:
        client.hset("epoch", "id", "an-epoch")
        client.zadd("window:due", {f"continue {RUN}": 0})
        assert until(clock, "TICK") == "TICK enqueued=1\n"
        time.sleep(0.5)  # its entry is renewed after the tick
        assert client.delete("rq:cron_schedulers") == 1
        clock.send_signal(signal.SIGTERM)
        assert until(clock, "CLOCK-STOPPED")
        assert clock.wait(5) == 0


def wait_for_jobs(url: str, number: int) -> None:
    """Until so many jobs wait; no more ever do."""
    end = time.monotonic() + 10
    while len(queued(url)) < number:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert len(queued(url)) == number
