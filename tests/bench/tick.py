"""What one tick of the clock costs: by what is installed, and by what is due.

Every repository that is installed stands in the ledger with its record, and in ``window:due`` with
its next window. A tick takes what is due and puts a job for each into the queue. Commands are those
that the server counts while it ticks, the ones inside scripts and transactions included.
"""

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Final

import anyio
import redis.asyncio

from bot.clock import tick
from bot.enqueue import Link, linked
from ledger.codec import stamp
from ledger.connection import connect
from ledger.due import KEY
from ledger.ledger import open_ledger
from ledger.records import Due, RepositoryRecord
from ledger.timing import LedgerTiming
from tests.bench import Options
from tests.bench.stage import bare_server, spread
from tests.processes.fleet import POLICY
from triage.identifiers import JobKey
from triage.policy import read_policy
from worker.policy_file import parse_policy

AT_ONCE: Final = 1000
"""Repositories that are written in one round trip."""

DUE: Final = 100


def measure(options: Options) -> dict[str, object]:
    """Ticks over 1,000 to 100,000 repositories with 100 due, then with 10 to 1,000 due."""
    with bare_server() as server:
        return anyio.run(_measure, server.url, options)


async def _measure(url: str, options: Options) -> dict[str, object]:
    sizes = (100, 1000) if options.quick else (1000, 10_000, 100_000)
    dues = (10, 100) if options.quick else (10, 100, 1000)
    times = 5 if options.quick else 30
    by_installed, by_due, there = {}, {}, 0
    async with connect(url) as client, linked(url) as link:
        await open_ledger(client, LedgerTiming()).epochs.ensure(first=True)
        for size in sizes:
            await _install(client, range(there + 1, size + 1))
            there = size
            by_installed[str(size)] = await _ticks(client, link, DUE, times)
        for due in dues:
            by_due[str(due)] = await _ticks(client, link, due, times)
    return {
        f"installed, {DUE} due": by_installed,
        f"due, {there} installed": by_due,
        "bound_ms": 50,
    }


async def _install(client: redis.asyncio.Redis, ids: Iterable[int]) -> None:
    """Repositories as the ledger has them, none of them due for a day: one is saved by its own
    hand, the others are copies of its record under other ids."""
    policy = read_policy(parse_policy(POLICY.encode())).triage
    model = RepositoryRecord(id=0, full_name="acme/model", installation="1", policy=policy)
    await open_ledger(client, LedgerTiming()).repositories.save(model)
    copied = list(chain(*(await client.hgetall("repository:0")).items()))
    numbers, later = list(ids), stamp(datetime.now(UTC) + timedelta(days=1))
    for first in range(0, len(numbers), AT_ONCE):
        async with client.pipeline(transaction=False) as writes:
            for id_ in numbers[first : first + AT_ONCE]:
                own = {"id": str(id_), "full_name": f'"acme/r{id_}"'}
                writes.hset(f"repository:{id_}", items=[*copied, *chain(*own.items())])
                writes.hset("repositories", f"acme/r{id_}", str(id_))
                writes.zadd(KEY, {str(Due.window(JobKey.DAILY, id_)): later})
            await writes.execute()


async def _ticks(
    client: redis.asyncio.Redis, link: Link, due: int, times: int
) -> dict[str, object]:
    """So many ticks, each with as many due, from an empty queue."""
    seconds, commands = [], []
    for _ in range(times):
        await client.delete(*[name async for name in client.scan_iter("rq:*", count=10_000)], "-")
        now = datetime.now(UTC)
        dues = [str(Due.window(JobKey.DAILY, id_)) for id_ in range(1, due + 1)]
        await client.zadd(KEY, {name: stamp(now) - 1 for name in dues})
        before, began = await _commands(client), time.perf_counter()
        enqueued = await tick(link, now)
        seconds.append(time.perf_counter() - began)
        commands.append(await _commands(client) - before - 1)
        if enqueued != due:
            raise AssertionError(f"{enqueued} jobs for {due} due")
    return {**spread(seconds), "commands": sorted(commands)[len(commands) // 2]}


async def _commands(client: redis.asyncio.Redis) -> int:
    """So many has the server run, this one apart."""
    told = await client.info("stats")
    return int(told["total_commands_processed"])
