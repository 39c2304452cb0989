"""Counts that all processes share."""

import asyncio
from datetime import UTC, datetime, timedelta

from ledger.ledger import Ledger
from ledger.records import RepositoryRecord
from tests.ledger.samples import OTHER_RUN, REPOSITORY, run, start
from triage.contract import Status


async def test_an_empty_ledger_counts_nothing(ledger: Ledger) -> None:
    """Every status is there, with none."""
    counts = await ledger.counters.snapshot()
    assert counts.runs_now == dict.fromkeys(Status, 0)
    assert (counts.attempts, counts.requests, counts.incidents, counts.cost) == ({}, {}, {}, {})


async def test_requests_and_incidents_are_counted(ledger: Ledger) -> None:
    """From many tasks at once; the newest incident comes first."""
    await asyncio.gather(*(ledger.counters.requests("read", 2) for _ in range(20)))
    await ledger.counters.requests("write")
    await ledger.effects.incident("duplicate", "two comments: 5, 9")
    await ledger.effects.incident("ledger-lost", "a new epoch")
    counts = await ledger.counters.snapshot()
    assert counts.requests == {"read": 40, "write": 1}
    assert counts.incidents == {"duplicate": 1, "ledger-lost": 1}
    newest, oldest = await ledger.counters.incidents()
    assert (newest.kind, newest.detail) == ("ledger-lost", "a new epoch")
    assert oldest.at <= newest.at
    assert len(await ledger.counters.incidents(limit=1)) == 1


async def test_a_window_is_last_completed_where_the_app_still_is(ledger: Ledger) -> None:
    """By repository and job; a repository that the App lost is no alarm."""
    lease = await start(ledger)
    await ledger.runs.settle(lease, run(status=Status.COMPLETED), {})
    place = ("acme/API", "daily-issue-triage")
    last = (await ledger.counters.snapshot()).completed
    assert last[place] - datetime.now(UTC) < timedelta(seconds=5)
    record = RepositoryRecord(id=REPOSITORY, full_name="acme/API", installation="1")
    await ledger.repositories.save(record)
    assert (await ledger.counters.snapshot()).completed == last
    await ledger.repositories.save(record.model_copy(update={"active": False}))
    assert (await ledger.counters.snapshot()).completed == {}


async def test_runs_are_counted_by_their_present_status(ledger: Ledger) -> None:
    """And attempts by how they ended; a command is no window that was completed."""
    lease = await start(ledger)
    await ledger.runs.settle(lease, run(status=Status.WAITING), {})
    lease = await start(ledger, token="again")
    await ledger.runs.settle(lease, run(status=Status.WAITING), {})
    lease = await start(ledger, OTHER_RUN, "other")
    await ledger.runs.settle(lease, run(OTHER_RUN, status=Status.NO_CHANGE), {})
    counts = await ledger.counters.snapshot()
    assert {status: number for status, number in counts.runs_now.items() if number} == {
        Status.WAITING: 1,
        Status.NO_CHANGE: 1,
    }
    assert counts.attempts == {"waiting": 2, "no-change": 1}
    assert counts.completed == {}
