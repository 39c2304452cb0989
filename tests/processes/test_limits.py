"""GitHub's limits on writes, kept by real workers that share one budget."""

import time
from datetime import UTC, datetime, timedelta
from functools import partial

import anyio

from ledger.budget import A_MINUTE, AN_HOUR, Budgets
from ledger.connection import connect
from ledger.ledger import open_ledger
from ledger.records import Granted, Look, Wait
from ledger.timing import LedgerTiming
from tests.bench.stage import (
    add_repository,
    arrivals,
    block_writes,
    install,
    made_up_issues,
    make_due,
    refusals,
)
from tests.processes.fleet import BOT, Fleet, fleet
from triage.contract import Status

WORKERS = 8
ISSUES = 9
"""Of each worker's repository: two writes for each and a summary are a little less than what two
minutes of the limit allow."""

LIST_LABELS = "GET ^/repos/acme/slow/labels$"

SLOW = 4.0
"""Times as fast as GitHub's do the minute and hour pass: a minute lasts 15 seconds. The budget
takes a write that comes up to 0.2 seconds later than the one a minute before it."""

FAST = 110.0
"""An hour lasts 33 seconds: a little longer than a run waits with its lease."""

PATIENT = {
    "RETRIAGE_LEASE_SECONDS": "30",
    "RETRIAGE_LOCK_DELAY_SECONDS": "15",
    "RETRIAGE_REQUEST_TIMEOUT_SECONDS": "10",
    "RETRIAGE_ABSENCE_WINDOW_SECONDS": "20",
}
"""A busy machine lets no lease lapse."""


def limited(run: Fleet, scale: float) -> None:
    """Both sides keep the same limits, so many times faster."""
    run.environment |= {**PATIENT, "RETRIAGE_PACING_SCALE": str(scale)}
    run.github.limits.switch_on(primary=False, scale=scale)


def completed(run: Fleet) -> int:
    """How many runs are over; asked of the log, which keeps nobody from working."""
    time.sleep(0.5)
    return run.log().count("RUN-COMPLETED")


def test_eight_workers_come_near_the_limit_and_never_over_it() -> None:
    """No request is refused, no grant is wasted, and the 80 writes of a minute are given again
    before 1 / 0.97 of a minute is over.

    How soon all of them are taken again is the machine's affair; so the one that was taken soonest
    counts, which the budget alone holds up.
    """
    with fleet([]) as run:
        limited(run, SLOW)
        ids = {
            f"r{number}": add_repository(run, f"r{number}", made_up_issues(ISSUES, number))
            for number in range(WORKERS)
        }
        installation = install(run, list(ids))
        # Until all have their plans, which keep a machine busy.
        anyio.run(block_writes, run, installation, datetime.now(UTC) + timedelta(seconds=15))
        anyio.run(make_due, run, installation, ids)
        for name in ["worker"] * WORKERS + ["clock"]:
            run.start(name)
        run.until(lambda: completed(run) == WORKERS, "all are completed", seconds=55)
        assert refusals(run) == {"403": 0, "429": 0}
        writes = WORKERS * (2 * ISSUES + 1)
        assert anyio.run(_granted, run, installation) == writes
        moments = sorted(at.timestamp() for at in arrivals(run))
        assert len(moments) == writes > A_MINUTE
        again = min(b - a for a, b in zip(moments, moments[A_MINUTE:], strict=False))
        assert 60 / SLOW <= again <= 60 / SLOW / 0.97
        assert run.incidents() == 0


def test_a_run_that_must_wait_lets_go_and_another_worker_goes_on() -> None:
    """The hour is spent once its plan is made: the run waits without its lease, is charged nothing
    for it, and another worker writes what was planned. The model is asked once."""
    with fleet([]) as run:
        limited(run, FAST)
        ids = {"slow": add_repository(run, "slow", made_up_issues(3))}
        installation = install(run, list(ids))
        # The repository's labels are read after the plan was saved, right before the first write.
        spend = partial(anyio.run, _spend_the_hour, run, installation)
        run.github.fail(LIST_LABELS, "call before applying", call=lambda _: spend())
        anyio.run(make_due, run, installation, ids)
        first = run.start("worker")
        run.start("clock")
        run.until(lambda: _status(run) is Status.WAITING, "it waits for the budget")
        look = anyio.run(_look, run, run.runs()[0].inputs.dedupe_key)
        assert not look.lease.live
        first.terminate()
        first.wait(10)
        run.start("worker")
        run.until(lambda: completed(run) == 1, "another worker completes it", seconds=55)
        done = run.runs()[0]
        assert [item.ended for item in done.attempts] == ["waiting", "completed"]
        assert (done.attempts_charged, done.continuations) == (0, 0)
        assert run.model.counts["sessions"] == 1
        assert refusals(run) == {"403": 0, "429": 0}
        authors = [run.github.comments("acme/slow", number)[0].author for number in (1, 2, 3)]
        assert authors == [BOT] * 3


async def _spend_the_hour(run: Fleet, installation: str) -> None:
    """As many writes as an hour has room for, granted to others of the installation."""
    hasty = LedgerTiming(write_interval=timedelta(0), pacing_scale=1000)
    async with connect(run.server.url) as client:
        budgets = Budgets(client, hasty)
        granted = 0
        while granted < AN_HOUR:
            match await budgets.spend(installation):
                case Granted():
                    granted += 1
                case Wait(delay):
                    await anyio.sleep(delay.total_seconds())


async def _granted(run: Fleet, installation: str) -> int:
    """How many writes the budget has granted within the hour."""
    async with connect(run.server.url) as client:
        return int(await client.zcard(f"budget:{installation}"))


async def _look(run: Fleet, dedupe_key: str) -> Look:
    async with connect(run.server.url) as client:
        return await open_ledger(client, LedgerTiming()).leases.view(dedupe_key)


def _status(run: Fleet) -> Status | None:
    return next((item.status for item in run.runs()), None)
