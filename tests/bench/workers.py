"""64 repositories over 1, 2, 4 and 8 workers: how long they take, and what that costs.

Real worker processes, each with its work horses and sessions of the real SDK; the clock has put all
windows into the queue before the first worker starts. ``cpu_seconds`` are those of the workers with
everything that they started, ``world_cpu_seconds`` those of the process that is GitHub, the model
and this measurement. Its servers share one core by the interpreter's lock: ``world_busy`` is its
share of the time, and near 1 it is what holds the workers up. ``load`` is the machine's at the end:
above the number of workers, others were at work too.
"""

import os
import resource
import time
from collections.abc import Mapping
from typing import Final

import anyio

from tests.bench import Options
from tests.bench.stage import add_repository, install, made_up_issues, make_due
from tests.processes.fleet import Fleet, fleet

ISSUES: Final = 5
PATIENCE_SECONDS: Final = 600.0
SETTINGS: Final = {
    "RETRIAGE_LEASE_SECONDS": "30",
    "RETRIAGE_LOCK_DELAY_SECONDS": "15",
    "RETRIAGE_REQUEST_TIMEOUT_SECONDS": "10",
    "RETRIAGE_ABSENCE_WINDOW_SECONDS": "20",
    "RETRIAGE_PACING_SCALE": "10000",
}


def measure(options: Options) -> dict[str, object]:
    """The same repositories, once for each number of workers."""
    repositories = 4 if options.quick else 64
    counts = (1, 2) if options.quick else (1, 2, 4, 8)
    measured = {count: _shared(repositories, count) for count in counts}
    alone = measured[1]["seconds"]
    return {
        "repositories": repositories,
        "issues_each": ISSUES,
        "workers": {
            str(count): {**figures, "speed_up": round(alone / figures["seconds"], 2)}
            for count, figures in measured.items()
        },
    }


def _shared(repositories: int, workers: int) -> dict[str, float]:
    with fleet([]) as run:
        run.environment |= SETTINGS
        ids = {
            f"r{number}": add_repository(run, f"r{number}", made_up_issues(ISSUES, number))
            for number in range(repositories)
        }
        _queue(run, ids)
        own, children = _cpu(resource.RUSAGE_SELF), _cpu(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        started = [run.start("worker") for _ in range(workers)]
        run.until(lambda: _over(run) == repositories, "all are over", seconds=PATIENCE_SECONDS)
        seconds = time.monotonic() - began
        world = _cpu(resource.RUSAGE_SELF) - own
        for process in started:
            process.terminate()
            process.wait(30)
        return {
            "seconds": round(seconds, 2),
            "cpu_seconds": round(_cpu(resource.RUSAGE_CHILDREN) - children, 2),
            "world_cpu_seconds": round(world, 2),
            "world_busy": round(world / seconds, 2),
            "load": round(os.getloadavg()[0], 1),
        }


def _queue(run: Fleet, ids: Mapping[str, int]) -> None:
    """Every window has its job in the queue; the clock goes on for what a run asks of it."""
    anyio.run(make_due, run, install(run, list(ids)), ids)
    run.start("clock")
    run.until(lambda: "TICK" in run.log(), "the clock has ticked")


def _over(run: Fleet) -> int:
    time.sleep(0.2)
    return run.log().count("RUN-COMPLETED")


def _cpu(whose: int) -> float:
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime
