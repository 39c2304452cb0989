"""Counts that all processes share."""

import asyncio
from datetime import timedelta
from typing import Any

from ledger.records import Due, DueKind, RepositoryRecord
from tests.ledger.places import AnyLedger, Place
from tests.ledger.samples import NOON, OTHER_RUN, REPOSITORY, RUN, effect, run, start
from triage.contract import Evidence, ReviewFigures, RunRecord, Status
from triage.findings import Link, ReviewVerdict


async def test_an_empty_ledger_counts_nothing(ledger: AnyLedger) -> None:
    """Every status is there, with none."""
    counts = await ledger.counters.snapshot()
    assert counts.runs_now == dict.fromkeys(Status, 0)
    assert (counts.attempts, counts.requests, counts.incidents, counts.cost) == ({}, {}, {}, {})


async def test_requests_and_incidents_are_counted(ledger: AnyLedger) -> None:
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


async def test_a_window_is_last_completed_where_the_app_still_is(
    ledger: AnyLedger, place: Place
) -> None:
    """By repository and job; a repository that the App lost is no alarm."""
    lease = await start(ledger)
    await ledger.runs.settle(lease, run(status=Status.COMPLETED), {})
    window = ("acme/API", "daily-issue-triage")
    last = (await ledger.counters.snapshot()).completed
    assert abs(last[window] - await place.now()) < timedelta(seconds=5)
    record = RepositoryRecord(id=REPOSITORY, full_name="acme/API", installation="1")
    await ledger.repositories.save(record)
    assert (await ledger.counters.snapshot()).completed == last
    await ledger.repositories.save(record.model_copy(update={"active": False}))
    assert (await ledger.counters.snapshot()).completed == {}


def _reviewed(key: str = RUN, *, broken: bool = False, prior: int = 4, **fields: Any) -> RunRecord:
    """A run whose answer recalled three findings."""
    link = Link(
        same_session=True,
        prior_review_id_echoed=not broken,
        recalled=min(3, prior),
        prior=prior,
        current=3,
        broken=("another review",) if broken else (),
    )
    return run(key, review=ReviewFigures(verdict=ReviewVerdict.CONCERNS, link=link), **fields)


async def test_recall_is_that_of_the_newest_completed_run(ledger: AnyLedger) -> None:
    """One with nothing to recall changes nothing; one that failed neither; a repository that the
    App lost is no alarm."""
    place = ("acme/API", "daily-issue-triage")
    lease = await start(ledger)
    await ledger.runs.settle(lease, _reviewed(status=Status.WAITING), {})
    assert (await ledger.counters.snapshot()).recalled == {}
    lease = await start(ledger, token="again")
    await ledger.runs.settle(lease, _reviewed(status=Status.COMPLETED), {})
    assert (await ledger.counters.snapshot()).recalled == {place: 0.75}
    nothing = f"{RUN}:forced-1"
    lease = await start(ledger, nothing, "nothing")
    await ledger.runs.settle(lease, _reviewed(nothing, prior=0, status=Status.COMPLETED), {})
    assert (await ledger.counters.snapshot()).recalled == {place: 0.75}
    gone = RepositoryRecord(id=REPOSITORY, full_name="acme/API", installation="1", active=False)
    await ledger.repositories.save(gone)
    assert (await ledger.counters.snapshot()).recalled == {}


async def test_what_was_broken_or_denied_counts_once(ledger: AnyLedger) -> None:
    """However often its run is saved, and whatever becomes of it."""
    lease = await start(ledger)
    await ledger.runs.save(lease, run(denials=2))
    for _ in range(2):
        await ledger.runs.save(lease, _reviewed(broken=True, denials=5))
    await ledger.runs.settle(lease, _reviewed(broken=True, denials=5, status=Status.WAITING), {})
    lease = await start(ledger, OTHER_RUN, "other")
    await ledger.runs.settle(lease, _reviewed(OTHER_RUN, denials=1, status=Status.COMPLETED), {})
    counts = await ledger.counters.snapshot()
    assert (counts.broken_links, counts.denials) == (1, 6)


async def test_runs_are_counted_by_their_present_status(ledger: AnyLedger) -> None:
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


async def test_the_newest_thousand_incidents_are_kept(ledger: AnyLedger, place: Place) -> None:
    """All are counted; each has its time in whole seconds."""
    for batch in range(0, 1005, 15):
        told = (ledger.counters.incident("late", str(batch + number)) for number in range(15))
        await asyncio.gather(*told)
    await ledger.counters.incident("last", "one")
    found = await ledger.counters.incidents(0)
    assert len(found) == 1000
    assert (found[0].kind, len(await ledger.counters.incidents())) == ("last", 50)
    assert found[0].at.microsecond == 0
    assert timedelta(0) <= await place.now() - found[0].at < timedelta(seconds=5)
    assert (await ledger.counters.snapshot()).incidents == {"late": 1005, "last": 1}


async def test_effects_are_counted_when_their_run_is_over(ledger: AnyLedger) -> None:
    """Once, by their evidence, none as none; what is due is counted too."""
    lease = await start(ledger)
    evidence = [Evidence.CONFIRMED, Evidence.CONFIRMED, Evidence.SKIPPED]
    effects = [effect(issue=at, evidence=each) for at, each in enumerate(evidence, 1)]
    await ledger.runs.save_effects(lease, effects)
    await ledger.runs.save(lease, run(stage="effects"))
    assert (await ledger.counters.snapshot()).effects == {}
    await ledger.due.add(Due(DueKind.SAMPLE, "a"), NOON)
    await ledger.runs.settle(lease, run(status=Status.COMPLETED), {})
    again = await ledger.leases.acquire(RUN, "worker-1", "again")
    assert again is not None
    await ledger.runs.settle(again, run(status=Status.COMPLETED), {})
    counts = await ledger.counters.snapshot()
    none = {"absent": 0, "unsettled": 0, "conflict": 0}
    assert counts.effects == {"confirmed": 2, "skipped": 1, **none}
    assert counts.attempts == {"completed": 2}
    assert counts.due == 1
