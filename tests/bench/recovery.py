"""From the death of a worker to the completed run.

The worker and its work horse get SIGKILL while a comment is under way: GitHub has applied it and
nobody recorded it, or it never was applied. The lease lapses, the lock delay passes, the clock
ticks, and another worker takes over. It finds the comment by its marker and writes the rest; or it
has the comment's absence proved first, by five reads over the absence window, which the clock asks
for one by one.

The bound is the rest of the lease at that instant, the lock delay, one tick, and the work, which is
what an attempt takes of which nobody dies, measured beside it. Where the absence had to be proved
the window is in it too, and a second tick: its end is waited for like the lease's.
"""

import os
import queue
import signal
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import anyio

from ledger.connection import connect
from ledger.ledger import open_ledger
from ledger.timing import LedgerTiming
from sandbox.github.faults import POST_COMMENT
from tests.bench import Options
from tests.bench.stage import add_repository, install, made_up_issues, make_due
from tests.processes.fleet import BOUNDS, Fleet, fleet
from triage.contract import RunRecord, Status

ISSUES: Final = 3
PATIENCE_SECONDS: Final = 120.0
SETTINGS: Final = {**BOUNDS, "RETRIAGE_ABSENCE_WINDOW_SECONDS": "8"}
"""Short, but in the order of the program's own: a tick is less than a quarter of the window."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one death cost: seconds from it to the end of the run, and of the lease then left."""

    seconds: float
    lease_left: float
    run: RunRecord


def measure(options: Options) -> dict[str, object]:
    """Rounds with a lease of 3 seconds instead of 120, and the other bounds as short."""
    rounds = 1 if options.quick else 5
    work = [_undisturbed() for _ in range(rounds)]
    absence = _setting("ABSENCE_WINDOW") + _setting("TICK")
    return {
        "settings": {
            f"{name.lower()}_seconds": _setting(name)
            for name in ("LEASE", "LOCK_DELAY", "TICK", "ABSENCE_WINDOW")
        },
        "work_seconds": _ranged(work),
        "applied": _told([_killed_after_applying() for _ in range(rounds)], max(work)),
        "never_applied": _told(
            [_killed_before_applying() for _ in range(rounds)], max(work) + absence
        ),
    }


def _told(rounds: Sequence[Round], rest: float) -> dict[str, object]:
    """Measured against the bound, round by round; ``rest`` is what is no setting in it."""
    fixed = _setting("LOCK_DELAY") + _setting("TICK") + rest
    bounds = [item.lease_left + fixed for item in rounds]
    return {
        "seconds": _ranged([item.seconds for item in rounds]),
        "bound_seconds": _ranged(bounds),
        "of_the_bound": _ranged(
            [item.seconds / bound for item, bound in zip(rounds, bounds, strict=True)]
        ),
        "rounds_within": sum(
            item.seconds <= bound for item, bound in zip(rounds, bounds, strict=True)
        ),
        "rounds": len(rounds),
        "ways": sorted({", ".join(at.ended for at in item.run.attempts) for item in rounds}),
    }


def _undisturbed() -> float:
    """Seconds of an attempt of which nobody dies."""
    with fleet([]) as run:
        _start(run)
        done = _completed(run)
        return _between(done.attempts[0].began, done.attempts[0].until)


def _killed_after_applying() -> Round:
    with fleet([]) as run:
        deaths: queue.Queue[tuple[datetime, float]] = queue.Queue()
        workers: list[int] = []

        def kill(_: object) -> None:
            deaths.put(_kill(run, workers[0]))

        run.github.fail(POST_COMMENT, "call after applying", call=kill, occurrence=2)
        workers.append(_start(run))
        return _recovered(run, *deaths.get(timeout=PATIENCE_SECONDS))


def _killed_before_applying() -> Round:
    with fleet([]) as run:
        run.github.fail(POST_COMMENT, "hang before applying", seconds=3600, occurrence=2)
        worker = _start(run)
        run.until(lambda: _hangs(run), "a comment hangs")
        return _recovered(run, *_kill(run, worker))


def _start(run: Fleet) -> int:
    """A window is due, and a clock and a worker are there for it; the worker's process id."""
    run.environment |= SETTINGS
    ids = {"api2": add_repository(run, "api2", made_up_issues(ISSUES))}
    anyio.run(make_due, run, install(run, list(ids)), ids)
    run.start("clock")
    return run.start("worker").pid


def _hangs(run: Fleet) -> bool:
    return any(request.status == "hang" for request in run.github.requests())


def _kill(run: Fleet, worker: int) -> tuple[datetime, float]:
    """Kill a worker and its work horse: when, and the seconds that the lease then still had."""
    horse = int(Path(f"/proc/{worker}/task/{worker}/children").read_text().split()[0])
    left = anyio.run(_lease_left, run)
    for pid in (worker, horse):
        os.kill(pid, signal.SIGKILL)
    return datetime.now(UTC), left


async def _lease_left(run: Fleet) -> float:
    async with connect(run.server.url) as client:
        ledger = open_ledger(client, LedgerTiming())
        key = (await ledger.runs.listed())[0].inputs.dedupe_key
        lease = (await ledger.leases.view(key)).lease
        return _between(lease.now, lease.until)


def _recovered(run: Fleet, died: datetime, left: float) -> Round:
    run.start("worker")
    done = _completed(run)
    return Round(_between(died, done.attempts[-1].until), left, done)


def _completed(run: Fleet) -> RunRecord:
    """The run, once it is completed."""

    def over() -> bool:
        return any(item.status is Status.COMPLETED for item in run.runs())

    run.until(over, "the run is completed", seconds=PATIENCE_SECONDS)
    return run.runs()[0]


def _between(first: datetime, second: datetime | None) -> float:
    return (second - first).total_seconds() if second is not None else 0.0


def _setting(name: str) -> float:
    return float(SETTINGS[f"RETRIAGE_{name}_SECONDS"])


def _ranged(values: Sequence[float]) -> dict[str, float]:
    """Least, median and most."""
    return {
        "min": round(min(values), 2),
        "median": round(statistics.median(values), 2),
        "max": round(max(values), 2),
    }
