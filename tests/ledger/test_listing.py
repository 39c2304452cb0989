"""Runs of one job among very many, on the real server."""

import redis.asyncio

from ledger.ledger import open_ledger
from ledger.timing import LedgerTiming
from tests.ledger.samples import OTHER_RUN, RUN, start
from triage.identifiers import JobKey


async def test_a_job_is_found_behind_many_runs_of_another(
    client: redis.asyncio.Redis, timing: LedgerTiming
) -> None:
    """However far back: the names are gone through in steps, and those that expired are left."""
    ledger = open_ledger(client, timing)
    await ledger.epochs.ensure(first=True)
    await start(ledger)
    newer = {f"{OTHER_RUN}{number}": 2e12 + number for number in range(2500)}
    await client.zadd("runs::", newer)
    found = await ledger.runs.listed(limit=3, job=JobKey.DAILY)
    assert [str(run.key) for run in found] == [RUN]
    assert await ledger.runs.listed(limit=3, job=JobKey.RETRIAGE) == []
