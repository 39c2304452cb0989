"""Eight workers on one installation whose GitHub limits writes: how near to the limit they come.

The sandbox enforces GitHub's 80 writes a minute and 500 an hour, its minute and hour ``SCALE``
times shorter; the workers' budget runs as much faster. The windows are planned first, while writes
are blocked, so that from the first write on nothing but the budget holds them up: the minute binds
for the first 500 writes, then the hour. What cannot write for long waits without its lease, and is
taken up by the clock, which ticks each second.

``share`` is the time in which the limits allow as many writes, over the time that was taken.
"""

import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import anyio

from ledger.budget import A_MINUTE, AN_HOUR
from tests.bench import Options
from tests.bench.stage import (
    add_repository,
    arrivals,
    block_writes,
    install,
    made_up_issues,
    make_due,
    refusals,
)
from tests.processes.fleet import Fleet, fleet
from triage.contract import Status

WORKERS: Final = 8
SCALE: Final = 20.0
PATIENCE_SECONDS: Final = 900.0
BLOCKED: Final = timedelta(seconds=40)
"""For the plans to be made; longer than a run waits with its lease."""

SETTINGS: Final = {
    "RETRIAGE_LEASE_SECONDS": "30",
    "RETRIAGE_LOCK_DELAY_SECONDS": "15",
    "RETRIAGE_REQUEST_TIMEOUT_SECONDS": "10",
    "RETRIAGE_ABSENCE_WINDOW_SECONDS": "20",
    "RETRIAGE_WRITE_INTERVAL_SECONDS": "0",
    "RETRIAGE_PACING_SCALE": str(SCALE),
}


def measure(options: Options) -> dict[str, object]:
    """Enough writes to spend two hours of the limit, or with ``quick`` two minutes of it."""
    repositories, issues = (WORKERS, 9) if options.quick else (2 * WORKERS, 30)
    with fleet([]) as run:
        run.environment |= SETTINGS
        run.github.limits.switch_on(primary=False, scale=SCALE)
        ids = {
            f"r{number}": add_repository(run, f"r{number}", made_up_issues(issues, number))
            for number in range(repositories)
        }
        installation = install(run, list(ids))
        anyio.run(block_writes, run, installation, datetime.now(UTC) + BLOCKED)
        anyio.run(make_due, run, installation, ids)
        for name in ["worker"] * WORKERS + ["clock"]:
            run.start(name)
        return _figures(run, _until_completed(run, repositories))


def _until_completed(run: Fleet, repositories: int) -> list[float]:
    """When each write came, in seconds; waits until every repository's run is over."""
    arrived: set[datetime] = set()

    def completed() -> bool:
        time.sleep(1)
        arrived.update(arrivals(run))
        return Counter(item.status for item in run.runs())[Status.COMPLETED] == repositories

    run.until(completed, "all are completed", seconds=PATIENCE_SECONDS)
    return sorted(at.timestamp() for at in arrived)


def _figures(run: Fleet, moments: Sequence[float]) -> dict[str, object]:
    return {
        "workers": WORKERS,
        "scale": SCALE,
        "writes": len(moments),
        "seconds": round(moments[-1] - moments[0], 2),
        "share": share(moments),
        "share_of_the_minute": share(moments[:AN_HOUR]),
        "refused": refusals(run),
        "returns_from_waiting": run.log().count("RUN-WAITING"),
        "sessions": run.model.counts["sessions"],
    }


def share(moments: Sequence[float]) -> float:
    """The time in which the limits allow so many writes, over the time they took."""
    return round(earliest(len(moments), SCALE)[-1] / (moments[-1] - moments[0]), 4)


def earliest(count: int, scale: float) -> list[float]:
    """When so many writes may arrive at the earliest, in seconds from the first."""
    moments: list[float] = []
    for number in range(count):
        minute = moments[number - A_MINUTE] + 60 / scale if number >= A_MINUTE else 0.0
        hour = moments[number - AN_HOUR] + 3600 / scale if number >= AN_HOUR else 0.0
        moments.append(max(minute, hour))
    return moments
